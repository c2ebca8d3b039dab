//! Faults take away what they name and nothing else.

use super::*;
use crate::draft::TopologyDraft;
use crate::limits::TopologyLimits;
use crate::units::Latency;

/// Ring a-b-c-d with 6 GB/s both ways, a second latency between a and b, and switch s at a and c.
fn network() -> Topology {
    let mut draft = TopologyDraft::default();
    for id in ["a", "b", "c", "d"] {
        draft.add_compute(id);
    }
    draft.add_switch("s");
    let rate = Capacity::from_bytes_per_sec(6_000_000_000).unwrap();
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "s"), ("s", "c")] {
        draft.add_both(from, to, rate, Latency::default());
    }
    draft.add_both("a", "b", rate, Latency::from_nanos(5));
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

fn link(from: &str, to: &str, both_ways: bool) -> Fault {
    Fault::Link { from: from.to_owned(), to: to.to_owned(), both_ways }
}

fn degrade(from: &str, to: &str, both_ways: bool, numerator: u64, denominator: u64) -> Fault {
    Fault::Degrade { from: from.to_owned(), to: to.to_owned(), both_ways, numerator, denominator }
}

fn node(id: &str) -> Fault {
    Fault::Node { id: id.to_owned() }
}

/// Directed links as (from, to, GB/s), parallels of different latency listed apart.
fn links(topology: &Topology) -> Vec<(&str, &str, u64)> {
    let id = |node| topology.node(node).id.as_str();
    topology
        .links()
        .iter()
        .map(|link| (id(link.from), id(link.to), link.capacity.bytes_per_sec() / 1_000_000_000))
        .collect()
}

#[test]
fn no_fault_changes_nothing() {
    assert_eq!(network().punctured(&[]), Ok(network()));
}

#[test]
fn a_link_goes_one_way_or_both_with_all_its_parallels() {
    let before = network();
    let one_way = before.punctured(&[link("a", "b", false)]).unwrap();
    assert_eq!(before.links().len() - one_way.links().len(), 2);
    assert!(links(&one_way).iter().all(|(from, to, _)| (*from, *to) != ("a", "b")));
    let both_ways = before.punctured(&[link("a", "b", true)]).unwrap();
    assert_eq!(before.links().len() - both_ways.links().len(), 4);
}

#[test]
fn a_node_goes_with_its_links_and_ranks_close_up() {
    let left = network().punctured(&[node("b")]).unwrap();
    let ids: Vec<&str> = left.nodes().iter().map(|node| node.id.as_str()).collect();
    assert_eq!((ids, left.rank_count()), (vec!["a", "c", "d", "s"], 3));
    assert_eq!(left.links().len(), 8);
    assert_eq!(network().punctured(&[node("s")]).unwrap().rank_count(), 4);
}

#[test]
fn degradations_multiply_and_removal_wins_in_any_order() {
    let half_of_third = [degrade("a", "b", false, 1, 2), degrade("a", "b", true, 1, 3)];
    let slow = network().punctured(&half_of_third).unwrap();
    let rates = |from, to| -> Vec<u64> {
        links(&slow).into_iter().filter(|link| (link.0, link.1) == (from, to)).map(|link| link.2).collect()
    };
    assert_eq!((rates("a", "b"), rates("b", "a"), rates("b", "c")), (vec![1, 1], vec![2, 2], vec![6]));

    let faults = [link("c", "d", true), degrade("c", "d", false, 1, 2), node("d"), link("d", "a", false)];
    let mut backwards = faults.clone();
    backwards.reverse();
    assert_eq!(network().punctured(&faults), network().punctured(&[node("d")]));
    assert_eq!(network().punctured(&faults), network().punctured(&backwards));
}

#[test]
fn what_does_not_exist_is_named() {
    let refusal = |fault: Fault| network().punctured(&[node("s"), fault]).unwrap_err();
    let unknown = refusal(node("x"));
    assert_eq!(unknown, FaultError::UnknownNode { position: 1, id: "x".to_owned() });
    assert_eq!(unknown.to_string(), "the topology has no node `x`; name one of its ids");
    assert_eq!(refusal(link("a", "y", true)), FaultError::UnknownNode { position: 1, id: "y".to_owned() });
    let (from, to) = ("a".to_owned(), "c".to_owned());
    assert_eq!(refusal(link("a", "c", false)), FaultError::UnknownLink { position: 1, from, to });
    assert_eq!(refusal(link("a", "a", false)).position(), Some(1));
}

#[test]
fn fractions_are_rounded_down_once_and_nothing_left_is_gone() {
    for (numerator, denominator) in [(0, 1), (1, 0), (0, 0), (3, 2)] {
        let error = network().punctured(&[degrade("a", "b", false, numerator, denominator)]).unwrap_err();
        assert_eq!(error, FaultError::Fraction { position: 0, numerator, denominator });
    }
    let left = |faults: &[Fault]| {
        let left = network().punctured(faults).unwrap();
        let find = |id| left.find_node(id).unwrap();
        let link = left.links().iter().find(|link| (link.from, link.to) == (find("b"), find("c")));
        link.map(|link| link.capacity.bytes_per_sec())
    };
    assert_eq!(left(&[degrade("b", "c", false, 1, 7)]), Some(857_142_857));
    // Of 6 GB/s 5/7 of 7/10 are three; rounded twice they would be less.
    assert_eq!(left(&[degrade("b", "c", false, 5, 7), degrade("b", "c", false, 7, 10)]), Some(3_000_000_000));
    assert_eq!(left(&[degrade("b", "c", false, 1, 6_000_000_000)]), Some(1));
    assert_eq!(left(&[degrade("b", "c", false, 1, 6_000_000_001)]), None);
    assert_eq!(left(&vec![degrade("b", "c", false, 1, u64::MAX); 3]), None);
    // Hundreds of almost nothing: the product is exact however long it gets.
    assert_eq!(left(&vec![degrade("b", "c", false, u64::MAX - 1, u64::MAX); 300]), Some(5_999_999_999));
}

#[test]
fn a_switch_loses_features_and_goes_on_forwarding() {
    let feature = |multicast, aggregate| Fault::Feature { switch: "s".to_owned(), multicast, aggregate };
    let capable = |multicast, aggregate| {
        let mut capable = network();
        let last = capable.nodes_mut().last_mut().unwrap();
        Arc::make_mut(last).kind = NodeKind::Switch { multicast, aggregate };
        capable
    };
    let before = capable(true, true);
    assert_eq!(before.punctured(&[feature(true, false)]), Ok(capable(false, true)));
    assert_eq!(before.punctured(&[feature(true, false), feature(false, true)]), Ok(network()));
    assert_eq!(before.punctured(&[feature(false, false)]), Ok(before.clone()));
    assert_eq!(network().punctured(&[feature(true, true)]), Ok(network()));
    assert_eq!(before.punctured(&[feature(true, true), node("s")]), before.punctured(&[node("s")]));
    let error = before.punctured(&[Fault::Feature { switch: "a".to_owned(), multicast: true, aggregate: true }]);
    assert_eq!(error, Err(FaultError::NotASwitch { position: 0, id: "a".to_owned() }));
}

#[test]
fn survivors_keep_their_order() {
    let puncture = network().puncture(&[node("b"), node("s")]).unwrap();
    assert_eq!(puncture.survivors, [0, 2, 3].map(Rank::new));
    for (new, old) in puncture.topology.ranks().zip(&puncture.survivors) {
        assert_eq!(puncture.topology.node(new.node()).id, network().node(old.node()).id);
    }
}

#[test]
fn two_ranks_must_remain() {
    let error = network().punctured(&[node("b"), node("c"), node("d")]).unwrap_err();
    assert_eq!(error, FaultError::TooFewRanks { left: 1 });
    assert!(network().punctured(&[node("c"), node("d")]).is_ok());
}

#[test]
fn a_network_may_fall_apart() {
    let apart = network().punctured(&[link("a", "d", true), link("c", "d", true)]).unwrap();
    assert!(apart.first_unreachable().is_some());
}
