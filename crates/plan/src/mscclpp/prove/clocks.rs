//! Vector clocks over blocks and proxies, with entries for those that were heard of.
//!
//! A block's operations since its threads last met are not ordered among themselves. So a block knows of its own
//! operations only up to the last meeting, and what it learns counts from the next one on. Each clock is kept twice: what
//! has *happened*, and whose *writes are seen*; a relaxed signal carries only the former.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use crate::mscclpp::machine::Machine;

/// Most entries in all clocks together that are kept at a time: 1 GiB.
const ENTRIES_MAX: usize = (1 << 30) / size_of::<Entry>();

/// What is known of a thread: how many of its operations have happened, and of how many the writes are seen.
#[derive(Clone, Copy, Debug)]
struct Entry {
    thread: u32,
    happened: u32,
    seen: u32,
}

/// What an event knows of others.
#[derive(Debug)]
pub(super) struct Clock {
    /// By thread, rising.
    entries: Vec<Entry>,
    kept: Kept,
}

/// Entries in all clocks of a proof.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(Rc<Cell<usize>>);

impl Kept {
    /// Whether the clocks take more memory than a proof may.
    pub(super) fn is_too_much(&self) -> bool {
        self.0.get() > ENTRIES_MAX
    }

    fn add(&self, entries: usize) {
        self.0.set(self.0.get() + entries);
    }
}

impl Clone for Clock {
    fn clone(&self) -> Self {
        self.kept.add(self.entries.len());
        Self { entries: self.entries.clone(), kept: self.kept.clone() }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.kept.0.set(self.kept.0.get() - self.entries.len());
    }
}

impl Clock {
    fn new(kept: &Kept) -> Self {
        Self { entries: Vec::new(), kept: kept.clone() }
    }

    /// How many operations of a thread have happened.
    pub(super) fn happened(&self, thread: usize) -> u32 {
        self.find(thread).map_or(0, |entry| entry.happened)
    }

    /// Of how many operations of a thread the writes are seen.
    pub(super) fn seen(&self, thread: usize) -> u32 {
        self.find(thread).map_or(0, |entry| entry.seen)
    }

    fn find(&self, thread: usize) -> Option<&Entry> {
        self.entries.get(self.position(thread)).filter(|entry| entry.thread as usize == thread)
    }

    /// Position of the first entry that is not before a thread.
    fn position(&self, thread: usize) -> usize {
        self.entries.partition_point(|entry| (entry.thread as usize) < thread)
    }

    /// Whether it knows of any of these threads that it has begun.
    pub(super) fn knows_any(&self, threads: &Range<usize>) -> bool {
        self.entries.get(self.position(threads.start)).is_some_and(|entry| (entry.thread as usize) < threads.end)
    }

    /// Learns what another knows. O(entries of both), less if it knows nearly all already.
    pub(super) fn join(&mut self, other: &Self, is_relaxed: bool) {
        let (mut at, mut missing) = (0, 0);
        for new in &other.entries {
            // Clocks that know the same threads are gone through side by side.
            if self.entries.get(at).is_some_and(|own| own.thread < new.thread) {
                at += self.entries[at..].partition_point(|own| own.thread < new.thread);
            }
            match self.entries.get_mut(at).filter(|own| own.thread == new.thread) {
                Some(own) => {
                    own.raise(new, is_relaxed);
                    at += 1;
                }
                None => missing += 1,
            }
        }
        if missing > 0 {
            self.insert(other, missing, is_relaxed);
        }
    }

    /// Inserts the entries of another that are missing, from the last to the first.
    fn insert(&mut self, other: &Self, missing: usize, is_relaxed: bool) {
        let mut own = self.entries.len();
        let mut to = own + missing;
        self.kept.add(missing);
        self.entries.resize(to, Entry { thread: 0, happened: 0, seen: 0 });
        for &new in other.entries.iter().rev() {
            while own > 0 && self.entries[own - 1].thread > new.thread {
                own -= 1;
                to -= 1;
                self.entries[to] = self.entries[own];
            }
            if own == to {
                // All that are missing have their places.
                return;
            }
            if own == 0 || self.entries[own - 1].thread != new.thread {
                to -= 1;
                self.entries[to] = Entry { seen: if is_relaxed { 0 } else { new.seen }, ..new };
            }
        }
    }

    fn tick(&mut self, thread: usize, time: u32) {
        let own = Entry { thread: u32::try_from(thread).unwrap_or(u32::MAX), happened: time, seen: time };
        let at = self.position(thread);
        match self.entries.get_mut(at).filter(|entry| entry.thread == own.thread) {
            Some(entry) => entry.raise(&own, false),
            None => {
                self.entries.insert(at, own);
                self.kept.add(1);
            }
        }
    }
}

impl Entry {
    fn raise(&mut self, other: &Self, is_relaxed: bool) {
        self.happened = self.happened.max(other.happened);
        if !is_relaxed {
            self.seen = self.seen.max(other.seen);
        }
    }
}

/// Threads: blocks first, rank by rank, then the proxies of lines over ports.
pub(super) struct Threads {
    /// By rank: its blocks.
    blocks: Vec<Range<usize>>,
    /// By line: the thread of its proxy.
    proxies: Vec<Option<usize>>,
    count: usize,
}

impl Threads {
    pub(super) fn new(machine: &Machine) -> Self {
        let blocks = (0_u32..).zip(&machine.memories).map(|(rank, _)| {
            let first = machine.blocks.partition_point(|block| block.rank < rank);
            first..machine.blocks.partition_point(|block| block.rank <= rank)
        });
        let mut count = machine.blocks.len();
        let proxies = machine.lines.iter().map(|line| {
            line.is_port.then(|| {
                count += 1;
                count - 1
            })
        });
        let proxies = proxies.collect();
        Self { blocks: blocks.collect(), proxies, count }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Blocks of a rank.
    pub(super) fn of_rank(&self, rank: u32) -> Range<usize> {
        self.blocks.get(rank as usize).cloned().unwrap_or_default()
    }

    pub(super) fn proxy(&self, line: usize) -> Option<usize> {
        self.proxies.get(line).copied().flatten()
    }
}

/// What a thread knows.
pub(super) struct Knowledge {
    /// Since its threads last met, or of a proxy: since its last operation. Signals sent since then share it.
    pub(super) known: Rc<Clock>,
    /// The same with what it has learnt since.
    learnt: Rc<Clock>,
    /// Its operations so far. The first is that it has begun.
    time: u32,
    thread: usize,
}

impl Knowledge {
    pub(super) fn new(thread: usize, kept: &Kept) -> Self {
        let mut known = Clock::new(kept);
        known.tick(thread, 1);
        let known = Rc::new(known);
        Self { learnt: Rc::clone(&known), known, time: 1, thread }
    }

    /// Begins an operation; returns its time, which others know of once their clock has reached the next.
    pub(super) const fn begin(&mut self) -> u32 {
        let time = self.time;
        self.time += 1;
        time
    }

    pub(super) fn learn(&mut self, other: &Clock, is_relaxed: bool) {
        Rc::make_mut(&mut self.learnt).join(other, is_relaxed);
    }

    /// All threads meet: what was done and learnt is known.
    pub(super) fn meet(&mut self) {
        if self.learnt.happened(self.thread) < self.time {
            Rc::make_mut(&mut self.learnt).tick(self.thread, self.time);
        }
        self.known = Rc::clone(&self.learnt);
    }
}
