//! Plans for what faults leave of a network.

use std::collections::BTreeSet;

use canopy_plan::Format;

use super::*;

fn with_faults(order: &Order, faults: &[&str]) -> Order {
    let faults: BTreeSet<_> = faults.iter().map(|text| text.parse().unwrap()).collect();
    Order { faults: faults.into_iter().collect(), ..order.clone() }
}

fn boxes(kind: CollectiveKind) -> Order {
    order(expression("dgx-a100:boxes=2"), kind, vec![Format::Json.usual()])
}

fn prepared(order: &Order) -> Result<Prepared, PlanFailure> {
    Pipeline::new(TopologyLimits::STANDARD).prepare(order, &Never)
}

#[test]
fn a_plan_for_what_is_left_is_that_of_the_network_without_it() {
    let lost = with_faults(&boxes(CollectiveKind::Allgather), &["gpu:b0g3", "nic:b1g2*1/2"]);
    let plan = produce(&lost, &Witness::default()).unwrap().plan.plan;
    let same = "dgx-a100:boxes=2,nodes-down=b0g3,degrade=b1g2-ib*1/2";
    let known = order(expression(same), CollectiveKind::Allgather, vec![Format::Json.usual()]);
    let known = produce(&known, &Witness::default()).unwrap().plan.plan;
    let rates = |plan: &v1::Plan| plan.quality.clone().map(|quality| (quality.bound, quality.achieved));
    assert_eq!(rates(&plan), rates(&known));
    assert_eq!(plan.topology.as_ref().map(|topology| topology.ranks), Some(15));
    // Devices keep the numbers that they have in their machines.
    let slots = plan.rank_map.unwrap().slots;
    let slots: Vec<_> = slots.iter().map(|slot| (slot.node.as_str(), slot.device, slot.count)).collect();
    assert_eq!(slots, [("b0", 0, Some(3)), ("b0", 4, Some(4)), ("b1", 0, Some(8))]);
}

#[test]
fn whoever_names_it_however_gets_the_same_plan() {
    let whole = boxes(CollectiveKind::Allgather);
    let key = |faults: &[&str]| prepared(&with_faults(&whole, faults)).unwrap().key;
    let by_id = key(&["gpu:b0g3", "link:b1g0>ib*1/2"]);
    assert_eq!(by_id, key(&["link:b1g0>ib*2/4", "gpu:b0:3", "node:b0g3"]));
    assert_ne!(by_id, key(&["gpu:b0g3"]));
    assert_eq!(key(&[]), prepared(&whole).unwrap().key);
    let puncture = prepared(&with_faults(&whole, &["gpu:b0:3"])).unwrap().puncture.unwrap();
    assert!(puncture.base.starts_with("topologies/"));
    let survivors: Vec<u32> = (0..16).filter(|&rank| rank != 3).collect();
    assert_eq!((puncture.faults.len(), &puncture.survivor_numbers()), (1, &survivors));
}

#[test]
fn what_counts_in_ranks_is_said_of_the_sound_network() {
    let broadcast = Order { root: Some(5), ..boxes(CollectiveKind::Broadcast) };
    let root = |faults: &[&str]| prepared(&with_faults(&broadcast, faults)).map(|prepared| prepared.collective.root());
    assert_eq!(root(&["gpu:b0g3", "gpu:b0g6"]).unwrap(), Some(Rank::new(4)));
    assert!(matches!(root(&["gpu:b0g5"]), Err(PlanFailure::Planning(PlanError::RootLost { root: 5 }))));
    let unstated = Order { root: None, ..broadcast.clone() };
    let lost = prepared(&with_faults(&unstated, &["gpu:b0g0"]));
    assert!(matches!(lost, Err(PlanFailure::Planning(PlanError::RootLost { root: 0 }))));

    let uneven = Order { shares: (1..=16).collect(), ..boxes(CollectiveKind::Allgather) };
    let left = prepared(&with_faults(&uneven, &["host:b1", "gpu:b0g0"])).unwrap();
    assert_eq!(left.shares, Shares::Weighted((2..=8).collect()));

    let ring = order(expression("ring:4"), CollectiveKind::AllToAll, vec![Format::Json.usual()]);
    let blocks = Order { shares: (1..=16).collect(), ..ring };
    let left = prepared(&with_faults(&blocks, &["gpu:1"])).unwrap();
    assert_eq!(left.shares.weights(), [1, 3, 4, 9, 11, 12, 13, 15, 16]);
}

#[test]
fn a_group_is_not_concerned_by_what_others_lose() {
    let group = Group { ranks: vec![9, 8, 12], transit: Transit::Unused };
    let group = Order { group: Some(group), ..boxes(CollectiveKind::Allgather) };
    let key = |faults: &[&str]| prepared(&with_faults(&group, faults)).unwrap().key;
    assert_eq!(key(&["gpu:b0g3", "nic:b0g1"]), key(&[]));
    let smaller = prepared(&with_faults(&group, &["gpu:b1g0"])).unwrap();
    assert_eq!(smaller.puncture.unwrap().survivor_numbers(), [0, 2]);
    let alone = prepared(&with_faults(&group, &["gpu:b1g0", "gpu:b1g1"]));
    assert!(matches!(
        alone,
        Err(PlanFailure::Planning(PlanError::Fault(canopy_topology::FaultError::TooFewRanks { left: 1 })))
    ));
}

#[test]
fn what_is_not_there_is_refused_by_its_place() {
    let unknown = prepared(&with_faults(&boxes(CollectiveKind::Allgather), &["gpu:b0g0", "gpu:b7g0"])).unwrap_err();
    let PlanFailure::Planning(PlanError::FaultMeaning(error)) = &unknown else { panic!("{unknown}") };
    assert_eq!(error.position, 1);
    let apart = with_faults(
        &order(expression("ring:4"), CollectiveKind::Allgather, vec![Format::Json.usual()]),
        &["gpu:0", "link:2=3"],
    );
    let apart = produce(&apart, &Witness::default()).unwrap_err();
    let PlanFailure::Planning(PlanError::Apart { failure, .. }) = &apart else { panic!("{apart}") };
    assert!(matches!(**failure, PlanError::Bound(BoundError::Disconnected { .. })), "{apart}");
}
