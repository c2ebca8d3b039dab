//! Archives: out of one server, into another, whole or not at all.

use canopy_proto::v1::export_plans_event::Event as Exported;
use canopy_proto::v1::import_plans_request::Event as Imported;
use canopy_proto::v1::plan_admin_client::PlanAdminClient;
use canopy_proto::v1::topologies_client::TopologiesClient;
use canopy_proto::v1::{
    ArchiveContents, ArchiveEnd, ArchivePiece, ExportPlansRequest, ImportPlansReply, ImportPlansRequest,
    ListPlansRequest, ListTopologiesRequest, PinPlanRequest, PlanRequest, PutTopologyRequest,
};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::support::{TestServer, both_outputs, request, sha256};

fn plans(server: &TestServer) -> PlanAdminClient<Channel> {
    PlanAdminClient::new(server.channel.clone())
}

/// A server with three plans, one of them pinned and one used, and a topology.
async fn filled() -> TestServer {
    let server = TestServer::start().await;
    let mut ids = Vec::new();
    for expression in ["ring:4", "torus:3x3", "dgx-a100:boxes=2"] {
        let request = PlanRequest { outputs: both_outputs(), ..request(expression) };
        ids.push(server.client().plan(request).await.unwrap().into_inner().plan.unwrap().id);
    }
    server.client().plan(PlanRequest { outputs: both_outputs(), ..request("torus:3x3") }).await.unwrap();
    plans(&server).pin_plan(PinPlanRequest { name: ids[0].clone(), request_id: String::new() }).await.unwrap();
    let put = PutTopologyRequest { topology: request("ring:7").topology, request_id: String::new() };
    TopologiesClient::new(server.channel.clone()).put_topology(put).await.unwrap();
    server
}

async fn export(server: &TestServer, filter: &str) -> Result<(Vec<u8>, ArchiveEnd), Status> {
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
fn messages(archive: &[u8], request_id: &str) -> Vec<ImportPlansRequest> {
    let event = |event| ImportPlansRequest { event: Some(event), request_id: request_id.to_owned() };
    let piece = |(number, data): (usize, &[u8])| {
        let offset = (number * 1000) as u64;
        event(Imported::Piece(ArchivePiece { offset, data: data.to_vec().into(), sha256: sha256(data) }))
    };
    let end = ArchiveEnd { size_bytes: archive.len() as u64, sha256: sha256(archive), contents: None };
    archive.chunks(1000).enumerate().map(piece).chain([event(Imported::End(end))]).collect()
}

async fn import(server: &TestServer, messages: Vec<ImportPlansRequest>) -> Result<ImportPlansReply, Status> {
    plans(server).import_plans(tokio_stream::iter(messages)).await.map(tonic::Response::into_inner)
}

/// What a server holds, apart from when it was used last.
async fn holdings(server: &TestServer) -> (Vec<(String, String, bool, u64)>, Vec<String>) {
    let listed = plans(server).list_plans(ListPlansRequest::default()).await.unwrap().into_inner();
    let known = listed.plans.into_iter().map(|plan| (plan.id, plan.content_key, plan.pinned, plan.hits)).collect();
    let mut topologies = TopologiesClient::new(server.channel.clone());
    let kept = topologies.list_topologies(ListTopologiesRequest::default()).await.unwrap().into_inner();
    (known, kept.topologies.into_iter().map(|topology| topology.id).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_exported_is_there_after_the_import() {
    let server = filled().await;
    let (archive, end) = export(&server, "").await.unwrap();
    let contents = end.contents.unwrap();
    assert_eq!((contents.plans, contents.pinned_plans, contents.topologies), (3, 1, 1));
    assert!(contents.record_bytes > 100_000 && contents.record_bytes < end.size_bytes);
    let (before, artifacts) = (holdings(&server).await, server.client().plan(request("ring:4")).await);
    drop(artifacts);

    let empty = TestServer::start().await;
    let reply = import(&empty, messages(&archive, "")).await.unwrap();
    assert_eq!((reply.contents, reply.plans_added, reply.topologies_added), (Some(contents), 3, 1));
    assert_eq!(holdings(&empty).await, before, "plans, pins, uses and topologies");
    let wanted = PlanRequest { outputs: both_outputs(), ..request("torus:3x3") };
    let served = empty.client().plan(wanted.clone()).await.unwrap().into_inner().plan;
    assert_eq!(served, server.client().plan(wanted).await.unwrap().into_inner().plan, "byte for byte");
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
