//! Machines and fabrics give the networks that one would draw by hand.

use canopy_topology::{Capacity, Topology, TopologyLimits};

use super::*;
use crate::content::Content;
use crate::fabric::{Attachment, FabricSwitch, PortName};
use crate::read::read_content;

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

/// Four GPUs at an NVSwitch, two behind each PCI switch with a NIC of 50 GB/s.
const DUMP: &str = include_str!("../../tests/data/four-gpus.xml");
const CONF: &str =
    "SwitchName=leaf1 Nodes=gpu[01-04]\nSwitchName=leaf2 Nodes=gpu[05-08]\nSwitchName=spine Switches=leaf[1-2]\n";

fn machine() -> Machine {
    match read_content(DUMP.as_bytes(), &LIMITS, &|| false).unwrap().1 {
        Content::Machine(machine) => machine,
        other => panic!("{other:?}"),
    }
}

fn fabric(text: &str) -> Fabric {
    match read_content(text.as_bytes(), &LIMITS, &|| false).unwrap().1 {
        Content::Fabric(fabric) => fabric,
        other => panic!("{other:?}"),
    }
}

fn cluster(nodes: &[&str], rates: &str) -> (Cluster, Vec<String>) {
    let cluster = Cluster {
        machines: vec![MachineOf { machine: Some(machine()), hosts: None }],
        fabric: fabric(CONF),
        rates: rates.parse().unwrap(),
    };
    (cluster, nodes.iter().map(|node| (*node).to_owned()).collect())
}

fn composed((cluster, nodes): &(Cluster, Vec<String>)) -> (Topology, Report) {
    compose(cluster, nodes, &LIMITS, &|| false).unwrap()
}

/// GB/s from one node to another, in tenths; 0 without a link.
fn rate(topology: &Topology, from: &str, to: &str) -> u64 {
    let node = |id: &str| topology.find_node(id).unwrap_or_else(|| panic!("no {id}"));
    let (from, to) = (node(from), node(to));
    let links = topology.links().iter().filter(|link| (link.from, link.to) == (from, to));
    links.map(|link| link.capacity.bytes_per_sec() / 100_000_000).sum()
}

/// Two machines on one leaf, and one on the other. By hand: 18 NVLinks of 20.6 GB/s; PCIe 5 x16 is 48; a NIC of 400 Gb/s
/// is 50. The leaf takes in 4 machines x 2 NICs x 50, all of which leave it upwards.
#[test]
fn a_dump_and_slurm_give_the_cluster() {
    let (topology, report) = composed(&cluster(&["gpu02", "gpu01", "gpu05"], ""));
    assert_eq!(topology.rank_count(), 12);
    let ids: Vec<&str> = topology.nodes().iter().take(5).map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["gpu02.gpu0", "gpu02.gpu1", "gpu02.gpu2", "gpu02.gpu3", "gpu01.gpu0"]);
    assert_eq!(topology.nodes()[4].attributes.host.as_deref(), Some("gpu01"));
    for (from, to, tenths) in [
        ("gpu01.gpu0", "gpu01.nvs", 3_708),
        ("gpu01.gpu0", "gpu01.pci-0000.10.00.0", 480),
        ("gpu01.pci-0000.10.00.0", "gpu01.nic-0000.13.00.0", 480),
        ("gpu01.nic-0000.13.00.0", "leaf1", 500),
        ("leaf2", "gpu05.nic-0000.23.00.0", 500),
        ("leaf1", "spine", 4_000),
        ("spine", "leaf2", 4_000),
        ("gpu01.nic-0000.13.00.0", "leaf2", 0),
    ] {
        assert_eq!(rate(&topology, from, to), tenths, "{from} -> {to}");
    }
    assert_eq!((topology.first_unbalanced(), topology.first_unreachable()), (None, None));
    assert!(report.understood.iter().any(|line| line.starts_with("3 of 8 machines of the fabric, 12 ranks, 6 ports")));
    assert!(report.assumed.iter().any(|line| line.contains("`leaf-spine=800Gb/s`")), "{report:?}");
}

#[test]
fn stated_rates_win() {
    let (topology, report) = composed(&cluster(&["gpu01", "gpu05"], "nic=200Gb/s,leaf-spine=400Gb/s"));
    assert_eq!(rate(&topology, "gpu01.nic-0000.13.00.0", "leaf1"), 250);
    assert_eq!(rate(&topology, "leaf1", "spine"), 500);
    assert!(!report.assumed.iter().any(|line| line.contains("leaf")), "{report:?}");
    // 4 machines x 2 NICs x 50 GB/s, two thirds of it.
    let (topology, _) = composed(&cluster(&["gpu01", "gpu05"], "oversub=3/2"));
    assert_eq!(rate(&topology, "leaf1", "spine"), 2_666);
}

/// A spine that joins one leaf only is of no use.
#[test]
fn only_what_joins_the_machines_is_there() {
    let (topology, report) = composed(&cluster(&["gpu01", "gpu02"], ""));
    assert!(topology.find_node("spine").is_none() && topology.find_node("leaf2").is_none());
    assert!(topology.find_node("leaf1").is_some() && report.assumed.is_empty(), "{report:?}");
}

#[test]
fn machines_may_be_of_several_kinds_or_of_none_known() {
    let mut mixed = cluster(&["gpu01", "gpu05"], "nic=400Gb/s");
    mixed.0.machines[0].hosts = Some(vec!["gpu01".to_owned()]);
    mixed.0.machines.push(MachineOf { machine: None, hosts: None });
    let (topology, _) = composed(&mixed);
    assert_eq!((topology.rank_count(), topology.nodes()[4].id.as_str()), (5, "gpu05"));
    assert_eq!(rate(&topology, "gpu05", "leaf2"), 500);
}

/// Ports that the fabric names are where it says; two ports with their names swapped are found by their GUIDs.
#[test]
fn named_ports_go_to_their_switches() {
    let mut rails = Fabric::default();
    for rail in ["rail0", "rail1"] {
        rails.switches.push(FabricSwitch { id: rail.to_owned(), ..FabricSwitch::default() });
    }
    let slow = Capacity::from_bytes_per_sec(25_000_000_000);
    let attachment =
        |switch, device: &str, guid, rate| Attachment { switch, port: PortName::Device(device.to_owned(), guid), rate };
    for host in ["a", "b"] {
        let attachments = vec![
            attachment(1, "mlx5_1", None, None),
            attachment(0, "ib0", Some(1), slow),
            attachment(0, "mlx5_9", None, None),
        ];
        rails.hosts.push(FabricHost { name: host.to_owned(), attachments });
    }
    let nodes = vec!["a".to_owned(), "b".to_owned()];
    let machines = vec![MachineOf { machine: Some(machine()), hosts: None }];
    let (topology, report) = composed(&(Cluster { machines, fabric: rails, rates: Rates::default() }, nodes));
    assert_eq!(rate(&topology, "a.nic-0000.23.00.0", "rail1"), 500);
    assert_eq!(rate(&topology, "b.nic-0000.13.00.0", "rail0"), 250);
    assert!(report.left_out.iter().any(|line| line.starts_with("2 cables") && line.contains("a.mlx5_9")), "{report:?}");
}

/// A machine of which nothing is known has every port that the fabric names.
#[test]
fn unknown_machines_have_the_ports_that_the_fabric_names() {
    let mut rails = Fabric::default();
    rails.switches.extend(["a", "b"].map(|id| FabricSwitch { id: id.to_owned(), ..FabricSwitch::default() }));
    let rate = Capacity::from_bytes_per_sec(50_000_000_000);
    let port = |switch, device: &str| Attachment { switch, port: PortName::Device(device.to_owned(), Some(7)), rate };
    for host in ["n1", "n2"] {
        rails.hosts.push(FabricHost { name: host.to_owned(), attachments: vec![port(0, "mlx5_0"), port(1, "mlx5_1")] });
    }
    let machines = vec![MachineOf { machine: None, hosts: None }];
    let nodes = vec!["n1".to_owned(), "n2".to_owned()];
    let (topology, _) = composed(&(Cluster { machines, fabric: rails, rates: Rates::default() }, nodes));
    assert_eq!((topology.rank_count(), topology.links().len()), (2, 8));
}

#[test]
fn layouts_stand_for_fabrics() {
    let replicated = |layout: &str, boxes: usize| {
        let nodes = numbered(boxes).unwrap();
        let machine = machine();
        let fabric = layout.parse::<Layout>().unwrap().fabric(machine.ports.len(), nodes.clone()).unwrap();
        let machines = vec![MachineOf { machine: Some(machine), hosts: None }];
        composed(&(Cluster { machines, fabric, rates: Rates::default() }, nodes)).0
    };
    let star = replicated("star", 3);
    assert_eq!((star.rank_count(), rate(&star, "node3.nic-0000.13.00.0", "spine")), (12, 500));
    let rails = replicated("rail", 2);
    assert_eq!(rate(&rails, "node1.nic-0000.23.00.0", "rail1"), 500);
    assert!(rails.find_node("spine").is_none());
    assert_eq!(rate(&replicated("rail:spine", 2), "rail1", "spine"), 1_000);
    // Two machines on a leaf, 4 x 50 GB/s, over two spines.
    let tree = replicated("leaf-spine:hosts=2,spines=2", 4);
    assert_eq!((rate(&tree, "leaf1", "spine0"), rate(&tree, "node3.nic-0000.13.00.0", "leaf1")), (1_000, 500));
}

#[test]
fn refusals_name_the_machine_and_the_remedy() {
    let refusal = |(cluster, nodes): (Cluster, Vec<String>)| {
        compose(&cluster, &nodes, &LIMITS, &|| false).unwrap_err().to_string()
    };
    assert!(refusal(cluster(&[], "")).contains("the list of nodes is empty"));
    assert!(refusal(cluster(&["gpu99"], "")).contains("node `gpu99` is not in the cluster, which has gpu01 gpu02"));
    assert!(refusal(cluster(&["gpu01", "gpu01"], "")).contains("twice"));
    let mut none = cluster(&["gpu01", "gpu02"], "");
    none.0.machines[0].hosts = Some(vec!["gpu01".to_owned()]);
    assert!(refusal(none.clone()).contains("node `gpu02` is of no kind of machine"));
    none.0.machines.push(MachineOf { machine: None, hosts: Some(vec!["gpu01".to_owned()]) });
    assert!(refusal(none).contains("node `gpu01` is of two kinds"));
    let mut bare = cluster(&["gpu01", "gpu02"], "");
    bare.0.machines[0].machine = None;
    assert!(refusal(bare).contains("the rate of port rank of node `gpu01` is unknown; state it with `nic=400Gb/s`"));
    let mut unfit = cluster(&["gpu01"], "").0;
    assert_eq!(unfit.check().unwrap().0, 32);
    unfit.machines.insert(0, MachineOf { machine: None, hosts: Some(vec!["gpu08".to_owned()]) });
    assert!(unfit.check().unwrap_err().to_string().contains("node `gpu08` is unknown"));
    unfit.machines.remove(1);
    unfit.rates.nic = "50GB/s".parse().ok();
    let (ranks, report) = unfit.check().unwrap();
    assert!(ranks == 1 && report.left_out[0].starts_with("7 machines of no kind: gpu01 gpu02"), "{report:?}");
    let small = TopologyLimits { nodes_max: 20, ..LIMITS };
    let (three, nodes) = cluster(&["gpu01", "gpu02", "gpu03"], "");
    let error = compose(&three, &nodes, &small, &|| false).unwrap_err().to_string();
    assert!(error.contains("limit of 20"), "{error}");
    for (text, words) in [
        ("nic", "`nic` has no `=`"),
        ("nik=1GB/s", "did you mean `nic`?"),
        ("nic=1GB/s,nic=2GB/s", "`nic` is given twice"),
        ("oversub=1/2", "a ratio of at least 1"),
        ("leaf-core=1GB/s", "is not a rate"),
    ] {
        let error = text.parse::<Rates>().unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    for layout in ["", "rail:x", "leaf-spine", "leaf-spine:hosts=0", "mesh"] {
        assert!(layout.parse::<Layout>().is_err(), "{layout}");
    }
    assert!(numbered(70_000).is_err() && numbered(0).is_err() && Layout::Star.fabric(1, Vec::new()).is_err());
}
