//! Rates of real files against tables computed by hand from what the files say.
//!
//! NCCL and RCCL count a lane of PCIe as 12 Gb/s at 16 GT/s, 24 at 32 and 6 at 8: 16 lanes are 24, 48 and 12 GB/s. A link
//! of xGMI has 24 GB/s up to MI100 (gcn 906, 908), 36 on MI200 (910) and 48 on MI300 (940).

use std::collections::BTreeMap;

use canopy_import::{Content, MachineOf, Rates, compose, read, read_content};
use canopy_prerequisites::samples;
use canopy_topology::{Topology, TopologyLimits};

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;
const GB: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;

/// Bytes per second of every pair that is joined, the lesser id first. Both directions are equal.
fn table(topology: &Topology) -> BTreeMap<(String, String), u64> {
    let mut table = BTreeMap::new();
    let id = |node: canopy_topology::NodeIndex| topology.node(node).id.clone();
    for link in topology.links() {
        let back = topology.links().iter().find(|back| (back.from, back.to) == (link.to, link.from));
        assert_eq!(back.map(|back| back.capacity), Some(link.capacity), "{} to {}", id(link.from), id(link.to));
        let (a, b) = (id(link.from).min(id(link.to)), id(link.from).max(id(link.to)));
        table.insert((a, b), link.capacity.bytes_per_sec());
    }
    table
}

fn expected<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str, u64)>) -> BTreeMap<(String, String), u64> {
    rows.into_iter().map(|(a, b, rate)| ((a.min(b).to_owned(), a.max(b).to_owned()), rate)).collect()
}

fn check<'a>(sample: &str, rows: impl IntoIterator<Item = (&'a str, &'a str, u64)>) {
    let Some(file) = samples(sample) else { return };
    let topology =
        read(&std::fs::read(file).expect("samples can be read"), None, &LIMITS).expect("it is a network").topology;
    assert_eq!(table(&topology), expected(rows), "{sample}");
}

/// Four MI60 in a ring: each has one link to two others, and PCIe joins nothing that xGMI does not.
#[test]
fn a_ring_of_four_mi60() {
    let xgmi = 24 * GB;
    check(
        "nccl-topo/rccl-topo_4p1h_1.xml",
        [("gpu0", "gpu1", xgmi), ("gpu0", "gpu3", xgmi), ("gpu1", "gpu2", xgmi), ("gpu2", "gpu3", xgmi)],
    );
}

/// Eight MI100 with six links each: all pairs but 0-5, 1-4, 2-7 and 3-6.
#[test]
fn eight_mi100_with_six_links_each() {
    let names = ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"];
    let pairs = (0..8).flat_map(|a| (a + 1..8).map(move |b| (a, b)));
    let joined = pairs.filter(|pair| ![(0, 5), (1, 4), (2, 7), (3, 6)].contains(pair));
    check("nccl-topo/rccl-topo_8p6l.xml", joined.map(|(a, b)| (names[a], names[b], 24 * GB)));
}

/// Eight dies of MI250 in a virtual machine that shows one link of each: twelve, three for each die.
#[test]
fn eight_dies_with_three_links_each() {
    let xgmi = 36 * GB;
    check(
        "nccl-topo/rccl-topo_8p_90a.xml",
        [
            ("gpu0", "gpu1", xgmi),
            ("gpu0", "gpu2", xgmi),
            ("gpu0", "gpu6", xgmi),
            ("gpu1", "gpu3", xgmi),
            ("gpu1", "gpu5", xgmi),
            ("gpu2", "gpu3", xgmi),
            ("gpu2", "gpu4", xgmi),
            ("gpu3", "gpu7", xgmi),
            ("gpu4", "gpu5", xgmi),
            ("gpu4", "gpu6", xgmi),
            ("gpu5", "gpu7", xgmi),
            ("gpu6", "gpu7", xgmi),
        ],
    );
}

/// Four MI250: counts of 4, 2 and 1 links of 36 GB/s between dies. The dies are at 16 lanes of 16 GT/s below bridges with 8,
/// four bridges on each of two switches, between which there is nothing but xGMI.
#[test]
fn four_mi250_on_two_pcie_switches() {
    let (one, two, four) = (36 * GB, 2 * 36 * GB, 4 * 36 * GB);
    let (lanes8, lanes16) = (12 * GB, 24 * GB);
    check(
        "nccl-topo/rccl-topo_8p1h.xml",
        [
            ("gpu0", "gpu1", four),
            ("gpu2", "gpu3", four),
            ("gpu4", "gpu5", four),
            ("gpu6", "gpu7", four),
            ("gpu0", "gpu4", two),
            ("gpu2", "gpu6", two),
            ("gpu0", "gpu6", one),
            ("gpu1", "gpu3", one),
            ("gpu1", "gpu7", one),
            ("gpu2", "gpu4", one),
            ("gpu3", "gpu5", one),
            ("gpu5", "gpu7", one),
            ("gpu0", "pci-0000.27.00.0", lanes16),
            ("gpu1", "pci-0000.2a.00.0", lanes16),
            ("gpu2", "pci-0000.2d.00.0", lanes16),
            ("gpu3", "pci-0000.30.00.0", lanes16),
            ("gpu4", "pci-0000.ab.00.0", lanes16),
            ("gpu5", "pci-0000.ae.00.0", lanes16),
            ("gpu6", "pci-0000.b1.00.0", lanes16),
            ("gpu7", "pci-0000.b4.00.0", lanes16),
            ("pci-0000.25.00.0", "pci-0000.27.00.0", lanes8),
            ("pci-0000.25.00.0", "pci-0000.2a.00.0", lanes8),
            ("pci-0000.25.00.0", "pci-0000.2d.00.0", lanes8),
            ("pci-0000.25.00.0", "pci-0000.30.00.0", lanes8),
            ("pci-0000.a9.00.0", "pci-0000.ab.00.0", lanes8),
            ("pci-0000.a9.00.0", "pci-0000.ae.00.0", lanes8),
            ("pci-0000.a9.00.0", "pci-0000.b1.00.0", lanes8),
            ("pci-0000.a9.00.0", "pci-0000.b4.00.0", lanes8),
        ],
    );
}

/// A virtual machine of Azure with four A100 that say their NVLinks lead to themselves: what is left are 16 lanes of an unknown
/// speed, which counts as 8 GT/s, and 16 GB/s between any two of four AMD sockets.
#[test]
fn four_a100_of_a_virtual_machine() {
    let (lanes, sockets) = (12 * GB, 16 * GB);
    check(
        "nccl-topo/azure-ncv4-topo.xml",
        [
            ("gpu0", "cpu0", lanes),
            ("gpu1", "cpu1", lanes),
            ("gpu2", "cpu2", lanes),
            ("gpu3", "cpu3", lanes),
            ("cpu0", "cpu1", sockets),
            ("cpu0", "cpu2", sockets),
            ("cpu0", "cpu3", sockets),
            ("cpu1", "cpu2", sockets),
            ("cpu1", "cpu3", sockets),
            ("cpu2", "cpu3", sockets),
        ],
    );
}

/// A static file of a cloud: two GPUs and a card without a port's rate on each of four switches of 16 lanes at 8 GT/s, and
/// 10 GB/s between two Skylake sockets.
#[test]
fn eight_a100_by_their_pcie_and_by_four_cards() {
    let lanes = 12 * GB;
    let mut rows = vec![("cpu0", "cpu1", 10 * GB)];
    let switches = ["pci-ffff.ff.01.0", "pci-ffff.ff.02.0", "pci-ffff.ff.03.0", "pci-ffff.ff.04.0"];
    let gpus = [["gpu0", "gpu1"], ["gpu2", "gpu3"], ["gpu4", "gpu5"], ["gpu6", "gpu7"]];
    for ((switch, pair), cpu) in switches.into_iter().zip(gpus).zip(["cpu0", "cpu0", "cpu1", "cpu1"]) {
        rows.extend([(pair[0], switch, lanes), (pair[1], switch, lanes), (switch, cpu, lanes)]);
    }
    check("nccl-topo/aws-p4d-24xl-topo.xml", rows);
    // `nic=` states the rate of the cards: 100 Gb/s are 12.5 GB/s, behind lanes of 12.
    let Some(file) = samples("nccl-topo/aws-p4d-24xl-topo.xml") else { return };
    let Content::Machine(machine) = read_content(&std::fs::read(file).unwrap(), &LIMITS, &|| false).unwrap().1 else {
        panic!("it is a machine");
    };
    let names = vec!["a".to_owned(), "b".to_owned()];
    let fabric = "star".parse::<canopy_import::Layout>().unwrap().fabric(machine.ports.len(), names.clone()).unwrap();
    let machines = vec![MachineOf { machine: Some(machine), hosts: None }];
    let cluster = canopy_import::Cluster { machines, fabric, rates: "nic=100Gb/s".parse::<Rates>().unwrap() };
    let joined = table(&compose(&cluster, &names, &LIMITS, &|| false).unwrap().0);
    for (machine, card) in [("a", "nic-0000.10.1b.0"), ("a", "nic-0000.a0.1b.0"), ("b", "nic-0000.20.1b.0")] {
        assert_eq!(joined[&(format!("{machine}.{card}"), "spine".to_owned())], 12_500_000_000);
    }
    assert_eq!(joined[&("a.nic-0000.10.1b.0".to_owned(), "a.pci-ffff.ff.01.0".to_owned())], lanes);
    assert_eq!(joined.keys().filter(|(_, to)| to == "spine").count(), 8);
}

/// Dimensions of ASTRA-sim, whose GB/s are GiB/s: one switch, and the innermost first of three: pairs, complete graphs of 8
/// and switches of 4.
#[test]
fn dimensions_of_astra_sim() {
    let Some(file) = samples("astra-network/HGX-H100-validated.yml") else { return };
    let topology = read(&std::fs::read(file).unwrap(), None, &LIMITS).unwrap().topology;
    let rates: Vec<u64> = table(&topology).into_values().collect();
    assert_eq!(rates, [400 * GIB; 8]);
    let Some(file) = samples("astra-network/Ring_FullyConnected_Switch.yml") else { return };
    let topology = read(&std::fs::read(file).unwrap(), None, &LIMITS).unwrap().topology;
    let mut counts = BTreeMap::<u64, usize>::new();
    table(&topology).into_values().for_each(|rate| *counts.entry(rate).or_default() += 1);
    // Every link of a dimension has its rate. 64 ranks: 32 rings of two, which are one link each; 8 complete graphs of 8, of
    // 28 pairs each; 64 ports to 16 switches.
    assert_eq!(counts, BTreeMap::from([(200 * GIB, 32), (100 * GIB, 8 * 28), (50 * GIB, 64)]));
}
