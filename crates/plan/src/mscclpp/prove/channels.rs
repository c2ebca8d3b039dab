//! Whether signals, waits, barriers and semaphores can be matched without running anything.

use std::collections::BTreeMap;

use crate::msccl::{Findings, Place};
use crate::mscclpp::machine::{Block, Machine, Role};

/// One end of a line or semaphore: the block that uses it, and how often.
#[derive(Clone, Copy, Default)]
struct End {
    block: Option<usize>,
    count: u64,
}

impl End {
    /// Counts a use; false if another block has used it before.
    fn count(&mut self, block: usize) -> bool {
        self.count += 1;
        *self.block.get_or_insert(block) == block
    }
}

/// One block signals and one waits on each line, with a meeting of threads between two uses; each line has as many
/// signals as waits; barriers have as many blocks as stated, each as often; semaphores end as they begin.
pub(super) fn check(machine: &Machine, findings: &mut Findings<'_>) {
    let mut uses = Uses::none(machine);
    for (number, block) in machine.blocks.iter().enumerate() {
        uses.count_block(number, block, findings);
        if findings.must_stop(block.events.len() as u64) {
            return;
        }
    }
    uses.check_lines(findings);
    uses.check_barriers(findings);
    uses.check_semaphores(findings);
}

/// Which block uses what it shares with other blocks, and how often.
struct Uses<'a> {
    machine: &'a Machine,
    /// By line: its signals and its waits.
    lines: Vec<[End; 2]>,
    /// By semaphore: its releases and its acquires.
    semaphores: Vec<[End; 2]>,
    /// By barrier: how often each block meets others there.
    meetings: Vec<BTreeMap<usize, u64>>,
}

impl<'a> Uses<'a> {
    fn none(machine: &'a Machine) -> Self {
        Self {
            machine,
            lines: vec![[End::default(); 2]; machine.lines.len()],
            semaphores: vec![[End::default(); 2]; machine.semaphores.len()],
            meetings: vec![BTreeMap::new(); machine.barriers.len()],
        }
    }

    /// Counts what a block uses, and reports what another block uses in the same way.
    fn count_block(&mut self, number: usize, block: &Block, findings: &mut Findings<'_>) {
        let mut since_sync: Vec<(bool, usize, usize)> = Vec::new();
        for (step, event) in block.events.iter().enumerate() {
            let place = block.place(step);
            match event.role {
                Role::Sync => since_sync.clear(),
                Role::Barrier(barrier) => {
                    since_sync.clear();
                    *self.meetings[barrier].entry(number).or_default() += 1;
                }
                Role::Acquire | Role::Release => {
                    let message = "another block uses this semaphore in the same way; give each block its own";
                    let end = usize::from(event.role == Role::Acquire);
                    for &semaphore in &event.semaphores {
                        if !self.semaphores[semaphore][end].count(number) {
                            findings.problem(place, message);
                        }
                    }
                }
                Role::Data => {}
                Role::Signal { .. } | Role::Wait { .. } | Role::Port { .. } => {
                    let message = "another block uses this channel in the same way; give each block its own";
                    let is_wait = matches!(event.role, Role::Wait { .. });
                    let counts = !matches!(event.role, Role::Port { signals: false, .. });
                    for (thread, &line) in event.lines.iter().enumerate() {
                        if counts && !self.lines[line][usize::from(is_wait)].count(number) {
                            findings.problem(place, message);
                        }
                        // What is at one position is done by one thread, in order.
                        let is_other = |&(was_wait, other, by): &(bool, usize, usize)| {
                            (was_wait, other) == (is_wait, line) && by != thread
                        };
                        if since_sync.iter().any(is_other) {
                            findings.problem(place, "uses a channel again without a nop in between; add one");
                        }
                        since_sync.push((is_wait, line, thread));
                    }
                }
            }
        }
    }

    fn check_lines(&self, findings: &mut Findings<'_>) {
        for (line, [signals, waits]) in self.machine.lines.iter().zip(&self.lines) {
            if signals.count != waits.count {
                let message = format!(
                    "a channel to rank {} has {} signals and {} waits; make the numbers equal",
                    line.to, signals.count, waits.count
                );
                findings.problem(Place::rank(line.from), message);
            }
        }
    }

    fn check_barriers(&self, findings: &mut Findings<'_>) {
        for (barrier, meetings) in self.machine.barriers.iter().zip(&self.meetings) {
            let mut times = meetings.values();
            let first = times.next();
            if meetings.len() != barrier.stated as usize || times.any(|count| Some(count) != first) {
                let message = format!(
                    "{} blocks use barrier {}, not all {} equally often",
                    meetings.len(),
                    barrier.id,
                    barrier.stated
                );
                findings.problem(Place::rank(barrier.rank), message);
            }
        }
    }

    fn check_semaphores(&self, findings: &mut Findings<'_>) {
        for [releases, acquires] in &self.semaphores {
            if releases.count != acquires.count {
                let place = releases.block.or(acquires.block).and_then(|block| self.machine.blocks.get(block));
                let message = format!(
                    "a semaphore is released {} times but acquired {} times, so the next launch would find it changed",
                    releases.count, acquires.count
                );
                findings.problem(place.map_or(Place::FILE, |block| Place::block(block.rank, block.id)), message);
            }
        }
    }
}
