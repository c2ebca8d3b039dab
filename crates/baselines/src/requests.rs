//! The published greedy method, as a baseline: at every moment all open requests in random order, each served over the
//! fastest free link whose sender has the chunk.
//!
//! Source: Won et al., section 4, with shorter links first, the analysis of arrival times, and the replacement of chunks that a
//! faster link brings sooner. It serves those that want a chunk only, so that in a group some may never be reached.

use std::collections::BTreeSet;

use canopy_optimize::Stop;
use canopy_tacos::{Attempt, Attempts, Chance, CopyError, CopyTask, Sends, Sent, TimedLink, TimedNetwork};

/// When a node has what it is not even sent.
const NEVER: u64 = u64::MAX;
/// Stands for no transfer.
const NONE: u32 = u32::MAX;

/// Sends that bring every chunk to every member, by requests in random order.
///
/// * **Errors.** [`CopyError`]; a member that only others than members could reach counts as unreachable.
/// * **Cost.** O(requests · in-degree) for every moment at which anything arrives or a link becomes free; 12 bytes for each chunk of each
///   node.
pub fn copy_by_requests(
    network: &TimedNetwork,
    task: &CopyTask,
    seed: u64,
    stop: &dyn Stop,
) -> Result<Sends, CopyError> {
    let (nodes, chunks) = (network.node_count(), task.chunk_count());
    if task.node_count() != nodes as usize {
        return Err(CopyError::Sizes { task: task.node_count(), network: nodes, group: task.node_count() });
    }
    let mut state = TransferState {
        network,
        chunks,
        chance: Chance::new(seed),
        arrival: vec![NEVER; nodes as usize * chunks as usize],
        bringer: vec![NONE; nodes as usize * chunks as usize],
        busy_until: vec![0; network.links().len()],
        transfers: Vec::new(),
        moments: BTreeSet::from([0]),
    };
    for (chunk, &owner) in (0..).zip(task.owners()) {
        let place = state.place(owner, chunk);
        state.arrival[place] = 0;
    }
    let members = (0..nodes).filter(|&node| task.is_member(node));
    let mut open: Vec<(u32, u32)> = members.flat_map(|node| (0..chunks).map(move |chunk| (node, chunk))).collect();
    while let Some(now) = state.moments.pop_first() {
        open.retain(|&(node, chunk)| state.arrival[state.place(node, chunk)] > now);
        if open.is_empty() {
            return Ok(state.finish());
        }
        state.chance.shuffle(&mut open);
        for &(node, chunk) in &open {
            state.serve(node, chunk, now);
        }
        if stop.is_requested() {
            return Err(CopyError::Stopped);
        }
    }
    let (node, chunk) = open.first().copied().unwrap_or_default();
    Err(CopyError::Unreachable { node, chunk, owner: task.owners()[chunk as usize] })
}

/// The best of some attempts by requests.
///
/// * **Source.** Won et al., section 4. **Errors.** Those of [`copy_by_requests`] in the first attempt.
/// * **Cost.** That of [`copy_by_requests`] for each attempt. The result does not depend on the number of threads.
pub(crate) fn best_by_requests(
    network: &TimedNetwork,
    task: &CopyTask,
    attempts: Attempts,
    stop: &dyn Stop,
) -> Result<Attempt, CopyError> {
    attempts.best(|_, seed| copy_by_requests(network, task, seed, stop))
}

/// What is where, and under way.
struct TransferState<'a> {
    network: &'a TimedNetwork,
    chunks: u32,
    chance: Chance,
    /// By node and chunk: when it is there.
    arrival: Vec<u64>,
    /// By node and chunk: the transfer that brings it.
    bringer: Vec<u32>,
    busy_until: Vec<u64>,
    /// All transfers; none in place of those that nothing was left for.
    transfers: Vec<Option<Sent>>,
    /// When something arrives or a link becomes free.
    moments: BTreeSet<u64>,
}

impl TransferState<'_> {
    const fn place(&self, node: u32, chunk: u32) -> usize {
        node as usize * self.chunks as usize + chunk as usize
    }

    /// Starts a transfer for a request, if a free link brings the chunk sooner than what is under way.
    fn serve(&mut self, node: u32, chunk: u32, now: u64) {
        let place = self.place(node, chunk);
        let mut best: Option<(u64, u64, u32)> = None;
        for &link in self.network.incoming(node) {
            let timed = self.network.link(link);
            let has_it = self.arrival[self.place(timed.from, chunk)] <= now;
            if self.busy_until[link as usize] > now || !has_it || now + timed.latency >= self.arrival[place] {
                continue;
            }
            let found = (timed.latency, self.chance.next(), link);
            best = Some(best.map_or(found, |best| best.min(found)));
        }
        let Some((latency, _, link)) = best else { return };
        let outdated = self.bringer[place];
        self.arrival[place] = now + latency;
        self.bringer[place] = number(self.transfers.len());
        self.transfers.push(Some(Sent { start: now, link, chunk }));
        self.busy_until[link as usize] = now + self.network.link(link).occupancy;
        self.moments.insert(now + latency);
        self.moments.insert(self.busy_until[link as usize]);
        if outdated != NONE {
            self.replace(outdated);
        }
    }

    /// Has a transfer whose chunk comes sooner by another link bring another chunk, if its sender had one at the start that
    /// its receiver is not sent.
    fn replace(&mut self, transfer: u32) {
        let Some(Sent { start, link, .. }) = self.transfers[transfer as usize].take() else { return };
        let timed = self.network.link(link);
        let count = number(self.others(timed, start).count());
        if count == 0 {
            return;
        }
        let skipped = self.chance.below(count) as usize;
        let Some(chunk) = self.others(timed, start).nth(skipped) else { return };
        let place = self.place(timed.to, chunk);
        self.arrival[place] = start + timed.latency;
        self.bringer[place] = transfer;
        self.transfers[transfer as usize] = Some(Sent { start, link, chunk });
    }

    /// Chunks that the sender of a link had at a time, and its receiver is not sent.
    fn others(&self, link: TimedLink, start: u64) -> impl Iterator<Item = u32> + '_ {
        let fits = move |&chunk: &u32| {
            self.arrival[self.place(link.from, chunk)] <= start && self.arrival[self.place(link.to, chunk)] == NEVER
        };
        (0..self.chunks).filter(fits)
    }

    fn finish(self) -> Sends {
        let mut sends: Vec<Sent> = self.transfers.into_iter().flatten().collect();
        sends.sort_unstable();
        let end = sends.iter().map(|sent| sent.start + self.network.link(sent.link).latency).max().unwrap_or(0);
        Sends { sends, end }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("fewer transfers than places, and chunks are counted in u32")
}
