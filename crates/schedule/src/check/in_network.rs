//! What switches that multicast or aggregate save: how much each link carries if they do.
//!
//! A switch that multicasts and has seen a chunk on its way down a tree can feed all that the tree feeds through it: what
//! later hops would bring to it again is redundant. A switch that aggregates can add up all that passes it on the way
//! up a tree: only what leaves it for the last time has to. Nothing of this changes what a schedule does: a runtime that
//! can not use such switches carries it out transfer by transfer.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use canopy_topology::{LinkIndex, NodeIndex, NodeKind, Rate, Ratio, Topology};

use super::error::LoadError;
use super::load::{busiest, link_loads};
use super::{CheckError, Stop};
use crate::forest::{Action, Carrier};
use crate::schedule::Flow;
use crate::shares::{ChunkLayout, ChunkSize};
use crate::transfer::{Batch, Transfer, TransferGraph};

/// Most parts of one batch whose chunks travel differently; a batch of more is counted as if nothing were saved.
const PARTS_MAX: usize = 64;

/// Loads of a graph on a network with switches that multicast or aggregate, without and with their doing so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InNetwork {
    /// Bytes over all links for each byte of *size*, if every transfer travels by itself.
    pub traffic_without: Ratio,
    /// The same if switches multicast and aggregate whatever they can.
    pub traffic: Ratio,
    /// Size ÷ time in the bandwidth limit if they do; never less than [`Verdict::algbw`](super::Verdict::algbw).
    pub algbw: Rate,
}

impl InNetwork {
    /// The part of the traffic that is saved, from 0 to below 1.
    pub fn saved(&self) -> Ratio {
        self.traffic.missing_of(&self.traffic_without)
    }
}

/// Weighs a graph whose structure and meaning are right; `None` where no switch does more than forward.
///
/// Down a tree, in the order of its hops, each counts from the last multicasting switch on its route that an earlier one
/// has passed; up a tree, in the reverse order, each counts up to the first aggregating switch on its route that a later
/// one passes. Every rank is still fed once, or adds its part once: the route of the hop that does so ends, or begins,
/// there. Only capable switches are relied on, and each link is counted exactly.
///
/// * **Source.** Zhao 2026, pruning for in-network multicast, for whole trees on their routes.
/// * **Cost.** O(links of the routes of all transfers + dependencies).
pub(super) fn weigh(
    topology: &Topology,
    graph: &TransferGraph,
    layout: &ChunkLayout,
    stop: Stop<'_>,
) -> Result<Option<InNetwork>, CheckError> {
    if !topology.has_capable_switch() {
        return Ok(None);
    }
    let without = link_loads(topology, graph)?;
    let mut pruned = Pruned::new(topology);
    let waited_for = waited_for_outside(graph);
    for batch in &graph.batches {
        if stop() {
            return Err(CheckError::Stopped);
        }
        pruned.add_batch(graph, batch, is_tree_alone(graph, batch, &waited_for))?;
    }
    Ok(Some(weighed(topology, &without, &pruned.loads, layout.size())?))
}

/// [`weigh`] for a flow that has been found right, whose links carry so much without switches that multicast. Each path
/// is a tree of its own: it saves where it comes by the same switch again. O(links of the routes of all hops).
pub(super) fn weigh_flow(
    topology: &Topology,
    flow: &Flow,
    without: &[u128],
    size: ChunkSize,
    stop: Stop<'_>,
) -> Result<Option<InNetwork>, CheckError> {
    if !topology.has_capable_switch() {
        return Ok(None);
    }
    let mut pruned = Pruned::new(topology);
    for path in &flow.paths {
        if stop() {
            return Err(CheckError::Stopped);
        }
        pruned.seen.clear();
        for links in flow.hops_of(path).iter().filter_map(|&route| flow.routes.get(route)) {
            pruned.copy_along(links, path.chunk_count)?;
        }
    }
    Ok(Some(weighed(topology, without, &pruned.loads, size)?))
}

/// What follows from the loads of all links without and with what switches can do.
fn weighed(topology: &Topology, without: &[u128], with: &[u128], size: ChunkSize) -> Result<InNetwork, LoadError> {
    let traffic = |loads: &[u128]| -> Result<Ratio, LoadError> {
        let sum = loads.iter().try_fold(0_u128, |sum, &load| sum.checked_add(load));
        Ok(size.ratio(sum.ok_or(LoadError::TooMuchTraffic)?))
    };
    let (algbw, _) = busiest(topology, with, size)?;
    Ok(InNetwork { traffic_without: traffic(without)?, traffic: traffic(with)?, algbw })
}

/// By transfer: whether one of another batch waits for it.
fn waited_for_outside(graph: &TransferGraph) -> Vec<bool> {
    let mut waited_for = vec![false; graph.transfers.len()];
    for batch in &graph.batches {
        for &before in graph.transfers_of(batch).iter().flat_map(|transfer| graph.dependencies_of(transfer)) {
            waited_for[before as usize] |= !batch.transfers.contains(&before);
        }
    }
    waited_for
}

/// Whether nothing but the root of a batch's tree has to do with other batches, so that between root and ranks chunks
/// may come by other ways and earlier.
///
/// * Copy: hops out of the root all wait for the same, the others for hops of the tree alone.
/// * Reduce: hops wait for hops of the tree alone, and other batches wait for what the root takes in alone.
fn is_tree_alone(graph: &TransferGraph, batch: &Batch, waited_for_outside: &[bool]) -> bool {
    let within =
        |transfer: &Transfer| graph.dependencies_of(transfer).iter().all(|before| batch.transfers.contains(before));
    let transfers = graph.transfers_of(batch);
    match batch.action {
        Action::Copy => {
            let mut of_root = transfers.iter().filter(|transfer| transfer.from == batch.root);
            let first = of_root.next().map(|transfer| graph.dependencies_of(transfer));
            of_root.all(|transfer| Some(graph.dependencies_of(transfer)) == first)
                && transfers.iter().all(|transfer| transfer.from == batch.root || within(transfer))
        }
        Action::Reduce => transfers.iter().zip(batch.transfers.clone()).all(|(transfer, index)| {
            within(transfer) && (transfer.to == batch.root || !waited_for_outside[index as usize])
        }),
    }
}

/// Chunks over each link as switches multicast and aggregate.
struct Pruned<'a> {
    topology: &'a Topology,
    loads: Vec<u128>,
    /// Capable switches that the tree at hand has passed.
    seen: HashSet<NodeIndex>,
}

impl<'a> Pruned<'a> {
    fn new(topology: &'a Topology) -> Self {
        Self { topology, loads: vec![0; topology.links().len()], seen: HashSet::new() }
    }

    /// Adds a batch; chunks that travel alike on all hops are looked at together.
    fn add_batch(&mut self, graph: &TransferGraph, batch: &Batch, is_alone: bool) -> Result<(), LoadError> {
        let mut ends: BTreeSet<u64> = BTreeSet::new();
        for transfer in graph.transfers_of(batch) {
            let mut end = 0;
            for carrier in graph.carriers_of(transfer) {
                end += carrier.chunk_count;
                ends.insert(end);
            }
            if ends.len() > PARTS_MAX {
                break;
            }
        }
        if !is_alone || ends.len() > PARTS_MAX {
            for carrier in graph.transfers_of(batch).iter().flat_map(|transfer| graph.carriers_of(transfer)) {
                let links = graph.routes.get(carrier.route).expect("the structure was checked");
                self.add_links(links, carrier.chunk_count)?;
            }
            return Ok(());
        }
        let mut start = 0;
        for end in ends {
            self.seen.clear();
            self.add_part(graph, batch, start..end)?;
            start = end;
        }
        Ok(())
    }

    /// Adds chunks, counted from the first of the batch, that travel alike.
    fn add_part(&mut self, graph: &TransferGraph, batch: &Batch, chunks: Range<u64>) -> Result<(), LoadError> {
        let count = chunks.end - chunks.start;
        let routes = graph
            .transfers_of(batch)
            .iter()
            .filter_map(|transfer| graph.routes.get(route_at(graph.carriers_of(transfer), chunks.start)?.route));
        match batch.action {
            Action::Copy => {
                for links in routes {
                    self.copy_along(links, count)?;
                }
            }
            Action::Reduce => {
                for links in routes.rev() {
                    let to = links.iter().position(|&link| self.seen.contains(&self.topology.link(link).from));
                    let links = &links[..to.unwrap_or(links.len())];
                    self.see(links.iter().map(|&link| self.topology.link(link).from), batch.action);
                    self.add_links(links, count)?;
                }
            }
        }
        Ok(())
    }

    /// Adds chunks on a route of a tree that goes down, from the last switch on that holds them already.
    fn copy_along(&mut self, links: &[LinkIndex], count: u64) -> Result<(), LoadError> {
        let from = links.iter().rposition(|&link| self.seen.contains(&self.topology.link(link).to));
        let links = &links[from.map_or(0, |position| position + 1)..];
        self.see(links.iter().map(|&link| self.topology.link(link).to), Action::Copy);
        self.add_links(links, count)
    }

    fn see(&mut self, nodes: impl Iterator<Item = NodeIndex>, action: Action) {
        let topology = self.topology;
        self.seen.extend(nodes.filter(|&node| is_capable(topology, node, action)));
    }

    fn add_links(&mut self, links: &[LinkIndex], chunk_count: u64) -> Result<(), LoadError> {
        for link in links {
            let load = &mut self.loads[link.index()];
            *load = load.checked_add(chunk_count.into()).ok_or(LoadError::Overflow { link: link.number() })?;
        }
        Ok(())
    }
}

/// The carrier of a chunk of a transfer, counted from the first of its batch.
fn route_at(carriers: &[Carrier], chunk: u64) -> Option<&Carrier> {
    let mut end = 0;
    carriers.iter().find(|carrier| {
        end += carrier.chunk_count;
        chunk < end
    })
}

/// Whether a node does in the network what this action needs.
fn is_capable(topology: &Topology, node: NodeIndex, action: Action) -> bool {
    match (topology.node(node).kind, action) {
        (NodeKind::Switch { multicast, .. }, Action::Copy) => multicast,
        (NodeKind::Switch { aggregate, .. }, Action::Reduce) => aggregate,
        (NodeKind::Compute | NodeKind::Forwarder, _) => false,
    }
}
