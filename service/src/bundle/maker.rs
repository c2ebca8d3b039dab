//! The maker of a bundle's plans.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use canopy_proto::v1;
use canopy_topology::TopologyLimits;

use crate::error::ServiceError;

/// Maker of the plans of a bundle: this process, or a server for one of its calls.
pub trait PlanMaker: Sync {
    /// Why there is no answer.
    type Failure: From<ServiceError> + Send;

    /// Limits of topologies.
    fn limits(&self) -> TopologyLimits;

    /// Time until the answer must be there.
    fn left(&self) -> Duration;

    /// Completes a request with the texts of stored networks and the known faults that it names. Warnings tell of the
    /// faults.
    fn complete(
        &self,
        request: v1::PlanSpec,
    ) -> impl Future<Output = Result<(v1::PlanSpec, Vec<v1::Warning>), Self::Failure>> + Send;

    /// Makes a plan within this time, or finds it; its files have their content.
    fn plan(
        &self,
        request: v1::PlanSpec,
        limit: Duration,
    ) -> impl Future<Output = Result<v1::PlanResponse, Self::Failure>> + Send;

    /// A failure as the failure of a part of an answer.
    fn refusal(failure: &Self::Failure) -> v1::ErrorStatus;

    /// Computes for at most so long.
    fn compute<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&Work<'_>) -> Result<T, ServiceError> + Send + 'static,
    ) -> impl Future<Output = Result<T, Self::Failure>> + Send;

    /// Keeps a file of a plan that the answer names, unless a store has it.
    fn keep(&self, plan: &str, artifact: Option<&v1::Artifact>, content: Bytes);
}

/// The caller of a computation, as the computation sees it.
pub struct Work<'a> {
    /// Whether the caller has gone, or its time is over.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// Reserves this many bytes of memory.
    pub take_memory: &'a (dyn Fn(u64) -> Result<(), ServiceError> + Sync),
}

impl Work<'_> {
    /// Whether the caller has gone, or its time is over.
    pub(super) fn is_over(&self) -> bool {
        (self.is_over)()
    }

    /// Reserves memory before it is allocated.
    ///
    /// # Errors
    /// There is not so much.
    pub(super) fn take_memory(&self, bytes: u64) -> Result<(), ServiceError> {
        (self.take_memory)(bytes)
    }
}

impl std::fmt::Debug for Work<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Work").finish_non_exhaustive()
    }
}
