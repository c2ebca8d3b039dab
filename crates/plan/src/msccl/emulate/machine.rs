//! Thread blocks as state machines over shared memory and bounded queues.

use std::collections::{BTreeMap, VecDeque};

use super::{Blocked, EmulateOptions, EmulationError, EmulationReport};
use crate::elements::{Random, mix};
use crate::msccl::Place;
use crate::msccl::program::{Chunks, Memory, Program, RankProgram, Step, ThreadBlock, expected_chunks, share_chunks};
use crate::proof::Stop;

/// Transfers of a burst: now and then a block runs far ahead of the others, which shows missing waits.
const BURST: u64 = 64;

/// Turns of blocks between two looks at the stop request.
const TURNS_PER_LOOK: u64 = 64;

/// Refuses programs whose steps refer to what does not exist.
pub(super) fn validate(program: &Program) -> Result<(), EmulationError> {
    let malformed = |place, what| Err(EmulationError::Malformed { place, what });
    if program.rank_count < 2 || program.chunk_count == 0 || program.ranks.len() != program.rank_count as usize {
        return malformed(Place::FILE, "ranks or chunks are missing");
    }
    if share_chunks(program) == 0 {
        return malformed(Place::FILE, "a share below one chunk");
    }
    let mut seen = vec![false; program.ranks.len()];
    for rank in &program.ranks {
        match seen.get_mut(rank.rank as usize) {
            Some(seen) if !*seen => *seen = true,
            _ => return malformed(Place::rank(rank.rank), "a rank that is listed twice or does not exist"),
        }
        let (input, output) = expected_chunks(program, rank);
        if rank.input_chunks > input || rank.output_chunks > output {
            return malformed(Place::rank(rank.rank), "a buffer larger than the collective's");
        }
        for block in &rank.thread_blocks {
            for (position, step) in (0_u32..).zip(&block.steps) {
                if let Some(what) = fault_of(program, rank, block, step) {
                    return malformed(Place::step(rank.rank, block.id, position), what);
                }
            }
        }
    }
    Ok(())
}

fn fault_of(program: &Program, rank: &RankProgram, block: &ThreadBlock, step: &Step) -> Option<&'static str> {
    let operation = step.operation;
    let is_peer = |peer: Option<u32>| peer.is_some_and(|peer| peer < program.rank_count && peer != rank.rank);
    if operation.sends() && !is_peer(block.send) || operation.receives() && !is_peer(block.receive) {
        return Some("a peer that does not exist");
    }
    if operation.reads_source() && !is_inside(rank, step.source, step.chunk_count)
        || operation.writes_destination() && !is_inside(rank, step.destination, step.chunk_count)
    {
        return Some("chunks outside the buffer");
    }
    let awaited = match (step.wait_block, step.wait_step) {
        (None, None) => return None,
        (Some(id), Some(awaited)) => rank.thread_blocks.iter().find(|other| other.id == id).zip(Some(awaited)),
        _ => None,
    };
    match awaited {
        Some((other, awaited)) if other.id != block.id && (awaited as usize) < other.steps.len() => None,
        _ => Some("a wait for a step that does not exist"),
    }
}

fn is_inside(rank: &RankProgram, chunks: Chunks, count: u32) -> bool {
    let size = u64::from(rank.chunks_of(chunks.buffer));
    chunks.offset.is_some_and(|first| u64::from(first) + u64::from(count) <= size)
}

struct Queue {
    name: (u32, u32, u32),
    transfers: VecDeque<Vec<u64>>,
    /// Blocks at either end.
    blocks: Vec<usize>,
}

struct Block<'p> {
    /// Position of its rank in the file, and the rank.
    rank: usize,
    rank_number: u32,
    block: &'p ThreadBlock,
    sends_on: Option<usize>,
    receives_on: Option<usize>,
    /// Next step, and its chunks already done.
    next: usize,
    done: u32,
    /// Steps up to this one are known to others as finished.
    published: u32,
    /// Blocks to wake when it publishes.
    waiting: Vec<usize>,
    is_ready: bool,
}

pub(super) struct Machine<'p> {
    random: Random,
    /// Elements per chunk.
    elements: usize,
    memories: &'p [Memory],
    cells: Vec<Vec<u64>>,
    blocks: Vec<Block<'p>>,
    queues: Vec<Queue>,
    /// Blocks of each rank by id.
    ids: Vec<BTreeMap<u32, usize>>,
    ready: Vec<usize>,
    slots: usize,
    chunks_per_transfer: u32,
    /// State of the random number generator.
    counter: u64,
    steps: u64,
    transfers: u64,
    chunks: u64,
}

impl<'p> Machine<'p> {
    /// Sets up a validated program with the memory that ranks start with.
    pub(super) fn new(
        program: &'p Program,
        options: &EmulateOptions,
        memories: &'p [Memory],
        cells: Vec<Vec<u64>>,
    ) -> Self {
        let limits = options.profile.limits();
        let bytes = options.profile.bytes_max_of(program.bytes_max);
        let by_size = options.profile.chunks_per_transfer(program.protocol, bytes, program.chunk_count);
        let slots = options.slots.unwrap_or(limits.queue(program.protocol).slots);
        let EmulateOptions { seed, element, operator, elements_per_chunk, .. } = *options;
        let random = Random { seed, element, operator, chunk_elements: elements_per_chunk.into() };
        let mut machine = Self {
            random,
            elements: elements_per_chunk as usize,
            memories,
            cells,
            blocks: Vec::new(),
            queues: Vec::new(),
            ids: Vec::new(),
            ready: Vec::new(),
            slots: slots as usize,
            chunks_per_transfer: options.chunks_per_transfer.unwrap_or(by_size),
            counter: mix(options.seed),
            steps: 0,
            transfers: 0,
            chunks: 0,
        };
        let mut queue_of: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
        for (index, rank) in program.ranks.iter().enumerate() {
            let mut ids = BTreeMap::new();
            for block in &rank.thread_blocks {
                let number = machine.blocks.len();
                ids.entry(block.id).or_insert(number);
                let own = rank.rank;
                let mut attach = |name: (u32, u32, u32)| {
                    let position = *queue_of.entry(name).or_insert(machine.queues.len());
                    if position == machine.queues.len() {
                        machine.queues.push(Queue { name, transfers: VecDeque::new(), blocks: Vec::new() });
                    }
                    machine.queues[position].blocks.push(number);
                    position
                };
                let sends_on = block.send.map(|to| attach((own, to, block.channel)));
                let receives_on = block.receive.map(|from| attach((from, own, block.channel)));
                machine.blocks.push(Block {
                    rank: index,
                    rank_number: rank.rank,
                    block,
                    sends_on,
                    receives_on,
                    next: 0,
                    done: 0,
                    published: 0,
                    waiting: Vec::new(),
                    is_ready: false,
                });
                machine.wake(number);
            }
            machine.ids.push(ids);
        }
        machine
    }

    /// Runs until every block has ended, or none can go on.
    pub(super) fn run(&mut self, stop: Stop<'_>) -> Result<(), EmulationError> {
        while !self.ready.is_empty() {
            self.counter = self.counter.wrapping_add(1);
            if self.counter.is_multiple_of(TURNS_PER_LOOK) && stop() {
                return Err(EmulationError::Stopped);
            }
            let random = mix(self.counter);
            let pick = usize::try_from(random % self.ready.len() as u64).unwrap_or(0);
            let block = self.ready.swap_remove(pick);
            self.blocks[block].is_ready = false;
            let burst = if random >> 62 == 0 { BURST } else { 1 };
            let mut is_able = true;
            for _ in 0..burst {
                is_able = self.advance(block)?;
                if !is_able {
                    break;
                }
            }
            if is_able {
                self.wake(block);
            }
        }
        let blocked: Vec<Blocked> = (0..self.blocks.len()).filter_map(|block| self.blocked(block)).collect();
        if !blocked.is_empty() {
            return Err(EmulationError::Deadlock { blocked });
        }
        match self.queues.iter().find(|queue| !queue.transfers.is_empty()) {
            Some(Queue { name: (from, to, channel), transfers, .. }) => {
                Err(EmulationError::LeftOver { from: *from, to: *to, channel: *channel, count: transfers.len() })
            }
            None => Ok(()),
        }
    }

    pub(super) fn cells(&self) -> &[Vec<u64>] {
        &self.cells
    }

    pub(super) fn report(&self, elements_compared: u64) -> EmulationReport {
        EmulationReport { steps: self.steps, transfers: self.transfers, chunks: self.chunks, elements_compared }
    }

    fn wake(&mut self, block: usize) {
        if !std::mem::replace(&mut self.blocks[block].is_ready, true) {
            self.ready.push(block);
        }
    }

    fn wake_queue(&mut self, queue: usize) {
        for position in 0..self.queues[queue].blocks.len() {
            self.wake(self.queues[queue].blocks[position]);
        }
    }

    /// What keeps a block from going on; `None` when it has ended or can.
    fn obstacle(&self, number: usize) -> Option<&'static str> {
        let block = &self.blocks[number];
        let step = block.block.steps.get(block.next)?;
        if self.holder(number, step).is_some() {
            return Some("waits for another block");
        }
        let is_empty = |queue: usize| self.queues[queue].transfers.is_empty();
        if step.operation.receives() && block.receives_on.is_none_or(is_empty) {
            return Some("waits for data");
        }
        let is_full = |queue: usize| self.queues[queue].transfers.len() >= self.slots;
        if step.operation.sends() && block.sends_on.is_none_or(is_full) {
            return Some("waits for a free slot");
        }
        None
    }

    /// The block that has not yet published what a step waits for.
    fn holder(&self, number: usize, step: &Step) -> Option<usize> {
        let other = self.ids[self.blocks[number].rank].get(&step.wait_block?).copied()?;
        (self.blocks[other].published <= step.wait_step?).then_some(other)
    }

    fn blocked(&self, number: usize) -> Option<Blocked> {
        let reason = self.obstacle(number)?;
        Some(Blocked { place: self.place(number), reason })
    }

    fn place(&self, number: usize) -> Place {
        let block = &self.blocks[number];
        Place::step(block.rank_number, block.block.id, u32::try_from(block.next).unwrap_or(u32::MAX))
    }

    /// Does the next transfer of a block. False when it has ended or must wait.
    fn advance(&mut self, number: usize) -> Result<bool, EmulationError> {
        let Some(&step) = self.blocks[number].block.steps.get(self.blocks[number].next) else { return Ok(false) };
        if self.obstacle(number).is_some() {
            if let Some(other) = self.holder(number, &step) {
                self.blocks[other].waiting.push(number);
            }
            return Ok(false);
        }
        let first = self.blocks[number].done;
        let count = (step.chunk_count - first).min(self.chunks_per_transfer);
        self.transfer(number, &step, first, count)?;
        self.blocks[number].done += count;
        if self.blocks[number].done == step.chunk_count {
            self.finish_step(number, &step);
        }
        Ok(true)
    }

    /// Moves chunks `first .. first + count` of a step.
    fn transfer(&mut self, number: usize, step: &Step, first: u32, count: u32) -> Result<(), EmulationError> {
        let operation = step.operation;
        let (sends_on, receives_on) = (self.blocks[number].sends_on, self.blocks[number].receives_on);
        let length = count as usize * self.elements;
        let mut values = match receives_on.filter(|_| operation.receives()) {
            Some(queue) => {
                let values = self.queues[queue].transfers.pop_front().unwrap_or_default();
                self.wake_queue(queue);
                if values.len() != length {
                    let (place, found) = (self.place(number), values.len() / self.elements);
                    return Err(EmulationError::TransferSize { place, found, expected: count as usize });
                }
                Some(values)
            }
            None => None,
        };
        if operation.reads_source() {
            let source = self.range(number, step.source, first, length);
            let own = &self.cells[self.blocks[number].rank][source];
            // A local reduction adds to its destination, a receiving one to what arrives.
            let other = match values.take() {
                None if operation.reduces() => {
                    let target = self.range(number, step.destination, first, length);
                    Some(self.cells[self.blocks[number].rank][target].to_vec())
                }
                arrived => arrived,
            };
            values = Some(match other {
                Some(other) => own.iter().zip(other).map(|(&a, b)| self.random.combine(a, b)).collect(),
                None => own.to_vec(),
            });
        }
        let values = values.unwrap_or_default();
        if operation.writes_destination() {
            let target = self.range(number, step.destination, first, length);
            self.cells[self.blocks[number].rank][target].copy_from_slice(&values);
        }
        if let Some(queue) = sends_on.filter(|_| operation.sends()) {
            self.queues[queue].transfers.push_back(values);
            self.transfers += 1;
            self.chunks += u64::from(count);
            self.wake_queue(queue);
        }
        Ok(())
    }

    /// Elements of a rank's memory that hold the chunks of a step from its `first`-th on.
    fn range(&self, number: usize, chunks: Chunks, first: u32, length: usize) -> std::ops::Range<usize> {
        let offset = u64::from(chunks.offset.unwrap_or(0)) + u64::from(first);
        let cell = self.memories[self.blocks[number].rank].cell(chunks.buffer, offset);
        let start = usize::try_from(cell).expect("the size of memory was checked") * self.elements;
        start..start + length
    }

    fn finish_step(&mut self, number: usize, step: &Step) {
        let block = &mut self.blocks[number];
        block.next += 1;
        block.done = 0;
        self.steps += 1;
        if step.is_awaited {
            block.published = u32::try_from(block.next).unwrap_or(u32::MAX);
            for waiting in std::mem::take(&mut block.waiting) {
                self.wake(waiting);
            }
        }
    }
}
