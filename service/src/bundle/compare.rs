//! At which sizes each of several plans is fastest, by simulation.

use std::collections::BTreeMap;

use bytes::Bytes;
use canopy_bundle::{ByteRange, Ladder, Margin, PlanRange, RangeSearch, Times, ladder, ranges};
use canopy_plan::{PlanFile, read_plan};
use canopy_proto::v1;
use canopy_schedule::{TransferGraph, compile};
use canopy_simulate::{PIECE_BYTES_USUAL, Pieces, SimulateError, SimulateOptions, simulate};
use canopy_topology::{Latency, TopologyLimits};

use super::candidates::Candidate;

/// Plans are compared at sizes that double.
const FACTOR: u64 = 2;
/// Work of one simulation before pieces are made larger: some tenths of a second.
const WORK_MAX: u64 = 4_000_000;
/// Work of one whose transfers are whole.
const WORK_MAX_WHOLE: u64 = 400_000_000;

/// How times are found, and when one plan takes over from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) alpha_ns: u64,
    pub(super) margin: Margin,
}

impl Model {
    pub(super) fn on_the_wire(self) -> v1::BundleModel {
        let (numerator, denominator) = self.margin.parts();
        let margin = canopy_wire::fraction_of(numerator.into(), denominator.into());
        v1::BundleModel { alpha_ns: self.alpha_ns, piece_bytes: PIECE_BYTES_USUAL, margin: Some(margin) }
    }
}

/// What came of a comparison. Candidates are named by their positions among those that were asked for.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Which candidate serves which sizes, and with fewer of them.
    pub(super) ladder: Ladder,
    /// Candidates that are the same plan as an earlier one: which, and as which.
    pub(super) copies: Vec<(usize, usize)>,
    /// Whether it ended before it was done.
    pub(super) is_cut: bool,
    /// Times in picoseconds by candidate and size.
    times: BTreeMap<(usize, u64), u64>,
    samples: Vec<u64>,
}

impl Comparison {
    /// The first of some plans for all sizes, without comparison.
    pub(super) fn alone(plans: &[(usize, Bytes)], sizes: ByteRange) -> Self {
        let first = plans.first().map(|&(candidate, _)| PlanRange { candidate, range: sizes });
        Self {
            ladder: Ladder::single(first),
            copies: Vec::new(),
            is_cut: true,
            times: BTreeMap::new(),
            samples: Vec::new(),
        }
    }

    /// The times of a candidate at the sampled sizes of a range and at its ends, as far as they are known.
    pub(super) fn times_of(&self, name: &str, candidates: &[Candidate], range: ByteRange) -> Vec<v1::PredictedTime> {
        let Some(candidate) = candidates.iter().position(|candidate| candidate.name == name) else { return Vec::new() };
        let known = self.times.range((candidate, range.first())..=(candidate, range.last()));
        let is_shown = |bytes: u64| [range.first(), range.last()].contains(&bytes) || self.samples.contains(&bytes);
        let shown = known.filter(|&(&(_, bytes), _)| is_shown(bytes));
        shown.map(|(&(_, size_bytes), &time_ps)| v1::PredictedTime { size_bytes, time_ps }).collect()
    }
}

/// A plan that can be timed.
struct Timed {
    candidate: usize,
    file: PlanFile,
    graph: TransferGraph,
}

/// Compares plans, each a plan file in canopy's JSON with the position of its candidate.
///
/// # Errors
/// A plan cannot be read or compiled, which a server's own plans can. A comparison that is stopped is no error: the first
/// plan serves all sizes then.
pub(super) fn compare(
    plans: &[(usize, Bytes)],
    sizes: ByteRange,
    model: Model,
    stop: &dyn Fn() -> bool,
) -> Result<Comparison, String> {
    let limits = TopologyLimits { nodes_max: usize::MAX, links_max: usize::MAX, bytes_max: usize::MAX };
    let mut timed: Vec<Timed> = Vec::new();
    let mut copies = Vec::new();
    for (candidate, content) in plans {
        let file = read_plan(content, &limits).map_err(|error| error.to_string())?;
        if let Some(same) = timed.iter().find(|other| other.file.schedule == file.schedule) {
            copies.push((*candidate, same.candidate));
            continue;
        }
        let graph = compile(&file.topology, &file.schedule).map_err(|error| error.to_string())?;
        timed.push(Timed { candidate: *candidate, file, graph });
    }
    let search = RangeSearch { sizes, factor: FACTOR, align: 1, margin: model.margin };
    let samples = search.samples();
    let mut known = BTreeMap::new();
    let mut ask = |number: usize, bytes: u64| {
        let plan = timed.get(number).ok_or(SimulateError::Stopped)?;
        let time = time_of(plan, bytes, model.alpha_ns, stop)?;
        known.insert((plan.candidate, bytes), time);
        Ok::<_, SimulateError>(time)
    };
    let mut times = Times::new(timed.len(), &mut ask);
    let found = ranges(&mut times, &search)
        .and_then(|found| ladder(found, &samples, &mut times))
        .and_then(|ladder| with_ends(ladder, &mut times));
    match found {
        Ok(ladder) => {
            let position = |number: usize| timed.get(number).map_or(number, |plan| plan.candidate);
            Ok(Comparison { ladder: ladder.renamed(position), copies, is_cut: false, times: known, samples })
        }
        Err(_) => Ok(Comparison { copies, times: known, samples, ..Comparison::alone(plans, sizes) }),
    }
}

/// Has the times at both ends of each range known.
fn with_ends(ladder: Ladder, times: &mut Times<'_, SimulateError>) -> Result<Ladder, SimulateError> {
    for found in (0..ladder.steps()).flat_map(|step| ladder.at(step)) {
        times.of(found.candidate, found.range.first())?;
        times.of(found.candidate, found.range.last())?;
    }
    Ok(ladder)
}

/// The time of a plan at a size, with larger pieces where the work would be too much.
fn time_of(plan: &Timed, size_bytes: u64, alpha_ns: u64, stop: &dyn Fn() -> bool) -> Result<u64, SimulateError> {
    let alpha = Latency::from_nanos(alpha_ns);
    let options = SimulateOptions { alpha, pieces: Pieces::Whole, ..SimulateOptions::usual(size_bytes, WORK_MAX) };
    let sizes = std::iter::successors(Some(PIECE_BYTES_USUAL), |bytes| bytes.checked_mul(4));
    for bytes in sizes.take_while(|&bytes| bytes / 4 < size_bytes) {
        let pieces = Pieces::AtMost { bytes };
        match simulate(&plan.file.topology, &plan.graph, &SimulateOptions { pieces, ..options }, &stop) {
            Err(SimulateError::TooLarge { .. }) => {}
            outcome => return Ok(outcome?.time_ps),
        }
    }
    let whole = SimulateOptions { work_max: WORK_MAX_WHOLE, ..options };
    Ok(simulate(&plan.file.topology, &plan.graph, &whole, &stop)?.time_ps)
}
