//! Runs a program on real bytes, in a random but reproducible order of events.
//!
//! A second opinion beside the proof: it knows nothing of why a program should work. It shows one execution per seed,
//! finds deadlocks and wrong results of that execution, and never a proof that there are none.

mod data;
mod machine;

use data::Data;
use machine::Machine;

use super::program::Program;
use super::prove::{Place, sound_ranks};
use crate::emulate::{ElementType, Operator};
use crate::oneccl::lengths::Lengths;
use crate::oneccl::memory::{Memory, share_chunks};

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
    #[error("the buffers of all ranks need {elements} elements, over the limit of {limit}; use fewer")]
    TooLarge { elements: u64, limit: u64 },
    #[error("0 elements show nothing; use at least 1")]
    NoElements,
    #[error("deadlock with {} ranks waiting: {}", blocked.len(), list(blocked))]
    Deadlock { blocked: Vec<Blocked> },
    #[error("{place} receives {found} chunks from rank {from} where it expects {expected}")]
    MessageSize { place: Place, from: u32, found: usize, expected: usize },
    #[error("{place} puts {found} elements where {expected} belong")]
    Length { place: Place, found: usize, expected: usize },
    #[error("rank {to} never receives {count} of the messages from rank {from}")]
    LeftOver { from: u32, to: u32, count: usize },
    #[error("element {element} of the output of rank {rank} is wrong")]
    WrongOutput { rank: u32, element: u64 },
    #[error("element {element} of the input of rank {rank} has been overwritten")]
    InputChanged { rank: u32, element: u64 },
    #[error("stopped on request before the run had ended")]
    Stopped,
}

/// A step that can never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The step.
    pub place: Place,
    /// What it waits for.
    pub reason: &'static str,
}

/// The first few of them, for a message.
fn list(blocked: &[Blocked]) -> String {
    let shown: Vec<String> = blocked.iter().take(8).map(|step| format!("{} {}", step.place, step.reason)).collect();
    shown.join(", ")
}

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
    stop: &(dyn Fn() -> bool + Sync),
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
    let data = Data::new(program, options, lengths);
    let mut machine = Machine::new(&data, &ranks, &memories, options);
    machine.run(stop)?;
    let elements_compared = data.check(&memories, machine.cells(), stop)?;
    Ok(machine.report(elements_compared))
}

#[cfg(test)]
mod tests;
