//! What the plan of the best rate is compared with, in a fixed order: of equals the first is taken.

use canopy_baselines::algorithms;
use canopy_schedule::{CollectiveKind, Shape, Shares};
use canopy_synth::{Algorithm, Networks, Scale, SumOptions, TreeLimits, family_algorithms, has_only_cards};

use super::TRANSFERS_MAX;
use super::distance::messages_min;
use crate::search::{Attempt, Case};

/// Most ranks of a network that is looked at for its family: some milliseconds, and its plans are made at once.
const FAMILY_RANKS_MAX: u32 = 512;

/// Work of one plan that may be much faster, about a second, and of all of them together.
const WORK_MAX: u64 = 1 << 20;
const WORK_IN_ALL_MAX: u64 = 1 << 21;

/// Work of a plan that is faster by less than one part in so many, if at all.
const LITTLE: u64 = 16;
const WORK_FOR_LITTLE_MAX: u64 = 1 << 18;

/// An algorithm whose plan may be faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rival {
    pub(super) algorithm: Algorithm,
    /// It takes at least so many steps, one after the other.
    pub(super) steps_min: u32,
    /// Roughly what making it takes.
    work: u64,
}

/// What a plan is compared with.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) rivals: Vec<Rival>,
    /// Messages that follow one another in any plan.
    pub(super) messages_min: u32,
}

/// Whether a plan is small enough to be simulated.
pub(super) fn is_timed(attempt: &Attempt) -> bool {
    let transfers = match (&attempt.plan.schedule.shape, &attempt.graph) {
        (Shape::Forest(_) | Shape::Stages(_) | Shape::Orbits(_), Some(graph)) => graph.transfers.len(),
        (Shape::Flow(flow), _) => flow.hops.len(),
        _ => usize::MAX,
    };
    transfers <= TRANSFERS_MAX
}

/// The work that may still be done.
pub(super) struct Budget(u64);

/// Whether the request leaves the choice to the planner.
pub(super) fn is_open(case: &Case<'_>) -> bool {
    let is_free = case.request.limits == TreeLimits::NONE && case.sums == SumOptions::AUTO;
    case.request.algorithm == Algorithm::Auto && is_free
}

impl Field {
    /// What the network's family has, messages straight to their receivers, what plans on any network, then the
    /// textbook's and what takes longer.
    pub(super) fn of(case: &Case<'_>) -> Self {
        let (topology, kind) = (&case.prepared.topology, case.request.kind);
        let ranks = topology.rank_count();
        let is_direct = topology.nodes().len() == ranks as usize;
        let scale = Scale { ranks: ranks.into(), links: topology.links().len() as u64, kind };
        let placed = |algorithm: Algorithm| {
            let rival = algorithm.rival.filter(|_| algorithm.collectives.contains(&kind))?;
            let is_other = algorithm != case.algorithm.resolved(kind);
            let has_plans = match rival.plans {
                Networks::All => true,
                Networks::Direct => is_direct,
                Networks::Carded => is_direct || has_only_cards(topology),
                Networks::Switched => !is_direct,
            };
            (is_other && has_plans).then(|| (rival.place, algorithm, (rival.work)(scale)))
        };
        let mut others: Vec<(u8, Algorithm, u64)> = algorithms().filter_map(placed).collect();
        others.sort_by_key(|&(place, ..)| place);
        let family = if ranks <= FAMILY_RANKS_MAX { family_algorithms(topology) } else { &[] };
        // Their trees are written down at once.
        let family = family.iter().map(|&algorithm| (algorithm, scale.pairs() / 4));
        let listed = family.chain(others.into_iter().map(|(_, algorithm, work)| (algorithm, work)));
        let messages_min = match case.prepared.shares {
            Shares::Equal => messages_min(topology, case.prepared.collective),
            Shares::Weighted(_) | Shares::Blocks(_) => 1,
        };
        let rival = |(algorithm, work)| Rival {
            algorithm,
            steps_min: steps_min(algorithm, kind, ranks).max(messages_min),
            work,
        };
        Self { rivals: listed.map(rival).collect(), messages_min }
    }

    /// The work that is done at most.
    pub(super) const fn budget(&self) -> Budget {
        Budget(WORK_IN_ALL_MAX)
    }
}

impl Budget {
    /// Whether a plan is made that takes at least so long, where the fastest one takes so long. If it is, its work is
    /// taken off.
    pub(super) fn takes(&mut self, rival: &Rival, (least_ps, best_ps): (u64, u64)) -> bool {
        let is_little = best_ps.saturating_sub(least_ps) < best_ps / LITTLE;
        let most = if is_little { WORK_FOR_LITTLE_MAX } else { WORK_MAX };
        let is_taken = rival.work <= most.min(self.0);
        if is_taken {
            self.0 -= rival.work;
        }
        is_taken
    }
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
    fn textbooks_take_as_many_steps_as_ranks_have_doubled() {
        let steps = |algorithm, kind, ranks| steps_min(algorithm, kind, ranks);
        // To the rank that is seven away over those one and three away; the fourth step goes eight at once.
        assert_eq!(steps(Algorithm::Bruck, CollectiveKind::Allgather, 12), 3);
        assert_eq!(steps(Algorithm::RecursiveDoubling, CollectiveKind::Allreduce, 16), 8);
        assert_eq!(steps(Algorithm::Binomial, CollectiveKind::Broadcast, 2), 1);
        assert_eq!(steps(Algorithm::DoubleTree, CollectiveKind::Broadcast, 15), 3);
        // These may reach everybody at once.
        assert_eq!(steps(Algorithm::Direct, CollectiveKind::Allreduce, 16), 2);
        assert_eq!(steps(Algorithm::Kautz, CollectiveKind::AllToAll, 16), 1);
    }

    /// Only what has no work of its own to find a plan is never compared.
    #[test]
    fn every_algorithm_is_a_rival_or_of_a_family_or_the_first() {
        let first = [Algorithm::Auto, Algorithm::Forest, Algorithm::Flow];
        let of_families = [Algorithm::Kautz, Algorithm::KautzM, Algorithm::Dfc2, Algorithm::Dfc2Do];
        let missing = |algorithm: &Algorithm| {
            algorithm.rival.is_none() && !first.contains(algorithm) && !of_families.contains(algorithm)
        };
        assert_eq!(algorithms().find(missing), None);
    }

    #[test]
    fn work_is_limited_by_what_there_is_to_gain() {
        let rival = |work| Rival { algorithm: Algorithm::Tacos, steps_min: 1, work };
        let mut budget = Budget(WORK_IN_ALL_MAX);
        assert!(!budget.takes(&rival(WORK_MAX), (95, 100)));
        assert!(budget.takes(&rival(WORK_FOR_LITTLE_MAX), (95, 100)));
        assert!(!budget.takes(&rival(WORK_MAX + 1), (10, 100)));
        assert!(budget.takes(&rival(WORK_MAX), (10, 100)));
        assert!(!budget.takes(&rival(WORK_MAX), (10, 100)));
    }
}
