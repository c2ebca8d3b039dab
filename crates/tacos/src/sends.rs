//! What a schedule in time is.

use rayon::slice::ParallelSliceMut as _;

use crate::network::TimedNetwork;

/// One chunk on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sent {
    /// Ticks after the beginning.
    pub start: u64,
    /// The link.
    pub link: u32,
    /// The chunk.
    pub chunk: u32,
}

/// All that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sends {
    /// By start.
    pub sends: Vec<Sent>,
    /// When the last chunk is where it is wanted, in ticks.
    pub end: u64,
}

impl Sends {
    /// The same over other links: by link, the one in its place. O(sends).
    ///
    /// # Panics
    /// Where a link has none.
    #[must_use]
    pub fn over(&self, images: &[u32]) -> Self {
        let moved = |sent: &Sent| Sent { link: images[sent.link as usize], ..*sent };
        Self { sends: self.sends.iter().map(moved).collect(), end: self.end }
    }

    /// The same on the network turned around, backwards: what brought each member all chunks adds them up at their owners.
    #[must_use]
    pub fn reversed(&self, network: &TimedNetwork) -> Self {
        let turned = |sent: &Sent| Sent { start: self.end - sent.start - network.link(sent.link).latency, ..*sent };
        let mut sends: Vec<Sent> = self.sends.iter().map(turned).collect();
        sends.par_sort_unstable_by_key(|sent| {
            u128::from(sent.start) << 64 | u128::from(sent.link) << 32 | u128::from(sent.chunk)
        });
        Self { sends, end: self.end }
    }
}
