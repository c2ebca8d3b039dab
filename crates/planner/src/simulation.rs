//! A finished plan in simulation: what it reaches for several sizes of messages, and when its links are busy.
//!
//! It takes any plan file, also one that this program did not write, and bounds memory and work before it spends them. The
//! model is that of [`SimulateOptions::usual`].

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use canopy_plan::{PlanFile, PlanFileError, read_plan};
use canopy_schedule::{CheckError, CollectiveKind, CompileError, Shape, TransferGraph, by_class, compile_until};
use canopy_simulate::{
    ClassModel, LinkUse, Outcome, Reached, Sent, SimulateError, SimulateOptions, busbw, busiest, busy_by_part,
    simulate, simulate_traced,
};
use canopy_topology::{Latency, LinkIndex, Rate, Topology, TopologyLimits};

/// Most sizes of one question.
pub const SIMULATED_SIZES_MAX: usize = 16;
/// Most bytes of a plan file: twice what an allreduce on 2,048 ranks takes. Reading takes up to 32 times as much memory.
pub const SIMULATED_FILE_BYTES_MAX: usize = 32 << 20;
/// Longest start-up time of a message, in nanoseconds.
const ALPHA_NS_MAX: u64 = 1_000_000_000;
/// Most work for a size, as [`SimulateOptions::work_max`]: each message counts three, so there are 5 million at most, of some
/// 150 bytes each, as an allreduce of 1 GiB on 1,024 ranks nearly has. It takes about two seconds.
const WORK_MAX: u64 = 16_000_000;
/// Most hops of a plan: each is a message at least.
const HOPS_MAX: u64 = WORK_MAX / 3;
/// Parts of the time of a timeline, and most links of it.
const PARTS: NonZeroU32 = NonZeroU32::new(64).expect("it is not 0");
const LINKS_MAX: usize = 32;
/// First and last of the sizes that are simulated if none is stated, and how many times the one before each is.
const USUAL_SIZES: RangeInclusive<u64> = (4 << 10)..=(1 << 30);
const USUAL_FACTOR: u64 = 4;

/// What to simulate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SimulationQuestion {
    /// Sizes of messages in bytes; empty for the usual ones.
    pub sizes: Vec<u64>,
    /// The size whose timeline is wanted, if any.
    pub timeline: Option<u64>,
    /// Start-up time of a message.
    pub alpha: Latency,
    /// Sizes that the plan is for.
    pub valid: RangeInclusive<u64>,
}

/// What a plan reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// Figures of each size, the smallest first.
    pub sizes: Vec<Reached>,
    /// The first of the usual sizes that would take too much work, if there is one; larger ones were not tried.
    pub left_out: Option<u64>,
    /// Proven upper bound on algbw, as the plan file states it.
    pub bound: Rate,
    /// The same for busbw.
    pub busbw_bound: Rate,
    /// If it was wanted.
    pub timeline: Option<Timeline>,
}

/// When the busiest links were busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Size of the message.
    pub size_bytes: u64,
    /// When the last message had arrived, in picoseconds.
    pub time_ps: u64,
    /// Equal parts of the time, in the sense of [`part_start_ps`](canopy_simulate::part_start_ps).
    pub parts: NonZeroU32,
    /// The busiest links, busiest first.
    pub links: Vec<Activity>,
    /// Links that carried anything.
    pub links_used: usize,
}

/// What a link did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Names of the nodes at its ends.
    pub ends: [String; 2],
    /// Bytes and time.
    pub link_use: LinkUse,
    /// Whether it set the rate of a message of the critical path.
    pub is_critical: bool,
    /// By part of the time: picoseconds in which something was on it.
    pub busy_ps: Vec<u64>,
}

/// Where a size is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeField {
    /// Nowhere: it is one of the usual ones.
    Usual,
    /// At this place of the list.
    Listed(usize),
    /// As that of the timeline.
    Timeline,
}

/// As the request names it.
impl fmt::Display for SizeField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usual => f.write_str("sizes_bytes"),
            Self::Listed(place) => write!(f, "sizes_bytes[{place}]"),
            Self::Timeline => f.write_str("timeline_size_bytes"),
        }
    }
}

/// Why a plan was not simulated.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SimulationError {
    #[error("sizes_bytes has {found} sizes, over the limit of {limit}; send several requests")]
    TooManySizes { found: usize, limit: usize },
    #[error("{field} is {found} bytes, but the plan is valid for {min} to {max}; use a size in that range")]
    Size { field: SizeField, found: u64, min: u64, max: u64 },
    #[error("alpha_ns is {found}, over the limit of {limit}; use a shorter start-up time")]
    Alpha { found: u64, limit: u64 },
    #[error("{field} repeats {found} bytes; state each size once")]
    Repeated { field: SizeField, found: u64 },
    #[error(
        "the plan file has {found} bytes, over the limit of {limit} for simulations at a server; run `canopy simulate` on the plan instead"
    )]
    FileTooLarge { found: usize, limit: usize },
    #[error(
        "the plan has {found} hops, over the limit of {limit} for simulations at a server; run `canopy simulate` on the plan instead"
    )]
    TooManyHops { found: u64, limit: u64 },
    #[error("the plan has {ranks} ranks and is simulated by class, without a timeline; leave out timeline_size_bytes")]
    NoTimeline { ranks: u32 },
    #[error("the rule of the plan is not right")]
    Rule(#[source] CheckError),
    #[error(
        "{field}: {size_bytes} bytes travel in {messages} messages, which take more than {limit} units of work; use a smaller size, or run `canopy simulate` on the plan"
    )]
    TooMuchWork { field: SizeField, size_bytes: u64, messages: u64, limit: u64 },
    #[error("{field}: {size_bytes} bytes are more than the simulator counts; use a smaller size")]
    TooLong { field: SizeField, size_bytes: u64 },
    #[error("{field}: {size_bytes} bytes take no time at all; use a larger size, or a larger alpha_ns")]
    NoTime { field: SizeField, size_bytes: u64 },
    #[error("the plan file cannot be read")]
    File(#[from] PlanFileError),
    #[error("the plan file has no transfer graph")]
    Compile(#[source] CompileError),
    #[error("the plan file cannot be simulated")]
    Run(#[source] SimulateError),
    #[error("stopped before the simulation ended")]
    Stopped,
}

/// Simulates the plan of a file, one size after the other.
///
/// * **In.** A plan file that was judged. Its bound is taken as it is stated.
/// * **Errors.** A question that does not fit the plan; a plan or size that takes more than the limits; a file that is none.
/// * **Cost.** Reading and compiling the file, then for each size the work of [`WORK_MAX`] at most. Up to about 1 GB of memory;
///   for a plan on 1,024 ranks some 700 MB.
pub fn simulate_file(
    content: &[u8],
    question: &SimulationQuestion,
    limits: &TopologyLimits,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Simulation, SimulationError> {
    let wanted = question.wanted()?;
    if content.len() > SIMULATED_FILE_BYTES_MAX {
        return Err(SimulationError::FileTooLarge { found: content.len(), limit: SIMULATED_FILE_BYTES_MAX });
    }
    let limits = TopologyLimits { bytes_max: usize::MAX, ..*limits };
    let PlanFile { topology, schedule, bound, .. } = read_plan(content, &limits)?;
    let hops = hop_count(&schedule.shape, topology.rank_count().into());
    if hops > HOPS_MAX && matches!(schedule.shape, Shape::Stages(_) | Shape::Orbits(_)) {
        if question.timeline.is_some() {
            return Err(SimulationError::NoTimeline { ranks: topology.rank_count() });
        }
        let rule = by_class(&topology, schedule.collective, &schedule.shape, stop);
        let classes = rule.map_err(|error| match error {
            CheckError::Stopped => SimulationError::Stopped,
            error => SimulationError::Rule(error),
        })?;
        if let Some(classes) = classes {
            let model = ClassModel::of(&topology, schedule.collective, &schedule.shape, &classes);
            let model = model.map_err(SimulationError::Run)?;
            let ranks = (schedule.collective.kind(), topology.rank_count());
            return simulated_by_class(&model, ranks, bound.upper, question, wanted, stop);
        }
    }
    if hops > HOPS_MAX {
        return Err(SimulationError::TooManyHops { found: hops, limit: HOPS_MAX });
    }
    let graph = compile_until(&topology, &schedule, stop).map_err(|error| match error {
        CompileError::Stopped => SimulationError::Stopped,
        error => SimulationError::Compile(error),
    })?;
    let subject = Subject { topology, graph, kind: schedule.collective.kind(), bound: bound.upper };
    subject.simulated(question, wanted, WORK_MAX, stop)
}

/// Runs one size after the other of a plan by a rule: a box of each class, or one rank of a torus.
fn simulated_by_class(
    model: &ClassModel,
    (kind, rank_count): (CollectiveKind, u32),
    bound: Rate,
    question: &SimulationQuestion,
    wanted: Vec<(u64, SizeField)>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Simulation, SimulationError> {
    let (mut sizes, mut left_out) = (Vec::new(), None);
    for (size_bytes, field) in wanted {
        let options = SimulateOptions { alpha: question.alpha, ..SimulateOptions::usual(size_bytes, WORK_MAX) };
        match model.run(&bound, &options, &stop) {
            Err(SimulateError::TooLarge { .. }) if field == SizeField::Usual && !sizes.is_empty() => {
                left_out = Some(size_bytes);
                break;
            }
            found => {
                let found = found.map_err(|error| refused(error, field, size_bytes))?;
                sizes.push(found.ok_or(SimulationError::NoTime { field, size_bytes })?.reached);
            }
        }
    }
    let busbw_bound = busbw(kind, rank_count, &bound).unwrap_or_else(|| bound.clone());
    Ok(Simulation { sizes, left_out, bound, busbw_bound, timeline: None })
}

/// What is simulated.
struct Subject {
    topology: Topology,
    graph: TransferGraph,
    kind: CollectiveKind,
    /// On algbw.
    bound: Rate,
}

impl Subject {
    /// Runs one size after the other; one of the usual sizes that takes more than `work_max` ends the list.
    fn simulated(
        self,
        question: &SimulationQuestion,
        wanted: Vec<(u64, SizeField)>,
        work_max: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Simulation, SimulationError> {
        let (mut sizes, mut left_out, mut timeline) = (Vec::new(), None, None);
        for (size_bytes, field) in wanted {
            if left_out.is_some() && field == SizeField::Usual {
                continue;
            }
            let options = SimulateOptions { alpha: question.alpha, ..SimulateOptions::usual(size_bytes, work_max) };
            let has_timeline = question.timeline == Some(size_bytes);
            let (outcome, trace) = match self.run(&options, has_timeline, stop) {
                Err(SimulateError::TooLarge { .. })
                    if field == SizeField::Usual && !has_timeline && !sizes.is_empty() =>
                {
                    left_out = Some(size_bytes);
                    continue;
                }
                run => run.map_err(|error| refused(error, field, size_bytes))?,
            };
            let reached = Reached::of((&self.topology, &self.graph), self.kind, &self.bound, &options, &outcome);
            let reached = reached.map_err(|error| refused(error, field, size_bytes))?;
            if field != SizeField::Timeline {
                sizes.push(reached.ok_or(SimulationError::NoTime { field, size_bytes })?);
            }
            if has_timeline {
                timeline = Some(self.timeline(size_bytes, &outcome, &trace));
            }
        }
        let busbw_bound = busbw(self.kind, self.topology.rank_count(), &self.bound);
        let busbw_bound = busbw_bound.unwrap_or_else(|| self.bound.clone());
        Ok(Simulation { sizes, left_out, bound: self.bound, busbw_bound, timeline })
    }

    /// A run, with its trace if that is wanted.
    fn run(
        &self,
        options: &SimulateOptions<'_>,
        is_traced: bool,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Outcome, Vec<Sent>), SimulateError> {
        if is_traced {
            simulate_traced(&self.topology, &self.graph, options, &stop)
        } else {
            simulate(&self.topology, &self.graph, options, &stop).map(|outcome| (outcome, Vec::new()))
        }
    }

    fn timeline(&self, size_bytes: u64, outcome: &Outcome, trace: &[Sent]) -> Timeline {
        let critical: BTreeSet<LinkIndex> = outcome.critical_path.iter().map(|leg| leg.link).collect();
        let links = busiest(&outcome.links, LINKS_MAX);
        let busy = busy_by_part(&self.graph, (outcome, trace), &links, PARTS);
        let activity = |(&link, busy_ps): (&LinkIndex, Vec<u64>)| {
            let stated = self.topology.link(link);
            Activity {
                ends: [stated.from, stated.to].map(|node| self.topology.node(node).id.clone()),
                link_use: outcome.links.get(link.index()).copied().unwrap_or_default(),
                is_critical: critical.contains(&link),
                busy_ps,
            }
        };
        Timeline {
            size_bytes,
            time_ps: outcome.time_ps,
            parts: PARTS,
            links: links.iter().zip(busy).map(activity).collect(),
            links_used: outcome.links.iter().filter(|link| link.bytes > 0).count(),
        }
    }
}

impl SimulationQuestion {
    /// Refuses sizes and times that do not fit, as [`simulate_file`] would: before a file is at hand. O(sizes · log sizes).
    ///
    /// # Errors
    /// A field is out of its range, or repeats another.
    pub fn check(&self) -> Result<(), SimulationError> {
        self.wanted().map(drop)
    }

    /// The sizes to simulate, the smallest first, each with the field that states it.
    fn wanted(&self) -> Result<Vec<(u64, SizeField)>, SimulationError> {
        let (found, limit) = (self.alpha.nanos(), ALPHA_NS_MAX);
        if found > limit {
            return Err(SimulationError::Alpha { found, limit });
        }
        let (found, limit) = (self.sizes.len(), SIMULATED_SIZES_MAX);
        if found > limit {
            return Err(SimulationError::TooManySizes { found, limit });
        }
        let mut known = BTreeSet::new();
        let mut wanted = Vec::with_capacity(limit + 1);
        let stated = self.sizes.iter().enumerate().map(|(place, &size)| (size, SizeField::Listed(place)));
        for (size, field) in stated {
            self.require(size, field)?;
            if !known.insert(size) {
                return Err(SimulationError::Repeated { field, found: size });
            }
            wanted.push((size, field));
        }
        if wanted.is_empty() {
            wanted = usual_sizes(&self.valid).into_iter().map(|size| (size, SizeField::Usual)).collect();
        }
        if let Some(size) = self.timeline {
            self.require(size, SizeField::Timeline)?;
            if !wanted.iter().any(|&(other, _)| other == size) {
                wanted.push((size, SizeField::Timeline));
            }
        }
        wanted.sort_unstable_by_key(|&(size, _)| size);
        Ok(wanted)
    }

    fn require(&self, size: u64, field: SizeField) -> Result<(), SimulationError> {
        let (min, max) = (*self.valid.start(), *self.valid.end());
        if self.valid.contains(&size) { Ok(()) } else { Err(SimulationError::Size { field, found: size, min, max }) }
    }
}

/// The sizes from 4 KiB to 1 GiB, each four times the one before, as far as they are valid; of a plan that is for none of them,
/// its largest.
fn usual_sizes(valid: &RangeInclusive<u64>) -> Vec<u64> {
    let next = |size: &u64| size.checked_mul(USUAL_FACTOR);
    let all = std::iter::successors(Some(*USUAL_SIZES.start()), next).take_while(|size| USUAL_SIZES.contains(size));
    let valid_ones: Vec<u64> = all.filter(|size| valid.contains(size)).collect();
    if valid_ones.is_empty() { vec![*valid.end()] } else { valid_ones }
}

/// Hops of all trees or paths, or sends.
fn hop_count(shape: &Shape, rank_count: u64) -> u64 {
    let count = match shape {
        Shape::Forest(forest) => forest.carriers.len(),
        Shape::Steps(steps) => steps.carriers.len(),
        Shape::Flow(flow) => flow.hops.len(),
        Shape::Stages(stages) => {
            let hops = rank_count.saturating_mul(rank_count).saturating_mul(stages.actions.len() as u64);
            return hops.saturating_mul(stages.chunks_per_share);
        }
        Shape::Orbits(orbits) => {
            let hops = rank_count.saturating_mul(rank_count).saturating_mul(orbits.actions.len() as u64);
            return hops.saturating_mul(orbits.templates.len() as u64);
        }
    };
    count as u64
}

fn refused(error: SimulateError, field: SizeField, size_bytes: u64) -> SimulationError {
    match error {
        SimulateError::TooLarge { messages, limit } => {
            SimulationError::TooMuchWork { field, size_bytes, messages, limit }
        }
        SimulateError::SizeTooLarge { .. } | SimulateError::TooLong => SimulationError::TooLong { field, size_bytes },
        SimulateError::Stopped => SimulationError::Stopped,
        error => SimulationError::Run(error),
    }
}

#[cfg(test)]
mod tests;
