//! Shares of groups: they fit, and each group alone reaches its part of the joint rate in its own.

use canopy_optimize::{Arc, Digraph};
use canopy_training::groups::{
    Group, GroupKind, GroupOptions, GroupProblem, GroupShares, Patience, group_levels, group_optimum, group_shares,
    level_shares,
};
use num_bigint::BigInt;
use num_integer::Integer as _;
use num_rational::BigRational;
use num_traits::{One as _, ToPrimitive as _, Zero as _};

use crate::networks::{Network, boxes, columns, data, grid, group, rows, tensor};

const REDUCE: GroupKind = GroupKind::AllReduce;

/// By arc of the problem, what a group gets.
fn shares_of(problem: &GroupProblem, shares: &GroupShares, group: usize) -> Vec<BigRational> {
    let arcs = &problem.graph().arcs;
    let mut all = vec![BigRational::zero(); arcs.len()];
    for (arc, share) in shares.of(group) {
        let arc = arcs[*arc as usize];
        let (from, to) = (shares.node_of(group, arc.from), shares.node_of(group, arc.to));
        let place = arcs.iter().position(|arc| (arc.from, arc.to) == (from, to)).unwrap();
        all[place] += share;
    }
    all
}

/// The rate of a group alone in these shares.
fn rate_alone(problem: &GroupProblem, shares: &[BigRational], group: &Group) -> BigRational {
    let common = shares.iter().fold(BigInt::one(), |common, share| common.lcm(share.denom()));
    let arcs = problem.graph().arcs.iter().zip(shares).map(|(arc, share)| {
        let capacity = (share * BigRational::from_integer(common.clone())).to_integer().to_u64().unwrap();
        Arc { capacity, ..*arc }
    });
    let graph = Digraph { node_count: problem.graph().node_count, arcs: arcs.collect() };
    let alone = GroupProblem::new(&graph, problem.relays().to_vec(), vec![group.clone()]).unwrap();
    group_optimum(&alone, GroupOptions::STANDARD, Patience::ENDLESS).unwrap().rate / common
}

fn check(network: &Network, groups: Vec<Group>) {
    let problem = network.problem(groups);
    for uses_symmetry in [true, false] {
        let options = GroupOptions { uses_symmetry, ..GroupOptions::STANDARD };
        let optimum = group_optimum(&problem, options, Patience::ENDLESS).unwrap();
        let shares = group_shares(&problem, &optimum, Patience::ENDLESS).unwrap();
        check_shares(&problem, &shares, &vec![optimum.rate; problem.groups().len()]);
        let levels = group_levels(&problem, options, usize::MAX, Patience::ENDLESS).unwrap();
        let shares = level_shares(&problem, &levels, Patience::ENDLESS).unwrap();
        let each = |(rate, group): (&BigRational, &Group)| rate / BigInt::from(group.size);
        let each: Vec<BigRational> = levels.rates.iter().zip(problem.groups()).map(each).collect();
        check_shares(&problem, &shares, &each);
    }
}

/// Shares fit all arcs together, and each group alone has its rate for its size.
pub(crate) fn check_shares(problem: &GroupProblem, shares: &GroupShares, rates: &[BigRational]) {
    let mut sums = vec![BigRational::zero(); problem.graph().arcs.len()];
    for (number, group) in problem.groups().iter().enumerate() {
        let own = shares_of(problem, shares, number);
        sums.iter_mut().zip(&own).for_each(|(sum, share)| *sum += share);
        let has_none = rates[number].is_zero() && own.iter().all(BigRational::is_zero);
        let is_own = || rate_alone(problem, &own, group) == rates[number];
        assert!(has_none || is_own(), "group {number} of {problem:?}");
    }
    let fits = |(sum, arc): (&BigRational, &Arc)| *sum <= BigRational::from_integer(arc.capacity.into());
    assert!(sums.iter().zip(&problem.graph().arcs).all(fits), "{problem:?}");
}

#[test]
fn boxes_divide_their_links_among_groups_inside_and_between() {
    for (kind, count) in [(REDUCE, 8), (REDUCE, 2), (GroupKind::AllGather, 8)] {
        let mut groups: Vec<Group> = tensor(2, kind, 3).collect();
        groups.extend(data(2, REDUCE, 0..count, |i| u64::from(i) + 1));
        check(&boxes(2, true), groups);
    }
    let mut network = boxes(4, true);
    network.cut(0, 36);
    let mut groups: Vec<Group> = tensor(4, REDUCE, 1).collect();
    groups.extend(data(4, REDUCE, 0..8, |_| 1));
    check(&network, groups);
}

#[test]
fn grids_divide_their_links_among_rows_and_columns() {
    for kind in [REDUCE, GroupKind::AllToAll, GroupKind::ReduceScatter] {
        let mut groups = rows(4, 0..4, kind);
        groups.extend(columns(4, 4, REDUCE));
        check(&grid(4, 4, true), groups);
    }
    let members = |list: &[u32]| list.to_vec();
    let groups = vec![
        group(GroupKind::Broadcast(1), members(&[0, 5, 10, 7]), 2),
        group(GroupKind::Gather(0), members(&[3, 4, 9]), 1),
        group(GroupKind::AllGather, members(&[1, 2, 6, 11]), 1),
    ];
    check(&grid(4, 3, false), groups);
}
