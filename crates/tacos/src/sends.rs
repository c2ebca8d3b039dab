//! Schedules in time.

use std::collections::BTreeMap;

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

/// All sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sends {
    /// By start.
    pub sends: Vec<Sent>,
    /// Arrival of the last chunk, in ticks.
    pub end: u64,
}

impl Sends {
    /// The same on the network turned around, backwards: what brought each member all chunks adds them up at their owners. What starts at the
    /// same time is in the opposite order, links of the least latency first.
    ///
    /// O(sends · log latencies): those over links of one latency are in order as they are.
    #[must_use]
    pub fn reversed(&self, network: &TimedNetwork) -> Self {
        let turned = |sent: &Sent| Sent { start: self.end - sent.start - network.link(sent.link).latency, ..*sent };
        let mut by_latency: BTreeMap<u64, Vec<Sent>> = BTreeMap::new();
        for sent in self.sends.iter().rev() {
            by_latency.entry(network.link(sent.link).latency).or_default().push(turned(sent));
        }
        let mut sends = Vec::with_capacity(self.sends.len());
        by_latency.into_values().for_each(|alike| sends.extend(alike));
        // Stable, and fast where there are long runs.
        sends.sort_by_key(|sent| sent.start);
        Self { sends, end: self.end }
    }
}
