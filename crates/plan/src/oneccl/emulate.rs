//! Runs a program on real bytes, in a random but reproducible order of events.
//!
//! A second opinion beside the proof: it knows nothing of why a program should work. It shows one execution per seed,
//! finds deadlocks and wrong results of that execution, and never a proof that there are none.

mod machine;

use std::ops::Range;

use machine::{Chunk, Machine};

use super::program::Program;
use super::prove::{Place, sound_ranks};
use crate::elements::{Data, DataFault, ElementType, Operator, Random};
use crate::msccl::Buffer;
use crate::oneccl::lengths::Lengths;
use crate::oneccl::memory::{Memory, share_chunks};
use crate::promise::Promises;
use crate::proof::{Stop, first_blocked};

/// Most elements of all ranks' buffers together, and so of chunks: some 60 bytes each where chunks have one.
const ELEMENTS_MAX: u64 = 1 << 23;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmulateOptions {
    /// Seed of data and order.
    pub seed: u64,
    /// Elements of each share; of the message, where there are no shares. They need not be a multiple of the chunks.
    pub elements: u64,
    /// Type of the elements.
    pub element: ElementType,
    /// How reductions combine elements.
    pub operator: Operator,
    /// Sends are complete when they are posted, as those of short messages may be; else when they are received.
    pub is_eager: bool,
}

impl EmulateOptions {
    /// The runs that a program made here must survive: they differ in data, order, type, operator, lengths of chunks and
    /// in when sends are complete.
    ///
    /// A sum finds contributions that are missing or counted twice; a product depends on all bits of odd factors; a
    /// maximum of signed bytes needs the order of numbers, not of bits. The first has chunks of two lengths, the second
    /// of one, the third has empty ones where there are several in a share.
    pub fn various(program: &Program, seed: u64) -> [Self; 3] {
        let chunks = u64::from(share_chunks(program));
        let (element, operator, is_eager) = (ElementType::U64, Operator::Sum, false);
        let first = Self { seed, elements: chunks + chunks.div_ceil(2), element, operator, is_eager };
        let (element, operator) = (ElementType::I32, Operator::Product);
        let seed = seed.wrapping_add(1);
        let second = Self { seed, elements: chunks, element, operator, is_eager: true };
        let (element, operator) = (ElementType::I8, Operator::Max);
        let seed = seed.wrapping_add(1);
        let third = Self { seed, elements: (chunks / 2).max(1), element, operator, is_eager: false };
        [first, second, third]
    }
}

/// What a successful run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmulationReport {
    /// Messages sent.
    pub messages: u64,
    /// Chunks sent.
    pub chunks: u64,
    /// Output elements compared with the expected ones.
    pub elements_compared: u64,
}

/// Why a run failed. The messages name the place and what stood in the way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum EmulationError {
    #[error("the program cannot be run: {problem}; verify the file first")]
    Malformed { problem: String },
    #[error("the buffers of all ranks take {elements} elements, over the limit of {limit}; use fewer")]
    TooLarge { elements: u64, limit: u64 },
    #[error("the number of elements is 0; use at least 1")]
    NoElements,
    #[error("deadlock: {} ranks wait: {}", blocked.len(), first_blocked(blocked))]
    Deadlock { blocked: Vec<Blocked> },
    #[error("{place} receives {found} chunks from rank {from} instead of {expected}")]
    MessageSize { place: Place, from: u32, found: usize, expected: usize },
    #[error("{place} puts {found} elements in place of {expected}")]
    Length { place: Place, found: usize, expected: usize },
    #[error("rank {to} never receives {count} of the messages from rank {from}")]
    LeftOver { from: u32, to: u32, count: usize },
    #[error("element {element} of the output of rank {rank} is wrong")]
    WrongOutput { rank: u32, element: u64 },
    #[error("the run overwrites element {element} of the input of rank {rank}")]
    InputChanged { rank: u32, element: u64 },
    #[error("stopped on request before the run ended")]
    Stopped,
}

/// A step that can never end.
pub type Blocked = crate::proof::Blocked<Place>;

/// Runs a program once; see [`emulate_until`], which it calls without ever stopping.
///
/// # Errors
/// As there, but never [`EmulationError::Stopped`].
pub fn emulate(program: &Program, options: &EmulateOptions) -> Result<EmulationReport, EmulationError> {
    emulate_until(program, options, &|| false)
}

/// Runs a program once and compares every rank's output with the expected one, and inputs where they must be unchanged.
///
/// Buffers that the collective does not fill start with garbage, so reading them shows. One instance is run: the others
/// do the same to other elements.
///
/// # Errors
/// The program refers to what does not exist, needs too much memory, deadlocks, or gives a wrong result; `stop`, asked
/// every few microseconds of work, returned true.
///
/// O(elements moved + chunks). Never panics.
pub fn emulate_until(
    program: &Program,
    options: &EmulateOptions,
    stop: Stop<'_>,
) -> Result<EmulationReport, EmulationError> {
    if options.elements == 0 {
        return Err(EmulationError::NoElements);
    }
    let ranks = sound_ranks(program).map_err(|problem| EmulationError::Malformed { problem: problem.to_string() })?;
    let lengths = Lengths::new(program, options.elements);
    let memories: Vec<Memory> = ranks.iter().map(|rank| Memory::new(program, rank)).collect();
    let cells = memories.iter().map(Memory::cell_count).fold(0, u64::saturating_add);
    let elements = cells.saturating_mul(lengths.longest());
    if elements > ELEMENTS_MAX {
        return Err(EmulationError::TooLarge { elements, limit: ELEMENTS_MAX });
    }
    let EmulateOptions { seed, elements, element, operator, .. } = *options;
    let (random, promises) =
        (Random { seed, element, operator, chunk_elements: 0 }, Promises::new(program.collective, elements));
    let shares = if program.collective.kind().has_shares() { u64::from(program.rank_count) } else { 1 };
    let data = Data::new(random, program.rank_count, promises, shares * elements, stop);
    let data = data.map_err(|fault| wrong(0, fault))?;
    let cells = (0..).zip(&memories).map(|(rank, memory)| initial(random, lengths, rank, memory)).collect();
    let mut machine = Machine::new(random, &ranks, &memories, cells, options.is_eager);
    machine.run(stop)?;
    let mut elements_compared = 0;
    for ((rank, memory), cells) in (0..).zip(&memories).zip(machine.cells()) {
        let part = |buffer| cells[indices(memory, buffer)].iter().flatten().copied();
        let keeps_input = !(memory.is_free(Buffer::Input) || program.in_place);
        let compared = data.check(rank, part(Buffer::Output), keeps_input.then(|| part(Buffer::Input)));
        elements_compared += compared.map_err(|fault| wrong(rank, fault))?;
    }
    Ok(machine.report(elements_compared))
}

/// Memory of a rank at the start: its input, and garbage everywhere else. Chunks of the caller's buffers have the lengths
/// of their places, chunks of scratch that of the longest.
fn initial(random: Random, lengths: Lengths, rank: u32, memory: &Memory) -> Vec<Chunk> {
    let cells = usize::try_from(memory.cell_count()).expect("the size of memory was checked");
    let mut values: Vec<Chunk> = vec![Vec::new(); cells];
    for buffer in [Buffer::Scratch, Buffer::Output, Buffer::Input] {
        for (offset, cell) in (0..).zip(indices(memory, buffer)) {
            let places = lengths.start(offset)..lengths.start(offset + 1);
            values[cell] = match buffer {
                Buffer::Scratch => (0..lengths.longest()).map(|place| random.garbage(rank, place)).collect(),
                Buffer::Output => places.map(|place| random.garbage(rank, place)).collect(),
                Buffer::Input => places.map(|place| random.input(rank, place)).collect(),
            };
        }
    }
    values
}

/// Cells of a buffer.
fn indices(memory: &Memory, buffer: Buffer) -> Range<usize> {
    let (base, chunks) = memory.place(buffer);
    let index = |cell| usize::try_from(cell).expect("the size of memory was checked");
    index(base)..index(base + chunks)
}

fn wrong(rank: u32, fault: DataFault) -> EmulationError {
    match fault {
        DataFault::Stopped => EmulationError::Stopped,
        DataFault::Output(element) => EmulationError::WrongOutput { rank, element },
        DataFault::Input(element) => EmulationError::InputChanged { rank, element },
    }
}

#[cfg(test)]
mod tests;
