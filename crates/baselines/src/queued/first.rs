//! Of all messages, the passages from rank to rank that bring a chunk first.

use std::collections::BTreeMap;

use canopy_synth::SynthesisError;
use canopy_synth::components::{Heading, Unwound, UnwoundLink, require_room};
use canopy_tacos::{Sends, Sent};
use canopy_topology::{LinkIndex, Topology};

use super::{Model, Run};

/// The ways from rank to rank that are taken, of all phases.
pub(super) struct FirstArrivals<'a> {
    topology: &'a Topology,
    known: BTreeMap<Vec<LinkIndex>, u32>,
    links: Vec<UnwoundLink>,
}

/// A passage of a chunk to a rank; in order, the first to arrive stands first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Passage {
    chunk: u64,
    receiver: u32,
    arrival: u64,
    start: u64,
    way: u32,
}

impl<'a> FirstArrivals<'a> {
    pub(super) const fn new(topology: &'a Topology) -> Self {
        Self { topology, known: BTreeMap::new(), links: Vec::new() }
    }

    /// What brings each rank each chunk first, on the network as it is: of sums backwards.
    ///
    /// Whoever sends a chunk has got it by then, by the same message or by one before.
    pub(super) fn sends(&mut self, model: &Model<'_>, run: &Run, heading: Heading) -> Result<Sends, SynthesisError> {
        let mut passages: Vec<Passage> = Vec::new();
        for ((message, &chunk), starts) in run.messages.iter().zip(&run.chunks).zip(&run.starts) {
            let mut begin = 0;
            for (place, &link) in message.path.iter().enumerate() {
                let ends = self.topology.link(LinkIndex::new(link));
                let end = if heading == Heading::Along { ends.to } else { ends.from };
                let (Some(receiver), Some(&last)) = (self.topology.rank_of(end), starts.get(place)) else { continue };
                let route = &message.path[begin..=place];
                let (arrival, start) = (last + model.links[link as usize].latency, starts[begin]);
                begin = place + 1;
                if !model.has_it(receiver, chunk) {
                    let way = self.way(route, heading)?;
                    passages.push(Passage { chunk, receiver: receiver.number(), arrival, start, way });
                }
            }
        }
        passages.sort_unstable();
        passages.dedup_by_key(|passage| (passage.chunk, passage.receiver));
        require_room(passages.len() as u64)?;
        let end = passages.iter().map(|passage| passage.arrival).max().unwrap_or(0);
        let sent = |&Passage { chunk, arrival, start, way, .. }: &Passage| Sent {
            start: if heading == Heading::Along { start } else { end - arrival },
            link: way,
            chunk: u32::try_from(chunk).expect("chunks that are too many were refused"),
        };
        let mut sends: Vec<Sent> = passages.iter().map(sent).collect();
        sends.sort_unstable();
        Ok(Sends { sends, end })
    }

    /// The number of a way, given in the direction that messages take.
    fn way(&mut self, route: &[u32], heading: Heading) -> Result<u32, SynthesisError> {
        let mut route: Vec<LinkIndex> = route.iter().copied().map(LinkIndex::new).collect();
        if heading == Heading::Against {
            route.reverse();
        }
        if let Some(&known) = self.known.get(&route) {
            return Ok(known);
        }
        let rank = |node| self.topology.rank_of(node);
        let from = route.first().and_then(|&link| rank(self.topology.link(link).from));
        let to = route.last().and_then(|&link| rank(self.topology.link(link).to));
        let (Some(from), Some(to)) = (from, to) else {
            return Err(SynthesisError::Broken { what: format!("a way that does not join ranks: {route:?}") });
        };
        let number = u32::try_from(self.links.len()).expect("there is room for fewer than 2³² hops");
        self.links.push(UnwoundLink { from, to, route: route.clone(), capacity: 1, parts: 1, latency_ns: 0 });
        self.known.insert(route, number);
        Ok(number)
    }

    /// All ways.
    pub(super) fn finish(self) -> Unwound {
        Unwound { rank_count: self.topology.rank_count(), links: self.links }
    }
}
