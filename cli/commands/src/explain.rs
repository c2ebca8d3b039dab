//! Why an allreduce is no faster, in the names of nodes and boxes: as JSON and as lines of text.

use std::collections::BTreeSet;

use canopy_schedule::{AllreduceForm, Bound, Certificate, Collective, CollectiveKind, Schedule, check, compile};
use canopy_synth::{
    Algorithm, BoundError, PartClass, Repaired, Silent, Stop, SumOptions, SynthesisError, SynthesisRequest,
    part_classes, repairs, synthesize,
};
use canopy_topology::{NodeIndex, Rate, Topology};
use serde::Serialize;

use crate::material::unbroken;
use crate::output::{AlgbwSummary, gigabytes, gigabytes_per_sec, percent_in_words};
use crate::table::count;

/// Most classes of sets, and most repairs, that the text lists.
const LINES_MAX: usize = 8;

/// Most links of a class that are named.
const LINKS_MAX: usize = 4;

/// The `explanation` member of JSON objects.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    /// Sets of the limiting partition that are alike, the largest class first.
    parts: Vec<Part>,
    /// Bytes per second of the plan in two phases, a reduce-scatter followed by an allgather, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    two_phases: Option<String>,
    /// What single changes would bring, best first.
    repairs: Vec<RepairSummary>,
}

#[derive(Debug, Serialize)]
struct Part {
    /// The first set of the class.
    name: String,
    sets: usize,
    ranks: usize,
    capacity: String,
    /// How it differs from the largest class; nothing for that itself.
    odd: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RepairSummary {
    change: String,
    #[serde(flatten)]
    rate: AlgbwSummary,
}

/// Looks for all of it. `expression` is what the topology was generated from, if so: it tells what is broken.
///
/// # Errors
/// The search was stopped, or numbers are too large.
pub(crate) fn explain(
    expression: Option<&str>,
    topology: &Topology,
    bound: &Bound,
    stop: &dyn Stop,
) -> Result<Explanation, BoundError> {
    let classes = part_classes(topology, &bound.certificate);
    let usual_ranks = classes.first().map_or(0, |class| class.ranks);
    let usual_capacity = classes.first().map_or(0, |class| class.capacity);
    let sets: &[Vec<NodeIndex>] = if let Certificate::Partition { sets } = &bound.certificate { sets } else { &[] };
    let part = |class: &PartClass| Part {
        name: name(topology, &sets[class.sets[0]]),
        sets: class.sets.len(),
        ranks: class.ranks,
        capacity: class.capacity.to_string(),
        odd: odd(topology, class, usual_ranks, usual_capacity),
    };
    let two_phases = match two_phases(topology, stop) {
        // That of the plan: links of one phase have room for the other, so it may be more than that of both in turn.
        Ok(schedule) => rate(topology, &schedule),
        Err(SynthesisError::Stopped) => return Err(BoundError::Stopped),
        // What cannot be planned has no rate to tell.
        Err(_) => None,
    };
    let found = repairs(
        topology,
        expression.filter(|text| topology.name() == Some(text)).and_then(|_| unbroken(topology)).as_ref(),
        bound,
        stop,
    )?;
    let repairs = found
        .into_iter()
        .map(|repair| RepairSummary { change: words(&repair.what), rate: AlgbwSummary::of(&repair.rate) });
    Ok(Explanation { parts: classes.iter().map(part).collect(), two_phases, repairs: repairs.collect() })
}

/// The plan of an allreduce in the form `two-phase`.
pub(crate) fn two_phases(topology: &Topology, stop: &dyn Stop) -> Result<Schedule, SynthesisError> {
    let broken = |error| SynthesisError::Broken { what: format!("allreduce has no root: {error}") };
    let collective = Collective::new(CollectiveKind::Allreduce, None, topology.rank_count()).map_err(broken)?;
    let sums = SumOptions { form: Some(AllreduceForm::TwoPhases), ..SumOptions::AUTO };
    let request = SynthesisRequest { sums, ..SynthesisRequest::new(collective, Algorithm::Forest) };
    synthesize(topology, &request, stop, &Silent)
}

/// The algbw of a schedule; `None` if it is not right.
fn rate(topology: &Topology, schedule: &Schedule) -> Option<String> {
    let verdict = check(topology, &compile(topology, schedule).ok()?).ok()?;
    Some(verdict.algbw.to_string())
}

/// `box b3`, the id of a single node, or some of many.
fn name(topology: &Topology, set: &[NodeIndex]) -> String {
    let ranks: Vec<NodeIndex> = set.iter().copied().filter(|&node| topology.rank_of(node).is_some()).collect();
    let box_of = |node: NodeIndex| topology.node(node).attributes.box_name.as_deref();
    let id = |node: NodeIndex| topology.node(node).id.as_str();
    let boxes: BTreeSet<Option<&str>> = ranks.iter().map(|&node| box_of(node)).collect();
    let in_boxes = topology.ranks().filter(|rank| boxes.contains(&box_of(rank.node()))).count();
    match (ranks.as_slice(), boxes.first(), boxes.len()) {
        ([only], ..) => id(*only).to_owned(),
        (_, Some(Some(name)), 1) if in_boxes == ranks.len() => format!("box {name}"),
        (_, Some(Some(first)), more) if in_boxes == ranks.len() && !boxes.contains(&None) => {
            format!("{more} boxes from {first} on")
        }
        ([first, ..], ..) => format!("{} from {} on", count(ranks.len(), "rank"), id(*first)),
        ([], ..) => "nothing".to_owned(),
    }
}

/// What a class of sets lacks.
fn odd(topology: &Topology, class: &PartClass, usual_ranks: usize, usual_capacity: u128) -> Vec<String> {
    let mut odd = Vec::new();
    if class.ranks < usual_ranks {
        odd.push(format!("{} where others have {usual_ranks}", count(class.ranks, "rank")));
    }
    if class.capacity >= usual_capacity {
        return odd;
    }
    for &(link, usual) in class.slower.iter().take(LINKS_MAX) {
        let link = topology.link(link);
        let [from, to] = [link.from, link.to].map(|node| topology.node(node).id.as_str());
        let found = gigabytes(link.capacity.bytes_per_sec().into());
        odd.push(format!("{from} - {to} has {found} GB/s where others have {}", gigabytes(usual.into())));
    }
    if class.slower.len() > LINKS_MAX {
        odd.push(format!("{} more slower links", class.slower.len() - LINKS_MAX));
    }
    if let [first, ..] = class.missing.as_slice() {
        odd.push(format!("{} of {} GB/s missing", count(class.missing.len(), "link"), gigabytes((*first).into())));
    }
    odd
}

fn words(change: &Repaired) -> String {
    match change {
        Repaired::Node { id } => format!("{id} back"),
        Repaired::Link { first, second, before: 0, .. } => format!("{first} - {second} back"),
        Repaired::Link { first, second, before, after } => {
            format!("{first} - {second} with {} GB/s instead of {}", gigabytes(*after), gigabytes(*before))
        }
    }
}

impl Explanation {
    /// The same in lines for people.
    pub(crate) fn readable(&self, bound: &Bound) -> Vec<String> {
        let mut lines = Vec::new();
        for Part { name, sets, ranks, capacity, odd } in self.parts.iter().take(LINES_MAX) {
            let rate: Option<Rate> = capacity.parse().ok();
            let rate = rate.map_or(0.0, |rate| gigabytes_per_sec(&rate));
            let alike = if *sets > 1 { format!(" and {} like it", count(sets - 1, "other")) } else { String::new() };
            let what = if odd.is_empty() { String::new() } else { format!(": {}", odd.join(", ")) };
            let who = match ranks {
                1 => format!("rank {name}{alike}"),
                _ => format!("{name}{alike}, {}", count(*ranks, "rank")),
            };
            lines.push(format!("limited    {who}, left by {rate} GB/s{what}"));
        }
        if self.parts.len() > LINES_MAX {
            lines.push(format!("           and {} more kinds of sets", self.parts.len() - LINES_MAX));
        }
        if let Some(rate) = self.two_phases.as_ref().and_then(|text| text.parse::<Rate>().ok()) {
            let ratio = rate
                .ratio_to(&bound.upper)
                .map(|ratio| format!(", {} of the bound", percent_in_words(&ratio.to_string())))
                .unwrap_or_default();
            lines.push(format!(
                "two phases {} GB/s as a reduce-scatter followed by an allgather{ratio}",
                gigabytes_per_sec(&rate)
            ));
        }
        for RepairSummary { change, rate } in self.repairs.iter().take(LINES_MAX) {
            lines.push(format!("repair     {} GB/s with {change}", rate.gigabytes));
        }
        lines
    }
}
