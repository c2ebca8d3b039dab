//! Ranks behind cards whose hosts limit what their links carry together.

use canopy_topology::{Attributes, NodeKind, Rate};

use super::*;
use crate::bound::bound;

/// Capacity in units of 5 GB/s.
fn rate(units: u64) -> Capacity {
    Capacity::from_bytes_per_sec(units * 5_000_000_000).unwrap()
}

/// A network with each rank behind cards of these rates.
fn behind_hosts(topology: &Topology, send: &[u64], receive: &[u64]) -> Topology {
    let mut draft = TopologyDraft::default();
    for (rank, (&send, &receive)) in send.iter().zip(receive).enumerate() {
        let (rank, exit, entry) = (format!("n{rank}"), format!("n{rank}.out"), format!("n{rank}.in"));
        draft.add_compute(rank.as_str());
        for (from, to, units) in [(&rank, &exit, send), (&entry, &rank, receive)] {
            let card = if from == &rank { to } else { from };
            draft.add_node(card.as_str(), NodeKind::PLAIN_SWITCH, Attributes::default());
            draft.add_link(from.as_str(), to.as_str(), rate(units), Latency::default());
        }
    }
    for link in topology.links() {
        let (from, to) = (format!("n{}.out", link.from.number()), format!("n{}.in", link.to.number()));
        draft.add_link(from, to, link.capacity, link.latency);
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// What the checker makes of a plan.
fn cost(topology: &Topology, kind: CollectiveKind, shares: &Shares) -> StepCost {
    let collective = collective(topology, kind, 0);
    judged(topology, &planned(topology, collective, shares, TreeLimits::NONE, Symmetry::Used).unwrap())
}

/// The plan for a network without hosts, over the cards of the one with them.
fn carried_over(plain: &Topology, hosted: &Topology, kind: CollectiveKind, shares: &Shares) -> StepCost {
    let collective = collective(plain, kind, 0);
    let mut schedule = planned(plain, collective, shares, TreeLimits::NONE, Symmetry::Used).unwrap();
    let wires = Wires::of(hosted).unwrap();
    let Shape::Steps(steps) = &mut schedule.shape else { panic!("it has steps") };
    let routes = wires.routes();
    let position = |ends| wires.all.iter().position(|wire| (wire.from, wire.to) == ends).unwrap();
    let mut moved = canopy_schedule::RouteTable::default();
    for link in plain.links() {
        let wire = u32::try_from(position((link.from.number(), link.to.number()))).unwrap();
        moved.push(routes.get(canopy_schedule::RouteIndex::new(wire)).unwrap());
    }
    steps.routes = moved;
    judged(hosted, &schedule)
}

#[test]
fn a_card_may_be_one_switch_for_both_directions_and_forward() {
    let allgather = |expression: &str| {
        let topology = generated(expression);
        let cost = cost(&topology, CollectiveKind::Allgather, &Shares::Equal);
        (cost.count, cost.algbw)
    };
    let forwarding = allgather("torus:3x3,host=75GB/s,bw=25GB/s,nicforward=true");
    assert_eq!(forwarding, allgather("torus:3x3,host=75GB/s,bw=25GB/s"));
    assert_eq!(forwarding, (2, Rate::new(75_000_000_000_u64 * 9, 8_u32).unwrap()));
    // A ring of leaf switches with a rank each: links of 1 between them, of 3 to the ranks, which hosts never fill.
    let mut draft = TopologyDraft::default();
    for rank in 0..4 {
        draft.add_compute(format!("n{rank}"));
        draft.add_node(format!("leaf{rank}"), NodeKind::PLAIN_SWITCH, Attributes::default());
        for (from, to, units) in [("n", "leaf", 3), ("leaf", "n", 3)] {
            draft.add_link(format!("{from}{rank}"), format!("{to}{rank}"), rate(units), Latency::default());
        }
        for next in [(rank + 1) % 4, (rank + 3) % 4] {
            draft.add_link(format!("leaf{rank}"), format!("leaf{next}"), rate(1), Latency::default());
        }
    }
    let found = cost(&draft.build(&TopologyLimits::STANDARD).unwrap(), CollectiveKind::Allgather, &Shares::Equal);
    // 1 and 1/2 of a share over links of 5 GB/s.
    assert_eq!((found.count, found.algbw), (2, Rate::new(40_000_000_000_u64, 3_u32).unwrap()));
}

#[test]
fn cards_are_told_from_switches() {
    for expression in ["torus:3x3", "ring:4,host=20GB/s", "torus:3x3,host=75GB/s,nicforward=true,degrade=00>01*1/2"] {
        assert!(has_only_cards(&generated(expression)), "{expression}");
    }
    for expression in ["dgx-a100:boxes=1", "rail:boxes=2,gpus=2", "dgx-a100:boxes=2,gpus=2,host=20GB/s"] {
        assert!(!has_only_cards(&generated(expression)), "{expression}");
    }
}

#[test]
fn a_rank_with_a_card_and_other_links_is_refused() {
    let mut draft = TopologyDraft::default();
    (0..3).for_each(|rank| draft.add_compute(format!("n{rank}")));
    draft.add_node("card", NodeKind::PLAIN_SWITCH, Attributes::default());
    for (from, to) in [("n0", "card"), ("card", "n1"), ("n0", "n2"), ("n1", "n2"), ("n2", "n0"), ("n2", "n1")] {
        draft.add_link(from, to, rate(1), Latency::default());
    }
    let refused = |draft: &TopologyDraft| {
        let topology = draft.clone().build(&TopologyLimits::STANDARD).unwrap();
        let allgather = collective(&topology, CollectiveKind::Allgather, 0);
        planned(&topology, allgather, &Shares::Equal, TreeLimits::NONE, Symmetry::Used).unwrap_err().to_string()
    };
    // Between two ranks it is a switch.
    let direct = "bfb needs direct links between ranks, and";
    assert_eq!(refused(&draft), format!("{direct} card is a switch; use forest, direct or ring"));
    draft.links.retain(|link| link.from != "card");
    draft.add_node("card1", NodeKind::PLAIN_SWITCH, Attributes::default());
    draft.add_link("card", "card1", rate(1), Latency::default());
    draft.add_link("card1", "n1", rate(1), Latency::default());
    let what = "has several cards, or a card and other links";
    assert_eq!(refused(&draft), format!("{direct} n0 {what}; use forest, direct or ring"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With hosts of any rates, plans keep to the bound and the fewest steps, and are no slower than the plan that
    /// knows nothing of hosts; the names of ranks have no say.
    #[test]
    fn hosts_are_taken_into_account(
        plain in networks(),
        (send, receive) in (prop::collection::vec(1..=6_u64, 12), prop::collection::vec(1..=6_u64, 12)),
        weights in prop::collection::vec(0..3_u64, 12),
        turn in 0..12_u32,
    ) {
        let ranks = plain.rank_count();
        let (send, receive) = (&send[..ranks as usize], &receive[..ranks as usize]);
        let hosted = behind_hosts(&plain, send, receive);
        let turned = {
            let move_to = |rank: u32| (rank + turn) % ranks;
            let links = plain.links().iter().map(|link| {
                (move_to(link.from.number()), move_to(link.to.number()), link.capacity)
            });
            let rates = |rates: &[u64]| -> Vec<u64> {
                (0..ranks).map(|rank| rates[((rank + ranks - turn % ranks) % ranks) as usize]).collect()
            };
            behind_hosts(&weighted(ranks, links), &rates(send), &rates(receive))
        };
        let mut weights = weights[..ranks as usize].to_vec();
        weights[0] += 1;
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce] {
            let collective = collective(&plain, kind, 0);
            for shares in [Shares::Equal, Shares::in_proportion(collective, ranks, weights.clone()).unwrap()] {
                let found = cost(&hosted, kind, &shares);
                let bound = bound(&hosted, collective, &shares, &Never).unwrap();
                prop_assert!(found.algbw <= bound.upper);
                prop_assert!(found.algbw >= carried_over(&plain, &hosted, kind, &shares).algbw);
                if kind != CollectiveKind::Allreduce {
                    prop_assert_eq!(Some(found.count), depth_bound::depth_bound(&plain, collective, &shares));
                }
            }
            let equal = cost(&hosted, kind, &Shares::Equal);
            let moved = cost(&turned, kind, &Shares::Equal);
            prop_assert_eq!((equal.count, equal.algbw), (moved.count, moved.algbw));
        }
    }
}
