//! The port for operators, and what a draining server tells its callers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use canopy_planner::PlanError;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{GetMetricsRequest, OutputFormat, OutputSpec, PlanSpec};
use canopy_server::{Order, Pipeline, PlanFailure, Planner, Prepared, Produced, Watch};
use canopy_synth::Stop;
use canopy_topology::TopologyLimits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::support::{GatedPlanner, TestServer, both_outputs, request, spawn, stream};

/// The status and body of a page.
pub(crate) async fn page(server: &TestServer, path: &str) -> (u16, String) {
    let mut connection = TcpStream::connect(server.admin).await.unwrap();
    let asked = format!("GET {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n");
    connection.write_all(asked.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// One line of a page: name and labels, and the value.
type Samples = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// Reads the text format strictly: every family has a type before its samples and its samples together, every line is
/// well formed, no series comes twice, and the buckets of a histogram rise to its count.
fn parse(page: &str) -> Samples {
    let (mut samples, mut types) = (Samples::new(), BTreeMap::new());
    let (mut family, mut seen) = (String::new(), BTreeSet::new());
    assert!(page.ends_with('\n'));
    for line in page.lines().filter(|line| !line.is_empty()) {
        if let Some(comment) = line.strip_prefix("# ") {
            let (keyword, rest) = comment.split_once(' ').unwrap();
            let (name, value) = rest.split_once(' ').unwrap();
            assert!(["HELP", "TYPE"].contains(&keyword), "{line}");
            if keyword == "TYPE" {
                assert!(["counter", "gauge", "histogram"].contains(&value), "{line}");
                assert!(types.insert(name.to_owned(), value.to_owned()).is_none(), "{name} has two types");
                assert!(seen.insert(name.to_owned()), "{name} is in two places");
                name.clone_into(&mut family);
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        let (name, labels) = series.split_once('{').map_or((series, BTreeMap::new()), |(name, rest)| {
            let mut labels = BTreeMap::new();
            let mut rest = rest.strip_suffix('}').unwrap_or_else(|| panic!("no end of labels: {line}"));
            while !rest.is_empty() {
                let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
                let (value, after) = after.split_once('"').unwrap_or_else(|| panic!("no value: {line}"));
                assert!(!value.contains('\\'), "no label needs an escape: {line}");
                assert!(labels.insert(label.to_owned(), value.to_owned()).is_none(), "twice: {line}");
                rest = after.strip_prefix(',').unwrap_or(after);
            }
            (name, labels)
        });
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(is_name(name) && labels.keys().all(|label| is_name(label)), "{line}");
        let suffixes: &[&str] = match types[&family].as_str() {
            "histogram" => &["_bucket", "_sum", "_count"],
            "counter" => {
                assert!(name.ends_with("_total"), "{line}");
                &[""]
            }
            _ => &[""],
        };
        assert!(suffixes.iter().any(|suffix| format!("{family}{suffix}") == name), "{name} is not of {family}");
        assert!(samples.insert((name.to_owned(), labels), value).is_none(), "twice: {line}");
    }
    check_buckets(&samples);
    samples
}

fn check_buckets(samples: &Samples) {
    let mut histograms: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
    for ((name, labels), &value) in samples {
        if let Some(base) = name.strip_suffix("_bucket") {
            let mut labels = labels.clone();
            let limit: f64 = labels.remove("le").unwrap().parse().unwrap();
            histograms.entry((base, labels)).or_default().push((limit, value));
        }
    }
    assert!(!histograms.is_empty());
    for ((base, labels), mut buckets) in histograms {
        buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
        assert!(buckets.is_sorted_by(|left, right| left.1 <= right.1), "{base} {labels:?}");
        let (limit, total) = *buckets.last().unwrap();
        assert!(limit.is_infinite());
        assert_eq!(total.to_bits(), samples[&(format!("{base}_count"), labels)].to_bits());
    }
}

/// The sum of all series of a name that have these labels.
fn sum(samples: &Samples, name: &str, labels: &[(&str, &str)]) -> f64 {
    let wanted = |have: &BTreeMap<String, String>| {
        labels.iter().all(|(label, value)| have.get(*label).is_some_and(|have| have == value))
    };
    samples.iter().filter(|((other, have), _)| other == name && wanted(have)).map(|(_, value)| value).sum()
}

/// Though nobody has asked for the page before.
#[tokio::test(flavor = "multi_thread")]
async fn the_call_for_metrics_shows_figures_of_now() {
    let server = TestServer::start().await;
    server.client().plan(request("ring:8").into_plan()).await.unwrap();
    let asked = GetMetricsRequest { prefixes: ["canopy_cache_", "canopy_plan_latency_"].map(str::to_owned).to_vec() };
    let reply = ServerClient::new(server.channel.clone()).get_metrics(asked).await.unwrap();
    let samples = parse(&reply.into_inner().text);
    let entries = sum(&samples, "canopy_cache_entries", &[("tier", "disk")]);
    assert!((entries - 1.0).abs() < f64::EPSILON, "{samples:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_move_with_what_is_asked() {
    let server = TestServer::start().await;
    let mut client = server.client();
    client.plan(PlanSpec { outputs: both_outputs(), ..request("ring:8") }.into_plan()).await.unwrap();
    client.plan(PlanSpec { outputs: both_outputs(), ..request("ring:8") }.into_plan()).await.unwrap();
    stream(&server, request("ring:6").into_plan()).await.unwrap();
    client.plan(request("ring:none").into_plan()).await.unwrap_err();
    let (status, text) = page(&server, "/metrics").await;
    assert_eq!(status, 200);
    let samples = parse(&text);
    let plan = [("service", "canopy.v1.Planner"), ("method", "Plan")];
    for (name, labels, expected) in [
        ("canopy_build_info", &[("version", env!("CARGO_PKG_VERSION"))][..], 1.0),
        ("canopy_rpc_requests_total", &[plan[0], plan[1], ("code", "OK")], 2.0),
        ("canopy_rpc_requests_total", &[plan[0], plan[1], ("code", "INVALID_ARGUMENT")], 1.0),
        ("canopy_rpc_requests_total", &[("method", "StreamPlan"), ("code", "OK")], 1.0),
        ("canopy_rpc_duration_seconds_count", &plan, 3.0),
        ("canopy_rpc_in_flight", &plan, 0.0),
        ("canopy_plan_requests_total", &[("collective", "allgather"), ("cache", "miss"), ("outcome", "ok")], 2.0),
        ("canopy_plan_requests_total", &[("collective", "allgather"), ("cache", "hit"), ("outcome", "ok")], 1.0),
        ("canopy_plan_requests_total", &[("outcome", "refused")], 1.0),
        ("canopy_plan_latency_seconds_count", &[("cache", "miss"), ("size_class", "le16")], 2.0),
        ("canopy_plan_quality_ratio_count", &[("algorithm", "auto"), ("collective", "allgather")], 2.0),
        ("canopy_plan_quality_ratio_sum", &[], 2.0),
        ("canopy_rpc_message_bytes_count", &[("direction", "in")], 4.0),
        ("canopy_synthesis_total", &[("outcome", "ok")], 2.0),
        ("canopy_synthesis_duration_seconds_count", &[("stage", "all"), ("size_class", "le16")], 2.0),
        ("canopy_synthesis_duration_seconds_count", &[("stage", "verify")], 2.0),
        ("canopy_synthesis_running", &[], 0.0),
        ("canopy_synthesis_queue_depth", &[], 0.0),
        ("canopy_synthesis_queue_wait_seconds_count", &[("priority", "interactive")], 2.0),
        ("canopy_export_total", &[("format", "json"), ("outcome", "ok")], 2.0),
        ("canopy_export_total", &[("format", "msccl-xml"), ("outcome", "ok")], 1.0),
        ("canopy_export_duration_seconds_count", &[("format", "json"), ("profile", "none")], 2.0),
        ("canopy_export_duration_seconds_count", &[("format", "msccl-xml"), ("profile", "msccl")], 1.0),
        ("canopy_artifact_bytes_count", &[("format", "msccl-xml")], 1.0),
        ("canopy_cache_entries", &[("tier", "disk")], 2.0),
        ("canopy_cache_entries", &[("tier", "memory")], 1.0),
        ("canopy_store_operations_total", &[("op", "put"), ("outcome", "ok")], 2.0),
        ("canopy_store_corruptions_total", &[], 0.0),
    ] {
        let found = sum(&samples, name, labels);
        assert!((found - expected).abs() < 0.1, "{name} {labels:?} is {found}, not {expected}\n{text}");
    }
    for name in ["canopy_cache_bytes", "canopy_synthesis_cpu_seconds_total", "process_resident_memory_bytes"] {
        assert!(sum(&samples, name, &[]) > 0.0, "{name}\n{text}");
    }
    server.stop().await;
}

/// Every label has one of few values, all known before any request.
#[track_caller]
fn check_label_values(samples: &Samples) {
    let any_of = |words: &[&str], value: &str| words.contains(&value);
    for (name, labels) in samples.keys() {
        for (label, value) in labels {
            let is_known = match label.as_str() {
                "service" => value == "other" || value.starts_with("canopy.v1.") || value.starts_with("grpc."),
                "method" => value == "other" || canopy_proto_has_method(value),
                "code" => value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'),
                "direction" => any_of(&["in", "out"], value),
                "cache" => any_of(&["hit", "joined", "miss", "none"], value),
                "outcome" => any_of(
                    &["ok", "cancelled", "timeout", "busy", "error", "refused", "infeasible", "made", "unknown"],
                    value,
                ),
                "collective" => any_of(&["unknown", "allgather"], value),
                "algorithm" => any_of(&["auto", "forest"], value),
                "stage" => any_of(&["all", "bound", "solve", "verify", "lower"], value),
                "size_class" => any_of(&["le16", "le64", "le256", "le1024", "gt1024"], value),
                "priority" => any_of(&["repair", "job-start", "interactive", "prefetch"], value),
                "format" => any_of(&["json", "msccl-xml"], value),
                "profile" => any_of(&["none", "msccl"], value),
                "port" => any_of(&["admin", "tcp", "unix"], value),
                "reason" => {
                    any_of(&["full", "host", "silent", "identity", "role", "tenant", "method", "quota", "audit"], value)
                }
                "quota" => canopy_access::Quota::all().any(|quota| quota.name() == value),
                "kind" => value.is_empty() || any_of(&canopy_faults::Target::KINDS, value),
                // Callers choose them; there are 100 and 32 at most.
                "tenant" => name == "canopy_tenant_planning_seconds_total",
                "source" => name == "canopy_fault_events_total",
                "file" => any_of(&["access", "tls"], value),
                "tier" => any_of(&["disk", "memory"], value),
                "op" => value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "result" => any_of(&["ok", "error"], value),
                "le" | "quantile" => value == "+Inf" || value.parse::<f64>().is_ok(),
                "version" | "revision" | "rustc" => name == "canopy_build_info",
                _ => false,
            };
            assert!(is_known, "{name}: {label}=\"{value}\"");
        }
    }
}

/// Whether a service served has a method of this name.
fn canopy_proto_has_method(name: &str) -> bool {
    let sets = [canopy_proto::FILE_DESCRIPTOR_SET, tonic_health::pb::FILE_DESCRIPTOR_SET];
    sets.iter().any(|set| String::from_utf8_lossy(set).contains(name)) || name == "ServerReflectionInfo"
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_a_caller_says_becomes_a_label() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let spec = OutputSpec {
        format: OutputFormat::MscclXml.into(),
        profile: Some("evil-profile".to_owned()),
        instancing: None,
        plain_channels: false,
        max_layers: None,
    };
    let bad = [
        request("evil:8"),
        PlanSpec { algorithm: Some("evil-algorithm".to_owned()), ..request("ring:4") },
        PlanSpec { outputs: vec![spec], ..request("ring:4") },
    ];
    for asked in bad {
        client.plan(asked.into_plan()).await.unwrap_err();
    }
    for path in ["/evil.v1.Service/Method", "/canopy.v1.Planner/Evil"] {
        let mut grpc = tonic::client::Grpc::new(server.channel.clone());
        grpc.ready().await.unwrap();
        let codec = tonic_prost::ProstCodec::<PlanSpec, canopy_proto::v1::PlanResponse>::default();
        let path = tonic::codegen::http::uri::PathAndQuery::from_static(path);
        let refused = grpc.unary(tonic::Request::new(request("ring:4")), path, codec).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented);
    }
    client.plan(request("ring:4").into_plan()).await.unwrap();
    client
        .plan(
            PlanSpec { algorithm: Some("forest".to_owned()), outputs: both_outputs(), ..request("ring:5") }.into_plan(),
        )
        .await
        .unwrap();
    let mut odd = tonic::Request::new(request("ring:6"));
    odd.metadata_mut().insert("user-agent", "evil/1".parse().unwrap());
    odd.metadata_mut().insert("grpc-timeout", "0n".parse().unwrap());
    client.look_up_plan(odd.map(PlanSpec::into_look_up)).await.unwrap_err();
    let (_, text) = page(&server, "/metrics").await;
    assert!(!text.to_lowercase().contains("evil"), "{text}");
    check_label_values(&parse(&text));
    let others = [("service", "other"), ("method", "other"), ("code", "UNIMPLEMENTED")];
    assert!((sum(&parse(&text), "canopy_rpc_requests_total", &others) - 2.0).abs() < 0.1, "{text}");
    server.stop().await;
}

/// Refuses all of its plans.
struct RefusingPlanner(Pipeline);

impl Planner for RefusingPlanner {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        self.0.prepare(order, stop)
    }

    fn produce(&self, _: &Order, _: &Prepared, _: &dyn Stop, _: &dyn Watch) -> Result<Produced, PlanFailure> {
        Err(PlanError::Rejected { check: "load", problem: "too slow".to_owned() }.into())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_reproduces_a_refused_plan_is_kept_and_counted_by_the_next_server_too() {
    let planner = || Arc::new(RefusingPlanner(Pipeline::new(TopologyLimits::STANDARD)));
    let server = TestServer::start_with(|_| {}, planner()).await;
    let refused = server.client().plan(request("ring:4").into_plan()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Internal, "{refused}");
    let kept = async |server: &TestServer| sum(&parse(&page(server, "/metrics").await.1), "canopy_reproducers", &[]);
    let written = async { while kept(&server).await < 0.5 {} };
    tokio::time::timeout(Duration::from_secs(20), written).await.expect("it is written soon");
    let directory = server.stop().await;
    let files = std::fs::read_dir(directory.path().join("reproducers")).unwrap().count();
    assert_eq!(files, 2, "a report and a topology");

    let server = TestServer::start_in(directory, |_| {}, planner()).await;
    assert!((kept(&server).await - 1.0).abs() < 0.1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_server_says_so_everywhere_while_it_finishes() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;

    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    assert_eq!(page(&server, "/readyz").await, (200, "ready\n".to_owned()));
    let mut client = server.client();
    let call = spawn(async move { client.plan(request("ring:6").into_plan()).await });
    gate.wait_for(1, 0);
    assert!(server.drain.start());

    let refused = server.client().plan(request("ring:4").into_plan()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    let delay = refused.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!(delay > Duration::ZERO);
    assert_eq!(page(&server, "/readyz").await, (503, "draining\n".to_owned()));
    assert_eq!(page(&server, "/healthz").await.0, 200);
    let mut health = HealthClient::new(server.channel.clone());
    // The watch says it as soon as it is so.
    let asked = HealthCheckRequest { service: String::new() };
    let mut watch = health.watch(asked).await.unwrap().into_inner();
    while watch.message().await.unwrap().unwrap().status() != ServingStatus::NotServing {}
    drop(watch);
    assert_eq!(server.drain.calls_inside(), 1);
    gate.open();
    assert!(call.await.unwrap().is_ok(), "what was inside is finished");
    server.stop().await;
}
