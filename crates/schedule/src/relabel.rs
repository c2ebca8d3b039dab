//! Renumbers the ranks, nodes and links of a schedule and its proof.

use canopy_topology::{LinkIndex, NodeIndex, Rank};
use rayon::prelude::*;

use crate::bound::Certificate;
use crate::collective::{Collective, CollectiveKind};
use crate::forest::{Forest, Hop, Phase, Tree};
use crate::route::RouteTable;
use crate::schedule::{Flow, Path, Schedule, Send, Shape, Steps};
use crate::shares::{ChunkLayout, Shares};
use crate::stages::{SeatError, Stages};
use crate::weights_error::SharesError;

/// Why a renumbering is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RelabelError {
    #[error("rank {from} cannot become rank {to}, which is taken or not below {rank_count}; give a permutation")]
    NotAPermutation { from: usize, to: u32, rank_count: usize },
    #[error("root {root} is not among the {rank_count} renamed ranks")]
    UnknownRoot { root: u32, rank_count: usize },
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error(transparent)]
    Seats(#[from] SeatError),
}

/// The schedule for a topology in which rank `r` is `ranks[r]` and link `l` is `links[l]`, such as an isomorphic one.
///
/// Shares, blocks and the root move with their ranks; trees and paths are put into the order that their shapes ask for, and
/// the tables into theirs. Rates and depths stay, but for exchanges in stages, whose ways follow from the order of nodes.
///
/// * **In.** A permutation of the ranks; for links any map (the checker refuses routes that do not join up).
/// * **Errors.** [`RelabelError`].
/// * **Cost.** O(size of the schedule · log of it).
pub fn relabelled(schedule: &Schedule, ranks: &[Rank], links: &[LinkIndex]) -> Result<Schedule, RelabelError> {
    let rank_count = ranks.len();
    let mut taken = vec![false; rank_count];
    for (from, to) in ranks.iter().enumerate() {
        match taken.get_mut(to.index()) {
            Some(taken) if !*taken => *taken = true,
            _ => return Err(RelabelError::NotAPermutation { from, to: to.number(), rank_count }),
        }
    }
    let count = u32::try_from(rank_count).expect("a permutation of 32-bit numbers");
    let root = schedule.collective.root();
    let unknown = |root: Rank| RelabelError::UnknownRoot { root: root.number(), rank_count };
    let root = root.map(|root| ranks.get(root.index()).copied().ok_or_else(|| unknown(root))).transpose()?;
    let collective = Collective::new(schedule.collective.kind(), root, count).expect("a renamed rank as root, or none");
    let shares = match &schedule.shares {
        Shares::Equal => Shares::Equal,
        Shares::Weighted(weights) => {
            let mut moved = vec![0; rank_count];
            for (&rank, &weight) in ranks.iter().zip(weights) {
                moved[rank.index()] = weight;
            }
            Shares::Weighted(moved)
        }
        Shares::Blocks(blocks) if blocks.rank_count() == count => Shares::Blocks(blocks.relabelled(ranks)),
        // For the layout to refuse.
        Shares::Blocks(blocks) => Shares::Blocks(blocks.clone()),
    };
    let k = schedule.shape.chunks_per_share();
    let before = ChunkLayout::new(schedule.collective, count, k, &schedule.shares)?;
    let after = ChunkLayout::new(collective, count, k, &shares)?;
    let names = Names { kind: collective.kind(), ranks, before, after };
    let renamed = |routes: &RouteTable| {
        let mut renamed = RouteTable::default();
        for route in routes.iter() {
            renamed.push(&route.iter().map(|&link| image(links, link)).collect::<Vec<_>>());
        }
        renamed
    };
    let shape = match &schedule.shape {
        Shape::Forest(forest) => Shape::Forest(Forest { routes: renamed(&forest.routes), ..names.forest(forest) }),
        Shape::Steps(steps) => Shape::Steps(Steps { routes: renamed(&steps.routes), ..names.steps(steps) }),
        Shape::Flow(flow) => Shape::Flow(Flow { routes: renamed(&flow.routes), ..names.flow(flow) }),
        Shape::Orbits(orbits) => Shape::Orbits(orbits.relabelled(ranks)?),
        Shape::Stages(stages) => Shape::Stages(Stages { grid: stages.grid.relabelled(ranks)?, ..stages.clone() }),
    };
    Ok(Schedule { collective, algorithm: schedule.algorithm.clone(), shares, shape })
}

/// The certificate for a topology in which node `v` is `nodes[v]` and link `l` is `links[l]`.
///
/// * **In.** Permutations. What lies outside them stays as it is, for [`certified_bound`](crate::certified_bound) to refuse.
/// * **Cost.** O(nodes log nodes + links).
pub fn relabelled_certificate(certificate: &Certificate, nodes: &[NodeIndex], links: &[LinkIndex]) -> Certificate {
    let moved_set = |set: &[NodeIndex]| {
        let mut set: Vec<NodeIndex> =
            set.iter().map(|&node| nodes.get(node.index()).copied().unwrap_or(node)).collect();
        set.sort_unstable();
        set
    };
    match certificate {
        Certificate::Cut { direction, nodes } => Certificate::Cut { direction: *direction, nodes: moved_set(nodes) },
        Certificate::Partition { sets } => {
            Certificate::Partition { sets: sets.iter().map(|set| moved_set(set)).collect() }
        }
        Certificate::Sum { terms, potentials } => {
            let moved_term =
                |(weight, term): &(u64, Certificate)| (*weight, relabelled_certificate(term, nodes, links));
            let moved_node =
                |&(node, potential): &(NodeIndex, i64)| (nodes.get(node.index()).copied().unwrap_or(node), potential);
            let mut potentials: Vec<(NodeIndex, i64)> = potentials.iter().map(moved_node).collect();
            potentials.sort_unstable();
            Certificate::Sum { terms: terms.iter().map(moved_term).collect(), potentials }
        }
        Certificate::LpDual { lengths } => {
            let mut moved = vec![0; lengths.len()];
            for (link, &length) in (0_u32..).map(LinkIndex::new).zip(lengths) {
                if let Some(place) = moved.get_mut(image(links, link).index()) {
                    *place = length;
                }
            }
            Certificate::LpDual { lengths: moved }
        }
    }
}

/// Where a link goes; one outside the map stays, for the checker to refuse.
fn image(links: &[LinkIndex], link: LinkIndex) -> LinkIndex {
    links.get(link.index()).copied().unwrap_or(link)
}

/// The new names, and the numbers of chunks before and after.
struct Names<'a> {
    kind: CollectiveKind,
    ranks: &'a [Rank],
    before: ChunkLayout,
    after: ChunkLayout,
}

impl Names<'_> {
    /// A rank that does not exist keeps its number, for the compiler to refuse.
    fn rank(&self, rank: Rank) -> Rank {
        self.ranks.get(rank.index()).copied().unwrap_or(rank)
    }

    /// A chunk of a share or block, at its place in the renamed one.
    fn chunk(&self, chunk: u64) -> u64 {
        if chunk >= self.before.total() {
            return chunk;
        }
        let share = self.before.share_of(chunk);
        let (before, after) = match self.kind {
            CollectiveKind::AllToAll => {
                let destination = self.before.destination_of(chunk);
                let moved = self.after.chunks_between(self.rank(share), self.rank(destination));
                (self.before.chunks_between(share, destination), moved)
            }
            _ => (self.before.chunks_of(share), self.after.chunks_of(self.rank(share))),
        };
        after.start + (chunk - before.start)
    }

    fn forest(&self, forest: &Forest) -> Forest {
        let (mut hops, mut carriers) =
            (Vec::with_capacity(forest.hops.len()), Vec::with_capacity(forest.carriers.len()));
        let mut phases = Vec::with_capacity(forest.phases.len());
        for phase in &forest.phases {
            let mut order: Vec<&Tree> = phase.trees.iter().collect();
            // Stable, so that the trees of a root keep their chunks.
            order.sort_by_key(|tree| self.rank(tree.root));
            let mut trees = Vec::with_capacity(order.len());
            for tree in order {
                let first = end(&hops);
                for hop in forest.hops_of(tree) {
                    let start = end(&carriers);
                    carriers.extend_from_slice(forest.carriers_of(hop));
                    let carriers = start..end(&carriers);
                    hops.push(Hop { from: self.rank(hop.from), to: self.rank(hop.to), carriers });
                }
                trees.push(Tree {
                    root: self.rank(tree.root),
                    multiplicity: tree.multiplicity,
                    hops: first..end(&hops),
                });
            }
            phases.push(Phase { trees, action: phase.action });
        }
        Forest { chunks_per_share: forest.chunks_per_share, routes: RouteTable::default(), carriers, hops, phases }
    }

    fn steps(&self, steps: &Steps) -> Steps {
        let send = |send: &Send| {
            let start = self.chunk(send.chunks.start);
            let end = start.saturating_add(send.chunks.end.saturating_sub(send.chunks.start));
            Send { from: self.rank(send.from), to: self.rank(send.to), chunks: start..end, ..send.clone() }
        };
        Steps { sends: steps.sends.iter().map(send).collect(), ..steps.clone() }
    }

    fn flow(&self, flow: &Flow) -> Flow {
        let renamed = |(place, path): (usize, &Path)| (self.rank(path.source), self.rank(path.destination), place);
        let mut order: Vec<(Rank, Rank, usize)> = flow.paths.iter().enumerate().map(renamed).collect();
        order.par_sort_unstable();
        let mut hops = Vec::with_capacity(flow.hops.len());
        let mut paths = Vec::with_capacity(order.len());
        for (source, destination, place) in order {
            let path = &flow.paths[place];
            let start = end(&hops);
            hops.extend_from_slice(flow.hops.get(path.hops.start as usize..path.hops.end as usize).unwrap_or_default());
            paths.push(Path { source, destination, chunk_count: path.chunk_count, hops: start..end(&hops) });
        }
        Flow { chunks_per_share: flow.chunks_per_share, routes: RouteTable::default(), hops, paths }
    }
}

/// Where the next entry of a table goes.
fn end<T>(table: &[T]) -> u32 {
    u32::try_from(table.len()).expect("the tables of schedules have fewer than 2³² entries")
}
