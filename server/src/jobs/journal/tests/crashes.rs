//! Processes that die at any moment.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::random::{Random, seeds};

/// A process that dies at a certain write, which may or may not reach the disk.
struct Mortal {
    writes_left: AtomicU64,
    last_one_counts: bool,
}

impl Mortal {
    /// Whether the next write reaches the disk.
    fn writes(&self) -> bool {
        let left = self.writes_left.load(Ordering::Relaxed);
        self.writes_left.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 1 || (left == 1 && self.last_one_counts)
    }

    fn is_dead(&self) -> bool {
        self.writes_left.load(Ordering::Relaxed) == 0
    }
}

/// What a run of several processes knows of the jobs it was told are safe.
#[derive(Default)]
struct Expected {
    /// Unfinished ones that a reader has written down, and how often they were begun and died with their process.
    safe: BTreeMap<String, u32>,
    /// Those that have ended: they may be begun again, but never must be.
    ended: BTreeSet<String>,
}

/// Processes die at any write, at any moment between, or in order; jobs that were written down and have not ended
/// are there again under their names, until they have been begun twice.
#[test]
fn whenever_the_process_dies_no_job_that_was_written_down_is_lost() {
    const TEXTS: [&str; 5] = ["ring:3", "ring:4", "ring:5", "ring:6", "ring:7"];
    for seed in seeds(300) {
        let mut random = Random(seed);
        let disk = memory();
        let mut expected = Expected::default();
        for _ in 0..6 {
            let mortal = Arc::new(Mortal {
                writes_left: AtomicU64::new(1 + random.below(30) as u64),
                last_one_counts: random.below(2) == 0,
            });
            let writer = Arc::clone(&mortal);
            let process = Process::start(&Gated::over(&disk, move |_| writer.writes()), LIMITS);
            check_resumed(&process, &mut expected, seed);
            live_until_death(&process, &mortal, &mut random, &mut expected, &TEXTS);
        }
        // One process that lives on makes all there is.
        let process = Process::start(&disk, LIMITS);
        check_resumed(&process, &mut expected, seed);
        while process.queue.waiting() > 0 {
            process.read();
            let job = process.begin();
            process.queue.finish(&job, delivery());
        }
        process.journal.write_back();
        assert!(disk.keys(None, 1).unwrap().is_empty() && disk.summaries(None, 1).unwrap().is_empty(), "seed {seed}");
    }
}

#[track_caller]
fn check_resumed(process: &Process, expected: &mut Expected, seed: u64) {
    for (name, starts) in mem::take(&mut expected.safe) {
        let state = process.state(&name);
        if starts < STARTS_MAX {
            assert_eq!(state, Some(State::Queued), "seed {seed}: {name} begun {starts} times");
            expected.safe.insert(name, starts);
        } else {
            assert_eq!(state, Some(State::Failed), "seed {seed}: {name} begun {starts} times");
        }
    }
    for name in process.queue.operations().into_values().filter(|found| found.result.is_none()).map(|found| found.name)
    {
        assert!(expected.safe.contains_key(&name) || expected.ended.contains(&name), "seed {seed}: {name} is new");
    }
}

fn live_until_death(
    process: &Process,
    mortal: &Mortal,
    random: &mut Random,
    expected: &mut Expected,
    texts: &[&str; 5],
) {
    let mut running: Vec<Arc<Job>> = Vec::new();
    let (mut to_read, mut to_plan) = (process.queue.waiting(), 0);
    for _ in 0..40 {
        match random.below(7) {
            0 | 1 if process.queue.waiting() < LIMITS.length_max => {
                to_read += usize::from(!process.submit(texts[random.below(5)], true).joined);
            }
            2 if to_read > 0 => {
                (to_read, to_plan) = (to_read - 1, to_plan + 1);
                let name = process.read().operation();
                // That it was read well is written down, too, before anything else is.
                process.journal.write_back();
                // One that was not written, or of which it was open before, is not safe; it may be there all the same.
                if mortal.is_dead() || expected.ended.contains(&name) {
                    expected.safe.remove(&name);
                    expected.ended.insert(name);
                } else {
                    expected.safe.entry(name).or_insert(0);
                }
            }
            3 if to_plan > 0 => {
                to_plan -= 1;
                let job = process.begin();
                if let Some(starts) = expected.safe.get_mut(&job.operation()) {
                    if mortal.is_dead() {
                        // Whether this start counts is open: so is what becomes of it.
                        let name = job.operation();
                        expected.safe.remove(&name);
                        expected.ended.insert(name);
                        return;
                    }
                    *starts += 1;
                }
                running.push(job);
            }
            4 if !running.is_empty() => {
                let job = running.swap_remove(random.below(running.len()));
                expected.safe.remove(&job.operation());
                expected.ended.insert(job.operation());
                process.queue.finish(&job, delivery());
            }
            5 => process.journal.write_back(),
            _ if random.below(12) == 0 => {
                end_in_order(process, mortal, expected, &running);
                return;
            }
            _ => {}
        }
        if mortal.is_dead() {
            return;
        }
    }
}

/// The end in order: what runs is stopped, and its start is taken back if that can still be written.
fn end_in_order(process: &Process, mortal: &Mortal, expected: &mut Expected, running: &[Arc<Job>]) {
    let unfinished = process.queue.operations().into_values().filter(|found| found.result.is_none());
    let unfinished: Vec<String> = unfinished.map(|found| found.name).collect();
    process.queue.abort();
    process.journal.write_back();
    // What nobody had read is written down as well.
    for name in unfinished {
        if mortal.is_dead() {
            expected.ended.insert(name);
        } else if !expected.ended.contains(&name) {
            expected.safe.entry(name).or_insert(0);
        }
    }
    for job in running {
        let name = job.operation();
        if !mortal.is_dead() {
            expected.safe.entry(name).and_modify(|starts| *starts -= 1);
        } else if expected.safe.remove(&name).is_some() {
            expected.ended.insert(name);
        }
    }
}
