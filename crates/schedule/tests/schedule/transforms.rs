//! Schedules made from schedules are as good as those.

use std::num::NonZeroU64;

use canopy_schedule::{
    Blocks, Certificate, Collective, CollectiveKind, CutDirection, RelabelError, Schedule, Shape, Shares, Verdict,
    certified_bound, check, compile, relabelled, relabelled_certificate,
};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Rate, Topology};
use proptest::prelude::*;

use crate::forests::{Random, complete_with_switch, one_way_ring, random_schedule};
use crate::reference::judge;
use crate::shapes::{any_shape, random_steps};
use crate::transform::{ComposeError, compose, merged, reversed, scaled, transposed_links};

fn factor(factor: u64) -> NonZeroU64 {
    NonZeroU64::new(factor).unwrap()
}

#[track_caller]
fn judged(topology: &Topology, schedule: &Schedule) -> Verdict {
    let graph = compile(topology, schedule).unwrap();
    assert_eq!(judge(topology, &graph), Ok(()));
    check(topology, &graph).unwrap()
}

/// `1/(1/a + 1/b)`.
fn in_sequence(a: &Rate, b: &Rate) -> Rate {
    let ((a, b), (c, d)) = (a.parts(), b.parts());
    Rate::new(&a * &c, b * c + a * d).unwrap()
}

/// A random permutation, and where the links of [`complete_with_switch`] go with it.
fn shuffled(topology: &Topology, random: &mut Random) -> (Vec<Rank>, Vec<LinkIndex>) {
    let mut ranks: Vec<Rank> = topology.ranks().collect();
    (1..ranks.len()).for_each(|last| ranks.swap(last, random.below(last + 1)));
    let node = |node: NodeIndex| topology.rank_of(node).map_or(node, |rank| ranks[rank.index()].node());
    let image = |link: &canopy_topology::Link| {
        let mut there = topology.links_from(node(link.from));
        there.find(|&other| topology.link(other).to == node(link.to)).unwrap()
    };
    let links = topology.links().iter().map(image).collect();
    (ranks, links)
}

fn renamed_weights(shares: &Shares, ranks: &[Rank]) -> Shares {
    match shares {
        Shares::Equal => Shares::Equal,
        Shares::Weighted(weights) => {
            let mut moved = vec![0; weights.len()];
            weights.iter().zip(ranks).for_each(|(&weight, rank)| moved[rank.index()] = weight);
            Shares::Weighted(moved)
        }
        Shares::Blocks(blocks) => {
            let mut moved = vec![0; blocks.weights().len()];
            for (&weight, index) in blocks.weights().iter().zip(0..) {
                let (source, destination) = (ranks[index / ranks.len()], ranks[index % ranks.len()]);
                moved[source.index() * ranks.len() + destination.index()] = weight;
            }
            Shares::Blocks(Blocks::new(blocks.rank_count(), moved).unwrap())
        }
    }
}

#[test]
fn links_are_found_in_the_transposed_topology() {
    for topology in [one_way_ring(5), complete_with_switch(4)] {
        let transposed = topology.transposed();
        for (link, there) in topology.links().iter().zip(transposed_links(&topology)) {
            let there = transposed.link(there);
            assert_eq!((there.from, there.to, there.capacity), (link.to, link.from, link.capacity));
        }
    }
}

#[test]
fn what_does_not_fit_is_not_composed() {
    let topology = complete_with_switch(3);
    let mut random = Random(5);
    let mut equal = |kind| loop {
        let schedule = random_schedule(&topology, kind, &mut random);
        if schedule.shares == Shares::Equal && schedule.shape.chunks_per_share() == 2 {
            return schedule;
        }
    };
    let (first, second) = (equal(CollectiveKind::ReduceScatter), equal(CollectiveKind::Allgather));
    assert!(compose(&first, &second).is_ok());
    let (scatter, gather) = (CollectiveKind::Allgather, CollectiveKind::ReduceScatter);
    let swapped = ComposeError::Collectives { first: scatter, second: gather };
    assert_eq!(compose(&second, &first), Err(swapped));
    let finer = scaled(&second, factor(3)).unwrap();
    assert_eq!(compose(&first, &finer), Err(ComposeError::ChunksPerShare { first: 2, second: 6 }));
    assert!(compose(&scaled(&first, factor(3)).unwrap(), &finer).is_ok());
    let weighted = Schedule { shares: Shares::Weighted(vec![1, 1, 1]), ..second.clone() };
    assert_eq!(compose(&first, &weighted), Err(ComposeError::Shares));
    let steps = loop {
        let steps = random_steps(&topology, CollectiveKind::Allgather, &mut random);
        if steps.shares == Shares::Equal && steps.shape.chunks_per_share() == 2 {
            break steps;
        }
    };
    assert_eq!(compose(&first, &steps), Err(ComposeError::Shapes { first: "forest", second: "steps" }));
    assert!(scaled(&first, factor(u64::MAX)).is_err());
}

#[test]
fn renamings_must_be_permutations() {
    let topology = complete_with_switch(3);
    let schedule = random_schedule(&topology, CollectiveKind::Broadcast, &mut Random(1));
    let ranks = |numbers: &[u32]| numbers.iter().copied().map(Rank::new).collect::<Vec<_>>();
    for (to, from) in [([0, 1, 1], 2), ([3, 0, 1], 0)] {
        let expected = RelabelError::NotAPermutation { from, to: to[from], rank_count: 3 };
        assert_eq!(relabelled(&schedule, &ranks(&to), &[]), Err(expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Run backwards twice, a schedule is what it was; once, it is the opposite collective at the same rate.
    #[test]
    fn reversal_keeps_the_rate(ranks in 2..7_u32, seed: u64) {
        let topology = complete_with_switch(ranks);
        let mut random = Random(seed);
        for kind in CollectiveKind::ALL {
            let schedule = any_shape(&topology, kind, &mut random);
            let back = reversed(&topology, &schedule);
            let (there, here) = (judged(&topology, &schedule), judged(&topology.transposed(), &back));
            prop_assert_eq!((&there.algbw, there.depth_max, there.depth_sum), (&here.algbw, here.depth_max, here.depth_sum));
            let twice = reversed(&topology.transposed(), &back);
            prop_assert_eq!(twice, schedule);
        }
    }

    /// Divided finer, it is the same; merged again, it is what it was or better.
    #[test]
    fn scaling_and_merging_keep_the_rate(ranks in 2..7_u32, seed: u64, times in 1..5_u64) {
        let topology = complete_with_switch(ranks);
        let mut random = Random(seed);
        for kind in CollectiveKind::ALL {
            let schedule = any_shape(&topology, kind, &mut random);
            let fine = scaled(&schedule, factor(times)).unwrap();
            let whole = merged(&fine, ranks);
            let (before, finer, after) = (judged(&topology, &schedule), judged(&topology, &fine), judged(&topology, &whole));
            prop_assert_eq!(&before.algbw, &finer.algbw);
            prop_assert_eq!(&before.algbw, &after.algbw);
            prop_assert_eq!(before.depth_max, after.depth_max);
            prop_assert!(after.batch_count <= before.batch_count);
            prop_assert_eq!(merged(&whole, ranks), whole);
        }
    }

    /// Names of ranks carry no meaning.
    #[test]
    fn renaming_keeps_the_rate(ranks in 2..7_u32, seed: u64) {
        let topology = complete_with_switch(ranks);
        let mut random = Random(seed);
        for kind in CollectiveKind::ALL {
            let schedule = any_shape(&topology, kind, &mut random);
            let (to, links) = shuffled(&topology, &mut random);
            let renamed = relabelled(&schedule, &to, &links).unwrap();
            prop_assert_eq!(&renamed.shares, &renamed_weights(&schedule.shares, &to));
            prop_assert_eq!(renamed.collective.root(), schedule.collective.root().map(|root| to[root.index()]));
            let (before, after) = (judged(&topology, &schedule), judged(&topology, &renamed));
            prop_assert_eq!((before.algbw, before.depth_max), (after.algbw, after.depth_max));
        }
    }

    /// A proof holds under other names, and is another proof where those do not fit.
    #[test]
    fn renaming_keeps_what_a_certificate_proves(ranks in 3..7_u32, seed: u64) {
        let topology = complete_with_switch(ranks);
        let mut random = Random(seed);
        let (to, links) = shuffled(&topology, &mut random);
        let image = |number: u32| to.get(number as usize).map_or(number, |rank| rank.number());
        let nodes: Vec<NodeIndex> = (0..ranks + 1).map(|number| NodeIndex::new(image(number))).collect();
        let set = |from: u32, to: u32| (from..to).map(NodeIndex::new).collect::<Vec<_>>();
        let lengths = (0..topology.links().len() as u64).map(|link| link % 3).collect();
        let cut = Certificate::Cut { direction: CutDirection::Out, nodes: set(0, ranks - 1) };
        let partition = Certificate::Partition { sets: vec![set(0, 1), set(1, ranks)] };
        for (kind, certificate) in [
            (CollectiveKind::Allgather, cut),
            (CollectiveKind::Allreduce, partition),
            (CollectiveKind::AllToAll, Certificate::LpDual { lengths }),
        ] {
            let collective = Collective::new(kind, None, ranks).unwrap();
            let renamed = relabelled_certificate(&certificate, &nodes, &links);
            let proven = |certificate| certified_bound(&topology, collective, &Shares::Equal, certificate);
            prop_assert_eq!(proven(&renamed), proven(&certificate));
            let (mut back, mut links_back) = (nodes.clone(), links.clone());
            (0_u32..).zip(&nodes).for_each(|(from, to)| back[to.index()] = NodeIndex::new(from));
            (0_u32..).zip(&links).for_each(|(from, to)| links_back[to.index()] = LinkIndex::new(from));
            prop_assert_eq!(relabelled_certificate(&renamed, &back, &links_back), certificate);
        }
    }

    /// A reduce-scatter and an allgather make an allreduce that is no slower than one after the other.
    #[test]
    fn composition_is_no_slower_than_a_sequence(ranks in 2..7_u32, seed: u64, stepped: bool) {
        let topology = complete_with_switch(ranks);
        let mut random = Random(seed);
        let mut equal = |kind| {
            let mut schedule = if stepped {
                random_steps(&topology, kind, &mut random)
            } else {
                random_schedule(&topology, kind, &mut random)
            };
            while schedule.shares != Shares::Equal {
                schedule = if stepped {
                    random_steps(&topology, kind, &mut random)
                } else {
                    random_schedule(&topology, kind, &mut random)
                };
            }
            schedule
        };
        let (first, second) = (equal(CollectiveKind::ReduceScatter), equal(CollectiveKind::Allgather));
        let (k, l) = (first.shape.chunks_per_share(), second.shape.chunks_per_share());
        let (first, second) = (scaled(&first, factor(l)).unwrap(), scaled(&second, factor(k)).unwrap());
        let both = compose(&first, &second).unwrap();
        prop_assert_eq!(both.collective.kind(), CollectiveKind::Allreduce);
        let rates = (judged(&topology, &first).algbw, judged(&topology, &second).algbw);
        let joined = judged(&topology, &both).algbw;
        prop_assert!(joined >= in_sequence(&rates.0, &rates.1));
        prop_assert!(joined <= rates.0.min(rates.1));
    }
}

/// Pieces that follow one another on one way become one, in every shape.
#[test]
fn neighbours_are_merged() {
    let topology = complete_with_switch(3);
    let mut random = Random(9);
    let mut fewer = [false; 3];
    for _ in 0..60 {
        for kind in CollectiveKind::ALL {
            let schedule = any_shape(&topology, kind, &mut random);
            let whole = merged(&schedule, 3);
            let (before, after) = (judged(&topology, &schedule), judged(&topology, &whole));
            let shape = match whole.shape {
                Shape::Forest(_) => 0,
                Shape::Steps(_) => 1,
                Shape::Flow(_) => 2,
                Shape::Stages(_) | Shape::Orbits(_) => unreachable!("none is among them"),
            };
            fewer[shape] |= after.batch_count < before.batch_count;
        }
    }
    assert_eq!(fewer, [true; 3]);
}
