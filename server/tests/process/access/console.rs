//! The console and its calls: who is let in, and from which pages.

use std::fmt::Write as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Issued, Shows, guarded};
use crate::support::{Process, request};

/// Calls a method over gRPC-Web with an empty message; the answer as text, headers included.
async fn call(process: &Process, method: &str, host: &str, shows: &Shows) -> String {
    let mut request = format!("POST /canopy.v1.{method} HTTP/1.1\r\nHost: {host}\r\n");
    request += "Content-Type: application/grpc-web+proto\r\nContent-Length: 5\r\n";
    for (name, value) in shows.headers() {
        write!(request, "{name}: {value}\r\n").unwrap();
    }
    let mut connection = TcpStream::connect(process.address("admin")).await.unwrap();
    connection.write_all(format!("{request}\r\n\0\0\0\0\0").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of a call, among the headers of a refusal and at the end of the body of an answer.
fn status(answer: &str) -> Option<u32> {
    let (_, rest) = answer.rsplit_once("grpc-status:")?;
    rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_is_served_unless_it_is_off() {
    let on = Process::start(|_, _| {});
    let page = on.page("/console/").await;
    assert!(
        page.starts_with("HTTP/1.0 200") && page.contains("content-security-policy: default-src 'self';"),
        "{page}"
    );
    assert!(on.page("/console").await.contains("location: /console/"));
    assert!(on.page("/console/nothing").await.starts_with("HTTP/1.0 404"));
    assert!(on.page("/canopy/nothing").await.starts_with("HTTP/1.0 404"));
    let off = Process::start(|command, _| {
        command.arg("--console=false");
    });
    assert!(off.page("/console/").await.starts_with("HTTP/1.0 404"));
    assert!(off.page("/readyz").await.starts_with("HTTP/1.0 200"));
    let refused = call(&off, "Server/GetStatus", "localhost", &Shows::nothing()).await;
    assert!(refused.starts_with("HTTP/1.1 404"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_pages_of_the_server_make_calls() {
    let process = Process::start(|_, _| {});
    let own = process.address("admin").to_string();
    let from = |origin: &str| Shows::header("origin", origin);
    let answer = call(&process, "Server/GetStatus", &own, &from(&format!("http://{own}"))).await;
    assert!(answer.starts_with("HTTP/1.1 200") && status(&answer) == Some(0), "{answer}");
    assert!(!answer.to_lowercase().contains("access-control-"), "{answer}");
    for (host, shows) in [
        (own.as_str(), from("http://evil.example")),
        (own.as_str(), Shows::header("sec-fetch-site", "cross-site")),
        // A name of another site that is made to lead here.
        ("evil.example", from("http://evil.example")),
    ] {
        let refused = call(&process, "Server/GetStatus", host, &shows).await;
        assert!(refused.starts_with("HTTP/1.1 403") && status(&refused).is_none(), "{host}: {refused}");
    }
}

/// A call over this port comes from a host, not from the owner of the server.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_cannot_drain_what_only_the_socket_may() {
    let process = Process::start(|_, _| {});
    let refused = call(&process, "Server/Drain", "localhost", &Shows::nothing()).await;
    assert_eq!(status(&refused), Some(7), "{refused}");
    assert!(process.page("/readyz").await.starts_with("HTTP/1.0 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_the_console_are_let_in_by_the_rules() {
    let issued = Issued::new();
    let process = guarded(&issued);
    // The files are for everybody: they say nothing of the server.
    assert!(process.page("/console/").await.starts_with("HTTP/1.0 200"));
    let nobody = Shows::nothing();
    for (shows, method, expected) in [
        (&nobody, "Server/GetStatus", 16),
        (&issued.token("viewer"), "Server/GetStatus", 0),
        (&issued.token("viewer"), "Plans/ListPlans", 0),
        (&issued.token("viewer"), "Plans/PinPlan", 7),
        (&issued.token("viewer").and("x-canopy-tenant", "blue"), "Plans/ListPlans", 7),
        // It is let in, and names no plan.
        (&issued.token("operator"), "Plans/PinPlan", 3),
    ] {
        let answer = call(&process, method, "planner.example", shows).await;
        assert_eq!(status(&answer), Some(expected), "{method}: {answer}");
    }
}

/// The port of the console outlives the calls: neither it nor a page that watches keeps the store from being closed in order.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_watches_does_not_keep_the_store_open() {
    let process = Process::start(|_, _| {});
    process.client().await.plan(request("ring:4").into_plan()).await.unwrap();
    let mut watching = TcpStream::connect(process.address("admin")).await.unwrap();
    let head = "POST /canopy.v1.Leases/WatchLeases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n";
    let asked = format!("{head}Content-Type: application/grpc-web+proto\r\n\r\n\0\0\0\0\0");
    watching.write_all(asked.as_bytes()).await.unwrap();
    let mut begun = [0; 12];
    watching.read_exact(&mut begun).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    process.signal("TERM");
    let folder = process.end_in_order();
    let next = Process::start_in(folder, |_, _| {});
    let words: Vec<_> = next.beginning.iter().filter(|line| line["level"] != "INFO").collect();
    assert!(words.is_empty(), "{words:?}");
}
