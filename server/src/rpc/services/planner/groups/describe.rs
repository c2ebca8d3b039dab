//! What was found of a job, on the wire.

use bytes::Bytes;
use canopy_planner::TopologyKey;
use canopy_proto::Exact as _;
use canopy_proto::v1;
use canopy_topology::{Rank, Ratio, Topology, to_json};
use canopy_training::job::{Comparison, Job, JobLevel, Order};
use canopy_wire as wire;
use canopy_wire::fraction;
use canopy_wire::plan_header;

use super::solve::Solved;
use crate::rpc::shared::outgoing::{MESSAGE_BYTES, batches};

/// What the groups reach.
pub(super) fn rates(solved: &Solved, others: Option<&Comparison>) -> v1::GroupRates {
    let Solved { topology, job, survivors, rank_count, rates, orders, applied } = solved;
    let of = |time: fn(&Comparison) -> &Ratio| others.and_then(|others| fraction(time(others)));
    let lost = (0..*rank_count).filter(|&rank| survivors.binary_search(&Rank::new(rank)).is_err());
    v1::GroupRates {
        topology: Some(wire::topology_summary(topology, &TopologyKey::of(topology))),
        seconds: fraction(&rates.seconds),
        seconds_bound: fraction(&rates.seconds_min),
        seconds_rings: of(|others| &others.rings),
        seconds_phases: of(|others| &others.phases),
        seconds_alone: of(|others| &others.alone),
        classes: (0..job.classes.len()).map(|class| class_rates(job, class, others)).collect(),
        lost_ranks: lost.collect(),
        warnings: applied.warnings().collect(),
        levels: rates.levels.iter().map(level).collect(),
        orders: orders.iter().flat_map(|found| &found.orders).map(order).collect(),
        best_order: orders.as_ref().map_or(0, |found| u32::try_from(found.best).unwrap_or(u32::MAX)),
        rank_order: orders.as_ref().map(|found| found.places.clone()).unwrap_or_default(),
    }
}

fn order(Order { layout, seconds, seconds_min }: &Order) -> v1::GroupOrder {
    v1::GroupOrder {
        layout: layout.to_string(),
        seconds: seconds.as_ref().and_then(fraction),
        seconds_bound: fraction(&seconds_min),
    }
}

fn level(JobLevel { seconds, seconds_min, groups, .. }: &JobLevel) -> v1::GroupLevel {
    v1::GroupLevel {
        seconds: fraction(&seconds),
        seconds_bound: fraction(&seconds_min),
        groups: groups.iter().map(|&group| u32::try_from(group).unwrap_or(u32::MAX)).collect(),
    }
}

fn class_rates(job: &Job, class: usize, others: Option<&Comparison>) -> v1::GroupClassRates {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let groups = || job.groups.iter().filter(|group| group.class == class);
    let alone = others.and_then(|others| others.classes.get(class));
    let stated = job.classes.get(class);
    let kind = groups().next().map(|group| wire::collective_on_the_wire(group.collective.kind()));
    v1::GroupClassRates {
        name: stated.map(|class| class.name.clone()).unwrap_or_default(),
        collective: kind.unwrap_or_default().into(),
        groups: number(groups().count()),
        ranks: number(groups().map(|group| group.ranks.len()).max().unwrap_or(0)),
        size_bytes: stated.map_or(0, |class| class.size_bytes.get()),
        seconds_alone: alone.and_then(fraction),
    }
}

/// The proofs of all levels, or of the common rate, in messages of moderate length.
pub(super) fn lengths(Solved { topology, rates, .. }: &Solved) -> Vec<v1::GroupLengths> {
    let of_levels = rates.levels.iter().map(|level| &level.lengths);
    let common = Some(&rates.lengths).filter(|_| rates.levels.is_empty());
    (0..).zip(of_levels.chain(common)).flat_map(|(level, lengths)| of_level(topology, level, lengths)).collect()
}

fn of_level(topology: &Topology, level: u32, lengths: &[u128]) -> Vec<v1::GroupLengths> {
    let long = topology.links().iter().zip(lengths).filter(|(_, length)| **length > 0);
    let sent = long.map(|(link, length)| v1::GroupLinkLength {
        from: topology.node(link.from).id.clone(),
        to: topology.node(link.to).id.clone(),
        latency_ns: link.latency.nanos(),
        length: length.to_string(),
    });
    batches(sent).into_iter().map(|links| v1::GroupLengths { links, level }).collect()
}

/// The network, in messages of moderate length.
pub(super) fn network(solved: &Solved) -> Vec<v1::GroupNetwork> {
    let content = Bytes::from(to_json(&solved.topology));
    let ends = (0..content.len()).step_by(MESSAGE_BYTES);
    ends.map(|start| v1::GroupNetwork { piece: content.slice(start..content.len().min(start + MESSAGE_BYTES)) })
        .collect()
}

/// The plan of a group.
pub(super) fn plan(solved: &Solved, group: usize, reply: v1::PlanResponse) -> v1::GroupPlan {
    let Some(planned) = solved.job.groups.get(group) else { return v1::GroupPlan::default() };
    let before = |rank: &Rank| solved.survivors.get(rank.index()).map_or(u32::MAX, |rank| rank.number());
    let seconds = reply.plan.as_ref().and_then(|plan| seconds(planned.size_bytes.get(), plan));
    // The members are numbered as the group says, where they are is the job's to know, and shares may well be of one
    // direction.
    let is_ours = ["RANKS_RENUMBERED", "RANK_MAP_ASSUMED", "TOPOLOGY_ASSUMED"];
    let is_said = |warning: &v1::Warning| !is_ours.contains(&warning.code.as_str());
    v1::GroupPlan {
        name: planned.name.clone(),
        collective: Some(v1::CollectiveSpec {
            kind: wire::collective_on_the_wire(planned.collective.kind()).into(),
            root: planned.collective.root().map(Rank::number),
        }),
        ranks: planned.ranks.iter().map(before).collect(),
        size_bytes: planned.size_bytes.get(),
        plan: reply.plan.map(|plan| plan_header(&plan, 0)),
        cache: reply.cache,
        warnings: reply.warnings.into_iter().filter(is_said).collect(),
        seconds: seconds.and_then(|seconds| fraction(&seconds)),
    }
}

/// What a plan takes for so many bytes in the network that it was made for.
fn seconds(size_bytes: u64, plan: &v1::Plan) -> Option<Ratio> {
    let achieved: Ratio = plan.quality.as_ref()?.achieved.read()?;
    let (bytes, seconds) = achieved.parts();
    Ratio::new(seconds * size_bytes, bytes.clone())
}
