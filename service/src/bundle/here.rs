//! Bundles whose plans this process makes itself.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use canopy_planner::Watch;
use canopy_proto::v1;
use canopy_store::{StoreError, clock};
use canopy_synth::Stop;
use canopy_topology::TopologyLimits;
use parking_lot::Mutex;

use super::maker::{PlanMaker, Work};
use super::plan_bundle;
use crate::error::ServiceError;
use crate::planning::{Outcome, PATIENCE, PlanService, ServerReason};
use crate::turns::PAUSE;

/// A bundle with the content of its files.
#[derive(Debug)]
pub struct Bundled {
    /// The answer, as a server gives it: its files have no content.
    pub reply: v1::PlanBundleResponse,
    /// The content of its files.
    pub files: Contents,
}

/// The content of files of plans.
#[derive(Debug, Default)]
pub struct Contents(HashMap<(String, String), Bytes>);

impl Contents {
    /// The content of a file of a plan.
    pub fn of(&self, plan: &str, artifact: &v1::Artifact) -> Option<&[u8]> {
        self.0.get(&(plan.to_owned(), artifact.sha256.clone())).map(AsRef::as_ref)
    }
}

impl PlanService {
    /// Makes the plans of a bundle, or looks them up, each as [`PlanService::plan`] does, until `end`. Blocks.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process has the folder open: ask its server, or try again soon. Otherwise the
    /// reason why there is no answer.
    pub fn plan_bundle(
        &self,
        request: v1::PlanBundleRequest,
        end: Instant,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Outcome<Box<Bundled>>, ServiceError> {
        let here = Here { service: self, end, stop, watch, files: Mutex::default() };
        match at_once(plan_bundle(&here, request)) {
            Ok(reply) => Ok(Outcome::Answered(Box::new(Bundled { reply, files: here.files.into_inner() }))),
            Err(Failure::NeedsServer(reason)) => Ok(Outcome::NeedsServer(reason)),
            Err(Failure::Service(error)) if error.is_cancellation() => Err(ServiceError::Late),
            Err(Failure::Service(error)) => Err(error),
        }
    }
}

/// The end of a future that never waits for anything but its own work.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("in this process, every step of a bundle ends when it returns"),
    }
}

/// A bundle that is made in this process.
struct Here<'a> {
    service: &'a PlanService,
    end: Instant,
    stop: &'a dyn Stop,
    watch: &'a dyn Watch,
    files: Mutex<Contents>,
}

/// Why there is no answer from this process.
#[derive(Debug)]
enum Failure {
    NeedsServer(ServerReason),
    Service(ServiceError),
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl Here<'_> {
    /// Whether this time is over, or the caller has gone.
    fn is_over(&self, end: Instant) -> bool {
        self.stop.is_requested() || clock::now() >= end
    }

    /// Makes a plan until `end`, or finds it. Another process may have the folder open for a moment.
    fn planned(&self, request: &v1::PlanSpec, end: Instant) -> Result<v1::PlanResponse, Failure> {
        let give_up = (clock::now() + PATIENCE).min(end);
        let stop = || self.is_over(end);
        loop {
            match self.service.plan(request.clone().into_plan(), &stop, self.watch) {
                Ok(Outcome::Answered(answer)) => return Ok(answer.reply()),
                Ok(Outcome::NeedsServer(reason)) => return Err(Failure::NeedsServer(reason)),
                Err(ServiceError::Store(StoreError::InUse { .. })) if !self.is_over(give_up) => thread::sleep(PAUSE),
                Err(error) if error.is_cancellation() => return Err(ServiceError::Late.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl PlanMaker for Here<'_> {
    type Failure = Failure;

    fn limits(&self) -> TopologyLimits {
        self.service.limits().topology
    }

    fn left(&self) -> Duration {
        self.end.saturating_duration_since(clock::now())
    }

    async fn complete(&self, request: v1::PlanSpec) -> Result<(v1::PlanSpec, Vec<v1::Warning>), Failure> {
        match self.service.needs_server(&request)? {
            Some(reason) => Err(Failure::NeedsServer(reason)),
            None => Ok((request, Vec::new())),
        }
    }

    async fn plan(&self, request: v1::PlanSpec, limit: Duration) -> Result<v1::PlanResponse, Failure> {
        // Whether faults are known was asked once for all.
        let request = v1::PlanSpec { fault_policy: v1::FaultPolicy::Ignore.into(), ..request };
        self.planned(&request, self.end.min(clock::now() + limit))
    }

    fn refusal(failure: &Failure) -> v1::ErrorStatus {
        match failure {
            Failure::Service(error) => error.operation_error(),
            // The network was looked at before any plan.
            Failure::NeedsServer(reason) => {
                let what = format!("a server has to answer: {reason:?}");
                ServiceError::Broken { what }.operation_error()
            }
        }
    }

    async fn compute<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&Work<'_>) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, Failure> {
        let end = self.end.min(clock::now() + limit);
        let budget = self.service.limits().memory_bytes;
        let take_memory = |bytes: u64| match bytes <= budget {
            true => Ok(()),
            false => Err(ServiceError::Memory { needed: bytes, limit: budget }),
        };
        Ok(work(&Work { is_over: &|| self.is_over(end), take_memory: &take_memory })?)
    }

    fn keep(&self, plan: &str, artifact: Option<&v1::Artifact>, content: Bytes) {
        let digest = artifact.map_or("", |artifact| artifact.sha256.as_str());
        self.files.lock().0.insert((plan.to_owned(), digest.to_owned()), content);
    }
}
