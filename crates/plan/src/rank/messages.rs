//! The oneCCL plan of one rank: messages into its output, sums in its scratch.
//!
//! Each rank places what it receives by itself: messages carry chunks in their order, so the other end need not know
//! where they go.

use std::ops::Range;

use canopy_schedule::{Action, CollectiveKind, Move, ProgramPhase, ProgramStep};

use super::request::{RankFileError, RankRequest};
use crate::msccl::Buffer;
use crate::oneccl::{
    self, Completion, Local, LowerError, LowerOptions, Program, RankProgram, Receive, Scope, Send, Span, Step,
};

/// Most chunks of a file: offsets have 32 bits, and are added to.
const CHUNKS_MAX: u32 = 1 << 30;

/// Most steps of the exchange in one step of the file. Two let a rank forward in its box while the next piece comes
/// over the network; trees in boxes take more.
const STEPS_MERGED: usize = 4;

/// The plan of one rank: a program whose only rank is that one. [`write_rank_plan`](oneccl::write_rank_plan) writes it.
///
/// Copies go straight to the output. Sums arrive in scratch that each step uses again, and are added where the rank
/// keeps its sums: in the output, in place in the input, else in scratch.
///
/// * **Errors.** [`RankFileError`], with [`LowerError`] for options that the format does not know.
/// * **Cost.** That of [`Stages::program`](canopy_schedule::Stages::program), times the logarithm of its moves.
pub fn lower_oneccl_rank(request: &RankRequest<'_>, options: &LowerOptions) -> Result<Program, RankFileError> {
    oneccl::check_options(options)?;
    if request.rank_count < 2 {
        return Err(LowerError::Ranks { found: request.rank_count }.into());
    }
    let (program, chunk_count) = request.program(CHUNKS_MAX)?;
    let mut plan = Program {
        name: options.name.clone(),
        collective: request.collective,
        rank_count: request.rank_count,
        chunk_count,
        in_place: options.in_place,
        instances: options.instances,
        bytes_min: 0,
        bytes_max: options.bytes_max,
        meta: Vec::new(),
        routes: Vec::new(),
        ranks: Vec::new(),
    };
    let share = chunk_count / request.rank_count;
    let own = request.rank * share..(request.rank + 1) * share;
    let (kind, in_place) = (request.collective.kind(), options.in_place);
    let mut writer = Writer { kind, in_place, rank: request.rank, own, steps: Vec::new(), scratch: 0 };
    for (position, phase) in program.phases.iter().enumerate() {
        match phase.action {
            Action::Copy => writer.copy(phase, position == 0 && !in_place)?,
            Action::Reduce => writer.reduce(phase)?,
        }
    }
    let (input_chunks, output_chunks) = oneccl::expected_chunks(&plan, request.rank);
    let (limit, need) = (u64::from(CHUNKS_MAX), writer.scratch);
    let over = LowerError::OverLimit { what: "chunks of scratch", need, limit };
    let scratch_chunks = u32::try_from(need).ok().filter(|&need| need <= CHUNKS_MAX).ok_or(over)?;
    let steps = (0..).zip(writer.steps).map(|(index, step)| Step { index, ..step }).collect();
    plan.ranks.push(RankProgram { rank: request.rank, input_chunks, output_chunks, scratch_chunks, steps });
    Ok(plan)
}

/// Steps of the exchange that are one of the file.
#[derive(Default)]
struct Merged<'a> {
    sends: Vec<(u32, &'a Range<u64>)>,
    receives: Vec<(u32, &'a Range<u64>)>,
    steps: usize,
}

/// Steps of which none sends what it, or one that it is merged with, receives.
///
/// A rank that posts its messages earlier makes no other one wait: between two ranks messages keep their order.
fn merged(steps: &[ProgramStep]) -> Vec<Merged<'_>> {
    fn ranges(moves: &[Move]) -> impl Iterator<Item = (u32, &Range<u64>)> {
        moves.iter().flat_map(|one| one.chunks.iter().map(|chunks| (one.peer, chunks)))
    }
    let mut all: Vec<Merged<'_>> = Vec::new();
    for step in steps.iter().filter(|step| !step.sends.is_empty() || !step.receives.is_empty()) {
        let passes_on = |last: &Merged<'_>| {
            let overlaps = |sent: &Range<u64>| {
                last.receives.iter().any(|(_, received)| sent.start < received.end && received.start < sent.end)
            };
            last.steps == STEPS_MERGED || ranges(&step.sends).any(|(_, sent)| overlaps(sent))
        };
        if all.last().is_none_or(passes_on) {
            all.push(Merged::default());
        }
        if let Some(last) = all.last_mut() {
            last.sends.extend(ranges(&step.sends));
            last.receives.extend(ranges(&step.receives));
            last.steps += 1;
        }
    }
    all
}

/// Chunks that the rank sends at once, or keeps, as a sum.
struct Sum {
    chunks: Range<u32>,
    /// Where they are added up.
    place: (Buffer, u32),
    /// Whether the rank's own contribution is there.
    is_begun: bool,
}

impl Sum {
    fn span(&self, chunks: &Range<u32>) -> Span {
        let (buffer, first) = self.place;
        span((buffer, first + (chunks.start - self.chunks.start)), chunks)
    }
}

struct Writer {
    kind: CollectiveKind,
    in_place: bool,
    rank: u32,
    /// Chunks of the own share.
    own: Range<u32>,
    steps: Vec<Step>,
    /// Chunks of scratch.
    scratch: u64,
}

impl Writer {
    /// Numbers of chunks in the file.
    fn narrow(&self, chunks: &Range<u64>) -> Result<Range<u32>, RankFileError> {
        let narrow = |chunk: u64| u32::try_from(chunk).ok().filter(|&chunk| chunk <= CHUNKS_MAX);
        let range = narrow(chunks.start).zip(narrow(chunks.end)).map(|(start, end)| start..end);
        range.filter(|range| !range.is_empty()).ok_or(RankFileError::Broken { rank: self.rank })
    }

    fn push(&mut self, sends: Vec<Send>, receives: Vec<Receive>, locals: Vec<Local>) {
        let completion = Some(Completion { scope: Scope::Local, locals, after: None });
        self.steps.push(Step { index: 0, sends, receives, completion });
    }

    /// Everything goes to the output. Where the own share is still in the input, the first step sends it from there, as
    /// there is nothing else, and copies it.
    fn copy(&mut self, phase: &ProgramPhase, is_in_input: bool) -> Result<(), RankFileError> {
        for (position, step) in merged(&phase.steps).into_iter().enumerate() {
            let is_first = is_in_input && position == 0;
            let source = |&(peer, chunks): &(u32, &Range<u64>)| {
                let chunks = self.narrow(chunks)?;
                let first = if is_first { chunks.start.checked_sub(self.own.start) } else { Some(chunks.start) };
                let first = first.ok_or(RankFileError::Broken { rank: self.rank })?;
                let buffer = if is_first { Buffer::Input } else { Buffer::Output };
                Ok(Send { peer, span: span((buffer, first), &chunks), route: None })
            };
            let target = |&(peer, chunks): &(u32, &Range<u64>)| {
                let chunks = self.narrow(chunks)?;
                Ok(Receive { peer, span: span((Buffer::Output, chunks.start), &chunks) })
            };
            let sends = step.sends.iter().map(source).collect::<Result<_, RankFileError>>()?;
            let receives = step.receives.iter().map(target).collect::<Result<_, RankFileError>>()?;
            let own = Local {
                is_reduction: false,
                source: span((Buffer::Input, 0), &self.own),
                destination: span((Buffer::Output, self.own.start), &self.own),
            };
            self.push(sends, receives, if is_first { vec![own] } else { Vec::new() });
        }
        Ok(())
    }

    /// What is received waits in scratch until it is added to the sum that the rank sends later, or keeps.
    fn reduce(&mut self, phase: &ProgramPhase) -> Result<(), RankFileError> {
        let steps = merged(&phase.steps);
        let mut sums = self.sums(&steps)?;
        let (kept, mut arriving) = (self.scratch, 0);
        for step in &steps {
            let send = |&(peer, chunks): &(u32, &Range<u64>)| {
                let chunks = self.narrow(chunks)?;
                let broken = RankFileError::Broken { rank: self.rank };
                let sum = sums.get(at(&sums, chunks.start)).filter(|sum| sum.chunks == chunks).ok_or(broken)?;
                let input = span((Buffer::Input, chunks.start), &chunks);
                Ok(Send { peer, span: if sum.is_begun { sum.span(&chunks) } else { input }, route: None })
            };
            let sends = step.sends.iter().map(send).collect::<Result<_, RankFileError>>()?;
            let (mut receives, mut locals) = (Vec::with_capacity(step.receives.len()), Vec::new());
            let mut used = kept;
            for &(peer, chunks) in &step.receives {
                let chunks = self.narrow(chunks)?;
                let over = LowerError::OverLimit { what: "chunks of scratch", need: used, limit: CHUNKS_MAX.into() };
                let first = u32::try_from(used).ok().filter(|&first| first <= CHUNKS_MAX).ok_or(over)?;
                used += u64::from(chunks.end - chunks.start);
                receives.push(Receive { peer, span: span((Buffer::Scratch, first), &chunks) });
                self.add(&mut sums, &chunks, first, &mut locals)?;
            }
            arriving = arriving.max(used);
            self.push(sends, receives, locals);
        }
        self.scratch = self.scratch.max(arriving);
        Ok(())
    }

    /// Adds what arrived in scratch, from `first` on, to the sums that it is part of.
    fn add(
        &self,
        sums: &mut [Sum],
        chunks: &Range<u32>,
        first: u32,
        locals: &mut Vec<Local>,
    ) -> Result<(), RankFileError> {
        let (from, broken) = (at(sums, chunks.start), RankFileError::Broken { rank: self.rank });
        let until = sums.partition_point(|sum| sum.chunks.start < chunks.end);
        let sums = sums.get_mut(from..until).ok_or(broken.clone())?;
        for sum in sums.iter_mut().filter(|sum| !sum.is_begun) {
            sum.is_begun = true;
            let source = span((Buffer::Input, sum.chunks.start), &sum.chunks);
            put(locals, Local { is_reduction: false, source, destination: sum.span(&sum.chunks) });
        }
        let mut next = chunks.start;
        for sum in sums.iter() {
            if sum.chunks.start > next {
                return Err(broken);
            }
            let part = next..chunks.end.min(sum.chunks.end);
            let source = span((Buffer::Scratch, first + (next - chunks.start)), &part);
            put(locals, Local { is_reduction: true, source, destination: sum.span(&part) });
            next = part.end;
        }
        if next == chunks.end { Ok(()) } else { Err(broken) }
    }

    /// All that the rank sends, and what it keeps, in the order of chunks. Out of place, sums that nothing is added to
    /// have no place.
    fn sums(&mut self, steps: &[Merged<'_>]) -> Result<Vec<Sum>, RankFileError> {
        let sent = steps.iter().flat_map(|step| &step.sends);
        let mut all: Vec<Range<u32>> =
            sent.map(|(_, chunks)| self.narrow(chunks)).collect::<Result<_, RankFileError>>()?;
        all.push(self.own.clone());
        all.sort_unstable_by_key(|chunks| chunks.start);
        if all.windows(2).any(|pair| pair[1].start < pair[0].end) {
            return Err(RankFileError::Broken { rank: self.rank });
        }
        let kept = if self.in_place { Buffer::Input } else { Buffer::Scratch };
        let whole = if self.kind == CollectiveKind::Allreduce { Buffer::Output } else { kept };
        let sum = |chunks: Range<u32>| Sum { place: (whole, chunks.start), chunks, is_begun: self.in_place };
        let mut sums: Vec<Sum> = all.into_iter().map(sum).collect();
        if whole != Buffer::Scratch {
            return Ok(sums);
        }
        let mut has_arrived = vec![false; sums.len()];
        for (_, chunks) in steps.iter().flat_map(|step| &step.receives) {
            let chunks = self.narrow(chunks)?;
            let first = at(&sums, chunks.start);
            let parts = sums.iter().zip(&mut has_arrived).skip(first);
            parts.take_while(|(sum, _)| sum.chunks.start < chunks.end).for_each(|(_, arrived)| *arrived = true);
        }
        for (sum, _) in sums.iter_mut().zip(has_arrived).filter(|(_, arrived)| *arrived) {
            if sum.chunks == self.own {
                sum.place = (Buffer::Output, 0);
                continue;
            }
            let over =
                LowerError::OverLimit { what: "chunks of scratch", need: self.scratch, limit: CHUNKS_MAX.into() };
            let first = u32::try_from(self.scratch).ok().filter(|&first| first <= CHUNKS_MAX).ok_or(over)?;
            sum.place = (Buffer::Scratch, first);
            self.scratch += u64::from(sum.chunks.end - sum.chunks.start);
        }
        Ok(sums)
    }
}

/// Adds local work, to the last one where it goes on at both ends.
fn put(locals: &mut Vec<Local>, next: Local) {
    let goes_on = |last: &Span, next: &Span| last.buffer == next.buffer && last.first + last.count == next.first;
    match locals.last_mut() {
        Some(last)
            if last.is_reduction == next.is_reduction
                && goes_on(&last.source, &next.source)
                && goes_on(&last.destination, &next.destination) =>
        {
            last.source.count += next.source.count;
            last.destination.count += next.destination.count;
        }
        _ => locals.push(next),
    }
}

/// Position of the first sum that does not end before a chunk.
fn at(sums: &[Sum], chunk: u32) -> usize {
    sums.partition_point(|sum| sum.chunks.end <= chunk)
}

/// As many chunks from a place on.
const fn span((buffer, first): (Buffer, u32), chunks: &Range<u32>) -> Span {
    Span { buffer, first, count: chunks.end - chunks.start }
}
