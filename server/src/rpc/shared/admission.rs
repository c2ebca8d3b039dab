//! From a request for a plan to its job, or at once to its plan: it is resolved, decoded, and put in line.

use std::sync::Arc;

use canopy_proto::v1::Operation;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use crate::call;
use crate::jobs::answers::{Answers, Found};
use crate::jobs::workers::Jobs;
use crate::rpc::shared::call_pool::CallPool;
use crate::rpc::shared::decode::Method;
use crate::rpc::shared::deliver::{Answer, Call};
use crate::rpc::shared::plan_query::PlanQuery;
use crate::rpc::shared::reading::Reader;
use crate::rpc::shared::resolve::{Resolved, Resolver};
use crate::rpc::shared::status::call_status;

/// The way in for requests for plans. Clones share it.
#[derive(Clone)]
pub(crate) struct Admission {
    pub(in crate::rpc) resolver: Resolver,
    pub(in crate::rpc) jobs: Arc<Jobs>,
    pub(in crate::rpc) pool: CallPool,
    pub(in crate::rpc) answers: Answers,
    pub(in crate::rpc) reader: Reader,
}

impl Admission {
    /// Puts the job of a request in line.
    pub(in crate::rpc) async fn admit(&self, request: Request<PlanQuery>, method: Method) -> Result<Call, Status> {
        let resolved = self.resolve(request, method).await?;
        let read = self.reader.read(resolved, method)?;
        Call::submit(&self.jobs.queue, &self.answers, read)
    }

    /// Answers a request at once if its plan is known, otherwise when its job has ended.
    pub(in crate::rpc) async fn answer(&self, request: Request<PlanQuery>, method: Method) -> Result<Answer, Status> {
        let resolved = self.resolve(request, method).await?;
        self.answer_resolved(resolved, method).await
    }

    /// [`answer`](Self::answer) for a request that has been resolved.
    pub(in crate::rpc) async fn answer_resolved(&self, resolved: Resolved, method: Method) -> Result<Answer, Status> {
        let read = self.reader.read(resolved, method)?;
        let Some(Found { delivery, write_back }) = self.answers.find(&read.call.key) else {
            return Call::submit(&self.jobs.queue, &self.answers, read)?.reply().await;
        };
        if write_back {
            self.pool.write_back().await;
        }
        read.call.reply_at_once(delivery)
    }

    /// Admits a prefetch and leaves its job alone.
    pub(in crate::rpc) async fn leave(&self, request: Request<PlanQuery>) -> Result<Operation, Status> {
        let headers = request.metadata().clone();
        let call = self.admit(request, Method::PrefetchPlan).await?;
        self.write_down(&headers, &call).await?;
        let operation = call.leave();
        call::concerns(&operation.name);
        Ok(operation)
    }

    /// Has the job of a call written down before its caller is told that it goes on alone.
    pub(in crate::rpc) async fn write_down(&self, headers: &MetadataMap, call: &Call) -> Result<(), Status> {
        if self.jobs.table.is_none() && self.answers.find(&call.terms.key).is_some() {
            // It ends at once, with a plan that is stored. Other servers would not know of it.
            return Ok(());
        }
        let (queue, job) = (self.jobs.queue.clone(), Arc::clone(call.subscription.job()));
        let written = self.pool.work(headers, move |_| Ok(queue.write_down(&job)?));
        written.await.map_err(|failure| call_status(&failure))
    }

    /// Completes a request by what is stored and known.
    pub(in crate::rpc) async fn resolve(
        &self,
        request: Request<PlanQuery>,
        method: Method,
    ) -> Result<Resolved, Status> {
        self.resolver.resolve(&self.pool, request, method).await
    }
}
