//! Lowers `maxBytes` where larger messages would go wrong.

use super::Change;
use crate::msccl::profile::Profile;
use crate::msccl::program::Program;
use crate::msccl::prove::{Largest, largest_without_deadlock};

/// Why a bound for queues is what it is.
const QUEUES: &str = "larger messages need more slots than the queues have, and deadlock";
/// Why a bound for rounds is what it is.
const ROUNDS: &str = "the runtime cannot count more rounds over a chunk";

/// States the largest message that the runtime can count the rounds of and that cannot deadlock, where the file admits a
/// larger one. What no bound helps stays, for the proof to name.
pub(super) fn lower(program: &mut Program, to: Profile, changes: &mut Vec<Change>) {
    let limits = to.limits();
    let transfer = limits.queue(program.protocol).transfer_bytes;
    let counted = transfer.saturating_mul(limits.rounds).saturating_mul(u64::from(program.chunk_count));
    // A file without any bound is for messages whose rounds nobody counts: how large they get is the caller's business.
    if to.bytes_max_of(program.bytes_max).is_some_and(|stated| stated > counted) {
        state(program, to, counted, ROUNDS, changes);
    }
    if let Largest::Bytes(bytes) = largest_without_deadlock(program, to) {
        state(program, to, bytes, QUEUES, changes);
    }
}

fn state(program: &mut Program, to: Profile, bytes: u64, reason: &'static str, changes: &mut Vec<Change>) {
    let is_empty = bytes < program.bytes_min.unwrap_or(0).max(1);
    let Some(attribute) = to.bytes_max_attribute(bytes).filter(|_| !is_empty) else { return };
    let value = attribute.to_string();
    changes.push(match program.bytes_max.replace(attribute) {
        Some(old) => Change::Changed { attribute: "maxBytes", from: old.to_string(), to: value, reason },
        None => Change::Added { attribute: "maxBytes", value, reason },
    });
}
