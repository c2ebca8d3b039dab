//! The network of a topology as network namespaces: one for each node, a pair of virtual devices for each two
//! neighbours, and a rate limit at each end.
//!
//! A switch is a namespace that forwards packets, so direct links, switches behind switches and loops among them need
//! nothing else, and each port has its own limit in both directions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use canopy_topology::Topology;

use crate::address::{NODES_MAX, link_addresses, management_address, rank_address};
use crate::command::{Command, Program};
use crate::error::LabError;
use crate::paths::next_hops;
use crate::scale::Scale;

/// Where `ip` keeps the namespaces that it has names for.
pub const NAMESPACES: &str = "/run/netns";

/// Payload of 8,948 bytes in a frame of 9,014.
const MTU_BYTES: u64 = 9000;
/// Largest packet that is cut into frames as late as at the device.
const OFFLOAD_BYTES: u64 = 36_864;
/// Longest burst, and in time: what a limit lets through at once is not limited.
const BURST_BYTES_MAX: u64 = 40_960;
const BURST_MS: u64 = 8;
/// Longest queue at a port, in bytes at least and in time.
const QUEUE_BYTES_MIN: u64 = 262_144;
const QUEUE_MS: u64 = 100;
/// Rate of a direction that carries answers alone.
const ANSWER_BITS: u64 = 10_000_000;
/// The namespace of the management network.
const MANAGEMENT: &str = "management";

/// Two neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The nodes, the one of the smaller index first.
    pub nodes: [usize; 2],
    /// Bits per second from the first to the second, and back; `None` for a direction without a link.
    pub bits_per_sec: [Option<u64>; 2],
}

/// The namespaces, devices and limits of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    node_count: usize,
    rank_count: u32,
    pairs: Vec<Pair>,
    /// By node and neighbour: the position of the pair, and which end of it the node is.
    ends: BTreeMap<(usize, usize), (usize, usize)>,
    has_cubic: bool,
}

/// What a fault does to two neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// No direction is left.
    Down,
    /// It is slower, in one direction at least.
    Slower,
}

/// Name of a node's namespace.
pub fn namespace(node: usize) -> String {
    format!("n{node}")
}

/// The file by which a namespace of this name is entered.
pub fn namespace_file(name: &str) -> String {
    format!("{NAMESPACES}/{name}")
}

/// Name of the device that leads to a neighbour.
pub fn interface(neighbour: usize) -> String {
    format!("v{neighbour}")
}

impl Network {
    /// The network of a topology at a scale; `has_cubic` if the kernel has this congestion control, which is steadier
    /// than others.
    ///
    /// # Errors
    /// More than [`NODES_MAX`] nodes, and rates outside what limits keep.
    pub fn new(topology: &Topology, scale: Scale, has_cubic: bool) -> Result<Self, LabError> {
        let node_count = topology.nodes().len();
        if node_count > NODES_MAX {
            return Err(LabError::TooManyNodes { found: node_count, limit: NODES_MAX });
        }
        let pairs = pairs_of(topology, scale)?;
        let mut ends = BTreeMap::new();
        for (position, Pair { nodes: [a, b], .. }) in pairs.iter().enumerate() {
            ends.extend([((*a, *b), (position, 0)), ((*b, *a), (position, 1))]);
        }
        Ok(Self { node_count, rank_count: topology.rank_count(), pairs, ends, has_cubic })
    }

    /// All pairs of neighbours.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Number of nodes.
    pub const fn node_count(&self) -> usize {
        self.node_count
    }

    /// Everything that makes the network, in order; with a management network if a launcher needs one.
    pub fn setup(&self, has_management: bool) -> Vec<Command> {
        let mut names: Vec<String> = (0..self.node_count).map(namespace).collect();
        names.extend(has_management.then(|| MANAGEMENT.to_owned()));
        let mut all: Vec<Command> =
            names.iter().map(|name| Command::new(Program::Ip, &["netns", "add", name])).collect();
        all.extend(names.iter().map(|name| settings(name)));
        let created = (0..self.node_count).map(|node| (node, self.devices(node)));
        all.extend(created.filter_map(|(node, lines)| Command::batch(Program::Ip, &namespace(node), &lines)));
        if has_management {
            all.extend(Command::batch(Program::Ip, MANAGEMENT, &self.management()));
        }
        for node in 0..self.node_count {
            let mut lines = self.addresses(node);
            if has_management && self.is_rank(node) {
                let address = management_address(self.rank(node));
                lines.extend([format!("addr add {address}/24 dev mg0"), "link set mg0 up".to_owned()]);
            }
            all.extend(Command::batch(Program::Ip, &namespace(node), &lines));
        }
        all.extend(self.name_routes("add"));
        all.extend((0..self.node_count).filter_map(|node| {
            let limits: Vec<String> = self.neighbours(node).map(|(next, bits)| limit("add", next, bits)).collect();
            Command::batch(Program::Tc, &namespace(node), &limits)
        }));
        all
    }

    /// What is different in what faults left of the topology: by pair, in order. `left` has the same nodes.
    ///
    /// # Errors
    /// Rates outside what limits keep.
    pub fn changes(&self, left: &Topology, scale: Scale) -> Result<Vec<(Pair, LinkChange)>, LabError> {
        let rest: BTreeMap<[usize; 2], Pair> =
            pairs_of(left, scale)?.into_iter().map(|pair| (pair.nodes, pair)).collect();
        let change = |pair: &Pair| match rest.get(&pair.nodes) {
            None => Some((Pair { bits_per_sec: [None; 2], ..*pair }, LinkChange::Down)),
            Some(now) if now != pair => Some((*now, LinkChange::Slower)),
            Some(_) => None,
        };
        Ok(self.pairs.iter().filter_map(change).collect())
    }

    /// Changes links for real: takes devices down, and lowers limits. Answers take other paths from then on.
    pub fn apply(&mut self, changes: &[(Pair, LinkChange)]) -> Vec<Command> {
        let mut commands = Vec::new();
        for (now, change) in changes {
            let [a, b] = now.nodes;
            let Some(&(position, _)) = self.ends.get(&(a, b)) else { continue };
            self.pairs[position].bits_per_sec = now.bits_per_sec;
            match change {
                // Both ends lose their carrier.
                LinkChange::Down => {
                    let args = ["-n", &namespace(a), "link", "set", &interface(b), "down"];
                    commands.push(Command::new(Program::Ip, &args));
                }
                LinkChange::Slower => {
                    for (here, next, bits) in [(a, b, now.bits_per_sec[0]), (b, a, now.bits_per_sec[1])] {
                        let line = limit("replace", next, bits.unwrap_or(ANSWER_BITS));
                        commands.extend(Command::batch(Program::Tc, &namespace(here), &[line]));
                    }
                }
            }
        }
        commands.extend(self.name_routes("replace"));
        commands
    }

    /// A host route's target, next node and congestion control; `source` is empty or ` src ADDRESS`.
    pub(crate) fn route_to(&self, address: &str, here: usize, next: usize, source: &str) -> String {
        let via = self.ends.get(&(next, here)).map(|&(pair, end)| {
            let [first, second] = link_addresses(pair);
            if end == 0 { first } else { second }
        });
        let control = if self.has_cubic { " congctl cubic" } else { "" };
        format!("{address}/32 via {}{source}{control}", via.unwrap_or_default())
    }

    /// By which name a rank is answered.
    pub(crate) fn source(&self, node: usize) -> String {
        if self.is_rank(node) { format!(" src {}", rank_address(self.rank(node))) } else { String::new() }
    }

    fn is_rank(&self, node: usize) -> bool {
        node < self.rank_count as usize
    }

    /// The node of rank r has index r.
    fn rank(&self, node: usize) -> u32 {
        u32::try_from(node).unwrap_or(u32::MAX)
    }

    /// Neighbours of a node, and the rate towards each; that of answers where there is no link.
    fn neighbours(&self, node: usize) -> impl Iterator<Item = (usize, u64)> {
        self.ends
            .range((node, 0)..(node + 1, 0))
            .map(|(&(_, next), &(pair, end))| (next, self.pairs[pair].bits_per_sec[end].unwrap_or(ANSWER_BITS)))
    }

    /// Devices that a node makes for itself and for those of greater index.
    fn devices(&self, node: usize) -> Vec<String> {
        let device = |&(next, _): &(usize, u64)| {
            let (there, here, space) = (interface(next), interface(node), namespace(next));
            format!("link add {there} mtu {MTU_BYTES} type veth peer name {here} mtu {MTU_BYTES} netns {space}")
        };
        self.neighbours(node).filter(|(next, _)| *next > node).map(|neighbour| device(&neighbour)).collect()
    }

    /// Addresses of a node's devices, and its name.
    fn addresses(&self, node: usize) -> Vec<String> {
        let mut lines = vec!["link set lo up".to_owned()];
        for (next, _) in self.neighbours(node) {
            let Some(&(pair, end)) = self.ends.get(&(node, next)) else { continue };
            let ([first, second], device) = (link_addresses(pair), interface(next));
            let address = if end == 0 { first } else { second };
            lines.push(format!("link set {device} gso_max_size {OFFLOAD_BYTES}"));
            lines.push(format!("addr add {address}/30 dev {device}"));
            lines.push(format!("link set {device} up"));
        }
        if self.is_rank(node) {
            // Kernels need not have dummy devices: one end of a pair is as good.
            lines.push(format!("link add id0 mtu {MTU_BYTES} type veth peer name id1"));
            lines.push(format!("addr add {}/24 dev id0", rank_address(self.rank(node))));
            lines.extend(["link set id0 up", "link set id1 up"].map(str::to_owned));
        }
        lines
    }

    /// A bridge without limits, with a port for each rank.
    fn management(&self) -> Vec<String> {
        let mut lines =
            vec!["link set lo up".to_owned(), "link add br0 type bridge".to_owned(), "link set br0 up".to_owned()];
        lines.insert(2, "addr add 10.99.255.254/24 dev br0".to_owned());
        for rank in 0..self.rank_count {
            lines.push(format!("link add m{rank} type veth peer name mg0 netns n{rank}"));
            lines.push(format!("link set m{rank} master br0 up"));
        }
        lines
    }

    /// Routes to the names of all ranks, from every node that reaches them.
    fn name_routes(&self, verb: &str) -> Vec<Command> {
        let links: Vec<(usize, usize, u64)> = self
            .pairs
            .iter()
            .filter(|pair| pair.bits_per_sec != [None; 2])
            .flat_map(|&Pair { nodes: [a, b], bits_per_sec: [there, back] }| {
                [(a, b, there.unwrap_or(ANSWER_BITS)), (b, a, back.unwrap_or(ANSWER_BITS))]
            })
            .collect();
        let mut lines: Vec<Vec<String>> = vec![Vec::new(); self.node_count];
        for rank in 0..self.rank_count {
            let hops = next_hops(self.node_count, &links, rank as usize);
            for (node, next) in hops.iter().enumerate() {
                if let Some(next) = *next {
                    let route = self.route_to(&rank_address(rank), node, next, &self.source(node));
                    lines[node].push(format!("route {verb} {route}"));
                }
            }
        }
        let commands = lines.iter().enumerate();
        commands.filter_map(|(node, lines)| Command::batch(Program::Ip, &namespace(node), lines)).collect()
    }
}

/// Neighbours of a topology with the rates of all their parallel links.
fn pairs_of(topology: &Topology, scale: Scale) -> Result<Vec<Pair>, LabError> {
    let mut capacity: BTreeMap<[usize; 2], [u128; 2]> = BTreeMap::new();
    for link in topology.links() {
        let (from, to) = (link.from.index(), link.to.index());
        let both = capacity.entry([from.min(to), from.max(to)]).or_default();
        both[usize::from(from > to)] += u128::from(link.capacity.bytes_per_sec());
    }
    let pair = |(nodes, [there, back]): ([usize; 2], [u128; 2])| {
        let bits = |bytes: u128| if bytes == 0 { Ok(None) } else { scale.link_bits(bytes).map(Some) };
        Ok(Pair { nodes, bits_per_sec: [bits(there)?, bits(back)?] })
    };
    capacity.into_iter().map(pair).collect()
}

/// Settings of a namespace: it forwards, and connections neither slow down after a pause nor learn from those before.
fn settings(name: &str) -> Command {
    const SETTINGS: [(&str, &str); 8] = [
        ("ip_forward", "1"),
        ("conf/all/rp_filter", "0"),
        ("conf/default/rp_filter", "0"),
        ("tcp_slow_start_after_idle", "0"),
        ("tcp_no_metrics_save", "1"),
        ("tcp_wmem", "4096 524288 1048576"),
        ("tcp_rmem", "4096 1048576 4194304"),
        ("ip_local_port_range", "30000 60000"),
    ];
    let mut script = String::new();
    for (setting, value) in SETTINGS {
        let _never_fails = writeln!(script, "echo '{value}' >/proc/sys/net/ipv4/{setting}");
    }
    // IPv6 sends packets by itself; kernels without it do not have the file.
    script += "off=/proc/sys/net/ipv6/conf/all/disable_ipv6\n[ ! -e $off ] || echo 1 >$off\n";
    Command::new(Program::Nsenter, &[&format!("--net={}", namespace_file(name)), "sh", "-ec", &script])
}

/// A line for `tc` that limits what leaves towards a neighbour.
fn limit(verb: &str, neighbour: usize, bits: u64) -> String {
    let device = interface(neighbour);
    let burst = (bits * BURST_MS / 8000).clamp(MTU_BYTES + 300, BURST_BYTES_MAX);
    let queue = (bits * QUEUE_MS / 8000).max(QUEUE_BYTES_MIN);
    format!("qdisc {verb} dev {device} root handle 1: tbf rate {bits}bit burst {burst} limit {queue}")
}
