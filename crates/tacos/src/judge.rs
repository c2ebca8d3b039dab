//! Checks sends independently of the engines.

use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};
use crate::task::CopyTask;

/// When a node gets what it is never sent.
const NEVER: u64 = u64::MAX;

/// Errors of sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum Fault {
    #[error("send {send} names link {link} and chunk {chunk}, one of which does not exist")]
    Unknown { send: usize, link: u32, chunk: u32 },
    #[error("send {send} starts at {start}, before the preceding one at {before}")]
    Order { send: usize, start: u64, before: u64 },
    #[error("send {send} starts at {start}, before node {node} has chunk {chunk}")]
    Early { send: usize, start: u64, node: u32, chunk: u32 },
    #[error("send {send} starts at {start} on link {link}, which is busy until {until}")]
    Busy { send: usize, start: u64, link: u32, until: u64 },
    #[error("send {send} brings node {node} chunk {chunk}, which it already has or is being sent")]
    Twice { send: usize, node: u32, chunk: u32 },
    #[error("node {node} never gets chunk {chunk}")]
    Missing { node: u32, chunk: u32 },
    #[error("the last chunk arrives at {found}, not at {stated}")]
    End { found: u64, stated: u64 },
}

/// Judges sends: in order, each of a chunk that its sender has, on a link that is free, each chunk to each node once, all
/// chunks to all members, and the end as stated.
///
/// # Errors
/// [`Fault`], the first. O(nodes · chunks + sends) time, 8 bytes for each chunk of each node.
pub fn judge(network: &TimedNetwork, task: &CopyTask, sends: &Sends) -> Result<(), Fault> {
    let chunk_count = task.chunk_count();
    let place = |node: u32, chunk: u32| node as usize * chunk_count as usize + chunk as usize;
    let mut arrivals = vec![NEVER; place(network.node_count(), 0)];
    for (chunk, &owner) in (0..).zip(task.owners()) {
        arrivals[place(owner, chunk)] = 0;
    }
    let mut busy = vec![0; network.links().len()];
    let (mut before, mut found) = (0, 0);
    for (send, &Sent { start, link, chunk }) in sends.sends.iter().enumerate() {
        let known = network.links().get(link as usize).filter(|_| chunk < chunk_count);
        let known = known.ok_or(Fault::Unknown { send, link, chunk })?;
        if start < before {
            return Err(Fault::Order { send, start, before });
        }
        before = start;
        if arrivals[place(known.from, chunk)] > start {
            return Err(Fault::Early { send, start, node: known.from, chunk });
        }
        let until = busy[link as usize];
        if until > start {
            return Err(Fault::Busy { send, start, link, until });
        }
        busy[link as usize] = start + known.occupancy;
        let arrival = start + known.latency;
        if std::mem::replace(&mut arrivals[place(known.to, chunk)], arrival) != NEVER {
            return Err(Fault::Twice { send, node: known.to, chunk });
        }
        found = found.max(arrival);
    }
    let members = (0..network.node_count()).filter(|&node| task.is_member(node));
    for node in members {
        if let Some(chunk) = (0..chunk_count).find(|&chunk| arrivals[place(node, chunk)] == NEVER) {
            return Err(Fault::Missing { node, chunk });
        }
    }
    if found != sends.end {
        return Err(Fault::End { found, stated: sends.end });
    }
    Ok(())
}
