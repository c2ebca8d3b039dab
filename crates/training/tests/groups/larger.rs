//! Groups that are too large for every tree to be written out: rates are proven, and reached by what is sent.

use canopy_training::groups::{Group, GroupKind, GroupOptions, Patience, group_optimum};

use num_rational::BigRational;
use num_traits::One as _;

use crate::certificate::proven;
use crate::levels::{check_levels, each, levels};
use crate::networks::{Network, group};
use crate::parts::{check_parts, check_units};
use crate::random::{Random, cases};

const CASES: u32 = 60;

const ALIKE: [GroupKind; 2] = [GroupKind::AllReduce, GroupKind::AllToAll];
const ALL: [GroupKind; 8] = [
    GroupKind::AllReduce,
    GroupKind::AllToAll,
    GroupKind::AllGather,
    GroupKind::ReduceScatter,
    GroupKind::Broadcast(1),
    GroupKind::Reduce(0),
    GroupKind::Scatter(0),
    GroupKind::Gather(1),
];

/// A tree of links and more; `alike`: each carries as much both ways.
fn network(random: &mut Random, alike: bool) -> Network {
    let nodes = random.between(12, 40);
    let most = random.one_of(&[1, 30, 1000, 100_000]);
    let mut network = Network::nodes(nodes);
    for number in 0..nodes + random.below(2 * nodes) {
        let (a, b) = if number + 1 < nodes {
            (number + 1, random.below(number + 1))
        } else {
            (random.below(nodes), random.below(nodes))
        };
        let there = u64::from(random.between(1, most));
        network.arc(a, b, there);
        network.arc(b, a, if alike { there } else { u64::from(random.between(1, most)) });
    }
    network
}

fn groups(random: &mut Random, nodes: u32, kinds: &[GroupKind]) -> Vec<Group> {
    let count = random.between(1, 8);
    let some = |_| {
        let mut members = random.shuffled(nodes);
        members.truncate(random.between(2, 10) as usize);
        group(random.one_of(kinds), members, u64::from(random.between(1, 1000)))
    };
    (0..count).map(some).collect()
}

#[test]
fn larger_groups_are_proven_and_reached() {
    for number in 0..u64::from(cases(CASES)) {
        let mut random = Random(number);
        let alike = random.one_in(2);
        let network = network(&mut random, alike);
        let kinds = if alike { &ALIKE[..] } else { &ALL };
        let problem = network.problem(groups(&mut random, network.graph.node_count, kinds));
        let options = GroupOptions { uses_symmetry: false, ..GroupOptions::STANDARD };
        let optimum = group_optimum(&problem, options, Patience::ENDLESS).unwrap();
        assert_eq!(optimum.rate, optimum.bound, "case {number}: {problem:?}");
        check_units(&problem, &optimum);
        let found = levels(&problem, false);
        check_parts(&problem, &found.parts, &each(&problem, &found.rates), &BigRational::one());
        assert!(found.open.is_none(), "case {number}: {problem:?}");
        assert_eq!(found.levels[0].rate, optimum.rate, "case {number}: {problem:?}");
        // Only spanning trees and ways are found without trying all trees.
        if alike {
            assert_eq!(proven(&problem, &optimum.lengths), optimum.bound, "case {number}: {problem:?}");
            check_levels(&problem, &found);
        }
    }
}
