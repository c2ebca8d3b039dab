//! A slow and simple judge of data races, the reference for the proof's.

use std::collections::HashMap;

use canopy_plan::{Buffer, Chunks, Program};
use canopy_schedule::CollectiveKind;

/// A rank's position in the file, and a chunk of one of its memories.
type Cell = (usize, u8, u32);

/// A rank, the position of a block in it, a step, and a chunk of the step.
type Event = (usize, usize, usize, u32);

/// Two accesses to one cell of a rank's memory, one writing, that no chain of program order, waits and messages
/// orders, with every chunk a transfer of its own. `None` when there are none.
///
/// Searches the whole graph from every event: for small programs with matching connections.
pub(crate) fn unordered_conflict(program: &Program) -> Option<(Event, Event)> {
    let graph = EventGraph::new(program);
    let reach: Vec<Vec<bool>> = (0..graph.events.len()).map(|event| graph.reached_from(event)).collect();
    let mut by_cell: HashMap<Cell, Vec<(usize, bool)>> = HashMap::new();
    for (number, &(rank, block, step, chunk)) in graph.events.iter().enumerate() {
        let step = program.ranks[rank].thread_blocks[block].steps[step];
        let mut touch = |chunks: Chunks, is_write| {
            if let Some(first) = chunks.offset {
                let (memory, cell) = cell(program, program.ranks[rank].rank, chunks.buffer, first + chunk);
                by_cell.entry((rank, memory, cell)).or_default().push((number, is_write));
            }
        };
        if step.operation.reads_source() {
            touch(step.source, false);
        }
        if step.operation.writes_destination() {
            touch(step.destination, true);
        }
    }
    let mut conflicts = Vec::new();
    for accesses in by_cell.values() {
        for (position, &(a, a_writes)) in accesses.iter().enumerate() {
            for &(b, b_writes) in &accesses[position + 1..] {
                if (a_writes || b_writes) && a != b && !reach[a][b] && !reach[b][a] {
                    conflicts.push((graph.events[a.min(b)], graph.events[a.max(b)]));
                }
            }
        }
    }
    conflicts.into_iter().min()
}

/// Memory and place of a buffer's chunk; the same for both names of an aliased one.
fn cell(program: &Program, rank: u32, buffer: Buffer, chunk: u32) -> (u8, u32) {
    let own = rank * (program.chunk_count / program.rank_count);
    match (buffer, program.in_place, program.purpose.collective()) {
        (Buffer::Scratch, ..) => (2, chunk),
        (Buffer::Input, false, _) => (0, chunk),
        (Buffer::Output, false, _) => (1, chunk),
        (Buffer::Input, true, Some(CollectiveKind::Allgather)) => (0, own + chunk),
        (Buffer::Output, true, Some(CollectiveKind::ReduceScatter)) => (0, own + chunk),
        (_, true, _) => (0, chunk),
    }
}

struct EventGraph {
    events: Vec<Event>,
    next: Vec<Vec<usize>>,
}

impl EventGraph {
    fn new(program: &Program) -> Self {
        let mut events = Vec::new();
        let mut number = HashMap::new();
        for (rank, of_rank) in program.ranks.iter().enumerate() {
            for (block, of_block) in of_rank.thread_blocks.iter().enumerate() {
                for (step, of_step) in of_block.steps.iter().enumerate() {
                    for chunk in 0..of_step.chunk_count.max(1) {
                        number.insert((rank, block, step, chunk), events.len());
                        events.push((rank, block, step, chunk));
                    }
                }
            }
        }
        let mut graph = Self { next: vec![Vec::new(); events.len()], events };
        let last = |rank: usize, block: usize, step: usize| {
            let count = program.ranks[rank].thread_blocks[block].steps[step].chunk_count.max(1);
            number[&(rank, block, step, count - 1)]
        };
        let mut sent: HashMap<(u32, u32, u32), Vec<usize>> = HashMap::new();
        let mut received: HashMap<(u32, u32, u32), Vec<usize>> = HashMap::new();
        for event in 0..graph.events.len() {
            let (rank, block, step, chunk) = graph.events[event];
            let of_rank = &program.ranks[rank];
            let of_block = &of_rank.thread_blocks[block];
            let of_step = of_block.steps[step];
            if chunk > 0 || step > 0 {
                graph.next[event - 1].push(event);
            }
            if let (0, Some(id), Some(awaited)) = (chunk, of_step.wait_block, of_step.wait_step) {
                let awaited_block = of_rank.thread_blocks.iter().position(|other| other.id == id).unwrap();
                graph.next[last(rank, awaited_block, awaited as usize)].push(event);
            }
            if let (true, Some(to)) = (of_step.operation.sends(), of_block.send) {
                sent.entry((of_rank.rank, to, of_block.channel)).or_default().push(event);
            }
            if let (true, Some(from)) = (of_step.operation.receives(), of_block.receive) {
                received.entry((from, of_rank.rank, of_block.channel)).or_default().push(event);
            }
        }
        for (connection, sends) in &sent {
            for (&send, &receive) in sends.iter().zip(&received[connection]) {
                graph.next[send].push(receive);
            }
        }
        graph
    }

    fn reached_from(&self, start: usize) -> Vec<bool> {
        let mut seen = vec![false; self.events.len()];
        let mut stack = vec![start];
        while let Some(event) = stack.pop() {
            for &next in &self.next[event] {
                if !std::mem::replace(&mut seen[next], true) {
                    stack.push(next);
                }
            }
        }
        seen
    }
}
