//! Whether a plan always ends, and one order in which it can run.
//!
//! Every signal, release and packet has one taker, known beforehand, and nothing is ever taken back: whatever can run
//! stays able to run. So if one interleaving ends, all do.

use std::collections::{BTreeMap, BTreeSet};

use crate::msccl::Findings;
use crate::mscclpp::machine::{Event, Machine, Role, packets};

/// What a block may wait for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Awaited {
    Line(usize),
    Barrier(usize),
    Semaphore(usize),
    Packet(u32, u64),
}

/// An order in which everything runs, as block and position; problems if something never can.
pub(super) fn check(machine: &Machine, findings: &mut Findings<'_>) -> Vec<(usize, usize)> {
    let mut state = State {
        machine,
        signals: vec![0; machine.lines.len()],
        semaphores: machine.semaphores.iter().map(|&value| u64::from(value)).collect(),
        arrived: vec![0; machine.barriers.len()],
        packets: BTreeSet::new(),
        next: vec![0; machine.blocks.len()],
        waiting: BTreeMap::new(),
        order: Vec::new(),
    };
    let mut ready: Vec<usize> = (0..machine.blocks.len()).rev().collect();
    while let Some(block) = ready.pop() {
        if state.advance(block, &mut ready, findings) {
            return Vec::new();
        }
    }
    for (block, &next) in machine.blocks.iter().zip(&state.next) {
        if let Some(event) = block.events.get(next) {
            let reason = match event.role {
                Role::Wait { .. } => "waits for a signal that is never sent",
                Role::Barrier(_) => "waits for blocks that never come",
                Role::Acquire => "waits for a semaphore that is never released",
                _ => "waits for packets that are never written",
            };
            findings.problem(block.place(next), reason);
        }
    }
    state.order
}

struct State<'a> {
    machine: &'a Machine,
    /// Signals sent and not yet taken.
    signals: Vec<u64>,
    semaphores: Vec<u64>,
    arrived: Vec<u32>,
    /// Cells with packets, by rank.
    packets: BTreeSet<(u32, u64)>,
    next: Vec<usize>,
    waiting: BTreeMap<Awaited, Vec<usize>>,
    order: Vec<(usize, usize)>,
}

impl State<'_> {
    /// Runs a block as far as it goes; true if asked to stop.
    fn advance(&mut self, number: usize, ready: &mut Vec<usize>, findings: &mut Findings<'_>) -> bool {
        let block = &self.machine.blocks[number];
        while let Some(event) = block.events.get(self.next[number]) {
            if findings.must_stop(1 + event.effects.len() as u64) {
                return true;
            }
            if let Some(awaited) = self.obstacle(event) {
                self.waiting.entry(awaited).or_default().push(number);
                return false;
            }
            if let Role::Barrier(barrier) = event.role {
                self.arrived[barrier] += 1;
                let blocks = &self.machine.barriers[barrier].blocks;
                if (self.arrived[barrier] as usize) < blocks.len() {
                    self.waiting.entry(Awaited::Barrier(barrier)).or_default().push(number);
                    return false;
                }
                // All have come: whoever waits here goes on behind the barrier.
                self.arrived[barrier] = 0;
                for other in self.waiting.remove(&Awaited::Barrier(barrier)).unwrap_or_default() {
                    self.order.push((other, self.next[other]));
                    self.next[other] += 1;
                    ready.push(other);
                }
            } else {
                self.take_effect(event, ready);
            }
            self.order.push((number, self.next[number]));
            self.next[number] += 1;
        }
        false
    }

    /// What an event waits for, if anything.
    fn obstacle(&self, event: &Event) -> Option<Awaited> {
        match event.role {
            Role::Wait { .. } => {
                event.lines.iter().find(|&&line| self.signals[line] == 0).map(|&line| Awaited::Line(line))
            }
            Role::Acquire => {
                let is_empty = |semaphore: &&usize| self.semaphores[**semaphore] == 0;
                event.semaphores.iter().find(is_empty).map(|&semaphore| Awaited::Semaphore(semaphore))
            }
            Role::Data | Role::Port { .. } => packets(event.effects.iter().flat_map(|effect| &effect.sources))
                .find(|cell| !self.packets.contains(cell))
                .map(|(rank, cell)| Awaited::Packet(rank, cell)),
            _ => None,
        }
    }

    fn take_effect(&mut self, event: &Event, ready: &mut Vec<usize>) {
        let mut wake = |waiting: &mut BTreeMap<Awaited, Vec<usize>>, awaited| {
            ready.extend(waiting.remove(&awaited).unwrap_or_default());
        };
        match event.role {
            Role::Wait { .. } => event.lines.iter().for_each(|&line| self.signals[line] -= 1),
            Role::Signal { .. } | Role::Port { signals: true, .. } => {
                for &line in &event.lines {
                    self.signals[line] += 1;
                    wake(&mut self.waiting, Awaited::Line(line));
                }
            }
            Role::Acquire => event.semaphores.iter().for_each(|&semaphore| self.semaphores[semaphore] -= 1),
            Role::Release => {
                for &semaphore in &event.semaphores {
                    self.semaphores[semaphore] += 1;
                    wake(&mut self.waiting, Awaited::Semaphore(semaphore));
                }
            }
            Role::Data | Role::Port { .. } => {
                for (rank, cell) in packets(event.effects.iter().flat_map(|effect| &effect.targets)) {
                    self.packets.insert((rank, cell));
                    wake(&mut self.waiting, Awaited::Packet(rank, cell));
                }
            }
            Role::Sync | Role::Barrier(_) => {}
        }
    }
}
