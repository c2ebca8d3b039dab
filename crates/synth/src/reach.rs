//! Questions that every synthesizer on physical routes asks before and while it works.

use canopy_optimize::{Stop, Stopped};
use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::{Rank, Topology};

use crate::error::SynthesisError;

/// Gives up if that is asked for.
pub(crate) fn ask(stop: &dyn Stop) -> Result<(), Stopped> {
    if stop.is_requested() { Err(Stopped) } else { Ok(()) }
}

/// Two ranks `(from, to)` such that `to` needs data of `from` and no path leads there. O(nodes + links).
pub(crate) fn first_unreachable(topology: &Topology, collective: Collective) -> Option<(Rank, Rank)> {
    match (collective.kind(), collective.root()) {
        (CollectiveKind::Broadcast | CollectiveKind::Scatter, Some(root)) => {
            topology.first_unreachable_from(root).map(|lost| (root, lost))
        }
        (CollectiveKind::Reduce | CollectiveKind::Gather, Some(root)) => {
            topology.first_not_reaching(root).map(|lost| (lost, root))
        }
        _ => topology.first_unreachable(),
    }
}

/// Refuses a topology on which data can not go where the collective needs it. O(nodes + links).
pub(crate) fn require_reach(topology: &Topology, collective: Collective) -> Result<(), SynthesisError> {
    match first_unreachable(topology, collective) {
        Some((from, to)) => Err(disconnected(topology, from, to)),
        None => Ok(()),
    }
}

/// No path leads from one rank to the other.
pub(crate) fn disconnected(topology: &Topology, from: Rank, to: Rank) -> SynthesisError {
    let id = |rank: Rank| topology.node(rank.node()).id.clone();
    SynthesisError::Disconnected { from: id(from), from_rank: from.number(), to: id(to), to_rank: to.number() }
}
