//! What groups send reaches the rate: loads, demands and trees, counted one by one.

use std::collections::{BTreeMap, BTreeSet};

use canopy_training::groups::{
    Group, GroupKind, GroupOptimum, GroupOptions, GroupPart, GroupProblem, Hop, Patience, Unit, group_optimum,
};

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One as _, Zero as _};

use crate::costs::{Sends, Work, lacking};
use crate::random::{Case, cases};

const CASES: u32 = 300;

/// The arc of the opposite direction.
fn reverse(problem: &GroupProblem, arc: u32) -> Option<u32> {
    let arcs = &problem.graph().arcs;
    let place =
        arcs.iter().position(|other| (other.from, other.to) == (arcs[arc as usize].to, arcs[arc as usize].from));
    place.map(|place| u32::try_from(place).unwrap())
}

/// The arcs of a hop lead from its one end to the other, through members and relays only.
fn check_hop(problem: &GroupProblem, group: &Group, hop: &Hop, both_ways: bool) {
    let mut node = hop.from;
    for &number in &hop.arcs {
        let arc = problem.graph().arcs[number as usize];
        assert!(group.members.contains(&node) || problem.relays()[node as usize], "{node} forwards nothing");
        assert_eq!(arc.from, node, "{hop:?}");
        assert!(!both_ways || reverse(problem, number).is_some(), "{hop:?}");
        node = arc.to;
    }
    assert_eq!(node, hop.to, "{hop:?}");
}

/// Whether all members are reached from a root, by ends that are parents and children.
fn is_tree(group: &Group, root: u32, ends: &[(u32, u32)]) -> bool {
    let mut reached = BTreeSet::from([root]);
    for _ in ends {
        let next: Vec<u32> =
            ends.iter().filter(|(parent, _)| reached.contains(parent)).map(|&(_, child)| child).collect();
        reached.extend(next);
    }
    let members: BTreeSet<u32> = group.members.iter().copied().collect();
    reached == members
}

fn outwards(hops: &[Hop]) -> Vec<(u32, u32)> {
    hops.iter().map(|hop| (hop.from, hop.to)).collect()
}

fn inwards(hops: &[Hop]) -> Vec<(u32, u32)> {
    hops.iter().map(|hop| (hop.to, hop.from)).collect()
}

fn spans(group: &Group, root: Option<u32>, Unit { hops, both_ways }: &Unit) -> bool {
    let hop_count = group.members.len() - 1;
    let root = root.map(|root| group.members[root as usize]);
    match (Work::of(group).sends, root) {
        (Sends::Pair, None) if *both_ways => {
            let ends = [outwards(hops), inwards(hops)].concat();
            hops.len() == hop_count && is_tree(group, group.members[0], &ends)
        }
        (Sends::Pair, None) => {
            let (there, back) = hops.split_at(hop_count);
            let (there, back) = (inwards(there), outwards(back));
            let is_root = |&root: &u32| is_tree(group, root, &there) && is_tree(group, root, &back);
            back.len() == hop_count && group.members.iter().any(is_root)
        }
        (Sends::Trees { inwards: is_inwards }, Some(root)) => {
            let ends = if is_inwards { inwards(hops) } else { outwards(hops) };
            !both_ways && hops.len() == hop_count && is_tree(group, root, &ends)
        }
        (Sends::Ways, Some(root)) => {
            let is_gather = matches!(group.kind, GroupKind::Gather(_));
            let others = group.members.iter().filter(|&&other| other != root);
            let wanted = others.map(|&other| if is_gather { (other, root) } else { (root, other) });
            let found = BTreeSet::from_iter(outwards(hops));
            !both_ways && hops.len() == hop_count && found == wanted.collect()
        }
        _ => false,
    }
}

/// Every group has its commodities, and each sends all its bytes, times the factor of its group.
fn check_demands(problem: &GroupProblem, parts: &[GroupPart], factors: &[BigRational]) {
    let mut left = BTreeSet::new();
    for (number, group) in problem.groups().iter().enumerate() {
        let Work { sends, roots, .. } = Work::of(group);
        left.extend(match sends {
            Sends::Pair => vec![(number, None)],
            _ => roots.into_iter().map(|root| (number, Some(u32::try_from(root).unwrap()))).collect(),
        });
    }
    for part in parts {
        assert!(left.remove(&(part.group, part.root)), "{} {:?} twice, or not asked for", part.group, part.root);
        let group = &problem.groups()[part.group];
        let demand = BigRational::new(group.size.into(), Work::of(group).parts.into()) * &factors[part.group];
        assert_eq!(part.units.iter().map(|(_, bytes)| bytes).sum::<BigRational>(), demand, "{group:?}");
        for (unit, bytes) in &part.units {
            assert!(*bytes > BigRational::zero(), "{bytes} bytes of {unit:?}");
            unit.hops.iter().for_each(|hop| check_hop(problem, group, hop, unit.both_ways));
            assert!(spans(group, part.root, unit), "{group:?}, {:?}: {unit:?}", part.root);
        }
    }
    assert!(left.is_empty(), "nothing is sent for {left:?}");
}

/// Whether links are the same both ways, and everything asked for is the same backwards.
fn is_reversible(problem: &GroupProblem) -> bool {
    let as_much = |arc: &canopy_optimize::Arc| {
        problem
            .graph()
            .arcs
            .iter()
            .any(|other| (other.from, other.to, other.capacity) == (arc.to, arc.from, arc.capacity))
    };
    problem.graph().arcs.iter().all(as_much)
        && problem.groups().iter().all(|group| matches!(group.kind, GroupKind::AllReduce | GroupKind::AllToAll))
}

/// By arc, the bytes for one byte of each size. Where all is the same backwards, half the bytes of an all-to-all go so.
fn loads(problem: &GroupProblem, parts: &[GroupPart]) -> BTreeMap<u32, BigRational> {
    let is_reversible = is_reversible(problem);
    let mut loads: BTreeMap<u32, BigRational> = BTreeMap::new();
    for part in parts {
        let is_halved = is_reversible && problem.groups()[part.group].kind == GroupKind::AllToAll;
        for (unit, bytes) in &part.units {
            let bytes = if is_halved { bytes / BigInt::from(2) } else { bytes.clone() };
            for &arc in unit.hops.iter().flat_map(|hop| &hop.arcs) {
                *loads.entry(arc).or_default() += &bytes;
                if is_halved || unit.both_ways {
                    *loads.entry(reverse(problem, arc).unwrap()).or_default() += &bytes;
                }
            }
        }
    }
    loads
}

/// Units meet all demands, and no arc carries more than the rate allows; `optimum` is one without symmetries.
pub(crate) fn check_units(problem: &GroupProblem, optimum: &GroupOptimum) {
    let once = vec![BigRational::one(); problem.groups().len()];
    check_parts(problem, &optimum.parts, &once, &optimum.rate.recip());
}

/// Units send what is asked for times the factors of groups, and take no more than a part of any arc.
pub(crate) fn check_parts(problem: &GroupProblem, parts: &[GroupPart], factors: &[BigRational], part: &BigRational) {
    check_demands(problem, parts, factors);
    let room = |arc: u32| BigRational::from(BigInt::from(problem.graph().arcs[arc as usize].capacity));
    let fullest = loads(problem, parts).into_iter().map(|(arc, bytes)| bytes / room(arc)).max().unwrap();
    assert!(fullest <= *part, "{fullest} for {part}, {problem:?}");
}

#[test]
fn units_reach_the_rate() {
    for number in 0..u64::from(cases(CASES)) {
        let Case { network, groups } = Case::numbered(number);
        if lacking(&network, &groups).is_some() {
            continue;
        }
        let problem = network.problem(groups);
        // Few rounds leave a gap, and their rate is reached all the same.
        for rounds_max in [1, 3, GroupOptions::STANDARD.rounds_max] {
            let options = GroupOptions { uses_symmetry: false, rounds_max };
            check_units(&problem, &group_optimum(&problem, options, Patience::ENDLESS).unwrap());
        }
    }
}
