//! What must hold of any network and any groups.

use canopy_optimize::Arc;
use canopy_training::groups::{Group, GroupKind, GroupOptions, Patience, group_optimum};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero as _;
use proptest::prelude::*;

use crate::costs::lacking;
use crate::networks::Network;
use crate::random::{Case, Random, cases};

const CASES: u32 = 100;

/// Cases in which all ways are there.
pub(crate) fn solvable() -> impl Strategy<Value = Case> {
    let has_ways = |case: &Case| lacking(&case.network, &case.groups).is_none();
    any::<u64>().prop_map(Case::numbered).prop_filter("a group lacks a way", has_ways)
}

/// The rate, which is proven.
fn rate_with(network: &Network, groups: &[Group], uses_symmetry: bool) -> BigRational {
    let options = GroupOptions { uses_symmetry, ..GroupOptions::STANDARD };
    let optimum = group_optimum(&network.problem(groups.to_vec()), options, Patience::ENDLESS).unwrap();
    assert_eq!(optimum.rate, optimum.bound);
    optimum.rate
}

fn rate(network: &Network, groups: &[Group]) -> BigRational {
    rate_with(network, groups, true)
}

pub(crate) fn with_sizes(groups: &[Group], factor: u64) -> Vec<Group> {
    groups.iter().map(|group| Group { size: group.size * factor, ..group.clone() }).collect()
}

/// Other names for nodes, and arcs, groups and members in another order.
pub(crate) fn renamed(case: &Case, random: &mut Random) -> Case {
    let count = case.network.graph.node_count;
    let names = random.shuffled(count);
    let mut network = Network::nodes(count);
    for (&name, &relays) in names.iter().zip(&case.network.relays) {
        network.relays[name as usize] = relays;
    }
    for arc in &case.network.graph.arcs {
        network.arc(names[arc.from as usize], names[arc.to as usize], arc.capacity);
    }
    random.shuffle(&mut network.graph.arcs);
    let mut groups: Vec<Group> = case
        .groups
        .iter()
        .map(|group| {
            let order = random.shuffled(u32::try_from(group.members.len()).unwrap());
            let members = order.iter().map(|&place| names[group.members[place as usize] as usize]).collect();
            let root = |old: u32| (0_u32..).zip(&order).find(|&(_, &place)| place == old).unwrap().0;
            Group { kind: with_root(group.kind, root), members, size: group.size }
        })
        .collect();
    random.shuffle(&mut groups);
    Case { network, groups }
}

fn with_root(kind: GroupKind, root: impl Fn(u32) -> u32) -> GroupKind {
    match kind {
        GroupKind::Broadcast(old) => GroupKind::Broadcast(root(old)),
        GroupKind::Reduce(old) => GroupKind::Reduce(root(old)),
        GroupKind::Scatter(old) => GroupKind::Scatter(root(old)),
        GroupKind::Gather(old) => GroupKind::Gather(root(old)),
        other => other,
    }
}

/// What a schedule does that is run backwards.
fn backwards(kind: GroupKind) -> GroupKind {
    match kind {
        GroupKind::AllGather => GroupKind::ReduceScatter,
        GroupKind::ReduceScatter => GroupKind::AllGather,
        GroupKind::Broadcast(root) => GroupKind::Reduce(root),
        GroupKind::Reduce(root) => GroupKind::Broadcast(root),
        GroupKind::Scatter(root) => GroupKind::Gather(root),
        GroupKind::Gather(root) => GroupKind::Scatter(root),
        both @ (GroupKind::AllReduce | GroupKind::AllToAll) => both,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(CASES)))]

    #[test]
    fn another_group_never_helps(case in solvable()) {
        let mut before: Option<BigRational> = None;
        for count in 1..=case.groups.len() {
            let rate = rate(&case.network, &case.groups[..count]);
            prop_assert!(before.is_none_or(|before| rate <= before), "{}", rate);
            before = Some(rate);
        }
    }

    #[test]
    fn two_halves_are_as_good_as_a_whole(case in solvable(), which: prop::sample::Index) {
        let whole = rate(&case.network, &with_sizes(&case.groups, 2));
        let mut groups = with_sizes(&case.groups, 2);
        let half = &mut groups[which.index(case.groups.len())];
        half.size /= 2;
        let half = half.clone();
        groups.push(half);
        prop_assert_eq!(rate(&case.network, &groups), whole);
    }

    /// One after another is a way to do all at once.
    #[test]
    fn all_together_lie_between_the_slowest_and_one_after_another(case in solvable()) {
        let together = rate(&case.network, &case.groups);
        let alone: Vec<BigRational> =
            case.groups.iter().map(|group| rate(&case.network, std::slice::from_ref(group))).collect();
        let in_turn: BigRational = alone.iter().map(BigRational::recip).sum();
        prop_assert!(&together <= alone.iter().min().unwrap());
        prop_assert!(together >= in_turn.recip());
    }

    #[test]
    fn names_and_order_do_not_matter(case in solvable(), seed: u64) {
        let other = renamed(&case, &mut Random(seed));
        prop_assert_eq!(rate(&other.network, &other.groups), rate(&case.network, &case.groups));
    }

    #[test]
    fn symmetry_changes_nothing(case in solvable()) {
        let [with, without] = [true, false].map(|uses| rate_with(&case.network, &case.groups, uses));
        prop_assert_eq!(with, without);
    }

    #[test]
    fn rates_are_those_of_schedules_run_backwards(case in solvable()) {
        let mut network = case.network.clone();
        for arc in &mut network.graph.arcs {
            *arc = Arc { from: arc.to, to: arc.from, capacity: arc.capacity };
        }
        let turned = |group: &Group| Group { kind: backwards(group.kind), ..group.clone() };
        let groups: Vec<Group> = case.groups.iter().map(turned).collect();
        prop_assert_eq!(rate(&network, &groups), rate(&case.network, &case.groups));
    }

    #[test]
    fn rates_scale_with_capacities_and_sizes(case in solvable(), (wider, larger) in (1..100_u64, 1..100_u64)) {
        let mut network = case.network.clone();
        network.graph.arcs.iter_mut().for_each(|arc| arc.capacity *= wider);
        let scaled = rate(&network, &with_sizes(&case.groups, larger));
        let ratio = BigRational::new(BigInt::from(wider), BigInt::from(larger));
        prop_assert_eq!(scaled, rate(&case.network, &case.groups) * ratio);
    }

    /// A link in two parts, of which one may be empty, carries the same.
    #[test]
    fn links_can_be_divided(case in solvable(), which: prop::sample::Index, part: u64) {
        let mut network = case.network.clone();
        let arcs = &mut network.graph.arcs;
        let arc = &mut arcs[which.index(case.network.graph.arcs.len())];
        let part = Arc { capacity: part % (arc.capacity + 1), ..*arc };
        arc.capacity -= part.capacity;
        arcs.push(part);
        prop_assert_eq!(rate(&network, &case.groups), rate(&case.network, &case.groups));
    }

    #[test]
    fn more_capacity_and_more_relays_do_no_harm(case in solvable(), which: prop::sample::Index, more in 1..20_u64) {
        let least = rate(&case.network, &case.groups);
        prop_assert!(least > BigRational::zero());
        let mut network = case.network.clone();
        let node = which.index(network.relays.len());
        network.relays[node] = true;
        prop_assert!(rate(&network, &case.groups) >= least);
        let arc = which.index(network.graph.arcs.len());
        network.graph.arcs[arc].capacity += more;
        prop_assert!(rate(&network, &case.groups) >= least);
    }
}
