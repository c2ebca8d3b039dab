//! Repairs sends of another network for this one.
//!
//! What can still be sent when it was to be stays as it is: its link is there and free, and its sender has the chunk by then. All
//! else is dropped, with what hangs on it, and brought by the greedy engine in the time that links have left (`copies`). Sums are mended as
//! the copies that they are backwards on the network turned around. Chunks that go to one node each have ways instead (`delivery`).

mod delivery;

use canopy_optimize::Stop;

use crate::copies::{CopyError, END_MAX, Preference, copy_around};
use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};
use crate::task::CopyTask;

pub use delivery::mend_delivery;

/// When a node gets what it is never sent.
const NEVER: u64 = u64::MAX;
/// Sends between two questions whether to stop.
const STRIDE: usize = 1 << 14;

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// All that is sent.
    pub sends: Sends,
    /// The number of unchanged sends.
    pub kept: usize,
}

/// Sends that bring every chunk to every member, as many of these as can be at the times that they have.
///
/// * **In.** `known`: in any order; names of links and chunks that there are not, chunks that are sent to a node twice or that their
///   sender does not have do no harm: they are dropped. **Out.** The same for the same seed, accepted by [`judge`](crate::judge()).
/// * **Source.** Our own.
/// * **Errors.** [`CopyError`]: other sizes, members that cannot be reached, stopped.
/// * **Cost.** O(sends · log sends), 8 bytes for each chunk of each node, and that of [`copy_all`](crate::copy_all) for what is dropped.
pub fn mend(
    network: &TimedNetwork,
    task: &CopyTask,
    mut known: Vec<Sent>,
    seed: u64,
    preference: Preference,
    stop: &dyn Stop,
) -> Result<Mended, CopyError> {
    let sizes = (task.node_count(), network.node_count());
    if sizes.0 != sizes.1 as usize {
        return Err(CopyError::Sizes { task: sizes.0, network: sizes.1, group: sizes.0 });
    }
    known.sort_unstable();
    keep_possible(network, task, &mut known, stop)?;
    let sends = copy_around(network, task, &known, seed, preference, stop)?;
    let kept = match task.is_for_all() {
        true => known.len(),
        false => known.iter().filter(|sent| sends.sends.binary_search(sent).is_ok()).count(),
    };
    Ok(Mended { sends, kept })
}

/// Drops what cannot be sent at its time. In order of starts, since what is dropped takes what hangs on it along.
fn keep_possible(
    network: &TimedNetwork,
    task: &CopyTask,
    known: &mut Vec<Sent>,
    stop: &dyn Stop,
) -> Result<(), CopyError> {
    let chunk_count = task.chunk_count();
    let place = |node: u32, chunk: u32| node as usize * chunk_count as usize + chunk as usize;
    let mut arrivals = vec![NEVER; place(network.node_count(), 0)];
    for (chunk, &owner) in (0..).zip(task.owners()) {
        arrivals[place(owner, chunk)] = 0;
    }
    let mut busy = vec![0; network.links().len()];
    let mut possible = Vec::with_capacity(known.len());
    for sends in known.chunks(STRIDE) {
        if stop.is_requested() {
            return Err(CopyError::Stopped);
        }
        for &sent in sends.iter().filter(|sent| sent.chunk < chunk_count && sent.start < END_MAX) {
            let Some(link) = network.links().get(sent.link as usize) else { continue };
            let is_there = arrivals[place(link.from, sent.chunk)] <= sent.start;
            let arrival = &mut arrivals[place(link.to, sent.chunk)];
            if is_there && *arrival == NEVER && busy[sent.link as usize] <= sent.start {
                *arrival = sent.start + link.latency;
                busy[sent.link as usize] = sent.start + link.occupancy;
                possible.push(sent);
            }
        }
    }
    *known = possible;
    Ok(())
}
