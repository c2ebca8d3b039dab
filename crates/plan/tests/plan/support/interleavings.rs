//! Runs a small program in every order in which its blocks can act: the last word on whether it is right.
//!
//! It shares nothing with the proof and the emulator but the program's types. Memory holds random words, so that a wrong
//! sum of some of them is as good as impossible.

use std::collections::{BTreeMap, HashSet, VecDeque};

use canopy_plan::{Buffer, Chunks, Operation, Profile, Program, RankProgram, Step};
use canopy_schedule::CollectiveKind;

/// States visited before a program is left undecided.
const STATES_MAX: usize = 20_000;

/// What the search says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every order ends with the right data.
    Right,
    /// Some order does not, or the program refers to nothing.
    Wrong(&'static str),
    /// More states than the search visits.
    Undecided,
}

/// Judges a program for every kind of call the profile uses it for.
pub(crate) fn judge(program: &Program, profile: Profile) -> Verdict {
    let places = match (profile, program.in_place, program.out_of_place) {
        (Profile::Msccl, in_place, _) => vec![in_place],
        (_, true, Some(true)) => vec![true, false],
        (_, false, Some(false)) => return Verdict::Wrong("no call"),
        (_, in_place, _) => vec![in_place],
    };
    for in_place in places {
        match World::new(&Program { in_place, ..program.clone() }, profile) {
            Ok(world) => match world.search() {
                Verdict::Right => {}
                other => return other,
            },
            Err(reason) => return Verdict::Wrong(reason),
        }
    }
    Verdict::Right
}

/// SplitMix64.
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a rank's caller gives for a chunk.
fn given(rank: u32, chunk: u32) -> u64 {
    mix(u64::from(rank) << 32 | u64::from(chunk))
}

struct Block {
    rank: usize,
    id: u32,
    sends_on: Option<usize>,
    receives_on: Option<usize>,
    steps: Vec<Step>,
}

struct World {
    program: Program,
    blocks: Vec<Block>,
    /// Where input, output and scratch of each rank start.
    bases: Vec<[usize; 3]>,
    /// Whether blocks of the rank conflict on a cell.
    is_shared: Vec<Vec<bool>>,
    slots: usize,
    chunks_per_transfer: u32,
    start: State,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// Next step of each block, its chunks done, and steps published.
    blocks: Vec<(usize, u32, usize)>,
    cells: Vec<Vec<u64>>,
    queues: Vec<VecDeque<Vec<u64>>>,
}

/// Chunks of the buffers the collective demands: input, output, share.
fn sizes(program: &Program) -> Option<(u32, u32, u32)> {
    let (chunks, ranks) = (program.chunk_count, program.rank_count);
    let equal = chunks.checked_div(ranks).filter(|share| share * ranks == chunks && *share > 0);
    Some(match program.purpose.collective()? {
        CollectiveKind::Allgather => (equal?, chunks, equal?),
        CollectiveKind::ReduceScatter => (chunks, equal?, equal?),
        CollectiveKind::AllToAll => (chunks, chunks, equal?),
        CollectiveKind::Gather => (chunks, chunks * ranks, chunks),
        CollectiveKind::Scatter => (chunks * ranks, chunks, chunks),
        _ => (chunks, chunks, chunks),
    })
}

impl World {
    fn new(program: &Program, profile: Profile) -> Result<Self, &'static str> {
        let (input, output, share) = sizes(program).ok_or("sizes")?;
        if program.chunk_count == 0 || program.ranks.len() != program.rank_count as usize {
            return Err("ranks");
        }
        let mut world = Self {
            program: program.clone(),
            blocks: Vec::new(),
            bases: Vec::new(),
            is_shared: Vec::new(),
            slots: profile.limits().queue(program.protocol).slots as usize,
            chunks_per_transfer: profile.chunks_per_transfer(
                program.protocol,
                profile.bytes_max_of(program.bytes_max),
                program.chunk_count,
            ),
            start: State { blocks: Vec::new(), cells: Vec::new(), queues: Vec::new() },
        };
        for rank in &program.ranks {
            if program.ranks.iter().filter(|other| other.rank == rank.rank).count() > 1
                || rank.rank >= program.rank_count
            {
                return Err("ranks");
            }
            if rank.input_chunks != 0 && rank.input_chunks != input {
                return Err("i_chunks");
            }
            if rank.output_chunks != 0 && rank.output_chunks != output {
                return Err("o_chunks");
            }
            world.add_memory(rank, input as usize, output as usize, (rank.rank * share) as usize);
        }
        world.add_blocks()?;
        world.validate()?;
        world.find_shared();
        Ok(world)
    }

    /// Memory of a rank: garbage, and in the input what the caller gives.
    fn add_memory(&mut self, rank: &RankProgram, i: usize, o: usize, own: usize) {
        let kind = self.program.purpose.collective();
        let (bases, end) = match kind {
            _ if !self.program.in_place => ([0, i, i + o], i + o),
            Some(CollectiveKind::Allgather | CollectiveKind::Gather) => ([own, 0, o], o),
            Some(CollectiveKind::ReduceScatter | CollectiveKind::Scatter) => ([0, own, i], i),
            _ => ([0, 0, i], i),
        };
        let mut cells: Vec<u64> =
            (0..end + rank.scratch_chunks as usize).map(|cell| mix(!(rank.rank as u64) << 20 ^ cell as u64)).collect();
        let gives = !matches!(kind, Some(CollectiveKind::Broadcast | CollectiveKind::Scatter)) || rank.rank == 0;
        if gives {
            for (cell, chunk) in cells[bases[0]..].iter_mut().take(i).zip(0..) {
                *cell = given(rank.rank, chunk);
            }
        }
        self.bases.push(bases);
        self.start.cells.push(cells);
    }

    /// Blocks, and a queue for each connection, which has one writer and one reader at most.
    fn add_blocks(&mut self) -> Result<(), &'static str> {
        let mut queues: BTreeMap<(u32, u32, u32), (usize, u32, u32)> = BTreeMap::new();
        for (position, rank) in self.program.ranks.iter().enumerate() {
            for block in &rank.thread_blocks {
                let mut attach = |name: (u32, u32, u32), is_sender: bool| {
                    let count = queues.len();
                    let entry = queues.entry(name).or_insert((count, 0, 0));
                    if is_sender {
                        entry.1 += 1
                    } else {
                        entry.2 += 1
                    }
                    entry.0
                };
                let sends_on = block.send.map(|to| attach((rank.rank, to, block.channel), true));
                let receives_on = block.receive.map(|from| attach((from, rank.rank, block.channel), false));
                let steps = block.steps.clone();
                self.blocks.push(Block { rank: position, id: block.id, sends_on, receives_on, steps });
            }
        }
        if queues.values().any(|&(_, senders, receivers)| senders > 1 || receivers > 1) {
            return Err("a queue with two writers or readers");
        }
        self.start.queues = vec![VecDeque::new(); queues.len()];
        self.start.blocks = vec![(0, 0, 0); self.blocks.len()];
        Ok(())
    }

    fn validate(&self) -> Result<(), &'static str> {
        for block in &self.blocks {
            let rank = &self.program.ranks[block.rank];
            let is_inside = |chunks: Chunks, count: u32| {
                let (size, has_it) = match chunks.buffer {
                    Buffer::Input => (rank.input_chunks, self.has(CollectiveKind::Scatter, rank.rank)),
                    Buffer::Output => {
                        let in_place = self.program.in_place;
                        let is_given = in_place || self.has(CollectiveKind::Reduce, rank.rank);
                        (rank.output_chunks, is_given && self.has(CollectiveKind::Gather, rank.rank))
                    }
                    Buffer::Scratch => (rank.scratch_chunks, true),
                };
                has_it && chunks.offset.is_some_and(|offset| offset + count <= size)
            };
            for (position, step) in block.steps.iter().enumerate() {
                let operation = step.operation;
                // The runtimes read no count of a nop.
                let is_data = operation != Operation::Nop;
                if operation.sends() && block.sends_on.is_none() || operation.receives() && block.receives_on.is_none()
                {
                    return Err("no peer");
                }
                if is_data && step.chunk_count == 0 {
                    return Err("cnt");
                }
                if operation.reads_source() && !is_inside(step.source, step.chunk_count)
                    || operation.writes_destination() && !is_inside(step.destination, step.chunk_count)
                {
                    return Err("outside a buffer");
                }
                let target =
                    self.blocks.iter().find(|other| other.rank == block.rank && Some(other.id) == step.wait_block);
                match (step.wait_block, step.wait_step, target) {
                    (None, None, _) => {}
                    (Some(id), Some(awaited), Some(target))
                        if id != block.id && (awaited as usize) < target.steps.len() => {}
                    _ => return Err("a wait for nothing"),
                }
                // The runtimes refuse or miscount such files.
                let next = block.steps.get(position + 1);
                if !is_data && (step.wait_block.is_none() || next.is_none_or(|next| next.wait_block.is_none())) {
                    return Err("a nop that lends nothing");
                }
            }
        }
        Ok(())
    }

    /// Whether only the root has the buffer of a collective, and this rank is not it.
    fn has(&self, kind: CollectiveKind, rank: u32) -> bool {
        self.program.purpose.collective() != Some(kind) || rank == 0
    }

    /// Cells a transfer reads or writes, with whether it writes.
    fn touched(&self, block: &Block, step: &Step, first: u32, count: u32) -> Vec<(usize, bool)> {
        let mut cells = Vec::new();
        for (is_used, chunks, writes) in [
            (step.operation.reads_source(), step.source, false),
            (step.operation.writes_destination(), step.destination, true),
        ] {
            if is_used {
                cells.extend((0..count).map(|chunk| (self.cell(block, chunks, first + chunk), writes)));
            }
        }
        cells
    }

    fn cell(&self, block: &Block, chunks: Chunks, chunk: u32) -> usize {
        let bases = self.bases[block.rank];
        let base = match chunks.buffer {
            Buffer::Input => bases[0],
            Buffer::Output => bases[1],
            Buffer::Scratch => bases[2],
        };
        base + (chunks.offset.unwrap_or(0) + chunk) as usize
    }

    fn find_shared(&mut self) {
        self.is_shared = self.start.cells.iter().map(|cells| vec![false; cells.len()]).collect();
        let mut users: BTreeMap<(usize, usize), (HashSet<usize>, bool)> = BTreeMap::new();
        for (number, block) in self.blocks.iter().enumerate() {
            for step in &block.steps {
                for (cell, writes) in self.touched(block, step, 0, step.chunk_count) {
                    let user = users.entry((block.rank, cell)).or_default();
                    user.0.insert(number);
                    user.1 |= writes;
                }
            }
        }
        for ((rank, cell), (blocks, is_written)) in users {
            self.is_shared[rank][cell] = is_written && blocks.len() > 1;
        }
    }

    /// Depth first over all states.
    ///
    /// A transfer that touches no cell another block conflicts on commutes with whatever others do, now and later, as a
    /// queue has one writer and one reader; taken first, it hides no outcome. Only the rest branches.
    fn search(&self) -> Verdict {
        let mut seen: HashSet<State> = HashSet::new();
        let mut stack = vec![self.start.clone()];
        while let Some(state) = stack.pop() {
            if seen.len() >= STATES_MAX {
                return Verdict::Undecided;
            }
            let able: Vec<usize> = (0..self.blocks.len()).filter(|&block| self.is_able(&state, block)).collect();
            if able.is_empty() {
                match self.judge_end(&state) {
                    Ok(()) => continue,
                    Err(reason) => return Verdict::Wrong(reason),
                }
            }
            let alone = able.iter().find(|&&block| self.is_private(&state, block));
            let chosen = alone.map_or_else(|| able.clone(), |&block| vec![block]);
            for block in chosen {
                let mut next = state.clone();
                if let Err(reason) = self.transfer(&mut next, block) {
                    return Verdict::Wrong(reason);
                }
                if alone.is_some() || seen.insert(next.clone()) {
                    stack.push(next);
                }
            }
        }
        Verdict::Right
    }

    fn count(&self, step: &Step, done: u32) -> u32 {
        (step.chunk_count - done).min(self.chunks_per_transfer)
    }

    fn is_private(&self, state: &State, number: usize) -> bool {
        let block = &self.blocks[number];
        let (next, done, _) = state.blocks[number];
        let step = &block.steps[next];
        let cells = self.touched(block, step, done, self.count(step, done));
        cells.into_iter().all(|(cell, _)| !self.is_shared[block.rank][cell])
    }

    fn is_able(&self, state: &State, number: usize) -> bool {
        let block = &self.blocks[number];
        let (next, _, _) = state.blocks[number];
        let Some(step) = block.steps.get(next) else { return false };
        if let (Some(id), Some(awaited)) = (step.wait_block, step.wait_step) {
            let target = self.blocks.iter().position(|other| other.rank == block.rank && other.id == id);
            if target.is_some_and(|target| state.blocks[target].2 <= awaited as usize) {
                return false;
            }
        }
        let receives = block.receives_on.filter(|_| step.operation.receives());
        let sends = block.sends_on.filter(|_| step.operation.sends());
        receives.is_none_or(|queue| !state.queues[queue].is_empty())
            && sends.is_none_or(|queue| state.queues[queue].len() < self.slots)
    }

    fn transfer(&self, state: &mut State, number: usize) -> Result<(), &'static str> {
        let block = &self.blocks[number];
        let (next, done, published) = state.blocks[number];
        let step = &block.steps[next];
        let count = self.count(step, done);
        let mut arrived = None;
        if let Some(queue) = block.receives_on.filter(|_| step.operation.receives()) {
            let values = state.queues[queue].pop_front().unwrap_or_default();
            if values.len() != count as usize {
                return Err("transfers of different sizes");
            }
            arrived = Some(values);
        }
        let read = |state: &State, chunks: Chunks| -> Vec<u64> {
            (0..count).map(|chunk| state.cells[block.rank][self.cell(block, chunks, done + chunk)]).collect()
        };
        let source = step.operation.reads_source().then(|| read(state, step.source));
        let local = (step.operation == Operation::Reduce).then(|| read(state, step.destination));
        let values = match (source, arrived.or(local)) {
            (Some(a), Some(b)) => a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b)).collect(),
            (Some(values), None) | (None, Some(values)) => values,
            (None, None) => Vec::new(),
        };
        if step.operation.writes_destination() {
            for (chunk, value) in (0..count).zip(&values) {
                state.cells[block.rank][self.cell(block, step.destination, done + chunk)] = *value;
            }
        }
        if let Some(queue) = block.sends_on.filter(|_| step.operation.sends()) {
            state.queues[queue].push_back(values);
        }
        let is_over = done + count == step.chunk_count;
        let published = if is_over && step.is_awaited { next + 1 } else { published };
        state.blocks[number] = if is_over { (next + 1, 0, published) } else { (next, done + count, published) };
        Ok(())
    }

    fn judge_end(&self, state: &State) -> Result<(), &'static str> {
        if self.blocks.iter().zip(&state.blocks).any(|(block, (next, _, _))| *next < block.steps.len()) {
            return Err("deadlock");
        }
        if state.queues.iter().any(|queue| !queue.is_empty()) {
            return Err("transfers left over");
        }
        let program = &self.program;
        let (input, output, share) = sizes(program).ok_or("sizes")?;
        let kind = program.purpose.collective().ok_or("sizes")?;
        let sum = |chunk| (0..program.rank_count).map(|rank| given(rank, chunk)).fold(0_u64, u64::wrapping_add);
        for (position, rank) in program.ranks.iter().enumerate() {
            let r = rank.rank;
            for chunk in 0..output {
                let expected = match kind {
                    CollectiveKind::Allgather => given(chunk / share, chunk % share),
                    CollectiveKind::AllToAll => given(chunk / share, r * share + chunk % share),
                    CollectiveKind::ReduceScatter => sum(r * share + chunk),
                    CollectiveKind::Allreduce => sum(chunk),
                    CollectiveKind::Broadcast => given(0, chunk),
                    CollectiveKind::Scatter => given(0, r * share + chunk),
                    CollectiveKind::Reduce if r == 0 => sum(chunk),
                    CollectiveKind::Gather if r == 0 => given(chunk / share, chunk % share),
                    _ => continue,
                };
                if state.cells[position][self.bases[position][1] + chunk as usize] != expected {
                    return Err("wrong output");
                }
            }
            let gives = !matches!(kind, CollectiveKind::Broadcast | CollectiveKind::Scatter) || r == 0;
            let is_kept =
                |chunk: u32| state.cells[position][self.bases[position][0] + chunk as usize] == given(r, chunk);
            if !program.in_place && gives && !(0..input).all(is_kept) {
                return Err("input changed");
            }
        }
        Ok(())
    }
}
