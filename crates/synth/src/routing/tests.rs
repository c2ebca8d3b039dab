//! Which route is taken, on networks small enough to see.

use canopy_topology::{Capacity, Latency, Topology, TopologyDraft, TopologyLimits};

use super::*;

/// Links as (from, to, capacity); ids that start with `s` are switches, numbered after all others.
fn topology(nodes: &str, links: &[(&str, &str, u64)]) -> Topology {
    let mut draft = TopologyDraft::default();
    for id in nodes.split(' ') {
        if id.starts_with('s') { draft.add_switch(id) } else { draft.add_compute(id) }
    }
    for (from, to, capacity) in links {
        draft.add_link(*from, *to, Capacity::from_bytes_per_sec(*capacity).unwrap(), Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

fn node(topology: &Topology, id: &str) -> NodeIndex {
    topology.find_node(id).unwrap()
}

/// Ids of the nodes that the route from `from` to `to` passes, both included.
fn route(topology: &Topology, heading: Heading, passing: Passing, from: &str, to: &str, loads: &Loads) -> Vec<String> {
    let network = Network::new(topology, heading);
    let levels = Levels::new(&network, node(topology, from), passing);
    let start = |candidate| candidate == node(topology, from);
    let links = Chooser::new(topology).choose(&network, &levels, loads, node(topology, to), start).unwrap_or_default();
    let ends = links.first().map(|&link| network.tail(link)).into_iter();
    ends.chain(links.iter().map(|&link| network.head(link))).map(|node| topology.node(node).id.clone()).collect()
}

/// Short beats wide, wide beats narrow.
#[test]
fn fewest_links_come_before_width() {
    let links = [("a", "b", 1), ("a", "sx", 9), ("sx", "b", 9), ("a", "sy", 5), ("a", "sz", 7)];
    let more = [("sy", "c", 9), ("sz", "c", 6), ("b", "a", 1), ("c", "a", 1)];
    let topology = topology("a b c sx sy sz", &[&links[..], &more].concat());
    let none = Loads::none(&topology);
    assert_eq!(route(&topology, Heading::Along, Passing::Anyone, "a", "b", &none), ["a", "b"]);
    assert_eq!(route(&topology, Heading::Along, Passing::Anyone, "a", "c", &none), ["a", "sz", "c"]);
    let levels = Levels::new(&Network::new(&topology, Heading::Along), node(&topology, "a"), Passing::Anyone);
    assert_eq!((levels.distance(node(&topology, "c")), levels.width(node(&topology, "c"))), (Some(2), 6));
}

/// Of equal routes the one used less; of unequal widths never the narrower, however much the other carries.
#[test]
fn equal_routes_share_the_load() {
    let links = [("a", "sx", 4), ("a", "sy", 4), ("a", "sz", 3), ("sx", "b", 4), ("sy", "b", 4), ("sz", "b", 3)];
    let topology = topology("a b sx sy sz", &links);
    let mut loads = Loads::none(&topology);
    let network = Network::new(&topology, Heading::Along);
    let levels = Levels::new(&network, node(&topology, "a"), Passing::Switches);
    let mut chooser = Chooser::new(&topology);
    let mut taken = Vec::new();
    for _ in 0..4 {
        let start = |candidate| candidate == node(&topology, "a");
        let links = chooser.choose(&network, &levels, &loads, node(&topology, "b"), start).unwrap();
        loads.add(&links);
        taken.push(topology.node(network.head(links[0])).id.clone());
    }
    assert_eq!(taken, ["sx", "sy", "sx", "sy"]);
}

#[test]
fn routes_over_switches_only_do_not_pass_ranks() {
    let links = [("a", "b", 1), ("b", "c", 1), ("a", "sx", 1), ("sx", "sy", 1), ("sy", "c", 1)];
    let topology = topology("a b c sx sy", &links);
    let none = Loads::none(&topology);
    assert_eq!(route(&topology, Heading::Along, Passing::Anyone, "a", "c", &none), ["a", "b", "c"]);
    assert_eq!(route(&topology, Heading::Along, Passing::Switches, "a", "c", &none), ["a", "sx", "sy", "c"]);
    assert!(route(&topology, Heading::Along, Passing::Anyone, "c", "a", &none).is_empty(), "there is no way back");
    assert_eq!(route(&topology, Heading::Against, Passing::Anyone, "c", "a", &none), ["c", "b", "a"]);
}

/// Capacities of 2⁶⁴ − 1 and of 1, and loads that add up on the same link.
#[test]
fn extreme_capacities_do_not_overflow() {
    let topology = topology("a b c", &[("a", "b", u64::MAX), ("b", "c", 1), ("c", "a", 1)]);
    let mut loads = Loads::none(&topology);
    for _ in 0..3 {
        assert_eq!(route(&topology, Heading::Along, Passing::Anyone, "a", "c", &loads), ["a", "b", "c"]);
        loads.add(&[LinkIndex::new(0), LinkIndex::new(1)]);
    }
    loads.remove(&[LinkIndex::new(0)]);
}

/// Trees take what single routes would: the fewest links, the widest of these, and of equal ones those used less.
#[test]
fn trees_share_the_load_as_single_routes_do() {
    let up = [("a", "sx", 4), ("a", "sy", 4), ("a", "sz", 3), ("a", "d", 1)];
    let down = [("sx", "b", 4), ("sy", "b", 4), ("sz", "b", 3), ("sx", "c", 4), ("sy", "c", 4), ("sx", "d", 9)];
    let back = [("b", "a", 1), ("c", "a", 1), ("d", "a", 1)];
    let topology = topology("a b c d sx sy sz", &[&up[..], &down, &back].concat());
    let network = Network::new(&topology, Heading::Along);
    let levels = Levels::without_links(&network, node(&topology, "a"), Passing::Anyone);
    let targets = ["b", "c", "d"].map(|id| (node(&topology, id), 1));
    let (mut loads, mut trees) = (Loads::none(&topology), RouteTrees::new(&network));
    let mut passed: Vec<Vec<String>> = Vec::new();
    for seed in 0..2 {
        trees.choose(&network, &levels, targets.into_iter(), &mut loads, seed);
        passed.push(Vec::new());
        for (target, _) in targets {
            let mut route = vec![LinkIndex::new(0); levels.distance(target).unwrap() as usize];
            trees.write(&network, target, &mut route);
            assert_eq!((network.tail(route[0]), network.head(*route.last().unwrap())), (node(&topology, "a"), target));
            assert!(route.windows(2).all(|pair| network.head(pair[0]) == network.tail(pair[1])));
            let width = route.iter().map(|&link| network.width(link)).min();
            assert_eq!(width, Some(levels.width(target)));
            passed.last_mut().unwrap().push(topology.node(network.head(route[0])).id.clone());
        }
    }
    let [first, second] = &passed[..] else { panic!("two rounds") };
    assert_eq!((first[2].as_str(), second[2].as_str()), ("d", "d"));
    // What one tree sends over one switch, the next sends over the other.
    for (first, second) in first.iter().zip(second).take(2) {
        assert!(["sx", "sy"].contains(&first.as_str()) && ["sx", "sy"].contains(&second.as_str()));
        assert_ne!(first, second);
    }
}
