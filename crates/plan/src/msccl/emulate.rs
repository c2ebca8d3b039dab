//! Runs a program on real bytes, with bounded queues and a random but reproducible interleaving.
//!
//! A second opinion beside the proof: it knows nothing of why a program should work. It shows one execution per
//! seed, finds deadlocks and wrong results of that execution, and never a proof that there are none.

mod machine;

use std::ops::Range;

use canopy_topology::Rank;

use machine::Machine;

use crate::elements::{Data, DataFault, ElementType, Operator, Random};
use crate::msccl::program::{Buffer, Memory, Program, expected_chunks, share_chunks};
use crate::msccl::{Place, Profile};
use crate::promise::Promises;
use crate::proof::{Stop, first_blocked};

/// Most bytes of all ranks' buffers together.
const BYTES_MAX: u64 = 1 << 28;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmulateOptions {
    /// Whose queues and transfer sizes hold.
    pub profile: Profile,
    /// Seed of data and interleaving.
    pub seed: u64,
    /// Transfers in flight per connection; `None`: the protocol's own number.
    pub slots: Option<u32>,
    /// Chunks per transfer; `None`: what the largest message of the file allows.
    pub chunks_per_transfer: Option<u32>,
    /// Elements in each chunk, ≥ 1.
    pub elements_per_chunk: u32,
    /// Type of the elements.
    pub element: ElementType,
    /// How reductions combine elements.
    pub operator: Operator,
}

impl EmulateOptions {
    /// The runtime's own queues at the largest message, two elements of 64 bits per chunk, wrapping sums.
    pub const fn standard(profile: Profile, seed: u64) -> Self {
        Self {
            profile,
            seed,
            slots: None,
            chunks_per_transfer: None,
            elements_per_chunk: 2,
            element: ElementType::U64,
            operator: Operator::Sum,
        }
    }

    /// The runs that a program made here must survive: they differ in data, interleaving, type, operator and in how
    /// steps are cut into transfers.
    ///
    /// A sum finds contributions that are missing or counted twice; a product depends on all bits of odd factors; a
    /// maximum of signed bytes needs the order of numbers, not of bits. The first is the largest message with the
    /// runtime's own queues; the second the same with two slots in every queue, whatever the protocol has, as lowering
    /// relies on no number of them; the third a small message, whose steps are one transfer each.
    pub const fn various(profile: Profile, seed: u64) -> [Self; 3] {
        let first = Self::standard(profile, seed);
        let (element, operator) = (ElementType::I32, Operator::Product);
        let narrow = Self { seed: seed.wrapping_add(1), slots: Some(2), element, operator, ..first };
        let (element, operator) = (ElementType::I8, Operator::Max);
        // No step moves more chunks than the runtime's table has room for.
        let at_once = Some(profile.limits().chunks_per_step);
        let small = Self { seed: seed.wrapping_add(2), chunks_per_transfer: at_once, element, operator, ..first };
        [first, narrow, small]
    }
}

/// What a successful run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmulationReport {
    /// Steps completed: all there are.
    pub steps: u64,
    /// Transfers sent over connections.
    pub transfers: u64,
    /// Chunks sent over connections.
    pub chunks: u64,
    /// Output elements compared with the expected ones.
    pub elements_compared: u64,
}

/// Why a run failed. The messages name the place and what stood in the way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum EmulationError {
    #[error("the program cannot be run: {what} at {place}; verify the file first")]
    Malformed { place: Place, what: &'static str },
    #[error("the buffers of all ranks take {bytes} bytes, over the limit of {limit}; use fewer elements per chunk")]
    TooLarge { bytes: u64, limit: u64 },
    #[error("{option} is 0; use at least 1")]
    ZeroOption { option: &'static str },
    #[error("deadlock: {} blocks wait: {}", blocked.len(), first_blocked(blocked))]
    Deadlock { blocked: Vec<Blocked> },
    #[error("{place} receives a transfer of {found} chunks instead of {expected}")]
    TransferSize { place: Place, found: usize, expected: usize },
    #[error("rank {to} never receives {count} of the transfers from rank {from} on channel {channel}")]
    LeftOver { from: u32, to: u32, channel: u32, count: usize },
    #[error("output chunk {chunk} of rank {rank} is wrong")]
    WrongOutput { rank: u32, chunk: u64 },
    #[error("{place} accesses memory of rank {rank}, which has not started or has ended")]
    OutsideLaunch { place: Place, rank: u32 },
    #[error("stopped on request before the run ended")]
    Stopped,
    #[error("the out-of-place collective overwrites input chunk {chunk} of rank {rank}")]
    InputChanged { rank: u32, chunk: u64 },
}

/// A step that can never run.
pub type Blocked = crate::proof::Blocked<Place>;

/// Runs a program once; see [`emulate_until`], which it calls without ever stopping.
///
/// # Errors
/// As there, but never [`EmulationError::Stopped`].
pub fn emulate(program: &Program, options: &EmulateOptions) -> Result<EmulationReport, EmulationError> {
    emulate_until(program, options, &|| false)
}

/// Runs a program once and compares every rank's output with the expected one; of a program whose purpose promises
/// no result, only that it ends is seen.
///
/// Buffers that the collective does not fill start with garbage, so reading them shows.
///
/// # Errors
/// The program refers to what does not exist, needs too much memory, deadlocks, or gives a wrong result; `stop`, asked
/// every few microseconds of work, returned true.
///
/// O(chunks moved · elements). Never panics.
pub fn emulate_until(
    program: &Program,
    options: &EmulateOptions,
    stop: Stop<'_>,
) -> Result<EmulationReport, EmulationError> {
    let zero = |option| EmulationError::ZeroOption { option };
    (options.elements_per_chunk > 0).then_some(()).ok_or_else(|| zero("elements per chunk"))?;
    (options.slots != Some(0)).then_some(()).ok_or_else(|| zero("slots"))?;
    (options.chunks_per_transfer != Some(0)).then_some(()).ok_or_else(|| zero("chunks per transfer"))?;
    machine::validate(program)?;
    let memories: Vec<Memory> = program.ranks.iter().map(|rank| Memory::new(program, rank)).collect();
    let cells: u64 = memories.iter().map(Memory::cell_count).sum();
    let bytes = cells.saturating_mul(u64::from(options.elements_per_chunk)).saturating_mul(8);
    if bytes > BYTES_MAX {
        return Err(EmulationError::TooLarge { bytes, limit: BYTES_MAX });
    }
    let EmulateOptions { seed, element, operator, .. } = *options;
    let elements = u64::from(options.elements_per_chunk);
    let promises =
        Promises::of(program.purpose.collective(), Rank::new(0), u64::from(share_chunks(program)) * elements);
    let inputs = u64::from(program.chunk_count) * elements;
    let data = Data::new(
        Random { seed, element, operator, chunk_elements: elements },
        program.rank_count,
        promises,
        inputs,
        stop,
    );
    let data = data.map_err(|fault| wrong(0, fault, elements))?;
    // Places of a buffer of so many chunks in a rank's memory.
    let range = |memory: &Memory, buffer, chunks: u32| {
        let start = memory.cell(buffer, 0) * elements;
        start..start + u64::from(chunks) * elements
    };
    let mut cells = Vec::with_capacity(memories.len());
    for (rank, memory) in program.ranks.iter().zip(&memories) {
        let input = range(memory, Buffer::Input, expected_chunks(program, rank).0);
        let own = data.memory(rank.rank, memory.cell_count() * elements, input);
        cells.push(own.map_err(|fault| wrong(rank.rank, fault, elements))?);
    }
    let mut machine = Machine::new(program, options, &memories, cells);
    machine.run(stop)?;
    let keeps_input = !program.in_place && program.purpose.collective().is_some();
    let mut elements_compared = 0;
    for ((rank, memory), cells) in program.ranks.iter().zip(&memories).zip(machine.cells()) {
        let (input, output) = expected_chunks(program, rank);
        let part = |range: Range<u64>| {
            let index = |place| usize::try_from(place).expect("the size of memory was checked");
            cells[index(range.start)..index(range.end)].iter().copied()
        };
        let output = part(range(memory, Buffer::Output, output));
        let input = keeps_input.then(|| part(range(memory, Buffer::Input, input)));
        let compared = data.check(rank.rank, output, input);
        elements_compared += compared.map_err(|fault| wrong(rank.rank, fault, elements))?;
    }
    Ok(machine.report(elements_compared))
}

/// What is wrong with the data of a rank whose chunks have so many elements.
pub(crate) fn wrong(rank: u32, fault: DataFault, elements: u64) -> EmulationError {
    match fault {
        DataFault::Stopped => EmulationError::Stopped,
        DataFault::Output(place) => EmulationError::WrongOutput { rank, chunk: place / elements },
        DataFault::Input(place) => EmulationError::InputChanged { rank, chunk: place / elements },
    }
}

#[cfg(test)]
mod tests;
