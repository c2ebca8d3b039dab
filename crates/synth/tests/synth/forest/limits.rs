//! Numbers of trees that are asked for: published rates, random networks against enumeration, refusals.

use std::num::NonZeroU64;

use canopy_schedule::CollectiveKind::{self, AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter};
use canopy_schedule::{Collective, Shares, certified_bound};
use canopy_synth::{
    Algorithm, LimitsError, Never, Silent, SynthesisError, SynthesisRequest, TreeLimits, bound, synthesize,
};
use canopy_topology::{Capacity, Latency, Rate, Topology, TopologyDraft, TopologyLimits, generate};
use proptest::prelude::*;

use crate::forest::validator::{Judged, plan, plan_within};

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn exactly(trees_per_root: u64) -> TreeLimits {
    TreeLimits { trees_per_root: NonZeroU64::new(trees_per_root), ..TreeLimits::NONE }
}

fn at_most(max_chunks: u64) -> TreeLimits {
    TreeLimits { max_chunks: NonZeroU64::new(max_chunks), ..TreeLimits::NONE }
}

/// Rate in GB/s as a fraction, with exactly so many trees per rank.
#[track_caller]
fn check(expression: &str, trees: u64, gigabytes: (u128, u128)) -> Judged {
    let judged = plan_within(&topology(expression), Allgather, exactly(trees));
    assert_eq!(judged.chunks_per_share(), trees, "{expression}");
    let expected = Rate::new(gigabytes.0 * 1_000_000_000, gigabytes.1).unwrap();
    assert_eq!(judged.algbw, expected, "{expression}, {trees} trees");
    judged
}

/// Zhao 2026, appendix B.5.4: two boxes of MI250 at 320, 341, 343, 341, 348 and 354 GB/s.
#[test]
fn fixed_numbers_of_trees_on_two_boxes_of_mi250() {
    for (trees, gigabytes) in [
        // U = 1/10, 3/16 and 3/8: algbw = 32·k/U.
        (1, (320, 1)),
        (2, (1024, 3)),
        (3, (2400, 7)),
        (4, (1024, 3)),
        (5, (8000, 23)),
        (83, (1_062_400, 3000)),
    ] {
        check("mi250:boxes=2", trees, gigabytes);
    }
}

/// Two boxes of A100: U = 7k/150 for one to four trees, as many GB/s as without a network between; the optimum at 13.
#[test]
fn fixed_numbers_of_trees_on_two_boxes_of_a100() {
    for trees in 1..=4 {
        check("dgx-a100:boxes=2", trees, (2400, 7));
    }
    check("dgx-a100:boxes=2", 13, (1040, 3));
    check("dgx-a100:boxes=2", 26, (1040, 3));
}

/// 64 boxes of MI250 reach the optimum with one tree per rank.
#[test]
fn one_tree_is_enough_for_64_boxes_of_mi250() {
    let judged = check("mi250:boxes=64", 1, (16_384, 63));
    assert_eq!(judged.algbw, plan(&topology("mi250:boxes=64"), Allgather).algbw);
}

/// The best number up to the limit, the least among equals: 341.3 at 2 and 4, 342.9 at 3, 347.8 at 5, and not monotone.
#[test]
fn the_best_number_of_trees_up_to_a_limit() {
    let network = topology("mi250:boxes=2");
    for (limit, trees) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 5), (83, 83), (1000, 83)] {
        let judged = plan_within(&network, Allgather, at_most(limit));
        assert_eq!(judged.chunks_per_share(), trees, "at most {limit}");
    }
    let best = (1..=20).map(|trees| plan_within(&network, Allgather, exactly(trees)).algbw).max().unwrap();
    assert_eq!(plan_within(&network, Allgather, at_most(20)).algbw, best);
}

/// Both phases of an allreduce have the number of trees that suits them best together.
#[test]
fn both_phases_have_the_same_number_of_trees() {
    for (expression, limits, chunks) in [
        ("mi250:boxes=2", exactly(2), 2),
        ("mi250:boxes=2", at_most(4), 3),
        ("random-euler:n=6,switches=2,seed=3", exactly(3), 3),
    ] {
        let judged = plan_within(&topology(expression), Allreduce, limits);
        assert_eq!(judged.chunks_per_share(), chunks, "{expression}");
    }
    let network = topology("random-euler:n=6,switches=2,seed=3");
    // One phase after the other; together they may be faster, where they are held up by different links.
    let seconds = |kind, trees| 1.0 / plan_within(&network, kind, exactly(trees)).algbw.gigabytes_per_sec();
    for limit in [1, 2, 5, 10] {
        let judged = plan_within(&network, Allreduce, at_most(limit));
        assert!(judged.chunks_per_share() <= limit);
        let least = (1..=limit).map(|trees| seconds(Allgather, trees) + seconds(ReduceScatter, trees)).reduce(f64::min);
        assert!(judged.algbw.gigabytes_per_sec() * least.unwrap() >= 1.0 - 1e-9, "at most {limit}");
    }
}

/// Rate, as a share of the optimum, of an allreduce of exactly so many trees, wherever they are rooted.
#[track_caller]
fn share_of_the_optimum(expression: &str, trees: u64) -> f64 {
    let network = topology(expression);
    let judged = plan_within(&network, Allreduce, exactly(trees));
    let all = judged.shares.weight_total(network.rank_count()) * u128::from(judged.chunks_per_share());
    assert_eq!(all, u128::from(trees), "{expression}: trees of all roots");
    let collective = Collective::new(Allreduce, None, network.rank_count()).unwrap();
    let limit = bound(&network, collective, &Shares::Equal, &Never).unwrap().upper;
    assert!(judged.algbw <= limit);
    judged.algbw.gigabytes_per_sec() / limit.gigabytes_per_sec()
}

/// Two trees instead of one of each rank lose a fifth of a percent where a link is dead, and twenty nothing on a mesh.
#[test]
fn an_allreduce_does_with_few_trees() {
    // 2·255/511 of the strength 511/255.
    assert!((share_of_the_optimum("torus:16x16,down=0.0-0.1", 2) - 510.0 / 511.0).abs() < 1e-12);
    for (trees, least, most) in [(3, 0.82, 0.83), (12, 0.94, 0.95), (16, 0.97, 0.98), (20, 1.0, 1.0)] {
        let share = share_of_the_optimum("mesh:10x10", trees);
        assert!((least..=most).contains(&share), "{trees} trees: {share}");
    }
    assert!(share_of_the_optimum("mi250:boxes=2,nodes-down=b0g5", 12) >= 0.92);
    assert!(share_of_the_optimum("dgx-a100:boxes=16,faults=gpus:3+seed:1", 4) >= 0.96 - 1e-12);
}

/// The best number of trees up to a limit, in all, wherever they are rooted.
#[test]
fn the_best_number_of_trees_of_an_allreduce() {
    let mesh = topology("mesh:4x4");
    let optimal = plan(&mesh, Allreduce);
    let mut best = None;
    for limit in 1..=8 {
        let judged = plan_within(&mesh, Allreduce, at_most(limit));
        let exact = plan_within(&mesh, Allreduce, exactly(limit)).algbw;
        best = best.max(Some(exact));
        assert_eq!(Some(&judged.algbw), best.as_ref(), "at most {limit}");
        // Below 3 a tree of each rank is faster.
        let trees = judged.shares.weight_total(16) * u128::from(judged.chunks_per_share());
        assert!(trees <= u128::from(limit) || limit < 3 && judged.shares == Shares::Equal, "{trees} trees");
    }
    // 8/5 links: eight trees in five units of time.
    assert_eq!(best, Some(optimal.algbw));
}

#[test]
fn rooted_collectives_have_fixed_numbers_of_trees_too() {
    let network = topology("dgx-a100:boxes=2");
    for kind in [Broadcast, Reduce] {
        let rates: Vec<Rate> = (1..=8).map(|trees| plan_within(&network, kind, exactly(trees)).algbw).collect();
        assert!(rates.iter().all(|rate| *rate <= rates[7]));
        // The optimum, 200 GB/s out of a box over eight links of 25.
        assert_eq!(rates[7].to_string(), "200000000000");
        assert_eq!(plan_within(&network, kind, at_most(7)).algbw, *rates[..7].iter().max().unwrap());
    }
    let judged = plan_within(&network, ReduceScatter, exactly(2));
    assert_eq!(judged.algbw.to_string(), "2400000000000/7");
}

/// Links both ways between ranks and switches, the ranks on a ring so that all is connected.
pub(crate) fn networks() -> impl Strategy<Value = Topology> {
    (2..6_usize, 0..3_usize).prop_flat_map(|(ranks, switches)| {
        let nodes = ranks + switches;
        let ring = prop::collection::vec(1..9_u64, ranks);
        let spokes = prop::collection::vec((0..nodes, 0..nodes, 1..9_u64), 0..8);
        (ring, spokes).prop_map(move |(ring, spokes)| {
            let mut draft = TopologyDraft::default();
            let names: Vec<String> =
                (0..nodes).map(|node| if node < ranks { format!("r{node}") } else { format!("s{node}") }).collect();
            for (node, name) in names.iter().enumerate() {
                if node < ranks { draft.add_compute(name) } else { draft.add_switch(name) }
            }
            let mut add = |a: usize, b: usize, capacity: u64| {
                draft.add_both(
                    &names[a],
                    &names[b],
                    Capacity::from_bytes_per_sec(capacity).unwrap(),
                    Latency::from_nanos(0),
                );
            };
            for (rank, &capacity) in ring.iter().enumerate().take(if ranks == 2 { 1 } else { ranks }) {
                add(rank, (rank + 1) % ranks, capacity);
            }
            spokes.into_iter().filter(|(a, b, _)| a != b).for_each(|(a, b, capacity)| add(a, b, capacity));
            draft.build(&TopologyLimits::STANDARD).unwrap()
        })
    })
}

/// The best rate of so many trees per rank, by trying all times at which a link has room for one more and all cuts.
fn best_rate(network: &Topology, trees: u64) -> Rate {
    let (ranks, nodes) = (network.rank_count(), network.nodes().len());
    let links =
        || network.links().iter().map(|link| (link.from.index(), link.to.index(), link.capacity.bytes_per_sec()));
    let widest = links().map(|(.., capacity)| capacity).max().unwrap();
    let mut times: Vec<(u64, u64)> = links()
        .flat_map(|(.., capacity)| (1..=trees * u64::from(ranks) * widest).map(move |count| (count, capacity)))
        .collect();
    times.sort_by(|a, b| (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1))));
    let is_enough = |&(count, per): &(u64, u64)| {
        (0..1_u32 << nodes).all(|inside| {
            let holds = |node: usize| inside >> node & 1 == 1;
            let rooted = (0..ranks as usize).filter(|&rank| holds(rank)).count() as u64;
            let leaving: u64 =
                links().filter(|&(a, b, _)| holds(a) && !holds(b)).map(|(.., capacity)| count * capacity / per).sum();
            rooted == u64::from(ranks) || leaving >= rooted * trees
        })
    };
    let (count, per) = times[times.partition_point(|time| !is_enough(time))];
    Rate::new(u128::from(u64::from(ranks) * trees) * u128::from(per), u128::from(count)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The rate is that of enumeration for each number of trees, below the bound, and the best of them where only the
    /// greatest is given; with room for the optimum, it is the optimum.
    #[test]
    fn fixed_numbers_of_trees_are_best(network in networks()) {
        let optimal = plan(&network, Allgather);
        let mut best = None;
        for trees in 1..=6 {
            let rate = plan_within(&network, Allgather, exactly(trees)).algbw;
            prop_assert_eq!(&rate, &best_rate(&network, trees));
            prop_assert!(rate <= optimal.algbw);
            best = best.max(Some(rate));
            let most = plan_within(&network, Allgather, at_most(trees));
            prop_assert!(most.chunks_per_share() <= trees);
            prop_assert_eq!(Some(&most.algbw), best.as_ref());
        }
        let limit = at_most(optimal.chunks_per_share());
        prop_assert_eq!(plan_within(&network, Allgather, limit).algbw, optimal.algbw);
    }

    /// So many trees in all, or of each rank where that is faster; no more than two trees of the thinnest link are lost.
    #[test]
    fn fixed_numbers_of_trees_of_an_allreduce_lose_little(network in networks(), trees in 1..=6_u64) {
        let collective = Collective::new(Allreduce, None, network.rank_count()).unwrap();
        let limit = bound(&network, collective, &Shares::Equal, &Never).unwrap().upper;
        let judged = plan_within(&network, Allreduce, exactly(trees));
        prop_assert!(judged.algbw <= limit);
        let all = judged.shares.weight_total(network.rank_count()) * u128::from(judged.chunks_per_share());
        prop_assert!(all == u128::from(trees) || all == u128::from(trees) * u128::from(network.rank_count()));
        let thinnest = network.links().iter().map(|link| link.capacity.bytes_per_sec()).min().unwrap();
        let seconds = |rate: &Rate| 1.0 / (rate.gigabytes_per_sec() * 1e9);
        let lost = if all == u128::from(trees) { 2.0 / (trees * thinnest) as f64 } else { f64::INFINITY };
        prop_assert!(seconds(&judged.algbw) <= seconds(&limit) + lost * (1.0 + 1e-9));
    }

    /// On any Eulerian network, whether floors keep the balance of its switches or not, the plan is right, and loses no
    /// more than a tree of one byte per second.
    #[test]
    fn fixed_numbers_of_trees_work_on_directed_networks(seed in 0..40_u64, trees in 1..=6_u64) {
        let network = topology(&format!("random-euler:n=6,switches=3,seed={seed}"));
        let judged = plan_within(&network, Allgather, exactly(trees));
        let collective = Collective::new(Allgather, None, network.rank_count()).unwrap();
        let limit = bound(&network, collective, &Shares::Equal, &Never).unwrap();
        prop_assert_eq!(certified_bound(&network, collective, &Shares::Equal, &limit.certificate), Ok(limit.upper.clone()));
        prop_assert!(judged.algbw <= limit.upper);
        prop_assert_eq!(judged.chunks_per_share(), trees);
    }
}

#[track_caller]
fn refusal(kind: CollectiveKind, algorithm: Algorithm, limits: TreeLimits) -> SynthesisError {
    let network = topology("ring:4");
    let collective = Collective::new(kind, None, 4).unwrap();
    synthesize(&network, &SynthesisRequest { limits, ..SynthesisRequest::new(collective, algorithm) }, &Never, &Silent)
        .unwrap_err()
}

#[test]
fn limits_without_trees_are_refused() {
    for (kind, algorithm, made_by) in [
        (Allgather, Algorithm::Ring, Algorithm::Ring),
        (Broadcast, Algorithm::Direct, Algorithm::Direct),
        (Gather, Algorithm::Auto, Algorithm::Flow),
        (AllToAll, Algorithm::Direct, Algorithm::Direct),
    ] {
        for (limits, limit) in [(exactly(2), "trees_per_root"), (at_most(2), "max_chunks")] {
            let error = refusal(kind, algorithm, limits);
            let expected = LimitsError::NotApplicable { algorithm: made_by.name(), collective: kind, limit };
            assert_eq!(error, SynthesisError::Limits(expected));
        }
    }
    let both = TreeLimits { max_chunks: NonZeroU64::new(3), ..exactly(2) };
    let error = refusal(Allgather, Algorithm::Forest, both);
    assert_eq!(error, SynthesisError::Limits(LimitsError::Contradiction { trees_per_root: 2, max_chunks: 3 }));
    let unsupported = Algorithm::Forest.unsupported(AllToAll);
    assert_eq!(refusal(AllToAll, Algorithm::Forest, exactly(2)), unsupported);
}

/// More trees than 64 bits count, over all ranks.
#[test]
fn too_many_trees_are_refused() {
    let error = refusal(Allgather, Algorithm::Forest, exactly(u64::MAX));
    assert!(matches!(error, SynthesisError::TooManyTrees { .. }), "{error}");
    let most = 1 << 40;
    assert_eq!(plan_within(&topology("ring:4"), Allgather, exactly(most)).chunks_per_share(), most);
}
