//! Lets in the calls of those who may make them, each for the tenant that is theirs.
//!
//! Everything behind this believes the header that names the tenant: here it is set, or taken out.

use canopy_access::{Denied, Identity, method};
use canopy_planner::TenantName;
use canopy_wire::{RequestError, TENANT_HEADER};
use tonic::Status;
use tonic::codegen::http;
use tonic::codegen::http::HeaderValue;

use crate::access::{Access, Shown, Stranger};
use crate::around::{Answer, Around, Calls};
use crate::call::{self, CallContext, Caller};
use crate::clock;
use crate::failure::PlanFailure;
use crate::metrics::Metrics;
use crate::rpc::status::{denied, stranger, to_status};

/// Goes with calls where callers are told apart: that one may be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted;

/// Refuses what is not allowed.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) access: Access,
    pub(crate) metrics: Metrics,
}

/// Why a call is refused before its handler sees it.
enum Refusal {
    Stranger(Stranger),
    Denied(Box<Identity>, Denied),
    Tenant(PlanFailure),
    NoMethod,
}

impl Refusal {
    fn status(&self) -> Status {
        match self {
            Self::Stranger(why) => stranger(why),
            Self::Denied(_, why) => denied(why),
            Self::Tenant(failure) => to_status(failure),
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
        match self.judge(&mut request) {
            Ok(()) => Box::pin(inner.call(request)),
            Err(refusal) => {
                let status = refusal.status();
                self.note(request.uri().path(), &refusal, &status);
                Box::pin(async move { Ok(status.into_http()) })
            }
        }
    }
}

impl Guard {
    fn judge<B>(&self, request: &mut http::Request<B>) -> Result<(), Refusal> {
        let path = request.uri().path().trim_start_matches('/');
        let known = method(path);
        if known.is_some_and(|method| method.open) {
            request.headers_mut().remove(TENANT_HEADER);
            return Ok(());
        }
        let shown = request.extensions().get::<Shown>().cloned().unwrap_or_default();
        let identity = self.access.identify(&shown, request.headers()).map_err(Refusal::Stranger)?;
        let known = known.ok_or(Refusal::NoMethod)?;
        let wanted = wanted(request).map_err(Refusal::Tenant)?;
        let tenant = match identity.admit(known.path, wanted.as_ref(), clock::unix_ms()) {
            Ok(tenant) => tenant,
            Err(why) => return Err(Refusal::Denied(Box::new(identity), why)),
        };
        if self.access.is_guarded() {
            let tenant = tenant.as_ref().map_or_else(String::new, |name| name.as_str().to_owned());
            let caller = Caller { identity: identity.name, tenant };
            CallContext::current().iter().for_each(|call| call.comes_from(caller.clone()));
            request.extensions_mut().insert(Admitted);
        }
        let headers = request.headers_mut();
        match tenant.and_then(|name| HeaderValue::from_str(name.as_str()).ok()) {
            Some(value) => _ = headers.insert(TENANT_HEADER, value),
            None => _ = headers.remove(TENANT_HEADER),
        }
        Ok(())
    }

    /// Counts a refusal, and says who was refused what.
    fn note(&self, path: &str, refusal: &Refusal, status: &Status) {
        let reason = match refusal {
            Refusal::Stranger(_) => "identity",
            Refusal::Denied(..) => "role",
            Refusal::Tenant(_) => "tenant",
            Refusal::NoMethod => "method",
        };
        self.metrics.count("canopy_access_refusals_total", &[("reason", reason.into())]);
        let Some(skipped) = call::may_log() else { return };
        let method: String = path.rsplit('/').next().unwrap_or_default().chars().take(80).collect();
        let identity = match refusal {
            Refusal::Denied(identity, _) => Some(identity.name.as_str()),
            _ => None,
        };
        let skipped = (skipped > 0).then_some(skipped);
        tracing::info!(method, identity, code = ?status.code(), skipped, message = status.message());
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

    /// A method that is not in the table is open to nobody; one in the table that is not served is a mistake.
    #[test]
    fn the_table_lists_every_method_that_is_served_and_no_other() {
        let served: BTreeSet<String> = methods().paths().map(|path| path.trim_start_matches('/').to_owned()).collect();
        let listed: BTreeSet<String> =
            METHODS.iter().map(|row| row.path.to_owned()).filter(|path| !path.starts_with("http/")).collect();
        assert_eq!(served, listed);
    }
}
