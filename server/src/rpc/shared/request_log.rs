//! One line per finished request.

use std::time::Instant;

use canopy_planner::{Request as Order, RequestKey};
use canopy_proto::v1::{Fallback, Plan, PlanResponse};
use tonic::{Code, Status};

use crate::call::{self, CallContext};
use crate::clock;
use crate::metrics::{NEGATIVE, Timed};

/// Collects what is to be logged of a call, and logs it when the call ends, by whatever means.
pub(crate) struct RequestLog {
    method: &'static str,
    arrived: Instant,
    request: String,
    collective: &'static str,
    plan: String,
    cache: &'static str,
    ranks: u32,
    code: Code,
    message: String,
    fallback: String,
    call: Option<CallContext>,
}

impl RequestLog {
    pub(crate) fn new(method: &'static str, arrived: Instant) -> Self {
        Self {
            method,
            arrived,
            request: String::new(),
            collective: "",
            plan: String::new(),
            cache: "",
            ranks: 0,
            // Until it has ended otherwise, a call that goes away was cancelled.
            code: Code::Cancelled,
            message: "the caller left".to_owned(),
            fallback: String::new(),
            call: CallContext::current(),
        }
    }

    pub(crate) fn describe(&mut self, key: &RequestKey, order: &Order) {
        self.request = key.to_string();
        self.call.iter().for_each(|call| call.asks(*key));
        self.collective = order.kind.name();
    }

    pub(crate) fn answered(&mut self, reply: &PlanResponse, plan: &Plan) {
        self.code = Code::Ok;
        self.message.clear();
        self.cache = reply.cache().as_str_name();
        self.ranks = plan.topology.as_ref().map_or(0, |topology| topology.ranks);
        self.plan.clone_from(&plan.name);
    }

    /// Another plan than the one that was asked for is sent.
    pub(crate) fn stood_in(&mut self, fallback: &Fallback) {
        self.fallback.clone_from(&fallback.reason);
        call::metrics_of_call().plan_fallback(&self.fallback);
    }

    /// What ends the call was remembered, not found out for it.
    pub(crate) fn remembered(&mut self) {
        self.cache = NEGATIVE;
    }

    /// The job goes on without its caller.
    pub(crate) fn left_alone(&mut self) {
        self.code = Code::Ok;
        self.message.clear();
    }

    pub(crate) fn failed(&mut self, status: &Status) {
        self.code = status.code();
        status.message().clone_into(&mut self.message);
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let time = clock::now().duration_since(self.arrived);
        // A call that is cancelled is dropped by whoever drives it, outside of itself.
        let _in_call = self.call.as_ref().map(CallContext::enter);
        let timed = Timed { time, trace_id: self.call.as_ref().map(|call| call.trace_id().bits()) };
        call::metrics_of_call().plan_request(self.collective, self.cache, self.code, self.ranks, timed);
        let Some(skipped) = call::may_log(self.code) else { return };
        tracing::info!(
            method = self.method,
            code = ?self.code,
            request = self.request,
            collective = self.collective,
            plan = self.plan,
            cache = self.cache,
            fallback = (!self.fallback.is_empty()).then_some(self.fallback.as_str()),
            total_ms = clock::millis_since(self.arrived),
            skipped = (skipped > 0).then_some(skipped),
            message = self.message,
        );
    }
}
