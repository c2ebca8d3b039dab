//! An order of channels that is kept as waits are added.

/// A directed graph without cycles, and an order of its nodes in which every edge rises.
///
/// Source: Pearce and Kelly 2006. An edge that rises already costs nothing; another one costs a search among the nodes
/// between its ends, which are then put in order in the places that they have.
#[derive(Debug)]
pub(super) struct DynamicOrder {
    /// By node; a permutation.
    position: Vec<u32>,
    to: Vec<Vec<u32>>,
    from: Vec<Vec<u32>>,
    /// Nodes that the search at hand has seen.
    seen: Vec<bool>,
    /// What it found after the edge's end, and before its start.
    after: Vec<u32>,
    before: Vec<u32>,
    stack: Vec<u32>,
}

impl DynamicOrder {
    pub(super) fn new(node_count: usize) -> Self {
        Self {
            position: (0..).take(node_count).collect(),
            to: vec![Vec::new(); node_count],
            from: vec![Vec::new(); node_count],
            seen: vec![false; node_count],
            after: Vec::new(),
            before: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// Place of a node in the order.
    pub(super) fn position(&self, node: u32) -> u32 {
        self.position[node as usize]
    }

    /// Adds an edge that is not there, unless that closes a cycle; whether it was added.
    pub(super) fn insert(&mut self, from: u32, to: u32) -> bool {
        if from == to || (self.position(to) < self.position(from) && !self.reorder(from, to)) {
            return false;
        }
        self.to[from as usize].push(to);
        self.from[to as usize].push(from);
        true
    }

    /// Takes an edge away that is there. The order is as good for what is left.
    pub(super) fn remove(&mut self, from: u32, to: u32) {
        self.to[from as usize].retain(|&node| node != to);
        self.from[to as usize].retain(|&node| node != from);
    }

    /// Moves what follows the end of a falling edge behind what leads to its start; false, and nothing moves, if they meet.
    fn reorder(&mut self, from: u32, to: u32) -> bool {
        let (lowest, highest) = (self.position(to), self.position(from));
        self.after.clear();
        let is_free = search(&self.to, to, &mut self.seen, &mut self.stack, &mut self.after, |node| {
            let position = self.position[node as usize];
            (position < highest, position == highest)
        });
        if !is_free {
            self.after.iter().for_each(|&node| self.seen[node as usize] = false);
            return false;
        }
        self.before.clear();
        search(&self.from, from, &mut self.seen, &mut self.stack, &mut self.before, |node| {
            (self.position[node as usize] > lowest, false)
        });
        let position = &mut self.position;
        for found in [&mut self.before, &mut self.after] {
            found.iter().for_each(|&node| self.seen[node as usize] = false);
            found.sort_unstable_by_key(|&node| position[node as usize]);
        }
        let nodes = || self.before.iter().chain(&self.after).copied();
        let mut places: Vec<u32> = nodes().map(|node| position[node as usize]).collect();
        places.sort_unstable();
        for (node, place) in nodes().zip(places) {
            position[node as usize] = place;
        }
        true
    }
}

/// Nodes that edges lead to from a first one, as far as `look` says: whether to go on from a node, and whether it must not
/// be met. False as soon as it is.
fn search(
    edges: &[Vec<u32>],
    first: u32,
    seen: &mut [bool],
    stack: &mut Vec<u32>,
    found: &mut Vec<u32>,
    look: impl Fn(u32) -> (bool, bool),
) -> bool {
    stack.clear();
    stack.push(first);
    seen[first as usize] = true;
    found.push(first);
    while let Some(node) = stack.pop() {
        for &next in &edges[node as usize] {
            let (is_between, is_met) = look(next);
            if is_met {
                return false;
            }
            if is_between && !std::mem::replace(&mut seen[next as usize], true) {
                found.push(next);
                stack.push(next);
            }
        }
    }
    true
}
