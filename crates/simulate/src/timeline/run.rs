//! When each operation starts and ends, and how long the network is used while nothing computes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use canopy_schedule::CollectiveKind;

use crate::timeline::program::{Call, Order, Overlap, Program, Work};

/// Times from here on are refused, so that sums fit.
const TIME_MAX: u64 = 1 << 63;

/// When an operation ran, in picoseconds from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// When it started.
    pub start_ps: u64,
    /// When it had ended.
    pub end_ps: u64,
}

/// What the collectives of one kind took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many there were.
    pub calls: u64,
    /// Their time.
    pub time_ps: u64,
    /// The part of it during which nothing computed.
    pub exposed_ps: u64,
}

/// A program that has run. `time_ps` is `compute_ps` and the exposed time of all kinds: there is no time at which
/// nothing runs, because an operation starts as soon as the last one that it waits for ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// By operation.
    pub slots: Vec<Slot>,
    /// When all have ended.
    pub time_ps: u64,
    /// Time during which something computed.
    pub compute_ps: u64,
    /// By kind of collective.
    pub traffic: BTreeMap<CollectiveKind, Traffic>,
}

impl Timeline {
    /// Time during which the network was used and nothing computed.
    pub fn exposed_ps(&self) -> u64 {
        self.traffic.values().map(|traffic| traffic.exposed_ps).fold(0, u64::saturating_add)
    }

    /// Time of all collectives.
    pub fn network_ps(&self) -> u64 {
        self.traffic.values().map(|traffic| traffic.time_ps).fold(0, u64::saturating_add)
    }
}

/// Why a program did not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RunError {
    #[error("the time of {} of {} bytes is not known", call.kind, call.size_bytes)]
    Unknown { call: Call },
    #[error("an iteration takes longer than 2^63 picoseconds; use shorter computations or smaller messages")]
    TooLong,
}

/// Runs a program.
///
/// An operation starts once all that it waits for have ended and its turn has come: computations, work of hosts and
/// collectives are three queues, of each of which one operation runs at a time; a single queue without overlap.
///
/// * **In.** Operations, and the time of each call in picoseconds.
/// * **Errors.** A call without a time; 2⁶³ picoseconds or more.
/// * **Cost.** O((operations + waits) log operations).
pub fn run(program: &Program, times_ps: &BTreeMap<Call, u64>) -> Result<Timeline, RunError> {
    let mut machine = Machine::new(program, times_ps)?;
    machine.complete()?;
    Ok(machine.timeline())
}

/// Queues, of each of which one operation runs at a time.
const QUEUES: usize = 3;

/// Where an operation runs; `None` for a join.
const fn queue_of(work: Work, overlap: Overlap) -> Option<usize> {
    match (work, overlap) {
        (Work::Join, _) => None,
        (Work::Compute { .. }, _) | (_, Overlap::None) => Some(0),
        (Work::Host { .. }, Overlap::Allowed) => Some(1),
        (Work::Collective(_), Overlap::Allowed) => Some(2),
    }
}

/// One queue.
#[derive(Default)]
struct Queue {
    /// Operations that have not started, as listed, where that decides.
    listed: VecDeque<u32>,
    /// Those that could start, by the time from which on they could, where that decides.
    ready: BTreeSet<(u64, u32)>,
    is_busy: bool,
}

struct Machine<'a> {
    program: &'a Program,
    /// By operation, in picoseconds.
    times: Vec<u64>,
    /// By operation: how many of those that it waits for have not ended.
    waits: Vec<u32>,
    /// By operation: those that wait for it.
    followers: Vec<Vec<u32>>,
    queues: [Queue; QUEUES],
    /// Those that run, by their end.
    running: BinaryHeap<Reverse<(u64, u32)>>,
    slots: Vec<Slot>,
}

impl<'a> Machine<'a> {
    fn new(program: &'a Program, times_ps: &BTreeMap<Call, u64>) -> Result<Self, RunError> {
        let operations = program.operations();
        let time = |work: Work| match work {
            Work::Compute { time_ps } | Work::Host { time_ps } => Ok(time_ps),
            Work::Collective(call) => times_ps.get(&call).copied().ok_or(RunError::Unknown { call }),
            Work::Join => Ok(0),
        };
        let times = operations.iter().map(|operation| time(operation.work)).collect::<Result<Vec<u64>, _>>()?;
        let (mut waits, mut followers) = (vec![0; operations.len()], vec![Vec::new(); operations.len()]);
        let mut queues: [Queue; QUEUES] = Default::default();
        for (number, operation) in (0_u32..).zip(operations) {
            for &before in &operation.after {
                waits[number as usize] += 1;
                followers[before as usize].push(number);
            }
            if let (Order::Listed, Some(queue)) = (program.order(), queue_of(operation.work, program.overlap())) {
                queues[queue].listed.push_back(number);
            }
        }
        let slots = vec![Slot::default(); operations.len()];
        Ok(Self { program, times, waits, followers, queues, running: BinaryHeap::new(), slots })
    }

    fn complete(&mut self) -> Result<(), RunError> {
        let free = (0_u32..).zip(&self.waits).filter(|(_, waits)| **waits == 0).map(|(number, _)| number);
        self.free(free.collect(), 0);
        let mut now = 0;
        loop {
            self.start_all(now)?;
            let Some(Reverse((time, number))) = self.running.pop() else { return Ok(()) };
            now = time;
            self.end(number, now);
            // All that end at one time have ended before the next ones are chosen.
            while let Some(&Reverse((_, number))) = self.running.peek().filter(|next| next.0.0 == now) {
                self.running.pop();
                self.end(number, now);
            }
        }
    }

    /// Starts what can start in every queue that is not busy.
    fn start_all(&mut self, now: u64) -> Result<(), RunError> {
        for queue in &mut self.queues {
            if queue.is_busy {
                continue;
            }
            let next = match self.program.order() {
                Order::Ready => queue.ready.pop_first().map(|(_, number)| number),
                Order::Listed => queue.listed.pop_front_if(|number| self.waits[*number as usize] == 0),
            };
            let Some(number) = next else { continue };
            queue.is_busy = true;
            let end_ps = now.checked_add(self.times[number as usize]).filter(|&end| end < TIME_MAX);
            let slot = Slot { start_ps: now, end_ps: end_ps.ok_or(RunError::TooLong)? };
            self.slots[number as usize] = slot;
            self.running.push(Reverse((slot.end_ps, number)));
        }
        Ok(())
    }

    /// Frees the queue of an operation, and what waited for it alone.
    fn end(&mut self, number: u32, now: u64) {
        let work = self.program.operations()[number as usize].work;
        if let Some(queue) = queue_of(work, self.program.overlap()) {
            self.queues[queue].is_busy = false;
        }
        let freed = self.freed_by(number);
        self.free(freed, now);
    }

    /// Those that wait for nothing more once this one has ended.
    fn freed_by(&mut self, number: u32) -> Vec<u32> {
        let followers = std::mem::take(&mut self.followers[number as usize]);
        let mut freed = Vec::new();
        for follower in followers {
            let waits = &mut self.waits[follower as usize];
            *waits -= 1;
            if *waits == 0 {
                freed.push(follower);
            }
        }
        freed
    }

    /// Puts operations that wait for nothing more into their queues; joins end at once.
    fn free(&mut self, mut freed: Vec<u32>, now: u64) {
        while let Some(number) = freed.pop() {
            match queue_of(self.program.operations()[number as usize].work, self.program.overlap()) {
                Some(queue) if self.program.order() == Order::Ready => {
                    self.queues[queue].ready.insert((now, number));
                }
                Some(_) => {}
                None => {
                    self.slots[number as usize] = Slot { start_ps: now, end_ps: now };
                    freed.extend(self.freed_by(number));
                }
            }
        }
    }

    fn timeline(self) -> Timeline {
        let computed = self.computed();
        let mut used: Vec<(Slot, CollectiveKind)> = Vec::new();
        for (operation, &slot) in self.program.operations().iter().zip(&self.slots) {
            if let Work::Collective(call) = operation.work {
                used.push((slot, call.kind));
            }
        }
        used.sort_unstable_by_key(|(slot, _)| (slot.start_ps, slot.end_ps));
        let mut traffic: BTreeMap<CollectiveKind, Traffic> = BTreeMap::new();
        let mut rest = computed.as_slice();
        for (slot, kind) in used {
            // Collectives follow each other, so what ended before this one started hides none of the later ones.
            let gone = rest.partition_point(|computed| computed.end_ps <= slot.start_ps);
            rest = &rest[gone..];
            let during = rest.iter().take_while(|computed| computed.start_ps < slot.end_ps);
            let hidden: u64 =
                during.map(|computed| computed.end_ps.min(slot.end_ps) - computed.start_ps.max(slot.start_ps)).sum();
            let time = slot.end_ps - slot.start_ps;
            let sum = traffic.entry(kind).or_default();
            sum.calls += 1;
            sum.time_ps += time;
            sum.exposed_ps += time - hidden;
        }
        let time_ps = self.slots.iter().map(|slot| slot.end_ps).max().unwrap_or(0);
        let compute_ps = computed.iter().map(|slot| slot.end_ps - slot.start_ps).sum();
        Timeline { slots: self.slots, time_ps, compute_ps, traffic }
    }

    /// When something computes: intervals without a common point, rising, none empty.
    fn computed(&self) -> Vec<Slot> {
        let is_compute = |work: Work| matches!(work, Work::Compute { .. } | Work::Host { .. });
        let operations = self.program.operations().iter().zip(&self.slots);
        let own = operations.filter(|(operation, _)| is_compute(operation.work)).map(|(_, &slot)| slot);
        let mut own: Vec<Slot> = own.filter(|slot| slot.start_ps < slot.end_ps).collect();
        own.sort_unstable_by_key(|slot| (slot.start_ps, slot.end_ps));
        let mut merged: Vec<Slot> = Vec::new();
        for slot in own {
            match merged.last_mut() {
                Some(last) if slot.start_ps <= last.end_ps => last.end_ps = last.end_ps.max(slot.end_ps),
                _ => merged.push(slot),
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests;
