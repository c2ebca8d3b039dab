//! One call that has several plans made, by the calls that everybody makes.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use canopy_proto::v1;
use canopy_service::bundle::SEARCH_MIN;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use super::PlannerService;
use crate::clock;
use crate::failure::CallFailure;
use crate::jobs::computing::Seat;
use crate::rpc::shared::decode::Method;
use crate::rpc::shared::deliver::Answer;
use crate::rpc::shared::known_faults::AppliedFaults;
use crate::rpc::shared::plan_query::PlanQuery;
use crate::rpc::shared::resolve::Resolved;

/// One call.
pub(super) struct Session {
    pub(super) service: PlannerService,
    headers: MetadataMap,
    /// When work must have ended.
    end: Instant,
    /// That of its plans, as on the wire.
    priority: i32,
    /// Known faults that its plans are made around.
    pub(super) applied: OnceLock<AppliedFaults>,
}

impl Session {
    /// A call with these headers and this priority, which arrived then.
    pub(super) fn begun(service: &PlannerService, headers: MetadataMap, arrived: Instant, priority: i32) -> Self {
        let end = arrived + service.deadlines().apply(&headers).work;
        Self { service: service.clone(), headers, end, priority, applied: OnceLock::new() }
    }

    /// Time until work must have ended.
    pub(super) fn left(&self) -> Duration {
        self.end.saturating_duration_since(clock::now())
    }

    /// Makes a plan as `Plan` would, with the content of its files.
    pub(super) async fn plan_or_status(&self, spec: v1::PlanSpec, limit: Duration) -> Result<v1::PlanResponse, Status> {
        let mut request = Request::new(PlanQuery { priority: self.priority, ..spec.into() });
        *request.metadata_mut() = self.headers.clone();
        request.set_timeout(limit.max(SEARCH_MIN));
        let resolved = Resolved { request, applied: self.applied.get().cloned().unwrap_or_default() };
        self.service.admission.answer_resolved(resolved, Method::Plan).await.map(Answer::into_whole)
    }

    /// Computes for at most so long, in the turn of the caller's tenant. What computes is told when it is not wanted any
    /// more.
    pub(super) async fn compute<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&Seat) -> Result<T, CallFailure> + Send + 'static,
    ) -> Result<T, CallFailure> {
        let done = self.service.pool().computed(clock::now() + limit, move |_, seat| work(seat));
        let late = || {
            let deadline_ms = self.service.deadlines().apply(&self.headers).stated.as_millis();
            Err(CallFailure::Late { deadline_ms: u64::try_from(deadline_ms).unwrap_or(u64::MAX) })
        };
        done.await.unwrap_or_else(late)
    }
}
