//! Every schedule is judged by the checker, which counts the steps and adds up their times.

#[path = "../../../schedule/tests/schedule/depth_bound.rs"]
mod depth_bound;
mod hosts;
mod latencies;

use canopy_optimize::Never;
use canopy_schedule::{CollectiveKind, StepCost, check, compile};
use canopy_topology::{Capacity, Latency, Rank, TopologyDraft, TopologyLimits, generate};
use proptest::prelude::*;

use super::*;
use crate::progress::Silent;

/// Ranks joined by links of one capacity.
fn network(ranks: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Topology {
    let capacity = Capacity::from_bytes_per_sec(25_000_000_000).unwrap();
    weighted(ranks, edges.into_iter().map(|(from, to)| (from, to, capacity)))
}

fn weighted(ranks: u32, links: impl IntoIterator<Item = (u32, u32, Capacity)>) -> Topology {
    let mut draft = TopologyDraft::default();
    (0..ranks).for_each(|rank| draft.add_compute(format!("n{rank}")));
    for (from, to, capacity) in links.into_iter().filter(|(from, to, _)| from != to) {
        draft.add_link(format!("n{from}"), format!("n{to}"), capacity, Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

fn generalized_kautz(degree: u32, ranks: u32) -> Topology {
    let head = |x: u32, a: u32| (ranks * degree - degree * x + ranks - a) % ranks;
    network(ranks, (0..ranks).flat_map(|x| (1..=degree).map(move |a| (x, head(x, a)))))
}

fn circulant(ranks: u32, offsets: &[u32]) -> Topology {
    let ends = |v: u32, o: u32| [(v, (v + o) % ranks), ((v + o) % ranks, v)];
    network(ranks, (0..ranks).flat_map(|v| offsets.iter().flat_map(move |&o| ends(v, o))))
}

fn collective(topology: &Topology, kind: CollectiveKind, root: u32) -> Collective {
    let root = kind.has_root().then(|| Rank::new(root));
    Collective::new(kind, root, topology.rank_count()).unwrap()
}

fn planned(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    limits: TreeLimits,
    symmetry: Symmetry,
) -> Result<Schedule, SynthesisError> {
    let asked = Asked { limits, size_bytes: None, symmetry };
    let shape = plan(topology, collective, shares, asked, &Never, &Silent)?;
    Ok(Schedule { collective, algorithm: "bfb".to_owned(), shares: shares.clone(), shape })
}

/// Judges a schedule; returns its cost.
#[track_caller]
fn judged(topology: &Topology, schedule: &Schedule) -> StepCost {
    let graph = compile(topology, schedule).unwrap();
    check(topology, &graph).unwrap().steps.expect("it has steps")
}

/// Steps and bandwidth term of an allgather and a reduce-scatter; both one after the other make an allreduce.
#[track_caller]
fn check_costs(topology: &Topology, chunks: u64, allgather: (u32, &str), reduce_scatter: (u32, &str)) {
    let cost = |kind, symmetry| {
        let collective = collective(topology, kind, 0);
        let schedule = planned(topology, collective, &Shares::Equal, TreeLimits::NONE, symmetry).unwrap();
        let cost = judged(topology, &schedule);
        (schedule.shape.chunks_per_share(), cost.count, cost.bandwidth.to_string())
    };
    for symmetry in [Symmetry::Used, Symmetry::Unused] {
        let (found, count, bandwidth) = cost(CollectiveKind::Allgather, symmetry);
        assert_eq!((found, count, bandwidth.as_str()), (chunks, allgather.0, allgather.1), "allgather");
        let (_, count, bandwidth) = cost(CollectiveKind::ReduceScatter, symmetry);
        assert_eq!((count, bandwidth.as_str()), reduce_scatter, "reduce-scatter");
        let (_, count, _) = cost(CollectiveKind::Allreduce, symmetry);
        assert_eq!(count, allgather.0 + reduce_scatter.0, "allreduce");
    }
}

fn generated(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

#[test]
fn known_costs_come_out_as_the_stated_fractions() {
    let both = |topology: &Topology, chunks, steps, bandwidth| {
        check_costs(topology, chunks, (steps, bandwidth), (steps, bandwidth));
    };
    both(&generated("hypercube:3"), 3, 3, "7/8");
    both(&generated("ring:6"), 2, 3, "5/6");
    both(&generated("ring:4,dir=uni"), 1, 3, "3/4");
    both(&generated("torus:4x6"), 4, 5, "23/24");
    both(&generated("bipartite:4x4"), 4, 2, "7/8");
    both(&generated("complete:7"), 1, 1, "6/7");
    both(&circulant(12, &[2, 3]), 4, 2, "11/12");
    both(&generalized_kautz(4, 20), 1, 2, "1/1");
    both(&generalized_kautz(2, 12), 1, 3, "7/6");
    check_costs(&generalized_kautz(4, 11), 2, (2, "14/11"), (2, "16/11"));
}

/// From 64 ranks on, ranks that look alike are served alike; the cost is that of serving each by itself.
#[test]
fn what_is_moved_costs_as_much_as_what_is_made() {
    for (topology, chunks, steps) in
        [(generated("hypercube:6"), 6, 6), (generated("torus:8x9"), 4, 8), (circulant(70, &[6, 7]), 4, 6)]
    {
        let ranks = topology.rank_count();
        let likeness = Likeness::of(&topology, &vec![1; ranks as usize], &Never).unwrap();
        assert_eq!(likeness.first_of_each(), [0]);
        let bandwidth = format!("{}/{ranks}", ranks - 1);
        check_costs(&topology, chunks, (steps, &bandwidth), (steps, &bandwidth));
    }
}

#[test]
fn one_source_reaches_all_in_as_many_steps_as_it_is_far() {
    let topology = generated("mesh:3x4");
    for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
        for (root, steps) in [(0, 5), (5, 3)] {
            let collective = collective(&topology, kind, root);
            let schedule = planned(&topology, collective, &Shares::Equal, TreeLimits::NONE, Symmetry::Used).unwrap();
            assert_eq!(judged(&topology, &schedule).count, steps);
        }
    }
}

/// Links of 3 and 1 from two neighbours that both have what two others sent: in equal times they carry 3/2 and 1/2.
#[test]
fn wide_links_carry_more() {
    let rate = |units: u64| Capacity::from_bytes_per_sec(units * 1_000_000_000).unwrap();
    let both = |(a, b, units)| [(a, b, rate(units)), (b, a, rate(units))];
    let links = [(0, 1, 3), (0, 2, 1), (1, 3, 2), (2, 3, 2), (1, 4, 2), (2, 4, 2)];
    let topology = weighted(5, links.into_iter().flat_map(both));
    let allgather = collective(&topology, CollectiveKind::Allgather, 0);
    let with = |limits| {
        let schedule = planned(&topology, allgather, &Shares::Equal, limits, Symmetry::Used).unwrap();
        (schedule.shape.chunks_per_share(), judged(&topology, &schedule).bandwidth)
    };
    let (chunks, exact) = with(TreeLimits::NONE);
    let coarse = with(TreeLimits { chunks: 1.try_into().ok(), ..TreeLimits::NONE });
    assert!(chunks > 1 && coarse.0 == 1 && coarse.1 > exact, "{chunks}: {exact}, {coarse:?}");
    let limited = with(TreeLimits { max_chunks: (chunks - 1).try_into().ok(), ..TreeLimits::NONE });
    assert!(limited.0 < chunks && limited.1 >= exact && limited.1 <= coarse.1, "{limited:?}");
}

/// Shares that come whole over one link each need no division, whatever the rates are.
#[test]
fn rates_without_a_common_factor_need_no_more_chunks_than_steps_do() {
    let rate = |units: u64| Capacity::from_bytes_per_sec(units * 1_000_000).unwrap();
    let both = |(a, b, there, back)| [(a, b, rate(there)), (b, a, rate(back))];
    let chunks = |links: &[(u32, u32, u64, u64)], ranks| {
        let topology = weighted(ranks, links.iter().copied().flat_map(both));
        let collective = collective(&topology, CollectiveKind::Allreduce, 0);
        let schedule = planned(&topology, collective, &Shares::Equal, TreeLimits::NONE, Symmetry::Used).unwrap();
        judged(&topology, &schedule);
        schedule.shape.chunks_per_share()
    };
    assert_eq!(chunks(&[(0, 1, 99_991, 99_991), (1, 2, 60_013, 60_013), (0, 2, 40_009, 40_009)], 3), 1);
    // From across, what 9 and 5 carry in equal times: parts of 14.
    assert_eq!(chunks(&[(0, 1, 9, 5), (1, 2, 9, 5), (2, 3, 9, 5), (3, 0, 9, 5)], 4), 14);
}

#[test]
fn what_it_cannot_plan_is_refused() {
    let refused = |expression: &str, kind, limits| {
        let topology = generated(expression);
        let collective = collective(&topology, kind, 0);
        planned(&topology, collective, &Shares::Equal, limits, Symmetry::Used).unwrap_err().to_string()
    };
    let none = TreeLimits::NONE;
    let text = refused("dgx-a100:boxes=1", CollectiveKind::Allgather, none);
    assert!(text.contains("is a switch; use forest, direct or ring"), "{text}");
    let text = refused("ring:4", CollectiveKind::AllToAll, none);
    assert!(text.starts_with("bfb does not plan all-to-all"), "{text}");
    let much = TreeLimits { chunks: (1 << 40).try_into().ok(), ..none };
    let text = refused("ring:4", CollectiveKind::Allgather, much);
    assert!(
        text.starts_with("1099511627776 chunks per share are too many to count, over the limit of 4294967295"),
        "{text}"
    );
    let stopped = plan(
        &generated("ring:4"),
        collective(&generated("ring:4"), CollectiveKind::Allgather, 0),
        &Shares::Equal,
        Asked { limits: none, size_bytes: None, symmetry: Symmetry::Used },
        &|| true,
        &Silent,
    );
    assert_eq!(stopped, Err(SynthesisError::Stopped));
}

/// Strongly connected networks of up to twelve ranks, with links of up to three capacities.
fn networks() -> impl Strategy<Value = Topology> {
    (2..=12_u32).prop_flat_map(|ranks| {
        let links = prop::collection::vec((0..ranks, 0..ranks, 1..=3_u64), 0..3 * ranks as usize);
        let ring = prop::collection::vec(1..=3_u64, ranks as usize);
        (ring, links).prop_map(move |(ring, links)| {
            let ring = (0..ranks).zip(ring).map(|(v, units)| (v, (v + 1) % ranks, units));
            let mut links: Vec<(u32, u32, u64)> = ring.chain(links).collect();
            links.sort_unstable();
            links.dedup_by_key(|&mut (from, to, _)| (from, to));
            let rate = |units: u64| Capacity::from_bytes_per_sec(units * 5_000_000_000).unwrap();
            weighted(ranks, links.into_iter().map(|(from, to, units)| (from, to, rate(units))))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every collective on every network is accepted, in as few steps as there are; a reduce-scatter costs what an allgather
    /// costs on the transpose; shares of any sizes.
    #[test]
    fn everything_planned_is_right(topology in networks(), weights in prop::collection::vec(0..3_u64, 12), chunks in 1..=5_u64) {
        let ranks = topology.rank_count();
        let mut weights = weights[..ranks as usize].to_vec();
        weights[0] += 1;
        let exactly = TreeLimits { chunks: chunks.try_into().ok(), ..TreeLimits::NONE };
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce] {
            let collective = collective(&topology, kind, 0);
            for shares in [Shares::Equal, Shares::in_proportion(collective, ranks, weights.clone()).unwrap()] {
                for limits in [TreeLimits::NONE, exactly] {
                    let schedule = planned(&topology, collective, &shares, limits, Symmetry::Used).unwrap();
                    let cost = judged(&topology, &schedule);
                    if kind != CollectiveKind::Allreduce {
                        prop_assert_eq!(Some(cost.count), depth_bound::depth_bound(&topology, collective, &shares));
                    }
                }
            }
        }
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            let collective = collective(&topology, kind, ranks - 1);
            let schedule = planned(&topology, collective, &Shares::Equal, TreeLimits::NONE, Symmetry::Used).unwrap();
            judged(&topology, &schedule);
        }
        let cost = |topology: &Topology, kind| {
            let collective = collective(topology, kind, 0);
            let schedule = planned(topology, collective, &Shares::Equal, TreeLimits::NONE, Symmetry::Used).unwrap();
            judged(topology, &schedule).algbw
        };
        let turned = cost(&topology.transposed(), CollectiveKind::Allgather);
        prop_assert_eq!(cost(&topology, CollectiveKind::ReduceScatter), turned);
    }
}
