//! SimGrid: the network as a platform file of version 4.1, and the messages as JSON for a program that replays them.
//!
//! A rank is a host, every other node a router, a directed link a link of its own that its messages share. A routing of
//! the kind `Full` states one route from host to host, so where a plan uses several between the same two ranks, the
//! second and further ones lead to further hosts of the receiver, `ID:1`, `ID:2`, ….

use std::collections::BTreeMap;
use std::fmt::Write as _;

use canopy_schedule::{RouteIndex, RouteTable};
use canopy_topology::{LinkIndex, Rank, Topology};
use serde::Serialize;

use crate::Message;

/// What SimGrid is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The platform file: hosts, routers, links and the routes of all messages.
    pub platform: String,
    /// The messages, as JSON.
    pub messages: String,
}

/// The JSON object of the messages.
#[derive(Debug, Serialize)]
struct Messages<'a> {
    canopy: u32,
    format: &'static str,
    messages: Vec<Entry<'a>>,
}

/// One message. `after`, `behind` and `turn` are positions in the list.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    from: &'a str,
    to: &'a str,
    bytes: u64,
    weight: u64,
    after: &'a [u32],
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<u32>,
    #[serde(skip_serializing_if = "<[u32]>::is_empty")]
    turn: &'a [u32],
}

/// Writes a network and the messages of a run on it for SimGrid.
///
/// * **In.** Messages of a run on this topology, with their table of routes; none for the network alone, without routes.
/// * **Out.** Capacities in bytes per second and latencies in nanoseconds, exactly. Identifiers are those of the nodes; a link
///   is called `FROM:TO`, further ones of other latencies `FROM:TO:1`, …: node identifiers have no colons.
/// * **Cost.** O(nodes + links + messages + links of all routes · log).
pub fn simgrid(topology: &Topology, routes: &RouteTable, messages: &[Message]) -> Replay {
    let hosts = Hosts::new(messages);
    let id = |rank: Rank| topology.nodes()[rank.index()].id.as_str();
    let names: BTreeMap<(Rank, RouteIndex), String> = messages
        .iter()
        .map(|message| (message.to, message.route))
        .map(|(to, route)| ((to, route), host_name(id(to), hosts.port(route))))
        .collect();
    let entry = |message: &'_ Message| {
        let to = &names[&(message.to, message.route)];
        (message.from, to.as_str(), message.bytes, message.weight)
    };
    let entries = messages.iter().map(|message| {
        let (from, to, bytes, weight) = entry(message);
        Entry { from: id(from), to, bytes, weight, after: &message.after, behind: message.behind, turn: &message.turn }
    });
    let list = Messages { canopy: 1, format: "simgrid-messages", messages: entries.collect() };
    let messages = serde_json::to_string(&list).expect("numbers and texts have a JSON") + "\n";
    Replay { platform: platform(topology, routes, &hosts), messages }
}

/// Which routes are used, and at which host of the receiver each ends.
#[derive(Debug)]
struct Hosts {
    /// By sender and receiver: the routes in order of their numbers.
    pairs: BTreeMap<(Rank, Rank), Vec<RouteIndex>>,
    /// By route: which of its pair's it is.
    ports: BTreeMap<RouteIndex, usize>,
}

impl Hosts {
    fn new(messages: &[Message]) -> Self {
        let mut pairs: BTreeMap<(Rank, Rank), Vec<RouteIndex>> = BTreeMap::new();
        for message in messages {
            pairs.entry((message.from, message.to)).or_default().push(message.route);
        }
        let mut ports = BTreeMap::new();
        for routes in pairs.values_mut() {
            routes.sort_unstable();
            routes.dedup();
            ports.extend(routes.iter().enumerate().map(|(port, &route)| (route, port)));
        }
        Self { pairs, ports }
    }

    fn port(&self, route: RouteIndex) -> usize {
        self.ports.get(&route).copied().unwrap_or_default()
    }

    /// Hosts of a rank: as many as routes lead to it from any one sender, and at least one.
    fn counts(&self, topology: &Topology) -> Vec<usize> {
        let mut counts = vec![1; topology.rank_count() as usize];
        for ((_, to), routes) in &self.pairs {
            counts[to.index()] = counts[to.index()].max(routes.len());
        }
        counts
    }
}

fn host_name(id: &str, port: usize) -> String {
    if port == 0 { id.to_owned() } else { format!("{id}:{port}") }
}

fn platform(topology: &Topology, routes: &RouteTable, hosts: &Hosts) -> String {
    let mut text = String::from(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n\
         <platform version=\"4.1\">\n  <zone id=\"network\" routing=\"Full\">\n",
    );
    let mut line = |words: std::fmt::Arguments<'_>| {
        writeln!(text, "    {words}").expect("a text takes all");
    };
    for (node, &count) in topology.nodes().iter().zip(&hosts.counts(topology)) {
        for port in 0..count {
            line(format_args!("<host id=\"{}\" speed=\"1Gf\"/>", escaped(&host_name(&node.id, port))));
        }
    }
    for node in &topology.nodes()[topology.rank_count() as usize..] {
        line(format_args!("<router id=\"{}\"/>", escaped(&node.id)));
    }
    let names = link_names(topology);
    for (link, name) in topology.links().iter().zip(&names) {
        let (capacity, latency) = (link.capacity.bytes_per_sec(), link.latency.nanos());
        line(format_args!(
            "<link id=\"{name}\" bandwidth=\"{capacity}Bps\" latency=\"{latency}ns\" sharing_policy=\"SHARED\"/>"
        ));
    }
    let id = |rank: Rank| topology.nodes()[rank.index()].id.as_str();
    for ((from, to), used) in &hosts.pairs {
        for (port, &route) in used.iter().enumerate() {
            let (from, to) = (escaped(id(*from)), escaped(&host_name(id(*to), port)));
            let over: String = routes
                .get(route)
                .unwrap_or_default()
                .iter()
                .map(|link: &LinkIndex| format!("<link_ctn id=\"{}\"/>", names[link.index()]))
                .collect();
            line(format_args!("<route src=\"{from}\" dst=\"{to}\" symmetrical=\"NO\">{over}</route>"));
        }
    }
    text.push_str("  </zone>\n</platform>\n");
    text
}

/// Names of links, escaped. Links of the same ends are neighbours in their order.
fn link_names(topology: &Topology) -> Vec<String> {
    let mut names = Vec::with_capacity(topology.links().len());
    let mut latest = (None, 0_u32);
    for link in topology.links() {
        let ends = Some((link.from, link.to));
        latest = if latest.0 == ends { (ends, latest.1 + 1) } else { (ends, 0) };
        let [from, to] = [link.from, link.to].map(|node| escaped(&topology.node(node).id));
        names.push(match latest.1 {
            0 => format!("{from}:{to}"),
            further => format!("{from}:{to}:{further}"),
        });
    }
    names
}

/// A text as it stands in an attribute.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            other => escaped.push(other),
        }
    }
    escaped
}
