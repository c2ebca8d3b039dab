//! An execution plan as accelerators run it: what each thread of each block, each proxy and each launch does next.
//!
//! Blocks have a few threads, each of which goes through the operations by itself: it moves some units of the data, or
//! handles the channel or semaphore of its number. Only `nop` and `barrier` let threads of a block wait for each other.
//! A rank's memory is nobody else's business before its launch begins and after it ends.

mod act;
mod moves;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use serde_json::Value;

use crate::execution_interpreter::rank::{Channel, Op, Reader, number};
pub(crate) use act::{Act, Does, Object, Order, Use};
use moves::{Place, Unit};

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
    /// Fewest threads of a block.
    pub(crate) threads: usize,
    /// Whether the kernel takes the address of a `pwsf`'s offsets for the offset: before release 0.10.
    pub(crate) misreads_flushing_puts: bool,
    /// Input and output share memory: where each begins in it.
    pub(crate) bases: fn(rank: usize, input: usize, output: usize) -> (usize, usize, usize),
    pub(crate) misread: Option<Misread>,
}

/// Who can act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// The launch on a rank begins and ends.
    Launch(usize),
    /// All threads of a block meet.
    Block(usize),
    /// Blocks meet at the barrier of this number.
    Barrier(usize),
    Thread(usize),
    /// The proxy of a line.
    Proxy(usize),
}

/// One thread of a block.
pub(crate) struct Thread {
    pub(crate) rank: usize,
    pub(crate) block: usize,
    acts: Vec<Act>,
}

/// All that does not change while a plan runs, and how it starts.
pub(crate) struct World {
    launch: Launch,
    /// By rank: where input, output and scratch begin and end.
    buffers: Vec<[(usize, usize); 3]>,
    is_alternating: bool,
    pub(crate) threads: Vec<Thread>,
    /// By block: its threads.
    pub(crate) blocks: Vec<Range<usize>>,
    /// By rank: its threads, its blocks.
    ranks: Vec<(Range<usize>, Range<usize>)>,
    /// Rank and number in the plan.
    barriers: Vec<(usize, usize)>,
    /// From which end to which signals and puts go.
    lines: Vec<Channel>,
    line_numbers: BTreeMap<Channel, usize>,
    semaphores: BTreeMap<(usize, usize), usize>,
    start: State,
}

/// What changes while a plan runs.
#[derive(Clone)]
pub(crate) struct State {
    /// By thread: its next act.
    next: Vec<usize>,
    pub(crate) memories: Vec<Vec<u8>>,
    /// By line.
    signals: Vec<u64>,
    proxies: Vec<VecDeque<Rc<Order>>>,
    pub(crate) semaphores: Vec<u64>,
    has_begun: Vec<bool>,
    has_ended: Vec<bool>,
}

impl World {
    /// Memory is filled by `garbage(rank, bytes)`, and inputs by `input(rank, bytes)`.
    pub(crate) fn new(
        plan: &Value,
        launch: Launch,
        garbage: impl Fn(usize, &mut [u8]),
        input: impl Fn(usize, &mut [u8]),
    ) -> Result<Self, String> {
        let gpus = plan["gpus"].as_array().ok_or("no gpus")?;
        if plan["reuse_resources"] == true {
            return Err("shared scratch is not interpreted".to_owned());
        }
        let mut world = Self {
            launch,
            buffers: Vec::new(),
            is_alternating: plan["use_double_scratch_buffer"] == true,
            threads: Vec::new(),
            blocks: Vec::new(),
            barriers: Vec::new(),
            ranks: Vec::new(),
            lines: Vec::new(),
            line_numbers: BTreeMap::new(),
            semaphores: BTreeMap::new(),
            start: State {
                next: Vec::new(),
                memories: Vec::new(),
                signals: Vec::new(),
                proxies: Vec::new(),
                semaphores: Vec::new(),
                has_begun: vec![false; gpus.len()],
                has_ended: vec![false; gpus.len()],
            },
        };
        let packets = if plan["protocol"] == "LL" { 2 } else { 1 };
        for (rank, gpu) in gpus.iter().enumerate() {
            let bytes = |field: &str| number(&gpu[field], field).map(|chunks| chunks * launch.chunk_bytes);
            let (inputs, outputs) = (bytes("input_chunks")?, bytes("output_chunks")?);
            let (first_in, first_out, shared) = (launch.bases)(rank, inputs, outputs);
            let end = shared + bytes("scratch_chunks")? * packets;
            world.buffers.push([(first_in, first_in + inputs), (first_out, first_out + outputs), (shared, end)]);
            let mut memory = vec![0; end];
            garbage(rank, &mut memory[..shared]);
            input(rank, &mut memory[first_in..first_in + inputs]);
            world.start.memories.push(memory);
            for (id, semaphore) in gpu["semaphores"].as_array().into_iter().flatten().enumerate() {
                world.semaphores.insert((rank, id), world.start.semaphores.len());
                world.start.semaphores.push(number(&semaphore["init_value"], "init_value")? as u64);
            }
        }
        for (rank, gpu) in gpus.iter().enumerate() {
            let (threads, blocks) = (world.threads.len(), world.blocks.len());
            for block in gpu["threadblocks"].as_array().ok_or("no threadblocks")? {
                let reader = Reader { rank, gpu, block, chunk_bytes: launch.chunk_bytes };
                world.add_block(rank, &reader.operations()?)?;
            }
            world.ranks.push((threads..world.threads.len(), blocks..world.blocks.len()));
        }
        world.start.next = vec![0; world.threads.len()];
        world.start.signals = vec![0; world.lines.len()];
        world.start.proxies = vec![VecDeque::new(); world.lines.len()];
        Ok(world)
    }

    fn add_block(&mut self, rank: usize, ops: &[Op]) -> Result<(), String> {
        let width = |op: &Op| op.channels.len().max(op.semaphores.len()).max(op.targets.len());
        let count = ops.iter().map(width).max().unwrap_or(0).max(self.launch.threads);
        let (first, block) = (self.threads.len(), self.blocks.len());
        let count = if ops.is_empty() { 0 } else { count };
        let mut acts: Vec<Vec<Act>> = (0..count).map(|_| Vec::new()).collect();
        for (at, op) in ops.iter().enumerate() {
            self.add_acts((rank, at, op), &mut acts)?;
        }
        self.threads.extend(acts.into_iter().map(|acts| Thread { rank, block, acts }));
        self.blocks.push(first..self.threads.len());
        Ok(())
    }

    fn is_misread(&self, misread: Misread) -> bool {
        self.launch.misread == Some(misread)
    }

    fn line(&mut self, channel: Channel) -> usize {
        let lines = &mut self.lines;
        *self.line_numbers.entry(channel).or_insert_with(|| {
            lines.push(channel);
            lines.len() - 1
        })
    }

    pub(crate) fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// How it starts.
    pub(crate) fn start(&self) -> State {
        self.start.clone()
    }

    /// Everybody who can act, now or later.
    pub(crate) fn actors(&self) -> Vec<Actor> {
        let launches = (0..self.buffers.len()).map(Actor::Launch);
        let blocks = (0..self.blocks.len()).map(Actor::Block);
        let barriers = (0..self.barriers.len()).map(Actor::Barrier);
        let threads = (0..self.threads.len()).map(Actor::Thread);
        let proxies = (0..self.lines.len()).filter(|&line| self.lines[line].is_port).map(Actor::Proxy);
        launches.chain(blocks).chain(barriers).chain(threads).chain(proxies).collect()
    }

    pub(crate) fn rank_of(&self, actor: Actor) -> usize {
        match actor {
            Actor::Launch(rank) => rank,
            Actor::Block(block) => self.threads.get(self.blocks[block].start).map_or(0, |thread| thread.rank),
            Actor::Barrier(barrier) => self.barriers[barrier].0,
            Actor::Thread(thread) => self.threads[thread].rank,
            Actor::Proxy(line) => self.lines[line].own,
        }
    }

    /// What a thread does next; none at its end.
    pub(crate) fn act(&self, state: &State, thread: usize) -> Option<&Act> {
        self.threads[thread].acts.get(state.next[thread])
    }

    /// The threads that go on together: of a block that meets, or of all blocks at a barrier.
    pub(crate) fn together(&self, state: &State, actor: Actor) -> Vec<usize> {
        let does = |thread: usize| self.act(state, thread).map(|act| &act.does);
        match actor {
            Actor::Block(block) => {
                let have_come = self.blocks[block].clone().all(|thread| matches!(does(thread), Some(Does::Meet)));
                if have_come { self.blocks[block].clone().collect() } else { Vec::new() }
            }
            Actor::Barrier(barrier) => {
                let is_here = |thread: usize| matches!(does(thread), Some(Does::Barrier(at, _)) if *at == barrier);
                let of_rank = &self.blocks[self.ranks[self.barriers[barrier].0].1.clone()];
                let blocks = of_rank.iter().filter(|block| !block.is_empty() && Range::clone(block).all(is_here));
                let blocks: Vec<_> = blocks.collect();
                let wanted = blocks.first().and_then(|block| match does(block.start) {
                    Some(Does::Barrier(_, count)) => Some(*count),
                    _ => None,
                });
                if wanted.is_some_and(|wanted| blocks.len() >= wanted) {
                    blocks.into_iter().flat_map(Clone::clone).collect()
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        }
    }

    /// The threads of a rank.
    pub(crate) fn threads_of(&self, rank: usize) -> Range<usize> {
        self.ranks[rank].0.clone()
    }

    /// Whether somebody can do the next thing.
    pub(crate) fn can_act(&self, state: &State, actor: Actor) -> bool {
        match actor {
            Actor::Launch(rank) if !state.has_begun[rank] => true,
            Actor::Launch(rank) => {
                !state.has_ended[rank] && self.threads_of(rank).all(|thread| self.act(state, thread).is_none())
            }
            Actor::Block(_) | Actor::Barrier(_) => !self.together(state, actor).is_empty(),
            Actor::Proxy(line) => !state.proxies[line].is_empty(),
            Actor::Thread(thread) if !state.has_begun[self.threads[thread].rank] => false,
            Actor::Thread(thread) => match self.act(state, thread).map(|act| &act.does) {
                None | Some(Does::Meet | Does::Barrier(..)) => false,
                Some(Does::Signal { .. } | Does::Release(_)) => true,
                Some(Does::Wait { line, .. }) => self.is_misread(Misread::WaitPasses) || state.signals[*line] > 0,
                Some(Does::Acquire(id)) => self.is_misread(Misread::AcquirePasses) || state.semaphores[*id] > 0,
                Some(Does::Drain(line)) => state.proxies[*line].is_empty(),
                Some(Does::Move(units)) => units.iter().all(|unit| state.packets_are_there(unit)),
                Some(Does::Push { awaited, .. }) => awaited.iter().all(|unit| state.packets_are_there(unit)),
            },
        }
    }

    /// What somebody who can act touches by it.
    pub(crate) fn uses<'s>(&'s self, state: &'s State, actor: Actor) -> &'s [Use] {
        match actor {
            Actor::Thread(thread) => self.act(state, thread).map_or(&[], |act| &act.uses),
            Actor::Proxy(line) => state.proxies[line].front().map_or(&[], |order| order.uses()),
            _ => &[],
        }
    }

    /// Lets somebody who can act do so.
    pub(crate) fn go(&self, state: &mut State, actor: Actor) -> Result<(), String> {
        match actor {
            Actor::Launch(rank) if !state.has_begun[rank] => state.has_begun[rank] = true,
            Actor::Launch(rank) => state.has_ended[rank] = true,
            Actor::Block(_) | Actor::Barrier(_) => {
                self.together(state, actor).into_iter().for_each(|thread| state.next[thread] += 1);
            }
            Actor::Proxy(line) => match state.proxies[line].pop_front().as_deref() {
                Some(Order::Move { units, is_misread, .. }) => {
                    for unit in units {
                        self.require_open(state, unit, None)?;
                        state.transfer(unit, *is_misread);
                    }
                }
                Some(Order::Signal { .. }) => state.signals[line] += 1,
                None => {}
            },
            Actor::Thread(thread) => {
                let rank = self.threads[thread].rank;
                match self.act(state, thread).map(|act| &act.does) {
                    Some(Does::Signal { line, .. }) => state.signals[*line] += 1,
                    Some(Does::Wait { line, .. }) => state.signals[*line] = state.signals[*line].saturating_sub(1),
                    Some(Does::Release(id)) => state.semaphores[*id] += 1,
                    Some(Does::Acquire(id)) => state.semaphores[*id] = state.semaphores[*id].saturating_sub(1),
                    Some(Does::Push { line, orders, .. }) => state.proxies[*line].extend(orders.iter().cloned()),
                    Some(Does::Move(units)) => {
                        for unit in units {
                            self.require_open(state, unit, Some(rank))?;
                            state.transfer(unit, false);
                        }
                    }
                    Some(Does::Drain(_) | Does::Meet | Does::Barrier(..)) | None => {}
                }
                state.next[thread] += 1;
            }
        }
        Ok(())
    }

    /// Refuses what touches memory of a rank whose launch has not begun or has ended; `by` is the rank of a thread.
    fn require_open(&self, state: &State, unit: &Unit, by: Option<usize>) -> Result<(), String> {
        for place in unit.sources.iter().chain(&unit.targets) {
            let is_open = state.has_begun[place.rank] && !state.has_ended[place.rank];
            let is_exempt = place.is_packets && self.is_alternating;
            if by != Some(place.rank) && !is_open && !is_exempt {
                return Err(format!("memory of rank {} is touched outside its launch", place.rank));
            }
        }
        Ok(())
    }

    /// Refuses a state in which nobody can go on though something is left.
    pub(crate) fn require_end(&self, state: &State) -> Result<(), String> {
        if let Some(rank) = state.has_ended.iter().position(|has_ended| !has_ended) {
            let stuck = self.threads_of(rank).find_map(|thread| Some((thread, self.act(state, thread)?)));
            return Err(match stuck {
                Some((thread, act)) => format!("nobody can go on: rank {rank}, thread {thread}: {:?}", act.does),
                None => format!("rank {rank} does not end"),
            });
        }
        match state.signals.iter().position(|count| *count > 0) {
            Some(line) => Err(format!("{} signals left over on line {line}", state.signals[line])),
            None => Ok(()),
        }
    }

    /// What a rank has in a buffer: 0 input, 1 output.
    pub(crate) fn buffer<'s>(&self, state: &'s State, rank: usize, buffer: usize) -> &'s [u8] {
        let (first, end) = self.buffers[rank][buffer];
        &state.memories[rank][first..end]
    }
}

/// All that tells one state from another.
pub(crate) type Key = (Vec<usize>, Vec<Vec<u8>>, Vec<u64>, Vec<usize>, Vec<u64>, Vec<bool>, Vec<bool>);

impl State {
    /// What tells it from others: queues of proxies hold what threads have pushed in an order that follows from it.
    pub(crate) fn key(&self) -> Key {
        let waiting = self.proxies.iter().map(VecDeque::len).collect();
        let (begun, ended) = (self.has_begun.clone(), self.has_ended.clone());
        (self.next.clone(), self.memories.clone(), self.signals.clone(), waiting, self.semaphores.clone(), begun, ended)
    }

    /// Whether a rank's launch has begun.
    pub(crate) fn has_begun(&self, rank: usize) -> bool {
        self.has_begun[rank]
    }

    /// What the proxy of a line does next.
    pub(crate) fn order(&self, line: usize) -> Option<&Order> {
        self.proxies[line].front().map(Rc::as_ref)
    }

    /// Whether half a packet is there: eight bytes of a rank.
    pub(crate) fn has_flag(&self, rank: usize, unit: usize) -> bool {
        self.memories[rank][unit * UNIT..][4..UNIT] == FLAG
    }

    fn packets_are_there(&self, unit: &Unit) -> bool {
        let mut packets = unit.sources.iter().filter(|place| place.is_packets);
        packets.all(|Place { rank, at, .. }| (0..2).all(|half| self.has_flag(*rank, at / UNIT + half)))
    }

    /// Sums one unit of all sources, and stores it at all targets; where it is misread, something else.
    fn transfer(&mut self, unit: &Unit, is_misread: bool) {
        let mut sum = [0_u32; 2];
        for place in &unit.sources {
            let wide = if place.is_packets { 8 } else { 4 };
            for (word, sum) in sum.iter_mut().enumerate() {
                let at = place.at + word * wide;
                let word = &self.memories[place.rank][at..at + 4];
                *sum = sum.wrapping_add(u32::from_le_bytes(word.try_into().expect("four bytes")));
            }
        }
        if is_misread {
            sum = [sum[1].rotate_left(7) ^ 0x5bd1_e995, !sum[0]];
        }
        for place in &unit.targets {
            let memory = &mut self.memories[place.rank];
            let wide = if place.is_packets { 8 } else { 4 };
            for (word, sum) in sum.iter().enumerate() {
                let at = place.at + word * wide;
                memory[at..at + 4].copy_from_slice(&sum.to_le_bytes());
                if place.is_packets {
                    memory[at + 4..at + 8].copy_from_slice(&FLAG);
                }
            }
        }
    }
}

/// A number that looks like chance.
pub(crate) const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    z = (z ^ (z >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z ^ (z >> 32)
}
