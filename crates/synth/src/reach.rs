//! Checks that every synthesizer on physical routes makes before and during its work.

use canopy_optimize::{Stop, Stopped};
use canopy_schedule::{Collective, CollectiveKind, Shares};
use canopy_topology::{NodeIndex, NodeKind, Rank, Topology};

use crate::error::SynthesisError;

/// Returns an error once `stop` asks for it.
pub fn ask(stop: &dyn Stop) -> Result<(), Stopped> {
    if stop.is_requested() { Err(Stopped) } else { Ok(()) }
}

/// Two ranks `(from, to)` such that `to` needs data of `from` and no path leads there. O(nodes + links), and that for each
/// rank where blocks differ.
pub(crate) fn first_unreachable(topology: &Topology, collective: Collective, shares: &Shares) -> Option<(Rank, Rank)> {
    let wants = |rank: &Rank| shares.weight(*rank) > 0;
    match (collective.kind(), collective.root()) {
        (CollectiveKind::Broadcast, Some(root)) => topology.first_unreachable_from(root).map(|lost| (root, lost)),
        (CollectiveKind::Reduce, Some(root)) => topology.first_not_reaching(root).map(|lost| (lost, root)),
        (CollectiveKind::Scatter, Some(root)) => {
            let reached = topology.ranks_reached_from(root);
            topology.ranks().filter(wants).find(|rank| !reached[rank.index()]).map(|lost| (root, lost))
        }
        (CollectiveKind::Gather, Some(root)) => {
            let reaching = topology.ranks_reaching(root);
            topology.ranks().filter(wants).find(|rank| !reaching[rank.index()]).map(|lost| (lost, root))
        }
        (CollectiveKind::Allgather, _) => first_unreachable_from(topology, shares),
        (CollectiveKind::ReduceScatter, _) => first_not_reaching(topology, shares),
        (CollectiveKind::AllToAll, _) => first_block_lost(topology, shares),
        _ => topology.first_unreachable(),
    }
}

/// Ranks of which the one has a block for the other, and no path leads there. O(nodes + links), and that for each rank where
/// not all reach each other and blocks differ.
fn first_block_lost(topology: &Topology, shares: &Shares) -> Option<(Rank, Rank)> {
    let lost = topology.first_unreachable()?;
    let Shares::Blocks(blocks) = shares else { return Some(lost) };
    topology.ranks().find_map(|source| {
        let reached = topology.ranks_reached_from(source);
        let mut wanting = topology.ranks().filter(|&rank| rank != source && blocks.weight(source, rank) > 0);
        wanting.find(|rank| !reached[rank.index()]).map(|rank| (source, rank))
    })
}

/// A rank with a share, and one to which no path leads from there. O(nodes + links).
pub(crate) fn first_unreachable_from(topology: &Topology, shares: &Shares) -> Option<(Rank, Rank)> {
    let mut sources = topology.ranks().filter(|&rank| shares.weight(rank) > 0);
    let first = sources.next()?;
    if let Some(lost) = topology.first_unreachable_from(first) {
        return Some((first, lost));
    }
    // All is reached from the first source, and so from every one that reaches it.
    let reaching = topology.ranks_reaching(first);
    sources.find(|source| !reaching[source.index()]).map(|source| (source, first))
}

/// A rank from which no path leads to a rank with a share, and that one. O(nodes + links).
pub(crate) fn first_not_reaching(topology: &Topology, shares: &Shares) -> Option<(Rank, Rank)> {
    let mut targets = topology.ranks().filter(|&rank| shares.weight(rank) > 0);
    let first = targets.next()?;
    if let Some(lost) = topology.first_not_reaching(first) {
        return Some((lost, first));
    }
    let reached = topology.ranks_reached_from(first);
    targets.find(|target| !reached[target.index()]).map(|target| (first, target))
}

/// Refuses a topology without the paths that the collective needs, and shares that need not move. O(nodes + links).
pub fn require_reach(topology: &Topology, collective: Collective, shares: &Shares) -> Result<(), SynthesisError> {
    if let (CollectiveKind::Gather | CollectiveKind::Scatter, Some(root)) = (collective.kind(), collective.root())
        && topology.ranks().all(|rank| rank == root || shares.weight(rank) == 0)
    {
        return Err(SynthesisError::NothingToMove { root: root.number() });
    }
    match first_unreachable(topology, collective, shares) {
        Some((from, to)) => Err(disconnected(topology, from, to)),
        None => Ok(()),
    }
}

/// No path leads from one rank to the other.
pub(crate) fn disconnected(topology: &Topology, from: Rank, to: Rank) -> SynthesisError {
    let id = |rank: Rank| topology.node(rank.node()).id.clone();
    SynthesisError::Disconnected { from: id(from), from_rank: from.number(), to: id(to), to_rank: to.number() }
}

/// Refuses switches, and devices that only forward.
pub(crate) fn require_direct(topology: &Topology, algorithm: &'static str) -> Result<(), SynthesisError> {
    let is_rank = |index: NodeIndex| topology.rank_of(index).is_some();
    let nodes = (0..).map(NodeIndex::new).zip(topology.nodes());
    match nodes.into_iter().find(|&(index, _)| !is_rank(index)) {
        None => Ok(()),
        Some((_, node)) => {
            let what = if node.kind == NodeKind::Forwarder { "only forwards data" } else { "is a switch" };
            Err(SynthesisError::NotDirect { algorithm, node: node.id.clone(), what })
        }
    }
}
