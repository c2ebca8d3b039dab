//! Who may call what: every method as every kind of caller, over a real socket.

mod console;
mod issued;
mod tls;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use canopy_proto::FILE_DESCRIPTOR_SET;
use canopy_proto::v1::WatchLeasesRequest;
use canopy_proto::v1::leases_client::LeasesClient;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use tonic_types::StatusExt as _;

pub(crate) use self::issued::{Issued, Shows};
use crate::support::Process;

/// Longest wait for the beginning of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the standard roles may call: v(iewer), p(lanner), f(ault-reporter), o(perator), a(dmin). Written down once more,
/// so that a slip in the server's own table shows.
const EXPECTED: &[(&str, &str)] = &[
    ("Networks/DeleteCluster", "oa"),
    ("Networks/GetCluster", "vpoa"),
    ("Networks/ListClusters", "vpoa"),
    ("Networks/PutCluster", "oa"),
    ("Faults/ClearFaults", "foa"),
    ("Faults/ListFaults", "vpfoa"),
    ("Faults/ReportFaults", "foa"),
    ("Leases/WatchLeases", "vpoa"),
    ("Leases/AcquireLease", "poa"),
    ("Leases/GetLease", "vpoa"),
    ("Leases/ListLeases", "vpoa"),
    ("Leases/ReleaseLease", "poa"),
    ("Leases/RenewLease", "poa"),
    ("Operations/CancelOperation", "poa"),
    ("Operations/GetOperation", "vpoa"),
    ("Operations/ListOperations", "vpoa"),
    ("Operations/WaitOperation", "vpoa"),
    ("Plans/EvictPlans", "oa"),
    ("Plans/ExportPlans", "oa"),
    ("Server/ForgetRefusals", "oa"),
    ("Plans/GetPlanSummary", "vpoa"),
    ("Plans/ImportPlans", "a"),
    ("Plans/ListPlans", "vpoa"),
    ("Plans/PinPlan", "oa"),
    ("Plans/UnpinPlan", "oa"),
    ("Analysis/ComputeBound", "poa"),
    ("Plans/ExplainPlan", "vpoa"),
    ("Plans/FetchPlanFile", "vpoa"),
    ("Planner/FollowGroups", "poa"),
    ("Plans/GetPlan", "vpoa"),
    ("Planner/LookUpPlan", "vpoa"),
    ("Analysis/OrderMachines", "poa"),
    ("Analysis/FindPaths", "poa"),
    ("Planner/Plan", "poa"),
    ("Planner/PlanBundle", "poa"),
    ("Planner/PlanGroups", "poa"),
    ("Planner/PlanMoving", "poa"),
    ("Planner/StreamPlan", "poa"),
    ("Planner/PrefetchPlan", "poa"),
    ("Plans/SimulatePlan", "vpoa"),
    ("Analysis/WeighFaults", "poa"),
    ("Server/GetQueue", "vpoa"),
    ("Server/GetQuota", "vpfoa"),
    ("Server/GetStatus", "vpfoa"),
    ("Networks/CheckTopology", "poa"),
    ("Networks/DeleteTopology", "oa"),
    ("Analysis/FindNetworks", "poa"),
    ("Networks/GetTopology", "vpoa"),
    ("Networks/ListTopologies", "vpoa"),
    ("Networks/PutTopology", "poa"),
    ("Server/BackUp", "a"),
    ("Server/CheckStore", "oa"),
    ("Server/ReloadConfig", "a"),
    ("Server/GetConfig", "oa"),
    ("Server/GetMetrics", "vpoa"),
    ("Server/SetLogFilter", "a"),
    // The last one: it ends the server.
    ("Server/Drain", "a"),
];

/// Methods that change or hold what all tenants share; the callers here act for one.
const SHARED: [&str; 5] = [
    "Networks/DeleteCluster",
    "Networks/PutCluster",
    "Server/ForgetRefusals",
    "Server/BackUp",
    "Networks/DeleteTopology",
];

const ROLES: [(&str, char); 5] =
    [("viewer", 'v'), ("planner", 'p'), ("fault-reporter", 'f'), ("operator", 'o'), ("admin", 'a')];

/// A server on these rules, with plain text on loopback.
fn guarded(issued: &Issued) -> Process {
    Process::start(|command, folder| issued.serve(command, &folder))
}

/// Writes a file with a mode.
fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Calls a method with an empty message: what becomes of it, or that an answer begins.
async fn call(channel: &Channel, path: &str, shows: &Shows) -> Result<(), Status> {
    let request = shows.with(tokio_stream::once(()));
    let mut client = Grpc::new(channel.clone());
    let path = PathAndQuery::try_from(path).unwrap();
    let answer = async {
        client.ready().await.unwrap();
        client.streaming(request, path, ProstCodec::<(), ()>::default()).await.map(drop)
    };
    timeout(PATIENCE, answer).await.expect("an answer begins")
}

pub(crate) fn reason(status: &Status) -> String {
    status.get_error_details().error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

/// The reason for which a caller is refused; none if it is let in, whatever becomes of the call then.
fn refusal(outcome: Result<(), Status>) -> Option<(Code, String)> {
    let status = outcome.err()?;
    matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied).then(|| (status.code(), reason(&status)))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_is_for_those_who_may_call_it_and_for_nobody_else() {
    let issued = Issued::new();
    let process = guarded(&issued);
    let channel = process.channel().await;
    let stranger = |reason: &str| Some((Code::Unauthenticated, reason.to_owned()));
    let denied = |reason: &str| Some((Code::PermissionDenied, reason.to_owned()));
    for (method, roles) in EXPECTED {
        let path = format!("/canopy.v1.{method}");
        for (shows, expected) in [
            (Shows::nothing(), "IDENTITY_MISSING"),
            (issued.expired(), "IDENTITY_EXPIRED"),
            (issued.revoked(), "IDENTITY_REVOKED"),
            (issued.of_another_server(), "IDENTITY_INVALID"),
            (issued.jwt("admin", "other"), "IDENTITY_INVALID"),
            (issued.jwt_expired("admin"), "IDENTITY_EXPIRED"),
            (issued.jwt("stranger", "canopy"), "IDENTITY_UNKNOWN"),
            (Shows::header("authorization", "Basic YTpi"), "IDENTITY_INVALID"),
        ] {
            assert_eq!(refusal(call(&channel, &path, &shows).await), stranger(expected), "{method}: {expected}");
        }
        for (role, letter) in ROLES {
            for shows in [issued.token(role), issued.jwt(role, "canopy")] {
                let is_drain_of_admin = *method == "Server/Drain" && letter == 'a';
                if is_drain_of_admin {
                    continue;
                }
                let expected = match roles.contains(letter) {
                    true if SHARED.contains(method) => denied("NOT_OWNER"),
                    true => None,
                    false => denied("METHOD_NOT_ALLOWED"),
                };
                assert_eq!(refusal(call(&channel, &path, &shows).await), expected, "{method} as {role}");
                // The same for a tenant that is somebody else's.
                let other = shows.and("x-canopy-tenant", "blue");
                let expected =
                    if roles.contains(letter) { denied("TENANT_NOT_ALLOWED") } else { denied("METHOD_NOT_ALLOWED") };
                assert_eq!(refusal(call(&channel, &path, &other).await), expected, "{method} as {role} for blue");
            }
        }
    }
    // Nothing has ended the server so far, and an admin does.
    let drained = call(&channel, "/canopy.v1.Server/Drain", &issued.token("admin")).await;
    assert!(drained.is_ok(), "{drained:?}");
    process.end_in_order();
}

#[test]
fn the_expected_table_has_every_method() {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let mut described: Vec<String> = Vec::new();
    for service in set.file.iter().flat_map(|file| &file.service) {
        described.extend(service.method.iter().map(|method| format!("{}/{}", service.name(), method.name())));
    }
    let mut expected: Vec<&str> = EXPECTED.iter().map(|(method, _)| *method).collect();
    described.sort_unstable();
    expected.sort_unstable();
    assert_eq!(described, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_for_everybody_and_what_is_not_served_for_nobody() {
    let issued = Issued::new();
    let process = guarded(&issued);
    let channel = process.channel().await;
    let nothing = Shows::nothing();
    assert!(call(&channel, "/grpc.health.v1.Health/Check", &nothing).await.is_ok());
    let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    assert!(refusal(call(&channel, reflection, &nothing).await).is_some());
    assert!(refusal(call(&channel, reflection, &issued.token("viewer")).await).is_none());
    assert!(refusal(call(&channel, "/canopy.v1.Planner/Nothing", &nothing).await).is_some());
    let status = call(&channel, "/canopy.v1.Planner/Nothing", &issued.token("admin")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    for (path, expected) in [("/healthz", "200"), ("/readyz", "200"), ("/metrics", "401"), ("/debug/queue", "401")] {
        let page = process.page(path).await;
        assert!(page.starts_with(&format!("HTTP/1.0 {expected}")), "{path}: {page}");
    }
    for (role, path, expected) in
        [("viewer", "/metrics", "200"), ("viewer", "/debug/queue", "403"), ("operator", "/debug/queue", "200")]
    {
        let (_, token) = issued.token(role).headers().next().map(|(_, value)| ((), value.to_owned())).unwrap();
        let page = process.page_with(path, &[("Authorization", &token)]).await;
        assert!(page.starts_with(&format!("HTTP/1.0 {expected}")), "{role} {path}: {page}");
    }
}

/// Tokens and rules are read again while the server runs: a revoked token counts for nothing within a second, and a file
/// that cannot be used changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_revoked_is_refused_within_a_second() {
    const STATUS: &str = "/canopy.v1.Server/GetStatus";
    let mut issued = Issued::new();
    let mut process = guarded(&issued);
    let channel = process.channel().await;
    let token = issued.token("viewer");
    assert!(call(&channel, STATUS, &token).await.is_ok());
    write(&process.folder.path().join("tokens.json"), "{", 0o600);
    process.wait_for("the rules of access cannot be used; those before stay in effect");
    assert!(call(&channel, STATUS, &token).await.is_ok());
    let mut watching =
        LeasesClient::new(channel.clone()).watch_leases(token.with(WatchLeasesRequest::default())).await.unwrap();
    issued.revoke("viewer");
    issued.write_tokens(process.folder.path());
    let looking = async {
        loop {
            let refused = refusal(call(&channel, STATUS, &token).await);
            if refused.is_some() {
                return refused;
            }
        }
    };
    let refused = timeout(Duration::from_secs(10), looking).await.expect("a revoked token is refused");
    assert_eq!(refused, Some((Code::Unauthenticated, "IDENTITY_REVOKED".to_owned())));
    // What it has open ends as well.
    let ended = async {
        loop {
            if let Err(status) = watching.get_mut().message().await {
                return status;
            }
        }
    };
    let ended = timeout(Duration::from_secs(10), ended).await.expect("the stream of a revoked token ends");
    assert_eq!((ended.code(), reason(&ended).as_str()), (Code::Unauthenticated, "IDENTITY_REVOKED"));
    // Nobody's secret is in the log.
    process.signal("TERM");
    let (status, log) = process.end();
    assert_eq!(status, Some(0));
    let secret = token.headers().next().unwrap().1.rsplit('_').next().unwrap().to_owned();
    assert!(log.iter().all(|line| !line.to_string().contains(&secret)));
    assert!(log.iter().any(|line| line["identity"] == "viewer" || line["message"].to_string().contains("revoked")));
}
