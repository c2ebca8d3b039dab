//! Properties of compiling and judging, on random forests.

use std::collections::BTreeMap;

use canopy_schedule::{Action, CollectiveKind, Schedule, Shape, Shares, check, compile};
use canopy_topology::{LinkIndex, Rate};
use proptest::prelude::*;

use crate::forests::{CAPACITY, Random, complete_with_switch, random_schedule};

fn kinds() -> impl Strategy<Value = CollectiveKind> {
    prop::sample::select(CollectiveKind::ALL[..7].to_vec())
}

/// algbw straight from the forest: chunks over each link, hop by hop.
fn algbw_by_hand(schedule: &Schedule, rank_count: u32) -> Rate {
    let Shape::Forest(forest) = &schedule.shape else { panic!("not a forest") };
    let mut loads: BTreeMap<LinkIndex, u64> = BTreeMap::new();
    for tree in forest.phases.iter().flat_map(|phase| &phase.trees) {
        for carrier in forest.hops_of(tree).iter().flat_map(|hop| forest.carriers_of(hop)) {
            for &link in forest.routes.get(carrier.route).unwrap() {
                *loads.entry(link).or_default() += carrier.chunk_count;
            }
        }
    }
    let shares = match (&schedule.shares, schedule.collective.kind()) {
        (_, CollectiveKind::Broadcast | CollectiveKind::Reduce) => 1,
        (Shares::Equal, _) => u64::from(rank_count),
        (Shares::Weighted(weights), _) => weights.iter().sum(),
        (Shares::Blocks(_), _) => panic!("no forest is an all-to-all"),
    };
    Rate::new(shares * forest.chunks_per_share * CAPACITY, *loads.values().max().unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Sound forests are accepted, at the rate that adding up by hand gives; every kind of tree counts.
    #[test]
    fn sound_forests_are_accepted(ranks in 2..12_u32, kind in kinds(), seed: u64) {
        let topology = complete_with_switch(ranks);
        let schedule = random_schedule(&topology, kind, &mut Random(seed));
        let graph = compile(&topology, &schedule).unwrap();
        let verdict = check(&topology, &graph).unwrap();
        prop_assert_eq!(verdict.algbw, algbw_by_hand(&schedule, ranks));
        let Shape::Forest(forest) = &schedule.shape else { panic!("not a forest") };
        let trees = u128::from(verdict.tree_count);
        let phases = forest.phases.len() as u128;
        prop_assert_eq!(trees * phases, graph.batches.iter().map(|batch| u128::from(batch.chunk_count)).sum::<u128>());
        prop_assert!(verdict.depth_sum >= trees * phases);
        prop_assert!(verdict.depth_sum <= trees * u128::from(verdict.depth_max));
        prop_assert!(verdict.links_max >= verdict.depth_max && verdict.links_sum >= verdict.depth_sum);
        prop_assert!(verdict.links_sum <= trees * u128::from(verdict.links_max));
        prop_assert_eq!(verdict.batch_count, forest.phases.iter().map(|phase| phase.trees.len()).sum::<usize>());
    }

    /// The compiler keeps hops in order, and says what each waits for: in a copy tree for what reached its sender, in
    /// a reduce tree for all its sender is to add.
    #[test]
    fn dependencies_follow_the_trees(ranks in 2..9_u32, kind in kinds(), seed: u64) {
        let topology = complete_with_switch(ranks);
        let schedule = random_schedule(&topology, kind, &mut Random(seed));
        let graph = compile(&topology, &schedule).unwrap();
        for batch in &graph.batches {
            for (index, transfer) in batch.transfers.clone().zip(graph.transfers_of(batch)) {
                let earlier = (batch.transfers.start..index).filter(|&other| {
                    graph.transfers[other as usize].to == transfer.from
                });
                let expected: Vec<u32> = earlier.collect();
                if batch.action == Action::Reduce || transfer.from != batch.root {
                    prop_assert_eq!(graph.dependencies_of(transfer), expected);
                }
            }
        }
        prop_assert!(graph.dependencies.len() <= 2 * graph.transfers.len());
    }

    /// Turned around, an allgather is a reduce-scatter with the same load, and the other way round.
    #[test]
    fn mirrored_schedules_have_the_same_rate(ranks in 2..9_u32, seed: u64) {
        let topology = complete_with_switch(ranks);
        let schedule = random_schedule(&topology, CollectiveKind::Allgather, &mut Random(seed));
        let mirror = mirrored(&schedule, &topology);
        let judge = |schedule| check(&topology, &compile(&topology, schedule).unwrap()).unwrap();
        let (there, back) = (judge(&schedule), judge(&mirror));
        prop_assert_eq!(there.algbw, back.algbw);
        prop_assert_eq!((there.depth_max, there.depth_sum), (back.depth_max, back.depth_sum));
        prop_assert_eq!((there.links_max, there.links_sum), (back.links_max, back.links_sum));
    }
}

/// The reduce-scatter that runs an allgather backwards over the opposite links, which all have one capacity here.
fn mirrored(schedule: &Schedule, topology: &canopy_topology::Topology) -> Schedule {
    let Shape::Forest(forest) = &schedule.shape else { panic!("not a forest") };
    let mut mirror = forest.clone();
    let opposite = |&link: &LinkIndex| {
        let link = topology.link(link);
        topology.links_from(link.to).find(|&other| topology.link(other).to == link.from).unwrap()
    };
    mirror.routes = canopy_schedule::RouteTable::default();
    for links in forest.routes.iter() {
        mirror.routes.push(&links.iter().rev().map(opposite).collect::<Vec<_>>());
    }
    for phase in &mut mirror.phases {
        phase.action = Action::Reduce;
        for tree in &phase.trees {
            mirror.hops[tree.hops.start as usize..tree.hops.end as usize].reverse();
        }
    }
    for hop in &mut mirror.hops {
        std::mem::swap(&mut hop.from, &mut hop.to);
    }
    let collective = canopy_schedule::Collective::new(CollectiveKind::ReduceScatter, None, topology.rank_count());
    Schedule {
        collective: collective.unwrap(),
        algorithm: "mirror".to_owned(),
        shares: schedule.shares.clone(),
        shape: Shape::Forest(mirror),
    }
}
