//! The commands that make a network, as a machine would carry them out: packets to every route's address take the
//! plan's links, and packets to ranks arrive.

use std::collections::{BTreeMap, BTreeSet};

use canopy_lab::{Command, LabError, LinkChange, Network, Program, Scale, rank_address};
use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;
use canopy_topology::{Fault, Topology, TopologyLimits, generate};

use crate::plans::{compiled, planned};

fn scale() -> Scale {
    Scale::from_bits_per_gigabyte(1_000_000).unwrap()
}

/// What the namespaces know.
#[derive(Default)]
struct Machine {
    /// By namespace: addresses.
    addresses: BTreeMap<String, BTreeSet<String>>,
    /// By namespace and target: the address of the next node.
    routes: BTreeMap<(String, String), String>,
    /// By namespace and device: bits per second.
    limits: BTreeMap<(String, String), u64>,
    /// Devices that are up.
    devices: BTreeSet<(String, String)>,
}

impl Machine {
    fn run(&mut self, commands: &[Command]) {
        for command in commands {
            let args: Vec<&str> = command.args.iter().map(String::as_str).collect();
            match (command.program, args.as_slice()) {
                (Program::Ip, ["netns", "add", name]) => {
                    assert!(self.addresses.insert((*name).to_owned(), BTreeSet::new()).is_none());
                }
                (Program::Nsenter, [file, "sh", "-ec", script]) => {
                    let name = file.strip_prefix("--net=/run/netns/").unwrap();
                    assert!(self.addresses.contains_key(name) && script.contains("ip_forward"));
                }
                (Program::Ip | Program::Tc, ["-n", name, "-batch", "-"]) => {
                    assert!(command.input.ends_with('\n'));
                    for line in command.input.lines() {
                        self.line(name, &line.split(' ').collect::<Vec<_>>());
                    }
                }
                (Program::Ip, ["-n", name, "link", "set", device, "down"]) => {
                    assert!(self.devices.remove(&((*name).to_owned(), (*device).to_owned())));
                }
                (_, args) => panic!("{args:?}"),
            }
        }
    }

    fn line(&mut self, name: &str, words: &[&str]) {
        let own = |text: &str| (name.to_owned(), text.to_owned());
        match words {
            ["addr", "add", address, "dev", _] => {
                let address = address.split('/').next().unwrap().to_owned();
                assert!(self.addresses.get_mut(name).unwrap().insert(address), "{words:?}");
            }
            ["route", verb, target, "via", next, ..] => {
                let before = self.routes.insert(own(target.trim_end_matches("/32")), (*next).to_owned());
                assert!(before.is_none() || *verb == "replace", "{name} {words:?}");
            }
            ["link", "add", there, "mtu", _, "type", "veth", "peer", "name", here, "mtu", _, "netns", other] => {
                self.devices.extend([own(there), ((*other).to_owned(), (*here).to_owned())]);
            }
            ["qdisc", _, "dev", device, "root", "handle", "1:", "tbf", "rate", rate, "burst", burst, "limit", _] => {
                let bits = rate.strip_suffix("bit").unwrap().parse().unwrap();
                let burst: u64 = burst.parse().unwrap();
                assert!((9_300..=40_960).contains(&burst), "at least a frame, and little that is free");
                self.limits.insert(own(device), bits);
            }
            ["link", ..] => {}
            other => panic!("{other:?}"),
        }
    }

    /// The nodes that a packet to an address passes.
    fn path(&self, from: usize, address: &str) -> Vec<usize> {
        let mut nodes = vec![from];
        loop {
            let here = format!("n{}", nodes.last().unwrap());
            if self.addresses[&here].contains(address) {
                return nodes;
            }
            let next = self.routes.get(&(here.clone(), address.to_owned()));
            let next = next.unwrap_or_else(|| panic!("{here} does not know {address}"));
            let (name, _) = self.addresses.iter().find(|(_, own)| own.contains(next)).unwrap();
            let node: usize = name[1..].parse().unwrap();
            assert!(self.devices.contains(&(here, format!("v{node}"))), "there is no link to {name}");
            nodes.push(node);
            assert!(nodes.len() < 50, "packets to {address} go in circles: {nodes:?}");
        }
    }

    /// Whether every rank reaches every other by its name.
    fn check_names(&self, topology: &Topology) {
        for from in 0..topology.rank_count() {
            for to in 0..topology.rank_count() {
                assert_eq!(self.path(from as usize, &rank_address(to)).last(), Some(&(to as usize)));
            }
        }
    }
}

#[test]
fn packets_take_the_links_of_the_plan() {
    for expression in ["dgx-a100:boxes=2,gpus=4,degrade=b0g3-ib*1/2", "torus:3x3,down=00-01", "fat-tree:k=4"] {
        let (topology, graph) = planned(expression, CollectiveKind::Allgather, Algorithm::Auto);
        let network = Network::new(&topology, scale(), true).unwrap();
        let mut machine = Machine::default();
        machine.run(&network.setup(false));
        machine.check_names(&topology);
        let compiled = compiled(&topology, &graph, 1 << 16, 4096);
        machine.run(&network.route_commands(&compiled.routes));
        for route in &compiled.routes {
            assert_eq!(machine.path(route.nodes[0], &route.address), route.nodes, "{expression}");
        }
        for link in topology.links() {
            let key = (format!("n{}", link.from.index()), format!("v{}", link.to.index()));
            assert!(machine.limits[&key] >= link.capacity.bytes_per_sec() / 1000);
        }
    }
}

#[test]
fn links_that_fail_are_down_and_answers_take_others() {
    let (topology, _) = planned("torus:3x3", CollectiveKind::Allgather, Algorithm::Auto);
    let faults = [
        Fault::Link { from: "00".into(), to: "01".into(), both_ways: true },
        Fault::Degrade { from: "11".into(), to: "12".into(), both_ways: false, numerator: 1, denominator: 2 },
    ];
    let left = topology.punctured(&faults).unwrap();
    let mut network = Network::new(&topology, scale(), true).unwrap();
    let mut machine = Machine::default();
    machine.run(&network.setup(true));
    let changes = network.changes(&left, scale()).unwrap();
    let kinds: Vec<_> = changes.iter().map(|(pair, change)| (pair.nodes, *change)).collect();
    assert_eq!(kinds, [([0, 1], LinkChange::Down), ([4, 5], LinkChange::Slower)]);
    machine.run(&network.apply(&changes));
    machine.check_names(&topology);
    assert_eq!(machine.path(0, &rank_address(1)).len(), 3);
    let limit = |from: usize, to: usize| machine.limits[&(format!("n{from}"), format!("v{to}"))];
    assert_eq!(limit(4, 5) * 2, limit(5, 4));
    assert!(network.changes(&left, scale()).unwrap().iter().all(|(_, change)| *change != LinkChange::Slower));
}

#[test]
fn large_networks_and_rates_that_no_limit_keeps_are_refused() {
    let large = generate("ring:41", &TopologyLimits::STANDARD).unwrap();
    assert_eq!(Network::new(&large, scale(), true), Err(LabError::TooManyNodes { found: 41, limit: 40 }));
    let small = generate("ring:3", &TopologyLimits::STANDARD).unwrap();
    let slow = Scale::from_bits_per_gigabyte(1).unwrap();
    assert!(matches!(Network::new(&small, slow, true), Err(LabError::Rate { .. })));
}
