//! From the message on the wire to an [`Order`] and what is asked of its job.

use canopy_planner::Request as Order;
use canopy_proto::v1;
use canopy_topology::Ratio;
use canopy_wire as wire;
use canopy_wire::{Priority, RequestError};

use crate::jobs::job::{Goal, Terms, Worker};
use crate::jobs::stand_in::OnMiss;

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
pub(crate) fn decode(request: v1::PlanRequest, method: Method) -> Result<Decoded, RequestError> {
    let terms = terms(&request, method)?;
    // What it makes of known faults is done by now, but for leases.
    wire::fault_policy(request.fault_policy)?;
    if !request.request_id.is_empty() && method != Method::PrefetchPlan {
        return Err(RequestError::NotApplicable { field: "request_id", method: method.name() });
    }
    let stated = request.quality;
    let order = wire::plan_request(request)?;
    Ok(Decoded { order, quality: quality(stated, method)?, terms })
}

fn terms(request: &v1::PlanRequest, method: Method) -> Result<Terms, RequestError> {
    let stated = Priority::stated(request.priority)?;
    let worker = Worker::Planner;
    match method {
        Method::Plan | Method::StreamPlan => {
            Ok(Terms { priority: stated.unwrap_or(Priority::Interactive), detached: request.detached, worker })
        }
        Method::WeighFaults if request.detached => {
            Err(RequestError::NotApplicable { field: "detached", method: method.name() })
        }
        Method::WeighFaults => Ok(Terms { priority: stated.unwrap_or(Priority::Interactive), detached: false, worker }),
        Method::PrefetchPlan => Ok(Terms { priority: stated.unwrap_or(Priority::Prefetch), detached: true, worker }),
        Method::LookUpPlan | Method::ComputeBound => {
            let refused = |field| Err(RequestError::NotApplicable { field, method: method.name() });
            match (stated, request.detached) {
                (Some(_), _) => refused("priority"),
                (None, true) => refused("detached"),
                // Quick, and somebody waits.
                (None, false) => Ok(Terms { priority: Priority::Repair, detached: false, worker }),
            }
        }
    }
}

fn quality(policy: Option<v1::QualityPolicy>, method: Method) -> Result<Quality, RequestError> {
    let Some(policy) = policy else {
        return Ok(Quality::default());
    };
    let on_miss = match v1::OnMiss::try_from(policy.on_miss) {
        Ok(v1::OnMiss::Unspecified | v1::OnMiss::Fail) => OnMiss::Fail,
        Ok(v1::OnMiss::Fallback) => OnMiss::Fallback,
        Ok(v1::OnMiss::BestSoFar) => OnMiss::BestSoFar,
        Err(_) => {
            let (field, number) = ("quality.on_miss".to_owned(), policy.on_miss);
            return Err(RequestError::UnknownValue { field, number, known: ON_MISS });
        }
    };
    if on_miss != OnMiss::Fail
        && matches!(method, Method::LookUpPlan | Method::PrefetchPlan | Method::ComputeBound | Method::WeighFaults)
    {
        return Err(RequestError::NotApplicable { field: "quality.on_miss", method: method.name() });
    }
    let Some(v1::Ratio { numerator, denominator }) = policy.minimum_optimality else {
        // A policy that says nothing is a mistake of the caller.
        let remedy = "set `minimum_optimality` or `on_miss`, or leave out the policy";
        let field = "quality.minimum_optimality";
        let says_something = v1::OnMiss::try_from(policy.on_miss) != Ok(v1::OnMiss::Unspecified);
        let quality = Quality { minimum_optimality: None, on_miss };
        return says_something.then_some(quality).ok_or(RequestError::Missing { field, remedy });
    };
    let error = RequestError::Optimality { numerator, denominator };
    if numerator > denominator {
        return Err(error);
    }
    let minimum = format!("{numerator}/{denominator}").parse().map_err(|_| error)?;
    Ok(Quality { minimum_optimality: Some(minimum), on_miss })
}

#[cfg(test)]
mod tests;
