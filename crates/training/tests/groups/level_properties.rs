//! What must hold of the levels of any groups.

use canopy_training::groups::{Group, GroupOptions, Patience, group_levels, group_optimum};

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;

use crate::levels::levels;
use crate::networks::Network;
use crate::properties::{renamed, solvable, with_sizes};
use crate::random::{Random, cases};

const CASES: u32 = 100;

/// Rates by group.
fn rates(network: &Network, groups: &[Group]) -> Vec<BigRational> {
    levels(&network.problem(groups.to_vec()), true).rates
}

fn sorted(mut rates: Vec<BigRational>) -> Vec<BigRational> {
    rates.sort();
    rates
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(CASES)))]

    #[test]
    fn no_group_is_slower_than_the_common_rate(case in solvable()) {
        let problem = case.network.problem(case.groups.clone());
        let first = group_optimum(&problem, GroupOptions::STANDARD, Patience::ENDLESS).unwrap().rate;
        let rates = rates(&case.network, &case.groups);
        for (rate, group) in rates.iter().zip(&case.groups) {
            prop_assert!(*rate >= &first * BigInt::from(group.size));
        }
        // Each new level slows down none of those before.
        for count in 1..4 {
            let some = group_levels(&problem, GroupOptions::STANDARD, count, Patience::ENDLESS).unwrap();
            for (level, (rate, last)) in some.level_of.iter().zip(some.rates.iter().zip(&rates)) {
                prop_assert!(rate == last || level.is_none() && rate < last, "{} and {}", rate, last);
            }
        }
    }

    #[test]
    fn names_and_order_do_not_matter(case in solvable(), seed: u64) {
        let other = renamed(&case, &mut Random(seed));
        let [one, other] = [&case, &other].map(|case| sorted(rates(&case.network, &case.groups)));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn rates_scale_with_capacities_and_not_with_the_unit_of_sizes(
        case in solvable(),
        (wider, larger) in (1..100_u64, 1..100_u64),
    ) {
        let mut network = case.network.clone();
        network.graph.arcs.iter_mut().for_each(|arc| arc.capacity *= wider);
        let scaled = rates(&network, &with_sizes(&case.groups, larger));
        let expected: Vec<BigRational> =
            rates(&case.network, &case.groups).into_iter().map(|rate| rate * BigInt::from(wider)).collect();
        prop_assert_eq!(scaled, expected);
    }

    /// On a network for each group, every group is as fast as alone.
    #[test]
    fn groups_that_share_nothing_are_as_fast_as_alone(case in solvable()) {
        let count = case.network.graph.node_count;
        let copies = u32::try_from(case.groups.len()).unwrap();
        let mut network = Network::nodes(count * copies);
        let mut groups = Vec::new();
        for (copy, group) in (0..copies).zip(&case.groups) {
            for (node, &relays) in case.network.relays.iter().enumerate() {
                network.relays[(copy * count) as usize + node] = relays;
            }
            for arc in &case.network.graph.arcs {
                network.arc(copy * count + arc.from, copy * count + arc.to, arc.capacity);
            }
            let members = group.members.iter().map(|node| copy * count + node).collect();
            groups.push(Group { members, ..group.clone() });
        }
        let alone = case.groups.iter().map(|group| rates(&case.network, std::slice::from_ref(group)));
        prop_assert_eq!(rates(&network, &groups), alone.flatten().collect::<Vec<BigRational>>());
    }
}
