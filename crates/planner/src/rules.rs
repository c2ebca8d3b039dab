//! Which requests `auto` meets by a rule, found out once: such plans take next to no memory.

use canopy_schedule::{Collective, Shares};
use canopy_synth::{Algorithm, Stop, SynthesisRequest, is_by_rule};
use canopy_topology::Topology;
use parking_lot::Mutex;

use crate::error::PlanError;
use crate::key::PlanKey;
use crate::recent::Recent;
use crate::request::{Making, Request};

/// Bytes of answers that are kept, and of one.
const BYTES_MAX: u64 = 1 << 20;
const ANSWER_BYTES: u64 = 128;

/// Answers that were found lately.
#[derive(Debug)]
pub(crate) struct Rules {
    recent: Mutex<Recent<PlanKey, bool>>,
}

impl Rules {
    pub(crate) fn new() -> Self {
        Self { recent: Mutex::new(Recent::new(BYTES_MAX)) }
    }

    /// Whether the request of a key is met so. What cannot be decided here is found out again, and told, where the plan
    /// is made.
    ///
    /// * **Errors.** Stopped. **Cost.** That of the plan by a rule, if there is one, the first time.
    pub(crate) fn meet(
        &self,
        key: &PlanKey,
        request: &Request,
        topology: &Topology,
        (collective, shares): (Collective, &Shares),
        stop: &dyn Stop,
    ) -> Result<bool, PlanError> {
        let is_searched = matches!(request.making, Making::Searched) && request.joint.is_none();
        if request.algorithm != Algorithm::Auto || !is_searched {
            return Ok(false);
        }
        if let Some(known) = self.recent.lock().get(key) {
            return Ok(known);
        }
        let (shares, limits, sums) = (shares.clone(), request.limits, request.sums_on(topology));
        let wanted = SynthesisRequest { shares, limits, sums, ..SynthesisRequest::new(collective, request.algorithm) };
        let found = is_by_rule(topology, &wanted, stop) == Ok(true);
        if stop.is_requested() {
            return Err(PlanError::Stopped);
        }
        self.recent.lock().keep(*key, found, ANSWER_BYTES);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use canopy_schedule::CollectiveKind;
    use canopy_synth::{Never, TreeLimits};
    use canopy_topology::TopologyLimits;

    use super::*;
    use crate::planner::Planner;

    /// What trees would take is over the limit of most servers, and they are not needed.
    #[test]
    fn plans_by_rule_take_little_memory() {
        let planner = Planner::new(TopologyLimits::STANDARD);
        let needed = |limits: TreeLimits| {
            let request = Request { limits, ..Request::on("dgx-h100:boxes=500", CollectiveKind::Allreduce) };
            planner.prepare(&request, &Never).unwrap().memory_bytes
        };
        assert!(needed(TreeLimits::NONE) < 1 << 29);
        assert_eq!(needed(TreeLimits::NONE), needed(TreeLimits::NONE));
        assert_eq!(planner.rules.recent.lock().latest().count(), 1);
        let limited = TreeLimits { max_chunks: NonZeroU64::new(8), ..TreeLimits::NONE };
        assert!(needed(limited) > 8 << 30);
    }
}
