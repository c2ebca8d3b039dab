use canopy_topology::{TopologyLimits, generate, read_document};

use super::*;
use crate::chance::Chance;
use crate::read::Point;

/// Neighbours of a torus of 256 links both ways send to each other, in three sizes; one link is slower.
fn neighbours(topology: &Topology, slow: Option<usize>, factor: f64, seed: u64) -> Vec<Pair> {
    let mut chance = Chance(seed);
    let mut pairs = Vec::new();
    for (number, link) in topology.links().iter().enumerate() {
        for bytes in [1_u64 << 16, 1 << 20, 1 << 24] {
            let rate = link.capacity.bytes_per_sec() as f64 * if slow == Some(number) { factor } else { 0.93 };
            let micros = (4.0 + bytes as f64 * 1e6 / rate) * (1.0 + chance.noise(0.03));
            let id = |node: NodeIndex| topology.node(node).id.clone();
            pairs.push(Pair { from: id(link.from), to: id(link.to), point: Point { bytes, micros } });
        }
    }
    pairs
}

/// 512 links, one of them a quarter slower than the others, and 3 % of noise.
#[test]
fn a_slow_link_among_512_is_found() {
    let topology = generate("torus:8x16", &TopologyLimits::STANDARD).unwrap();
    assert_eq!(topology.links().len(), 512);
    let (mut found, mut alarms) = (0, 0);
    for trial in 0..100 {
        let slow = trial * 5 + 3;
        let pairs = neighbours(&topology, Some(slow), 0.7, trial as u64);
        let links = slow_links(&topology, &pairs).unwrap();
        let link = topology.links()[slow];
        let is_it =
            |one: &&SlowLink| (&one.from, &one.to) == (&topology.node(link.from).id, &topology.node(link.to).id);
        found += links.iter().filter(is_it).count();
        alarms += links.iter().filter(|one| !is_it(one)).count();
        if let Some(one) = links.iter().find(is_it) {
            let part = one.reached.bytes_per_sec() as f64 / one.described.bytes_per_sec() as f64;
            assert!((part / 0.7 - 1.0).abs() < 0.1, "{part}");
            assert!(one.confidence > 0.999 && one.messages == 3);
        }
    }
    assert!(found >= 95 && alarms <= 1, "{found} found, {alarms} alarms");
}

#[test]
fn noise_alone_is_no_slow_link() {
    let topology = generate("torus:8x16", &TopologyLimits::STANDARD).unwrap();
    let alarms: usize = (0..100)
        .map(|seed| slow_links(&topology, &neighbours(&topology, None, 1.0, 1_000 + seed)).unwrap().len())
        .sum();
    assert!(alarms <= 1, "{alarms} alarms");
}

/// An uplink of a leaf that many messages take is told from the links of ranks before it and behind it.
#[test]
fn an_uplink_is_told_from_the_links_of_ranks() {
    let topology = generate("leaf-spine:leaves=4,hosts=4,spines=1", &TopologyLimits::STANDARD).unwrap();
    let id = |rank: u32| topology.node(NodeIndex::new(rank)).id.clone();
    let mut chance = Chance(7);
    let mut pairs = Vec::new();
    for (from, to) in (0..16).flat_map(|from| (0..16).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        let is_slow = from < 4 && to >= 4;
        let micros = (2.0 + if is_slow { 130.0 } else { 100.0 }) * (1.0 + chance.noise(0.01));
        pairs.push(Pair { from: id(from), to: id(to), point: Point { bytes: 1 << 20, micros } });
    }
    let links = slow_links(&topology, &pairs).unwrap();
    assert_eq!(links.len(), 1, "{links:?}");
    assert_eq!((links[0].messages, links[0].or_else.len()), (48, 0), "{links:?}");
    // One message for each rank: its first link and the other's last carry the same.
    let one_each: Vec<Pair> = (0..16)
        .map(|from| {
            let micros = if from == 3 { 140.0 } else { 102.0 } * (1.0 + chance.noise(0.01));
            Pair { from: id(from), to: id((from + 8) % 16), point: Point { bytes: 1 << 20, micros } }
        })
        .collect();
    let links = slow_links(&topology, &one_each).unwrap();
    assert_eq!((links.len(), links[0].or_else.len()), (1, 1), "{links:?}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let topology = generate("ring:8", &TopologyLimits::STANDARD).unwrap();
    let point = Point { bytes: 1 << 20, micros: 9.0 };
    let pair = |from: &str, to: &str| Pair { from: from.to_owned(), to: to.to_owned(), point };
    let few = vec![pair("0", "1"); 3];
    assert_eq!(slow_links(&topology, &few), Err(PairError::TooFew { found: 3 }));
    let unknown = vec![pair("0", "9"); 8];
    assert!(matches!(slow_links(&topology, &unknown), Err(PairError::NoRank { .. })));
    // Ranks do not pass on.
    let far = vec![pair("0", "2"); 8];
    assert!(matches!(slow_links(&topology, &far), Err(PairError::NoWay { .. })));
}

fn parse(text: &str) -> Topology {
    read_document(text.as_bytes(), None, &TopologyLimits::STANDARD).unwrap().topology
}

/// Two switches in a box, each with a link to all four ranks: two ways that are equally short have no link in common.
#[test]
fn two_ways_that_are_equally_short_blame_no_link() {
    let mut text = "canopy: 1\nnodes:\n".to_owned();
    (0..4).for_each(|rank| text += &format!("  - {{id: r{rank}, kind: compute, box: b}}\n"));
    text += "  - {id: s0, kind: switch}\n  - {id: s1, kind: switch}\nlinks:\n";
    for (rank, switch) in (0..4).flat_map(|rank| (0..2).map(move |switch| (rank, switch))) {
        text += &format!("  - {{from: r{rank}, to: s{switch}, bandwidth: 25GB/s, both: true}}\n");
    }
    let topology = parse(&text);
    let mut chance = Chance(5);
    let ranks = || (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let pairs: Vec<Pair> = ranks()
        .map(|(from, to)| {
            let micros = (4.0 + 42.0) * (1.0 + chance.noise(0.01));
            Pair { from: format!("r{from}"), to: to.to_string(), point: Point { bytes: 1 << 20, micros } }
        })
        .collect();
    assert_eq!(slow_links(&topology, &pairs), Ok(Vec::new()));
}

/// GPUs of a box in a square: 1 reaches 3 over 0 or over 2. A slow link is still found by the messages of its ends.
#[test]
fn gpus_of_a_box_pass_on_where_they_are_not_joined() {
    let mut text = "canopy: 1\nnodes:\n".to_owned();
    (0..4).for_each(|rank| text += &format!("  - {{id: \"{rank}\", kind: compute, box: b}}\n"));
    text += "links:\n";
    (0..4).for_each(|rank| {
        text += &format!("  - {{from: \"{rank}\", to: \"{}\", bandwidth: 25GB/s, both: true}}\n", (rank + 1) % 4)
    });
    let topology = parse(&text);
    let mut chance = Chance(6);
    let mut pairs = Vec::new();
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        for bytes in [1_u64 << 20, 1 << 24, 1 << 25, 1 << 26] {
            let factor = if (from, to) == (1, 2) { 1.5 } else { 1.0 };
            let micros = (4.0 + bytes as f64 / 25e3 * factor) * (1.0 + chance.noise(0.01));
            pairs.push(Pair { from: from.to_string(), to: to.to_string(), point: Point { bytes, micros } });
        }
    }
    let found = slow_links(&topology, &pairs).unwrap();
    let ends: Vec<(&str, &str)> = found.iter().map(|link| (link.from.as_str(), link.to.as_str())).collect();
    assert_eq!(ends, [("1", "2")], "{found:?}");
    assert!((found[0].times_as_long - 1.5).abs() < 0.05, "{found:?}");
}
