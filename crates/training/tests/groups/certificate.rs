//! The proof of a bound, by code of its own: distances by Floyd and Warshall, and every tree.

use canopy_training::groups::{Group, GroupOptions, GroupProblem, Patience, group_optimum};

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero as _;

use crate::costs::{Sends, Work, distances, lacking, rooted_trees};
use crate::networks::Network;
use crate::random::{Case, cases};

const CASES: u32 = 300;

/// By positions of two members; `None` without a way.
type Distances = [Vec<Option<u128>>];

fn cheapest_tree(distances: &Distances, root: usize, inwards: bool) -> u128 {
    let cost = |tree: Vec<(usize, usize)>| {
        let hop = |&(parent, child): &(usize, usize)| {
            if inwards { distances[child][parent] } else { distances[parent][child] }
        };
        tree.iter().map(hop).sum::<Option<u128>>()
    };
    rooted_trees(distances.len(), root).into_iter().filter_map(cost).min().unwrap()
}

/// Prim 1957, for distances that are the same both ways.
fn spanning_tree(distances: &Distances) -> u128 {
    let mut nearest = distances[0].clone();
    let mut open: Vec<usize> = (1..distances.len()).collect();
    let mut sum = 0;
    while let Some(place) = (0..open.len()).min_by_key(|&place| nearest[open[place]].unwrap()) {
        let next = open.swap_remove(place);
        sum += nearest[next].unwrap();
        for &other in &open {
            nearest[other] = nearest[other].min(distances[next][other]);
        }
    }
    sum
}

/// What the cheapest way costs to send one byte of a group's size.
fn cheapest(network: &Network, group: &Group, lengths: &[u128]) -> BigRational {
    let distances = distances(network, group, lengths);
    let Work { sends, roots, pairs, parts } = Work::of(group);
    let cost: u128 = match sends {
        Sends::Ways => pairs.iter().map(|&(from, to)| distances[from][to].unwrap()).sum(),
        Sends::Trees { inwards } => roots.iter().map(|&root| cheapest_tree(&distances, root, inwards)).sum(),
        Sends::Pair => {
            let is_alike = (0..distances.len()).all(|a| (0..a).all(|b| distances[a][b] == distances[b][a]));
            let pair = |root: usize| cheapest_tree(&distances, root, true) + cheapest_tree(&distances, root, false);
            if is_alike { 2 * spanning_tree(&distances) } else { roots.into_iter().map(pair).min().unwrap() }
        }
    };
    BigRational::new(cost.into(), parts.into())
}

/// Σ capacity · length ÷ Σ size · cheapest unit.
pub(crate) fn proven(problem: &GroupProblem, lengths: &[u128]) -> BigRational {
    proven_beside(problem, &vec![None; problem.groups().len()], lengths)
}

/// (Σ capacity · length − Σ rate · cheapest unit of frozen groups) ÷ Σ size · cheapest unit of all others.
pub(crate) fn proven_beside(problem: &GroupProblem, frozen: &[Option<BigRational>], lengths: &[u128]) -> BigRational {
    let network = Network { graph: problem.graph().clone(), relays: problem.relays().to_vec() };
    let room: BigInt =
        network.graph.arcs.iter().zip(lengths).map(|(arc, &length)| BigInt::from(length) * arc.capacity).sum();
    let (mut left, mut paid) = (BigRational::from(room), BigRational::zero());
    for (group, frozen) in problem.groups().iter().zip(frozen) {
        let cost = cheapest(&network, group, lengths);
        match frozen {
            Some(rate) => left -= rate * cost,
            None => paid += cost * BigInt::from(group.size),
        }
    }
    left / paid
}

#[test]
fn lengths_prove_the_bound() {
    for number in 0..u64::from(cases(CASES)) {
        let Case { network, groups } = Case::numbered(number);
        if lacking(&network, &groups).is_some() {
            continue;
        }
        let problem = network.problem(groups);
        // Few rounds leave a gap, and their bound holds all the same.
        for (uses_symmetry, rounds_max) in [(true, 400), (false, 400), (true, 1), (false, 2)] {
            let optimum =
                group_optimum(&problem, GroupOptions { uses_symmetry, rounds_max }, Patience::ENDLESS).unwrap();
            let proven = proven(&problem, &optimum.lengths);
            assert_eq!(proven, optimum.bound, "case {number}, {uses_symmetry}, {rounds_max}: {problem:?}");
            assert!(optimum.rate <= optimum.bound, "case {number}, {uses_symmetry}, {rounds_max}: {problem:?}");
        }
    }
}

/// On a triangle whose third link is twice as long, two short links are the cheapest tree, by either code.
#[test]
fn spanning_trees_are_the_cheapest_of_all() {
    let distances =
        vec![vec![Some(0), Some(1), Some(2)], vec![Some(1), Some(0), Some(1)], vec![Some(2), Some(1), Some(0)]];
    assert_eq!(spanning_tree(&distances), 2);
    assert!((0..3).all(|root| [true, false].map(|inwards| cheapest_tree(&distances, root, inwards)) == [2, 2]));
}
