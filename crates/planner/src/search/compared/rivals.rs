//! What the plan of the best rate is compared with, in a fixed order: of equals the first is taken.

use canopy_schedule::{CollectiveKind, Shape};
use canopy_synth::{Algorithm, SumOptions, TreeLimits, family_algorithms};

use super::TRANSFERS_MAX;
use crate::search::{Attempt, Case};

/// Most ranks of a network that is looked at for its family: some milliseconds, and its plans are made at once.
const FAMILY_RANKS_MAX: u32 = 512;

/// An algorithm whose plan may be faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rival {
    pub(super) algorithm: Algorithm,
    /// It takes at least so many steps, one after the other.
    pub(super) steps_min: u32,
}

/// What a plan is compared with, if the request leaves the choice to the planner and the network is one that has it: what the network's
/// family has, messages straight to their receivers, what plans on any network, then the textbook's.
pub(super) fn rivals(case: &Case<'_>, attempt: &Attempt) -> Vec<Rival> {
    let (topology, kind) = (&case.prepared.topology, case.request.kind);
    let ranks = topology.rank_count();
    let is_free = case.request.limits == TreeLimits::NONE && case.sums == SumOptions::AUTO;
    let is_open = case.request.algorithm == Algorithm::Auto && is_free && ranks <= FAMILY_RANKS_MAX;
    let transfers = match (&attempt.plan.schedule.shape, &attempt.graph) {
        (Shape::Forest(_), Some(graph)) => graph.transfers.len(),
        (Shape::Flow(flow), _) => flow.hops.len(),
        _ => return Vec::new(),
    };
    if !is_open || transfers > TRANSFERS_MAX {
        return Vec::new();
    }
    let is_direct = topology.nodes().len() == ranks as usize;
    let compared = |algorithm: &Algorithm| {
        let rival = algorithm.rival.filter(|_| algorithm.collectives.contains(&kind))?;
        let ranks_max = if kind == CollectiveKind::AllToAll { rival.all_to_all_ranks_max } else { rival.ranks_max };
        (ranks <= ranks_max && (is_direct || !rival.is_direct)).then_some((rival.place, *algorithm))
    };
    let mut others: Vec<(u8, Algorithm)> = Algorithm::ALL.iter().filter_map(compared).collect();
    others.sort_by_key(|&(place, _)| place);
    let names = family_algorithms(topology).iter().copied().chain(others.into_iter().map(|(_, algorithm)| algorithm));
    names.map(|algorithm| Rival { algorithm, steps_min: steps_min(algorithm, kind, ranks) }).collect()
}

/// Steps that an algorithm cannot do without, one after the other.
fn steps_min(algorithm: Algorithm, kind: CollectiveKind, ranks: u32) -> u32 {
    let phases = if kind == CollectiveKind::Allreduce { 2 } else { 1 };
    phases * algorithm.rival.map_or(1, |rival| (rival.steps_min)(ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbooks_take_as_many_steps_as_ranks_double() {
        let steps = |algorithm, kind, ranks| steps_min(algorithm, kind, ranks);
        assert_eq!(steps(Algorithm::Bruck, CollectiveKind::Allgather, 12), 4);
        assert_eq!(steps(Algorithm::RecursiveDoubling, CollectiveKind::Allreduce, 16), 8);
        assert_eq!(steps(Algorithm::Binomial, CollectiveKind::Broadcast, 2), 1);
        assert_eq!(steps(Algorithm::DoubleTree, CollectiveKind::Broadcast, 15), 3);
        // These may reach everybody at once.
        assert_eq!(steps(Algorithm::Direct, CollectiveKind::Allreduce, 16), 2);
        assert_eq!(steps(Algorithm::Kautz, CollectiveKind::AllToAll, 16), 1);
    }
}
