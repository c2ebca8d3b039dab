//! Whether signals, waits, barriers and semaphores can be matched without running anything.

use std::collections::BTreeMap;

use crate::msccl::{Findings, Place};
use crate::mscclpp::machine::{Machine, Role};

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
    let mut lines = vec![[End::default(); 2]; machine.lines.len()];
    let mut semaphores = vec![[End::default(); 2]; machine.semaphores.len()];
    let mut meetings: Vec<BTreeMap<usize, u64>> = vec![BTreeMap::new(); machine.barriers.len()];
    for (number, block) in machine.blocks.iter().enumerate() {
        let mut since_sync: Vec<(bool, usize)> = Vec::new();
        for (step, event) in block.events.iter().enumerate() {
            let place = block.place(step);
            match event.role {
                Role::Sync => since_sync.clear(),
                Role::Barrier(barrier) => {
                    since_sync.clear();
                    *meetings[barrier].entry(number).or_default() += 1;
                }
                Role::Acquire | Role::Release => {
                    for &semaphore in &event.semaphores {
                        let end = &mut semaphores[semaphore][usize::from(event.role == Role::Acquire)];
                        if !end.count(number) {
                            findings.problem(
                                place,
                                "a semaphore that another block uses in the same way; give each its own",
                            );
                        }
                    }
                }
                Role::Data => {}
                Role::Signal { .. } | Role::Wait { .. } | Role::Port { .. } => {
                    let is_wait = matches!(event.role, Role::Wait { .. });
                    let counts = !matches!(event.role, Role::Port { signals: false, .. });
                    for &line in &event.lines {
                        if counts && !lines[line][usize::from(is_wait)].count(number) {
                            findings
                                .problem(place, "a channel that another block uses in the same way; give each its own");
                        }
                        if since_sync.contains(&(is_wait, line)) {
                            findings.problem(place, "uses a channel again without a nop since; put one between");
                        }
                        since_sync.push((is_wait, line));
                    }
                }
            }
        }
        if findings.must_stop(block.events.len() as u64) {
            return;
        }
    }
    for (line, [signals, waits]) in machine.lines.iter().zip(&lines) {
        if signals.count != waits.count {
            let message = format!(
                "a channel to rank {} has {} signals, of which {} are waited for; send as many as are awaited",
                line.to, signals.count, waits.count
            );
            findings.problem(Place::rank(line.from), message);
        }
    }
    for (barrier, meetings) in machine.barriers.iter().zip(&meetings) {
        let mut times = meetings.values();
        let first = times.next();
        if meetings.len() != barrier.stated as usize || times.any(|count| Some(count) != first) {
            let message = format!(
                "{} blocks use barrier {}, not all of {} equally often",
                meetings.len(),
                barrier.id,
                barrier.stated
            );
            findings.problem(Place::rank(barrier.rank), message);
        }
    }
    for [releases, acquires] in &semaphores {
        if releases.count != acquires.count {
            let place = releases.block.or(acquires.block).and_then(|block| machine.blocks.get(block));
            let message = format!(
                "a semaphore is released {} times and acquired {}; the next launch would find it changed",
                releases.count, acquires.count
            );
            findings.problem(place.map_or(Place::FILE, |block| Place::block(block.rank, block.id)), message);
        }
    }
}
