//! The arcs that carry something of one commodity, in an order in which it flows.

use crate::digraph::Arc;

/// What flows: a number, whole or not.
pub(super) trait Amount: Copy + PartialOrd {
    /// Nothing.
    const ZERO: Self;
    /// What is left of it.
    fn less(self, other: Self) -> Self;
}

impl Amount for f64 {
    const ZERO: Self = 0.0;
    fn less(self, other: Self) -> Self {
        self - other
    }
}

impl Amount for u64 {
    const ZERO: Self = 0;
    fn less(self, other: Self) -> Self {
        self - other
    }
}

/// Buffers to look at one flow after the other.
pub(super) struct Support<'a> {
    arcs: &'a [Arc],
    /// By node and one more: where its arcs begin in `entering`, or in `leaving`.
    heads: Vec<u32>,
    entering: Vec<u32>,
    tails: Vec<u32>,
    leaving: Vec<u32>,
    order: Vec<u32>,
    /// By node, arcs entering from nodes that are not in the order yet.
    waiting: Vec<u32>,
}

impl<'a> Support<'a> {
    pub(super) fn new(node_count: u32, arcs: &'a [Arc]) -> Self {
        let nodes = node_count as usize;
        Self {
            arcs,
            heads: vec![0; nodes + 1],
            entering: Vec::new(),
            tails: vec![0; nodes + 1],
            leaving: Vec::new(),
            order: Vec::with_capacity(nodes),
            waiting: vec![0; nodes],
        }
    }

    /// Takes all cycles out of a flow and puts its nodes in order; what carries nothing then is dropped.
    ///
    /// O(nodes + amounts), as often as there are cycles.
    pub(super) fn untangle<A: Amount>(&mut self, amounts: &mut Vec<(u32, A)>) {
        loop {
            amounts.retain(|&(_, amount)| amount > A::ZERO);
            self.index(amounts);
            if self.sort(amounts) {
                return;
            }
            self.cancel_cycle(amounts);
        }
    }

    /// Positions in the amounts of arcs that enter a node.
    pub(super) fn entering(&self, node: u32) -> &[u32] {
        &self.entering[self.heads[node as usize] as usize..self.heads[node as usize + 1] as usize]
    }

    /// All nodes, each before those that it sends to.
    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    fn index<A>(&mut self, amounts: &[(u32, A)]) {
        let arcs = self.arcs;
        let head = |&(arc, _): &(u32, A)| arcs[arc as usize].to as usize;
        let tail = |&(arc, _): &(u32, A)| arcs[arc as usize].from as usize;
        counted(amounts.iter().map(head), &mut self.heads, &mut self.entering);
        counted(amounts.iter().map(tail), &mut self.tails, &mut self.leaving);
    }

    /// Whether all nodes could be put in order.
    fn sort<A>(&mut self, amounts: &[(u32, A)]) -> bool {
        let nodes = self.waiting.len();
        self.order.clear();
        for node in 0..nodes {
            self.waiting[node] = self.heads[node + 1] - self.heads[node];
        }
        self.order.extend((0_u32..).zip(&self.waiting).filter(|&(_, &waiting)| waiting == 0).map(|(node, _)| node));
        let mut next = 0;
        while let Some(&node) = self.order.get(next) {
            next += 1;
            let leaving = self.tails[node as usize] as usize..self.tails[node as usize + 1] as usize;
            for &position in &self.leaving[leaving] {
                let to = self.arcs[amounts[position as usize].0 as usize].to;
                let waiting = &mut self.waiting[to as usize];
                *waiting -= 1;
                if *waiting == 0 {
                    self.order.push(to);
                }
            }
        }
        self.order.len() == nodes
    }

    /// Takes as much off all arcs of some cycle as the least of them carries. A node that still waits is entered from another
    /// one that does, so walking backwards ends in a cycle.
    fn cancel_cycle<A: Amount>(&self, amounts: &mut [(u32, A)]) {
        let Some(start) = self.waiting.iter().position(|&waiting| waiting > 0) else { return };
        let mut seen = vec![u32::MAX; self.waiting.len()];
        let mut walk: Vec<u32> = Vec::new();
        let mut node = u32::try_from(start).expect("nodes are counted in u32");
        while seen[node as usize] == u32::MAX {
            seen[node as usize] = u32::try_from(walk.len()).expect("at most one arc for each node");
            let from = |position: u32| self.arcs[amounts[position as usize].0 as usize].from;
            let waits = |&&position: &&u32| self.waiting[from(position) as usize] > 0;
            let Some(&position) = self.entering(node).iter().find(waits) else { return };
            walk.push(position);
            node = from(position);
        }
        let cycle = &walk[seen[node as usize] as usize..];
        let least = cycle.iter().map(|&position| amounts[position as usize].1);
        let Some(least) = least.reduce(|least, amount| if amount < least { amount } else { least }) else { return };
        for &position in cycle {
            let amount = &mut amounts[position as usize].1;
            *amount = amount.less(least);
        }
    }

    /// Arcs on a path of fewest arcs from a node to another, over all arcs with capacity; `None` where there is none.
    pub(super) fn fewest_arcs(&self, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut by: Vec<Option<u32>> = vec![None; self.waiting.len()];
        let mut leaving: Vec<Vec<u32>> = vec![Vec::new(); self.waiting.len()];
        for (index, arc) in (0_u32..).zip(self.arcs).filter(|(_, arc)| arc.capacity > 0) {
            leaving[arc.from as usize].push(index);
        }
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for &index in &leaving[node as usize] {
                let next = self.arcs[index as usize].to;
                if next != from && by[next as usize].is_none() {
                    by[next as usize] = Some(index);
                    queue.push_back(next);
                }
            }
        }
        let mut path = Vec::new();
        let mut node = to;
        while node != from {
            let arc = by[node as usize]?;
            path.push(arc);
            node = self.arcs[arc as usize].from;
        }
        path.reverse();
        Some(path)
    }
}

/// Sorts positions by node: by node where its positions begin, and the positions.
fn counted(nodes: impl Iterator<Item = usize> + Clone, starts: &mut [u32], positions: &mut Vec<u32>) {
    starts.fill(0);
    for node in nodes.clone() {
        starts[node + 1] += 1;
    }
    for node in 1..starts.len() {
        starts[node] += starts[node - 1];
    }
    positions.clear();
    positions.resize(*starts.last().unwrap_or(&0) as usize, 0);
    // Filled backwards from the ends, which become the beginnings.
    let mut ends: Vec<u32> = starts[1..].to_vec();
    let nodes: Vec<usize> = nodes.collect();
    for (position, &node) in nodes.iter().enumerate().rev() {
        ends[node] -= 1;
        positions[ends[node] as usize] = u32::try_from(position).expect("amounts are counted in u32");
    }
}
