//! `PlanBundle`: a bundle whose plans are made by the calls that everybody makes.

use std::time::Duration;

use bytes::Bytes;
use canopy_planner::PlanError;
use canopy_proto::v1;
use canopy_service::ServiceError;
use canopy_service::bundle::{self, PlanMaker, Work};
use canopy_topology::TopologyLimits;
use canopy_training::job::Room as _;
use tonic::{Request, Status};

use super::PlannerService;
use super::session::Session;
use crate::clock;
use crate::failure::CallFailure;
use crate::rpc::shared::call_pool;
use crate::rpc::shared::status::{call_error, call_status, error_of};

/// The name of the method.
const METHOD: &str = "PlanBundle";

/// Answers a call within its deadline.
pub(super) async fn plan_bundle(
    service: &PlannerService,
    request: Request<v1::PlanBundleRequest>,
) -> Result<v1::PlanBundleResponse, Status> {
    let arrived = clock::now();
    let (headers, _, request) = request.into_parts();
    let session = Session::begun(service, headers, arrived, request.priority);
    let answer = bundle::plan_bundle(&session, request).await;
    let failure = match &answer {
        Err(Failure::Call(failure)) => Some(failure),
        Ok(_) | Err(Failure::Refused(_)) => None,
    };
    call_pool::log(METHOD, arrived, failure);
    answer.map_err(|failure| match failure {
        Failure::Refused(status) => status,
        Failure::Call(failure) => call_status(&failure),
    })
}

/// Why there is no bundle, or no plan for one.
#[derive(Debug)]
pub(super) enum Failure {
    /// A plan was refused, which has said so in the log by itself.
    Refused(Status),
    /// The call has failed.
    Call(CallFailure),
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Self::Call(error.into())
    }
}

impl From<CallFailure> for Failure {
    fn from(failure: CallFailure) -> Self {
        Self::Call(failure)
    }
}

impl PlanMaker for Session {
    type Failure = Failure;

    fn limits(&self) -> TopologyLimits {
        self.service.resolver().limits
    }

    fn left(&self) -> Duration {
        Self::left(self)
    }

    async fn complete(&self, mut request: v1::PlanSpec) -> Result<(v1::PlanSpec, Vec<v1::Warning>), Failure> {
        let resolver = self.service.resolver().clone();
        let completed = Self::compute(self, Self::left(self), move |seat| {
            let applied = resolver.complete(&mut request, &|| seat.is_over())?;
            Ok((request, applied))
        });
        let (request, applied) = completed.await?;
        Ok((request, self.applied.get_or_init(|| applied).warnings().collect()))
    }

    async fn plan(&self, request: v1::PlanSpec, limit: Duration) -> Result<v1::PlanResponse, Failure> {
        self.plan_or_status(request, limit).await.map_err(Failure::Refused)
    }

    fn refusal(failure: &Failure) -> v1::ErrorStatus {
        match failure {
            Failure::Refused(status) => error_of(status),
            Failure::Call(failure) => call_error(failure),
        }
    }

    async fn compute<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&Work<'_>) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, Failure> {
        let computed = Self::compute(self, limit, move |seat| {
            // The seat tells itself why there is no memory.
            let take_memory = |bytes| seat.take(bytes).then_some(()).ok_or(ServiceError::Plan(PlanError::Stopped));
            let done = work(&Work { is_over: &|| seat.is_over(), take_memory: &take_memory });
            done.map_err(CallFailure::from)
        });
        Ok(computed.await?)
    }

    /// The store has it.
    fn keep(&self, _: &str, _: Option<&v1::Artifact>, _: Bytes) {}
}
