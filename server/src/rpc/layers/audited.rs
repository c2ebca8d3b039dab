//! A call that changes something, until its line is in the audit log.

use canopy_access::audit::Entry;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::{Code, Status};

use crate::call::CallContext;
use crate::clock;
use crate::net::around::Answer;
use crate::ops::audit::AuditLog;
use crate::rpc::layers::record::code_name;
use crate::rpc::shared::status::unaudited;

/// A call on its way. If it is dropped before its answer, because its caller has left, its line says so: what was begun
/// goes on.
struct Pending {
    log: AuditLog,
    entry: Option<Entry>,
    call: Option<CallContext>,
}

impl Pending {
    /// The line, as far as the call has come.
    fn entry(&mut self, outcome: &str) -> Option<Entry> {
        let mut entry = self.entry.take()?;
        entry.time_ms = clock::unix_ms();
        outcome.clone_into(&mut entry.outcome);
        if let Some(call) = &self.call {
            call.object().unwrap_or_default().clone_into(&mut entry.object);
            call.request_id().unwrap_or_default().clone_into(&mut entry.request_id);
        }
        Some(entry)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(entry) = self.entry("CANCELLED") {
            self.log.leave(entry);
        }
    }
}

/// The answer of a call, once its line is written; if that cannot be done, the caller hears that it does not count.
pub(in crate::rpc) fn audited<F>(log: AuditLog, entry: Entry, answer: F) -> Answer
where
    F: Future<Output = Result<http::Response<Body>, std::convert::Infallible>> + Send + 'static,
{
    let mut pending = Pending { log: log.clone(), entry: Some(entry), call: CallContext::current() };
    Box::pin(async move {
        let response = answer.await?;
        // A refusal has its status among the headers. All methods that change something have one answer, which is made
        // when the work is done.
        let status = Status::from_header_map(response.headers());
        let (code, message) =
            status.map_or((Code::Ok, String::new()), |status| (status.code(), status.message().to_owned()));
        if let Some(mut entry) = pending.entry(code_name(code)) {
            entry.message = message;
            if !log.write(entry).await {
                return Ok(unaudited().into_http());
            }
        }
        Ok(response)
    })
}
