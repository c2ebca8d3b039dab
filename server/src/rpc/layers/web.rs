//! The calls of browsers: the same services over HTTP/1.1 (gRPC-Web), for pages of this server alone.

use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use tonic::codegen::http::{self, HeaderMap, HeaderValue, StatusCode};
use tonic_web::GrpcWebLayer;
use tower::Layer as _;
use tower::util::BoxCloneSyncService;

use crate::access::Access;
use crate::net::around::{Answer, Around, Calls, WebCalls, around};

/// How messages are sent: as bytes, not as Base64. A form of another site cannot state such a type.
const CONTENT_TYPES: [&str; 2] = ["application/grpc-web+proto", "application/grpc-web"];
/// Where a browser says that a call comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The services for browsers.
pub(crate) fn web<S>(service: S, access: Access) -> WebCalls
where
    S: Calls<Body> + Clone + Send + Sync + 'static,
{
    BoxCloneSyncService::new(around(OwnPages(access), GrpcWebLayer::new().layer(service)))
}

/// Refuses what pages of other servers ask for.
#[derive(Clone, Debug)]
struct OwnPages(Access);

impl<S> Around<S, Body> for OwnPages
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = std::convert::Infallible>,
    S::Future: Send + 'static,
{
    type Inner = Body;

    fn call(&self, request: http::Request<Body>, inner: &mut S) -> Answer {
        match refusal(request.headers(), self.0.is_guarded()) {
            None => Box::pin(inner.call(request)),
            Some((status, problem)) => {
                let mut answer = http::Response::new(Body::new(format!("{problem}\n")));
                *answer.status_mut() = status;
                answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
                Box::pin(async { Ok(answer) })
            }
        }
    }
}

/// Why a call with these headers is refused, if it is; `is_guarded`: callers must say who they are.
fn refusal(headers: &HeaderMap, is_guarded: bool) -> Option<(StatusCode, &'static str)> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let content_type = text(CONTENT_TYPE).unwrap_or_default();
    if !CONTENT_TYPES.contains(&content_type) {
        return Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, "send `content-type: application/grpc-web+proto`"));
    }
    let host = text(HOST).unwrap_or_default();
    let is_own_origin = |origin: &str| {
        let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    };
    let is_foreign = text(FETCH_SITE).is_some_and(|site| site != "same-origin")
        || text(ORIGIN).is_some_and(|origin| !is_own_origin(origin));
    if is_foreign {
        return Some((StatusCode::FORBIDDEN, "only pages of this server may make this call"));
    }
    // Another site's name may be made to lead here, and its pages then are of one origin with this port.
    if !is_guarded && !is_loopback(host) {
        return Some((
            StatusCode::FORBIDDEN,
            "without access rules, call this server by a loopback address or `localhost`",
        ));
    }
    None
}

/// Whether a host names this machine whatever name servers say.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&'static str, &'static str)], is_guarded: bool, expected: Option<StatusCode>) {
        let mut all = HeaderMap::new();
        all.insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPES[0]));
        for (name, value) in headers {
            all.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        assert_eq!(refusal(&all, is_guarded).map(|(status, _)| status), expected, "{headers:?}");
    }

    #[test]
    fn only_pages_of_this_server_may_call() {
        let forbidden = Some(StatusCode::FORBIDDEN);
        let host = ("host", "127.0.0.1:7424");
        check(&[host], false, None);
        check(&[host, ("origin", "http://127.0.0.1:7424"), ("sec-fetch-site", "same-origin")], false, None);
        check(&[("host", "Canopy.example"), ("origin", "https://canopy.example")], true, None);
        check(&[host, ("origin", "http://127.0.0.1:8080")], false, forbidden);
        check(&[host, ("origin", "null")], true, forbidden);
        check(&[host, ("sec-fetch-site", "cross-site")], true, forbidden);
        check(&[host, ("sec-fetch-site", "same-site")], true, forbidden);
        check(&[host, ("origin", "file://127.0.0.1:7424")], true, forbidden);
    }

    #[test]
    fn a_form_cannot_call() {
        for of_form in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
            let unsupported = Some(StatusCode::UNSUPPORTED_MEDIA_TYPE);
            check(&[("host", "localhost"), ("content-type", of_form)], true, unsupported);
        }
    }

    #[test]
    fn a_name_that_is_made_to_lead_here_is_not_this_server() {
        let rebound = [("host", "evil.example:7424"), ("origin", "http://evil.example:7424")];
        check(&rebound, false, Some(StatusCode::FORBIDDEN));
        check(&rebound, true, None);
        for own in ["localhost", "LOCALHOST:7424", "127.0.0.1", "127.9.9.9:1", "[::1]:7424", "[::1]"] {
            check(&[("host", own)], false, None);
        }
        for other in ["", "10.0.0.1:7424", "localhost.evil.example", "127.0.0.1.evil.example:1", "0.0.0.0"] {
            check(&[("host", other)], false, Some(StatusCode::FORBIDDEN));
        }
    }
}
