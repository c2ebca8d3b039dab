//! Trees as a schedule in steps.

use std::ops::Range;

use canopy_direct::multiport::Branch;
use canopy_schedule::{ChunkLayout, Collective, Pace, RouteIndex, RouteInterner, Shares, Steps};
use canopy_topology::{Rank, Topology};
use num_integer::Integer as _;

use super::Phase;
use super::parts::Payload;
use crate::error::SynthesisError;
use crate::parts::{Sending, StepsParts, require_room};

/// Chunks on an edge in a step.
struct Message {
    step: u32,
    edge: u32,
    chunks: Range<u64>,
}

/// Steps in the making.
pub(super) struct Writer<'a> {
    topology: &'a Topology,
    layout: ChunkLayout,
    routes: RouteInterner,
    steps: StepsParts,
    chunks_per_share: u64,
    next_step: u32,
}

impl<'a> Writer<'a> {
    /// For phases whose parts are whole chunks.
    pub(super) fn new(
        topology: &'a Topology,
        collective: Collective,
        shares: &Shares,
        phases: &[Phase],
    ) -> Result<Self, SynthesisError> {
        let totals = phases.iter().map(|phase| phase.parts.iter().map(|part| part.weight).sum::<u64>().max(1));
        let chunks_per_share = totals.fold(1, |common: u64, total| common.lcm(&total));
        let layout = ChunkLayout::new(collective, topology.rank_count(), chunks_per_share, shares)?;
        let steps = StepsParts::new(chunks_per_share, Pace::Barriers);
        Ok(Self { topology, layout, routes: RouteInterner::default(), steps, chunks_per_share, next_step: 0 })
    }

    /// Adds what a phase sends, after all that is there.
    pub(super) fn add(&mut self, phase: &Phase) -> Result<(), SynthesisError> {
        let directed = &phase.directed;
        let mut route_of: Vec<Option<RouteIndex>> = vec![None; directed.graph.edge_count() as usize];
        let mut messages = self.messages(phase)?;
        let key = |message: &Message| (message.step, directed.route(message.edge), message.chunks.start);
        messages.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        // The last step of the trees with a send, and its number here.
        let mut last: Option<u32> = None;
        for Message { step, edge, chunks } in messages {
            if last.is_some_and(|last| last != step) {
                self.next_step += 1;
            }
            last = Some(step);
            require_room(self.steps.len() as u64)?;
            let links = directed.route(edge);
            let known = &mut route_of[edge as usize];
            let route = *known.get_or_insert_with(|| self.routes.intern(links));
            let rank = |node| self.topology.rank_of(node);
            let from = links.first().and_then(|&link| rank(self.topology.link(link).from));
            let to = links.last().and_then(|&link| rank(self.topology.link(link).to));
            let (Some(from), Some(to)) = (from, to) else {
                return Err(SynthesisError::Broken { what: "multiport: a route joins no ranks".to_owned() });
            };
            let (step, action) = (self.next_step, phase.action);
            self.steps.push(Sending { step, action, from, to, chunks, route });
        }
        self.next_step += u32::from(last.is_some());
        Ok(())
    }

    /// The schedule.
    pub(super) fn finish(self) -> Steps {
        self.steps.finish(self.routes.finish())
    }

    /// What all trees of a phase carry.
    fn messages(&self, phase: &Phase) -> Result<Vec<Message>, SynthesisError> {
        let directed = &phase.directed;
        let steps = phase.parts.iter().map(|part| part.trees.step_count()).max().unwrap_or(0);
        let total = phase.parts.iter().map(|part| part.weight).sum::<u64>().max(1);
        let unit = self.chunks_per_share / total;
        let mut messages = Vec::new();
        let mut first = 0;
        for part in &phase.parts {
            let cut = first * unit..(first + part.weight) * unit;
            first += part.weight;
            for tree in &part.trees.trees {
                let mut push = |Branch { step, edge }: Branch, chunks: Range<u64>| {
                    if chunks.is_empty() {
                        return Ok(());
                    }
                    let step = if directed.is_backwards { steps - 1 - step } else { step };
                    messages.push(Message { step, edge, chunks });
                    require_room(messages.len() as u64)
                };
                let root = Rank::new(tree.root);
                match phase.payload {
                    Payload::Shares | Payload::Message => {
                        let chunks = self.cut(self.layout.chunks_of(root), &cut);
                        tree.branches.iter().try_for_each(|&branch| push(branch, chunks.clone()))?;
                    }
                    Payload::Shared | Payload::Blocks => {
                        let before = directed.before(tree);
                        for rank in self.topology.ranks().filter(|&rank| rank != root) {
                            // In a gather the share is that of the rank, too.
                            let chunks = match phase.payload {
                                Payload::Blocks => self.layout.chunks_between(root, rank),
                                _ => self.layout.chunks_of(rank),
                            };
                            let chunks = self.cut(chunks, &cut);
                            let mut at = rank.number();
                            while let Some((branch, tail)) = before[at as usize] {
                                push(branch, chunks.clone())?;
                                at = tail;
                            }
                        }
                    }
                }
            }
        }
        Ok(messages)
    }

    /// A part of a share or block: of a weighted one, as large a part of it.
    fn cut(&self, chunks: Range<u64>, cut: &Range<u64>) -> Range<u64> {
        let weight = (chunks.end - chunks.start) / self.chunks_per_share;
        chunks.start + weight * cut.start..chunks.start + weight * cut.end
    }
}
