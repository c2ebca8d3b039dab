//! Which chunk of a share each arriving chunk is, from which its length follows for every size of a message.
//!
//! A message into scratch does not say how long its chunks are. An executor that sends no lengths along asks here once
//! for each plan, and [`RankRun::lengths_of`](super::RankRun::lengths_of) for each size.

use std::collections::{BTreeMap, VecDeque};

use super::memory::{Memory, share_chunks};
use super::program::{Program, RankProgram, Span};
use super::prove::sound_ranks;
use super::rank_run::RunError;
use crate::msccl::Buffer;

/// For each receive of a rank, in the order of its steps: the index within a share of each chunk that arrives, or within
/// the message where the collective knows no shares.
///
/// It follows the chunks of all ranks in any order of events: what a rank holds after a step depends on what it received
/// alone.
///
/// # Errors
/// The structure of the program is wrong, it stops before its end, or there is no such rank; a proof would have said so.
/// O(instructions + chunks moved).
pub fn arrivals(program: &Program, rank: u32) -> Result<Vec<Vec<u32>>, RunError> {
    let ranks = sound_ranks(program).map_err(|problem| RunError::Malformed { problem: problem.to_string() })?;
    let mut holders: Vec<Holder<'_>> = ranks.into_iter().map(|own| Holder::new(program, own)).collect();
    if holders.get(rank as usize).is_none() {
        return Err(RunError::NotThere { rank, instance: 0 });
    }
    let mut lines = Lines::default();
    let mut ready: VecDeque<u32> = (0..program.rank_count).collect();
    while let Some(next) = ready.pop_front() {
        if let Some(holder) = holders.get_mut(next as usize) {
            holder.advance(next, &mut lines, &mut ready);
        }
    }
    if let Some(stuck) = holders.iter().position(|holder| holder.step < holder.program.steps.len()) {
        return Err(RunError::Malformed { problem: format!("rank {stuck} waits for a message that never comes") });
    }
    Ok(holders.into_iter().nth(rank as usize).map(|holder| holder.arrived).unwrap_or_default())
}

/// Messages under way, by sender and receiver, in their order.
type Lines = BTreeMap<(u32, u32), VecDeque<Vec<u32>>>;

/// What one rank holds.
struct Holder<'p> {
    program: &'p RankProgram,
    memory: Memory,
    share_chunks: u32,
    /// What is in each chunk of scratch.
    scratch: Vec<u32>,
    step: usize,
    /// Receives of the step that are complete; `None` until its messages are posted.
    received: Option<usize>,
    arrived: Vec<Vec<u32>>,
}

impl<'p> Holder<'p> {
    fn new(program: &Program, own: &'p RankProgram) -> Self {
        Self {
            program: own,
            memory: Memory::new(program, own),
            share_chunks: share_chunks(program).max(1),
            scratch: vec![0; own.scratch_chunks as usize],
            step: 0,
            received: None,
            arrived: Vec::new(),
        }
    }

    /// Goes on until a message is missing or nothing is left.
    fn advance(&mut self, rank: u32, lines: &mut Lines, ready: &mut VecDeque<u32>) {
        let program = self.program;
        while let Some(step) = program.steps.get(self.step) {
            let mut received = self.received.unwrap_or_else(|| {
                for send in &step.sends {
                    lines.entry((rank, send.peer)).or_default().push_back(self.chunks(send.span));
                    ready.push_back(send.peer);
                }
                0
            });
            while let Some(receive) = step.receives.get(received) {
                let Some(chunks) = lines.get_mut(&(receive.peer, rank)).and_then(VecDeque::pop_front) else {
                    self.received = Some(received);
                    return;
                };
                self.store(receive.span, &chunks);
                self.arrived.push(chunks);
                received += 1;
            }
            for local in step.completion.iter().flat_map(|completion| &completion.locals) {
                if !local.is_reduction {
                    let chunks = self.chunks(local.source);
                    self.store(local.destination, &chunks);
                }
            }
            (self.step, self.received) = (self.step + 1, None);
        }
    }

    /// What the chunks of a span are.
    fn chunks(&self, span: Span) -> Vec<u32> {
        if span.buffer == Buffer::Scratch {
            let held = self.scratch.iter().skip(span.first as usize).take(span.count as usize);
            return held.copied().collect();
        }
        let within = |cell: u64| u32::try_from(cell % u64::from(self.share_chunks)).unwrap_or(u32::MAX);
        self.memory.cells(span).map(within).collect()
    }

    fn store(&mut self, span: Span, chunks: &[u32]) {
        if span.buffer == Buffer::Scratch {
            for (held, &chunk) in self.scratch.iter_mut().skip(span.first as usize).zip(chunks) {
                *held = chunk;
            }
        }
    }
}
