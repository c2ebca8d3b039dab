//! `auto`: the schedule of greatest rate among those that plan the collective.

use canopy_optimize::Stop;
use canopy_schedule::{CollectiveKind, Shares};
use canopy_topology::Topology;

use crate::algorithm::{
    ALL_COLLECTIVES, Algorithm, Kept, Memory, Solver, SynthesisRequest, Synthesized, Synthesizer, Task,
};
use crate::direct::DIRECT;
use crate::error::{OrbitsNetworkError, StagesNetworkError, SynthesisError};
use crate::flow::FLOW;
use crate::forest::FOREST;
use crate::large::are_listed;
use crate::limits::TreeLimits;
use crate::load::seconds_per_byte;
use crate::orbits::{self, ORBITS};
use crate::progress::Silent;
use crate::ring::RING;
use crate::stages::{self, STAGES};
use crate::sum_options::SumOptions;

/// Forest or flow where one of them plans the collective, else the better of direct and ring by exact load.
pub(crate) static AUTO: Synthesizer = Synthesizer {
    memory: Memory { solver: Solver::Flow, ..Memory::USUAL },
    kept: Kept::ByShape,
    stands_for: Some(taken),
    ..Synthesizer::new("auto", "the fastest: forest or flow, else the better of direct and ring", ALL_COLLECTIVES, plan)
};

/// What is taken where it finds a plan.
fn taken(kind: CollectiveKind) -> Algorithm {
    match kind {
        CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll => Algorithm::of(&FLOW),
        _ => Algorithm::of(&FOREST),
    }
}

fn plan(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    let (kind, rank_count) = (task.request.collective.kind(), task.topology.rank_count());
    if !are_listed(kind, rank_count) && task.request.shares == Shares::Equal {
        let in_stages = (STAGES.plan)(&task.by(Algorithm::of(&STAGES)));
        let found = match in_stages {
            Err(SynthesisError::Stages(StagesNetworkError::NoBoxes)) => (ORBITS.plan)(&task.by(Algorithm::of(&ORBITS))),
            planned => planned,
        };
        return match found {
            Err(SynthesisError::Orbits(OrbitsNetworkError::NoTorus)) => {
                let max = (1..rank_count).rev().find(|&fewer| are_listed(kind, fewer)).unwrap_or(0);
                Err(StagesNetworkError::TooManyRanks { rank_count, collective: kind, max }.into())
            }
            planned => planned,
        };
    }
    if let Some(planned) = by_rule(task)? {
        return Ok(planned);
    }
    let taken = taken(kind);
    let is_free = task.request.limits.without_tolerance() == TreeLimits::NONE && task.request.sums.form.is_none();
    match (taken.plan)(&task.by(taken)) {
        // No part of the network was found in which trees can be packed, or an all-to-all is too large for flows.
        Err(
            SynthesisError::NotEulerian { .. } | SynthesisError::TooUneven | SynthesisError::TooManyVariables { .. },
        ) if is_free => better_of_direct_and_ring(task),
        planned => planned,
    }
}

/// Most ranks whose trees are written down where a rule would do: they take less than a second and some megabytes, and
/// runtimes read them.
const TREES_RANKS_MAX: u32 = 1024;

/// Whether a request to [`AUTO`] is met by a rule, for callers that need the size of a plan in advance.
///
/// # Errors
/// Ranks that are not connected; stopped. **Cost.** That of the plan: a tenth of a second for 5,000 ranks.
pub fn is_by_rule(topology: &Topology, request: &SynthesisRequest, stop: &dyn Stop) -> Result<bool, SynthesisError> {
    let algorithm = Algorithm::of(&AUTO);
    let task = Task { topology, request, algorithm, known: None, stop, progress: &Silent };
    by_rule(&task).map(|planned| planned.is_some())
}

/// Of many ranks, a plan by a rule than which none is faster, if nothing is asked of its trees: it takes a hundredth of
/// the time and memory, and each rank has few peers.
fn by_rule(task: &Task<'_>) -> Result<Option<Synthesized>, SynthesisError> {
    let &SynthesisRequest { collective, ref shares, limits, sums, .. } = task.request;
    let is_open = limits.without_tolerance() == TreeLimits::NONE && sums == SumOptions::AUTO;
    let is_large = task.topology.rank_count() > TREES_RANKS_MAX && *shares == Shares::Equal;
    if !is_open || !is_large || !STAGES.collectives.contains(&collective.kind()) {
        return Ok(None);
    }
    let in_stages = stages::optimal(&task.by(Algorithm::of(&STAGES)));
    let found = match in_stages {
        Err(SynthesisError::Stages(_)) => orbits::optimal(&task.by(Algorithm::of(&ORBITS))),
        planned => planned,
    };
    match found {
        // It is neither of boxes nor a torus.
        Err(SynthesisError::Orbits(_)) => Ok(None),
        found => found,
    }
}

/// The one that keeps its busiest link for less time, direct where both are alike.
fn better_of_direct_and_ring(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    let by_direct = (DIRECT.plan)(&task.by(Algorithm::of(&DIRECT)))?;
    let around_ring = Task { progress: &Silent, ..task.by(Algorithm::of(&RING)) };
    let by_ring = match (RING.plan)(&around_ring) {
        Ok(by_ring) => by_ring,
        Err(SynthesisError::NoRing { .. } | SynthesisError::TooManyHops { .. }) => return Ok(by_direct),
        Err(error) => return Err(error),
    };
    let seconds = |planned: &Synthesized| seconds_per_byte(task.topology, &planned.schedule.shape);
    Ok(if seconds(&by_ring) < seconds(&by_direct) { by_ring } else { by_direct })
}
