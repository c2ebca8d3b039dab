//! What a network is made of, for schedules that are composed along it: as its expression says, or as it is found out.

use canopy_canonical::families::{Made, made_of};
use canopy_canonical::{Budget, WORK_SERVED};
use canopy_synth::{Composition, ConstructionUse, Stop};
use canopy_topology::{Rank, Topology, TopologyLimits, construction};

use crate::error::PlanError;
use crate::request::{Request, TopologyInput};

/// As the request says, if the algorithm asks for it.
///
/// # Errors
/// An expression that is none.
pub(crate) fn stated(request: &Request, limits: &TopologyLimits) -> Result<Option<Composition>, PlanError> {
    match &request.topology {
        TopologyInput::Expression(text) if request.algorithm.construction != ConstructionUse::None => {
            Composition::stated(text, limits).map_err(PlanError::Expression)
        }
        _ => Ok(None),
    }
}

/// As it is found by looking at the network: the same for the same network. None if nothing is found.
///
/// # Errors
/// Stopped. **Cost.** That of [`made_of`].
pub(crate) fn found(
    topology: &Topology,
    limits: &TopologyLimits,
    stop: &dyn Stop,
) -> Result<Option<Composition>, PlanError> {
    let budget = Budget { work_max: WORK_SERVED, stop: &|| stop.is_requested() };
    let Some(Made { expression, counterparts }) = made_of(topology, budget).map_err(|_| PlanError::Stopped)? else {
        return Ok(None);
    };
    let Some(construction) = construction(&expression, limits).map_err(PlanError::Expression)? else {
        return Ok(None);
    };
    let mut ranks = vec![Rank::new(0); counterparts.len()];
    for (rank, node) in (0..).map(Rank::new).zip(&counterparts) {
        ranks[node.index()] = rank;
    }
    Ok(Some(Composition { construction, ranks: Some(ranks) }))
}
