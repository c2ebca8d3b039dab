//! One rank of a program, step after step: which elements of its memory to send, to receive and to combine.
//!
//! It holds no data and moves none: whoever runs the rank does, and says when messages are complete and how long the
//! chunks of what arrived are.

use std::ops::Range;

use super::lengths::Lengths;
use super::memory::Memory;
use super::program::{Local, Program, RankProgram, Scope, Span};
use super::prove::sound_ranks;
use crate::msccl::Buffer;

/// One instance of a program at one rank.
///
/// Memory is one array of elements: input and output as the caller's are, sharing places where the program is in place,
/// then scratch of all instances.
#[derive(Clone, Debug)]
pub struct RankRun {
    rank: RankProgram,
    memory: Memory,
    lengths: Lengths,
    instance: u64,
    instances: u64,
    /// Elements of each chunk of this instance's scratch, as it was last written.
    scratch: Vec<u64>,
    step: usize,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Enter,
    Complete,
    Local,
    After,
}

/// What a rank does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// All these messages at once; [`RankRun::turn`] is to be asked again when all are complete.
    Exchange {
        /// Messages to send; those to the same rank in this order.
        sends: Vec<Outgoing>,
        /// Messages to receive; those from the same rank in this order.
        receives: Vec<Incoming>,
    },
    /// A wait until the same instance of all ranks is there.
    Barrier,
    /// Work within the memory, in this order.
    Local(Vec<Piece>),
    /// Nothing more.
    End,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The receiver.
    pub peer: u32,
    /// Elements of each chunk, some of which may be empty.
    pub chunks: Vec<Range<usize>>,
}

/// A message to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The sender.
    pub peer: u32,
    /// Where it goes.
    span: Span,
}

impl Incoming {
    /// Chunks it has.
    pub const fn chunk_count(&self) -> u32 {
        self.span.count
    }
}

/// A copy or reduction of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Whether the source is combined with what is there, or takes its place.
    pub is_reduction: bool,
    /// What is read.
    pub source: Range<usize>,
    /// What is written: as many elements, none of them read.
    pub destination: Range<usize>,
}

/// Why a rank cannot be run, or cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RunError {
    #[error("the program cannot be run: {problem}; verify the file first")]
    Malformed { problem: String },
    #[error("the program has no rank {rank} or instance {instance}")]
    NotThere { rank: u32, instance: u32 },
    #[error("its memory of {elements} elements cannot be addressed; use fewer")]
    TooLarge { elements: u128 },
    #[error("a message from rank {from} has {found} chunks instead of {expected}")]
    Count { from: u32, found: usize, expected: u32 },
    #[error("a chunk from rank {from} has {found} elements instead of {expected}")]
    Length { from: u32, found: u64, expected: u64 },
}

impl RankRun {
    /// One instance of a rank of a proven program, for messages of so many elements per share, or in all where the
    /// collective knows no shares.
    ///
    /// # Errors
    /// The program refers to what does not exist, the rank or instance does not, or memory is too large to address.
    /// O(instructions).
    pub fn new(program: &Program, rank: u32, elements: u64, instance: u32) -> Result<Self, RunError> {
        let ranks = sound_ranks(program).map_err(|problem| RunError::Malformed { problem: problem.to_string() })?;
        let own = ranks.get(rank as usize).filter(|_| instance < program.instances);
        let own = (*own.ok_or(RunError::NotThere { rank, instance })?).clone();
        let memory = Memory::new(program, &own);
        let scratch = vec![0; own.scratch_chunks as usize];
        let (instance, instances) = (u64::from(instance), u64::from(program.instances));
        let lengths = Lengths::new(program, elements);
        require_addressable(&memory, &lengths, instances)?;
        Ok(Self { rank: own, memory, lengths, instance, instances, scratch, step: 0, phase: Phase::Enter })
    }

    /// The same rank and instance from its start, for messages of another size, without a look at the other ranks.
    ///
    /// # Errors
    /// Memory is too large to address. O(instructions of the rank).
    pub fn for_elements(&self, elements: u64) -> Result<Self, RunError> {
        let lengths = self.lengths.for_elements(elements);
        require_addressable(&self.memory, &lengths, self.instances)?;
        let scratch = vec![0; self.scratch.len()];
        Ok(Self { lengths, scratch, step: 0, phase: Phase::Enter, ..self.clone() })
    }

    /// Elements of the memory of the rank, all instances together.
    pub fn memory_elements(&self) -> usize {
        let scratch = self.scratch.len() as u64 * self.scratch_stride() * self.instances;
        index(self.scratch_start() + scratch)
    }

    /// Elements of the caller's input.
    pub fn input(&self) -> Range<usize> {
        self.buffer(Buffer::Input)
    }

    /// Elements of the caller's output.
    pub fn output(&self) -> Range<usize> {
        self.buffer(Buffer::Output)
    }

    fn buffer(&self, buffer: Buffer) -> Range<usize> {
        let (first, chunks) = self.memory.place(buffer);
        index(self.lengths.start(first))..index(self.lengths.start(first + chunks))
    }

    fn scratch_start(&self) -> u64 {
        self.lengths.start(self.memory.place(Buffer::Scratch).0)
    }

    /// Elements that a chunk of an instance's scratch has room for.
    fn scratch_stride(&self) -> u64 {
        self.lengths.longest().div_ceil(self.instances)
    }

    /// What comes next. Every exchange must be complete, and every piece of local work done, before the next question.
    pub fn turn(&mut self) -> Turn {
        loop {
            let Some(step) = self.rank.steps.get(self.step) else { return Turn::End };
            match (self.phase, &step.completion) {
                (Phase::Enter, _) => {
                    self.phase = Phase::Complete;
                    if step.sends.is_empty() && step.receives.is_empty() {
                        continue;
                    }
                    let sends = step
                        .sends
                        .iter()
                        .map(|send| Outgoing { peer: send.peer, chunks: self.chunks(send.span).collect() });
                    let receives = step.receives.iter().map(|own| Incoming { peer: own.peer, span: own.span });
                    return Turn::Exchange { sends: sends.collect(), receives: receives.collect() };
                }
                (_, None) => self.begin(),
                (Phase::Complete, Some(completion)) => {
                    self.phase = Phase::Local;
                    if completion.scope == Scope::All {
                        return Turn::Barrier;
                    }
                }
                (Phase::Local, Some(completion)) => {
                    self.phase = Phase::After;
                    if !completion.locals.is_empty() {
                        let locals = completion.locals.clone();
                        return Turn::Local(locals.into_iter().flat_map(|local| self.pieces(local)).collect());
                    }
                }
                (Phase::After, Some(completion)) => {
                    let is_barrier = completion.after == Some(Scope::All);
                    self.begin();
                    if is_barrier {
                        return Turn::Barrier;
                    }
                }
            }
        }
    }

    fn begin(&mut self) {
        (self.step, self.phase) = (self.step + 1, Phase::Enter);
    }

    /// Where the chunks of a message go, now that their lengths are known.
    ///
    /// # Errors
    /// Another number of chunks, or a chunk that does not fit: exactly into the caller's buffers, at most into scratch.
    pub fn land(&mut self, message: &Incoming, lengths: &[u64]) -> Result<Vec<Range<usize>>, RunError> {
        let (from, Span { buffer, first, count }) = (message.peer, message.span);
        if lengths.len() != count as usize {
            return Err(RunError::Count { from, found: lengths.len(), expected: count });
        }
        for (chunk, &found) in (first as usize..).zip(lengths) {
            let expected =
                if buffer == Buffer::Scratch { self.scratch_stride() } else { self.length(message.span, chunk) };
            if found > expected || (found < expected && buffer != Buffer::Scratch) {
                return Err(RunError::Length { from, found, expected });
            }
            if let Some(length) = self.scratch.get_mut(chunk).filter(|_| buffer == Buffer::Scratch) {
                *length = found;
            }
        }
        Ok(self.chunks(message.span).collect())
    }

    /// Elements of this instance's part of chunks of a share, such as those that [`arrivals`](super::arrivals) names.
    pub fn lengths_of(&self, chunks: &[u32]) -> Vec<u64> {
        let length = |&chunk: &u32| {
            let (start, end) = self.part(self.lengths.start(chunk.into()), self.lengths.start(u64::from(chunk) + 1));
            end - start
        };
        chunks.iter().map(length).collect()
    }

    /// Elements of a chunk of the caller's buffers that are this instance's.
    fn length(&self, span: Span, chunk: usize) -> u64 {
        let cell = self.memory.place(span.buffer).0 + chunk as u64;
        let (start, end) = self.part(self.lengths.start(cell), self.lengths.start(cell + 1));
        end - start
    }

    /// This instance's part of some elements in a row.
    fn part(&self, start: u64, end: u64) -> (u64, u64) {
        let at = |instance: u64| {
            let within = u128::from(instance) * u128::from(end - start) / u128::from(self.instances);
            start + u64::try_from(within).expect("a part of a length")
        };
        (at(self.instance), at(self.instance + 1))
    }

    /// Elements of each chunk of a span.
    fn chunks(&self, span: Span) -> impl Iterator<Item = Range<usize>> + '_ {
        (span.first..span.first + span.count).map(move |chunk| {
            let (start, end) = match span.buffer {
                Buffer::Scratch => {
                    let own = self.scratch_start() + self.instance * self.scratch.len() as u64 * self.scratch_stride();
                    let start = own + u64::from(chunk) * self.scratch_stride();
                    (start, start + self.scratch.get(chunk as usize).copied().unwrap_or(0))
                }
                Buffer::Input | Buffer::Output => {
                    let cell = self.memory.place(span.buffer).0 + u64::from(chunk);
                    self.part(self.lengths.start(cell), self.lengths.start(cell + 1))
                }
            };
            index(start)..index(end)
        })
    }

    /// Work on each chunk; copies into scratch give it their length.
    fn pieces(&mut self, local: Local) -> Vec<Piece> {
        let sources: Vec<Range<usize>> = self.chunks(local.source).collect();
        if local.destination.buffer == Buffer::Scratch && !local.is_reduction {
            for (chunk, source) in (local.destination.first as usize..).zip(&sources) {
                if let Some(length) = self.scratch.get_mut(chunk) {
                    *length = source.len() as u64;
                }
            }
        }
        let pieces = sources.into_iter().zip(self.chunks(local.destination)).map(|(source, destination)| Piece {
            is_reduction: local.is_reduction,
            source,
            destination,
        });
        pieces.filter(|piece| !piece.source.is_empty()).collect()
    }
}

fn require_addressable(memory: &Memory, lengths: &Lengths, instances: u64) -> Result<(), RunError> {
    // A bound on all sums of places; the last factor is more than any memory has shares of.
    let most = (u128::from(memory.cell_count()) + 1) * (u128::from(lengths.longest()) + 1) * u128::from(instances);
    if most > u128::from(u64::MAX >> 8) || usize::try_from(most).is_err() {
        return Err(RunError::TooLarge { elements: most });
    }
    Ok(())
}

/// An element that was found to be addressable when the run was made.
fn index(element: u64) -> usize {
    usize::try_from(element).expect("the size of memory was checked")
}

#[cfg(test)]
mod tests;
