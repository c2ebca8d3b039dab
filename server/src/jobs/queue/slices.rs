//! Slices of questions: those in line here, and those that wait in the table of all servers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Queue;
use super::lines::Lines;
use super::turns::EXPECTED;
use crate::failure::PlanFailure;
use crate::jobs::slices::{Slice, SliceOutcome};
use crate::jobs::table::JobTable;
use crate::store::StoreError;

/// Most questions whose slices are being answered.
const QUESTIONS_MAX: usize = 64;

impl Queue {
    /// Makes room for a question, which holds so many bytes until [`Queue::drop_question`].
    ///
    /// # Errors
    /// The server stops, or too much waits.
    pub(crate) fn admit_question(&self, bytes: usize) -> Result<(), PlanFailure> {
        let mut lines = self.shared.lines.lock();
        if !lines.open {
            return Err(PlanFailure::Draining);
        }
        if lines.slices.questions >= QUESTIONS_MAX {
            return Err(PlanFailure::QueueFull { waiting: lines.slices.questions, limit: QUESTIONS_MAX });
        }
        let (held, limit) = (lines.held_bytes, self.shared.limits.bytes_max);
        if held > 0 && held.saturating_add(bytes) > limit {
            return Err(PlanFailure::QueueBudget { held, found: bytes, limit });
        }
        lines.held_bytes += bytes;
        lines.slices.questions += 1;
        Ok(())
    }

    /// Has workers of this server answer these slices.
    ///
    /// # Errors
    /// The server stops.
    pub(crate) fn line_up(&self, slices: &[Arc<Slice>]) -> Result<(), PlanFailure> {
        let mut lines = self.shared.lines.lock();
        if !lines.open {
            return Err(PlanFailure::Draining);
        }
        for slice in slices {
            lines.slices.line.entry(slice.tenant().to_owned()).or_default().push_back(Arc::clone(slice));
        }
        self.shared.planning_ready.notify_all();
        Ok(())
    }

    /// Has a worker of some server answer a slice.
    ///
    /// # Errors
    /// The server stops, or the database failed.
    pub(crate) fn enter_slice(&self, table: &JobTable, slice: &Arc<Slice>) -> Result<(), PlanFailure> {
        if !self.shared.lines.lock().open {
            return Err(PlanFailure::Draining);
        }
        let _entering = table.entering();
        let number = table.enter_slice(slice)?;
        let mut lines = self.shared.lines.lock();
        if slice.is_dropped() || lines.sharing.is_aborted() {
            lines.sharing.leave(vec![(number, false)]);
            return if slice.is_dropped() { Ok(()) } else { Err(PlanFailure::Draining) };
        }
        lines.slices.awaited.entry(number).or_default().push(Arc::clone(slice));
        self.note_shared_news(&mut lines);
        Ok(())
    }

    /// Enters those slices into the table again whose jobs have gone.
    pub(super) fn enter_slices_again(&self, table: &JobTable) -> Result<(), StoreError> {
        loop {
            let Some(slice) = self.shared.lines.lock().slices.again.pop() else { return Ok(()) };
            if slice.is_dropped() {
                continue;
            }
            match self.enter_slice(table, &slice) {
                Ok(()) => {}
                Err(PlanFailure::Jobs(error)) => {
                    self.shared.lines.lock().slices.again.push(slice);
                    return Err(error);
                }
                Err(failure) => slice.settle(Err(Arc::new(failure))),
            }
        }
    }

    /// Nobody waits for a question any more, nor for its slices.
    pub(crate) fn drop_question(&self, bytes: usize, slices: &[Arc<Slice>]) {
        slices.iter().for_each(|slice| slice.drop_it());
        let mut lines = self.shared.lines.lock();
        lines.held_bytes -= bytes;
        lines.slices.questions -= 1;
        let is_wanted = |slice: &Arc<Slice>| !slice.is_dropped();
        lines.slices.line.retain(|_, line| {
            line.retain(is_wanted);
            !line.is_empty()
        });
        lines.slices.again.retain(is_wanted);
        let mut left = Vec::new();
        lines.slices.awaited.retain(|number, waiting| {
            waiting.retain(is_wanted);
            if waiting.is_empty() {
                left.push((*number, false));
            }
            !waiting.is_empty()
        });
        lines.sharing.leave(left);
        self.wake_planners(&lines);
    }

    /// A slice for a planner of this server, if there is memory for it: of the tenant that had least.
    pub(super) fn take_slice(&self, lines: &mut Lines) -> Option<Arc<Slice>> {
        let turns = &lines.turns;
        let (tenant, line) = lines.slices.line.iter().min_by_key(|(tenant, _)| turns.of(tenant))?;
        let (tenant, needed) = (tenant.clone(), line.front()?.memory_bytes);
        let is_room = lines.planning_bytes.saturating_add(needed) <= self.shared.limits.memory_bytes_max;
        if lines.planning_bytes > 0 && !is_room {
            return None;
        }
        lines.planning_bytes = lines.planning_bytes.saturating_add(needed);
        let line = lines.slices.line.get_mut(&tenant)?;
        let slice = line.pop_front()?;
        if line.is_empty() {
            lines.slices.line.remove(&tenant);
        }
        lines.turns.begin(&tenant, slice.weight(), EXPECTED);
        Some(slice)
    }

    /// The memory of a slice from this server's line is free again: its worker is done with it after this time.
    pub(crate) fn vacate_slice(&self, slice: &Slice, took: Duration) {
        let mut lines = self.shared.lines.lock();
        lines.turns.end(slice.tenant(), slice.weight(), EXPECTED, took);
        lines.planning_bytes = lines.planning_bytes.saturating_sub(slice.memory_bytes);
        self.shared.planning_ready.notify_all();
    }

    /// This server answers a slice of all servers; returns what stops it.
    pub(crate) fn begin_slice(&self, number: i64) -> Arc<AtomicBool> {
        let mut lines = self.shared.lines.lock();
        let stop = Arc::new(AtomicBool::new(lines.sharing.is_aborted()));
        lines.slices.making.insert(number, Arc::clone(&stop));
        stop
    }

    /// Whether callers here wait for a slice by this job.
    pub(crate) fn awaits_slice(&self, number: i64) -> bool {
        self.shared.lines.lock().slices.awaits(number)
    }

    /// Gives callers here the outcome of a slice by its job.
    pub(crate) fn settle_slices(&self, number: i64, outcome: &SliceOutcome) {
        let waiting = {
            let mut lines = self.shared.lines.lock();
            let waiting = lines.slices.awaited.remove(&number).unwrap_or_default();
            self.wake_planners(&lines);
            waiting
        };
        waiting.iter().for_each(|slice| slice.settle(outcome.clone()));
    }
}
