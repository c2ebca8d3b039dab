//! Sets of nodes that are joined one by one.

/// A partition of the numbers below some count, which only gets coarser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orbits {
    parent: Vec<u32>,
    size: Vec<u32>,
    count: usize,
}

impl Orbits {
    /// Each node alone.
    pub(crate) fn new(node_count: usize) -> Self {
        Self { parent: (0_u32..).take(node_count).collect(), size: vec![1; node_count], count: node_count }
    }

    /// The node that stands for the orbit of this one. O(log nodes).
    pub fn representative(&self, node: u32) -> u32 {
        let mut node = node;
        while self.parent[node as usize] != node {
            node = self.parent[node as usize];
        }
        node
    }

    /// Joins two orbits; says whether they were two.
    pub(crate) fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.representative(a), self.representative(b));
        if a == b {
            return false;
        }
        let (small, large) = if self.size[a as usize] < self.size[b as usize] { (a, b) } else { (b, a) };
        self.parent[small as usize] = large;
        self.size[large as usize] += self.size[small as usize];
        self.count -= 1;
        true
    }

    /// Number of orbits.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Number of nodes in the orbit of a node.
    pub fn size_of(&self, node: u32) -> u32 {
        self.size[self.representative(node) as usize]
    }

    /// The orbits, by first node, each in rising order. O(nodes log nodes).
    pub fn to_sets(&self) -> Vec<Vec<u32>> {
        let mut number = vec![None; self.parent.len()];
        let mut sets: Vec<Vec<u32>> = Vec::with_capacity(self.count);
        for (node, _) in (0_u32..).zip(&self.parent) {
            let slot = &mut number[self.representative(node) as usize];
            let position = *slot.get_or_insert_with(|| {
                sets.push(Vec::new());
                sets.len() - 1
            });
            sets[position].push(node);
        }
        sets
    }
}
