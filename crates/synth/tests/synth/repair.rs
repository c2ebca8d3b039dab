//! Schedules of healthy networks, repaired after random faults: the checker accepts each, or nothing can be done.

#![expect(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

use canopy_schedule::CollectiveKind::{
    AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shares, Verdict, judge_until};
use canopy_synth::{Algorithm, Never, RepairError, RepairOptions, Silent, SynthesisRequest, repaired, synthesize};
use canopy_topology::{Capacity, Fault, Latency, Rank, Topology, TopologyDraft, TopologyLimits, generate};
use proptest::prelude::*;

mod in_time;

/// Any chunks, and rates alone.
const PLAIN: RepairOptions = RepairOptions { chunks_max: None, size_bytes: None, is_in_time: false };

fn healthy(topology: &Topology, algorithm: Algorithm, (kind, root): (CollectiveKind, u32), shares: Shares) -> Schedule {
    let root = kind.has_root().then(|| Rank::new(root % topology.rank_count()));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let request = SynthesisRequest { shares, ..SynthesisRequest::new(collective, algorithm) };
    synthesize(topology, &request, &Never, &Silent).unwrap()
}

fn judged(topology: &Topology, schedule: &Schedule) -> Verdict {
    judge_until(topology, schedule, &|| false).unwrap_or_else(|error| panic!("{error}: {schedule:?}"))
}

/// Ranks and switches on a cycle with chords, all links both ways or each one way.
fn networks() -> impl Strategy<Value = Topology> {
    (2..7_u32, 0..3_u32, any::<bool>(), prop::collection::vec((any::<u32>(), any::<u32>(), 1..9_u64), 9..24)).prop_map(
        |(ranks, switches, both_ways, chords)| {
            let mut draft = TopologyDraft::default();
            let mut ids: Vec<String> = (0..ranks).map(|rank| format!("r{rank}")).collect();
            ids.iter().for_each(|id| draft.add_compute(id));
            for switch in 0..switches {
                draft.add_switch(format!("s{switch}"));
                ids.insert(2 * switch as usize + 1, format!("s{switch}"));
            }
            let count = ids.len() as u32;
            let cycle = chords.iter().enumerate().map(|(at, &(_, _, rate))| (at as u32, at as u32 + 1, rate));
            for (from, to, rate) in cycle.take(count as usize).chain(chords.iter().copied()) {
                let (from, to) = (&ids[(from % count) as usize], &ids[(to % count) as usize]);
                let capacity = Capacity::from_bytes_per_sec(rate * 1_000_000).unwrap();
                if from != to && both_ways {
                    draft.add_both(from, to, capacity, Latency::default());
                } else if from != to {
                    draft.add_link(from, to, capacity, Latency::default());
                }
            }
            draft.build(&TopologyLimits::STANDARD).unwrap()
        },
    )
}

/// Some links down, one or both ways, some slow, sometimes a node gone.
fn faults(topology: &Topology, picks: &[(u32, u32)]) -> Vec<Fault> {
    let fault = |&(pick, what): &(u32, u32)| {
        let link = &topology.links()[pick as usize % topology.links().len()];
        let id = |node| topology.node(node).id.clone();
        let (from, to) = (id(link.from), id(link.to));
        match what % 8 {
            0 => Fault::Node { id: to },
            1 | 2 => Fault::Link { from, to, both_ways: false },
            3 | 4 => Fault::Link {
                from,
                to,
                both_ways: topology.links().iter().any(|back| (back.from, back.to) == (link.to, link.from)),
            },
            _ => Fault::Degrade { from, to, both_ways: false, numerator: 1, denominator: u64::from(what % 8) - 3 },
        }
    };
    picks.iter().map(fault).collect()
}

/// Whether data can go everywhere it has to.
fn is_connected(topology: &Topology, kind: CollectiveKind, root: Option<Rank>) -> bool {
    match (kind, root) {
        (Broadcast | Scatter, Some(root)) => topology.first_unreachable_from(root).is_none(),
        (Reduce | Gather, Some(root)) => topology.first_not_reaching(root).is_none(),
        _ => topology.first_unreachable().is_none(),
    }
}

/// The part of the optimum that a repaired schedule reaches after each of these faults: the mean and the least.
fn reached(whole: &Topology, kind: CollectiveKind, faults: &[Fault]) -> (f64, f64) {
    let schedule = healthy(whole, Algorithm::Auto, (kind, 0), Shares::Equal);
    let ratios = faults.iter().map(|fault| {
        let left = whole.punctured(std::slice::from_ref(fault)).unwrap();
        let repaired = judged(&left, &repaired(whole, &schedule, &left, PLAIN, &Never).unwrap()).algbw;
        let anew = judged(&left, &healthy(&left, Algorithm::Auto, (kind, 0), Shares::Equal)).algbw;
        repaired.ratio_to(&anew).unwrap().to_f64()
    });
    let ratios: Vec<f64> = ratios.collect();
    (ratios.iter().sum::<f64>() / faults.len() as f64, ratios.iter().copied().fold(f64::INFINITY, f64::min))
}

/// A repaired schedule is no mere stopgap: over single faults it keeps nearly all of the optimum.
fn require_most_of_the_optimum(network: &str, kinds: &[CollectiveKind], every: usize) {
    let whole = generate(network, &TopologyLimits::STANDARD).unwrap();
    let id = |node: canopy_topology::NodeIndex| whole.node(node).id.clone();
    let pairs = whole.links().iter().filter(|link| link.from < link.to);
    // Others are much like these.
    let down = pairs.map(|link| Fault::Link { from: id(link.from), to: id(link.to), both_ways: true });
    let down: Vec<Fault> = down.step_by(every).collect();
    let gone: Vec<Fault> = whole.ranks().step_by(every).map(|rank| Fault::Node { id: id(rank.node()) }).collect();
    for &kind in kinds {
        for (what, faults) in [("link", &down), ("node", &gone)] {
            let (mean, least) = reached(&whole, kind, faults);
            assert!(mean >= 0.96 && least >= 0.94, "{network} {kind} {what}: mean {mean}, least {least}");
        }
    }
}

#[test]
fn boxes_keep_most_of_the_optimum() {
    require_most_of_the_optimum("dgx-a100:boxes=2", &[Allgather, Allreduce], 4);
}

#[test]
fn tori_keep_most_of_the_optimum() {
    require_most_of_the_optimum("torus:4x4", &[Allgather, Allreduce, AllToAll], 3);
}

/// All links are needed, and trees have to make way for each other.
#[test]
fn meshes_of_links_keep_most_of_the_optimum() {
    require_most_of_the_optimum("mi250:boxes=2", &[Allreduce], 15);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever breaks: the schedule does the same on what is left, or it is said what makes that impossible.
    #[test]
    fn repaired_schedules_are_right(
        base in networks(),
        picks in prop::collection::vec((any::<u32>(), any::<u32>()), 0..4),
        root in any::<u32>(),
    ) {
        prop_assume!(base.first_unreachable().is_none());
        let Ok(left) = base.punctured(&faults(&base, &picks)) else { return Ok(()) };
        for kind in [Allgather, ReduceScatter, Allreduce, Broadcast, Reduce, Gather, Scatter, AllToAll] {
            for algorithm in [Algorithm::Auto, Algorithm::Direct, Algorithm::Tacos] {
                let schedule = healthy(&base, algorithm, (kind, root), Shares::Equal);
                let old_root = schedule.collective.root().map(|root| base.node(root.node()).id.clone());
                let options = RepairOptions { is_in_time: algorithm.is_in_time(), ..PLAIN };
                match repaired(&base, &schedule, &left, options, &Never) {
                    Ok(repaired) => {
                        judged(&left, &repaired);
                        prop_assert_eq!(repaired.algorithm, "repair");
                    }
                    Err(RepairError::RootGone { root }) => {
                        prop_assert_eq!(Some(&root), old_root.as_ref());
                        prop_assert_eq!(left.find_node(&root), None);
                    }
                    Err(RepairError::Disconnected { from_rank, to_rank, .. }) => {
                        let root = old_root.and_then(|id| left.rank_of(left.find_node(&id)?));
                        prop_assert!(!is_connected(&left, kind, root));
                        prop_assert!(!left.ranks_reached_from(Rank::new(from_rank))[to_rank as usize]);
                    }
                    // All sums of an allreduce were made where nobody is any more.
                    Err(RepairError::NothingLeft) => prop_assert!(schedule.shares != Shares::Equal),
                    Err(error) => return Err(TestCaseError::fail(format!("{kind} {}: {error}", algorithm.name()))),
                }
            }
        }
    }

    /// Where nothing is gone, nothing changes: neither trees nor paths, for optimal schedules.
    #[test]
    fn a_healthy_network_keeps_its_loads(base in networks(), kind in prop::sample::select(vec![Allgather, ReduceScatter, Scatter])) {
        prop_assume!(base.first_unreachable().is_none());
        let schedule = healthy(&base, Algorithm::Auto, (kind, 0), Shares::Equal);
        let repaired = repaired(&base, &schedule, &base, PLAIN, &Never).unwrap();
        prop_assert!(judged(&base, &repaired).algbw >= judged(&base, &schedule).algbw);
    }
}
