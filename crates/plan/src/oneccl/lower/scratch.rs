//! Chunks of scratch, used again once nobody reads them.

use std::collections::BTreeSet;

/// The scratch buffer of one rank.
#[derive(Default)]
pub(super) struct Scratch {
    free: BTreeSet<u32>,
    /// Chunks there are.
    pub(super) count: u32,
}

impl Scratch {
    /// The first chunk that is free, so that chunks taken one after the other lie in a row where they can.
    pub(super) fn take(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// Gives a chunk back.
    pub(super) fn give(&mut self, chunk: u32) {
        self.free.insert(chunk);
    }
}
