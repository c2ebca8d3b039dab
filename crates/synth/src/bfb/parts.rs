//! What every rank receives in each step, and over which of its links.

use canopy_optimize::{Arrivals, BfbGraph, Fraction, JointArrivals, Piece, StepLoads, Stop};
use rayon::prelude::*;

use super::likeness::{Image, Likeness};
use crate::error::SynthesisError;
use crate::reach::ask;

/// Ranks served between two reports.
const BLOCK: usize = 64;

/// Consecutive chunks of one rank's share on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) source: u32,
    /// Position among the receiver's in-links.
    pub(super) link: u32,
    /// First chunk of the share, and the one after the last.
    pub(super) start: u32,
    pub(super) end: u32,
}

impl From<Piece> for Part {
    fn from(Piece { source, link, chunks }: Piece) -> Self {
        Self { source, link, start: narrow(chunks.start), end: narrow(chunks.end) }
    }
}

/// Parts of all shares that arrive at one rank, by step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    parts: Vec<Part>,
    /// Those of step t, counted from 0, are `starts[t] .. starts[t + 1]`.
    starts: Vec<u32>,
}

impl Received {
    /// Parts that arrive in a step, counted from 0; none after the last step.
    pub(super) fn in_step(&self, step: usize) -> &[Part] {
        let start = |step: usize| self.starts.get(step).map_or(self.parts.len(), |&start| start as usize);
        &self.parts[start(step)..start(step + 1)]
    }

    /// Number of steps until nothing arrives any more.
    pub(super) fn step_count(&self) -> usize {
        let end = self.parts.len();
        self.starts.iter().rposition(|&start| (start as usize) < end).map_or(0, |last| last + 1)
    }

    /// What is added from here on arrives one step later.
    fn next_step(&mut self) {
        self.starts.push(position(self.parts.len()));
    }

    /// Number of parts.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }
}

/// By rank, what it receives if no link carries more than these loads, in chunks per width, in any step.
///
/// One rank of each kind is served; what the others receive is that, moved.
///
/// # Errors
/// Stopped; a bug, if a load is less than the optimum or a link has no image.
pub(super) fn divide(
    graph: &BfbGraph,
    likeness: &Likeness,
    chunks: u64,
    loads: &StepLoads,
    stop: &dyn Stop,
    tell: &dyn Fn(u64, u64),
) -> Result<Vec<Received>, SynthesisError> {
    let first = likeness.first_of_each();
    let mut served: Vec<Received> = Vec::with_capacity(first.len());
    for block in first.chunks(BLOCK) {
        tell(served.len() as u64, first.len() as u64);
        let serve = |arrivals: &mut Arrivals<'_>, &node: &u32| received(arrivals, node, chunks, loads, stop);
        let block = block.par_iter().map_init(|| Arrivals::new(graph), serve);
        served.extend(block.collect::<Result<Vec<_>, SynthesisError>>()?);
    }
    tell(first.len() as u64, first.len() as u64);
    if first.len() == graph.node_count() as usize {
        return Ok(served);
    }
    let move_to = |node: u32| {
        ask(stop)?;
        let (kind, image) = likeness.image(node);
        moved(graph, &served[kind], &image, node)
    };
    (0..graph.node_count()).into_par_iter().map(move_to).collect()
}

/// [`divide`] where hosts make what one rank receives depend on what others do.
///
/// # Errors
/// The same.
pub(super) fn divide_jointly(
    joint: &JointArrivals,
    chunks: u64,
    loads: &StepLoads,
    stop: &dyn Stop,
    tell: &dyn Fn(u64, u64),
) -> Result<Vec<Received>, SynthesisError> {
    let mut all = vec![Received::default(); joint.graph().node_count() as usize];
    for step in 1..=joint.step_count() {
        tell(u64::from(step) - 1, joint.step_count().into());
        all.iter_mut().for_each(Received::next_step);
        let pieces = joint.assign(step, chunks, load_of(loads, step), stop)?;
        for (node, piece) in pieces.ok_or_else(|| no_room(step))? {
            all[node as usize].parts.push(piece.into());
        }
    }
    all.iter_mut().for_each(|received| received.parts.shrink_to_fit());
    Ok(all)
}

fn load_of(loads: &StepLoads, step: u32) -> Fraction {
    loads.loads.get(step as usize - 1).copied().unwrap_or(Fraction::ZERO)
}

fn no_room(step: u32) -> SynthesisError {
    SynthesisError::Broken { what: format!("step {step} has no room") }
}

/// What one rank receives.
fn received(
    arrivals: &mut Arrivals<'_>,
    node: u32,
    chunks: u64,
    loads: &StepLoads,
    stop: &dyn Stop,
) -> Result<Received, SynthesisError> {
    arrivals.visit(node, stop)?;
    let mut received = Received::default();
    for step in 1..=arrivals.step_count() {
        received.next_step();
        let pieces = arrivals.assign(step, chunks, load_of(loads, step), stop)?;
        received.parts.extend(pieces.ok_or_else(|| no_room(step))?.into_iter().map(Part::from));
    }
    received.parts.shrink_to_fit();
    Ok(received)
}

/// What a rank receives that an automorphism moves the first of its kind to.
fn moved(graph: &BfbGraph, first: &Received, image: &Image<'_>, node: u32) -> Result<Received, SynthesisError> {
    let lost = || SynthesisError::Broken { what: "an automorphism loses a link".to_owned() };
    let (before, after) = (graph.in_links(image.first()), graph.in_links(node));
    // Parallel links are told apart by their order, which is that of their latencies on either side.
    let position_of = |index: usize| {
        let from = before[index].from;
        let earlier = before[..index].iter().rev().take_while(|link| link.from == from).count();
        let start = after.partition_point(|link| link.from < image.of(from));
        let found = after.get(start + earlier).filter(|link| link.from == image.of(from));
        found.filter(|link| link.width == before[index].width).map(|_| position(start + earlier))
    };
    let links: Vec<u32> =
        (0..before.len()).map(|index| position_of(index).ok_or_else(lost)).collect::<Result<_, _>>()?;
    let parts =
        first.parts.iter().map(|part| Part { source: image.of(part.source), link: links[part.link as usize], ..*part });
    Ok(Received { parts: parts.collect(), starts: first.starts.clone() })
}

fn position(length: usize) -> u32 {
    u32::try_from(length).expect("parts and links of one rank are counted in u32")
}

fn narrow(chunk: u64) -> u32 {
    u32::try_from(chunk).expect("the chunks of a share were found to fit")
}
