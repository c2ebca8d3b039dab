//! Traces, as a collector receives them.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};
use tonic::{Request, Response, Status};

use crate::authority::{Authority, Pair};
use crate::support::{Process, request, spawn};

/// Keeps what it is sent.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let scopes = request.into_inner().resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        self.spans.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    async fn start() -> (Self, SocketAddr) {
        Self::serve(tonic::transport::Server::builder()).await
    }

    /// One that shows `own`, and wants callers' certificates to be signed by this authority.
    async fn start_encrypted(own: &Pair, callers: &Authority) -> (Self, SocketAddr) {
        let tls = ServerTlsConfig::new()
            .identity(Identity::from_pem(&own.certificate, &own.key))
            .client_ca_root(Certificate::from_pem(callers.text()));
        Self::serve(tonic::transport::Server::builder().tls_config(tls).unwrap()).await
    }

    async fn serve(mut builder: tonic::transport::Server) -> (Self, SocketAddr) {
        let collector = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = TraceServiceServer::new(collector.clone());
        let server = builder.add_service(service);
        drop(spawn(server.serve_with_incoming(TcpIncoming::from(listener))));
        (collector, address)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_one_trace_below_the_callers_span() {
    let (collector, address) = Collector::start().await;
    let process = Process::start(|command, _| {
        command.args(["--otlp-endpoint", &format!("http://{address}")]);
    });
    let (trace_id, caller) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let mut asked = Request::new(request("ring:8").into_plan());
    asked.metadata_mut().insert("traceparent", format!("00-{trace_id}-{caller}-01").parse().unwrap());
    process.client().await.plan(asked).await.unwrap();
    // A second request, without a trace of its own, is another trace and finds the plan.
    process.client().await.plan(request("ring:8").into_plan()).await.unwrap();
    process.signal("TERM");
    let process_ended = tokio::task::spawn_blocking(|| process.end().0).await.unwrap();
    assert_eq!(process_ended, Some(0));

    let spans = collector.spans.lock().unwrap().clone();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (ours, others): (Vec<&Span>, Vec<&Span>) = spans.iter().partition(|span| hex(&span.trace_id) == trace_id);
    let by_id: BTreeMap<String, &Span> = ours.iter().map(|span| (hex(&span.span_id), *span)).collect();
    let path = |span: &Span| {
        let mut names = vec![span.name.clone()];
        let mut parent = hex(&span.parent_span_id);
        while let Some(span) = by_id.get(&parent) {
            names.insert(0, span.name.clone());
            parent = hex(&span.parent_span_id);
        }
        assert_eq!(parent, caller, "{} hangs below the caller's span", span.name);
        names.join("/")
    };
    let paths: Vec<String> = ours.iter().map(|span| path(span)).collect();
    for expected in ["", "/job", "/job/queue", "/job/canonicalise", "/job/lookup", "/job/bound", "/job/solve"]
        .into_iter()
        .chain(["/job/verify", "/job/lower", "/job/store"])
    {
        assert!(paths.contains(&format!("Plan{expected}")), "{expected}: {paths:?}");
    }
    let start = |name: &str| ours.iter().find(|span| span.name == name).unwrap().start_time_unix_nano;
    let order = ["queue", "canonicalise", "lookup", "bound", "solve", "verify", "lower", "store"];
    assert!(order.windows(2).all(|pair| start(pair[0]) <= start(pair[1])), "{paths:?}");
    assert!(others.iter().any(|span| span.name == "lookup") && others.iter().all(|span| span.name != "solve"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_not_there_harms_nobody() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let process = Process::start(|command, _| {
        command.args(["--otlp-endpoint", &format!("http://{nobody}")]);
    });
    process.client().await.plan(request("ring:4").into_plan()).await.unwrap();
    process.signal("TERM");
    assert_eq!(tokio::task::spawn_blocking(|| process.end().0).await.unwrap(), Some(0));
}

/// A collector that others can reach gets spans encrypted, from a server that says who it is; one that the server has no
/// reason to trust gets none.
#[tokio::test(flavor = "multi_thread")]
async fn spans_are_encrypted_for_a_collector_that_is_trusted() {
    let (servers, strangers, callers) = (Authority::new(), Authority::new(), Authority::new());
    for (trusted, shown, arrives) in
        [(&servers, Some(&callers), true), (&servers, None, false), (&strangers, Some(&callers), false)]
    {
        let own = servers.signs("collector", &["localhost"], 2099);
        let (collector, address) = Collector::start_encrypted(&own, &callers).await;
        let process = Process::start(|command, folder| {
            fs::write(folder.join("ca.pem"), trusted.text()).unwrap();
            command.args(["--otlp-endpoint", &format!("https://localhost:{}", address.port())]);
            command.arg("--otlp-ca").arg(folder.join("ca.pem"));
            if let Some(pair) = shown.map(|authority| authority.signs("canopyd", &[], 2099)) {
                for (flag, name, text) in
                    [("--otlp-certificate", "own.pem", &pair.certificate), ("--otlp-key", "own.key", &pair.key)]
                {
                    fs::write(folder.join(name), text).unwrap();
                    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
                    command.arg(flag).arg(folder.join(name));
                }
            }
        });
        process.client().await.plan(request("ring:4").into_plan()).await.unwrap();
        process.signal("TERM");
        assert_eq!(tokio::task::spawn_blocking(|| process.end().0).await.unwrap(), Some(0));
        let arrived = collector.spans.lock().unwrap().iter().any(|span| span.name == "Plan");
        assert_eq!(arrived, arrives);
    }
}
