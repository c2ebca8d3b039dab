//! Targets mean what the machines, cards and planes of a network are.

use canopy_topology::{Attributes, Capacity, Latency, NodeKind, Topology, TopologyDraft, TopologyLimits, generate};

use proptest::prelude::*;

use super::*;

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn loss(text: &str) -> Loss {
    text.parse().unwrap()
}

fn resolved(topology: &Topology, losses: &[&str]) -> Result<Vec<Fault>, String> {
    let losses: Vec<Loss> = losses.iter().map(|text| loss(text)).collect();
    Directory::new(topology).resolve(&losses).map_err(|error| error.to_string())
}

/// The faults as text: `b0g3`, `b0g3>ib`, `b0g3>ib*1/2`, `ib!ma`.
fn words(topology: &Topology, losses: &[&str]) -> Vec<String> {
    let word = |fault: &Fault| match fault {
        Fault::Node { id } => id.clone(),
        Fault::Link { from, to, both_ways: false } => format!("{from}>{to}"),
        Fault::Degrade { from, to, both_ways: false, numerator, denominator } => {
            format!("{from}>{to}*{numerator}/{denominator}")
        }
        Fault::Feature { switch, multicast, aggregate } => {
            format!("{switch}!{}{}", if *multicast { "m" } else { "" }, if *aggregate { "a" } else { "" })
        }
        other => panic!("{other:?} is not one way"),
    };
    let faults = resolved(topology, losses).unwrap();
    topology.punctured(&faults).unwrap();
    faults.iter().map(word).collect()
}

/// Two hosts of two GPUs each with long names, one leaf switch for each rail, capable, and a link between GPUs of a host.
fn hosts() -> Topology {
    let yaml = "canopy: 1\nnodes:\n\
        - {id: a0, host: node1.cluster}\n- {id: a1, host: node1.cluster}\n\
        - {id: b0, host: node12.cluster}\n- {id: b1, host: node12.cluster}\n\
        - {id: l0, kind: switch, rail: r0, multicast: true, aggregate: true}\n- {id: l1, kind: switch, rail: r1}\n\
        links:\n\
        - {from: a0, to: a1, bandwidth: 6GB/s, both: true}\n- {from: b0, to: b1, bandwidth: 6GB/s, both: true}\n\
        - {from: a0, to: l0, bandwidth: 2GB/s, both: true}\n- {from: a1, to: l1, bandwidth: 2GB/s, both: true}\n\
        - {from: b0, to: l0, bandwidth: 2GB/s, both: true}\n- {from: b1, to: l1, bandwidth: 2GB/s, both: true}\n";
    canopy_topology::read_document(yaml.as_bytes(), None, &TopologyLimits::STANDARD).unwrap().topology
}

#[test]
fn links_go_one_way_or_both() {
    let ring = network("ring:4");
    assert_eq!(words(&ring, &["link:0>1"]), ["0>1"]);
    assert_eq!(words(&ring, &["link:1=0*1/3"]), ["0>1*1/3", "1>0*1/3"]);
    assert_eq!(words(&ring, &["link:0>1*1/1"]), Vec::<String>::new());
    assert_eq!(
        resolved(&ring, &["link:0>1", "link:0=2"]),
        Err("fault 1: the topology has no link 0 -> 2; name two linked nodes, or the other direction".to_owned())
    );
}

#[test]
fn a_card_is_what_leaves_the_machine() {
    let boxes = network("dgx-a100:boxes=2");
    assert_eq!(words(&boxes, &["nic:b0g3*1/2"]), ["b0g3>ib*1/2", "ib>b0g3*1/2"]);
    assert_eq!(words(&boxes, &["nic:b0:3>ib"]), ["b0g3>ib", "ib>b0g3"]);
    assert_eq!(words(&hosts(), &["nic:node1:1"]), ["a1>l1", "l1>a1"]);
    // Without machines all links of a rank are its card's.
    assert_eq!(words(&network("uniring:n=3,d=1"), &["nic:0"]), ["0>1", "2>0"]);
    assert_eq!(words(&network("torus:3x3"), &["nic:00>01"]), ["00>01", "01>00"]);
}

#[test]
fn machines_devices_and_planes_are_nodes() {
    let boxes = network("dgx-a100:boxes=2,gpus=2");
    assert_eq!(words(&boxes, &["host:b1"]), ["b1g0", "b1g1", "b1nv"]);
    assert_eq!(words(&boxes, &["gpu:b1:0", "gpu:b1g0", "node:b1g0"]), ["b1g0"]);
    assert_eq!(words(&boxes, &["switch:ib", "link:b0g0>ib"]), ["ib"]);
    let hosts = hosts();
    assert_eq!(words(&hosts, &["host:node1"]), ["a0", "a1"]);
    assert_eq!(words(&hosts, &["plane:r1"]), ["l1"]);
    assert_eq!(words(&hosts, &["plane:l0"]), ["l0"]);
    assert_eq!(words(&hosts, &["gpu:node12:1*1/2"]), ["b0>b1*1/2", "b1>b0*1/2", "b1>l1*1/2", "l1>b1*1/2"]);
    assert_eq!(words(&hosts, &["feature:l0:multicast", "feature:l0:multicast+aggregate"]), ["l0!ma"]);
}

/// What several targets say about a link overlaps: it does not multiply.
#[test]
fn the_worst_counts_in_any_order() {
    let boxes = network("dgx-a100:boxes=2");
    let mut losses = ["nic:b0g3*1/2", "link:b0g3>ib*1/3", "link:b0g3=ib*3/4", "switch:ib*2/3", "gpu:b1g0"];
    let forward = words(&boxes, &losses);
    assert_eq!(forward[..2], ["b1g0", "b0g0>ib*2/3"]);
    assert!(forward.contains(&"b0g3>ib*1/3".to_owned()) && forward.contains(&"ib>b0g3*1/2".to_owned()));
    losses.reverse();
    assert_eq!(words(&boxes, &losses), forward);
}

/// Twenty thousand words on one hub of a thousand ports cost no more than the worst of them.
#[test]
fn many_losses_of_one_target_are_one() {
    let star = network("dgx-a100:boxes=2,gpus=500");
    let target: Target = "switch:ib".parse().unwrap();
    let slower = |part| Loss { target: target.clone(), remaining: Remaining::new(part, 200_000).unwrap() };
    let mut losses: Vec<Loss> = (1..=20_000).rev().map(|part| slower(part * 2 + 1)).collect();
    losses.push(slower(1));
    let faults = Directory::new(&star).resolve(&losses).unwrap();
    assert_eq!(faults.len(), 2_000);
    assert!(faults.iter().all(|fault| matches!(fault, Fault::Degrade { numerator: 1, denominator: 200_000, .. })));
}

#[test]
fn a_machine_has_parts_with_names() {
    let boxes = network("dgx-a100:boxes=2,gpus=2");
    let parts = |topology: &Topology, machine: &str| -> Vec<String> {
        let directory = Directory::new(topology);
        let parts = directory.parts(machine).unwrap();
        parts.iter().for_each(|part| assert_eq!(directory.canonical(part).as_ref(), Ok(part)));
        parts.iter().map(ToString::to_string).collect()
    };
    assert_eq!(parts(&boxes, "b1"), ["host:b1", "gpu:b1g0", "gpu:b1g1", "switch:b1nv", "nic:b1g0", "nic:b1g1"]);
    assert_eq!(parts(&hosts(), "node1"), ["host:node1.cluster", "gpu:a0", "gpu:a1", "nic:a0", "nic:a1"]);
    assert_eq!(parts(&network("dgx-a100"), "b0").len(), 10);
    assert!(Directory::new(&boxes).parts("b7").is_err());
}

#[test]
fn an_element_has_one_canonical_name() {
    let (boxes, hosts) = (network("dgx-a100:boxes=2"), hosts());
    let name = |topology: &Topology, text: &str| {
        Directory::new(topology).canonical(&text.parse().unwrap()).unwrap().to_string()
    };
    for (text, canonical) in [
        ("gpu:b0:3", "gpu:b0g3"),
        ("node:b0g3", "gpu:b0g3"),
        ("node:ib", "switch:ib"),
        ("nic:b0:3>ib", "nic:b0g3"),
        ("plane:ib", "switch:ib"),
        ("link:ib=b0g3", "link:b0g3=ib"),
        ("host:b0", "host:b0"),
    ] {
        assert_eq!(name(&boxes, text), canonical);
        assert_eq!(name(&boxes, canonical), canonical);
    }
    assert_eq!(
        (name(&hosts, "host:node1"), name(&hosts, "plane:r0")),
        ("host:node1.cluster".to_owned(), "plane:r0".to_owned())
    );
    assert_eq!(name(&network("torus:3x3"), "nic:00>01"), "nic:00>01");
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let (boxes, hosts) = (network("dgx-a100:boxes=2"), hosts());
    for (topology, text, expected) in [
        (&boxes, "gpu:b0g9", "fault 0: the topology has no node `b0g9`; did you mean b0g0 or b0g1 or b0g2?"),
        (&boxes, "gpu:ib", "fault 0: `ib` is a switch; write switch:ib, or the id of a compute node"),
        (&boxes, "switch:b0g3", "fault 0: `b0g3` is not a switch; write gpu:b0g3, or the id of a switch"),
        (&boxes, "gpu:b0:8", "fault 0: b0 has no device 8; it has 8, counted from 0"),
        (&boxes, "host:b7", "fault 0: the topology has no host or box `b7`; did you mean b0 or b1?"),
        (&boxes, "nic:b0g3>leaf", "fault 0: the NIC of `b0g3` has no port to `leaf`; use one such as ib"),
        (&boxes, "plane:rail0", "fault 0: the topology has no plane or switch `rail0`; it has no such elements"),
        (
            &boxes,
            "feature:ib:multicast*1/2",
            "fault 0: 1/2 of a feature of switch ib cannot remain; use 0/1, or degrade the switch",
        ),
        (
            &network("dgx-a100"),
            "nic:b0g3",
            "fault 0: `b0g3` reaches no NIC of its machine in this network; name a NIC, a link or the node",
        ),
        (&hosts, "host:node", "fault 0: the topology has no host or box `node`; use one such as node1.cluster"),
        (&network("ring:3"), "host:b0", "fault 0: the topology has no host or box `b0`; it has no such elements"),
    ] {
        assert_eq!(resolved(topology, &[text]), Err(expected.to_owned()));
        let words = Directory::new(topology).canonical_loss(&loss(text)).unwrap_err().to_string();
        assert_eq!(expected.strip_prefix("fault 0: "), Some(words.as_str()));
    }
    let mut draft = TopologyDraft::default();
    for (id, host) in [("a", "n1.east"), ("b", "n1.west")] {
        let attributes = Attributes { host: Some(host.to_owned()), ..Attributes::default() };
        draft.add_node(id, NodeKind::Compute, attributes);
    }
    draft.add_both("a", "b", Capacity::from_bytes_per_sec(1).unwrap(), Latency::default());
    let twins = draft.build(&TopologyLimits::STANDARD).unwrap();
    assert_eq!(
        resolved(&twins, &["host:n1"]),
        Err("fault 0: `n1` may mean n1.east or n1.west; write the whole name".to_owned())
    );
}

/// Words for elements of [`hosts`] and of boxes, some of which mean nothing on the one or the other.
fn losses() -> impl Strategy<Value = Vec<Loss>> {
    let names = || prop::sample::select(vec!["a0", "a1", "b0", "l0", "l1", "b0g0", "b0g1", "b1g1", "b1nv", "ib", "zz"]);
    let machines = prop::sample::select(vec!["node1", "node1.cluster", "node12", "b0", "b1", "zz"]);
    let device = prop_oneof![
        names().prop_map(|id| Device::Node { id: id.to_owned() }),
        (machines.clone(), 0_u32..3).prop_map(|(host, index)| Device::Slot { host: host.to_owned(), index }),
    ];
    let target = prop_oneof![
        (names(), names(), any::<bool>())
            .prop_filter("a loop", |(from, to, _)| from != to)
            .prop_map(|(from, to, both_ways)| Target::Link { from: from.to_owned(), to: to.to_owned(), both_ways }),
        (device.clone(), prop::option::of(names().prop_map(str::to_owned)))
            .prop_map(|(device, port)| Target::Nic { device, port }),
        device.prop_map(|device| Target::Gpu { device }),
        machines.prop_map(|name| Target::Host { name: name.to_owned() }),
        names().prop_map(|id| Target::Node { id: id.to_owned() }),
        names().prop_map(|id| Target::Switch { id: id.to_owned() }),
        (names(), any::<bool>()).prop_map(|(switch, multicast)| Target::Feature {
            switch: switch.to_owned(),
            multicast,
            aggregate: !multicast
        }),
        prop::sample::select(vec!["r0", "r1", "ib", "l0"]).prop_map(|name| Target::Plane { name: name.to_owned() }),
    ];
    let part = prop_oneof![2 => Just((0, 1)), 1 => Just((1, 3)), 1 => Just((1, 2)), 1 => Just((1, 1))];
    let loss = (target, part)
        .prop_map(|(target, (top, bottom))| Loss { target, remaining: Remaining::new(top, bottom).unwrap() });
    prop::collection::vec(loss, 0..6)
}

proptest! {
    /// A loss means the same under its canonical name, which is that of no other name; what losses add up to depends neither on
    /// their order nor on how often they are said; and the first that means nothing is the one that is refused.
    #[test]
    fn names_and_order_and_repetition_change_nothing(losses in losses(), of_hosts: bool, seed: usize) {
        let topology = if of_hosts { hosts() } else { network("dgx-a100:boxes=2,gpus=2") };
        let directory = Directory::new(&topology);
        let canonical: Vec<_> = losses.iter().map(|loss| directory.canonical_loss(loss)).collect();
        let refused = canonical.iter().position(Result::is_err);
        let resolved = directory.resolve(&losses);
        prop_assert_eq!(resolved.as_ref().err().map(|error| error.position), refused);
        let meant: Vec<Loss> = canonical.into_iter().flatten().collect();
        for loss in &meant {
            prop_assert_eq!(directory.canonical_loss(loss), Ok(loss.clone()));
        }
        let all = directory.resolve(&meant).unwrap();
        prop_assert!(refused.is_some() || resolved == Ok(all.clone()));
        let mut again: Vec<Loss> = meant.iter().chain(&meant).cloned().collect();
        let by = seed % again.len().max(1);
        again.rotate_left(by);
        again.reverse();
        prop_assert_eq!(directory.resolve(&again).unwrap(), all.clone());
        prop_assert!(!matches!(topology.puncture(&all), Err(error) if error.position().is_some()));
    }
}
