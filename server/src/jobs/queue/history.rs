//! Ended operations that are still listed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::jobs::job::{Job, Operation};

/// Most operations kept.
pub(super) const LENGTH_MAX: usize = 1000;
/// Most bytes kept, roughly: certificates of large networks are long.
const BYTES_MAX: usize = 16 << 20;

/// The latest ended operations by number. The oldest make room.
#[derive(Debug, Default)]
pub(super) struct History {
    ended: BTreeMap<u64, Arc<Operation>>,
    bytes: usize,
}

impl History {
    /// Keeps what is to be known of a settled job.
    pub(super) fn push(&mut self, job: &Job) {
        let operation = job.describe();
        self.bytes += operation.weight_bytes();
        self.ended.insert(job.number, Arc::new(operation));
        while self.ended.len() > LENGTH_MAX || self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.ended.pop_first() else { break };
            self.bytes -= oldest.weight_bytes();
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<&Arc<Operation>> {
        self.ended.get(&number)
    }

    /// By number, rising.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Arc<Operation>)> {
        self.ended.iter().map(|(number, operation)| (*number, operation))
    }
}
