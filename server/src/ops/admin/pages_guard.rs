//! Shows a page to those who may see it; whether the process lives is for everybody.

use axum::extract::{Extension, Request, State};
use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use canopy_access::method;

use crate::access::{Access, Shown};
use crate::clock;

/// Answers a request, or says why not.
pub(super) async fn admit(
    State(access): State<Access>,
    Extension(shown): Extension<Shown>,
    request: Request,
    next: Next,
) -> Response {
    let path = format!("http{}", request.uri().path());
    // What is not in the table is no page.
    if method(&path).is_none_or(|page| page.open) {
        return next.run(request).await;
    }
    let identity = match access.identify(&shown, request.headers()) {
        Ok(identity) => identity,
        Err(why) => {
            let headers = [(WWW_AUTHENTICATE, "Bearer")];
            return (StatusCode::UNAUTHORIZED, headers, format!("{why}\n")).into_response();
        }
    };
    match identity.admit(&path, None, clock::unix_ms()) {
        Ok(_) => next.run(request).await,
        Err(why) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
    }
}
