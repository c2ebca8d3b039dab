//! Trees and flows turn into each other; what leads nowhere is refused by what is wrong with it.

use canopy_topology::{TopologyLimits, generate};
use proptest::prelude::*;

use super::*;

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// The tree from each rank that comes to every node over the first link from a nearer one, or the last.
fn nearest(topology: &Topology, takes_last: bool) -> PathTrees {
    let mut trees = PathTrees::new(topology);
    for source in topology.ranks() {
        let mut reached = vec![false; topology.nodes().len()];
        reached[source.index()] = true;
        let mut level = vec![source.node()];
        while !level.is_empty() {
            let ends = level.iter().flat_map(|&node| topology.links_from(node));
            let ends = ends.map(|link| (topology.link(link).to, link)).filter(|(to, _)| !reached[to.index()]);
            let mut ends: Vec<(NodeIndex, LinkIndex)> = ends.collect();
            ends.sort_unstable();
            if takes_last {
                ends.reverse();
            }
            ends.dedup_by_key(|&mut (to, _)| to);
            for &(to, link) in &ends {
                trees.set(source, to, link);
                reached[to.index()] = true;
            }
            level = ends.into_iter().map(|(to, _)| to).collect();
        }
    }
    trees
}

fn expanded(topology: &Topology, trees: &PathTrees) -> Flow {
    trees.flow(topology, 3, |_, _| 3, &|| false).unwrap()
}

fn lists(trees: &PathTrees) -> Vec<Vec<u32>> {
    trees.lists().map(|tree| tree.map(LinkIndex::number).collect()).collect()
}

/// A line of three: links 0 → 1, 1 → 0, 1 → 2, 2 → 1. Routes are named as paths first take them.
#[test]
fn trees_expand_to_paths() {
    let topology = network("mesh:1x3");
    let trees = PathTrees::from_lists(&topology, &[vec![2, 0], vec![1, 2], vec![1, 3]]).unwrap();
    let flow = expanded(&topology, &trees);
    let paths = flow.paths.iter().map(|path| {
        let links = flow.hops_of(path).iter().flat_map(|&route| flow.routes.get(route).unwrap());
        let links: Vec<u32> = links.map(|link| link.number()).collect();
        (path.source.number(), path.destination.number(), path.chunk_count, links)
    });
    let expected =
        [(0, 1, vec![0]), (0, 2, vec![0, 2]), (1, 0, vec![1]), (1, 2, vec![2]), (2, 0, vec![3, 1]), (2, 1, vec![3])];
    assert!(paths.eq(expected.map(|(source, destination, links)| (source, destination, 3, links))));
    let routes: Vec<u32> = flow.routes.iter().map(|links| links[0].number()).collect();
    assert_eq!((routes, flow.chunks_per_share), (vec![0, 2, 1, 3], 3));
    assert_eq!(lists(&trees), [[0, 2], [1, 2], [1, 3]]);
}

#[test]
fn flows_that_are_not_such_have_no_trees() {
    let topology = network("torus:3x3");
    let right = expanded(&topology, &nearest(&topology, false));
    assert!(PathTrees::of(&topology, &right).is_some());
    let has_none = |change: fn(&mut Flow)| {
        let mut flow = right.clone();
        change(&mut flow);
        assert_eq!(PathTrees::of(&topology, &flow), None, "{flow:?}");
    };
    has_none(|flow| flow.paths[5].chunk_count += 1);
    has_none(|flow| flow.hops.push(RouteIndex::new(0)));
    has_none(|flow| flow.paths.truncate(7));
    has_none(|flow| flow.paths.swap(2, 3));
    has_none(|flow| flow.hops.swap(3, 4));
    has_none(|flow| flow.hops[0] = RouteIndex::new(99));
    has_none(|flow| flow.paths[7].hops = 90..91);
    has_none(|flow| flow.paths[7].source = Rank::new(9));
    has_none(|flow| flow.paths.clear());
    has_none(|flow| {
        flow.routes.push(&[LinkIndex::new(0)]);
    });
    // A route twice, or one that takes another link to a node.
    has_none(|flow| {
        let again = flow.routes.iter().next().unwrap().to_vec();
        *flow.hops.last_mut().unwrap() = flow.routes.push(&again);
    });
}

/// Pairs that have nothing for each other have no path; a tree need not lead there.
#[test]
fn pairs_without_chunks_have_no_paths() {
    let topology = network("mesh:1x3");
    let trees = PathTrees::from_lists(&topology, &[vec![0], vec![], vec![]]).unwrap();
    let only = |source: Rank, destination: Rank| u64::from((source.number(), destination.number()) == (0, 1)) * 7;
    let flow = trees.flow(&topology, 1, only, &|| false).unwrap();
    assert_eq!((flow.paths.len(), flow.paths[0].chunk_count), (1, 7));
    let stopped = trees.flow(&topology, 1, only, &|| true);
    assert_eq!(stopped, Err(PathTreesError::Stopped));
}

#[test]
fn trees_that_lead_nowhere_are_refused() {
    // Links 0 → 1, 1 → 0, 1 → 2, 2 → 1.
    let topology = network("mesh:1x3");
    let refused = |lists: &[&[u32]]| {
        let lists: Vec<Vec<u32>> = lists.iter().map(|list| list.to_vec()).collect();
        let trees = PathTrees::from_lists(&topology, &lists);
        trees.and_then(|trees| trees.flow(&topology, 1, |_, _| 1, &|| false)).unwrap_err()
    };
    assert_eq!(refused(&[&[0, 2]]), PathTreesError::Count { found: 1, rank_count: 3 });
    assert_eq!(refused(&[&[0, 9], &[], &[]]), PathTreesError::Link { tree: 0, link: 9, link_count: 4 });
    assert_eq!(refused(&[&[0, 3], &[], &[]]), PathTreesError::Twice { tree: 0, node: 1 });
    assert_eq!(refused(&[&[0, 1], &[], &[]]), PathTreesError::Twice { tree: 0, node: 0 });
    assert_eq!(refused(&[&[0], &[], &[]]), PathTreesError::Apart { tree: 0, rank: 2 });
    // Ranks 1 and 2 come from each other.
    assert_eq!(refused(&[&[2, 3], &[], &[]]), PathTreesError::Apart { tree: 0, rank: 1 });
    // So do two switches.
    let topology = network("leaf-spine:leaves=2,hosts=1,spines=1");
    let to = |from: &str, to: &str| {
        let (from, to) = (topology.find_node(from).unwrap(), topology.find_node(to).unwrap());
        topology.links_from(from).find(|&link| topology.link(link).to == to).unwrap().number()
    };
    let ids: Vec<&str> = topology.nodes().iter().map(|node| node.id.as_str()).collect();
    let [_, other, leaf, _, spine] = ids[..] else { panic!("{ids:?}") };
    let beside = [ids[3], leaf]
        .into_iter()
        .find(|leaf| {
            topology
                .links_from(topology.find_node(other).unwrap())
                .any(|link| topology.node(topology.link(link).to).id == *leaf)
        })
        .unwrap();
    let trees =
        PathTrees::from_lists(&topology, &[vec![to(beside, other), to(beside, spine), to(spine, beside)], vec![]]);
    let flow = trees.unwrap().flow(&topology, 1, |_, _| 1, &|| false);
    assert_eq!(flow, Err(PathTreesError::Apart { tree: 0, rank: 1 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Trees, their lists and their flows are one thing, with switches or without.
    #[test]
    fn trees_come_back(kind in 0..5_usize, takes_last: bool) {
        let expression = ["torus:3x4", "fat-tree:k=4", "genkautz:n=13,d=3", "dgx-a100:boxes=2", "mesh:2x3"][kind];
        let topology = network(expression);
        let trees = nearest(&topology, takes_last);
        let flow = expanded(&topology, &trees);
        let again = PathTrees::of(&topology, &flow).unwrap();
        let lists = lists(&again);
        let read = PathTrees::from_lists(&topology, &lists).unwrap();
        prop_assert_eq!(&read, &again);
        prop_assert_eq!(expanded(&topology, &read), flow);
    }
}
