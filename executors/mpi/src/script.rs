//! What one rank does for one plan and one size, as a list: made once, run for every call of this size.

use std::collections::VecDeque;
use std::ops::Range;

use canopy_plan::oneccl::{Program, RankRun, RunError, Turn, arrivals};

/// Most bytes of a message of MPI, whose counts are `int`; longer ones are cut at the same places on both sides.
pub(crate) const PART_BYTES_MAX: usize = 1 << 30;

/// One rank of a plan, for any size.
#[derive(Debug)]
pub(crate) struct Part {
    /// The instances of the plan, which proceed together.
    instances: Vec<RankRun>,
    /// For each receive, what comes.
    arrivals: Vec<Vec<u32>>,
}

/// All that a rank does. Places are bytes in the memory of the plan: input and output, which share places where the plan
/// is in place, then scratch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) stages: Vec<Stage>,
    pub(crate) input: Range<usize>,
    pub(crate) output: Range<usize>,
    pub(crate) scratch: Range<usize>,
}

/// Something that ends before the next begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// All these messages at once; those between two ranks with the same tag in this order.
    Exchange { receives: Vec<Message>, sends: Vec<Message> },
    /// A wait for all ranks.
    Barrier,
    /// Work within the memory, in this order.
    Local(Vec<Work>),
}

/// A message of one or more bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) peer: u32,
    /// The instance of the plan.
    pub(crate) tag: u32,
    /// Bytes in the memory, in order; those that touch are one range.
    pub(crate) ranges: Vec<Range<usize>>,
}

/// A copy or reduction within the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) is_reduction: bool,
    pub(crate) source: Range<usize>,
    pub(crate) destination: usize,
}

impl Part {
    /// Prepares a rank of a proved program.
    ///
    /// # Errors
    /// The rank does not exist. O(instructions + chunks moved) of all ranks.
    pub(crate) fn new(program: &Program, rank: u32) -> Result<Self, RunError> {
        let instances = (0..program.instances).map(|instance| RankRun::new(program, rank, 0, instance));
        Ok(Self { instances: instances.collect::<Result<_, _>>()?, arrivals: arrivals(program, rank)? })
    }

    /// What the rank does for a size.
    ///
    /// # Errors
    /// The memory cannot be addressed. O(instructions of the rank + chunks that it moves).
    pub(crate) fn script(&self, elements: u64, element_bytes: usize) -> Result<Script, RunError> {
        let runs = self.instances.iter().map(|run| run.for_elements(elements));
        let runs: Vec<RankRun> = runs.collect::<Result<_, _>>()?;
        let Some(first) = runs.first() else { return Err(RunError::NotThere { rank: 0, instance: 0 }) };
        let bytes = |elements: Range<usize>| elements.start * element_bytes..elements.end * element_bytes;
        let (input, output) = (bytes(first.input()), bytes(first.output()));
        let scratch = input.end.max(output.end)..first.memory_elements() * element_bytes;
        let borders = [input.start, input.end, output.start, output.end];
        let mut writer = Writer { arrivals: &self.arrivals, element_bytes, borders, runs, stages: Vec::new() };
        writer.write()?;
        Ok(Script { stages: writer.stages, input, output, scratch })
    }
}

/// Takes all instances through their turns, which are of the same kinds in the same order.
struct Writer<'p> {
    arrivals: &'p [Vec<u32>],
    element_bytes: usize,
    /// Where one region ends and another begins, which need not touch in the caller's memory.
    borders: [usize; 4],
    runs: Vec<RankRun>,
    stages: Vec<Stage>,
}

impl Writer<'_> {
    fn write(&mut self) -> Result<(), RunError> {
        let mut received = 0;
        loop {
            let (mut sends, mut receives, mut works) = (Vec::new(), Vec::new(), Vec::new());
            let (mut is_barrier, mut is_end, mut receive_count) = (false, false, 0);
            let element_bytes = self.element_bytes;
            for (tag, run) in (0..).zip(&mut self.runs) {
                match run.turn() {
                    Turn::Exchange { sends: out, receives: into } => {
                        sends.extend(
                            out.iter().filter_map(|send| Message::new(send.peer, tag, &send.chunks, element_bytes)),
                        );
                        receive_count = into.len();
                        for (at, receive) in (received..).zip(&into) {
                            let chunks = self.arrivals.get(at).map(Vec::as_slice).unwrap_or_default();
                            let lengths = run.lengths_of(chunks);
                            let places = run.land(receive, &lengths)?;
                            receives.extend(Message::new(receive.peer, tag, &places, element_bytes));
                        }
                    }
                    Turn::Local(pieces) => {
                        for piece in pieces {
                            let source = piece.source.start * element_bytes..piece.source.end * element_bytes;
                            let destination = piece.destination.start * element_bytes;
                            Work { is_reduction: piece.is_reduction, source, destination }
                                .append_to(&mut works, &self.borders);
                        }
                    }
                    Turn::Barrier => is_barrier = true,
                    Turn::End => is_end = true,
                }
            }
            received += receive_count;
            if is_end {
                return Ok(());
            }
            if is_barrier {
                self.stages.push(Stage::Barrier);
            }
            if !(sends.is_empty() && receives.is_empty()) {
                self.stages.push(Stage::Exchange { receives, sends });
            }
            if !works.is_empty() {
                self.stages.push(Stage::Local(works));
            }
        }
    }
}

impl Message {
    /// A message of chunks; `None` if all are empty, as both sides know.
    fn new(peer: u32, tag: u32, chunks: &[Range<usize>], element_bytes: usize) -> Option<Self> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            let (start, end) = (chunk.start * element_bytes, chunk.end * element_bytes);
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        (!ranges.is_empty()).then_some(Self { peer, tag, ranges })
    }

    /// The ranges in parts of at most so many bytes, which depend on the length of the message alone.
    pub(crate) fn parts(&self, bytes_max: usize) -> Vec<Vec<Range<usize>>> {
        let bytes_max = bytes_max.max(1);
        let mut parts = vec![Vec::new()];
        let mut left = bytes_max;
        let mut ranges: VecDeque<Range<usize>> = self.ranges.iter().cloned().collect();
        while let Some(range) = ranges.pop_front() {
            if left == 0 {
                parts.push(Vec::new());
                left = bytes_max;
            }
            let taken = range.len().min(left);
            if taken < range.len() {
                ranges.push_front(range.start + taken..range.end);
            }
            left -= taken;
            if let Some(part) = parts.last_mut() {
                part.push(range.start..range.start + taken);
            }
        }
        parts
    }
}

impl Work {
    /// Adds it to a list, to the last one if both are next to each other at either end, in the same regions.
    fn append_to(self, works: &mut Vec<Self>, borders: &[usize]) {
        match works.last_mut() {
            Some(last)
                if last.is_reduction == self.is_reduction
                    && last.source.end == self.source.start
                    && last.destination + last.source.len() == self.destination
                    && !borders.contains(&self.source.start)
                    && !borders.contains(&self.destination)
                    // A part of a joint copy must not read what another part of it has written.
                    && !overlap(&(last.source.start..self.source.end), last.destination) =>
            {
                last.source.end = self.source.end;
            }
            _ => works.push(self),
        }
    }
}

/// Whether a source meets its destination.
fn overlap(source: &Range<usize>, destination: usize) -> bool {
    destination < source.end && source.start < destination + source.len()
}

impl Script {
    /// Whether the output is where the input is: one buffer of the caller.
    pub(crate) fn is_shared(&self) -> bool {
        self.input.start < self.output.end && self.output.start < self.input.end
    }

    /// Whether all that reaches the output are copies of the same bytes of the input, so that one buffer may be both.
    pub(crate) fn output_repeats_input(&self) -> bool {
        let within = |place: usize| self.output.contains(&place);
        self.input.len() == self.output.len()
            && self.stages.iter().all(|stage| match stage {
                Stage::Exchange { receives, .. } => {
                    receives.iter().flat_map(|message| &message.ranges).all(|range| !within(range.start))
                }
                Stage::Barrier => true,
                Stage::Local(works) => works.iter().all(|work| {
                    let same = || {
                        !work.is_reduction
                            && self.input.contains(&work.source.start)
                            && work.source.start - self.input.start == work.destination - self.output.start
                    };
                    !within(work.destination) || same()
                }),
            })
    }
}

#[cfg(test)]
mod tests;
