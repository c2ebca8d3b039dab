//! Stored plans simulated by a server, over a real socket.

use canopy_proto::Exact as _;
use canopy_wire::fraction;
use std::time::Duration;

use canopy_plan::read_plan;
use canopy_proto::v1::{
    Collective, CollectiveSpec, OutputFormat, OutputSpec, Placement, PlanSpec, RankSlot, SimulatePlanRequest,
    SimulatePlanResponse,
};
use canopy_schedule::compile;
use canopy_simulate::{SimulateOptions, algbw, simulate};
use canopy_topology::{Latency, Rate, TopologyLimits};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::bare::answered;
use crate::support::{TestServer, request, stream};

/// A stored plan: its name, and its file.
async fn stored(server: &TestServer, asked: PlanSpec) -> (String, Vec<u8>) {
    let streamed = stream(server, asked.into_plan()).await.unwrap();
    (streamed.header.plan.unwrap().name, streamed.files.into_iter().next().unwrap())
}

fn of(name: &str) -> SimulatePlanRequest {
    SimulatePlanRequest { name: name.to_owned(), ..SimulatePlanRequest::default() }
}

async fn ask(server: &TestServer, request: SimulatePlanRequest) -> Result<SimulatePlanResponse, Status> {
    server.plans().simulate_plan(request).await.map(tonic::Response::into_inner)
}

fn allreduce(expression: &str) -> PlanSpec {
    let collective = Some(CollectiveSpec { kind: Collective::Allreduce.into(), root: None });
    PlanSpec { collective, ..request(expression) }
}

#[tokio::test]
async fn times_are_those_of_the_library() {
    let server = TestServer::start().await;
    let (name, file) = stored(&server, allreduce("dgx-a100:boxes=2")).await;
    let plan = read_plan(&file, &TopologyLimits::STANDARD).unwrap();
    let graph = compile(&plan.topology, &plan.schedule).unwrap();
    for alpha_ns in [None, Some(7_000)] {
        let asked = SimulatePlanRequest { alpha_ns, timeline_size_bytes: Some(1 << 20), ..of(&name) };
        let found = ask(&server, asked.clone()).await.unwrap();
        assert_eq!(found.bound, fraction(&plan.bound.upper));
        let alpha = Latency::from_nanos(alpha_ns.unwrap_or(1_000));
        assert_eq!(found.model.unwrap().alpha_ns, alpha.nanos());
        let sizes: Vec<u64> = found.sizes.iter().map(|size| size.size_bytes).collect();
        assert_eq!(sizes, [12, 14, 16, 18, 20, 22, 24, 26, 28, 30].map(|power| 1 << power));
        for size in &found.sizes {
            let options = SimulateOptions { alpha, ..SimulateOptions::usual(size.size_bytes, 1_000_000_000) };
            let outcome = simulate(&plan.topology, &graph, &options, &|| false).unwrap();
            assert_eq!((size.time_ps, size.messages), (outcome.time_ps, outcome.message_count));
            let rate = algbw(size.size_bytes, size.time_ps).unwrap();
            assert_eq!(size.algbw, fraction(&rate));
            // Sixteen ranks: 2 · 15/16 on each link of a ring.
            let busbw: Rate = size.busbw.read().unwrap();
            assert_eq!(busbw.ratio_to(&rate).unwrap().to_string(), "15/8");
            assert_eq!(size.of_bound, fraction(&rate.ratio_to(&plan.bound.upper).unwrap()));
            assert!(size.time_ps > size.limit_ps && size.limit_ps >= size.least_ps.unwrap());
        }
        assert_eq!(ask(&server, asked).await.unwrap(), found, "equal questions have equal answers");
    }
}

#[tokio::test]
async fn a_timeline_has_the_busiest_links_part_by_part() {
    let server = TestServer::start().await;
    let (name, file) = stored(&server, request("dgx-a100:boxes=2")).await;
    let asked = SimulatePlanRequest { sizes_bytes: vec![1 << 24], timeline_size_bytes: Some(1 << 22), ..of(&name) };
    let found = ask(&server, asked).await.unwrap();
    assert_eq!(found.sizes.iter().map(|size| size.size_bytes).collect::<Vec<_>>(), [1 << 24]);
    let plan = read_plan(&file, &TopologyLimits::STANDARD).unwrap();
    let graph = compile(&plan.topology, &plan.schedule).unwrap();
    let options = SimulateOptions::usual(1 << 22, 1_000_000_000);
    let outcome = simulate(&plan.topology, &graph, &options, &|| false).unwrap();
    let timeline = found.timeline.unwrap();
    assert_eq!((timeline.size_bytes, timeline.time_ps, timeline.parts), (1 << 22, outcome.time_ps, 64));
    assert_eq!(timeline.links_used as usize, outcome.links.iter().filter(|link| link.bytes > 0).count());
    let mut busiest: Vec<u64> = outcome.links.iter().map(|link| link.busy_ps).collect();
    busiest.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(timeline.links.iter().map(|link| link.busy_ps).collect::<Vec<_>>(), busiest[..32]);
    assert!(timeline.links.iter().any(|link| link.critical));
    for link in &timeline.links {
        assert_eq!(link.busy.len(), 64);
        assert!(link.busy.iter().all(|&part| part <= 1_000));
        // Each part is rounded up by less than a thousandth.
        let all: u64 = link.busy.iter().map(|&part| u64::from(part)).sum();
        let exact = u128::from(link.busy_ps) * 64_000 / u128::from(timeline.time_ps);
        assert!((u128::from(all) - exact) <= 64, "{all} {exact}");
    }
    assert!(prost::Message::encoded_len(&timeline) < 16 << 10);
}

#[tokio::test]
async fn refusals_name_the_field_and_the_limit() {
    let server = TestServer::start().await;
    let (name, _) = stored(&server, PlanSpec { size_bytes_max: Some(1 << 60), ..request("ring:4") }).await;
    let (small, _) = stored(&server, PlanSpec { size_bytes_max: Some(4096), ..request("ring:4") }).await;
    let sizes = |sizes: &[u64]| SimulatePlanRequest { sizes_bytes: sizes.to_vec(), ..of(&name) };
    let invalid = [
        (sizes(&[4096; 17]), "SIMULATION_INVALID", "sizes_bytes"),
        (sizes(&[1, 2, 1]), "SIMULATION_INVALID", "sizes_bytes[2]"),
        (sizes(&[1, 0]), "SIMULATION_INVALID", "sizes_bytes[1]"),
        (sizes(&[u64::MAX]), "SIMULATION_INVALID", "sizes_bytes[0]"),
        (
            SimulatePlanRequest { timeline_size_bytes: Some(4097), ..of(&small) },
            "SIMULATION_INVALID",
            "timeline_size_bytes",
        ),
        (SimulatePlanRequest { alpha_ns: Some(1_000_000_001), ..of(&name) }, "SIMULATION_INVALID", "alpha_ns"),
    ];
    for (asked, reason, field) in invalid {
        let status = ask(&server, asked).await.unwrap_err();
        let details = status.get_error_details();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert_eq!(details.error_info().unwrap().reason, reason, "{status:?}");
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, field, "{status:?}");
    }
    let large = ask(&server, sizes(&[1, 1 << 50])).await.unwrap_err();
    let details = large.get_error_details();
    assert_eq!(
        (large.code(), &*details.error_info().unwrap().reason),
        (Code::FailedPrecondition, "SIMULATION_TOO_LARGE")
    );
    assert_eq!(details.precondition_failure().unwrap().violations[0].subject, "sizes_bytes[1]", "{large:?}");
    assert_eq!(details.error_info().unwrap().metadata["limit"], "16000000");
    assert_eq!(ask(&server, of(&format!("plans/{:032}", 7))).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(ask(&server, of("")).await.unwrap_err().code(), Code::InvalidArgument);
    // Valid for small messages only: then that size is simulated.
    let found = ask(&server, of(&small)).await.unwrap();
    assert_eq!(found.sizes.iter().map(|size| size.size_bytes).collect::<Vec<_>>(), [4096]);
}

#[tokio::test]
async fn plans_without_their_own_file_and_for_other_devices_are_refused() {
    let server = TestServer::start().await;
    let xml = OutputSpec { format: OutputFormat::MscclXml.into(), ..OutputSpec::default() };
    let (name, _) = stored(&server, PlanSpec { outputs: vec![xml], ..request("ring:4") }).await;
    let status = ask(&server, of(&name)).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "SIMULATION_NEEDS_JSON");
    let (name, _) = stored(&server, request("ring:4")).await;
    let slot = RankSlot { node: "a".to_owned(), device: 0, count: Some(4) };
    let placed = SimulatePlanRequest { placement: Some(Placement { slots: vec![slot] }), ..of(&name) };
    let status = ask(&server, placed).await.unwrap_err();
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "RANK_MAP_MISMATCH");
}

/// Two may compute at once, so places that were not given back would keep the last call out.
#[tokio::test]
async fn a_deadline_ends_it_and_gives_its_place_back() {
    let server = TestServer::start().await;
    let (name, _) = stored(&server, PlanSpec { size_bytes_max: Some(1 << 40), ..allreduce("dgx-a100:boxes=32") }).await;
    let sizes_bytes: Vec<u64> = (0..16).map(|size| (3 << 29) + size).collect();
    for _ in 0..3 {
        let mut late = tonic::Request::new(SimulatePlanRequest { sizes_bytes: sizes_bytes.clone(), ..of(&name) });
        late.set_timeout(Duration::from_millis(300));
        let mut client = server.bare_plans().await;
        let status = answered(client.simulate_plan(late)).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    }
    let small = ask(&server, SimulatePlanRequest { sizes_bytes: vec![4096], ..of(&name) });
    tokio::time::timeout(Duration::from_secs(10), small).await.expect("a place is free").unwrap();
}
