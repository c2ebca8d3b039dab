//! Runs an execution plan as an accelerator would: threads of blocks one by one, proxies, and memory of bytes.
//!
//! Blocks have a few threads, each of which goes through the operations by itself: it moves some units of the data, or
//! handles the channel or semaphore of its number. Only `nop` and `barrier` let threads of a block wait for each other.
//! Chance decides who goes on, one rank or all proxies being slow. A rank has begun once one of its threads has done
//! something, and has ended when all are done; its memory is nobody else's business before and after.

mod moves;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use serde_json::Value;

use crate::execution_interpreter::rank::{Channel, Op, Reader, number};

/// Bytes that are moved at once: the data of one packet.
const UNIT: usize = 8;
/// What marks a packet that is there.
const FLAG: [u8; 4] = [1, 0, 0, 0];

/// One thing read otherwise than the format says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misread {
    NopMeetsNobody,
    WaitPasses,
    BarrierPasses,
    AcquirePasses,
    SignalsAheadOfData,
    PutsWithoutSignal,
    PutsAtSourceIndex,
    FirstSourceLeftOut,
    FurtherSourcesLeftOut,
    SumsStayAtHome,
    GroupIsItsFirst,
    CopiesSwapped,
}

/// How a plan is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    pub(crate) chunk_bytes: usize,
    pub(crate) seed: u64,
    /// Whether the kernel takes the address of a `pwsf`'s offsets for the offset: before release 0.10.
    pub(crate) misreads_flushing_puts: bool,
    /// Input and output share memory: where each begins in it.
    pub(crate) bases: fn(rank: usize, input: usize, output: usize) -> (usize, usize, usize),
    pub(crate) misread: Option<Misread>,
}

/// Some bytes of a rank; packets take twice as many.
#[derive(Clone, Copy, Debug)]
struct Place {
    rank: usize,
    at: usize,
    is_packets: bool,
}

/// All targets become the sum of all sources.
#[derive(Clone, Debug)]
struct Move {
    sources: Vec<Place>,
    targets: Vec<Place>,
    bytes: usize,
}

enum Order {
    Move(Move, bool),
    Signal,
}

#[derive(Clone, Default)]
struct Thread {
    next: usize,
    flushing: Option<Channel>,
}

struct Block {
    rank: usize,
    ops: Rc<[Op]>,
    threads: Vec<Thread>,
}

impl Block {
    /// Whether all its threads have come to an operation.
    fn has_come(&self, at: usize) -> bool {
        self.threads.iter().all(|thread| thread.next >= at)
    }
}

/// Who else may go on after a step.
#[derive(PartialEq, Eq)]
enum Wakes {
    Block,
    All,
}

pub(crate) struct Machine {
    launch: Launch,
    chance: u64,
    pub(crate) memories: Vec<Vec<u8>>,
    /// By rank: where input, output and scratch begin and end.
    buffers: Vec<[(usize, usize); 3]>,
    is_alternating: bool,
    blocks: Vec<Block>,
    signals: BTreeMap<Channel, u64>,
    proxies: BTreeMap<Channel, VecDeque<Order>>,
    /// Channels whose proxies have something to do.
    waiting: Vec<Channel>,
    /// By rank and number.
    semaphores: BTreeMap<(usize, usize), u64>,
    has_begun: Vec<bool>,
    /// By rank: threads that are not done.
    open: Vec<usize>,
}

impl Machine {
    /// Memory is filled by `fill(rank, bytes)`, and inputs by `input(rank, bytes)`.
    pub(crate) fn new(
        plan: &Value,
        launch: Launch,
        garbage: impl Fn(usize, &mut [u8]),
        input: impl Fn(usize, &mut [u8]),
    ) -> Result<Self, String> {
        let gpus = plan["gpus"].as_array().ok_or("no gpus")?;
        let packets = if plan["protocol"] == "LL" { 2 } else { 1 };
        if plan["reuse_resources"] == true {
            return Err("shared scratch is not interpreted".to_owned());
        }
        let mut machine = Self {
            launch,
            chance: launch.seed,
            memories: Vec::new(),
            buffers: Vec::new(),
            is_alternating: plan["use_double_scratch_buffer"] == true,
            blocks: Vec::new(),
            signals: BTreeMap::new(),
            proxies: BTreeMap::new(),
            waiting: Vec::new(),
            semaphores: BTreeMap::new(),
            has_begun: vec![false; gpus.len()],
            open: vec![0; gpus.len()],
        };
        for (rank, gpu) in gpus.iter().enumerate() {
            let bytes = |field: &str| number(&gpu[field], field).map(|chunks| chunks * launch.chunk_bytes);
            let (inputs, outputs) = (bytes("input_chunks")?, bytes("output_chunks")?);
            let (first_in, first_out, shared) = (launch.bases)(rank, inputs, outputs);
            let end = shared + bytes("scratch_chunks")? * packets;
            machine.buffers.push([(first_in, first_in + inputs), (first_out, first_out + outputs), (shared, end)]);
            let mut memory = vec![0; end];
            garbage(rank, &mut memory[..shared]);
            input(rank, &mut memory[first_in..first_in + inputs]);
            machine.memories.push(memory);
            for (id, semaphore) in gpu["semaphores"].as_array().into_iter().flatten().enumerate() {
                machine.semaphores.insert((rank, id), number(&semaphore["init_value"], "init_value")? as u64);
            }
            for block in gpu["threadblocks"].as_array().ok_or("no threadblocks")? {
                let reader = Reader { rank, gpu, block, chunk_bytes: launch.chunk_bytes };
                let ops = reader.operations()?;
                let width = |op: &Op| op.channels.len().max(op.semaphores.len()).max(op.targets.len());
                let threads = ops.iter().map(width).max().unwrap_or(0).max(3);
                let threads = vec![Thread::default(); if ops.is_empty() { 0 } else { threads }];
                machine.open[rank] += threads.len();
                machine.blocks.push(Block { rank, ops: ops.into(), threads });
            }
        }
        Ok(machine)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.chance = mix(self.chance.wrapping_add(1));
        usize::try_from(self.chance % bound.max(1) as u64).unwrap()
    }

    /// Goes on until all is done, or nobody can go on.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        let mut active: Vec<(usize, usize)> = Vec::new();
        for (block, of) in self.blocks.iter().enumerate() {
            active.extend((0..of.threads.len()).map(|thread| (block, thread)));
        }
        let mut idle: Vec<(usize, usize)> = Vec::new();
        let slow_rank = self.below(self.memories.len() * 2);
        let are_proxies_slow = self.below(2) == 0;
        loop {
            let turn = self.below(if are_proxies_slow { 64 } else { 4 });
            if !self.waiting.is_empty() && (active.is_empty() || turn == 0) {
                let at = self.below(self.waiting.len());
                let channel = self.waiting[at];
                self.proxy(channel)?;
                if self.proxies[&channel].is_empty() {
                    self.waiting.swap_remove(at);
                }
                active.append(&mut idle);
                continue;
            }
            if active.is_empty() {
                break;
            }
            let mut at = self.below(active.len());
            for _ in 0..8 {
                if self.blocks[active[at].0].rank == slow_rank {
                    at = self.below(active.len());
                }
            }
            let (block, thread) = active[at];
            match self.step(block, thread)? {
                None => idle.push(active.swap_remove(at)),
                Some(wakes) => {
                    if self.blocks[block].threads[thread].next == self.blocks[block].ops.len() {
                        active.swap_remove(at);
                        self.open[self.blocks[block].rank] -= 1;
                    }
                    let is_woken = |other: &(usize, usize)| wakes == Wakes::All || other.0 == block;
                    let mut position = 0;
                    while position < idle.len() {
                        if is_woken(&idle[position]) {
                            active.push(idle.swap_remove(position));
                        } else {
                            position += 1;
                        }
                    }
                }
            }
        }
        if let Some(&(block, thread)) = idle.first() {
            let Block { rank, ops, threads } = &self.blocks[block];
            let op = &ops[threads[thread].next];
            return Err(format!("nobody can go on: rank {rank}, operation {}: {}", threads[thread].next, op.name));
        }
        match self.signals.iter().find(|(_, count)| **count > 0) {
            Some((channel, count)) => Err(format!("{count} signals left over: {channel:?}")),
            None => Ok(()),
        }
    }

    /// Hands something to a proxy.
    fn push(&mut self, channel: Channel, order: Order) {
        let orders = self.proxies.entry(channel).or_default();
        if orders.is_empty() {
            self.waiting.push(channel);
        }
        orders.push_back(order);
    }

    fn is_misread(&self, misread: Misread) -> bool {
        self.launch.misread == Some(misread)
    }

    /// One operation of one thread, if it can be done.
    fn step(&mut self, block: usize, thread: usize) -> Result<Option<Wakes>, String> {
        let Block { rank, ops, threads } = &self.blocks[block];
        let (rank, at) = (*rank, threads[thread].next);
        let ops = Rc::clone(ops);
        let op = &ops[at];
        if let Some(channel) = threads[thread].flushing {
            if self.proxies.get(&channel).is_some_and(|orders| !orders.is_empty()) {
                return Ok(None);
            }
            self.blocks[block].threads[thread] = Thread { next: at + 1, flushing: None };
            return Ok(Some(Wakes::Block));
        }
        let all_if = |is_done: bool| is_done.then_some(Wakes::All);
        let wakes = match op.name.as_str() {
            "nop" => {
                let is_done = self.is_misread(Misread::NopMeetsNobody) || self.blocks[block].has_come(at);
                is_done.then_some(Wakes::Block)
            }
            "barrier" => all_if(self.is_misread(Misread::BarrierPasses) || self.has_met(block, at)),
            "flush" => all_if(true),
            "signal" | "rlxsignal" => {
                op.channels.get(thread).into_iter().for_each(|channel| self.signal(*channel));
                all_if(true)
            }
            "wait" | "rlxwait" => all_if(op.channels.get(thread).is_none_or(|channel| self.wait(*channel))),
            "sem_release" | "sem_acquire" => match op.semaphores.get(thread) {
                Some(&id) => all_if(self.semaphore(rank, id, op.name == "sem_acquire")?),
                None => all_if(true),
            },
            _ if op.is_port => self.port(op, thread)?.map(|flushing| {
                self.blocks[block].threads[thread].flushing = flushing;
                Wakes::All
            }),
            _ => self.move_units(block, thread)?,
        };
        if wakes.is_some() {
            self.has_begun[rank] = true;
            let thread = &mut self.blocks[block].threads[thread];
            thread.next += usize::from(thread.flushing.is_none());
        }
        Ok(wakes)
    }

    /// Whether all blocks that a barrier is for have come to the one that a block is at.
    fn has_met(&self, block: usize, at: usize) -> bool {
        let Block { rank, ops, .. } = &self.blocks[block];
        let (id, count) = ops[at].barrier;
        let is_this = |op: &Op| op.name == "barrier" && op.barrier.0 == id;
        let turn = ops[..at].iter().filter(|op| is_this(op)).count();
        let arrived = self.blocks.iter().filter(|other| {
            let mut meetings = (0..other.ops.len()).filter(|&at| is_this(&other.ops[at]));
            other.rank == *rank && meetings.nth(turn).is_some_and(|at| other.has_come(at))
        });
        arrived.count() >= count
    }

    fn signal(&mut self, channel: Channel) {
        match channel.is_port {
            true => self.push(channel, Order::Signal),
            false => *self.signals.entry(channel).or_default() += 1,
        }
    }

    /// Takes a signal of the other end, if there is one.
    fn wait(&mut self, Channel { is_port, own, peer, ordinal }: Channel) -> bool {
        let passes = self.is_misread(Misread::WaitPasses);
        let count = self.signals.entry(Channel { is_port, own: peer, peer: own, ordinal }).or_default();
        let is_there = *count > 0;
        *count = count.saturating_sub(1);
        is_there || passes
    }

    /// Releases or acquires a semaphore, if that can be done.
    fn semaphore(&mut self, rank: usize, id: usize, acquires: bool) -> Result<bool, String> {
        let passes = self.is_misread(Misread::AcquirePasses);
        let value = self.semaphores.get_mut(&(rank, id)).ok_or("no such semaphore")?;
        let is_there = *value > 0;
        *value = if acquires { value.saturating_sub(1) } else { *value + 1 };
        Ok(!acquires || is_there || passes)
    }

    /// Moves the units of a thread, once all packets among them are there.
    fn move_units(&mut self, block: usize, thread: usize) -> Result<Option<Wakes>, String> {
        let Block { rank, ops, threads } = &self.blocks[block];
        let (rank, at, count) = (*rank, threads[thread].next, threads.len());
        let moves = self.moves(&ops[at])?;
        // Which thread has which unit is another matter in every operation.
        let own = |unit: usize| mix((at * 65_536 + unit) as u64) % count as u64 == thread as u64;
        let is_there = |part: &Move| {
            (0..part.bytes / UNIT).filter(|&unit| own(unit)).all(|unit| self.packets_are_there(part, unit))
        };
        if !moves.iter().all(is_there) {
            return Ok(None);
        }
        self.has_begun[rank] = true;
        for part in &moves {
            for unit in (0..part.bytes / UNIT).filter(|&unit| own(unit)) {
                self.transfer(part, unit, rank, false)?;
            }
        }
        let has_packets = moves.iter().any(|part| part.targets.iter().any(|place| place.is_packets));
        Ok(Some(if has_packets { Wakes::All } else { Wakes::Block }))
    }

    /// Hands the put of one thread to its proxy. The channel that it then waits for, if any; none if it cannot go on.
    #[expect(clippy::option_option, reason = "it may not go on, or go on at once, or wait for a channel")]
    fn port(&mut self, op: &Op, thread: usize) -> Result<Option<Option<Channel>>, String> {
        let moves = self.moves(op)?;
        let all = |part: &Move| (0..part.bytes / UNIT).all(|unit| self.packets_are_there(part, unit));
        if !moves.iter().all(all) {
            return Ok(None);
        }
        let (Some(part), Some(&channel)) = (moves.get(thread), op.channels.get(thread)) else { return Ok(Some(None)) };
        if part.targets.iter().any(|target| target.rank != channel.peer) {
            return Err("a put over the channel of another peer".to_owned());
        }
        let (signals, flushes) = match op.name.as_str() {
            "put" | "rppkt" => (false, false),
            "pws" => (true, false),
            "pwsf" => (true, true),
            other => return Err(format!("{other} over port channels")),
        };
        let signals = signals && !self.is_misread(Misread::PutsWithoutSignal);
        let is_ahead = signals && self.is_misread(Misread::SignalsAheadOfData);
        if is_ahead {
            self.push(channel, Order::Signal);
        }
        self.push(channel, Order::Move(part.clone(), flushes && self.launch.misreads_flushing_puts));
        if signals && !is_ahead {
            self.push(channel, Order::Signal);
        }
        Ok(Some(flushes.then_some(channel)))
    }

    fn proxy(&mut self, channel: Channel) -> Result<(), String> {
        match self.proxies.get_mut(&channel).and_then(VecDeque::pop_front) {
            Some(Order::Move(part, is_misread)) => {
                for unit in 0..part.bytes / UNIT {
                    self.transfer(&part, unit, channel.own, true)?;
                    if is_misread {
                        let target = part.targets[0];
                        let at = target.at + unit * UNIT;
                        let elsewhere = mix(self.launch.seed ^ at as u64).to_le_bytes();
                        self.memories[target.rank][at..at + UNIT].copy_from_slice(&elsewhere);
                    }
                }
            }
            Some(Order::Signal) => *self.signals.entry(channel).or_default() += 1,
            None => {}
        }
        Ok(())
    }

    /// What a rank has in a buffer: 0 input, 1 output.
    pub(crate) fn buffer(&self, rank: usize, buffer: usize) -> &[u8] {
        let (first, end) = self.buffers[rank][buffer];
        &self.memories[rank][first..end]
    }
}

/// A number that looks like chance.
pub(crate) const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    z = (z ^ (z >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z ^ (z >> 32)
}
