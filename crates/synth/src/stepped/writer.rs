//! Sends of one chunk each, in the making.

use canopy_schedule::{Action, Carrier, Pace, RouteIndex, RouteInterner, Send, Steps};
use canopy_topology::Rank;

/// A table of sends.
pub(super) struct Writer {
    chunks_per_share: u64,
    pub(super) routes: RouteInterner,
    carriers: Vec<Carrier>,
    sends: Vec<Send>,
}

impl Writer {
    /// None yet, of so many chunks for each share or block.
    pub(super) fn new(chunks_per_share: u64) -> Self {
        Self { chunks_per_share, routes: RouteInterner::default(), carriers: Vec::new(), sends: Vec::new() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.sends.len()
    }

    /// One more, no earlier than those before; there is room for it.
    pub(super) fn push(
        &mut self,
        (step, action): (u32, Action),
        (from, to): (Rank, Rank),
        route: RouteIndex,
        chunk: u64,
    ) {
        let first = u32::try_from(self.carriers.len()).expect("the limit of sends is below 2³²");
        self.carriers.push(Carrier { route, chunk_count: 1 });
        self.sends.push(Send { step, action, from, to, chunks: chunk..chunk + 1, carriers: first..first + 1 });
    }

    pub(super) fn finish(self) -> Steps {
        Steps {
            chunks_per_share: self.chunks_per_share,
            pace: Pace::Barriers,
            routes: self.routes.finish(),
            carriers: self.carriers,
            sends: self.sends,
        }
    }
}
