//! The JSON object of `canopy explain`: fractions as texts, and floats beside them for reading.

use canopy_schedule::{Bound, Pace, Shape};
use canopy_topology::{LinkIndex, Rank, Rate, Ratio, Topology};
use serde::{Serialize, Serializer};

use super::ExplainArgs;
use super::compare::{Baseline, Clock, Comparison, Entry};
use super::names::rates_of;
use super::why::why;
use crate::certificate::CertificateSummary;
use crate::commands::simulate::Absent;
use crate::commands::simulate::stock::StockSummary;
use crate::material::Material;
use crate::output::{AlgbwSummary, FileSummary, TopologySummary, gigabytes_per_sec};
use crate::stock::{Library, Model};

/// Most links that are listed.
const LINKS_MAX: usize = 16;

/// JSON object of the command.
#[derive(Debug, Serialize)]
pub(super) struct Explained {
    topology: TopologySummary,
    collective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    algorithm: String,
    pub(super) bound: BoundSummary,
    /// If NVSwitches multicast and add up, where that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) with_in_network: Option<AlgbwSummary>,
    certificate: CertificateSummary,
    /// What must pass where, in words.
    pub(super) why: Vec<String>,
    achieved: String,
    #[serde(rename = "achieved_GBps")]
    achieved_gigabytes: f64,
    /// With switches that multicast or add up, where the network has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_network: Option<AlgbwSummary>,
    /// Achieved ÷ bound, and what is missing of it.
    pub(super) optimality: String,
    pub(super) gap: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) steps: Option<StepsSummary>,
    pub(super) links: LinksSummary,
    /// Bytes over all links for each byte of size.
    traffic: String,
    depth: u32,
    model: ModelSummary,
    baseline: Baseline,
    compared: Vec<EntrySummary>,
    not_compared: Vec<Absent>,
    /// What NCCL would do by itself.
    pub(super) stock: StockSummary,
    pub(super) verdict: VerdictSummary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<FileSummary>,
}

#[derive(Debug, Serialize)]
pub(super) struct BoundSummary {
    #[serde(flatten)]
    rate: AlgbwSummary,
    tight: bool,
}

/// How a schedule in steps goes on from one to the next.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct StepsSummary {
    pub(super) count: u32,
    #[serde(serialize_with = "by_name")]
    pub(super) pace: Pace,
}

fn by_name<S: Serializer>(pace: &Pace, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(pace.name())
}

/// Links by what they do.
#[derive(Debug, Serialize)]
pub(super) struct LinksSummary {
    /// How many are busy all the time, by their rates.
    pub(super) binding: Vec<RateSummary>,
    /// The first of them.
    first: Vec<EndsSummary>,
    pub(super) unused: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct RateSummary {
    pub(super) capacity: u64,
    pub(super) links: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct EndsSummary {
    from: String,
    to: String,
}

impl BoundSummary {
    pub(super) fn of(bound: &Bound) -> Self {
        Self { rate: AlgbwSummary::of(&bound.upper), tight: bound.is_tight() }
    }
}

impl LinksSummary {
    /// Links that are busy all the time, and how many carry nothing.
    pub(super) fn of(topology: &Topology, binding: &[LinkIndex], unused: usize) -> Self {
        let rates = rates_of(topology, binding).into_iter();
        let first = binding.iter().take(LINKS_MAX);
        Self {
            binding: rates.map(|(capacity, links)| RateSummary { capacity, links }).collect(),
            first: first.map(|&link| EndsSummary::of(topology, link)).collect(),
            unused,
        }
    }
}

impl EndsSummary {
    pub(super) fn of(topology: &Topology, link: LinkIndex) -> Self {
        let link = topology.link(link);
        let [from, to] = [link.from, link.to].map(|node| topology.node(node).id.clone());
        Self { from, to }
    }
}

#[derive(Debug, Serialize)]
struct ModelSummary {
    /// `simulated`, or `library`: by the latencies of the stock library.
    times: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    alpha_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    piece_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct EntrySummary {
    name: String,
    #[serde(flatten)]
    rate: AlgbwSummary,
    of_bound: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    traffic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    times: Vec<TimeSummary>,
}

#[derive(Debug, Serialize)]
struct TimeSummary {
    size_bytes: u64,
    time_ps: Option<u64>,
}

/// Whether it is worth it.
#[derive(Debug, Serialize)]
pub(super) struct VerdictSummary {
    /// At least 5 % faster than every other, of large messages or at a size that was simulated; null where there is no other.
    pub(super) worth_it: Option<bool>,
    /// The fastest other of large messages, and how many times as fast this plan is.
    #[serde(skip_serializing_if = "Option::is_none")]
    best_other: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) times_as_fast: Option<String>,
    /// From which size on which plan is the fastest.
    fastest: Vec<TurnSummary>,
}

#[derive(Debug, Serialize)]
struct TurnSummary {
    from_bytes: u64,
    name: String,
}

impl Explained {
    pub(super) fn of(
        args: &ExplainArgs,
        plan: &Material,
        compared: &Comparison,
        (model, nvls): (Result<&Model, (Library, &str)>, Option<&Bound>),
    ) -> Self {
        let (topology, schedule) = (&plan.topology, &plan.schedule);
        let optimality = plan.verdict.algbw.ratio_to(&plan.bound.upper);
        let gap = optimality.as_ref().and_then(|part| Some(part.missing_of(&Ratio::new(1_u32, 1_u32)?)));
        let text = |ratio: Option<Ratio>| ratio.map_or_else(String::new, |ratio| ratio.to_string());
        let binding: Vec<LinkIndex> = plan.loads.binding().collect();
        let all = (0_u32..).map(LinkIndex::new).take(topology.links().len());
        Self {
            topology: TopologySummary::of(topology),
            collective: schedule.collective.kind().name(),
            root: schedule.collective.root().map(Rank::number),
            algorithm: schedule.algorithm.clone(),
            bound: BoundSummary::of(&plan.bound),
            with_in_network: nvls.map(|bound| AlgbwSummary::of(&bound.upper)),
            certificate: CertificateSummary::of(
                topology,
                schedule.collective,
                &schedule.shares,
                &plan.bound.certificate,
            ),
            why: why(topology, schedule.collective, &schedule.shares, &plan.bound.certificate),
            in_network: plan.verdict.in_network.as_ref().map(|weighed| AlgbwSummary::of(&weighed.algbw)),
            achieved: plan.verdict.algbw.to_string(),
            achieved_gigabytes: gigabytes_per_sec(&plan.verdict.algbw),
            optimality: text(optimality),
            gap: text(gap),
            steps: match (&schedule.shape, &plan.verdict.steps) {
                (Shape::Steps(steps), Some(cost)) => Some(StepsSummary { count: cost.count, pace: steps.pace }),
                _ => None,
            },
            links: LinksSummary::of(topology, &binding, all.filter(|&link| plan.loads.chunks(link) == 0).count()),
            traffic: plan.loads.traffic().to_string(),
            depth: plan.verdict.depth_max,
            model: ModelSummary::of(args, compared.clock),
            baseline: compared.baseline.clone(),
            compared: compared.entries.iter().map(|entry| entry_summary(entry, &plan.bound.upper, compared)).collect(),
            not_compared: compared.absent.clone(),
            stock: StockSummary::of(model, plan, if compared.clock == Clock::Library { &compared.sizes } else { &[] }),
            verdict: VerdictSummary::of(compared),
            files: Vec::new(),
        }
    }
}

impl ModelSummary {
    fn of(args: &ExplainArgs, clock: Clock) -> Self {
        let messages = &args.messages;
        match clock {
            Clock::Library => Self { times: "library", alpha_ns: None, piece_bytes: None },
            Clock::Simulated => {
                Self { times: "simulated", alpha_ns: Some(messages.alpha_ns()), piece_bytes: messages.piece.0 }
            }
        }
    }
}

fn entry_summary(entry: &Entry, bound: &Rate, compared: &Comparison) -> EntrySummary {
    let times = compared.sizes.iter().zip(&entry.times);
    EntrySummary {
        name: entry.name.clone(),
        rate: AlgbwSummary::of(&entry.algbw),
        of_bound: entry.of_bound(bound).map_or_else(String::new, |part| part.to_string()),
        traffic: entry.course.as_ref().map(|course| course.traffic.to_string()),
        depth: entry.course.as_ref().map(|course| course.depth),
        times: times.map(|(&size_bytes, &time_ps)| TimeSummary { size_bytes, time_ps }).collect(),
    }
}

impl VerdictSummary {
    fn of(compared: &Comparison) -> Self {
        let own = compared.entries.first();
        let best = compared.best_other();
        let ratio = own.zip(best).and_then(|(own, best)| own.algbw.ratio_to(&best.algbw));
        Self {
            worth_it: compared.gains_large().map(|is_gain| is_gain || compared.gains_somewhere()),
            best_other: best.map(|best| best.name.clone()),
            times_as_fast: ratio.map(|ratio| ratio.to_string()),
            fastest: compared
                .turns
                .iter()
                .map(|turn| TurnSummary {
                    from_bytes: turn.from_bytes,
                    name: compared.entries[turn.entry].name.clone(),
                })
                .collect(),
        }
    }
}
