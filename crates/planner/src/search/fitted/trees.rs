//! What a plan has many of, and a file for a runtime room for few.

use canopy_schedule::{CollectiveKind, Shape, Shares};
use canopy_synth::{Algorithm, HeededLimits, REPAIR};

use crate::search::Attempt;

/// How many trees or chunks a plan has whose files get smaller with them.
#[derive(Clone, Copy)]
pub(super) struct Trees {
    pub(super) count: u64,
    pub(super) counted: Counted,
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// Trees of each root.
    PerRoot,
    /// Trees of all roots together: the planner has chosen how much each rank adds up, and so how many are rooted
    /// there.
    OfAll,
    /// Chunks of each share, in steps, or of each block, on paths.
    Chunks,
}

impl Trees {
    pub(super) fn of(attempt: &Attempt, asked: &Shares) -> Option<Self> {
        let (schedule, ranks) = (&attempt.plan.schedule, attempt.plan.topology.rank_count());
        let of_a_unit = schedule.shape.chunks_per_share();
        let is_by_flow = schedule.algorithm == Algorithm::Flow.name();
        match &schedule.shape {
            Shape::Forest(_) if schedule.shares == *asked => Some(Self { count: of_a_unit, counted: Counted::PerRoot }),
            Shape::Forest(_) => {
                let of_all = schedule.shares.weight_total(ranks).saturating_mul(of_a_unit.into());
                Some(Self { count: u64::try_from(of_all).ok()?, counted: Counted::OfAll })
            }
            // Other schedules in steps have the chunks they have.
            Shape::Steps(_)
                if schedule.algorithm == REPAIR
                    || canopy_baselines::algorithm(&schedule.algorithm)
                        .is_ok_and(|algorithm| algorithm.limits == HeededLimits::Chunks) =>
            {
                Some(Self { count: of_a_unit, counted: Counted::Chunks })
            }
            Shape::Flow(_) if schedule.collective.kind() == CollectiveKind::AllToAll && is_by_flow => {
                Some(Self { count: of_a_unit, counted: Counted::Chunks })
            }
            Shape::Steps(_) | Shape::Flow(_) | Shape::Stages(_) | Shape::Orbits(_) => None,
        }
    }

    pub(super) const fn of_what(self) -> &'static str {
        match self.counted {
            Counted::PerRoot => "trees per root",
            Counted::OfAll => "trees in all",
            Counted::Chunks => "chunks per share",
        }
    }
}
