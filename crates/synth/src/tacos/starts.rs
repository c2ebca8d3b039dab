//! When the sends of a schedule in steps begin, where nothing is broken.

use canopy_optimize::Stop;
use canopy_schedule::{Action, Pace, Steps};
use canopy_tacos::{CopyTask, Sent, TimedLink, TimedNetwork};

use crate::error::SynthesisError;
use crate::reach::ask;

/// When a rank gets what it is never sent.
const NEVER: u64 = u64::MAX;

/// A chunk over a route, in a step.
pub(super) struct Ordered {
    pub(super) step: u32,
    pub(super) route: u32,
    pub(super) chunk: u32,
}

/// What is copied or, backwards, added up, chunk by chunk in the order of steps. O(chunks sent).
pub(super) fn ordered(steps: &Steps, action: Action) -> Vec<Ordered> {
    let mut ordered = Vec::with_capacity(steps.sends.len());
    for send in steps.sends.iter().filter(|send| send.action == action) {
        let mut chunks = send.chunks.clone();
        for carrier in steps.carriers_of(send) {
            let carried = chunks.start..chunks.start.saturating_add(carrier.chunk_count).min(chunks.end);
            chunks.start = carried.end;
            // There are fewer chunks than that: what is beyond is nonsense.
            let carried = carried.map_while(|chunk| u32::try_from(chunk).ok());
            ordered.extend(carried.map(|chunk| Ordered { step: send.step, route: carrier.route.number(), chunk }));
        }
    }
    if action == Action::Reduce {
        ordered.reverse();
    }
    ordered
}

/// Where chunks are, and since when.
pub(super) trait ChunkLocations {
    /// Since when the sender has what a link is to bring a receiver who lacks it; none where that is not so.
    fn since(&self, link: TimedLink, chunk: u32) -> Option<u64>;

    /// It will be there at this time.
    fn arrives(&mut self, link: TimedLink, chunk: u32, time: u64);
}

/// Of chunks that all are to have: 8 bytes for each of each rank.
pub(super) struct Copies {
    chunk_count: u32,
    arrivals: Vec<u64>,
}

impl Copies {
    pub(super) fn new(task: &CopyTask) -> Self {
        let chunk_count = task.chunk_count();
        let mut copies = Self { chunk_count, arrivals: vec![NEVER; task.node_count() * chunk_count as usize] };
        for (chunk, &owner) in (0..).zip(task.owners()) {
            let place = copies.place(owner, chunk);
            copies.arrivals[place] = 0;
        }
        copies
    }

    const fn place(&self, node: u32, chunk: u32) -> usize {
        node as usize * self.chunk_count as usize + chunk as usize
    }
}

impl ChunkLocations for Copies {
    fn since(&self, link: TimedLink, chunk: u32) -> Option<u64> {
        if chunk >= self.chunk_count || self.arrivals[self.place(link.to, chunk)] != NEVER {
            return None;
        }
        Some(self.arrivals[self.place(link.from, chunk)]).filter(|&since| since != NEVER)
    }

    fn arrives(&mut self, link: TimedLink, chunk: u32, time: u64) {
        let place = self.place(link.to, chunk);
        self.arrivals[place] = time;
    }
}

/// Of chunks for one rank each: by chunk, the rank that has it and since when; none where there is no such chunk.
pub(super) struct Deliveries(pub(super) Vec<Option<(u32, u64)>>);

impl ChunkLocations for Deliveries {
    fn since(&self, link: TimedLink, chunk: u32) -> Option<u64> {
        let (rank, since) = (*self.0.get(chunk as usize)?)?;
        (rank == link.from).then_some(since)
    }

    fn arrives(&mut self, link: TimedLink, chunk: u32, time: u64) {
        self.0[chunk as usize] = Some((link.to, time));
    }
}

/// When each of these begins that brings a rank what it lacks: with barriers not before all of the steps before it are over, and otherwise as
/// soon as its link has sent what comes before it and its sender has the chunk.
///
/// * **In.** Links with the numbers of routes. **Errors.** Stopped. **Cost.** O(sends).
pub(super) fn starts(
    network: &TimedNetwork,
    mut chunks: impl ChunkLocations,
    pace: Pace,
    ordered: &[Ordered],
    stop: &dyn Stop,
) -> Result<Vec<Sent>, SynthesisError> {
    let mut busy_until = vec![0_u64; network.links().len()];
    let (mut end, mut begin) = (0_u64, 0);
    let mut sends = Vec::with_capacity(ordered.len());
    for step in ordered.chunk_by(|a, b| a.step == b.step) {
        ask(stop)?;
        if pace == Pace::Barriers {
            begin = end;
        }
        for &Ordered { route, chunk, .. } in step {
            let Some(&link) = network.links().get(route as usize) else { continue };
            let Some(since) = chunks.since(link, chunk) else { continue };
            let start = since.max(begin).max(busy_until[route as usize]);
            busy_until[route as usize] = start.saturating_add(link.occupancy);
            let arrival = start.saturating_add(link.latency);
            chunks.arrives(link, chunk, arrival);
            end = end.max(arrival);
            sends.push(Sent { start, link: route, chunk });
        }
    }
    Ok(sends)
}
