//! Path sets against counting by hand and against brute force on small graphs.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::PathGraph;
use crate::digraph::{Arc, Digraph};
use crate::flow::FlowNetwork;
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
