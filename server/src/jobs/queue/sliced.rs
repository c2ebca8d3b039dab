//! What the queue knows of slices of questions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::jobs::slices::Slice;

/// What the queue knows of slices.
#[derive(Default)]
pub(super) struct Slices {
    /// Those that workers of this server alone answer, by their tenants; none of these is empty.
    pub(super) line: BTreeMap<String, VecDeque<Arc<Slice>>>,
    /// Questions that callers here wait for.
    pub(super) questions: usize,
    /// Whether one goes before the jobs that wait for a planner: they take turns.
    pub(super) goes_first: bool,
    /// Those that callers here wait for, by their jobs in the table.
    pub(super) awaited: BTreeMap<i64, Vec<Arc<Slice>>>,
    /// Those whose jobs have gone: they are entered again.
    pub(super) again: Vec<Arc<Slice>>,
    /// What stops those that this server answers for all.
    pub(super) making: BTreeMap<i64, Arc<AtomicBool>>,
}

impl Slices {
    /// Whether it is the turn of a slice; the next time it is not.
    pub(super) fn take_turn(&mut self) -> bool {
        std::mem::replace(&mut self.goes_first, false)
    }

    /// A planner has begun with a job.
    pub(super) const fn give_turn(&mut self) {
        self.goes_first = true;
    }

    /// Whether callers here wait for any.
    pub(super) fn are_awaited(&self) -> bool {
        !self.line.is_empty() || !self.again.is_empty() || !self.awaited.is_empty()
    }

    pub(super) fn awaited(&self) -> impl Iterator<Item = i64> {
        self.awaited.keys().copied()
    }

    pub(super) fn awaits(&self, number: i64) -> bool {
        self.awaited.contains_key(&number)
    }

    /// Those whose jobs have gone, of one or of all.
    pub(super) fn enter_again(&mut self, of: Option<i64>) {
        match of {
            Some(number) => self.again.extend(self.awaited.remove(&number).unwrap_or_default()),
            None => self.again.extend(std::mem::take(&mut self.awaited).into_values().flatten()),
        }
    }

    pub(super) fn stop(&self, of: Option<&[i64]>) {
        let stopped = self.making.iter().filter(|(number, _)| of.is_none_or(|of| of.contains(number)));
        stopped.for_each(|(_, stop)| stop.store(true, Ordering::Relaxed));
    }

    /// This server answers a slice of all servers no more.
    pub(super) fn ended(&mut self, number: i64) {
        self.making.remove(&number);
    }

    /// Takes all that callers wait for.
    pub(super) fn take_all(&mut self) -> Vec<Arc<Slice>> {
        let mut all: Vec<_> = std::mem::take(&mut self.line).into_values().flatten().collect();
        all.append(&mut self.again);
        all.extend(std::mem::take(&mut self.awaited).into_values().flatten());
        all
    }
}
