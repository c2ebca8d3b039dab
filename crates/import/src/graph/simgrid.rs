//! SimGrid: hosts are ranks, routers switches, and routes say where links lead.
//!
//! [`routes`] finds the ends of links, [`cluster`] builds clusters, [`units`] reads numbers. What canopy's links cannot
//! say is refused: FATPIPE, limits of hosts, and links that more than two places share. Routes only tell where links
//! are; canopy plans its own over them.
//! Source: `simgrid.dtd` and the reference of platforms of SimGrid 3.

mod cluster;
mod routes;
mod units;

use std::collections::{BTreeSet, HashMap, HashSet};

use canopy_topology::{Capacity, DraftLink, Latency, TopologyDraft, shorten};

use self::routes::{Places, Wires};
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::names::id_of;
use crate::report::Report;
use crate::source::Source;
use crate::xml::{self, Element};

const KIND: FileKind = FileKind::SimGrid;

/// Elements between two questions whether to stop.
const ELEMENTS_BETWEEN_STOPS: usize = 4096;

/// Routings of zones whose routes are all in the file.
const ROUTINGS: [&str; 4] = ["Full", "Floyd", "Dijkstra", "DijkstraCache"];

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    start.contains("<platform")
}

/// Reads a platform; hosts are ranked in the order of the file.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let root = xml::parse(KIND, source)?;
    if root.name != "platform" {
        let found = shorten(&root.name);
        let problem = format!("the root element is `{found}`, not `platform`; give a platform file of SimGrid");
        return Err(FileError::whole(KIND, problem).into());
    }
    let version = root.required("version")?;
    if version != "4" && !version.starts_with("4.") {
        return Err(root.unusable("version", version, "4 or 4.1; run simgrid_update_xml on the file").into());
    }
    let mut found = Found::default();
    found.collect(&root)?;
    let gateways: HashSet<&str> = found.routes.iter().filter_map(|route| ends(route).ok()).flatten().collect();
    let mut network = Network::new(source);
    network.notes.left_out = found.left_out;
    for element in found.nodes {
        match element.name.as_str() {
            "cluster" => cluster::add(&mut network, element, &gateways)?,
            name => {
                let node = element.required("id")?;
                network.add_node(element, node.to_owned(), name == "host")?;
            }
        }
    }
    let mut wires = Wires::default();
    for link in found.links {
        network.ask()?;
        wires.add(link, &mut network.places)?;
        let traced = ["bandwidth_file", "latency_file", "state_file"].iter().any(|name| link.attribute(name).is_some());
        network.notes.left_out.extend(traced.then_some("profiles of links"));
    }
    for route in found.routes {
        network.ask()?;
        network.lead(route, &mut wires)?;
    }
    wires.check(&mut network.places)?;
    network.add_wires(&wires)?;
    Ok(network.finish())
}

/// The two ends of a route: hosts or routers.
fn ends(route: &Element) -> Result<[&str; 2], ImportError> {
    let [from, to] = if route.name == "route" { ["src", "dst"] } else { ["gw_src", "gw_dst"] };
    Ok([route.required(from)?, route.required(to)?])
}

/// The elements of a file that make the network, in its order.
#[derive(Default)]
struct Found<'a> {
    nodes: Vec<&'a Element>,
    links: Vec<&'a Element>,
    routes: Vec<&'a Element>,
    /// What says nothing about the network.
    left_out: BTreeSet<&'static str>,
}

impl<'a> Found<'a> {
    fn collect(&mut self, zone: &'a Element) -> Result<(), ImportError> {
        for child in &zone.children {
            match child.name.as_str() {
                "zone" | "AS" => {
                    let routing = child.required("routing")?;
                    if !ROUTINGS.contains(&routing) {
                        let expected = "Full, Floyd, Dijkstra or DijkstraCache, or a <cluster>";
                        return Err(child.unusable("routing", routing, expected).into());
                    }
                    self.collect(child)?;
                }
                "host" | "router" | "cluster" => self.nodes.push(child),
                "link" => self.links.push(child),
                "route" | "zoneRoute" | "ASroute" => self.routes.push(child),
                "prop" => {}
                "config" => drop(self.left_out.insert("<config>")),
                "trace" | "trace_connect" => drop(self.left_out.insert("traces")),
                "actor" | "process" => drop(self.left_out.insert("actors")),
                "storage" | "storage_type" => drop(self.left_out.insert("storage")),
                _ => return Err(refused(child).into()),
            }
        }
        Ok(())
    }
}

/// Says that an element is not read, and what to write instead.
fn refused(element: &Element) -> FileError {
    let instead = match element.name.as_str() {
        "peer" => "write a <host> with a <link> and a <route>",
        "cabinet" | "host_link" | "backbone" => "write a <cluster>, or a <link> and a <route> for each host",
        "bypassRoute" | "bypassZoneRoute" | "bypassASroute" => "canopy chooses routes itself; remove it",
        "include" => "write what it includes into this file",
        _ => "remove it; zones, hosts, routers, links, routes and clusters are read",
    };
    FileError::at(KIND, element.line, format!("<{}> is not read; {instead}", shorten(&element.name)))
}

/// What people should know.
#[derive(Default)]
struct Notes {
    left_out: BTreeSet<&'static str>,
    /// Whether there are links whose directions share their rate.
    shared: bool,
    /// Latencies that are not whole nanoseconds.
    rounded: usize,
    /// Links that no route uses.
    unused: usize,
    /// Whether an id has another character for one that ids cannot have.
    renamed: bool,
}

impl Notes {
    /// What each direction has of a link whose directions share its rate.
    fn half(&mut self, element: &Element, attribute: &str, capacity: Capacity) -> Result<Capacity, FileError> {
        self.shared = true;
        let none = || routes::at(element, attribute, "1 byte per second has no half; use a larger one");
        Capacity::from_bytes_per_sec(capacity.bytes_per_sec() / 2).ok_or_else(none)
    }

    fn report(self, draft: &TopologyDraft, ranks: usize, joints: usize) -> Report {
        let mut report = Report::default();
        let switches = draft.nodes.len() - ranks;
        report.understood.push(format!("{ranks} hosts, {switches} switches and {} directed links", draft.links.len()));
        let mut assume = |holds: bool, text: String| report.assumed.extend(holds.then_some(text));
        let half = "where both directions of a link share its bandwidth (SHARED), each has half, in whole bytes per \
                    second; write SPLITDUPLEX if each has all of it";
        assume(self.shared, half.to_owned());
        assume(self.rounded > 0, format!("latencies that are rounded down to whole nanoseconds: {}", self.rounded));
        assume(
            joints > 0,
            format!("places without a name where links of routes meet, each a switch `joint…`: {joints}"),
        );
        assume(self.renamed, "ids have `-` for white space and each of `: > = ,`".to_owned());
        if !self.left_out.is_empty() {
            let names: Vec<&str> = self.left_out.into_iter().collect();
            report.left_out.push(format!("without meaning for the network: {}", names.join(", ")));
        }
        if self.unused > 0 {
            report.left_out.push(format!("links that are in no route: {}", self.unused));
        }
        report
    }
}

/// A host or a switch.
struct Node {
    id: String,
    is_rank: bool,
    place: usize,
    has_link: bool,
}

struct Network<'a> {
    source: Source<'a>,
    asked: usize,
    nodes: Vec<Node>,
    /// Nodes by their names in SimGrid.
    by_name: HashMap<String, usize>,
    ids: HashSet<String>,
    places: Places,
    links: Vec<DraftLink>,
    /// Switches that have no name in the file, and the number of the next one.
    joints: usize,
    joint_next: usize,
    notes: Notes,
}

impl<'a> Network<'a> {
    fn new(source: Source<'a>) -> Self {
        Self {
            source,
            asked: 0,
            nodes: Vec::new(),
            by_name: HashMap::new(),
            ids: HashSet::new(),
            places: Places::default(),
            links: Vec::new(),
            joints: 0,
            joint_next: 0,
            notes: Notes::default(),
        }
    }

    fn ask(&mut self) -> Result<(), ImportError> {
        self.asked += 1;
        if self.asked.is_multiple_of(ELEMENTS_BETWEEN_STOPS) { self.source.ask() } else { Ok(()) }
    }

    /// Refuses so many further nodes and links if they are over the limits.
    fn require(&self, nodes: usize, links: usize) -> Result<(), ImportError> {
        self.source.require(self.nodes.len().saturating_add(nodes), self.links.len().saturating_add(links))
    }

    fn add_node(&mut self, element: &Element, name: String, is_rank: bool) -> Result<usize, ImportError> {
        self.ask()?;
        self.require(1, 0)?;
        let id = id_of(&name);
        if id.is_empty() || id.len() > 255 {
            let problem = format!("`{}` is no name of a node; use 1 to 255 bytes", shorten(&name));
            return Err(FileError::at(KIND, element.line, problem).into());
        }
        self.notes.renamed |= id != name;
        let number = self.nodes.len();
        let is_new = self.ids.insert(id.clone()) && self.by_name.insert(name, number).is_none();
        if !is_new {
            let problem = format!("a host or router before is called `{}`, too; give each its own name", shorten(&id));
            return Err(FileError::at(KIND, element.line, problem).into());
        }
        let place = self.places.add(Some(number));
        self.nodes.push(Node { id, is_rank, place, has_link: false });
        Ok(number)
    }

    /// Adds links from a node to another, side by side.
    fn add_links(&mut self, (from, to): (usize, usize), count: u64, capacity: Capacity, latency: Latency) {
        let mut id = |node: usize| {
            self.nodes[node].has_link = true;
            self.nodes[node].id.clone()
        };
        let (from, to) = (id(from), id(to));
        self.links.push(DraftLink { from, to, capacity, latency, count });
    }

    fn lead(&mut self, route: &'a Element, wires: &mut Wires<'a>) -> Result<(), ImportError> {
        let [from, to] = ends(route)?.map(|name| (name, self.by_name.get(name).map(|&node| self.nodes[node].place)));
        let known = |(name, place): (&str, Option<usize>)| {
            let problem = || {
                let name = shorten(name);
                format!("`{name}` is no host or router of the file; of clusters, only FLAT ones have a router")
            };
            place.ok_or_else(|| FileError::at(KIND, route.line, problem()))
        };
        let (from, to) = (known(from)?, known(to)?);
        if from == to {
            self.notes.left_out.insert("routes to where they begin");
            return Ok(());
        }
        wires.lead(route, (from, to), &mut self.places)
    }

    /// Adds the links that routes use, and switches where they meet without a router.
    fn add_wires(&mut self, wires: &Wires<'a>) -> Result<(), ImportError> {
        let used = |wire: &&routes::Wire<'_>| wire.used != [false; 2];
        let count = wires.all.iter().filter(used).count();
        self.require(0, count)?;
        self.notes.unused = wires.all.len() - count;
        self.notes.rounded += wires.rounded;
        for wire in wires.all.iter().filter(used) {
            self.ask()?;
            let [from, to] = wire.ends.map(|end| self.places.find(end));
            let (from, to) = (self.node_at(wire.element, from)?, self.node_at(wire.element, to)?);
            self.require(0, 2)?;
            let capacity = match wire.is_shared && wire.used == [true; 2] {
                true => self.notes.half(wire.element, "bandwidth", wire.capacity)?,
                false => wire.capacity,
            };
            for (is_used, ends) in wire.used.into_iter().zip([(from, to), (to, from)]) {
                if is_used {
                    self.add_links(ends, 1, capacity, wire.latency);
                }
            }
        }
        Ok(())
    }

    /// The node at a place, which is a new switch if it has none.
    fn node_at(&mut self, element: &Element, place: usize) -> Result<usize, ImportError> {
        if let Some(node) = self.places.node(place) {
            return Ok(node);
        }
        let numbers = self.joint_next..;
        let free = numbers.into_iter().find(|number| !self.ids.contains(&format!("joint{number}")));
        let number = free.unwrap_or(self.joint_next);
        let node = self.add_node(element, format!("joint{number}"), false)?;
        (self.joint_next, self.joints) = (number + 1, self.joints + 1);
        self.places.name(place, node);
        Ok(node)
    }

    fn finish(mut self) -> Content {
        let mut draft = TopologyDraft { links: self.links, ..TopologyDraft::default() };
        let mut ranks = 0;
        for node in self.nodes {
            if node.is_rank {
                ranks += 1;
                draft.add_compute(node.id);
            } else if node.has_link {
                draft.add_switch(node.id);
            } else {
                self.notes.left_out.insert("routers without links");
            }
        }
        let report = self.notes.report(&draft, ranks, self.joints);
        Content::Network(draft, report)
    }
}

#[cfg(test)]
mod tests;
