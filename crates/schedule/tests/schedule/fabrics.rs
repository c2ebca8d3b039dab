//! Exchanges in stages over networks whose ranks are several switches apart, sound and with faults: every link carries
//! what the trees carry, and ways are shortest ones that take turns.

use std::collections::{BTreeMap, BTreeSet};

use canopy_schedule::{BoxGrid, CollectiveKind, Inside, Seats, Stages, Ways};
use canopy_topology::{Capacity, LinkIndex, NodeIndex, Rank, Topology, TopologyDraft, TopologyLimits, generate};

use crate::forests::Random;
use crate::stages::{PHASES, agree, alter, by_trees, judge};

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// Ranks alone, in any order.
fn stages(digits: &[u32], seats: Seats, kind: CollectiveKind) -> Stages {
    let (_, actions) = PHASES.into_iter().find(|(other, _)| *other == kind).unwrap();
    Stages {
        chunks_per_share: 1,
        actions: actions.to_vec(),
        grid: BoxGrid { places: 1, digits: digits.to_vec(), seats },
        inside: vec![Inside::Star],
        classes: BTreeMap::new(),
        inside_first: Vec::new(),
        exceptions: BTreeMap::new(),
    }
}

fn shuffled(count: u32, random: &mut Random) -> Vec<u32> {
    let mut seats: Vec<u32> = (0..count).collect();
    for at in (1..seats.len()).rev() {
        seats.swap(at, random.below(at + 1));
    }
    seats
}

/// The same network with other rates.
fn with_rates(topology: &Topology, random: &mut Random) -> Topology {
    let mut draft = TopologyDraft::default();
    let id = |node: NodeIndex| topology.node(node).id.as_str();
    for node in (0..u32::try_from(topology.nodes().len()).unwrap()).map(NodeIndex::new) {
        match topology.rank_of(node) {
            Some(_) => draft.add_compute(id(node)),
            None => draft.add_switch(id(node)),
        }
    }
    for link in topology.links() {
        let rate = Capacity::from_bytes_per_sec([60, 100, 100, 150][random.below(4)]).unwrap();
        draft.add_link(id(link.from), id(link.to), rate, link.latency);
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

const FABRICS: [(&str, &[u32]); 10] = [
    ("dragonfly-router:p=2,a=4,h=2", &[9, 4, 2]),
    ("dragonfly-router:p=1,a=3,h=2", &[3, 7]),
    ("dragonfly-router:p=2,a=4,h=2,down=g0r0-g1r0+g3r1-g3r2", &[9, 8]),
    ("dragonfly-router:p=2,a=4,h=2,degrade=g2r0-g2r1*1/3", &[72]),
    ("fat-tree:k=4", &[4, 2, 2]),
    ("fat-tree:k=4,nodes-down=c1", &[2, 8]),
    ("fat-tree:k=6,down=p0e0-p0a0+p0e0-p0a1+p1a2-c8,degrade=p2a0-c0*1/2", &[6, 3, 3]),
    // Edge switches at which no aggregation switch is left that the other has: over seven switches.
    ("fat-tree:k=4,down=p0e0-p0a0+p1e0-p1a1", &[4, 2, 2]),
    ("leaf-spine:leaves=4,hosts=4,spines=3,host-bw=30GB/s,nodes-down=spine1,degrade=leaf0>spine2*1/4", &[4, 4]),
    ("leaf-spine:leaves=6,hosts=2,spines=4,down=leaf0-spine0", &[6, 2]),
];

#[test]
fn every_link_of_a_fabric_carries_what_the_trees_carry() {
    let mut random = Random(7);
    for (expression, digits) in FABRICS {
        let sound = network(expression);
        for (kind, _) in PHASES {
            agree(&sound, kind, &stages(digits, Seats::InOrder { empty: Vec::new() }, kind));
            let topology = with_rates(&sound, &mut random);
            agree(&topology, kind, &stages(digits, Seats::Listed(shuffled(sound.rank_count(), &mut random)), kind));
        }
    }
}

/// As far as ranks of 1,000 go.
#[test]
fn a_thousand_ranks_carry_what_the_trees_carry() {
    for (expression, digits) in [
        ("dragonfly-router:p=4,a=8,h=4", &[3, 11, 8, 4]),
        ("fat-tree:k=16,nodes-down=c3+p1a2,down=p0e0-p0a0", &[4, 4, 8, 8]),
    ] {
        let order = vec![3, 2, 0, 1];
        let kind = CollectiveKind::Allreduce;
        let turned = stages(digits, Seats::Turned { order, empty: Vec::new() }, kind);
        agree(&network(expression), kind, &turned);
    }
}

#[test]
fn what_is_accepted_of_altered_schedules_on_fabrics_is_right() {
    let mut random = Random(11);
    let networks = FABRICS.map(|(expression, digits)| (network(expression), digits));
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..600 {
        let (topology, digits) = &networks[round % networks.len()];
        let (kind, _) = PHASES[random.below(3)];
        let mut altered = stages(digits, Seats::InOrder { empty: Vec::new() }, kind);
        if digits.len() > 1 {
            (0..1 + random.below(2)).for_each(|_| alter(&mut altered, &mut random));
        }
        match judge(topology, kind, &altered) {
            Ok(verdict) => {
                let (all, _) = by_trees(topology, kind, &altered).unwrap_or_else(|| panic!("accepted: {altered:?}"));
                assert_eq!(verdict.algbw, all.algbw, "{altered:?}");
                accepted += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} {refused}");
}

/// All ways over the fewest switches, as lists of links, found one by one; parallel links are one in a network.
fn shortest(topology: &Topology, from: Rank, to: Rank) -> BTreeSet<Vec<LinkIndex>> {
    let mut ways = vec![(from.node(), Vec::new())];
    loop {
        let mut longer = Vec::new();
        for (node, way) in &ways {
            for link in topology.links_from(*node) {
                let next = topology.link(link).to;
                let is_free = topology.rank_of(next).is_none_or(|rank| rank == to);
                if is_free && !way.iter().any(|&link: &LinkIndex| topology.link(link).to == next) {
                    longer.push((next, [way.as_slice(), &[link]].concat()));
                }
            }
        }
        let done: BTreeSet<Vec<LinkIndex>> =
            longer.iter().filter(|(node, _)| *node == to.node()).map(|(_, way)| way.clone()).collect();
        if !done.is_empty() {
            return done;
        }
        ways = longer;
    }
}

/// How often each way is taken in so many turns.
fn taken(topology: &Topology, from: u32, to: u32, turns: u64) -> BTreeMap<Vec<LinkIndex>, u64> {
    let (mut ways, mut way, mut taken) = (Ways::of(topology), Vec::new(), BTreeMap::new());
    for turn in 0..turns {
        ways.between(Rank::new(from), Rank::new(to), turn, &mut way).unwrap();
        *taken.entry(way.clone()).or_default() += 1;
    }
    taken
}

#[test]
fn ways_are_the_shortest_and_take_turns() {
    for (expression, pairs, switches) in [
        ("dragonfly-router:p=2,a=4,h=2", vec![(0, 70), (0, 9), (5, 30), (0, 2)], 4),
        ("fat-tree:k=4", vec![(0, 15), (0, 3), (7, 8)], 5),
        ("fat-tree:k=6", vec![(0, 53), (1, 8)], 5),
        ("leaf-spine:leaves=4,hosts=4,spines=3,host-bw=30GB/s", vec![(0, 15), (3, 4)], 3),
        ("fat-tree:k=4,down=p0e0-p0a0+p1e0-p1a1", vec![(0, 4), (5, 1)], 7),
    ] {
        let topology = network(expression);
        let mut longest = 0;
        for (from, to) in pairs {
            let all = shortest(&topology, Rank::new(from), Rank::new(to));
            longest = longest.max(all.first().unwrap().len() - 1);
            let taken = taken(&topology, from, to, 4 * all.len() as u64);
            assert_eq!(taken.keys().cloned().collect::<BTreeSet<_>>(), all, "{expression} {from} {to}");
            // Where links are gone, ways are not equally wide.
            let most = if expression.contains("down=") { 2 } else { 0 };
            assert!(taken.values().all(|turns| turns.abs_diff(4) <= most), "{expression} {from} {to}: {taken:?}");
        }
        assert_eq!(longest, switches, "{expression}");
    }
}

#[test]
fn narrow_ways_are_taken_in_proportion_or_not_at_all() {
    // Uplinks at 3/4, 1/2 and 1/3 of the others.
    let slow = "leaf-spine:leaves=2,hosts=8,spines=4,degrade=leaf0>spine0*3/4+leaf0>spine1*1/2+spine2>leaf1*1/3";
    let topology = network(slow);
    let taken = taken(&topology, 0, 8, 9_000);
    let spine = |way: &Vec<LinkIndex>| topology.node(topology.link(way[1]).to).id.clone();
    let shares: BTreeMap<String, u64> = taken.iter().map(|(way, &turns)| (spine(way), turns)).collect();
    assert_eq!(shares.keys().collect::<Vec<_>>(), ["spine0", "spine1", "spine3"]);
    for (name, expected) in [("spine0", 3_000_u64), ("spine1", 2_000), ("spine3", 4_000)] {
        assert!(shares[name].abs_diff(expected) <= 3, "{shares:?}");
    }
    // The other way round all are as wide.
    assert_eq!(self::taken(&topology, 8, 0, 40).into_values().collect::<Vec<_>>(), [10; 4]);
}

#[test]
fn ways_over_more_than_eight_switches_are_none() {
    let line = |switches: usize| {
        let mut draft = TopologyDraft::default();
        let rate = Capacity::from_bytes_per_sec(100).unwrap();
        ["a", "b"].into_iter().for_each(|rank| draft.add_compute(rank));
        (0..switches).for_each(|at| draft.add_switch(format!("s{at}")));
        let mut nodes = vec!["a".to_owned()];
        nodes.extend((0..switches).map(|at| format!("s{at}")));
        nodes.push("b".to_owned());
        for pair in nodes.windows(2) {
            draft.add_both(&pair[0], &pair[1], rate, canopy_topology::Latency::default());
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    };
    for switches in 1..=10 {
        let topology = line(switches);
        let mut way = Vec::new();
        let found = Ways::of(&topology).between(Rank::new(0), Rank::new(1), 5, &mut way);
        assert_eq!(found.is_some(), switches <= 8, "{switches}");
        assert!(found.is_none() || way.len() == switches + 1);
        let pair = stages(&[2], Seats::InOrder { empty: Vec::new() }, CollectiveKind::Allgather);
        let judged = judge(&topology, CollectiveKind::Allgather, &pair).map_err(|error| error.to_string());
        match judged {
            Ok(_) => assert!(switches <= 8),
            Err(error) => assert!(switches > 8 && error.contains("over at most eight switches"), "{error}"),
        }
    }
}
