//! What switches that multicast or aggregate save: how much each link carries if they do.
//!
//! Where several transfers of one tree leave one rank through a switch that multicasts, the rank needs to send their
//! chunks only once up to there; where they enter one rank through a switch that aggregates, it needs to take in their
//! sum only once from there. Nothing of this changes what a schedule does: a runtime that can not use such switches
//! carries it out transfer by transfer.

use std::collections::{BTreeSet, HashMap};

use canopy_topology::{LinkIndex, NodeIndex, NodeKind, Rank, Rate, Ratio, Topology};

use super::error::LoadError;
use super::load::{busiest, link_loads, size};
use super::{CheckError, Stop};
use crate::route::RouteIndex;
use crate::schedule::Action;
use crate::shares::ChunkLayout;
use crate::transfer::{Batch, Transfer, TransferGraph};

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
/// Transfers of one batch that leave one rank (copy), or enter one (reduce), are merged: up to the last switch on
/// the way to where their routes part that multicasts, or from the first one on the way from where they meet that
/// aggregates, their chunks count once. Only capable switches are relied on, and each link is counted exactly.
///
/// Merged transfers start together, so each waits for what all of them wait for. Where that would make transfers wait
/// for each other, which schedules made of trees never do, nothing is merged.
///
/// O(links of the routes of all transfers + dependencies).
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
    let (size, hubs) = (size(graph, layout), Hubs::of(graph));
    let with = if hubs.can_merge(graph) { merged_loads(topology, graph, stop)? } else { without.clone() };
    let traffic = |loads: &[u128]| -> Result<Ratio, LoadError> {
        let sum = loads.iter().try_fold(0_u128, |sum, &load| sum.checked_add(load));
        Ok(Ratio::new(sum.ok_or(LoadError::TooMuchTraffic)?, size).expect("a graph moves some chunks"))
    };
    let (algbw, _) = busiest(topology, &with, size)?;
    Ok(Some(InNetwork { traffic_without: traffic(&without)?, traffic: traffic(&with)?, algbw }))
}

/// The rank whose link the transfers of a batch can share.
const fn hub(batch: &Batch, transfer: &Transfer) -> Rank {
    match batch.action {
        Action::Copy => transfer.from,
        Action::Reduce => transfer.to,
    }
}

/// Which transfers would be merged.
struct Hubs {
    /// By transfer, the first one of its batch with the same hub.
    group_of: Vec<u32>,
}

impl Hubs {
    fn of(graph: &TransferGraph) -> Self {
        let mut group_of = Vec::with_capacity(graph.transfers.len());
        let mut first: Vec<Option<u32>> = vec![None; graph.rank_count as usize];
        for batch in &graph.batches {
            for (transfer, index) in graph.transfers_of(batch).iter().zip(batch.transfers.clone()) {
                group_of.push(*first[hub(batch, transfer).index()].get_or_insert(index));
            }
            for transfer in graph.transfers_of(batch) {
                first[hub(batch, transfer).index()] = None;
            }
        }
        Self { group_of }
    }

    /// Whether an order is left in which groups can run as one.
    fn can_merge(&self, graph: &TransferGraph) -> bool {
        // Groups come by the first of them; an edge for each wait of one group for another.
        let mut waits: Vec<(u32, u32)> = Vec::new();
        let mut latest = (0..0, 0);
        for (transfer, &group) in graph.transfers.iter().zip(&self.group_of) {
            if latest == (transfer.dependencies.clone(), group) {
                continue;
            }
            latest = (transfer.dependencies.clone(), group);
            waits.extend(graph.dependencies_of(transfer).iter().map(|&before| (self.group_of[before as usize], group)));
        }
        waits.sort_unstable();
        waits.dedup();
        let mut open = vec![0_u32; self.group_of.len()];
        waits.iter().for_each(|&(_, group)| open[group as usize] += 1);
        let is_group = |&group: &u32| self.group_of[group as usize] == group;
        let groups = (0_u32..).take(self.group_of.len()).filter(is_group);
        let mut ready: Vec<u32> = groups.clone().filter(|&group| open[group as usize] == 0).collect();
        let mut done = 0;
        while let Some(group) = ready.pop() {
            done += 1;
            let start = waits.partition_point(|&(before, _)| before < group);
            for &(_, after) in waits[start..].iter().take_while(|&&(before, _)| before == group) {
                open[after as usize] -= 1;
                if open[after as usize] == 0 {
                    ready.push(after);
                }
            }
        }
        done == groups.count()
    }
}

/// Chunks over each link, those of merged transfers once.
fn merged_loads(topology: &Topology, graph: &TransferGraph, stop: Stop<'_>) -> Result<Vec<u128>, CheckError> {
    let mut loads = Loads { topology, graph, loads: vec![0; topology.links().len()] };
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); graph.rank_count as usize];
    for batch in &graph.batches {
        if stop() {
            return Err(CheckError::Stopped);
        }
        let mut hubs = BTreeSet::new();
        for (transfer, index) in graph.transfers_of(batch).iter().zip(batch.transfers.clone()) {
            let hub = hub(batch, transfer);
            members[hub.index()].push(index);
            hubs.insert(hub);
        }
        for hub in hubs {
            loads.add_group(batch, &members[hub.index()])?;
            members[hub.index()].clear();
        }
    }
    Ok(loads.loads)
}

struct Loads<'a> {
    topology: &'a Topology,
    graph: &'a TransferGraph,
    loads: Vec<u128>,
}

impl Loads<'_> {
    /// Adds transfers of a batch that share their hub. Where chunks of one travel apart, those that fare alike are
    /// looked at together.
    fn add_group(&mut self, batch: &Batch, members: &[u32]) -> Result<(), LoadError> {
        let carriers = |&member: &u32| self.graph.carriers_of(&self.graph.transfers[member as usize]);
        let mut ends: BTreeSet<u64> = BTreeSet::new();
        for member in members {
            let mut end = 0;
            for carrier in carriers(member) {
                end += carrier.chunk_count;
                ends.insert(end);
            }
        }
        let mut start = 0;
        for end in ends {
            let routes: Vec<RouteIndex> =
                members.iter().filter_map(|member| route_at(carriers(member), start)).collect();
            self.add_routes(batch.action, &routes, end - start)?;
            start = end;
        }
        Ok(())
    }

    /// Adds chunks that travel on all of these routes, which start or end at one rank.
    fn add_routes(&mut self, action: Action, routes: &[RouteIndex], chunk_count: u64) -> Result<(), LoadError> {
        let mut branches = Branches::default();
        for &route in routes {
            let links = self.graph.routes.get(route).expect("the structure was checked");
            match action {
                Action::Copy => branches.add(links.iter().copied()),
                Action::Reduce => branches.add(links.iter().rev().copied()),
            }
        }
        let merges = |link: LinkIndex| {
            let link = self.topology.link(link);
            match action {
                Action::Copy => is_capable(self.topology, link.to, action),
                Action::Reduce => is_capable(self.topology, link.from, action),
            }
        };
        for (link, copies) in branches.copies(merges) {
            let load = &mut self.loads[link.index()];
            let added = u128::from(copies).checked_mul(chunk_count.into());
            let sum = added.and_then(|added| load.checked_add(added));
            *load = sum.ok_or(LoadError::Overflow { link: link.number() })?;
        }
        Ok(())
    }
}

/// The route that a chunk of a transfer takes, counted from the first of its batch.
fn route_at(carriers: &[crate::schedule::Carrier], chunk: u64) -> Option<RouteIndex> {
    let mut end = 0;
    carriers.iter().find_map(|carrier| {
        end += carrier.chunk_count;
        (chunk < end).then_some(carrier.route)
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

/// Routes from one rank, merged as far as they are alike.
#[derive(Default)]
struct Branches {
    /// Each after the one it continues.
    branches: Vec<Branch>,
    known: HashMap<(Option<usize>, LinkIndex), usize>,
}

struct Branch {
    link: LinkIndex,
    /// What it continues; `None` at the rank.
    before: Option<usize>,
    /// Whether a route ends with it.
    ends: u64,
}

impl Branches {
    fn add(&mut self, links: impl Iterator<Item = LinkIndex>) {
        let mut before = None;
        for link in links {
            let next = self.branches.len();
            let branch = *self.known.entry((before, link)).or_insert(next);
            if branch == next {
                self.branches.push(Branch { link, before, ends: 0 });
            }
            before = Some(branch);
        }
        if let Some(last) = before {
            self.branches[last].ends += 1;
        }
    }

    /// How often each link is used: once before a node that merges, else once for each route that goes on alone.
    fn copies(&self, merges: impl Fn(LinkIndex) -> bool) -> Vec<(LinkIndex, u64)> {
        let mut copies: Vec<u64> = self.branches.iter().map(|branch| branch.ends).collect();
        for (position, branch) in self.branches.iter().enumerate().rev() {
            if merges(branch.link) {
                copies[position] = copies[position].min(1);
            }
            if let Some(before) = branch.before {
                copies[before] += copies[position];
            }
        }
        self.branches.iter().map(|branch| branch.link).zip(copies).collect()
    }
}
