//! Plans, bounds and their networks on the wire.

use canopy_plan::PlanFile;
use canopy_planner::{
    Bounds, File, HashKind, JointSummary, PLANNER_CLASS, Planned, Prepared, Puncture, Rejection, Request, ScheduleKey,
    Timings, TopologyKey, Warning,
};
use canopy_proto::v1;
use canopy_schedule::{
    Bound, Certificate, Collective, CollectiveKind, CutDirection, FormChoice, FormReason, InNetwork, NamedParts, Shape,
    Shares, StepCost, Verdict, links_used, lp_dual_sums, sum_parts,
};
use canopy_synth::{PlainBounds, ProvenTime};
use canopy_topology::{NodeIndex, Rank, Rate, Ratio, Topology};
use prost_types::{Duration, Timestamp};

use crate::digest::sha256_hex;
use crate::formats::format_on_the_wire;
use crate::fraction::fraction;
use crate::losses;
use crate::request::{form_on_the_wire, slots_on_the_wire};

/// Times of the stages of planning; those of a job are the caller's to add.
pub fn timings(planned: Timings) -> v1::Timings {
    let Timings { bound_ms, synthesis_ms, check_ms, lower_ms } = planned;
    v1::Timings {
        bound: duration_of_ms(bound_ms),
        synthesis: duration_of_ms(synthesis_ms),
        check: duration_of_ms(check_ms),
        lower: duration_of_ms(lower_ms),
        ..v1::Timings::default()
    }
}

/// A plan with all its artifacts. The server adds the owner.
pub fn plan(request: &Request, planned: Planned) -> v1::Plan {
    let Planned { key, plan, verdict, files, joint, .. } = &planned;
    let quality = quality(plan, &planned.optimality, planned.with_nvls.as_ref());
    v1::Plan {
        name: key.plan_id(),
        content_key: key.to_string(),
        provenance: Some(provenance(request, &planned)),
        quality: Some(quality),
        topology: Some(topology_summary(&plan.topology, &planned.topology_key)),
        valid_for: Some(v1::Validity {
            ranks: plan.topology.rank_count(),
            size_bytes_min: files.size_bytes_min,
            size_bytes_max: files.size_bytes_max,
            in_place: request.in_place,
            alignment_elements: files.alignment_elements,
        }),
        collective: Some(v1::CollectiveSpec {
            kind: collective(planned.kind()).into(),
            root: plan.schedule.collective.root().map(Rank::number),
        }),
        algorithm: plan.schedule.algorithm.clone(),
        chunks_per_rank: plan.schedule.shape.chunks_per_share(),
        steps: step_count(&plan.schedule.shape, verdict),
        trees: verdict.tree_count,
        // Nothing comes this far without having passed the other two.
        reach: reach(&plan.schedule.shape, verdict),
        checked: verdict.checks.into_iter().chain(["certificate", "file"]).map(str::to_owned).collect(),
        shares: plan.schedule.shares.weights().to_vec(),
        form: plan.form.as_ref().map(form),
        family: planned.family.clone().unwrap_or_default(),
        rank_map: planned.rank_map.as_deref().map(slots_on_the_wire),
        superseded_by: String::new(),
        step_cost: verdict.steps.as_ref().map(step_cost),
        path_choice: planned.proofs.choice_bound.as_ref().map(|bound| v1::PathChoice { bound: fraction(bound) }),
        joint: joint.as_ref().and_then(in_common),
        links_used: match &planned.links_used {
            Some(known) => bits(known).into(),
            None => bits(&links_used(&plan.topology, &plan.schedule)).into(),
        },
        time_proof: planned.proofs.time_proof.as_ref().map(time_proof),
        network: plan.topology.name().unwrap_or_default().to_owned(),
        without: planned.puncture.as_deref().map(without).unwrap_or_default(),
        artifacts: planned.files.files.into_iter().map(artifact).collect(),
    }
}

/// Most faults that a plan names; there may be thousands.
const NAMED_FAULTS_MAX: usize = 8;

/// The faults of a network in words.
fn without(Puncture { faults, .. }: &Puncture) -> String {
    let mut words: Vec<String> = faults.iter().take(NAMED_FAULTS_MAX).map(ToString::to_string).collect();
    if let Some(more @ 1..) = faults.len().checked_sub(NAMED_FAULTS_MAX) {
        words.push(format!("{more} more"));
    }
    words.join(", ")
}

fn provenance(request: &Request, planned: &Planned) -> v1::Provenance {
    let Planned { plan, schedules, rejected, repaired_from, .. } = planned;
    let rejected = rejected.iter().map(|Rejection { algorithm, reason, problem }| v1::RejectedRival {
        algorithm: (*algorithm).to_owned(),
        reason: (*reason).to_owned(),
        problem: problem.clone(),
    });
    v1::Provenance {
        version: plan.provenance.version.clone(),
        algorithm_requested: plan.provenance.algorithm.clone(),
        wall_time: duration_of_ms(planned.wall_ms),
        planner_class: PLANNER_CLASS.to_owned(),
        request_key: String::new(),
        schedules: schedules.iter().map(ScheduleKey::to_string).collect(),
        repaired_from: repaired_from.map(|sound| sound.plan_id()).unwrap_or_default(),
        rejected: rejected.collect(),
        tenant: request.tenant.as_ref().map(|tenant| tenant.as_str().to_owned()).unwrap_or_default(),
    }
}

fn artifact(File { output, content, instances, layers }: File) -> v1::Artifact {
    v1::Artifact {
        format: format_on_the_wire(output.format).into(),
        profile: output.profile.to_owned(),
        size_bytes: content.len() as u64,
        sha256: sha256_hex(&content),
        content: Some(content.into()),
        instances: (instances > 0).then_some(instances),
        layers: (layers > 0).then_some(layers),
    }
}

/// A plan's part in a joint schedule.
fn in_common(joint: &JointSummary) -> Option<v1::JointPlan> {
    Some(v1::JointPlan {
        position: u32::try_from(joint.position).ok()?,
        ranks: joint.ranks.iter().map(|rank| rank.number()).collect(),
        size_bytes: joint.size_bytes.get(),
        steps_alone: joint.steps_alone,
        seconds_alone: fraction(&joint.seconds_alone),
        seconds_bound: fraction(&joint.seconds_bound),
        together: Some(v1::JointTimes {
            collectives: u32::try_from(joint.collectives).ok()?,
            steps: joint.steps,
            seconds: fraction(&joint.seconds),
            seconds_one_by_one: fraction(&joint.seconds_one_by_one),
            seconds_longest_alone: fraction(&joint.seconds_longest_alone),
        }),
    })
}

/// The best rate that any plan for a request can reach, with its proof, and what it would be otherwise.
pub fn bounded(prepared: &Prepared, bounds: &Bounds) -> v1::ComputeBoundResponse {
    let found = &bounds.found;
    let Prepared { topology, topology_key, shares, .. } = prepared;
    v1::ComputeBoundResponse {
        bound: fraction(&found.upper),
        lower: fraction(&found.lower),
        tight: found.is_tight(),
        certificate: Some(certificate(topology, prepared.collective, shares, &found.certificate)),
        topology: Some(topology_summary(topology, topology_key)),
        puncture: prepared.puncture.as_deref().map(puncture),
        warnings: warnings(&prepared.warnings),
        without_in_network: bounds.without_switches.as_ref().and_then(|bound| fraction(&bound.upper)),
        with_in_network: bounds.with_nvls.as_ref().and_then(|bound| fraction(&bound.upper)),
        plain_bounds: bounds.plain.as_ref().map(plain_bounds),
    }
}

fn plain_bounds(PlainBounds { distances, degree }: &PlainBounds) -> v1::PlainBounds {
    let full_tree = degree.as_ref();
    v1::PlainBounds {
        distances: fraction(distances),
        degree: full_tree.map(|(degree, _)| *degree),
        full_tree: full_tree.and_then(|(_, rate)| fraction(rate)),
    }
}

/// A network with faults.
pub fn puncture(puncture: &Puncture) -> v1::Puncture {
    v1::Puncture {
        base: puncture.base.clone(),
        faults: puncture.faults.iter().map(losses::on_the_wire).collect(),
        survivors: puncture.survivor_numbers(),
    }
}

/// Warnings on the wire.
fn warning(Warning { code, text }: &Warning) -> v1::Warning {
    v1::Warning { code: code.clone().into_owned(), text: text.clone() }
}

/// What [`warnings`] was given.
pub fn warnings_read(warnings: Vec<v1::Warning>) -> Vec<Warning> {
    warnings.into_iter().map(|v1::Warning { code, text }| Warning { code: code.into(), text }).collect()
}

/// All of it, in the same order.
pub fn warnings(warnings: &[Warning]) -> Vec<v1::Warning> {
    warnings.iter().map(warning).collect()
}

/// A plan with the content of those files that have at most so many bytes; 0: of none.
pub fn plan_header(plan: &v1::Plan, inline_bytes_max: usize) -> v1::Plan {
    let mut plan = plan.clone();
    for artifact in &mut plan.artifacts {
        artifact.content.take_if(|content| inline_bytes_max == 0 || content.len() > inline_bytes_max);
    }
    plan
}

/// Duration of this many milliseconds; `None` if that is 0 or less.
pub fn duration_of_ms(ms: f64) -> Option<Duration> {
    let time = std::time::Duration::try_from_secs_f64(ms / 1e3).ok().filter(|time| !time.is_zero())?;
    Duration::try_from(time).ok()
}

/// The milliseconds of a time; 0 if it is unset.
pub fn ms_of(time: Option<&Duration>) -> f64 {
    time.map_or(0.0, |time| time.seconds as f64 * 1e3 + f64::from(time.nanos) / 1e6)
}

/// A time in milliseconds since 1970 UTC.
pub fn timestamp(unix_ms: u64) -> Timestamp {
    let seconds = i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX);
    Timestamp { seconds, nanos: i32::try_from(unix_ms % 1000).unwrap_or(0) * 1_000_000 }
}

/// Bounds on the time of a plan.
fn time_proof(ProvenTime { total, phases, is_of_one_unwinding }: &ProvenTime) -> v1::TimeProof {
    v1::TimeProof {
        end: total.end,
        bound: total.bound,
        one_unwinding: *is_of_one_unwinding,
        phases: phases.iter().map(|phase| v1::PhaseTime { end: phase.end, bound: phase.bound }).collect(),
    }
}

/// Flags, eight to the byte, the lowest bit first.
pub fn bits(flags: &[bool]) -> Vec<u8> {
    let byte = |flags: &[bool]| flags.iter().rev().fold(0, |byte, &flag| byte << 1 | u8::from(flag));
    flags.chunks(8).map(byte).collect()
}

/// The form of an allreduce on the wire.
fn form(choice: &FormChoice) -> v1::FormChoice {
    let reason = match choice.reason {
        FormReason::Asked => v1::FormReason::Asked,
        FormReason::Faster => v1::FormReason::Faster,
        FormReason::AsFast => v1::FormReason::AsFast,
        FormReason::Limited => v1::FormReason::Limited,
        FormReason::TooMany => v1::FormReason::TooMany,
        FormReason::OneWay => v1::FormReason::OneWay,
    };
    v1::FormChoice {
        form: form_on_the_wire(choice.form).into(),
        reason: reason.into(),
        two_phases: choice.two_phases.as_ref().and_then(fraction),
    }
}

/// Number of steps if the schedule has steps, else the greatest depth in hops.
fn step_count(shape: &Shape, verdict: &Verdict) -> u32 {
    match shape {
        Shape::Steps(steps) => u32::try_from(steps.step_count()).unwrap_or(u32::MAX),
        Shape::Forest(_) | Shape::Flow(_) | Shape::Stages(_) | Shape::Orbits(_) => verdict.depth_max,
    }
}

/// The cost of steps on the wire.
fn step_cost(cost: &StepCost) -> v1::StepCost {
    v1::StepCost { count: cost.count, bandwidth: fraction(&cost.bandwidth) }
}

/// Depth of trees and paths. Floats, for display.
#[expect(clippy::cast_precision_loss, reason = "means are for people")]
fn reach(shape: &Shape, verdict: &Verdict) -> Option<v1::Reach> {
    let mean = |sum: u128| sum as f64 / verdict.tree_count as f64;
    match shape {
        Shape::Steps(_) => None,
        Shape::Forest(_) | Shape::Flow(_) | Shape::Stages(_) | Shape::Orbits(_) => Some(v1::Reach {
            depth_mean: mean(verdict.depth_sum),
            hops_max: verdict.links_max,
            hops_mean: mean(verdict.links_sum),
        }),
    }
}

fn quality(plan: &PlanFile, optimality: &Ratio, with_nvls: Option<&Rate>) -> v1::Quality {
    let (bound, achieved) = (&plan.bound, &plan.achieved);
    v1::Quality {
        bound: fraction(&bound.upper),
        lower: fraction(&bound.lower),
        tight: bound.is_tight(),
        achieved: fraction(achieved),
        optimality: fraction(optimality),
        certificate: Some(certificate(
            &plan.topology,
            plan.schedule.collective,
            &plan.schedule.shares,
            &bound.certificate,
        )),
        in_network: plan.in_network.as_ref().map(|weighed| in_network(weighed, bound)),
        with_in_network: with_nvls.and_then(fraction),
    }
}

fn in_network(weighed: &InNetwork, bound: &Bound) -> v1::InNetwork {
    let InNetwork { traffic_without, traffic, algbw } = weighed;
    v1::InNetwork {
        traffic_without: fraction(traffic_without),
        traffic: fraction(traffic),
        saved: fraction(&weighed.saved()),
        algbw: fraction(algbw),
        optimality: algbw.ratio_to(&bound.upper).and_then(|ratio| fraction(&ratio)),
    }
}

/// The summary of a topology on the wire.
pub fn topology_summary(topology: &Topology, key: &TopologyKey) -> v1::TopologySummary {
    let count = |count: usize| u32::try_from(count).expect("built topologies have fewer than 2³² nodes and links");
    v1::TopologySummary {
        hash: key.shape.to_string(),
        hash_kind: match key.shape_kind {
            HashKind::Canonical => v1::HashKind::Canonical.into(),
            HashKind::Content => v1::HashKind::Content.into(),
        },
        ranks: topology.rank_count(),
        nodes: count(topology.nodes().len()),
        links: count(topology.links().len()),
    }
}

/// A certificate on the wire, which has been added up again.
pub fn certificate(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    certificate: &Certificate,
) -> v1::Certificate {
    use v1::certificate::Kind;
    let kind = match certificate {
        Certificate::Cut { direction, nodes } => {
            let (direction, nodes) = smaller_side(topology, *direction, nodes);
            Kind::Cut(v1::CutCertificate {
                direction: match direction {
                    CutDirection::Out => v1::CutDirection::Out.into(),
                    CutDirection::In => v1::CutDirection::In.into(),
                },
                set: Some(node_set(topology, &nodes)),
                capacity: boundary_capacity(topology, &nodes, direction).to_string(),
            })
        }
        Certificate::Partition { sets } => Kind::Partition(partition(topology, sets)),
        Certificate::Sum { terms, potentials } => {
            let sums = sum_parts(topology, collective, shares, terms, potentials);
            let (capacity, data) = sums.expect("the certificate has been re-added");
            let term = |(weight, term): &(u64, Certificate)| v1::SumTerm {
                weight: *weight,
                certificate: Some(self::certificate(topology, collective, shares, term)),
            };
            let potential = |&(node, potential): &(NodeIndex, i64)| v1::NodePotential {
                node: topology.node(node).id.clone(),
                potential,
            };
            Kind::Sum(v1::SumCertificate {
                terms: terms.iter().map(term).collect(),
                potentials: potentials.iter().map(potential).collect(),
                capacity: capacity.to_string(),
                data: fraction(&data),
            })
        }
        Certificate::LpDual { lengths } => Kind::LpDual(lp_dual(topology, shares, lengths)),
    };
    v1::Certificate { kind: Some(kind) }
}

/// The side of a cut with fewer ranks, or with fewer nodes: what leaves the one enters the other.
fn smaller_side(topology: &Topology, direction: CutDirection, nodes: &[NodeIndex]) -> (CutDirection, Vec<NodeIndex>) {
    let all = (0_u32..).map(NodeIndex::new).take(topology.nodes().len());
    let others: Vec<NodeIndex> = all.filter(|node| nodes.binary_search(node).is_err()).collect();
    let size = |side: &[NodeIndex]| (side.iter().filter(|&&node| topology.rank_of(node).is_some()).count(), side.len());
    match (size(&others) < size(nodes), direction) {
        (false, direction) => (direction, nodes.to_vec()),
        (true, CutDirection::Out) => (CutDirection::In, others),
        (true, CutDirection::In) => (CutDirection::Out, others),
    }
}

/// Most sets of a partition that are listed if the network names them by itself.
const LISTED_SETS_MAX: usize = 1024;

fn partition(topology: &Topology, sets: &[Vec<NodeIndex>]) -> v1::PartitionCertificate {
    let parts = (sets.len() > LISTED_SETS_MAX).then(|| NamedParts::of(topology, sets)).flatten();
    let listed = if parts.is_some() { &[] } else { sets };
    v1::PartitionCertificate {
        sets: listed.iter().map(|nodes| node_set(topology, nodes)).collect(),
        capacity: partition_capacity(topology, sets).to_string(),
        parts: match parts {
            None => v1::PartitionParts::Unspecified.into(),
            Some(NamedParts::Boxes) => v1::PartitionParts::Boxes.into(),
            Some(NamedParts::Ranks) => v1::PartitionParts::Ranks.into(),
        },
        set_count: u32::try_from(sets.len()).unwrap_or(u32::MAX),
    }
}

/// What the sets of a partition are, where they are not listed.
pub fn parts_of_wire(partition: &v1::PartitionCertificate) -> Option<NamedParts> {
    match partition.parts() {
        v1::PartitionParts::Unspecified => None,
        v1::PartitionParts::Boxes => Some(NamedParts::Boxes),
        v1::PartitionParts::Ranks => Some(NamedParts::Ranks),
    }
}

fn lp_dual(topology: &Topology, shares: &Shares, lengths: &[u64]) -> v1::LpDualCertificate {
    let id = |node: NodeIndex| topology.node(node).id.clone();
    let lengths_of_links = topology.links().iter().zip(lengths).filter(|&(_, &length)| length > 0);
    let sums = lp_dual_sums(topology, shares, lengths).expect("the certificate has been re-added");
    v1::LpDualCertificate {
        lengths: lengths_of_links
            .map(|(link, &length)| v1::LinkLength { from: id(link.from), to: id(link.to), length })
            .collect(),
        volume: sums.volume.to_string(),
        distance: sums.distance.to_string(),
    }
}

fn node_set(topology: &Topology, nodes: &[NodeIndex]) -> v1::NodeSet {
    v1::NodeSet {
        nodes: nodes.iter().map(|&node| topology.node(node).id.clone()).collect(),
        ranks: nodes.iter().filter_map(|&node| topology.rank_of(node)).map(Rank::number).collect(),
    }
}

/// Capacity of the links that cross the boundary of a set in one direction, in bytes per second.
fn boundary_capacity(topology: &Topology, nodes: &[NodeIndex], direction: CutDirection) -> u128 {
    let mut inside = vec![false; topology.nodes().len()];
    for node in nodes {
        inside[node.index()] = true;
    }
    let crosses = |from: NodeIndex, to: NodeIndex| match direction {
        CutDirection::Out => inside[from.index()] && !inside[to.index()],
        CutDirection::In => !inside[from.index()] && inside[to.index()],
    };
    let crossing = topology.links().iter().filter(|link| crosses(link.from, link.to));
    crossing.map(|link| u128::from(link.capacity.bytes_per_sec())).sum()
}

/// Capacity leaving any of the sets, in bytes per second, in one pass over the links.
fn partition_capacity(topology: &Topology, sets: &[Vec<NodeIndex>]) -> u128 {
    let mut set_of = vec![None; topology.nodes().len()];
    for (number, nodes) in sets.iter().enumerate() {
        for node in nodes {
            set_of[node.index()] = Some(number);
        }
    }
    let leaves =
        |from: NodeIndex, to: NodeIndex| set_of[from.index()].is_some() && set_of[from.index()] != set_of[to.index()];
    let leaving = topology.links().iter().filter(|link| leaves(link.from, link.to));
    leaving.map(|link| u128::from(link.capacity.bytes_per_sec())).sum()
}

/// A collective on the wire.
pub const fn collective(kind: CollectiveKind) -> v1::Collective {
    match kind {
        CollectiveKind::Allgather => v1::Collective::Allgather,
        CollectiveKind::ReduceScatter => v1::Collective::ReduceScatter,
        CollectiveKind::Allreduce => v1::Collective::Allreduce,
        CollectiveKind::Broadcast => v1::Collective::Broadcast,
        CollectiveKind::Reduce => v1::Collective::Reduce,
        CollectiveKind::Gather => v1::Collective::Gather,
        CollectiveKind::Scatter => v1::Collective::Scatter,
        CollectiveKind::AllToAll => v1::Collective::AllToAll,
    }
}

/// The collective of a number; `None` for an unknown number.
pub fn collective_of_wire(number: i32) -> Option<CollectiveKind> {
    CollectiveKind::ALL.into_iter().find(|&kind| i32::from(collective(kind)) == number)
}
