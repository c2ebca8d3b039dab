//! Whether all conflicting accesses are ordered, and none happens outside the launch of the memory's owner.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use super::clocks::{Clock, Kept, Knowledge, Threads};
use crate::msccl::{Findings, Place};
use crate::mscclpp::machine::{Effect, Event, Machine, Role, Span};

/// An access: by whom, when, and where it stands.
#[derive(Clone, Copy)]
struct Access {
    thread: usize,
    time: u32,
    block: usize,
    step: usize,
    /// Position of its effect in the operation, and of the cell in the effect.
    part: usize,
    offset: u64,
}

/// What tells an access from all others: thread, time, part and offset.
type Token = (usize, u32, usize, u64);

/// What is sure to have happened before an access.
#[derive(Clone, Copy)]
struct Before<'a> {
    /// What its thread knows.
    clock: &'a Clock,
    /// By offset in its effect: what had to happen for the packets that the effect reads.
    causes: &'a [BTreeSet<Token>],
}

/// What a put over a port does besides moving data.
#[derive(Clone, Copy)]
struct PortUse {
    signals: bool,
    /// Whether the block waits until the proxy is done.
    flushes: bool,
}

/// What is sure once a packet is there: what its writer knew, and what had to happen for this very cell.
#[derive(Clone)]
struct Flag {
    clock: Rc<Clock>,
    causes: Rc<BTreeSet<Token>>,
    writer: u32,
}

impl Access {
    const fn token(&self) -> Token {
        (self.thread, self.time, self.part, self.offset)
    }

    /// Whether both are of one cell of a sum: it is read before the result is stored.
    fn is_one_sum(&self, other: &Self) -> bool {
        self.token() == other.token()
    }
}

/// What has happened to a cell.
#[derive(Clone, Default)]
struct History {
    written: Option<Access>,
    /// Since it was written; the last of each thread.
    read: Vec<Access>,
    /// Whether the cell is used for packets.
    is_packet: Option<bool>,
    is_packet_written: bool,
}

impl History {
    /// An earlier access that conflicts with one, without being sure to have happened before it.
    fn unordered(&self, by: Access, before: Before<'_>, is_write: bool, is_packet: bool) -> Option<Access> {
        let Before { clock, causes } = before;
        let causes = usize::try_from(by.offset).ok().and_then(|at| causes.get(at));
        let is_cause = |earlier: &Access| causes.is_some_and(|causes| causes.contains(&earlier.token()));
        // The flag of a packet orders its reader behind its writer.
        let is_ordered_by_flag = is_packet && !is_write;
        let follows =
            |written: &Access| is_ordered_by_flag || clock.seen(written.thread) > written.time || is_cause(written);
        let is_ordered =
            |read: &&Access| clock.happened(read.thread) > read.time || read.is_one_sum(&by) || is_cause(read);
        self.written
            .filter(|written| !follows(written))
            .or_else(|| self.read.iter().filter(|_| is_write).find(|read| !is_ordered(read)).copied())
    }
}

/// Follows the order and compares clocks.
pub(super) fn check(machine: &Machine, order: &[(usize, usize)], findings: &mut Findings<'_>) {
    let (threads, kept) = (Threads::new(machine), Kept::default());
    let mut watch = Watch::new(machine, &threads, &kept);
    for &(block, step) in order {
        let Some(event) = machine.blocks.get(block).and_then(|block| block.events.get(step)) else { return };
        let work: u64 = event.effects.iter().flat_map(|effect| &effect.targets).map(|span| span.count).sum();
        if findings.must_stop(1 + work) || findings.is_full() {
            return;
        }
        watch.follow(block, step, event, findings);
        if kept.is_too_much() {
            let message = "more blocks hear of each other than the proof can follow; plan for fewer ranks";
            findings.problem(Place::FILE, message);
            return;
        }
    }
    watch.finish(findings);
}

struct Watch<'a> {
    machine: &'a Machine,
    threads: &'a Threads,
    knowledge: Vec<Knowledge>,
    /// By line: what its signals that are not taken yet tell.
    told: Vec<VecDeque<(Rc<Clock>, bool)>>,
    released: Vec<VecDeque<Rc<Clock>>>,
    /// By semaphore: how often it was taken from.
    acquired: Vec<u32>,
    /// By barrier: blocks that have come.
    met: Vec<Vec<usize>>,
    cells: Vec<Vec<History>>,
    /// Last access of each thread to the memory of another rank, or of a proxy to any: by owner, thread, and whether it
    /// writes.
    foreign: BTreeMap<(u32, usize, bool), Access>,
    /// Of packets that are written.
    flags: BTreeMap<(u32, u64), Flag>,
    /// Packets that a rank writes to another: by both, one of the accesses.
    packets: BTreeMap<(u32, u32), Access>,
    /// Pairs of ranks of which the first reads packets that were written after the second had begun.
    heard: BTreeSet<(u32, u32)>,
}

impl<'a> Watch<'a> {
    fn new(machine: &'a Machine, threads: &'a Threads, kept: &Kept) -> Self {
        let cells = |cells: u64| vec![History::default(); usize::try_from(cells).unwrap_or(0)];
        Self {
            machine,
            threads,
            knowledge: (0..threads.count()).map(|thread| Knowledge::new(thread, kept)).collect(),
            told: vec![VecDeque::new(); machine.lines.len()],
            released: vec![VecDeque::new(); machine.semaphores.len()],
            acquired: vec![0; machine.semaphores.len()],
            met: vec![Vec::new(); machine.barriers.len()],
            cells: machine.memories.iter().map(|memory| cells(memory.cells())).collect(),
            foreign: BTreeMap::new(),
            flags: BTreeMap::new(),
            packets: BTreeMap::new(),
            heard: BTreeSet::new(),
        }
    }

    fn follow(&mut self, block: usize, step: usize, event: &Event, findings: &mut Findings<'_>) {
        let time = self.knowledge[block].begin();
        let access = Access { thread: block, time, block, step, part: 0, offset: 0 };
        match event.role {
            Role::Sync => self.knowledge[block].meet(),
            Role::Barrier(barrier) => self.barrier(barrier, block),
            Role::Signal { is_relaxed } => {
                for &line in &event.lines {
                    let clock = match self.threads.proxy(line) {
                        Some(proxy) => {
                            let known = Rc::clone(&self.knowledge[block].known);
                            self.push(proxy, &known);
                            Rc::clone(&self.knowledge[proxy].known)
                        }
                        None => Rc::clone(&self.knowledge[block].known),
                    };
                    self.told[line].push_back((clock, is_relaxed));
                }
            }
            Role::Wait { is_relaxed } => {
                for &line in &event.lines {
                    if let Some((clock, was_relaxed)) = self.told[line].pop_front() {
                        self.knowledge[block].learn(&clock, is_relaxed || was_relaxed);
                    }
                }
            }
            Role::Release => {
                let known = &self.knowledge[block].known;
                event.semaphores.iter().for_each(|&semaphore| self.released[semaphore].push_back(Rc::clone(known)));
            }
            Role::Acquire => {
                for &semaphore in &event.semaphores {
                    // Initial values come first and tell nothing. From then on each needs one more release.
                    if self.acquired[semaphore] < self.machine.semaphores[semaphore] {
                        self.acquired[semaphore] += 1;
                    } else if let Some(clock) = self.released[semaphore].pop_front() {
                        self.knowledge[block].learn(&clock, false);
                    }
                }
            }
            Role::Data => {
                let clock = self.packets_read(block, event);
                for (part, effect) in event.effects.iter().enumerate() {
                    let access = Access { part, ..access };
                    let causes = self.causes(effect);
                    self.move_data(effect, access, Before { clock: &clock, causes: &causes }, findings);
                    self.raise_flags(effect, access, &clock, &causes);
                }
            }
            Role::Port { signals, flushes } => self.port(event, access, PortUse { signals, flushes }, findings),
        }
    }

    fn barrier(&mut self, barrier: usize, block: usize) {
        self.knowledge[block].meet();
        self.met[barrier].push(block);
        if self.met[barrier].len() < self.machine.barriers[barrier].blocks.len() {
            return;
        }
        let met = std::mem::take(&mut self.met[barrier]);
        let Some(mut all) = met.first().map(|&first| Clock::clone(&self.knowledge[first].known)) else { return };
        met.iter().for_each(|&member| all.join(&self.knowledge[member].known, false));
        for member in met {
            self.knowledge[member].learn(&all, false);
            self.knowledge[member].meet();
        }
    }

    /// Hands something to a proxy, and with it what is known: it does it after all it was handed before. Returns its time.
    fn push(&mut self, proxy: usize, known: &Clock) -> u32 {
        let own = &mut self.knowledge[proxy];
        own.learn(known, false);
        own.meet();
        own.begin()
    }

    fn port(&mut self, event: &Event, by: Access, also: PortUse, findings: &mut Findings<'_>) {
        // The block waits for the packets that are forwarded before it hands them over.
        let known = self.packets_read(by.block, event);
        for (&line, effect) in event.lines.iter().zip(&event.effects) {
            let Some(proxy) = self.threads.proxy(line) else { continue };
            let time = self.push(proxy, &known);
            let clock = Rc::clone(&self.knowledge[proxy].known);
            let access = Access { thread: proxy, time, ..by };
            let causes = self.causes(effect);
            self.move_data(effect, access, Before { clock: &clock, causes: &causes }, findings);
            self.raise_flags(effect, access, &clock, &causes);
            self.knowledge[proxy].meet();
            let after = Rc::clone(&self.knowledge[proxy].known);
            if also.flushes {
                self.knowledge[by.block].learn(&after, false);
            }
            if also.signals {
                self.told[line].push_back((after, false));
            }
        }
    }

    /// What a block knows that has read packets: who wrote them had come that far.
    fn packets_read(&mut self, block: usize, event: &Event) -> Rc<Clock> {
        let mut clock = Rc::clone(&self.knowledge[block].known);
        let reader = self.machine.blocks[block].rank;
        for span in event.effects.iter().flat_map(|effect| &effect.sources).filter(|span| span.is_packet) {
            for cell in span.first..span.first + span.count {
                if let Some(flag) = self.flags.get(&(span.rank, cell)) {
                    Rc::make_mut(&mut clock).join(&flag.clock, true);
                    self.heard.insert((reader, flag.writer));
                }
            }
        }
        clock
    }

    /// By offset: what had to happen for the packets that an effect reads. Empty where it reads none.
    fn causes(&self, effect: &Effect) -> Vec<BTreeSet<Token>> {
        let mut causes = Vec::new();
        for span in effect.sources.iter().filter(|span| span.is_packet) {
            causes.resize_with(usize::try_from(span.count).unwrap_or(0), BTreeSet::new);
            for (cell, causes) in (span.first..).zip(&mut causes) {
                if let Some(flag) = self.flags.get(&(span.rank, cell)) {
                    causes.extend(flag.causes.iter());
                }
            }
        }
        causes
    }

    /// Remembers what is sure once the packets of an effect are there.
    fn raise_flags(&mut self, effect: &Effect, by: Access, clock: &Rc<Clock>, causes: &[BTreeSet<Token>]) {
        for span in effect.targets.iter().filter(|span| span.is_packet) {
            for (offset, cell) in (0_u64..).zip(span.first..span.first + span.count) {
                let before = usize::try_from(offset).ok().and_then(|at| causes.get(at));
                let mut causes = before.cloned().unwrap_or_default();
                causes.insert(Access { offset, ..by }.token());
                let writer = self.machine.blocks[by.block].rank;
                let flag = Flag { clock: Rc::clone(clock), causes: Rc::new(causes), writer };
                self.flags.insert((span.rank, cell), flag);
            }
        }
    }

    /// Reads the sources of an effect, then writes its targets.
    fn move_data(&mut self, effect: &Effect, by: Access, before: Before<'_>, findings: &mut Findings<'_>) {
        for (spans, is_write) in [(&effect.sources, false), (&effect.targets, true)] {
            for span in spans {
                // A packet that a group gets from itself stays as it is.
                if is_write && span.is_packet && effect.sources == [*span] {
                    continue;
                }
                self.touch_elsewhere(span, by, before.clock, is_write, findings);
                self.touch(span, by, before, is_write, findings);
            }
        }
    }

    /// Memory of another rank is touched once that rank has begun, and before it ends: what is left to see at the end.
    fn touch_elsewhere(&mut self, span: &Span, by: Access, clock: &Clock, is_write: bool, findings: &mut Findings<'_>) {
        let is_own = self.machine.blocks.get(by.thread).is_some_and(|block| block.rank == span.rank);
        let is_exempt = span.is_packet && self.machine.has_two_halves;
        let block = &self.machine.blocks[by.block];
        if is_exempt && is_write && block.rank != span.rank {
            self.packets.entry((block.rank, span.rank)).or_insert(by);
        }
        if is_own || is_exempt {
            return;
        }
        let has_begun = clock.knows_any(&self.threads.of_rank(span.rank)) || block.rank == span.rank;
        if !has_begun {
            let message = format!("rank {} may not have started; wait for a signal from it first", span.rank);
            findings.problem(block.place(by.step), message);
        }
        self.foreign.insert((span.rank, by.thread, is_write), by);
    }

    /// Each cell of a span is read after it was written, and written after it was read.
    fn touch(&mut self, span: &Span, by: Access, before: Before<'_>, is_write: bool, findings: &mut Findings<'_>) {
        let machine = self.machine;
        let place = machine.blocks[by.block].place(by.step);
        let Some(cells) = self.cells.get_mut(span.rank as usize) else { return };
        for (offset, cell) in (0_u64..).zip(span.first..span.first + span.count) {
            let by = Access { offset, ..by };
            let Some(history) = usize::try_from(cell).ok().and_then(|cell| cells.get_mut(cell)) else { return };
            if history.is_packet.is_some_and(|is_packet| is_packet != span.is_packet) {
                findings.problem(place, "scratch holds packets here and plain data elsewhere; keep them apart");
                return;
            }
            if machine.memories[span.rank as usize].is_scratch(cell) {
                history.is_packet = Some(span.is_packet);
            }
            if is_write && span.is_packet && std::mem::replace(&mut history.is_packet_written, true) {
                findings.problem(place, "a packet is written twice in one launch with the same flag");
                return;
            }
            if let Some(other) = history.unordered(by, before, is_write, span.is_packet) {
                let elsewhere = machine.blocks[other.block].place(other.step);
                let verb = if is_write { "writes" } else { "reads" };
                let message = format!("{verb} memory of rank {}, unordered with {elsewhere}", span.rank);
                findings.problem(place, message);
                return;
            }
            if is_write {
                history.written = Some(by);
                history.read.clear();
            } else {
                let is_past = |read: &Access| before.clock.happened(read.thread) > read.time;
                history.read.retain(|read| read.thread != by.thread || !is_past(read));
                history.read.push(by);
            }
        }
    }

    /// Launches alternate between two halves of scratch: the launch after next must find the packets of this one read.
    ///
    /// A rank that hears from the owner within each launch knows, when it ends one, that the owner has ended the one before.
    fn require_answers(&self, findings: &mut Findings<'_>) {
        for (&(writer, owner), access) in &self.packets {
            let owners = self.threads.of_rank(owner);
            let mut writers = self.threads.of_rank(writer).map(|block| &self.knowledge[block].known);
            if !self.heard.contains(&(writer, owner)) && !writers.any(|known| known.knows_any(&owners)) {
                let message = format!(
                    "rank {writer} hears nothing from rank {owner}, so its launch after next may overwrite packets before they \
                     are read; let rank {owner} signal or send packets back"
                );
                findings.problem(self.machine.blocks[access.block].place(access.step), message);
            }
        }
    }

    /// Every access to a rank's memory by others is over when its blocks end.
    fn finish(mut self, findings: &mut Findings<'_>) {
        self.knowledge.iter_mut().for_each(Knowledge::meet);
        self.require_answers(findings);
        for (&(owner, thread, is_write), access) in &self.foreign {
            let is_over = |times: fn(&Clock, usize) -> u32| {
                let mut blocks = self.threads.of_rank(owner).map(|block| &self.knowledge[block].known);
                blocks.any(|known| times(known, thread) > access.time)
            };
            let place = self.machine.blocks[access.block].place(access.step);
            if !is_over(Clock::happened) {
                let message =
                    format!("may still be in flight when rank {owner} ends; make that rank wait for a signal after it");
                findings.problem(place, message);
            } else if is_write && !is_over(Clock::seen) {
                let message =
                    format!("is followed only by a relaxed signal, which does not guarantee that rank {owner} sees it");
                findings.warning(place, message);
            }
        }
    }
}
