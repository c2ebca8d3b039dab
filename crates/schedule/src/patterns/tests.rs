//! Patterns and flows turn into each other; what stands for no paths is refused by what is wrong with it.

use canopy_topology::{LinkIndex, NodeIndex, TopologyLimits, generate};
use proptest::prelude::*;

use super::*;

/// A ring both ways, and one route to each neighbour for each rank: to the next one, then to the one before.
fn ring(ranks: u32) -> (Topology, RouteTable) {
    let topology = generate(&format!("ring:{ranks}"), &TopologyLimits::STANDARD).unwrap();
    let mut routes = RouteTable::default();
    for rank in 0..ranks {
        for to in [(rank + 1) % ranks, (rank + ranks - 1) % ranks] {
            let link = topology.links_from(NodeIndex::new(rank)).find(|&link| topology.link(link).to.number() == to);
            routes.push(&[link.unwrap()]);
        }
    }
    (topology, routes)
}

fn patterns(patterns: &[(u64, &[u32])]) -> Patterns {
    let pattern = |&(chunk_count, hops): &(u64, &[u32])| Pattern { chunk_count, hops: hops.to_vec() };
    Patterns { ports: 2, patterns: patterns.iter().map(pattern).collect() }
}

fn ends(flow: &Flow) -> Vec<(u32, u32, u64)> {
    flow.paths.iter().map(|path| (path.source.number(), path.destination.number(), path.chunk_count)).collect()
}

#[test]
fn each_pattern_is_a_path_from_every_rank() {
    let (topology, routes) = ring(4);
    let flow = patterns(&[(7, &[0, 0]), (5, &[1])]).flow(&topology, 9, routes, &|| false).unwrap();
    assert_eq!(ends(&flow), [(0, 2, 7), (0, 3, 5), (1, 0, 5), (1, 3, 7), (2, 0, 7), (2, 1, 5), (3, 1, 7), (3, 2, 5)]);
    let hops: Vec<u32> = flow.hops_of(&flow.paths[3]).iter().map(|hop| hop.number()).collect();
    assert_eq!((hops, flow.chunks_per_share), (vec![2, 4], 9));
    assert_eq!(Patterns::of(&topology, &flow), Some(patterns(&[(7, &[0, 0]), (5, &[1])])));
}

/// A chunk more on one path, a hop more in the table, a path less, or paths in another order: no patterns stand for that.
#[test]
fn flows_that_are_not_alike_from_every_rank_have_no_patterns() {
    let (topology, routes) = ring(4);
    let right = patterns(&[(7, &[0, 0]), (5, &[1])]).flow(&topology, 9, routes, &|| false).unwrap();
    let has_none = |change: fn(&mut Flow)| {
        let mut flow = right.clone();
        change(&mut flow);
        assert_eq!(Patterns::of(&topology, &flow), None, "{flow:?}");
    };
    has_none(|flow| flow.paths[5].chunk_count += 1);
    has_none(|flow| flow.hops.push(RouteIndex::new(0)));
    has_none(|flow| flow.paths.truncate(7));
    has_none(|flow| flow.paths.swap(2, 3));
    has_none(|flow| flow.hops.swap(3, 4));
    has_none(|flow| flow.hops[0] = RouteIndex::new(99));
    has_none(|flow| flow.paths[7].hops = 90..91);
    has_none(|flow| flow.paths.clear());
    has_none(|flow| {
        flow.routes.push(&[LinkIndex::new(0)]);
    });
}

#[test]
fn what_stands_for_no_paths_is_refused() {
    let (topology, routes) = ring(4);
    let refused = |patterns: &Patterns, routes: &RouteTable| {
        let error = patterns.flow(&topology, 1, routes.clone(), &|| false).unwrap_err();
        (error.field(), error.to_string())
    };
    let one = patterns(&[(1, &[0])]);
    let check = |found: (&str, String), field: &str, words: &str| {
        assert!(found.0 == field && found.1.starts_with(field) && found.1.contains(words), "{found:?}");
    };
    for ports in [0, 1, 3, u32::MAX] {
        check(refused(&Patterns { ports, ..one.clone() }, &routes), "ports", "a group of");
    }
    check(refused(&patterns(&[(1, &[0]), (1, &[])]), &routes), "patterns", "patterns[1] has no hop");
    check(refused(&patterns(&[(1, &[0, 2])]), &routes), "patterns", "patterns[0] has hop 2, but groups have 2 routes");
    let many = Pattern { chunk_count: 1, hops: vec![0; (1 << 25) + 1] };
    check(refused(&Patterns { ports: 2, patterns: vec![many] }, &routes), "patterns", "of 134217732 hops");
    let table = |links: [u32; 8]| {
        let mut routes = RouteTable::default();
        for link in links {
            routes.push(&[LinkIndex::new(link)]);
        }
        routes
    };
    check(refused(&one, &table([0, 1, 2, 3, 4, 5, 6, 99])), "routes", "routes[7] must lead");
    check(refused(&one, &table([0, 2, 1, 3, 4, 5, 6, 7])), "routes", "routes[1] must lead");
    check(refused(&one, &table([0, 1, 1, 0, 4, 5, 6, 7])), "routes", "two groups that start at rank 0");
    assert_eq!(one.flow(&topology, 1, routes, &|| true), Err(PatternsError::Stopped));
}

proptest! {
    /// What patterns stand for has patterns, which stand for the same.
    #[test]
    fn flows_of_patterns_have_patterns(
        ranks in 3..7_u32,
        some in proptest::collection::vec((1..9_u64, proptest::collection::vec(0..2_u32, 1..5)), 1..7),
    ) {
        let (topology, routes) = ring(ranks);
        let patterns = some.into_iter().map(|(chunk_count, hops)| Pattern { chunk_count, hops }).collect();
        let flow = Patterns { ports: 2, patterns }.flow(&topology, 1, routes.clone(), &|| false).unwrap();
        let found = Patterns::of(&topology, &flow).unwrap();
        prop_assert_eq!(found.flow(&topology, 1, routes, &|| false), Ok(flow));
    }
}
