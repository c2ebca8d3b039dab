//! Links from rank to rank, with the network cards at their ends.
//!
//! A card is a switch or a forwarding device with a single rank beside it. Whatever a rank sends over its card passes
//! the link between both, and so does what it receives. So each link between the cards of two ranks is a link between
//! the ranks, and the links between ranks and cards limit what several of them carry together: rates of hosts.

use canopy_optimize::{BfbError, BfbGraph};
use canopy_schedule::{Action, RouteTable};
use canopy_topology::{LinkIndex, NodeIndex, NodeKind, Topology};

use super::BFB;
use crate::error::SynthesisError;

/// Links from rank to rank.
pub(super) struct Wires {
    /// Without cards, those of the topology, by index.
    pub(super) all: Vec<Wire>,
    hosts: Option<Hosts>,
}

/// A link from rank to rank.
pub(super) struct Wire {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Without that of hosts, in bytes per second.
    pub(super) capacity: u64,
    /// Of all links that it passes.
    pub(super) latency_ns: u64,
    route: Vec<LinkIndex>,
}

/// By rank, the rates to and from its card in bytes per second; 0 without a card.
struct Hosts {
    send: Vec<u64>,
    receive: Vec<u64>,
}

/// The links between a card and its rank.
#[derive(Clone, Copy, Default)]
struct Ends {
    from_rank: Option<LinkIndex>,
    to_rank: Option<LinkIndex>,
}

impl Wires {
    /// The wires of a network. O(nodes + links).
    ///
    /// # Errors
    /// [`SynthesisError::NotDirect`]: a switch that is no card; a rank that sends, or receives, over a card
    /// and other links.
    pub(super) fn of(topology: &Topology) -> Result<Self, SynthesisError> {
        let owners = owners(topology)?;
        let ends = ends(topology)?;
        let ranks = topology.rank_count() as usize;
        let (mut exits, mut entries) = (vec![None; ranks], vec![None; ranks]);
        let mut all = Vec::with_capacity(topology.links().len());
        for (index, link) in (0..).map(LinkIndex::new).zip(topology.links()) {
            let (from, to) = (owners[link.from.index()], owners[link.to.index()]);
            let (exit, entry) = (ends[link.from.index()].from_rank, ends[link.to.index()].to_rank);
            let is_card = |node| topology.rank_of(node).is_none();
            // What stays on a card, or cannot reach or leave one.
            if from == to || is_card(link.from) != exit.is_some() || is_card(link.to) != entry.is_some() {
                continue;
            }
            for (used, end, rank) in [(&mut exits[from as usize], exit, from), (&mut entries[to as usize], entry, to)] {
                if *used.get_or_insert(end) != end {
                    let what = "has several cards, or a card and other links";
                    return Err(not_direct(topology, NodeIndex::new(rank), what));
                }
            }
            let route: Vec<LinkIndex> = exit.into_iter().chain([index]).chain(entry).collect();
            let latencies = route.iter().map(|&link| topology.link(link).latency.nanos());
            let latency_ns = latencies.fold(0, u64::saturating_add);
            all.push(Wire { from, to, capacity: link.capacity.bytes_per_sec(), latency_ns, route });
        }
        let has_cards = topology.nodes().len() > ranks;
        let rates = |links: Vec<Option<Option<LinkIndex>>>| {
            let rate = |link: Option<Option<LinkIndex>>| link.flatten().map(|link| topology.link(link).capacity);
            links.into_iter().map(|link| rate(link).map_or(0, |rate| rate.bytes_per_sec())).collect()
        };
        Ok(Self { all, hosts: has_cards.then(|| Hosts { send: rates(exits), receive: rates(entries) }) })
    }

    /// Whether ranks are behind cards.
    pub(super) const fn have_hosts(&self) -> bool {
        self.hosts.is_some()
    }

    /// The rates of hosts on a graph of the wires, or of the wires turned around, which sums take.
    pub(super) fn limit(&self, graph: BfbGraph, action: Action) -> Result<BfbGraph, BfbError> {
        match (&self.hosts, action) {
            (None, _) => Ok(graph),
            (Some(Hosts { send, receive }), Action::Copy) => graph.with_hosts(send, receive),
            (Some(Hosts { send, receive }), Action::Reduce) => graph.with_hosts(receive, send),
        }
    }

    /// The route of each wire, by its number.
    pub(super) fn routes(&self) -> RouteTable {
        let mut routes = RouteTable::default();
        self.all.iter().for_each(|wire| {
            routes.push(&wire.route);
        });
        routes
    }
}

/// Whether `bfb` plans for a network: ranks joined by links, each rank behind network cards of its own or none. O(links).
pub fn has_only_cards(topology: &Topology) -> bool {
    Wires::of(topology).is_ok()
}

/// By node, the rank that it is or that is beside it.
fn owners(topology: &Topology) -> Result<Vec<u32>, SynthesisError> {
    let mut owners: Vec<Option<u32>> = vec![None; topology.nodes().len()];
    topology.ranks().for_each(|rank| owners[rank.index()] = Some(rank.number()));
    for link in topology.links() {
        for (node, beside) in [(link.from, link.to), (link.to, link.from)] {
            let Some(rank) = topology.rank_of(beside).filter(|_| topology.rank_of(node).is_none()) else { continue };
            if *owners[node.index()].get_or_insert(rank.number()) != rank.number() {
                return Err(no_card(topology, node));
            }
        }
    }
    let owner = |(index, owner): (u32, Option<u32>)| owner.ok_or_else(|| no_card(topology, NodeIndex::new(index)));
    (0..).zip(owners).map(owner).collect()
}

/// By node, the links that join a card to its rank; none for ranks.
fn ends(topology: &Topology) -> Result<Vec<Ends>, SynthesisError> {
    let mut ends = vec![Ends::default(); topology.nodes().len()];
    for (index, link) in (0..).map(LinkIndex::new).zip(topology.links()) {
        let (from, to) = (topology.rank_of(link.from), topology.rank_of(link.to));
        let (node, end) = match (from, to) {
            (Some(_), None) => (link.to, &mut ends[link.to.index()].from_rank),
            (None, Some(_)) => (link.from, &mut ends[link.from.index()].to_rank),
            _ => continue,
        };
        if end.replace(index).is_some() {
            return Err(not_direct(topology, node, "is joined to its rank by links of different latencies"));
        }
    }
    Ok(ends)
}

/// A switch, or a device that forwards, with several ranks beside it or none.
fn no_card(topology: &Topology, node: NodeIndex) -> SynthesisError {
    let forwards = topology.node(node).kind == NodeKind::Forwarder;
    not_direct(topology, node, if forwards { "only forwards data" } else { "is a switch" })
}

fn not_direct(topology: &Topology, node: NodeIndex, what: &'static str) -> SynthesisError {
    SynthesisError::NotDirect { algorithm: BFB.name, node: topology.node(node).id.clone(), what }
}
