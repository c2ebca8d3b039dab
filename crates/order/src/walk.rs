//! A walk through a fabric into the depth: links that alone join two sides, and machines side by side.

use crate::fabric::Fabric;

/// Machines on one side of some links, with what these carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) machines: usize,
    pub(crate) ranks: u64,
    /// Bytes per second of the links in one direction or the other, whichever is less.
    pub(crate) capacity: u128,
}

/// What is found on a walk from the first machine.
pub(crate) struct Walk {
    /// Machines as they are met: those behind a link that alone leads there come one after another.
    pub(crate) machines: Vec<usize>,
    /// The far side of each such link.
    pub(crate) cuts: Vec<Cut>,
}

/// A node on the way to where the walk is.
struct Place {
    node: usize,
    /// The node before it; itself for the first.
    before: usize,
    /// Neighbours that were looked at.
    looked: usize,
    /// The earliest node that is reached from it and from what is behind it without the way that led there.
    earliest: usize,
    /// Machines behind it, and their ranks.
    machines: usize,
    ranks: u64,
}

impl Walk {
    /// Walks through all nodes.
    ///
    /// * **Source.** Tarjan 1974, *A note on finding the bridges of a graph*.
    /// * **Cost.** O(nodes + links).
    pub(crate) fn of(fabric: &Fabric) -> Self {
        let neighbours: Vec<Vec<usize>> = (0..fabric.node_count())
            .map(|node| {
                let to = fabric.leaving[node].iter().map(|&edge| fabric.edges[edge].to);
                to.chain(fabric.entering[node].iter().map(|&edge| fabric.edges[edge].from)).collect()
            })
            .collect();
        let mut walk = Self { machines: Vec::new(), cuts: Vec::new() };
        let mut met: Vec<Option<usize>> = vec![None; fabric.node_count()];
        let mut count = 0;
        for start in 0..fabric.node_count() {
            let mut way: Vec<Place> = Vec::new();
            let mut next = Some((start, start)).filter(|_| met[start].is_none());
            loop {
                if let Some((node, before)) = next.take() {
                    met[node] = Some(count);
                    way.push(walk.enter(fabric, node, before, count));
                    count += 1;
                }
                let Some(here) = way.last_mut() else { break };
                match neighbours[here.node].get(here.looked) {
                    Some(&other) => {
                        here.looked += 1;
                        match met[other] {
                            None => next = Some((other, here.node)),
                            Some(number) if other != here.before => here.earliest = here.earliest.min(number),
                            Some(_) => {}
                        }
                    }
                    None => {
                        let Some(left) = way.pop() else { break };
                        let Some(before) = way.last_mut() else { break };
                        walk.leave(fabric, &left, met[left.node]);
                        before.earliest = before.earliest.min(left.earliest);
                        before.machines += left.machines;
                        before.ranks += left.ranks;
                    }
                }
            }
        }
        walk
    }

    /// A node that is met now.
    fn enter(&mut self, fabric: &Fabric, node: usize, before: usize, number: usize) -> Place {
        let ranks = fabric.rank_counts().get(node).copied();
        self.machines.extend(ranks.map(|_| node));
        Place {
            node,
            before,
            looked: 0,
            earliest: number,
            machines: usize::from(ranks.is_some()),
            ranks: ranks.unwrap_or(0).into(),
        }
    }

    /// Notes the link to a node behind which all has been seen, if no other leads there.
    fn leave(&mut self, fabric: &Fabric, left: &Place, number: Option<usize>) {
        if number != Some(left.earliest) || left.machines == 0 {
            return;
        }
        let rate = |from: usize, to: usize| {
            let edge = fabric.leaving[from].iter().map(|&edge| &fabric.edges[edge]).find(|edge| edge.to == to);
            edge.map_or(0, |edge| u128::from(edge.capacity))
        };
        let capacity = rate(left.node, left.before).min(rate(left.before, left.node));
        self.cuts.push(Cut { machines: left.machines, ranks: left.ranks, capacity });
    }
}
