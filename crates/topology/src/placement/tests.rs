use proptest::prelude::*;

use super::*;
use crate::draft::TopologyDraft;
use crate::generate::generate;
use crate::group::Transit;
use crate::limits::TopologyLimits;
use crate::model::NodeKind;
use crate::units::{Capacity, Latency};

fn slots(text: &str) -> Vec<Slot> {
    let slot = |text: &str| {
        let (node, device) = text.split_once(':').unwrap();
        Slot { node: node.to_owned(), device: device.parse().unwrap() }
    };
    text.split_whitespace().map(slot).collect()
}

fn ranks(numbers: &[u32]) -> Vec<Rank> {
    numbers.iter().copied().map(Rank::new).collect()
}

/// A ring of ranks on these hosts.
fn on_hosts(hosts: &[&str]) -> Topology {
    let mut draft = TopologyDraft::default();
    let id = |rank: usize| format!("g{rank}");
    for (rank, &host) in hosts.iter().enumerate() {
        let attributes = Attributes { host: Some(host.to_owned()), ..Attributes::default() };
        draft.add_node(id(rank), NodeKind::Compute, attributes);
    }
    for rank in 0..hosts.len() {
        let next = (rank + 1) % hosts.len();
        draft.add_link(id(rank), id(next), Capacity::from_bytes_per_sec(1).unwrap(), Latency::default());
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

fn boxes() -> Topology {
    generate("dgx-a100:boxes=2,gpus=2", &TopologyLimits::STANDARD).unwrap()
}

#[track_caller]
fn check(topology: &Topology, listed: Option<&[u32]>, placed: &str, members: Option<&[u32]>, expected: &str) {
    let listed = listed.map(ranks);
    let seated = participants(topology, listed.as_deref(), Some(&slots(placed))).unwrap();
    assert_eq!(seated, Participants { members: members.map(ranks), slots: Some(slots(expected)) });
}

#[track_caller]
fn refused(topology: &Topology, listed: Option<&[u32]>, placed: &str) -> PlacementError {
    let listed = listed.map(ranks);
    participants(topology, listed.as_deref(), Some(&slots(placed))).unwrap_err()
}

/// A rank map is written as a list, in which commas separate the devices.
#[test]
fn names_that_break_a_list_are_refused() {
    let ring = on_hosts(&["a", "b"]);
    for name in ["", "a,b", ",", "a\tb", "a b", &"n".repeat(256)] {
        let placed = ["a", name].map(|node| Slot { node: node.to_owned(), device: 0 });
        let error = participants(&ring, None, Some(&placed)).unwrap_err();
        assert_eq!(error, PlacementError::Name { rank: 1, bytes: name.len() });
        assert!(error.to_string().ends_with("give 1 to 255, without white space and commas"), "{error}");
    }
}

#[test]
fn a_topology_places_its_ranks_by_hosts_else_by_boxes() {
    let cyclic = on_hosts(&["a", "b", "a", "b"]);
    assert_eq!(own_slots(&cyclic), Some(slots("a:0 b:0 a:1 b:1")));
    assert_eq!(own_slots(&boxes()), Some(slots("b0:0 b0:1 b1:0 b1:1")));
    assert_eq!(own_slots(&generate("ring:4", &TopologyLimits::STANDARD).unwrap()), None);
    let listed = ranks(&[3, 0]);
    let seated = participants(&cyclic, Some(&listed), None).unwrap();
    assert_eq!(seated, Participants { members: Some(listed), slots: Some(slots("b:1 a:0")) });
    let absent = ranks(&[0, 4]);
    assert_eq!(participants(&cyclic, Some(&absent), None).unwrap().slots, None, "left for the group to refuse");
}

#[test]
fn slots_on_known_hosts_choose_ranks() {
    let topology = on_hosts(&["a.x", "a.x", "b.x", "b.x"]);
    check(&topology, None, "a:0 a:1 b.x:0 b:1", None, "a.x:0 a.x:1 b.x:0 b.x:1");
    check(&topology, None, "b:0 b:1 a:0 a:1", Some(&[2, 3, 0, 1]), "b.x:0 b.x:1 a.x:0 a.x:1");
    check(&topology, None, "b:1 a.x:0", Some(&[3, 0]), "b.x:1 a.x:0");
    check(&topology, Some(&[3, 0]), "b:1 a:0", Some(&[3, 0]), "b.x:1 a.x:0");
    check(&boxes(), None, "b1:0 b0:1", Some(&[2, 1]), "b1:0 b0:1");
    let whole = on_hosts(&["a", "b"]);
    check(&whole, None, "b.example.org:0 a:0", Some(&[1, 0]), "b:0 a:0");
}

#[test]
fn slots_on_unknown_nodes_are_the_callers_word() {
    let ring = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
    check(&ring, None, "x:0 y:0 x:5 z:1", None, "x:0 y:0 x:5 z:1");
    check(&boxes(), None, "x:1 x:0 y:0 y:1", None, "x:1 x:0 y:0 y:1");
    check(&boxes(), Some(&[2, 1]), "x:0 y:0", Some(&[2, 1]), "x:0 y:0");
}

#[test]
fn wrong_slots_are_refused_by_rank() {
    let topology = on_hosts(&["a.x", "a.x", "a.y", "b"]);
    let no_node = refused(&topology, None, "b:0 c:0");
    assert!(matches!(&no_node, PlacementError::NoSuchNode { rank: 1, nodes: 3, .. }), "{no_node}");
    let either = refused(&topology, None, "a:0 b:0");
    assert!(matches!(&either, PlacementError::Ambiguous { rank: 0, .. }), "{either}");
    let device = refused(&topology, None, "b:0 a.x:2");
    assert!(matches!(&device, PlacementError::NoSuchDevice { rank: 1, devices: 2, .. }), "{device}");
    let twice = refused(&topology, None, "b:0 a.x:0 b:0");
    assert!(matches!(&twice, PlacementError::Twice { first: 0, rank: 2, .. }), "{twice}");
    let twice = refused(&topology, None, "b:0 a.x:0 b.z:0");
    assert!(matches!(&twice, PlacementError::Twice { first: 0, rank: 2, .. }), "{twice}");
    let other = refused(&topology, Some(&[3, 1]), "b:0 a.x:0");
    assert!(matches!(&other, PlacementError::Disagree { rank: 1, placed: 0, .. }), "{other}");
    assert!(matches!(refused(&topology, Some(&[3, 1, 0]), "b:0 a.x:0"), PlacementError::Count { .. }));
    let name = participants(&topology, None, Some(&[Slot { node: "a b".to_owned(), device: 0 }]));
    assert_eq!(name, Err(PlacementError::Name { rank: 0, bytes: 3 }));
    assert_eq!(refused(&boxes(), None, "x:0 x:1 y:0"), PlacementError::Count { found: 3, expected: 4 });
}

#[test]
fn boxes_and_nodes_must_be_the_same_groups() {
    let torn = refused(&boxes(), None, "x:0 y:0 y:1 x:1");
    assert!(matches!(&torn, PlacementError::Boxes { rank: 1, first: 0, is_one_box: true, .. }), "{torn}");
    let joined = refused(&boxes(), None, "x:0 x:1 x:2 x:3");
    assert!(matches!(&joined, PlacementError::Boxes { rank: 2, first: 0, is_one_box: false, .. }), "{joined}");
    let mixed = refused(&boxes(), None, "b0:0 b0:1 y:0 y:1");
    assert!(matches!(&mixed, PlacementError::NoSuchNode { rank: 2, .. }), "{mixed}");
}

#[test]
fn a_short_name_is_the_same_host() {
    assert!(same_host("gpu1", "gpu1.cluster.example") && same_host("gpu1.cluster.example", "gpu1"));
    assert!(same_host("gpu1", "gpu1"));
    assert!(!same_host("gpu1", "gpu10") && !same_host("gpu1.a", "gpu1.b"));
}

proptest! {
    /// What a topology says of a group, said back to the whole, chooses that group again.
    #[test]
    fn slots_of_a_group_choose_it(order in Just((0..8_u32).collect::<Vec<_>>()).prop_shuffle(), count in 2..=8_usize) {
        let topology = on_hosts(&["a", "b", "a", "c", "b", "a", "c", "c"]);
        let members = ranks(&order[..count]);
        let own = participants(&topology, Some(&members), None).unwrap();
        let slots = own.slots.unwrap();
        let again = participants(&topology, None, Some(&slots)).unwrap();
        prop_assert_eq!(again.slots.as_ref(), Some(&slots));
        let chosen = again.members.unwrap_or_else(|| topology.ranks().collect());
        prop_assert_eq!(&chosen, &members);
        let group = topology.group(&chosen, Transit::Unused).unwrap();
        prop_assert!(group.nodes().iter().zip(&slots).all(|(node, slot)| node.attributes.host.as_ref() == Some(&slot.node)));
    }
}
