//! From the message on the wire to an [`Order`] and what is asked of its job.

use canopy_planner::Request as Order;
use canopy_proto::v1;
use canopy_topology::Ratio;
use canopy_wire as wire;
use canopy_wire::{Priority, RequestError};

use crate::jobs::job::{Goal, Terms, Worker};
use crate::jobs::stand_in::OnMiss;
use crate::rpc::shared::plan_query::PlanQuery;

const ON_MISS: &str = "ON_MISS_FAIL, ON_MISS_FALLBACK or ON_MISS_BEST_SO_FAR";

/// A request: what to plan, and what of it is good enough.
pub(crate) struct Decoded {
    /// What to plan.
    pub(crate) order: Order,
    /// What is good enough. Not part of the order: requests that differ only here share a job.
    pub(crate) quality: Quality,
    /// What it asks of its job. Not part of the order either.
    pub(crate) terms: Terms,
}

/// What of a plan is good enough, and what to do without one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Quality {
    /// Least achieved ÷ bound that is accepted.
    pub(crate) minimum_optimality: Option<Ratio>,
    pub(crate) on_miss: OnMiss,
}

/// The method that was called, as far as it changes what a request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Plan,
    StreamPlan,
    LookUpPlan,
    PrefetchPlan,
    ComputeBound,
    WeighFaults,
}

impl Method {
    /// The name on the wire.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::StreamPlan => "StreamPlan",
            Self::LookUpPlan => "LookUpPlan",
            Self::PrefetchPlan => "PrefetchPlan",
            Self::ComputeBound => "ComputeBound",
            Self::WeighFaults => "WeighFaults",
        }
    }

    /// What its jobs are for.
    pub(crate) const fn goal(self) -> Goal {
        match self {
            Self::Plan | Self::StreamPlan | Self::PrefetchPlan | Self::WeighFaults => Goal::Plan,
            Self::LookUpPlan | Self::ComputeBound => Goal::Lookup,
        }
    }
}

/// Reads a request.
pub(crate) fn decode(asked: PlanQuery, method: Method) -> Result<Decoded, RequestError> {
    let terms = terms(&asked, method)?;
    // What it makes of known faults is done by now, but for leases.
    wire::fault_policy(asked.spec.fault_policy)?;
    let quality = quality(&asked)?;
    if asked.spec.joint.is_some() && quality.on_miss != OnMiss::Fail {
        return Err(RequestError::NotApplicable { field: "on_miss", method: "a joint plan" });
    }
    Ok(Decoded { order: wire::plan_request(asked.spec)?, quality, terms })
}

fn terms(asked: &PlanQuery, method: Method) -> Result<Terms, RequestError> {
    let usual = match method {
        Method::Plan | Method::StreamPlan | Method::WeighFaults => Priority::Interactive,
        Method::PrefetchPlan => Priority::Prefetch,
        // Quick, and somebody waits.
        Method::LookUpPlan | Method::ComputeBound => Priority::Repair,
    };
    let priority = Priority::stated(asked.priority)?.unwrap_or(usual);
    let detached = asked.detached || method == Method::PrefetchPlan;
    Ok(Terms { priority, detached, worker: Worker::Planner })
}

fn quality(asked: &PlanQuery) -> Result<Quality, RequestError> {
    let on_miss = match v1::OnMiss::try_from(asked.on_miss) {
        Ok(v1::OnMiss::Unspecified | v1::OnMiss::Fail) => OnMiss::Fail,
        Ok(v1::OnMiss::Fallback) => OnMiss::Fallback,
        Ok(v1::OnMiss::BestSoFar) => OnMiss::BestSoFar,
        Err(_) => {
            let (field, number) = ("on_miss".to_owned(), asked.on_miss);
            return Err(RequestError::UnknownValue { field, number, known: ON_MISS });
        }
    };
    let minimum_optimality = asked.minimum_optimality.as_ref().map(|stated| {
        let minimum = wire::fraction_read("minimum_optimality", stated)?;
        let (numerator, denominator) = minimum.parts();
        let is_reachable = numerator <= denominator;
        is_reachable.then_some(minimum).ok_or(RequestError::Optimality { found: stated.exact.clone() })
    });
    Ok(Quality { minimum_optimality: minimum_optimality.transpose()?, on_miss })
}

#[cfg(test)]
mod tests;
