//! The trees of a graph, in the numbering of the plan.

use std::collections::BTreeMap;
use std::ops::Range;

use canopy_schedule::{Action, Transfer, TransferGraph};
use canopy_topology::Rank;

use super::layout::Layout;
use super::{ExecutionLowerError, Stop, SwitchDomain, check_stop};
use crate::batches::HopReader;

/// What is done along a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Copy,
    Reduce,
    /// A switch adds up what all members of a group have and stores the sum at all of them, on behalf of the root.
    SwitchSum,
}

/// A batch in the numbering of the plan.
#[derive(Clone)]
pub(super) struct Tree {
    pub(super) work: Work,
    pub(super) root: u32,
    pub(super) chunks: Range<u32>,
    pub(super) hops: Vec<TreeHop>,
}

/// A hop of a tree.
#[derive(Clone, Copy)]
pub(super) struct TreeHop {
    pub(super) from: u32,
    pub(super) to: u32,
    /// The domain whose switch all of it passes.
    pub(super) domain: Option<usize>,
    /// The group that it is stored at, with other hops.
    pub(super) group: Option<usize>,
}

impl Tree {
    /// Whether switches make all of its hops.
    pub(super) fn is_stored(&self) -> bool {
        self.hops.iter().all(|hop| hop.group.is_some())
    }

    /// Hops of its longest way.
    pub(super) fn depth(&self) -> usize {
        let mut depth: BTreeMap<u32, usize> = BTreeMap::new();
        for &TreeHop { from, to, .. } in &self.hops {
            let reached = depth.get(&from).copied().unwrap_or(0) + 1;
            let deepest = depth.entry(to).or_default();
            *deepest = reached.max(*deepest);
        }
        depth.into_values().max().unwrap_or(0)
    }
}

/// Trees, some of whose hops are made by switches, and the members of the groups that these refer to.
pub(super) struct SwitchTrees {
    pub(super) trees: Vec<Tree>,
    pub(super) groups: Vec<Vec<u32>>,
}

/// The batches of a graph, in the numbering of whole chunks.
pub(super) fn read_trees(
    graph: &TransferGraph,
    layout: &Layout,
    domains: &[SwitchDomain],
    stop: Stop<'_>,
) -> Result<Vec<Tree>, ExecutionLowerError> {
    let mut trees = Vec::with_capacity(graph.batches.len());
    let mut reader = HopReader::new(graph);
    for (index, batch) in graph.batches.iter().enumerate() {
        check_stop(stop, index)?;
        let malformed = |what| ExecutionLowerError::Malformed { batch: index, what };
        let chunks = layout.range(batch.chunk_first, batch.chunk_count);
        let chunks = chunks.ok_or_else(|| malformed("has chunks outside one share"))?;
        let hop = |((from, to), transfer): ((Rank, Rank), &Transfer)| {
            let domain = domain_of(graph, transfer, domains);
            TreeHop { from: from.number(), to: to.number(), domain, group: None }
        };
        let hops = reader.next(batch).map_err(malformed)?.into_iter().zip(graph.transfers_of(batch)).map(hop).collect();
        let work = match batch.action {
            Action::Copy => Work::Copy,
            Action::Reduce => Work::Reduce,
        };
        trees.push(Tree { work, root: batch.root.number(), chunks, hops });
    }
    Ok(trees)
}

/// Positions of trees that share chunks, directly or by others, in order.
pub(super) fn groups(trees: &[Tree]) -> Vec<Vec<usize>> {
    let mut by_chunk: Vec<usize> = (0..trees.len()).collect();
    by_chunk.sort_by_key(|&tree| trees[tree].chunks.start);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut end = 0;
    for tree in by_chunk {
        match groups.last_mut().filter(|_| trees[tree].chunks.start < end) {
            Some(group) => group.push(tree),
            None => groups.push(vec![tree]),
        }
        end = end.max(trees[tree].chunks.end);
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.sort_by_key(|group| group.first().copied());
    groups
}

/// The domain whose switch all of a transfer passes.
fn domain_of(graph: &TransferGraph, transfer: &Transfer, domains: &[SwitchDomain]) -> Option<usize> {
    let has = |domain: &SwitchDomain, rank: u32| domain.ranks.binary_search(&rank).is_ok();
    let carriers = graph.carriers_of(transfer);
    let passes = |domain: &&SwitchDomain| {
        let mut routes = carriers.iter().map(|carrier| graph.routes.get(carrier.route).unwrap_or_default());
        has(domain, transfer.from.number())
            && has(domain, transfer.to.number())
            && !carriers.is_empty()
            && routes.all(|links| links.iter().any(|link| domain.links.contains(link)))
    };
    domains.iter().position(|domain| passes(&domain))
}
