//! Blocks, proxies and memories while a plan runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::ExecutionOptions;
use crate::elements::{Operator, mix};
use crate::msccl::emulate::{Blocked, EmulationError, EmulationReport};
use crate::mscclpp::machine::{Effect, Event, Machine, Role, packets};
use crate::mscclpp::profile::ExecutorProfile;
use crate::proof::Stop;

/// Operations between two looks at the stop request.
const OPERATIONS_PER_LOOK: u64 = 1 << 12;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Todo,
    /// Handed to proxies; waits until they are done.
    Flushing,
    Done,
}

/// What a proxy is to do.
enum Order<'a> {
    Move(&'a Effect, usize, usize),
    Signal,
}

/// Blocks that may go on when something happens.
struct Listeners {
    /// By line: blocks that wait for its signals, and those that hand something to its proxy.
    waiting: Vec<Vec<usize>>,
    handing: Vec<Vec<usize>>,
    /// By semaphore: blocks that take from it.
    acquiring: Vec<Vec<usize>>,
    /// By rank and cell: blocks that read packets there.
    reading: BTreeMap<(u32, u64), Vec<usize>>,
}

impl Listeners {
    fn of(machine: &Machine) -> Self {
        let mut listeners = Self {
            waiting: vec![Vec::new(); machine.lines.len()],
            handing: vec![Vec::new(); machine.lines.len()],
            acquiring: vec![Vec::new(); machine.semaphores.len()],
            reading: BTreeMap::new(),
        };
        for (number, block) in machine.blocks.iter().enumerate() {
            let add = |blocks: &mut Vec<usize>| {
                if blocks.last() != Some(&number) {
                    blocks.push(number);
                }
            };
            for event in &block.events {
                match event.role {
                    Role::Wait { .. } => event.lines.iter().for_each(|&line| add(&mut listeners.waiting[line])),
                    Role::Port { .. } => event.lines.iter().for_each(|&line| add(&mut listeners.handing[line])),
                    Role::Acquire => event.semaphores.iter().for_each(|&at| add(&mut listeners.acquiring[at])),
                    _ => {}
                }
                packets(event.effects.iter().flat_map(|effect| &effect.sources))
                    .for_each(|cell| add(listeners.reading.entry(cell).or_default()));
            }
        }
        listeners
    }
}

/// Who can run: blocks first, then the proxies of lines. All others found nothing to do, and nothing has happened since
/// that they wait for.
struct Active {
    members: Vec<usize>,
    is_member: Vec<bool>,
}

impl Active {
    fn wake(&mut self, who: usize) {
        if !std::mem::replace(&mut self.is_member[who], true) {
            self.members.push(who);
        }
    }

    fn rest(&mut self, at: usize) {
        let who = self.members.swap_remove(at);
        self.is_member[who] = false;
    }
}

/// A run under way.
pub(super) struct Run<'a> {
    machine: &'a Machine,
    profile: ExecutorProfile,
    options: ExecutionOptions,
    chance: u64,
    active: Active,
    listeners: Listeners,
    /// By rank.
    pub(super) memories: Vec<Vec<u64>>,
    /// By rank: blocks that have not ended, and whether anything has run.
    open: Vec<usize>,
    has_begun: Vec<bool>,
    /// By line.
    signals: Vec<u64>,
    proxies: Vec<VecDeque<Order<'a>>>,
    semaphores: Vec<u64>,
    packets: BTreeSet<(u32, u64)>,
    /// By block: where its threads met last, and what has been done since.
    met: Vec<usize>,
    states: Vec<Vec<State>>,
    /// By barrier: blocks that have come.
    at_barrier: Vec<Vec<usize>>,
    report: EmulationReport,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        machine: &'a Machine,
        profile: ExecutorProfile,
        options: ExecutionOptions,
        memories: Vec<Vec<u64>>,
    ) -> Self {
        let mut open = vec![0; memories.len()];
        for block in machine.blocks.iter().filter(|block| !block.events.is_empty()) {
            open[block.rank as usize] += 1;
        }
        let ranks = memories.len();
        Self {
            machine,
            profile,
            options,
            chance: options.seed,
            active: Active {
                members: (0..machine.blocks.len()).collect(),
                is_member: [vec![true; machine.blocks.len()], vec![false; machine.lines.len()]].concat(),
            },
            listeners: Listeners::of(machine),
            memories,
            open,
            has_begun: vec![false; ranks],
            signals: vec![0; machine.lines.len()],
            proxies: machine.lines.iter().map(|_| VecDeque::new()).collect(),
            semaphores: machine.semaphores.iter().map(|&value| value.into()).collect(),
            packets: BTreeSet::new(),
            met: vec![0; machine.blocks.len()],
            states: machine.blocks.iter().map(|block| vec![State::Todo; block.events.len()]).collect(),
            at_barrier: vec![Vec::new(); machine.barriers.len()],
            report: EmulationReport { steps: 0, transfers: 0, chunks: 0, elements_compared: 0 },
        }
    }

    pub(super) const fn report(&self, elements_compared: u64) -> EmulationReport {
        EmulationReport { elements_compared, ..self.report }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.chance = self.chance.wrapping_add(1);
        usize::try_from(mix(self.chance) % bound.max(1) as u64).unwrap_or(0)
    }

    /// Lets blocks and proxies run in turns that chance decides.
    pub(super) fn finish(&mut self, stop: Stop<'_>) -> Result<(), EmulationError> {
        let blocks = self.machine.blocks.len();
        let mut turns = 0_u64;
        while !self.active.members.is_empty() {
            turns += 1;
            if turns.is_multiple_of(OPERATIONS_PER_LOOK) && stop() {
                return Err(EmulationError::Stopped);
            }
            let at = self.below(self.active.members.len());
            let who = self.active.members[at];
            let has_moved = match who.checked_sub(blocks) {
                None => self.step(who)?,
                Some(line) => self.proxy(line)?,
            };
            if !has_moved {
                self.active.rest(at);
            }
        }
        self.finished()
    }

    fn finished(&self) -> Result<(), EmulationError> {
        let mut blocked = Vec::new();
        for (block, states) in self.machine.blocks.iter().zip(&self.states) {
            if let Some(step) = states.iter().position(|state| *state != State::Done) {
                let reason = match block.events[step].role {
                    Role::Wait { .. } => "waits for a signal",
                    Role::Barrier(_) => "waits for other blocks",
                    Role::Acquire => "waits for a semaphore",
                    _ => "waits for packets",
                };
                blocked.push(Blocked { place: block.place(step), reason });
            }
        }
        if !blocked.is_empty() {
            return Err(EmulationError::Deadlock { blocked });
        }
        for (number, (line, &count)) in (0_u32..).zip(self.machine.lines.iter().zip(&self.signals)) {
            if count > 0 {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                return Err(EmulationError::LeftOver { from: line.from, to: line.to, channel: number, count });
            }
        }
        Ok(())
    }

    /// Runs one operation of a block, any that can run; false if there is none.
    fn step(&mut self, number: usize) -> Result<bool, EmulationError> {
        let block = &self.machine.blocks[number];
        let first = self.met[number];
        let is_meeting = |event: &Event| matches!(event.role, Role::Sync | Role::Barrier(_));
        let rest = &block.events[first..];
        let end = first + rest.iter().position(is_meeting).unwrap_or(rest.len());
        let can_run: Vec<usize> = (first..end).filter(|&step| self.can_run(number, first, step)).collect();
        if !can_run.is_empty() {
            let step = can_run[self.below(can_run.len())];
            self.run(number, step)?;
            self.close(number, step);
            return Ok(true);
        }
        let is_done = self.states[number][first..end].iter().all(|state| *state == State::Done);
        let Some(event) = block.events.get(end).filter(|_| is_done) else { return Ok(false) };
        let Role::Barrier(barrier) = event.role else {
            self.meet(number, end);
            return Ok(true);
        };
        if !self.at_barrier[barrier].contains(&number) {
            self.at_barrier[barrier].push(number);
        }
        if self.at_barrier[barrier].len() < self.machine.barriers[barrier].blocks.len() {
            return Ok(false);
        }
        for member in std::mem::take(&mut self.at_barrier[barrier]) {
            let events = &self.machine.blocks[member].events[self.met[member]..];
            let at = events.iter().position(is_meeting).unwrap_or(0) + self.met[member];
            self.meet(member, at);
            self.active.wake(member);
        }
        Ok(true)
    }

    fn meet(&mut self, number: usize, step: usize) {
        self.states[number][step] = State::Done;
        self.met[number] = step + 1;
        self.report.steps += 1;
        self.close(number, step);
    }

    /// Notes that a rank has begun, and whether its block has ended.
    fn close(&mut self, number: usize, _step: usize) {
        let rank = self.machine.blocks[number].rank as usize;
        self.has_begun[rank] = true;
        let states = &self.states[number][self.met[number]..];
        if states.iter().all(|state| *state == State::Done) {
            self.open[rank] -= 1;
            // Never counted again: nothing of the block is left to run.
            self.met[number] = self.states[number].len();
        }
    }

    fn can_run(&self, number: usize, first: usize, step: usize) -> bool {
        let event = &self.machine.blocks[number].events[step];
        match self.states[number][step] {
            State::Done => return false,
            State::Flushing => return event.lines.iter().all(|&line| self.proxies[line].is_empty()),
            State::Todo => {}
        }
        let is_ready = match event.role {
            Role::Wait { .. } => event.lines.iter().all(|&line| self.signals[line] > 0),
            Role::Acquire => event.semaphores.iter().all(|&semaphore| self.semaphores[semaphore] > 0),
            _ => {
                let mut cells = packets(event.effects.iter().flat_map(|effect| &effect.sources));
                cells.all(|cell| self.packets.contains(&cell))
            }
        };
        // What concerns one channel stays in order.
        let is_wait = |event: &Event| matches!(event.role, Role::Wait { .. });
        let shares = |earlier: usize| {
            let other = &self.machine.blocks[number].events[earlier];
            is_wait(other) == is_wait(event)
                && self.states[number][earlier] != State::Done
                && other.lines.iter().any(|line| event.lines.contains(line))
        };
        is_ready && !(first..step).any(shares)
    }

    fn run(&mut self, number: usize, step: usize) -> Result<(), EmulationError> {
        let machine = self.machine;
        let event = &machine.blocks[number].events[step];
        if self.states[number][step] == State::Flushing {
            self.states[number][step] = State::Done;
            self.report.steps += 1;
            return Ok(());
        }
        match event.role {
            Role::Wait { .. } => event.lines.iter().for_each(|&line| self.signals[line] -= 1),
            Role::Signal { .. } => {
                for &line in &event.lines {
                    if machine.lines[line].is_port {
                        self.hand(line, Order::Signal);
                    } else {
                        self.signal(line);
                    }
                }
            }
            Role::Acquire => event.semaphores.iter().for_each(|&semaphore| self.semaphores[semaphore] -= 1),
            Role::Release => {
                for &semaphore in &event.semaphores {
                    self.semaphores[semaphore] += 1;
                    self.listeners.acquiring[semaphore].iter().for_each(|&block| self.active.wake(block));
                }
            }
            Role::Data => {
                for effect in &event.effects {
                    self.apply(effect, number, step)?;
                }
            }
            Role::Port { signals, flushes } => {
                for (&line, effect) in event.lines.iter().zip(&event.effects) {
                    self.hand(line, Order::Move(effect, number, step));
                    if signals {
                        self.hand(line, Order::Signal);
                    }
                }
                if flushes {
                    self.states[number][step] = State::Flushing;
                    return Ok(());
                }
            }
            Role::Sync | Role::Barrier(_) => {}
        }
        self.states[number][step] = State::Done;
        self.report.steps += 1;
        Ok(())
    }

    /// One order of a proxy; false if it has none.
    fn proxy(&mut self, line: usize) -> Result<bool, EmulationError> {
        match self.proxies[line].pop_front() {
            None => return Ok(false),
            Some(Order::Signal) => self.signal(line),
            Some(Order::Move(effect, block, step)) => self.apply(effect, block, step)?,
        }
        // Blocks may wait until it is done with all.
        if self.proxies[line].is_empty() {
            self.listeners.handing[line].iter().for_each(|&block| self.active.wake(block));
        }
        Ok(true)
    }

    fn signal(&mut self, line: usize) {
        self.signals[line] += 1;
        self.listeners.waiting[line].iter().for_each(|&block| self.active.wake(block));
    }

    /// Hands an order to a proxy.
    fn hand(&mut self, line: usize, order: Order<'a>) {
        self.proxies[line].push_back(order);
        self.active.wake(self.machine.blocks.len() + line);
    }

    fn apply(&mut self, effect: &Effect, block: usize, step: usize) -> Result<(), EmulationError> {
        let own = self.machine.blocks[block].rank;
        for span in effect.sources.iter().chain(&effect.targets) {
            let rank = span.rank as usize;
            let is_exempt =
                (span.is_packet && self.machine.has_two_halves) || (span.rank == own && !self.has_begun[rank]);
            if !is_exempt && (!self.has_begun[rank] || self.open[rank] == 0) {
                let place = self.machine.blocks[block].place(step);
                return Err(EmulationError::OutsideLaunch { place, rank: span.rank });
            }
        }
        let event = &self.machine.blocks[block].events[step];
        let is_misread =
            self.profile.limits().misreads_flushing_puts && matches!(event.role, Role::Port { flushes: true, .. });
        let elements = u64::from(self.options.elements);
        let count = effect.targets.first().map_or(0, |span| span.count);
        let at = |first: u64, offset: u64| usize::try_from(first * elements + offset).unwrap_or(usize::MAX);
        let mut sums = Vec::with_capacity(usize::try_from(count * elements).unwrap_or(0));
        for offset in 0..count * elements {
            let mut values =
                effect.sources.iter().map(|span| self.memories[span.rank as usize][at(span.first, offset)]);
            let first = values.next().unwrap_or(0);
            if is_misread {
                // The address of the offsets is taken for the offset: whatever lies so far behind the source is sent.
                self.chance = self.chance.wrapping_add(1);
                sums.push(self.options.element.truncate(mix(!self.chance)));
                continue;
            }
            sums.push(values.fold(first, |sum, next| self.options.element.combine(Operator::Sum, sum, next)));
        }
        for span in &effect.targets {
            for (offset, &sum) in (0_u64..).zip(&sums) {
                self.memories[span.rank as usize][at(span.first, offset)] = sum;
            }
            for cell in packets(std::iter::once(span)) {
                self.packets.insert(cell);
                let readers = self.listeners.reading.get(&cell);
                readers.into_iter().flatten().for_each(|&block| self.active.wake(block));
            }
            if span.rank != own {
                self.report.transfers += 1;
                self.report.chunks += span.count / self.machine.grain.max(1);
            }
        }
        Ok(())
    }
}
