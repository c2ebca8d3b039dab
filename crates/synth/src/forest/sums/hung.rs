//! A tree hung up at a terminal.

use crate::forest::sums::glue::FreeTree;

/// A tree with a root.
pub(super) struct Hung {
    pub(super) root: u32,
    /// Hops away from the root, each after the one that leads to its start: which it is, and whether it is passed from
    /// its second end to its first.
    pub(super) order: Vec<(usize, bool)>,
}

impl Hung {
    /// Hangs a tree up where it is least deep, at the lower one of two such ranks, or at a rank next to there; `None` if it is
    /// no spanning tree.
    pub(super) fn at_centre(tree: &FreeTree, (terminal_count, rank_count): (u32, u32)) -> Option<Self> {
        let around = hops_around(tree, terminal_count)?;
        let (_, some_end, _) = walk(&around, 0)?;
        let (_, other_end, parents) = walk(&around, some_end)?;
        let mut path = vec![other_end];
        while let Some(parent) = parents[*path.last()? as usize] {
            path.push(parent);
        }
        let root = path[(path.len() - 1) / 2].min(path[path.len() / 2]);
        let (mut order, ..) = walk(&around, root)?;
        if root < rank_count {
            return Some(Self { root, order });
        }
        let end = |&(hop, is_back): &(usize, bool)| tree.hops[hop].ends[usize::from(!is_back)];
        let root = order.iter().map(end).find(|&terminal| terminal < rank_count)?;
        (order, ..) = walk(&around, root)?;
        Some(Self { root, order })
    }

    /// Hops between the root and the rank farthest from it.
    pub(super) fn depth(&self, tree: &FreeTree) -> u32 {
        self.depths(tree).into_iter().max().unwrap_or_default()
    }

    /// By rank: hops from the root.
    fn depths(&self, tree: &FreeTree) -> Vec<u32> {
        let mut depths = vec![0_u32; tree.hops.len() + 1];
        for &(hop, is_back) in &self.order {
            let [first, second] = tree.hops[hop].ends;
            let (from, to) = if is_back { (second, first) } else { (first, second) };
            depths[to as usize] = depths[from as usize] + 1;
        }
        depths
    }

    /// Hangs a tree up at a rank; `None` if it is no spanning tree.
    pub(super) fn at(tree: &FreeTree, terminal_count: u32, root: u32) -> Option<Self> {
        let (order, ..) = walk(&hops_around(tree, terminal_count)?, root)?;
        Some(Self { root, order })
    }

    /// How deep a tree is when it hangs from a terminal, for each of them; `None` if it is no spanning tree. The farthest
    /// terminal is an end of a longest path.
    pub(super) fn heights(tree: &FreeTree, terminal_count: u32) -> Option<Vec<u32>> {
        let around = hops_around(tree, terminal_count)?;
        let (_, some_end, _) = walk(&around, 0)?;
        let (_, other_end, _) = walk(&around, some_end)?;
        let mut heights = vec![0; terminal_count as usize];
        for end in [some_end, other_end] {
            let (order, ..) = walk(&around, end)?;
            let depths = Self { root: end, order }.depths(tree);
            heights.iter_mut().zip(depths).for_each(|(height, depth): (&mut u32, u32)| *height = depth.max(*height));
        }
        Some(heights)
    }
}

/// By terminal: hops there, with the terminal at the other end, and whether they are passed from their second end. `None`
/// if they are too few or too many for a tree.
fn hops_around(tree: &FreeTree, terminal_count: u32) -> Option<Vec<Vec<(usize, u32, bool)>>> {
    let mut around = vec![Vec::new(); terminal_count as usize];
    for (position, hop) in tree.hops.iter().enumerate() {
        let [first, second] = hop.ends;
        around.get_mut(first as usize)?.push((position, second, false));
        around.get_mut(second as usize)?.push((position, first, true));
    }
    (tree.hops.len() + 1 == terminal_count as usize).then_some(around)
}

/// A tree as seen from a terminal: its hops outwards, a terminal that is farthest, and who comes before whom.
type Walk = (Vec<(usize, bool)>, u32, Vec<Option<u32>>);

/// Breadth first; `None` if not all terminals are reached.
fn walk(around: &[Vec<(usize, u32, bool)>], from: u32) -> Option<Walk> {
    let mut parents = vec![None; around.len()];
    let mut hop_into = vec![None; around.len()];
    let mut order = Vec::with_capacity(around.len());
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(&rank) = reached.get(next) {
        next += 1;
        let came_by = hop_into[rank as usize];
        for &(hop, other, is_back) in around[rank as usize].iter().filter(|way| came_by != Some(way.0)) {
            if other == from || hop_into[other as usize].is_some() {
                return None;
            }
            hop_into[other as usize] = Some(hop);
            parents[other as usize] = Some(rank);
            order.push((hop, is_back));
            reached.push(other);
        }
    }
    (reached.len() == around.len()).then(|| (order, reached[reached.len() - 1], parents))
}
