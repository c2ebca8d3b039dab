//! Archives: out of one server, into another, whole or not at all.

use canopy_proto::Exact as _;
use canopy_wire::fraction;
use std::io::Cursor;

use canopy_proto::v1::archive_event::Event as Exported;
use canopy_proto::v1::import_plans_request::Event as Imported;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{
    ArchiveContents, ArchiveEnd, ArchivePiece, CacheOutcome, Collective, CollectiveSpec, ExportPlansRequest,
    ImportPlansRequest, ImportPlansResponse, ListPlansRequest, ListTopologiesRequest, OutputSpec, PinPlanRequest,
    PlanResponse, PlanSpec, PutTopologyRequest, Quality,
};
use canopy_server::{ArchiveTrust, ArchiveWriter, PlanKey, read_archive};
use canopy_store::{MemoryStore, Space, Store as _, decode_record, encode_record};
use prost::Message as _;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::support::{TestServer, both_outputs, request, sha256};

fn plans(server: &TestServer) -> PlansClient<Channel> {
    PlansClient::new(server.channel.clone())
}

/// A server with three plans, one of them pinned and one used, and a topology.
async fn filled() -> TestServer {
    let server = TestServer::start().await;
    let mut ids = Vec::new();
    for expression in ["ring:4", "torus:3x3", "dgx-a100:boxes=2"] {
        let request = PlanSpec { outputs: both_outputs(), ..request(expression) };
        ids.push(server.client().plan(request.into_plan()).await.unwrap().into_inner().plan.unwrap().name);
    }
    server.client().plan(PlanSpec { outputs: both_outputs(), ..request("torus:3x3") }.into_plan()).await.unwrap();
    plans(&server).pin_plan(PinPlanRequest { name: ids[0].clone(), request_id: String::new() }).await.unwrap();
    let put = PutTopologyRequest { topology: request("ring:7").topology, request_id: String::new() };
    NetworksClient::new(server.channel.clone()).put_topology(put).await.unwrap();
    server
}

pub(crate) async fn export(server: &TestServer, filter: &str) -> Result<(Vec<u8>, ArchiveEnd), Status> {
    let request = ExportPlansRequest { filter: filter.to_owned() };
    let mut stream = plans(server).export_plans(request).await?.into_inner();
    let (mut archive, mut announced, mut end) = (Vec::new(), None, None);
    while let Some(event) = stream.message().await? {
        match event.event.unwrap() {
            Exported::Contents(contents) => announced = Some(contents),
            Exported::Piece(piece) => {
                assert_eq!((piece.offset, piece.sha256), (archive.len() as u64, sha256(&piece.data)));
                assert!(piece.data.len() <= 256 << 10);
                archive.extend_from_slice(&piece.data);
            }
            Exported::End(last) => end = Some(last),
        }
    }
    let end = end.unwrap();
    assert_eq!((end.size_bytes, &end.sha256, end.contents), (archive.len() as u64, &sha256(&archive), announced));
    Ok((archive, end))
}

/// Sends an archive in pieces with an end to match.
pub(crate) fn messages(archive: &[u8], request_id: &str) -> Vec<ImportPlansRequest> {
    let event = |event| ImportPlansRequest { event: Some(event), request_id: request_id.to_owned() };
    let piece = |(number, data): (usize, &[u8])| {
        let offset = (number * 1000) as u64;
        event(Imported::Piece(ArchivePiece { offset, data: data.to_vec().into(), sha256: sha256(data) }))
    };
    let end = ArchiveEnd { size_bytes: archive.len() as u64, sha256: sha256(archive), contents: None };
    archive.chunks(1000).enumerate().map(piece).chain([event(Imported::End(end))]).collect()
}

pub(crate) async fn import(
    server: &TestServer,
    messages: Vec<ImportPlansRequest>,
) -> Result<ImportPlansResponse, Status> {
    plans(server).import_plans(tokio_stream::iter(messages)).await.map(tonic::Response::into_inner)
}

/// What a server holds, apart from when it was used last.
async fn holdings(server: &TestServer) -> (Vec<(String, String, bool, u64)>, Vec<String>) {
    let listed = plans(server).list_plans(ListPlansRequest::default()).await.unwrap().into_inner();
    let known = listed.plans.into_iter().map(|plan| (plan.name, plan.content_key, plan.pinned, plan.hits)).collect();
    let mut topologies = NetworksClient::new(server.channel.clone());
    let kept = topologies.list_topologies(ListTopologiesRequest::default()).await.unwrap().into_inner();
    (known, kept.topologies.into_iter().map(|topology| topology.name).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_exported_is_there_after_the_import() {
    let server = filled().await;
    let (archive, end) = export(&server, "").await.unwrap();
    let contents = end.contents.unwrap();
    assert_eq!((contents.plans, contents.pinned_plans, contents.topologies), (3, 1, 1));
    assert!(contents.record_bytes > 100_000 && contents.record_bytes < end.size_bytes);
    let (before, artifacts) = (holdings(&server).await, server.client().plan(request("ring:4").into_plan()).await);
    drop(artifacts);

    let empty = TestServer::start().await;
    let reply = import(&empty, messages(&archive, "")).await.unwrap();
    assert_eq!((reply.contents, reply.plans_added, reply.topologies_added), (Some(contents), 3, 1));
    assert_eq!(holdings(&empty).await, before, "plans, pins, uses and topologies");
    let wanted = PlanSpec { outputs: both_outputs(), ..request("torus:3x3") };
    let served = empty.client().plan(wanted.clone().into_plan()).await.unwrap().into_inner().plan;
    assert_eq!(served, server.client().plan(wanted.into_plan()).await.unwrap().into_inner().plan, "byte for byte");
    assert_eq!(empty.statistics.synthesis_count(), 0);
    let again = import(&empty, messages(&archive, "")).await.unwrap();
    assert_eq!((again.plans_added, again.topologies_added), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_chooses_what_is_exported() {
    let server = filled().await;
    let (archive, end) = export(&server, "ranks=9 OR pinned=true").await.unwrap();
    assert_eq!(end.contents.unwrap().plans, 2);
    let empty = TestServer::start().await;
    assert_eq!(import(&empty, messages(&archive, "")).await.unwrap().plans_added, 2);
    let status = export(&server, "colour=red").await.unwrap_err();
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "FILTER_SYNTAX");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_archive_is_refused_whole() {
    let server = filled().await;
    let (archive, _) = export(&server, "").await.unwrap();
    let empty = TestServer::start().await;
    let step = archive.len() / 23;
    for cut in (0..archive.len()).step_by(step).chain([archive.len() - 1]) {
        let status = import(&empty, messages(&archive[..cut], "")).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "cut at {cut}: {status:?}");
    }
    for position in (0..archive.len()).step_by(step).chain([archive.len() - 1]) {
        let mut bent = archive.clone();
        bent[position] ^= 1;
        let status = import(&empty, messages(&bent, "")).await.unwrap_err();
        let expected = if (8..12).contains(&position) { Code::FailedPrecondition } else { Code::InvalidArgument };
        assert_eq!(status.code(), expected, "bent at {position}: {status:?}");
    }
    let longer = [archive.as_slice(), b"x"].concat();
    import(&empty, messages(&longer, "")).await.unwrap_err();
    assert_eq!(holdings(&empty).await, (Vec::new(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_that_do_not_fit_are_refused() {
    let server = filled().await;
    let (archive, _) = export(&server, "").await.unwrap();
    let empty = TestServer::start().await;
    let whole = messages(&archive, "");
    let without_end = whole[..whole.len() - 1].to_vec();
    let without_first = whole[1..].to_vec();
    let mut swapped = whole.clone();
    swapped.swap(0, 1);
    let mut lying = whole.clone();
    if let Some(Imported::Piece(piece)) = &mut lying[3].event {
        piece.sha256 = sha256(b"other");
    }
    let mut shorter = whole.clone();
    shorter.remove(whole.len() - 2);
    for (what, messages) in [
        ("no end", without_end),
        ("no start", without_first),
        ("swapped", swapped),
        ("lying", lying),
        ("shorter", shorter),
        ("nothing", Vec::new()),
        ("empty", vec![ImportPlansRequest::default()]),
    ] {
        let status = import(&empty, messages).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{what}");
        assert_eq!(status.get_error_details().error_info().unwrap().reason, "PIECE_INVALID", "{what}");
    }
    assert_eq!(holdings(&empty).await, (Vec::new(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_done_once_per_id_and_only_if_it_fits() {
    const ID: &str = "123e4567-e89b-42d3-a456-426614174000";
    let server = filled().await;
    let (archive, _) = export(&server, "").await.unwrap();
    let empty = TestServer::start().await;
    let first = import(&empty, messages(&archive, ID)).await.unwrap();
    assert_eq!(import(&empty, messages(&archive, ID)).await.unwrap(), first);
    let (other, _) = export(&server, "ranks=9").await.unwrap();
    let status = import(&empty, messages(&other, ID)).await.unwrap_err();
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "REQUEST_ID_REUSED");

    let pipeline = std::sync::Arc::new(canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD));
    let small = TestServer::start_with(|options| options.store_bytes_max = 10_000, pipeline).await;
    let status = import(&small, messages(&archive, "")).await.unwrap_err();
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "STORE_FULL");
    assert_eq!(holdings(&small).await, (Vec::new(), Vec::new()));
    let none = ArchiveContents::default();
    assert_eq!(export(&small, "").await.unwrap().1.contents, Some(none), "an empty archive is one");
}

/// What stands in a record behind the reply.
#[derive(Clone, PartialEq, prost::Message)]
struct Beside {
    #[prost(bytes = "vec", tag = "1000")]
    request: Vec<u8>,
}

/// The only plan of an archive: its key, its record and its summary.
fn only_plan(archive: &[u8]) -> (PlanKey, Vec<u8>, Vec<u8>) {
    let mut found = None;
    read_archive(&mut Cursor::new(archive), 0, |record| {
        if record.space == Space::Plans {
            found = Some((*record.key, record.record.to_vec(), record.summary.to_vec()));
        }
        Ok(())
    })
    .unwrap();
    found.unwrap()
}

fn archive_of(key: &PlanKey, record: &[u8], summary: &[u8]) -> Vec<u8> {
    let (store, mut archive) = (MemoryStore::default(), Vec::new());
    store.put(key, record, summary).unwrap();
    let mut writer = ArchiveWriter::begin(&mut archive).unwrap();
    assert!(writer.plan(&store, key).unwrap());
    writer.finish(None).unwrap();
    archive
}

/// The archive of a plan with another quality.
fn with_quality(archive: &[u8], change: impl FnOnce(&mut Quality)) -> Vec<u8> {
    let (key, record, summary) = only_plan(archive);
    let payload = decode_record(&record).unwrap();
    let (beside, mut reply) = (Beside::decode(payload).unwrap(), PlanResponse::decode(payload).unwrap());
    change(reply.plan.as_mut().unwrap().quality.as_mut().unwrap());
    let payload = [reply.encode_to_vec(), beside.encode_to_vec()].concat();
    archive_of(&key, &encode_record(&payload), &summary)
}

/// A bound that nothing proves is computed again. Plans of earlier versions state none.
#[tokio::test(flavor = "multi_thread")]
async fn a_bound_with_switches_that_is_made_up_is_refused() {
    let allreduce = Some(CollectiveSpec { kind: Collective::Allreduce.into(), root: None });
    for (expression, is_stated) in [("dgx-h100", true), ("dgx-h100:nvls=false", false), ("dgx-a100", false)] {
        let asked = PlanSpec { collective: allreduce, outputs: both_outputs()[..1].to_vec(), ..request(expression) };
        let archive = exported(asked).await;
        let server = TestServer::start().await;
        let forged = with_quality(&archive, |quality| {
            assert_eq!(quality.with_in_network.exact(), if is_stated { "450000000000" } else { "" }, "{expression}");
            quality.with_in_network = fraction("460000000000");
        });
        let status = import(&server, messages(&forged, "")).await.unwrap_err();
        assert_eq!(status.get_error_details().error_info().unwrap().reason, "ARCHIVE_REJECTED", "{status:?}");
        let older = with_quality(&archive, |quality| quality.with_in_network = None);
        assert_eq!(import(&server, messages(&older, "")).await.unwrap().plans_added, 1, "{expression}");
    }
}

/// The plan of one request under the key of another, with what that one was asked for by, if wanted.
fn forged(good: &[u8], bad: &[u8], with_request: bool) -> Vec<u8> {
    let (key, record, summary) = only_plan(good);
    let payload = decode_record(&record).unwrap();
    let request = Beside::decode(payload).unwrap();
    assert!(!request.request.is_empty());
    let (_, other, _) = only_plan(bad);
    let mut reply = PlanResponse::decode(decode_record(&other).unwrap()).unwrap();
    let plan = reply.plan.as_mut().unwrap();
    plan.content_key = key.to_string();
    plan.name = format!("plans/{:.32}", plan.content_key);
    let mut payload = reply.encode_to_vec();
    if with_request {
        payload.extend(request.encode_to_vec());
    }
    archive_of(&key, &encode_record(&payload), &summary)
}

async fn exported(request: PlanSpec) -> Vec<u8> {
    let server = TestServer::start().await;
    server.client().plan(request.into_plan()).await.unwrap();
    export(&server, "").await.unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_under_the_key_of_another_request_is_never_served() {
    let wanted = PlanSpec { outputs: both_outputs(), ..request("ring:6,bw=20GB/s") };
    let good = exported(wanted.clone()).await;
    let server = TestServer::start().await;
    // Nothing but the network tells these from the plan that is wanted.
    let slower = PlanSpec { outputs: both_outputs(), ..request("ring:6,bw=10GB/s") };
    let other = PlanSpec { outputs: both_outputs(), ..request("mesh:2x3") };
    for bad in [exported(slower).await, exported(other).await] {
        let status = import(&server, messages(&forged(&good, &bad, true), "")).await.unwrap_err();
        assert_eq!(status.get_error_details().error_info().unwrap().reason, "ARCHIVE_REJECTED", "{status:?}");
        // Without a request, nothing is known of what it is for.
        let reply = import(&server, messages(&forged(&good, &bad, false), "")).await.unwrap();
        assert_eq!((reply.plans_added, reply.plans_skipped, reply.skipped.len()), (0, 1, 1));
        assert!(reply.skipped[0].reason.contains("its request is not stored with it"), "{:?}", reply.skipped);
        assert_eq!(holdings(&server).await.0, Vec::new());
    }
    let served = server.client().plan(wanted.into_plan()).await.unwrap().into_inner();
    assert_eq!(served.cache(), CacheOutcome::Miss);
    assert_eq!(import(&server, messages(&good, "")).await.unwrap().plans_added, 0, "the right one is taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_every_kind_are_known_by_their_requests() {
    let kind = |expression: &str, kind: Collective, outputs: Vec<OutputSpec>| PlanSpec {
        collective: Some(CollectiveSpec { kind: kind.into(), root: None }),
        outputs,
        ..request(expression)
    };
    let msccl = both_outputs().split_off(1);
    let wanted = [
        kind("dgx-a100:boxes=2", Collective::Allreduce, msccl.clone()),
        kind("torus:3x3", Collective::Allreduce, Vec::new()),
        kind("mesh:2x3", Collective::AllToAll, Vec::new()),
        kind("dgx-h100:boxes=1", Collective::ReduceScatter, msccl.clone()),
        kind("ring:5", Collective::Allgather, msccl),
        PlanSpec { ranks: vec![0, 1, 2], ..request("complete:5") },
    ];
    let server = TestServer::start().await;
    for request in &wanted {
        server.client().plan(request.clone().into_plan()).await.unwrap();
    }
    let (archive, _) = export(&server, "").await.unwrap();
    let empty = TestServer::start().await;
    let reply = import(&empty, messages(&archive, "")).await.unwrap();
    assert_eq!((reply.plans_added, reply.skipped), (wanted.len() as u64, Vec::new()));
    for request in wanted {
        let reply = empty.client().plan(request.into_plan()).await.unwrap().into_inner();
        assert_eq!(reply.cache(), CacheOutcome::Hit);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_writes_no_plan_of_another_tenant_and_replaces_none_that_is_pinned() {
    let isolated = || async {
        let pipeline = std::sync::Arc::new(canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD));
        TestServer::start_with(|options| options.isolated_tenants = vec!["red".parse().unwrap()], pipeline).await
    };
    let red = |message| {
        let mut request = tonic::Request::new(message);
        request.metadata_mut().insert("x-canopy-tenant", "red".parse().unwrap());
        request
    };
    let server = isolated().await;
    server.client().plan(red(request("ring:4")).map(PlanSpec::into_plan)).await.unwrap();
    let mut asked = tonic::Request::new(ExportPlansRequest::default());
    asked.metadata_mut().insert("x-canopy-tenant", "red".parse().unwrap());
    let mut stream = plans(&server).export_plans(asked).await.unwrap().into_inner();
    let mut archive = Vec::new();
    while let Some(event) = stream.message().await.unwrap() {
        if let Some(Exported::Piece(piece)) = event.event {
            archive.extend_from_slice(&piece.data);
        }
    }
    let other = isolated().await;
    let reply = import(&other, messages(&archive, "")).await.unwrap();
    assert_eq!((reply.plans_added, reply.plans_skipped), (0, 1));
    assert!(reply.skipped[0].reason.contains("tenant red"), "{:?}", reply.skipped);
    let mut own = tonic::Request::new(tokio_stream::iter(messages(&archive, "")));
    own.metadata_mut().insert("x-canopy-tenant", "red".parse().unwrap());
    let reply = plans(&other).import_plans(own).await.unwrap().into_inner();
    assert_eq!((reply.plans_added, reply.plans_skipped), (1, 0));

    let here = filled().await;
    let (archive, _) = export(&here, "").await.unwrap();
    let reply = import(&here, messages(&archive, "")).await.unwrap();
    assert_eq!((reply.plans_added, reply.plans_kept, reply.plans_skipped), (0, 1, 0));
}

/// What comes from elsewhere is taken only with a signature that is trusted.
#[tokio::test(flavor = "multi_thread")]
async fn only_archives_of_trusted_servers_are_imported() {
    let trusting = |trust: ArchiveTrust| async {
        let pipeline = std::sync::Arc::new(canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD));
        TestServer::start_with(|options| options.archive_trust = trust, pipeline).await
    };
    let source = filled().await;
    let (archive, _) = export(&source, "").await.unwrap();
    let asked = canopy_proto::v1::GetStatusRequest {};
    let key = ServerClient::new(source.channel.clone()).get_status(asked).await.unwrap().into_inner().archive_key;
    // Signed as it is, it ends with 104 bytes that others lack.
    let (unsigned, server) = (&archive[..archive.len() - 104], trusting(ArchiveTrust::own()).await);
    for (bytes, words) in [(&archive[..], key.as_str()), (unsigned, "is not signed")] {
        let refused = import(&server, messages(bytes, "")).await.unwrap_err();
        let reason = refused.get_error_details().error_info().unwrap().reason.clone();
        assert_eq!((refused.code(), reason.as_str()), (Code::PermissionDenied, "ARCHIVE_UNTRUSTED"), "{refused:?}");
        assert!(refused.message().contains(words), "{refused:?}");
    }
    assert_eq!(holdings(&server).await, (Vec::new(), Vec::new()));
    let server = trusting(ArchiveTrust::read(&key).unwrap()).await;
    assert_eq!(import(&server, messages(&archive, "")).await.unwrap().plans_added, 3);
    assert!(import(&server, messages(unsigned, "")).await.is_err());
    let server = trusting(ArchiveTrust::read("unsigned").unwrap()).await;
    assert_eq!(import(&server, messages(unsigned, "")).await.unwrap().plans_added, 3);
    // Its own come back whatever the list says.
    let (own, _) = export(&server, "").await.unwrap();
    assert!(import(&server, messages(&own, "")).await.is_ok());
    let mut bent = archive.clone();
    *bent.last_mut().unwrap() ^= 1;
    let refused = import(&server, messages(&bent, "")).await.unwrap_err();
    assert_eq!(refused.get_error_details().error_info().unwrap().reason, "ARCHIVE_DAMAGED");
}
