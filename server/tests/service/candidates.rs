//! Checked plans that are there while the one that was asked for is still being made.

use std::sync::Arc;
use std::time::Duration;

use canopy_proto::Exact as _;
use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    CacheOutcome, DeviceTarget, Fault, GetPlanRequest, NicTarget, OnMiss, Plan, PlanRequest, PlanResponse, PlanSpec,
    Punctured, TopologySource, fault,
};
use canopy_server::Making;
use canopy_synth::Algorithm;
use canopy_topology::Ratio;
use tonic::Request;

use crate::bare::answered;
use crate::support::{Gate, GatedPlanner, TestServer, request};

/// Boxes that need all of their links, of which some lack one: `direct` is far from the best rate.
const RAIL: &str = "rail:boxes=4,nv=60GB/s,nic=50GB/s,faults=gpus:2+seed:1";

fn optimality(plan: &Plan) -> Ratio {
    plan.quality.as_ref().unwrap().optimality.read().unwrap()
}

/// A server that plans what lacks nothing once the gate is open, and everything else at once.
async fn server() -> (TestServer, Arc<Gate>) {
    let (planner, gate) = GatedPlanner::holding(|order| {
        let is_quick =
            [Algorithm::Direct, Algorithm::Tacos].contains(&order.algorithm) || order.making == Making::Repaired;
        !is_quick && order.limits.tolerance.is_none()
    });
    (TestServer::start_with(|_| {}, planner).await, gate)
}

/// What comes of a request whose plan is made once the candidates that are there are enough: these, and the plan.
async fn candidates_of(
    (server, gate): (&TestServer, &Gate),
    asked: PlanSpec,
    on_miss: OnMiss,
    is_enough: impl Fn(&[Plan]) -> bool,
) -> (Vec<Plan>, PlanResponse) {
    let mut asked = Request::new(PlanRequest { on_miss: on_miss.into(), ..asked.into_plan() });
    asked.set_timeout(Duration::from_secs(20));
    let mut events = server.bare().await.stream_plan(asked).await.unwrap().into_inner();
    let (mut candidates, mut last) = (Vec::new(), None);
    while let Some(event) = events.message().await.unwrap() {
        match event.event.unwrap() {
            Event::Candidate(reply) => {
                assert!(last.is_none(), "no candidate follows the plan");
                assert!(reply.fallback.is_none());
                candidates.push(reply.plan.unwrap());
            }
            Event::Final(reply) => last = Some(reply),
            Event::Accepted(_) | Event::Progress(_) | Event::Content(_) => {}
        }
        if is_enough(&candidates) {
            gate.open();
        }
    }
    assert!(candidates.is_sorted_by(|plan, next| optimality(plan) < optimality(next)));
    (candidates, last.unwrap())
}

/// Two boxes without the network card of one GPU.
fn without_a_nic(network: &str) -> PlanSpec {
    let device = DeviceTarget { node: "b0g3".to_owned(), ..DeviceTarget::default() };
    let nic = fault::Target::Nic(NicTarget { device: Some(device), port: String::new() });
    let faults = vec![Fault { target: Some(nic), remaining: None }];
    let base = request(network).topology.map(Box::new);
    let punctured = Punctured { base, faults };
    PlanSpec {
        topology: Some(TopologySource { source: Some(Source::Punctured(Box::new(punctured))) }),
        ..request(network)
    }
}

async fn get(server: &TestServer, plan: &Plan) -> Plan {
    server
        .plans()
        .get_plan(GetPlanRequest { name: plan.name.clone(), ..GetPlanRequest::default() })
        .await
        .unwrap()
        .into_inner()
}

/// Who takes the best so far sees each plan that is better than those before, and all of them are kept.
#[tokio::test(flavor = "multi_thread")]
async fn better_and_better_plans_come_before_the_optimum() {
    let (server, gate) = server().await;
    let is_enough = |candidates: &[Plan]| candidates.len() == 2;
    let (candidates, last) = candidates_of((&server, &gate), request(RAIL), OnMiss::BestSoFar, is_enough).await;
    let last = last.plan.unwrap();
    assert_eq!(candidates[0].algorithm, "direct");
    assert_eq!((optimality(&last), last.algorithm.as_str()), (Ratio::new(1_u32, 1_u32).unwrap(), "forest"));
    for candidate in &candidates {
        assert_eq!(candidate.checked.len(), 5);
        assert!(candidate.artifacts.iter().all(|file| file.content.is_none() && file.size_bytes > 0));
        let kept = get(&server, candidate).await;
        assert_eq!((kept.algorithm.as_str(), kept.superseded_by.as_str()), (&*candidate.algorithm, &*last.name));
    }
    server.stop().await;
}

/// Who takes a quick plan that stands in sees that one, and nobody else sees any.
#[tokio::test(flavor = "multi_thread")]
async fn the_quick_plan_is_a_candidate_for_who_would_take_it() {
    let (server, gate) = server().await;
    let is_enough = |candidates: &[Plan]| candidates.len() == 1;
    let (candidates, last) = candidates_of((&server, &gate), request(RAIL), OnMiss::Fallback, is_enough).await;
    assert_eq!(candidates.iter().map(|plan| plan.algorithm.as_str()).collect::<Vec<_>>(), ["direct"]);
    assert_eq!(get(&server, &candidates[0]).await.superseded_by, last.plan.unwrap().name);
    let (candidates, _) = candidates_of((&server, &gate), request("ring:9"), OnMiss::Fail, |_| true).await;
    assert_eq!(candidates, []);
    server.stop().await;
}

/// A plan that is there before it is known what it stands in for has a successor all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_comes_first_of_all_is_superseded_too() {
    let (planner, gate) = GatedPlanner::holding_unread(|order| order.algorithm != Algorithm::Direct);
    let server = TestServer::start_with(|_| {}, planner).await;
    let is_enough = |candidates: &[Plan]| candidates.len() == 1;
    let (candidates, last) = candidates_of((&server, &gate), request(RAIL), OnMiss::Fallback, is_enough).await;
    assert_eq!(get(&server, &candidates[0]).await.superseded_by, last.plan.unwrap().name);
    server.stop().await;
}

/// What is kept of the sound network is repaired while the optimum of what is left is searched for.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_fault_a_repaired_plan_comes_first() {
    const BOXES: &str = "dgx-a100:boxes=2";
    let (server, gate) = server().await;
    // Nothing is kept of the sound network: there is only what needs nothing.
    let spec = without_a_nic(BOXES);
    let mut asked = Request::new(PlanRequest { on_miss: OnMiss::Fallback.into(), ..spec.into_plan() });
    asked.set_timeout(Duration::from_secs(4));
    let quick = answered(server.bare().await.plan(asked)).await.unwrap().into_inner().plan.unwrap();
    assert_eq!(quick.algorithm, "direct");

    gate.open();
    let sound = server.client().plan(request(BOXES).into_plan()).await.unwrap().into_inner().plan.unwrap();
    gate.close();
    let is_enough = |candidates: &[Plan]| candidates.iter().any(|plan| plan.algorithm == "repair");
    let (candidates, last) = candidates_of((&server, &gate), without_a_nic(BOXES), OnMiss::Fallback, is_enough).await;
    let repaired = candidates.iter().find(|plan| plan.algorithm == "repair").unwrap();
    assert_eq!(repaired.provenance.as_ref().unwrap().repaired_from, sound.name);
    assert_eq!(last.cache(), CacheOutcome::Miss);
    let last = last.plan.unwrap();
    assert_eq!(last.algorithm, "forest");
    assert!(optimality(repaired) > optimality(&quick) && optimality(repaired) <= optimality(&last));
    assert!(optimality(repaired) >= Ratio::new(9_u32, 10_u32).unwrap());
    assert_eq!(get(&server, repaired).await.superseded_by, last.name);
    server.stop().await;
}

/// Nobody says that anything failed: the network is compared with those planned for before.
#[tokio::test(flavor = "multi_thread")]
async fn before_a_first_plan_comes_one_of_a_larger_network_that_was_repaired() {
    // What is made at once is not as good: whichever comes first, the repaired one is a candidate.
    const LEFT: &str = "torus:3x4,down=00-01";
    let (server, gate) = server().await;
    gate.open();
    let sound = server.client().plan(request("torus:3x4").into_plan()).await.unwrap().into_inner().plan.unwrap();
    gate.close();
    let is_enough = |candidates: &[Plan]| candidates.iter().any(|plan| plan.algorithm == "repair");
    let (candidates, last) = candidates_of((&server, &gate), request(LEFT), OnMiss::Fallback, is_enough).await;
    let repaired = candidates.iter().find(|plan| plan.algorithm == "repair").unwrap();
    assert_eq!(repaired.provenance.as_ref().unwrap().repaired_from, sound.name);
    assert_eq!((last.cache(), repaired.checked.len()), (CacheOutcome::Miss, 5));
    let last = last.plan.unwrap();
    assert_eq!((last.algorithm.as_str(), last.provenance.as_ref().unwrap().repaired_from.as_str()), ("forest", ""));
    assert_eq!(get(&server, repaired).await.superseded_by, last.name);
    server.stop().await;
}
