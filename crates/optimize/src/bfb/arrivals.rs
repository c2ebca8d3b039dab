//! Shares that arrive at one node in each step, and the in-links that can carry them.

use std::ops::Range;

use super::{BfbError, BfbGraph};
use crate::stop::{Meter, Stop};

/// The arrivals at one node after the other; holds the buffers to find them.
///
/// [`visit`](Self::visit) a node first, then ask about its steps, numbered from 1: in step t what is t links away arrives.
#[derive(Clone, Debug)]
pub struct Arrivals<'a> {
    pub(super) graph: &'a BfbGraph,
    pub(super) node: u32,
    /// By node: its distance to the one visited; that itself has 0, `u32::MAX` is not reached.
    distances: Vec<u32>,
    /// Nodes by increasing distance; `starts[t] .. starts[t + 1]` are those at distance t, which a question about step t may
    /// put in another order.
    order: Vec<u32>,
    starts: Vec<usize>,
    /// By node, `words` of them: the set of in-links of the visited node that begin a shortest way back to it.
    pub(super) masks: Vec<u64>,
    pub(super) words: usize,
    /// By set of in-links, as a number: amounts, where there are few of them.
    pub(super) sums: Vec<u64>,
}

impl<'a> Arrivals<'a> {
    /// Buffers for a graph. Visits nothing yet: there are no steps.
    pub fn new(graph: &'a BfbGraph) -> Self {
        Self {
            graph,
            node: 0,
            distances: Vec::new(),
            order: Vec::new(),
            starts: vec![0, 0],
            masks: Vec::new(),
            words: 1,
            sums: Vec::new(),
        }
    }

    /// Finds all nodes that reach `node`, how far they are, and the in-links over which their shares can come.
    ///
    /// A node v at distance t + 1 can use what its out-neighbours at distance t can: one breadth-first search against the
    /// links finds the sets of all nodes.
    ///
    /// * **Errors.** A node with something to send that does not reach this one; stopped.
    /// * **Cost.** O((nodes + links) · in-degree / 64).
    pub fn visit(&mut self, node: u32, stop: &dyn Stop) -> Result<(), BfbError> {
        let mut meter = Meter::new(stop);
        let count = self.graph.node_count() as usize;
        self.node = node;
        self.words = self.graph.in_links(node).len().div_ceil(64).max(1);
        self.distances.clear();
        self.distances.resize(count, u32::MAX);
        self.masks.clear();
        self.masks.resize(count * self.words, 0);
        self.order.clear();
        self.order.push(node);
        self.starts.clear();
        self.starts.push(0);
        self.distances[node as usize] = 0;
        let (mut start, mut distance) = (0, 0);
        // Breadth first, level by level against the links; each passes a row of words on: O(links · words).
        while start < self.order.len() {
            let end = self.order.len();
            self.starts.push(end);
            distance += 1;
            for position in start..end {
                let near = self.order[position];
                let links = self.graph.in_links(near);
                meter.spend_many(links.len() * self.words)?;
                for (index, link) in links.iter().enumerate() {
                    self.reach(link.from, distance, if distance == 1 { Via::Link(index) } else { Via::Node(near) });
                }
            }
            start = end;
        }
        match (0..count).find(|&from| self.distances[from] == u32::MAX && self.graph.amounts[from] > 0) {
            None => Ok(()),
            Some(from) => Err(BfbError::Unreachable { from: u32::try_from(from).expect("a node"), node }),
        }
    }

    /// A link leads from `from` to something at one less than `distance`.
    fn reach(&mut self, from: u32, distance: u32, via: Via) {
        let known = &mut self.distances[from as usize];
        if *known == u32::MAX {
            *known = distance;
            self.order.push(from);
        }
        if *known != distance {
            return;
        }
        let own = from as usize * self.words;
        match via {
            Via::Link(index) => self.masks[own + index / 64] |= 1 << (index % 64),
            Via::Node(near) => {
                for word in 0..self.words {
                    self.masks[own + word] |= self.masks[near as usize * self.words + word];
                }
            }
        }
    }

    /// The node visited last.
    pub const fn node(&self) -> u32 {
        self.node
    }

    /// Steps until everything has arrived: the greatest distance to the node visited. 0 if nothing has to arrive.
    pub fn step_count(&self) -> u32 {
        u32::try_from(self.starts.len() - 2).expect("fewer steps than nodes")
    }

    /// Nodes whose shares arrive in a step, those without a share included, in no particular order; none beyond the last
    /// step.
    pub fn sources(&self, step: u32) -> &[u32] {
        &self.order[self.range(step)]
    }

    fn range(&self, step: u32) -> Range<usize> {
        let at = |step: usize| self.starts.get(step).copied().unwrap_or(self.order.len());
        if step == 0 { 0..0 } else { at(step as usize)..at(step as usize + 1) }
    }

    /// Set of in-links of a source as a number, where 64 bits hold it.
    pub(super) fn small_mask(&self, source: u32) -> usize {
        debug_assert_eq!(self.words, 1);
        usize::try_from(self.masks[source as usize]).expect("few in-links")
    }

    /// Sources of a step that have something to send, grouped by the in-links they can use: by increasing set, then source.
    pub(super) fn classes(&mut self, step: u32) -> Vec<Class> {
        let range = self.range(step);
        let (masks, words) = (&self.masks, self.words);
        let mask = |node: u32| &masks[node as usize * words..(node as usize + 1) * words];
        self.order[range.clone()].sort_unstable_by(|&a, &b| mask(a).cmp(mask(b)).then(a.cmp(&b)));
        let amounts = &self.graph.amounts;
        let link_count = self.graph.in_links(self.node).len();
        self.order[range]
            .chunk_by(|&a, &b| mask(a) == mask(b))
            .map(|sources| Class {
                links: (0..link_count).filter(|link| mask(sources[0])[link / 64] >> (link % 64) & 1 == 1).collect(),
                sources: sources.iter().copied().filter(|&source| amounts[source as usize] > 0).collect(),
                amount: sources.iter().map(|&source| u128::from(amounts[source as usize])).sum(),
            })
            .filter(|class| class.amount > 0)
            .collect()
    }
}

/// How a search came to a node.
enum Via {
    /// Over an in-link of the node visited.
    Link(usize),
    /// Over a link to this node.
    Node(u32),
}

/// Sources of one step that can use the same in-links.
#[derive(Debug)]
pub(super) struct Class {
    /// Positions of these in-links.
    pub(super) links: Vec<usize>,
    pub(super) sources: Vec<u32>,
    /// What they have to send together.
    pub(super) amount: u128,
}
