//! The first check: is this a well-formed transfer graph on this topology?
//!
//! It knows nothing of what the transfers carry.

use std::ops::Range;

use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};

use super::error::{RouteFault, StructureError, TransferFault};
use super::{CheckError, Stop};
use crate::collective::CollectiveKind;
use crate::forest::Action;
use crate::shares::ChunkLayout;
use crate::transfer::{Batch, Transfer, TransferGraph};

/// How far a tree reaches from its root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// Hops from rank to rank between the root and the rank with most of them.
    pub(super) depth: u32,
    /// Links between the root and the rank with most of them; of a hop on several routes, those of the longest.
    pub(super) links: u32,
}

impl Reach {
    /// As deep as the deeper one, over as many links as the one with more.
    fn or_further(self, other: Self) -> Self {
        Self { depth: self.depth.max(other.depth), links: self.links.max(other.links) }
    }
}

/// Checks everything that can be said without following data; returns how chunks are numbered, and how far every
/// batch's tree reaches.
///
/// * Sizes: the graph's ranks are the topology's, the root is one of them, the vector's chunks can be numbered.
/// * Routes: links that exist and join up, only switches between the ends.
/// * Batches: their transfers tile the table, their chunks lie in the vector, their hops form a tree towards or away
///   from the root, in an order in which data can flow.
/// * Transfers: two different ranks; carriers whose routes join exactly these and whose counts add up to the batch's;
///   dependencies that point backwards, so that there is no cycle.
///
/// O(links of all routes + transfers + carriers + dependencies).
pub(super) fn check_structure(
    topology: &Topology,
    graph: &TransferGraph,
    stop: Stop<'_>,
) -> Result<(ChunkLayout, Vec<Reach>), CheckError> {
    let layout = check_sizes(topology, graph)?;
    let routes = graph.routes.iter().enumerate().map(|(index, links)| {
        route_ends(topology, links).map_err(|source| StructureError::Route { route: index, source })
    });
    let route_ends = routes.collect::<Result<_, _>>()?;
    let reaches = Structure { graph, layout: &layout, route_ends }.check_batches(stop)?;
    Ok((layout, reaches))
}

/// How the chunks are numbered.
fn check_sizes(topology: &Topology, graph: &TransferGraph) -> Result<ChunkLayout, StructureError> {
    let rank_count = topology.rank_count();
    if graph.rank_count != rank_count {
        return Err(StructureError::RankCount { found: graph.rank_count, expected: rank_count });
    }
    if let Some(root) = graph.collective.root().filter(|root| root.number() >= rank_count) {
        return Err(StructureError::UnknownRoot { root: root.number(), rank_count });
    }
    Ok(graph.layout()?)
}

/// First and last node of a route, and its number of links.
pub(super) type RouteEnds = (NodeIndex, NodeIndex, u32);

/// Where a route starts and ends, if it is one.
pub(super) fn route_ends(topology: &Topology, links: &[LinkIndex]) -> Result<RouteEnds, RouteFault> {
    let mut ends = None;
    for (position, &index) in links.iter().enumerate() {
        let link_count = topology.links().len();
        let link = topology.links().get(index.index());
        let link = link.ok_or(RouteFault::UnknownLink { position, link: index.number(), link_count })?;
        let start = match ends {
            None => link.from,
            Some((_, reached)) if reached != link.from => return Err(RouteFault::Gap { position }),
            Some((_, reached)) if topology.rank_of(reached).is_some() => {
                return Err(RouteFault::ThroughRank { position, rank: reached.number() });
            }
            Some((start, _)) => start,
        };
        ends = Some((start, link.to));
    }
    let (start, end) = ends.ok_or(RouteFault::Empty)?;
    Ok((start, end, u32::try_from(links.len()).unwrap_or(u32::MAX)))
}

struct Structure<'a> {
    graph: &'a TransferGraph,
    layout: &'a ChunkLayout,
    /// By route.
    route_ends: Vec<RouteEnds>,
}

impl Structure<'_> {
    fn check_batches(&self, stop: Stop<'_>) -> Result<Vec<Reach>, CheckError> {
        let mut tree = TreeWalk::new(self.graph.rank_count);
        let mut reaches = Vec::with_capacity(self.graph.batches.len());
        let mut next = 0_u32;
        for (index, batch) in self.graph.batches.iter().enumerate() {
            if stop() {
                return Err(CheckError::Stopped);
            }
            let (start, end) = (batch.transfers.start, batch.transfers.end);
            if start != next || end <= start || end as usize > self.graph.transfers.len() {
                return Err(StructureError::BatchTransfers { batch: index, start, end, expected: next }.into());
            }
            next = end;
            self.check_batch(index, batch)?;
            reaches.push(self.check_transfers(batch, &mut tree)?);
        }
        match next as usize == self.graph.transfers.len() {
            true => Ok(reaches),
            false => Err(StructureError::NoBatch { transfer: next }.into()),
        }
    }

    fn check_batch(&self, index: usize, batch: &Batch) -> Result<(), StructureError> {
        if batch.root.number() >= self.graph.rank_count {
            return Err(StructureError::BatchRoot { batch: index, root: batch.root.number() });
        }
        let (first, count, total) = (batch.chunk_first, batch.chunk_count, self.layout.total());
        let end = first.checked_add(count).filter(|&end| count > 0 && end <= total);
        let end = end.ok_or(StructureError::ChunkRange { batch: index, first, count, total })?;
        let share = self.layout.share_of(first);
        let limit = match self.graph.collective.kind() {
            CollectiveKind::AllToAll => self.layout.chunks_between(share, self.layout.destination_of(first)).end,
            _ => self.layout.chunks_of(share).end,
        };
        match end <= limit {
            true => Ok(()),
            false => Err(StructureError::AcrossShares { batch: index, first, limit }),
        }
    }

    /// Checks a batch's transfers one by one and as a tree; returns how far it reaches.
    fn check_transfers(&self, batch: &Batch, tree: &mut TreeWalk) -> Result<Reach, StructureError> {
        tree.start(batch.root);
        let transfers = || batch.transfers.clone().zip(self.graph.transfers_of(batch));
        let at = |index: u32, transfer: &Transfer, source: TransferFault| StructureError::Transfer {
            transfer: index,
            from: transfer.from.number(),
            to: transfer.to.number(),
            source,
        };
        // Transfers in a row often share their dependencies, and what is earlier than the first is earlier than all.
        let mut known = 0..0;
        for (index, transfer) in transfers() {
            self.check_transfer(batch, transfer)
                .and_then(|links| {
                    match std::mem::replace(&mut known, transfer.dependencies.clone()) {
                        same if same == transfer.dependencies => {}
                        _ => self.check_dependencies(index, transfer)?,
                    }
                    tree.step(batch.action, transfer, links)
                })
                .map_err(|fault| at(index, transfer, fault))?;
        }
        if batch.action == Action::Reduce {
            for (index, transfer) in transfers() {
                tree.require_sent(transfer.to).map_err(|fault| at(index, transfer, fault))?;
            }
        }
        Ok(tree.reach)
    }

    /// Returns the number of links of the longest route.
    fn check_transfer(&self, batch: &Batch, transfer: &Transfer) -> Result<u32, TransferFault> {
        let unknown = |rank: &Rank| rank.number() >= self.graph.rank_count;
        if let Some(rank) = [transfer.from, transfer.to].into_iter().find(unknown) {
            return Err(TransferFault::UnknownRank { rank: rank.number() });
        }
        if transfer.from == transfer.to {
            return Err(TransferFault::ToItself);
        }
        self.check_carriers(batch, transfer)
    }

    fn check_dependencies(&self, index: u32, transfer: &Transfer) -> Result<(), TransferFault> {
        if !is_within(&transfer.dependencies, self.graph.dependencies.len()) {
            return Err(TransferFault::DependencyRange);
        }
        match self.graph.dependencies_of(transfer).iter().find(|&&dependency| dependency >= index) {
            Some(&dependency) => Err(TransferFault::ForwardDependency { dependency }),
            None => Ok(()),
        }
    }

    /// Returns the number of links of the longest route.
    fn check_carriers(&self, batch: &Batch, transfer: &Transfer) -> Result<u32, TransferFault> {
        if !is_within(&transfer.carriers, self.graph.carriers.len()) {
            return Err(TransferFault::CarrierRange);
        }
        let (mut sum, mut links_max) = (0_u128, 0);
        for carrier in self.graph.carriers_of(transfer) {
            let ends = self.route_ends.get(carrier.route.index());
            let &(start, end, links) = ends.ok_or(TransferFault::UnknownRoute { route: carrier.route.number() })?;
            if (start, end) != (transfer.from.node(), transfer.to.node()) {
                let route = carrier.route.number();
                return Err(TransferFault::RouteEnds { route, start: start.number(), end: end.number() });
            }
            if carrier.chunk_count == 0 {
                return Err(TransferFault::EmptyCarrier { route: carrier.route.number() });
            }
            sum += u128::from(carrier.chunk_count);
            links_max = links.max(links_max);
        }
        match sum == u128::from(batch.chunk_count) {
            true => Ok(links_max),
            false => Err(TransferFault::CarrierSum { found: sum, expected: batch.chunk_count }),
        }
    }
}

/// Whether a range runs forward and ends inside a table.
fn is_within(range: &Range<u32>, length: usize) -> bool {
    range.start <= range.end && range.end as usize <= length
}

/// Follows the hops of one batch at a time and makes sure that they form a tree.
struct TreeWalk {
    batch: u32,
    ranks: Vec<RankWalk>,
    root: Rank,
    reach: Reach,
}

/// What the batch at hand has done at one rank.
#[derive(Clone, Copy, Default)]
struct RankWalk {
    batch: u32,
    /// From the root (copy) or from the farthest rank below (reduce).
    reach: Reach,
    /// It has received (copy) or sent (reduce).
    done: bool,
}

impl TreeWalk {
    fn new(rank_count: u32) -> Self {
        let ranks = vec![RankWalk::default(); rank_count as usize];
        Self { batch: 0, ranks, root: Rank::new(0), reach: Reach::default() }
    }

    fn start(&mut self, root: Rank) {
        self.batch += 1;
        self.root = root;
        self.reach = Reach::default();
    }

    /// The state of an existing rank, wiped if another batch used it last.
    fn rank(&mut self, rank: Rank) -> &mut RankWalk {
        let walk = &mut self.ranks[rank.index()];
        if walk.batch != self.batch {
            *walk = RankWalk { batch: self.batch, ..RankWalk::default() };
        }
        walk
    }

    /// One more hop, over so many links.
    fn step(&mut self, action: Action, transfer: &Transfer, links: u32) -> Result<(), TransferFault> {
        let (from, to) = (*self.rank(transfer.from), *self.rank(transfer.to));
        let (from_root, to_root) = (transfer.from == self.root, transfer.to == self.root);
        let reach = Reach { depth: from.reach.depth + 1, links: from.reach.links.saturating_add(links) };
        match action {
            Action::Copy if !from.done && !from_root => return Err(TransferFault::SenderNotReached),
            Action::Copy if to.done || to_root => return Err(TransferFault::ReachedTwice),
            Action::Copy => *self.rank(transfer.to) = RankWalk { reach, done: true, ..to },
            Action::Reduce if from.done || from_root => return Err(TransferFault::SendsTwice),
            Action::Reduce if to.done => return Err(TransferFault::ReceivesLate),
            Action::Reduce => {
                self.rank(transfer.from).done = true;
                self.rank(transfer.to).reach = to.reach.or_further(reach);
            }
        }
        self.reach = self.reach.or_further(reach);
        Ok(())
    }

    /// In a reduce tree, whatever a rank received must have gone on, until it is at the root.
    fn require_sent(&mut self, receiver: Rank) -> Result<(), TransferFault> {
        match receiver == self.root || self.rank(receiver).done {
            true => Ok(()),
            false => Err(TransferFault::EndsEarly),
        }
    }
}
