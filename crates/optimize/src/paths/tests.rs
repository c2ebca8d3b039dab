//! Path sets against counting by hand and against brute force on small graphs.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::single::Fitting;
use super::{PathGraph, SingleOptions, SinglePaths, single_paths, whole_paths};
use crate::digraph::{Arc, Digraph};
use crate::flow::FlowNetwork;
use crate::fraction::Fraction;
use crate::stop::Never;

fn graph(node_count: u32, arcs: &[(u32, u32)]) -> Digraph {
    Digraph { node_count, arcs: arcs.iter().map(|&(from, to)| Arc { from, to, capacity: 3 }).collect() }
}

/// Grid of 3 × 3 nodes, links to the right and down: 0 1 2 / 3 4 5 / 6 7 8.
fn grid() -> Digraph {
    let right = (0..9).filter(|node| node % 3 < 2).map(|node| (node, node + 1));
    let down = (0..6).map(|node| (node, node + 3));
    graph(9, &right.chain(down).collect::<Vec<_>>())
}

fn shortest(graph: &Digraph, source: u32, target: u32) -> Vec<Vec<u32>> {
    let graph = PathGraph::new(graph);
    let mut paths = Vec::new();
    graph.shortest_from(source).each(target, &mut |path| {
        paths.push(path.to_vec());
        ControlFlow::Continue(())
    });
    paths
}

#[test]
fn shortest_paths_of_a_grid_are_binomials() {
    let graph = grid();
    let paths = PathGraph::new(&graph);
    let found = paths.shortest_from(0);
    assert_eq!((found.count(8), found.distance(8), shortest(&graph, 0, 8).len()), (6, Some(4), 6));
    assert_eq!((found.count(0), found.distance(0)), (1, Some(0)));
    let back = paths.shortest_from(8);
    assert_eq!((back.count(0), back.distance(0), shortest(&graph, 8, 0).len()), (0, None, 0));
    let mut first = Vec::new();
    found.each(8, &mut |path| {
        first.push(path.to_vec());
        ControlFlow::Break(())
    });
    assert_eq!(first.len(), 1);
}

/// The shortest path of all, 0 → 1 → 2 → 5, blocks both others: two disjoint ones exist only without it.
#[test]
fn disjoint_paths_give_way() {
    let blocked = graph(6, &[(0, 1), (1, 2), (2, 5), (0, 3), (3, 2), (1, 4), (4, 5)]);
    let paths = PathGraph::new(&blocked).disjoint(0, 5, &Never).unwrap();
    assert_eq!(paths, [vec![0, 5, 6], vec![3, 4, 2]]);
    // Of 2 paths with 3 and 4 arcs or 3 and 5 the shorter pair is taken.
    let choice = graph(7, &[(0, 1), (1, 6), (0, 2), (2, 3), (3, 6), (3, 4), (4, 6)]);
    let paths = PathGraph::new(&choice).disjoint(0, 6, &Never).unwrap();
    assert_eq!(paths, [vec![0, 1], vec![2, 3, 4]]);
    assert_eq!(PathGraph::new(&choice).disjoint(6, 0, &Never), Ok(vec![]));
    assert_eq!(PathGraph::new(&choice).disjoint(2, 2, &Never), Ok(vec![]));
    assert!(PathGraph::new(&choice).disjoint(0, 6, &|| true).is_err());
}

/// One path alone takes the way that both of two must leave; with lengths of its own, another.
#[test]
fn disjoint_sets_are_shortest_for_their_size() {
    let blocked = graph(6, &[(0, 1), (1, 2), (2, 5), (0, 3), (3, 2), (1, 4), (4, 5)]);
    let paths = PathGraph::new(&blocked);
    let sets = paths.disjoint_sets((0, 5), &[], 9, &Never).unwrap();
    assert_eq!(sets, [vec![vec![0, 1, 2]], vec![vec![0, 5, 6], vec![3, 4, 2]]]);
    assert_eq!(paths.disjoint_sets((0, 5), &[], 1, &Never).unwrap(), sets[..1]);
    let slow = paths.disjoint_sets((0, 5), &[1, 5, 1, 1, 2, 1, 1], 1, &Never).unwrap();
    assert_eq!(slow, [[vec![0, 5, 6]]]);
    assert_eq!(paths.disjoint_sets((5, 5), &[], 9, &Never), Ok(vec![]));
    assert!(paths.disjoint_sets((0, 5), &[], 9, &|| true).is_err());
}

#[test]
fn bounded_paths_are_cut_off_by_length_and_number() {
    let both = graph(4, &[(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3)]);
    let paths = PathGraph::new(&both);
    assert_eq!(paths.bounded(0, 1, 1, 9), Some(vec![vec![0]]));
    assert_eq!(paths.bounded(0, 1, 3, 9), Some(vec![vec![0], vec![7, 5, 3]]));
    assert_eq!(paths.bounded(0, 1, 3, 1), None);
    assert_eq!(paths.bounded(0, 1, 0, 9), Some(vec![]));
    assert_eq!(paths.bounded(0, 0, 3, 9), Some(vec![]));
}

#[test]
fn arcs_without_capacity_are_not_there() {
    let mut graph = graph(3, &[(0, 1), (1, 2), (0, 2), (1, 1)]);
    graph.arcs[2].capacity = 0;
    assert_eq!(shortest(&graph, 0, 2), [vec![0, 1]]);
    assert_eq!(PathGraph::new(&graph).disjoint(0, 2, &Never).unwrap(), [vec![0, 1]]);
    assert_eq!(PathGraph::new(&graph).bounded(0, 2, 5, 9), Some(vec![vec![0, 1]]));
}

/// Three ways of one arc each for one pair, of capacities 3, 2 and 1, and a second pair that has the first of them alone.
fn ways() -> (Digraph, Vec<Vec<Vec<u32>>>) {
    let arc = |capacity| Arc { from: 0, to: 1, capacity };
    let graph = Digraph { node_count: 2, arcs: vec![arc(3), arc(2), arc(1)] };
    (graph, vec![vec![vec![0], vec![1], vec![2]], vec![vec![0]]])
}

/// Two units over capacities that add up to 6 take a third of a unit of time; whole chunks reach that where three divide them.
#[test]
fn whole_chunks_are_near_the_weights_and_relieved() {
    let (graph, pairs) = ways();
    let whole = |weights: [f64; 3], chunks| {
        let whole = whole_paths(&graph, &pairs, &[1, 1], &[weights.to_vec(), vec![1.0]], chunks, &Never).unwrap();
        assert!(whole.counts.iter().all(|counts| counts.iter().sum::<u64>() == chunks));
        (whole.counts[0].clone(), whole.load)
    };
    let third = Fraction::new(1, 3).unwrap();
    assert_eq!(whole([0.0, 2.0 / 3.0, 1.0 / 3.0], 3), (vec![0, 2, 1], third));
    // However bad the weights are.
    assert_eq!(whole([1.0, 0.0, 0.0], 6), (vec![0, 4, 2], third));
    assert_eq!(whole([f64::NAN, -1.0, 0.0], 3).1, third);
    let one = whole([0.0, 2.0 / 3.0, 1.0 / 3.0], 1);
    assert_eq!(one, (vec![0, 1, 0], Fraction::new(1, 2).unwrap()));
    assert!(whole_paths(&graph, &pairs, &[1, 1], &[vec![1.0, 0.0, 0.0], vec![1.0]], 1, &|| true).is_err());
}

/// Six pairs with three paths each, all by brute force: the local search and the integer program reach the least load.
#[test]
fn single_paths_are_optimal_where_they_say_so() {
    let mut state = 12345_u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    for _ in 0..40 {
        let arcs = (0..8).map(|_| Arc { from: 0, to: 1, capacity: 1 + u64::from(next(3)) }).collect();
        let graph = Digraph { node_count: 2, arcs };
        // Lists of arcs stand for paths: where they lead does not matter here.
        let mut path = || {
            let some: Vec<u32> = (0..8).filter(|_| next(3) == 0).collect();
            if some.is_empty() { vec![next(8)] } else { some }
        };
        let pairs: Vec<Vec<Vec<u32>>> = (0..6).map(|_| (0..3).map(|_| path()).collect()).collect();
        let load = |choices: &[u32]| {
            let mut loads = [0_u128; 8];
            for (paths, &choice) in pairs.iter().zip(choices) {
                paths[choice as usize].iter().for_each(|&arc| loads[arc as usize] += 1);
            }
            let times =
                loads.iter().zip(&graph.arcs).map(|(&load, arc)| Fraction::new(load, arc.capacity.into()).unwrap());
            times.max().unwrap()
        };
        let all = (0..3_u32.pow(6)).map(|code| (0..6).map(|pair| code / 3_u32.pow(pair) % 3).collect::<Vec<u32>>());
        let least = all.map(|choices| load(&choices)).min().unwrap();
        let options = SingleOptions { paths_max: 100, nodes_max: 1000, moves_max: 1000 };
        let found = single_paths(&graph, &pairs, &[], Fraction::ZERO, options, &Never).unwrap();
        assert_eq!((found.load, load(&found.choices), found.is_optimal), (least, least, true));
        let quick = single_paths(
            &graph,
            &pairs,
            &[],
            Fraction::ZERO,
            SingleOptions { paths_max: 0, moves_max: 0, ..options },
            &Never,
        )
        .unwrap();
        assert!(quick.load >= least && (quick.load == least || !quick.is_optimal));
    }
}

/// A start at the least load is kept; one that is worse than what the search finds is not.
#[test]
fn single_paths_are_never_worse_than_a_start() {
    let graph = graph(2, &[(0, 1), (0, 1), (0, 1)]);
    let pairs = vec![vec![vec![0], vec![1], vec![2]]; 6];
    let options = SingleOptions { paths_max: 0, nodes_max: 0, moves_max: 0 };
    let third = |load| Fraction::new(load, 3).unwrap();
    let found = |start: &[u32]| single_paths(&graph, &pairs, &[start.to_vec()], third(2), options, &Never).unwrap();
    let even = [2, 2, 1, 1, 0, 0];
    assert_eq!(found(&even), SinglePaths { choices: even.to_vec(), load: third(2), is_optimal: true });
    assert_eq!(found(&[0; 6]).load, third(2));
    assert!(single_paths(&graph, &pairs, &[], third(2), options, &|| true).is_err());
}

/// Six pairs that each load two of four arcs of one path each: the local search alone finds what fits, from the worst start.
#[test]
fn paths_are_fitted_into_a_load() {
    let graph = graph(2, &[(0, 1); 4]);
    let pairs: Vec<Vec<Vec<u32>>> = (0..6).map(|_| (0..4).map(|arc| vec![arc, (arc + 1) % 4]).collect()).collect();
    let fitted = |load| {
        let limit = Fraction::new(load, 3).unwrap();
        Fitting::new(&graph, &pairs, &[0; 6], limit).search(1000, &Never).unwrap()
    };
    let choices = fitted(3).unwrap();
    let mut loads = [0; 4];
    choices.iter().flat_map(|&place| &pairs[0][place as usize]).for_each(|&arc| loads[arc as usize] += 1);
    assert_eq!(loads, [3; 4]);
    assert_eq!(fitted(2), None);
}

/// Whether arcs lead from one node to the other, through no node twice.
fn is_path(graph: &Digraph, source: u32, target: u32, path: &[u32]) -> bool {
    let mut nodes = vec![source];
    for &arc in path {
        let arc = graph.arcs[arc as usize];
        if nodes.last() != Some(&arc.from) || nodes.contains(&arc.to) {
            return false;
        }
        nodes.push(arc.to);
    }
    nodes.last() == Some(&target)
}

/// The fewest arcs in all that so many disjoint ones of these paths have.
fn least_total(paths: &[Vec<u32>], used: &[u32], count: usize) -> Option<usize> {
    if count == 0 {
        return Some(0);
    }
    let choices = paths.iter().enumerate().filter(|(_, path)| path.iter().all(|arc| !used.contains(arc)));
    choices
        .filter_map(|(position, path)| {
            let used = [used, path].concat();
            least_total(&paths[position + 1..], &used, count - 1).map(|rest| rest + path.len())
        })
        .min()
}

proptest! {
    /// Against all simple paths: shortest ones are those of least length, disjoint ones are as many as a maximum flow, share no
    /// arc, and have the least total length of any such set.
    #[test]
    fn sets_agree_with_brute_force(arcs in prop::collection::vec((0_u32..5, 0_u32..5), 1..11)) {
        let graph = graph(5, &arcs);
        let paths = PathGraph::new(&graph);
        let all = paths.bounded(0, 4, 4, usize::MAX).unwrap();
        prop_assert!(all.iter().all(|path| is_path(&graph, 0, 4, path)));
        let mut distinct = all.clone();
        distinct.sort();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), all.len());

        let least = all.iter().map(Vec::len).min();
        let from = paths.shortest_from(0);
        prop_assert_eq!(from.distance(4).map(|distance| distance as usize), least);
        let mut nearest: Vec<Vec<u32>> = all.iter().filter(|path| Some(path.len()) == least).cloned().collect();
        nearest.sort();
        let mut found = shortest(&graph, 0, 4);
        found.sort();
        prop_assert_eq!(from.count(4), found.len() as u128);
        prop_assert_eq!(found, nearest);

        let disjoint = paths.disjoint(0, 4, &Never).unwrap();
        prop_assert!(disjoint.iter().all(|path| is_path(&graph, 0, 4, path)));
        let mut used = disjoint.concat();
        let total = used.len();
        used.sort_unstable();
        used.dedup();
        prop_assert_eq!(used.len(), total, "an arc is used twice");
        let mut network = FlowNetwork::<i64>::new(5);
        for &(from, to) in arcs.iter().filter(|(from, to)| from != to) {
            network.add_arc(from, to, 1);
        }
        prop_assert_eq!(disjoint.len() as i64, network.max_flow(0, 4, i64::MAX, &Never).unwrap());
        prop_assert_eq!(Some(total), least_total(&all, &[], disjoint.len()));
    }
}
