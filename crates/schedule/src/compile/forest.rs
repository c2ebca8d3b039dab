//! Forests: one batch per tree.

use std::ops::Range;

use canopy_topology::{Rank, Topology};

use super::error::{CompileError, TreePlace};
use super::waits::Waits;
use super::{Stop, TRANSFERS_MAX, ask};
use crate::collective::{Collective, CollectiveKind};
use crate::forest::{Action, Forest, Phase, Tree};
use crate::schedule::{Pace, Schedule};
use crate::shares::ChunkLayout;
use crate::transfer::{Batch, Transfer, TransferGraph};

/// The transfers of a forest.
///
/// **Dependencies.** In a copy tree a hop waits for the hop that delivered to its sender; in a reduce tree for all hops
/// into its sender. Where a copy phase follows a reduce phase there is no barrier: the first hops of a copy tree wait
/// for those transfers into its root that reduce a chunk they carry, and everything after follows from that. Transfers
/// that wait for the same set share one range of [`TransferGraph::dependencies`], so there are at most about as
/// many dependencies as transfers, even for stars.
///
/// O(transfers + carriers), after a first pass that bounds both.
pub(super) fn compile_forest(
    topology: &Topology,
    schedule: &Schedule,
    forest: &Forest,
    layout: &ChunkLayout,
    stop: Stop<'_>,
) -> Result<TransferGraph, CompileError> {
    Compiler::new(topology, schedule, forest, layout)?.run(schedule, stop)
}

/// Phases that a collective consists of; none where forests cannot express it.
const fn phases_of(kind: CollectiveKind) -> &'static [Action] {
    match kind {
        CollectiveKind::Allgather | CollectiveKind::Broadcast | CollectiveKind::Gather | CollectiveKind::Scatter => {
            &[Action::Copy]
        }
        CollectiveKind::ReduceScatter | CollectiveKind::Reduce => &[Action::Reduce],
        CollectiveKind::Allreduce => &[Action::Reduce, Action::Copy],
        CollectiveKind::AllToAll => &[],
    }
}

/// What a reduce tree has brought to its root.
struct Arrival {
    chunks: Range<u64>,
    transfers: Vec<u32>,
}

struct Compiler<'a> {
    forest: &'a Forest,
    layout: &'a ChunkLayout,
    collective: Collective,
    rank_count: u32,
    waits: Waits,
    /// By increasing chunk, because the trees of a phase are.
    arrivals: Vec<Arrival>,
    batches: Vec<Batch>,
    transfers: Vec<Transfer>,
}

impl<'a> Compiler<'a> {
    /// Checks everything that can be checked without looking at a tree, and bounds the work.
    fn new(
        topology: &Topology,
        schedule: &Schedule,
        forest: &'a Forest,
        layout: &'a ChunkLayout,
    ) -> Result<Self, CompileError> {
        let (collective, rank_count) = (schedule.collective, topology.rank_count());
        let kind = collective.kind();
        let expected = phases_of(kind);
        if expected.is_empty() {
            return Err(CompileError::Unsupported { collective: kind, shape: "forest" });
        }
        if !forest.phases.iter().map(|phase| phase.action).eq(expected.iter().copied()) {
            return Err(CompileError::Phases { collective: kind, found: forest.phases.len() });
        }
        let trees = || forest.phases.iter().flat_map(|phase| &phase.trees);
        let found = trees().map(|tree| forest.hops_of(tree).len()).fold(0, usize::saturating_add);
        if found > TRANSFERS_MAX {
            return Err(CompileError::TooManyHops { found, limit: TRANSFERS_MAX });
        }
        Ok(Self {
            forest,
            layout,
            collective,
            rank_count,
            waits: Waits::new(rank_count, found),
            arrivals: Vec::new(),
            batches: Vec::with_capacity(trees().count()),
            transfers: Vec::with_capacity(found),
        })
    }

    fn run(mut self, schedule: &Schedule, stop: Stop<'_>) -> Result<TransferGraph, CompileError> {
        for (position, phase) in self.forest.phases.iter().enumerate() {
            self.add_phase(position, phase, stop)?;
        }
        Ok(TransferGraph {
            steps: Vec::new(),
            pace: Pace::Barriers,
            collective: self.collective,
            rank_count: self.rank_count,
            chunks_per_share: self.forest.chunks_per_share,
            shares: schedule.shares.clone(),
            routes: self.forest.routes.clone(),
            carriers: self.forest.carriers.clone(),
            dependencies: self.waits.finish(),
            batches: self.batches,
            transfers: self.transfers,
        })
    }

    /// Adds a phase's trees, having made sure that they share out every root's chunks exactly.
    fn add_phase(&mut self, position: usize, phase: &Phase, stop: Stop<'_>) -> Result<(), CompileError> {
        let mut trees = phase.trees.iter().enumerate().peekable();
        for share in (0..self.rank_count).map(Rank::new) {
            if !self.moves(share) {
                continue;
            }
            let chunks = self.layout.chunks_of(share);
            let limit = chunks.end - chunks.start;
            let mut taken = 0_u64;
            while let Some((tree_position, tree)) = trees.next_if(|(_, tree)| tree.root == share) {
                let place = TreePlace { phase: position, tree: tree_position };
                if tree.multiplicity == 0 {
                    return Err(CompileError::NoMultiplicity { place });
                }
                ask(stop)?;
                let chunk_first = chunks.start + taken;
                taken = taken
                    .checked_add(tree.multiplicity)
                    .filter(|&taken| taken <= limit)
                    .ok_or(CompileError::TooManyTrees { place, share: share.number(), limit })?;
                self.add_tree(place, phase.action, tree, chunk_first)?;
            }
            if taken < limit {
                let share = share.number();
                return Err(CompileError::TooFewTrees { phase: position, share, found: taken, expected: limit });
            }
        }
        match trees.next() {
            None => Ok(()),
            Some((tree_position, tree)) => Err(CompileError::UnexpectedRoot {
                place: TreePlace { phase: position, tree: tree_position },
                root: tree.root.number(),
            }),
        }
    }

    /// Whether trees with this root have to exist.
    fn moves(&self, share: Rank) -> bool {
        match (self.collective.kind(), self.collective.root()) {
            (CollectiveKind::Broadcast | CollectiveKind::Reduce, Some(root)) => share == root,
            (CollectiveKind::Gather | CollectiveKind::Scatter, Some(root)) => share != root,
            _ => true,
        }
    }

    fn add_tree(
        &mut self,
        place: TreePlace,
        action: Action,
        tree: &Tree,
        chunk_first: u64,
    ) -> Result<(), CompileError> {
        let hops = self.forest.hops.get(tree.hops.start as usize..tree.hops.end as usize);
        let hops = hops.filter(|hops| !hops.is_empty()).ok_or(CompileError::NoHops { place })?;
        let root = match (self.collective.kind(), self.collective.root()) {
            (CollectiveKind::Scatter, Some(root)) => root,
            _ => tree.root,
        };
        let chunks = chunk_first..chunk_first + tree.multiplicity;
        let first = self.next_index();
        self.waits.start(root, earlier_arrivals(&self.arrivals, &chunks).filter(|_| action == Action::Copy));
        for (position, hop) in hops.iter().enumerate() {
            if self.forest.carriers.get(hop.carriers.start as usize..hop.carriers.end as usize).is_none() {
                return Err(CompileError::NoCarriers { place, hop: position });
            }
            let index = self.next_index();
            let dependencies = match action {
                Action::Copy => self.waits.copy(hop, index),
                Action::Reduce => self.waits.reduce(hop, index),
            }
            .map_err(|source| CompileError::Hop { place, hop: position, source })?;
            self.transfers.push(Transfer { from: hop.from, to: hop.to, carriers: hop.carriers.clone(), dependencies });
        }
        let spans = !matches!(self.collective.kind(), CollectiveKind::Gather | CollectiveKind::Scatter);
        if spans && hops.len() + 1 != self.rank_count as usize {
            let expected = self.rank_count as usize - 1;
            return Err(CompileError::NotSpanning { place, found: hops.len(), expected });
        }
        if action == Action::Reduce {
            self.arrivals.push(Arrival { chunks, transfers: self.waits.arrivals_at(root).to_vec() });
        }
        let (chunk_count, transfers) = (tree.multiplicity, first..self.next_index());
        self.batches.push(Batch { action, root, chunk_first, chunk_count, transfers });
        Ok(())
    }

    fn next_index(&self) -> u32 {
        u32::try_from(self.transfers.len()).expect("bounded by TRANSFERS_MAX")
    }
}

/// What earlier reduce trees bring to their roots for these chunks. A tree that shares a chunk shares the root, since a
/// chunk belongs to one share.
fn earlier_arrivals<'a>(arrivals: &'a [Arrival], chunks: &Range<u64>) -> impl Iterator<Item = &'a [u32]> {
    let first = arrivals.partition_point(|arrival| arrival.chunks.end <= chunks.start);
    let end = chunks.end;
    let overlapping = arrivals[first..].iter().take_while(move |arrival| arrival.chunks.start < end);
    overlapping.map(|arrival| arrival.transfers.as_slice())
}
