//! What the plan of the best rate is compared with, in a fixed order: of equals the first is taken.

use canopy_schedule::{CollectiveKind, Shape};
use canopy_synth::{Algorithm, SumOptions, TreeLimits, family_algorithms};

use super::TRANSFERS_MAX;
use crate::pipeline::attempt::{Attempt, Work};

/// Most ranks of a plan that is compared, but for those of the network's family: it is made and simulated in less than a tenth of a second
/// or so.
const RANKS_MAX: u32 = 128;

/// Most ranks of a network that is looked at for its family: some milliseconds, and its plans are made at once.
const FAMILY_RANKS_MAX: u32 = 512;

/// Most ranks of an all-to-all that is planned in time for comparison, of trees that grow together, and of schedules that know ranks by number
/// only.
const FEW_RANKS_MAX: u32 = 64;

/// An algorithm whose plan may be faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rival {
    pub(super) algorithm: Algorithm,
    /// It takes at least so many steps, one after the other.
    pub(super) steps_min: u32,
}

/// What a plan is compared with, if the request leaves the choice to the planner and the network is one that has it: what the network's
/// family has, messages straight to their receivers, what plans on any network, then the textbook's.
pub(super) fn rivals(work: &Work<'_>, attempt: &Attempt) -> Vec<Rival> {
    let (topology, kind) = (&work.prepared.topology, work.order.kind);
    let ranks = topology.rank_count();
    let is_free = work.order.limits == TreeLimits::NONE && work.order.sums == SumOptions::AUTO;
    let is_open = work.order.algorithm == Algorithm::Auto && is_free && ranks <= FAMILY_RANKS_MAX;
    let transfers = match (&attempt.plan.schedule.shape, &attempt.graph) {
        (Shape::Forest(_), Some(graph)) => graph.transfers.len(),
        (Shape::Flow(flow), _) => flow.hops.len(),
        _ => return Vec::new(),
    };
    if !is_open || transfers > TRANSFERS_MAX {
        return Vec::new();
    }
    let is_direct = topology.nodes().len() == ranks as usize;
    let (is_medium, is_small) = (ranks <= RANKS_MAX, ranks <= FEW_RANKS_MAX);
    let mut names = family_algorithms(topology).to_vec();
    if is_medium {
        names.push(Algorithm::Direct);
    }
    if is_medium && is_direct && matches!(attempt.plan.schedule.shape, Shape::Forest(_)) {
        names.push(Algorithm::Bfb);
    }
    if is_direct && is_small {
        names.push(Algorithm::Multitree);
    }
    if is_small || is_medium && kind != CollectiveKind::AllToAll {
        names.push(Algorithm::Tacos);
    }
    if is_small {
        names.extend(textbook(kind));
    }
    names.into_iter().map(|algorithm| Rival { algorithm, steps_min: steps_min(algorithm, kind, ranks) }).collect()
}

/// Textbook schedules that take few steps, or whose messages need not wait for each other.
const fn textbook(kind: CollectiveKind) -> &'static [Algorithm] {
    match kind {
        CollectiveKind::Allgather => &[Algorithm::Pairwise, Algorithm::Bruck, Algorithm::RecursiveDoubling],
        CollectiveKind::ReduceScatter => &[Algorithm::Pairwise, Algorithm::RecursiveDoubling],
        CollectiveKind::Allreduce => &[Algorithm::RecursiveDoubling, Algorithm::DoubleTree],
        CollectiveKind::Broadcast | CollectiveKind::Reduce => &[Algorithm::Binomial, Algorithm::DoubleTree],
        CollectiveKind::Gather | CollectiveKind::Scatter => &[Algorithm::Binomial],
        CollectiveKind::AllToAll => &[Algorithm::Pairwise, Algorithm::Bruck],
    }
}

/// Steps that an algorithm cannot do without, one after the other: where distances double, what a rank has reaches twice as many in each; two
/// trees are as deep as a binary tree must be.
fn steps_min(algorithm: Algorithm, kind: CollectiveKind, ranks: u32) -> u32 {
    let phases = if kind == CollectiveKind::Allreduce { 2 } else { 1 };
    let levels = match algorithm {
        Algorithm::DoubleTree => ranks.checked_ilog2().unwrap_or(0),
        Algorithm::Bruck | Algorithm::RecursiveDoubling | Algorithm::Binomial => ranks.next_power_of_two().ilog2(),
        _ => 1,
    };
    phases * levels
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
