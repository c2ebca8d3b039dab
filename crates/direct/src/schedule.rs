//! Allgathers on graphs: composed along a construction, and written out once, at the end.
//!
//! What a level of a composition holds is its graph; its transfers are made of those of the level within whenever they are
//! asked for, one by one.

mod base;
mod error;
mod level;
mod oriented;
#[cfg(test)]
mod tests;

use canopy_optimize::{Fraction, Stop};

use crate::construction::Construction;
use crate::cost::Cost;
use crate::size::Limit;
use crate::transfer::Transfer;
pub use error::ScheduleError;
use level::Level;

/// Which way data moves along the edges of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heading {
    /// From tail to head: an allgather on the graph.
    Along,
    /// From head to tail: an allgather on the graph with all edges turned around, whose edges keep their numbers. Run
    /// backwards it is a reduce-scatter on the graph itself.
    Against,
}

/// An allgather on the graph of a construction, not written out.
#[derive(Debug)]
pub struct Composed {
    level: Level,
}

impl Composed {
    /// Composes the allgather of a construction: of families by breadth-first broadcast or their stored schedule, then
    /// operator by operator. On a product it is a breadth-first broadcast on the whole.
    ///
    /// * **Source.** The dissertation's sections 3.4 and 3.5, definition 14 and appendix A.1.6.
    /// * **Errors.** [`ScheduleError`]: sizes over the limit, graphs on which an operator is not defined, stopped.
    /// * **Cost.** The breadth-first broadcasts of the families, and O(size of the graphs of all levels).
    pub fn new(
        construction: &Construction,
        heading: Heading,
        limit: Limit,
        stop: &dyn Stop,
    ) -> Result<Self, ScheduleError> {
        Ok(Self { level: Level::new(construction, heading, limit, stop)? })
    }

    /// Number of nodes.
    pub fn order(&self) -> u32 {
        self.level.graph.order()
    }

    /// Edges that leave each node.
    pub fn degree(&self) -> u32 {
        self.level.graph.degree()
    }

    /// Equal chunks of one share.
    pub fn chunks_per_share(&self) -> u64 {
        self.level.chunks
    }

    /// Number of steps.
    pub fn step_count(&self) -> u32 {
        self.level.steps
    }

    /// No fewer transfers than [`each`](Self::each) hands out; `u128::MAX` for any number beyond.
    pub fn transfers_max(&self) -> u128 {
        self.level.transfers_max
    }

    /// The nodes from and to which an edge carries data.
    ///
    /// # Panics
    /// If `edge` is none of the graph, like any index.
    pub fn ends(&self, edge: u32) -> (u32, u32) {
        (self.level.graph.from(edge), self.level.graph.to(edge))
    }

    /// Hands out all transfers, in no order that means anything, but always the same.
    ///
    /// O(transfers · levels).
    pub fn each(&self, take: &mut dyn FnMut(Transfer)) {
        self.level.each(take);
    }

    /// What it costs, by adding up its transfers: exactly, and independently of any prediction. `None` where that does not
    /// fit 128 bits.
    pub fn cost(&self) -> Option<Cost> {
        let edges = self.level.graph.edge_count();
        let mut loads = vec![0_u64; edges * self.step_count() as usize];
        self.each(&mut |transfer| {
            let at = transfer.step as usize * edges + transfer.edge as usize;
            loads[at] += transfer.chunks.end - transfer.chunks.start;
        });
        let steps = self.step_count();
        let most: u128 =
            loads.chunks(edges.max(1)).map(|step| u128::from(step.iter().copied().max().unwrap_or(0))).sum();
        let chunks = u128::from(self.order()).checked_mul(self.chunks_per_share().into())?;
        let bandwidth = Fraction::new(most.checked_mul(self.degree().into())?, chunks)?;
        Some(Cost { steps, bandwidth })
    }
}
