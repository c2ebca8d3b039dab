//! Lets in the calls of those who may make them, each for the tenant that is theirs.
//!
//! Everything behind this believes the header that names the tenant: here it is set, or taken out.

use canopy_access::audit::Entry;
use canopy_access::{Denied, Effect, Quota, method};
use canopy_planner::TenantName;
use canopy_wire::{RequestError, TENANT_HEADER};
use http_body::Frame;
use http_body_util::BodyExt as _;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::HeaderValue;
use tonic::codegen::http::header::AUTHORIZATION;
use tonic::codegen::{Bytes, http};

use crate::access::{Access, Shown, Stranger};
use crate::call::{self, CallContext, Caller};
use crate::clock;
use crate::failure::PlanFailure;
use crate::metrics::Metrics;
use crate::net::around::{Answer, Around, Calls};
use crate::net::peer::{Host, Peer};
use crate::ops::audit::AuditLog;
use crate::quota::{Accounts, OverQuota, Used};
use crate::rpc::layers::audited::audited;
use crate::rpc::layers::record::code_name;
use crate::rpc::layers::revoked::{Revocable, revoked};
use crate::rpc::shared::status::{denied, stranger, to_status, unaudited};
use crate::tenant::Admitted;

/// Longest name of a method that is written down.
const METHOD_CHARS_MAX: usize = 100;

/// Refuses what is not allowed, and writes down what is changed.
#[derive(Clone)]
pub(crate) struct Guard {
    access: Access,
    audit: Option<AuditLog>,
    accounts: Accounts,
    metrics: Metrics,
}

/// Why a call is refused before its handler sees it.
enum Refusal {
    Stranger(Stranger),
    Denied(Denied),
    Tenant(PlanFailure),
    Quota(PlanFailure),
    NoMethod,
}

impl Refusal {
    fn status(&self) -> Status {
        match self {
            Self::Stranger(why) => stranger(why),
            Self::Denied(why) => denied(why),
            Self::Tenant(failure) | Self::Quota(failure) => to_status(failure),
            Self::NoMethod => Status::unimplemented("this server has no such method; update the client or the server"),
        }
    }
}

impl<S, B> Around<S, B> for Guard
where
    S: Calls<B>,
{
    type Inner = B;

    fn call(&self, mut request: http::Request<B>, inner: &mut S) -> Answer {
        let mut entry = self.entry(&request);
        let effect = match self.judge(&mut request, &mut entry) {
            Ok(Some(effect)) => effect,
            Ok(None) => return Box::pin(inner.call(request)),
            Err(refusal) => return self.refuse(&refusal, entry),
        };
        let again = self.again(&request);
        let used = match self.bill(&entry) {
            Ok(used) => used,
            Err(over) => return self.refuse(&Refusal::Quota(over.into()), entry),
        };
        let answer: Answer = match (effect, &self.audit) {
            (Effect::Changes, Some(log)) if !log.takes_changes() => {
                self.metrics.count("canopy_access_refusals_total", &[("reason", "audit".into())]);
                Box::pin(async { Ok(unaudited().into_http()) })
            }
            (Effect::Changes, Some(log)) => audited(log.clone(), entry, inner.call(request)),
            (Effect::Changes | Effect::Reads | Effect::Computes, _) => Box::pin(inner.call(request)),
        };
        let answer = if used.is_something() { holding(used, answer) } else { answer };
        match again {
            Some(again) => watched(self.access.clone(), again, answer),
            None => answer,
        }
    }
}

/// The answer of a call that holds something until the last of it is sent.
fn holding(used: Used, answer: Answer) -> Answer {
    Box::pin(async move {
        let response = answer.await?;
        let hold = move |_: &Frame<Bytes>| _ = &used;
        Ok(response.map(|body| Body::new(body.inspect_frame(hold))))
    })
}

/// What it takes to judge a call again.
struct Again {
    path: &'static str,
    shown: Shown,
    headers: http::HeaderMap,
    tenant: Option<TenantName>,
}

/// The answer of a call that goes on for as long as its caller is let in.
fn watched(access: Access, again: Again, answer: Answer) -> Answer {
    Box::pin(async move {
        let response = answer.await?;
        let rules = access.clone();
        let judge = move || {
            let Again { path, shown, headers, tenant } = &again;
            let identity = rules.identify(shown, headers).map_err(|why| stranger(&why))?;
            identity.admit(path, tenant.as_ref(), clock::unix_ms()).map_err(|why| denied(&why))?;
            Ok(identity.expires_ms)
        };
        Ok(response.map(|body| Body::new(Revocable::new(body, revoked(access, judge)))))
    })
}

impl Guard {
    /// A guard with these rules; without `audit` nothing is written down.
    pub(crate) fn new(access: Access, audit: Option<AuditLog>, accounts: Accounts, metrics: Metrics) -> Self {
        Self { access, audit, accounts, metrics }
    }

    /// What is known of a call before it is judged.
    fn entry<B>(&self, request: &http::Request<B>) -> Entry {
        let host = request.extensions().get::<Peer>().map_or(Host::Local, |peer| peer.host);
        Entry {
            time_ms: clock::unix_ms(),
            peer: host.to_string(),
            method: request.uri().path().trim_start_matches('/').chars().take(METHOD_CHARS_MAX).collect(),
            trace_id: CallContext::current().map(|call| call.trace_id().to_string()).unwrap_or_default(),
            ..Entry::default()
        }
    }

    /// What the call does, if it may be made; the entry then says who makes it, and for whom. `None` if it is open to all.
    fn judge<B>(&self, request: &mut http::Request<B>, entry: &mut Entry) -> Result<Option<Effect>, Refusal> {
        let path = request.uri().path().trim_start_matches('/');
        let known = method(path);
        if known.is_some_and(|method| method.open) {
            request.headers_mut().remove(TENANT_HEADER);
            return Ok(None);
        }
        let shown = request.extensions().get::<Shown>().cloned().unwrap_or_default();
        let identity = self.access.identify(&shown, request.headers()).map_err(Refusal::Stranger)?;
        identity.name.clone_into(&mut entry.identity);
        entry.source = identity.source.to_string();
        let known = known.ok_or(Refusal::NoMethod)?;
        let wanted = wanted(request).map_err(Refusal::Tenant)?;
        let tenant = identity.admit(known.path, wanted.as_ref(), clock::unix_ms()).map_err(Refusal::Denied)?;
        tenant.as_ref().map_or("", |name| name.as_str()).clone_into(&mut entry.tenant);
        if self.access.is_guarded() {
            let caller = Caller { identity: identity.name, tenant: entry.tenant.clone() };
            CallContext::current().iter().for_each(|call| call.comes_from(caller.clone()));
            request.extensions_mut().insert(Admitted);
        }
        let headers = request.headers_mut();
        match tenant.and_then(|name| HeaderValue::from_str(name.as_str()).ok()) {
            Some(value) => _ = headers.insert(TENANT_HEADER, value),
            None => _ = headers.remove(TENANT_HEADER),
        }
        Ok(Some(known.effect))
    }

    /// The answer of a call that is not let in, once its line is written.
    fn refuse(&self, refusal: &Refusal, mut entry: Entry) -> Answer {
        let status = refusal.status();
        self.note(refusal, &status, &mut entry);
        let audit = self.audit.clone();
        Box::pin(async move {
            if let Some(log) = audit {
                log.refused(entry).await;
            }
            Ok(status.into_http())
        })
    }

    /// How to judge a call that was let in again, if it goes on without end.
    fn again<B>(&self, request: &http::Request<B>) -> Option<Again> {
        let known = method(request.uri().path().trim_start_matches('/'))?;
        if !known.endless || !self.access.is_guarded() {
            return None;
        }
        let shown = request.extensions().get::<Shown>().cloned().unwrap_or_default();
        let mut headers = http::HeaderMap::new();
        headers.extend(request.headers().get(AUTHORIZATION).map(|value| (AUTHORIZATION, value.clone())));
        Some(Again { path: known.path, shown, headers, tenant: wanted(request).ok()? })
    }

    /// Counts a call against the quotas of its tenant and its caller.
    fn bill(&self, entry: &Entry) -> Result<Used, OverQuota> {
        let bill = self.accounts.of(&entry.identity, &entry.tenant, self.access.rules().quotas());
        bill.spend(Quota::RequestsPerSecond)?;
        let used = bill.take(Quota::Calls)?;
        CallContext::current().iter().for_each(|call| call.billed_to(bill.clone()));
        Ok(used)
    }

    /// Counts and logs a refusal.
    fn note(&self, refusal: &Refusal, status: &Status, entry: &mut Entry) {
        let reason = match refusal {
            Refusal::Stranger(_) => "identity",
            Refusal::Denied(_) => "role",
            Refusal::Tenant(_) => "tenant",
            Refusal::Quota(_) => "quota",
            Refusal::NoMethod => "method",
        };
        self.metrics.count("canopy_access_refusals_total", &[("reason", reason.into())]);
        if let Some(skipped) = call::may_log(status.code()) {
            let skipped = (skipped > 0).then_some(skipped);
            let Entry { method, identity, peer, .. } = &*entry;
            tracing::info!(method, identity, peer, code = ?status.code(), skipped, message = status.message());
        }
        code_name(status.code()).clone_into(&mut entry.outcome);
        status.message().clone_into(&mut entry.message);
    }
}

/// The tenant that the headers name.
fn wanted<B>(request: &http::Request<B>) -> Result<Option<TenantName>, PlanFailure> {
    let mut values = request.headers().get_all(TENANT_HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes());
    text.parse().map(Some).map_err(|error| PlanFailure::Request(RequestError::Tenant(error)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use canopy_access::METHODS;

    use crate::rpc::methods;

    /// A method that is not in the table cannot be called; one in the table that is not served is a mistake.
    #[test]
    fn the_table_lists_every_method_that_is_served_and_no_other() {
        let served: BTreeSet<String> = methods().paths().map(|path| path.trim_start_matches('/').to_owned()).collect();
        let listed: BTreeSet<String> =
            METHODS.iter().map(|row| row.path.to_owned()).filter(|path| !path.starts_with("http/")).collect();
        assert_eq!(served, listed);
    }
}
