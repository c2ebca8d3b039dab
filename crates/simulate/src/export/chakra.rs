//! Chakra execution traces: what each rank sends, receives and adds up, and in which order.
//!
//! A message is a node `send` at its sender and a node `receive` at its receiver, with a tag that no other message
//! between the two has, so it does not matter in which order they come. A reduction is a node `compute` of no duration
//! after the receive. What a message waits for is always at its own sender or receiver, so it becomes a dependency within
//! one rank's trace: data that it sends on, or a place that must have been read before it is written again.

use std::collections::HashMap;

use canopy_schedule::Action;
use canopy_topology::Rank;

use crate::Message;

/// A node of a rank's trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceNode {
    /// Its position in the trace; dependencies are smaller.
    pub id: u64,
    /// For people: what it is, of which transfer and piece.
    pub name: String,
    /// What it does.
    pub work: TraceWork,
    /// Nodes that have brought what it sends or adds up.
    pub data_deps: Vec<u64>,
    /// Nodes that must be done before it: they read what it writes, or send the piece before it.
    pub ctrl_deps: Vec<u64>,
}

/// What a node of a trace does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceWork {
    /// Sends bytes to a rank.
    Send {
        /// The receiver.
        to: Rank,
        /// Bytes of the message, ≥ 1.
        bytes: u64,
        /// Number of the message among those between the two ranks in this direction.
        tag: u32,
    },
    /// Receives bytes from a rank.
    Receive {
        /// The sender.
        from: Rank,
        /// Bytes of the message, ≥ 1.
        bytes: u64,
        /// Number of the message among those between the two ranks in this direction.
        tag: u32,
    },
    /// Adds received data to local data; takes no time.
    Compute,
}

/// Why traces cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TraceError {
    #[error("message {message} has 0 bytes, which a trace cannot express; use a larger size or larger pieces")]
    Empty { message: usize },
    #[error("message {message} has {bytes} bytes, over the limit of {limit}; use smaller pieces")]
    Bytes { message: usize, bytes: u64, limit: u64 },
    #[error("message {message} waits for message {before}, in which neither its sender nor its receiver takes part")]
    Remote { message: usize, before: u32 },
    #[error("message {message} waits for message {before}, which comes later; order messages along their dependencies")]
    Order { message: usize, before: u32 },
}

/// Most bytes of a message: sizes are signed there.
const BYTES_MAX: u64 = i64::MAX as u64;

/// The traces of all ranks, by rank.
///
/// * **In.** [Messages](crate::messages) of a run among `rank_count` ranks.
/// * **Errors.** Messages without bytes, and waits that no rank can see; the plans of this project's compilers have none of
///   these.
/// * **Cost.** O(messages + waits).
pub fn traces(rank_count: u32, messages: &[Message]) -> Result<Vec<Vec<TraceNode>>, TraceError> {
    let mut traces: Vec<Vec<TraceNode>> = vec![Vec::new(); rank_count as usize];
    // By message: the node that has sent it, and the one after which it is there.
    let (mut sent, mut there): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut tags: HashMap<(Rank, Rank), u32> = HashMap::new();
    for (number, message) in messages.iter().enumerate() {
        let &Message { from, to, bytes, .. } = message;
        if bytes == 0 {
            return Err(TraceError::Empty { message: number });
        }
        if bytes > BYTES_MAX {
            return Err(TraceError::Bytes { message: number, bytes, limit: BYTES_MAX });
        }
        let next = tags.entry((from, to)).or_default();
        let tag = *next;
        *next += 1;
        let (mut data, mut order, mut room) = (Vec::new(), Vec::new(), Vec::new());
        for &before in &message.after {
            let at = before as usize;
            let other =
                messages.get(at).filter(|_| at < number).ok_or(TraceError::Order { message: number, before })?;
            if other.to == from {
                data.push(there[at]);
            } else if other.from == to {
                room.push(sent[at]);
            } else if other.to == to {
                room.push(there[at]);
            } else if other.from == from {
                order.push(sent[at]);
            } else {
                return Err(TraceError::Remote { message: number, before });
            }
        }
        for &before in message.behind.iter().chain(&message.turn) {
            let sent = sent.get(before as usize).ok_or(TraceError::Order { message: number, before })?;
            order.push(*sent);
        }
        let (sender, receiver) = (from.number(), to.number());
        let place = format!("{sender} -> {receiver}, transfer {}, piece {}", message.transfer, message.piece);
        let name = |what: &str| format!("{what} {place}");
        let trace = &mut traces[from.index()];
        sent.push(push(trace, name("send"), TraceWork::Send { to, bytes, tag }, data, order));
        let trace = &mut traces[to.index()];
        let received = push(trace, name("receive"), TraceWork::Receive { from, bytes, tag }, Vec::new(), room);
        there.push(match message.action {
            Action::Copy => received,
            Action::Reduce => push(trace, name("reduce"), TraceWork::Compute, vec![received], Vec::new()),
        });
    }
    Ok(traces)
}

/// Appends a node; its id.
fn push(
    trace: &mut Vec<TraceNode>,
    name: String,
    work: TraceWork,
    mut data_deps: Vec<u64>,
    mut ctrl_deps: Vec<u64>,
) -> u64 {
    for deps in [&mut data_deps, &mut ctrl_deps] {
        deps.sort_unstable();
        deps.dedup();
    }
    let id = trace.len() as u64;
    trace.push(TraceNode { id, name, work, data_deps, ctrl_deps });
    id
}
