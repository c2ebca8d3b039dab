//! Sends that nobody needs.

use crate::bits::BitRows;
use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};
use crate::task::CopyTask;

/// Drops what is sent to nodes that are no members and pass it on to none.
pub(crate) fn pruned(network: &TimedNetwork, task: &CopyTask, mut sends: Vec<Sent>) -> Sends {
    if !task.is_for_all() {
        let mut is_passed_on = BitRows::new(task.node_count(), task.chunk_count());
        let mut kept: Vec<Sent> = Vec::with_capacity(sends.len());
        // Later sends first: whatever passes a chunk on does so after it has come.
        for sent in sends.into_iter().rev() {
            let link = network.link(sent.link);
            if task.is_member(link.to) || is_passed_on.contains(link.to, sent.chunk) {
                is_passed_on.insert(link.from, sent.chunk);
                kept.push(sent);
            }
        }
        kept.reverse();
        sends = kept;
    }
    let end = sends.iter().map(|sent| sent.start + network.link(sent.link).latency).max().unwrap_or(0);
    Sends { sends, end }
}
