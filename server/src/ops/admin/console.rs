//! The console: a page for operators, which makes calls as any other client does.
//!
//! Its files are made from `console/` at the top of the repository by `console/build.sh`. They hold nothing secret, so
//! they are for everybody; the calls are let in, or refused, as on the other ports.

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, get};
use tonic::body::Body;
use tower::ServiceExt as _;

use super::ConsoleCalls;

/// What its files may do in a browser: load what is here, and nothing else.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";
/// Headers of every file.
const HEADERS: [(HeaderName, &str); 7] = [
    // A browser asks each time, so that a page fits its server after an upgrade.
    (CACHE_CONTROL, "no-cache"),
    (CONTENT_SECURITY_POLICY, POLICY),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// A file of the console.
struct Asset {
    path: &'static str,
    content_type: &'static str,
    content: &'static [u8],
}

const ASSETS: [Asset; 6] = [
    Asset {
        path: "",
        content_type: "text/html; charset=utf-8",
        content: include_bytes!("../../../assets/console/index.html"),
    },
    Asset {
        path: "console.js",
        content_type: "text/javascript; charset=utf-8",
        content: include_bytes!("../../../assets/console/console.js"),
    },
    Asset {
        path: "reader.js",
        content_type: "text/javascript; charset=utf-8",
        content: include_bytes!("../../../assets/console/reader.js"),
    },
    Asset {
        path: "console.css",
        content_type: "text/css; charset=utf-8",
        content: include_bytes!("../../../assets/console/console.css"),
    },
    Asset {
        path: "icon.svg",
        content_type: "image/svg+xml",
        content: include_bytes!("../../../assets/console/icon.svg"),
    },
    Asset {
        path: "licenses.txt",
        content_type: "text/plain; charset=utf-8",
        content: include_bytes!("../../../assets/console/licenses.txt"),
    },
];

/// Whether a path is that of a call, which may take as long as its deadline allows.
pub(super) fn is_call(path: &str) -> bool {
    path.starts_with("/canopy.v1.")
}

/// Adds the console and its calls.
pub(super) fn add<S: Clone + Send + Sync + 'static>(router: Router<S>, calls: ConsoleCalls) -> Router<S> {
    let call = move |request: Request| answer(calls.clone(), request);
    router
        .route("/", get(|| async { Redirect::temporary("/console/") }))
        .route("/console", get(|| async { Redirect::permanent("/console/") }))
        .route("/console/", get(|headers: HeaderMap| async move { file("", &headers) }))
        .route(
            "/console/{file}",
            get(|Path(path): Path<String>, headers: HeaderMap| async move { file(&path, &headers) }),
        )
        .route("/{service}/{method}", any(call))
}

async fn answer(calls: ConsoleCalls, request: Request) -> Response {
    if !is_call(request.uri().path()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let Some(service) = calls.service() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    match service.oneshot(request.map(Body::new)).await {
        Ok(answer) => ([(X_CONTENT_TYPE_OPTIONS, "nosniff")], answer.map(axum::body::Body::new)).into_response(),
        Err(never) => match never {},
    }
}

/// A file, or that the browser has it.
fn file(path: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = format!("\"{}\"", &blake3::hash(asset.content).to_hex()[..32]);
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|line| line.split(',')).map(|one| one.trim().trim_start_matches("W/"));
    if known.any(|one| one == tag || one == "*") {
        return (StatusCode::NOT_MODIFIED, HEADERS, [(ETAG, tag)]).into_response();
    }
    (HEADERS, [(ETAG, tag), (CONTENT_TYPE, asset.content_type.to_owned())], asset.content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, known: Option<&str>) -> Response {
        let mut headers = HeaderMap::new();
        headers.extend(known.map(|tag| (IF_NONE_MATCH, tag.parse().unwrap())));
        file(path, &headers)
    }

    #[test]
    fn every_file_is_served_under_a_strict_policy() {
        for asset in &ASSETS {
            let answer = of(asset.path, None);
            let header = |name: HeaderName| answer.headers()[name].to_str().unwrap();
            assert_eq!((answer.status(), header(CONTENT_TYPE)), (StatusCode::OK, asset.content_type));
            assert_eq!(header(X_CONTENT_TYPE_OPTIONS), "nosniff");
            assert!(header(CONTENT_SECURITY_POLICY).starts_with("default-src 'self';"));
        }
        assert_eq!(of("../Cargo.toml", None).status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let tag = of("console.js", None).headers()[ETAG].to_str().unwrap().to_owned();
        for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
            assert_eq!(of("console.js", Some(&known)).status(), StatusCode::NOT_MODIFIED, "{known}");
        }
        assert_eq!(of("console.js", Some("\"other\"")).status(), StatusCode::OK);
    }

    /// The policy forbids it, and a page that needs it would be blank.
    #[test]
    fn the_page_has_no_code_of_its_own_and_names_no_other_server() {
        let [page, ..] = &ASSETS;
        let page = std::str::from_utf8(page.content).unwrap();
        for forbidden in ["<script>", "<style", "style=", "onclick", "://"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert!(page.contains("src=\"./console.js\"") && page.contains("href=\"./console.css\""));
    }
}
