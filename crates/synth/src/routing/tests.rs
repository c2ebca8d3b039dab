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
    let source = node(&topology, "a");
    let levels = Levels::new(&network, source, Passing::Anyone);
    let targets = ["b", "c", "d"].map(|id| (node(&topology, id), 1));
    // Two sources at one place: what one tree sends over one switch, the other sends over the other.
    let mut trees = RouteTrees::new(&network, vec![source; 2]);
    let mut passed: Vec<Vec<String>> = Vec::new();
    for number in 0..2 {
        assert_eq!(trees.length(number, targets.into_iter()), 2 + 2 + 1);
        trees.choose(number, targets.into_iter(), number as u64);
        passed.push(Vec::new());
        for (target, _) in targets {
            let (mut at, mut route) = (target, Vec::new());
            while let Some(link) = trees.last_link(number, at) {
                route.push(link);
                at = network.tail(link);
            }
            assert_eq!((at, route.len()), (source, levels.distance(target).unwrap() as usize));
            let width = route.iter().map(|&link| network.width(link)).min();
            assert_eq!(width, Some(levels.width(target)));
            passed.last_mut().unwrap().push(topology.node(network.head(*route.last().unwrap())).id.clone());
        }
    }
    let [first, second] = &passed[..] else { panic!("two sources") };
    assert_eq!((first[2].as_str(), second[2].as_str()), ("d", "d"));
    for (first, second) in first.iter().zip(second).take(2) {
        assert!(["sx", "sy"].contains(&first.as_str()) && ["sx", "sy"].contains(&second.as_str()));
        assert_ne!(first, second);
    }
}

/// Loads of all trees, counted route by route, and Σ load²/capacity, times a number that all capacities divide.
fn counted(network: &Network<'_>, trees: &RouteTrees<'_>, sources: &[NodeIndex], ranks: u32) -> (Vec<u64>, u128) {
    let mut loads = vec![0; network.topology.links().len()];
    for (number, &source) in sources.iter().enumerate() {
        for target in (0..ranks).map(NodeIndex::new).filter(|&target| target != source) {
            let mut at = target;
            while let Some(link) = trees.last_link(number, at) {
                loads[link.index()] += weight_of(number, target);
                at = network.tail(link);
            }
            assert_eq!(at, source);
        }
    }
    let lcm = network.topology.links().iter().map(|link| u128::from(link.capacity.bytes_per_sec()));
    let lcm = lcm.fold(1, |lcm: u128, capacity| num_integer::lcm(lcm, capacity));
    let squares = loads.iter().zip(network.topology.links());
    let squares =
        squares.map(|(&load, link)| u128::from(load).pow(2) * (lcm / u128::from(link.capacity.bytes_per_sec())));
    (loads.clone(), squares.sum())
}

/// Chunks of a target: more for some than for others.
fn weight_of(source: usize, target: NodeIndex) -> u64 {
    1 + (source as u64 + 2 * u64::from(target.number())) % 3
}

/// Every branch hangs where it adds least, once none moves: tried one by one, with all loads counted anew each time.
#[test]
fn branches_hang_where_they_add_least() {
    for expression in
        ["torus:3x4", "fat-tree:k=4", "torus:3x4,faults=links:5@1/2+seed:1", "random-regular:n=12,d=4,seed=2"]
    {
        let topology = canopy_topology::generate(expression, &TopologyLimits::STANDARD).unwrap();
        let network = Network::new(&topology, Heading::Along);
        let ranks = topology.rank_count();
        let sources: Vec<NodeIndex> = (0..ranks).map(NodeIndex::new).collect();
        let targets = |number: usize| {
            let others = (0..ranks).map(NodeIndex::new).filter(move |node| node.index() != number);
            others.map(move |target| (target, weight_of(number, target)))
        };
        let mut trees = RouteTrees::new(&network, sources.clone());
        (0..sources.len()).for_each(|number| trees.choose(number, targets(number), 7));
        let mut before = counted(&network, &trees, &sources, ranks);
        loop {
            let has_moved =
                (0..sources.len()).fold(false, |moved, number| trees.rehang(number, targets(number)) | moved);
            let after = counted(&network, &trees, &sources, ranks);
            let worst = after.0.iter().zip(topology.links()).map(|(&load, link)| (load, link.capacity.bytes_per_sec()));
            let worst = worst.reduce(|worst, other| if is_less(worst, other) { other } else { worst }).unwrap();
            assert!(!is_less(worst, trees.worst()) && !is_less(trees.worst(), worst), "{expression}");
            assert_eq!(has_moved, after.1 < before.1, "{expression}: {} {}", before.1, after.1);
            assert!(after.1 <= before.1);
            before = after;
            if !has_moved {
                break;
            }
        }
        let chosen = trees.trees();
        for place in 0..chosen.len() {
            let (number, node) = (place / topology.nodes().len(), place % topology.nodes().len());
            let node = NodeIndex::new(u32::try_from(node).unwrap());
            let levels = Levels::new(&network, sources[number], Passing::Anyone);
            for other in levels.links_into(node) {
                let width = levels.width(network.tail(other)).min(network.width(other));
                if node != sources[number] && width == levels.width(node) {
                    let mut moved = chosen.clone();
                    moved[place] = other;
                    trees.restore(moved);
                    assert!(counted(&network, &trees, &sources, ranks).1 >= before.1, "{expression}");
                }
            }
        }
    }
}
