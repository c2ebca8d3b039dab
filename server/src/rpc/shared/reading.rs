//! From a request that says all it means to an order, its terms, and what its call asks for besides.

use std::sync::Arc;

use canopy_planner::RequestKey;
use canopy_wire::Priority;
use tonic::Status;

use crate::clock;
use crate::failure::PlanFailure;
use crate::jobs::job::Goal;
use crate::replan::Replanner;
use crate::rpc::shared::deadline::DeadlinePolicy;
use crate::rpc::shared::decode::{Decoded, Method, decode};
use crate::rpc::shared::deliver::{CallTerms, Read};
use crate::rpc::shared::request_log::RequestLog;
use crate::rpc::shared::resolve::Resolved;
use crate::rpc::shared::status::to_status;
use crate::tenant::{Admitted, IsolatedTenant, Viewer};

/// Reads requests by the rules of this server. Clones share them.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(in crate::rpc) deadlines: DeadlinePolicy,
    /// Isolated tenants: their plans are given to no other.
    pub(in crate::rpc) isolated: Arc<[IsolatedTenant]>,
    /// Knows who has leases.
    pub(in crate::rpc) replanner: Replanner,
}

impl Reader {
    /// Decodes a request, for the tenant who sends it.
    pub(in crate::rpc) fn read(&self, resolved: Resolved, method: Method) -> Result<Read, Status> {
        let Resolved { request, applied } = resolved;
        let arrived = clock::now();
        let deadline = self.deadlines.apply(request.metadata());
        let mut log = RequestLog::new(method.name(), arrived);
        let is_guarded = request.extensions().get::<Admitted>().is_some();
        let decoded = Viewer::of(request.metadata()).and_then(|viewer| {
            let Decoded { mut order, quality, terms } = decode(request.into_inner(), method)?;
            order.tenant = viewer.owner(&self.isolated);
            let is_repair = terms.priority == Priority::Repair && method.goal() == Goal::Plan;
            if is_repair && is_guarded && !self.has_leases(&viewer) {
                return Err(PlanFailure::RepairWithoutLease);
            }
            Ok(Decoded { order, quality, terms })
        });
        match decoded {
            Ok(Decoded { order, quality, terms }) => {
                let key = RequestKey::of(&order);
                log.describe(&key, &order);
                let call = CallTerms { arrived, deadline, key, quality, applied, log };
                Ok(Read { call, order, terms, goal: method.goal() })
            }
            Err(error) => {
                let status = to_status(&error);
                log.failed(&status);
                Err(status)
            }
        }
    }

    /// Whether a tenant has leases, whose plans may have to be repaired.
    fn has_leases(&self, viewer: &Viewer) -> bool {
        self.replanner.leases().owned_by(viewer.name()) > 0
    }
}
