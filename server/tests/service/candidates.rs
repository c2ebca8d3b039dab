//! Checked plans that are there while the one that was asked for is still being made.

use std::sync::Arc;
use std::time::Duration;

use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::{GetPlanRequest, OnMiss, Plan, PlanRequest, QualityPolicy};
use canopy_server::{Order, Pipeline, PlanFailure, Planner, Prepared, Produced, Watch};
use canopy_synth::{Algorithm, Stop};
use canopy_topology::{Ratio, TopologyLimits};
use tonic::Request;

use crate::support::{Gate, TestServer, request};

/// Boxes that need all of their links, of which some lack one: `direct` is far from the best rate.
const RAIL: &str = "rail:boxes=4,nv=60GB/s,nic=50GB/s,faults=gpus:2+seed:1";

/// Plans what lacks nothing once the gate is open, and everything else at once.
struct LateOptimum {
    inner: Pipeline,
    gate: Arc<Gate>,
}

impl Planner for LateOptimum {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        self.inner.prepare(order, stop)
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        if order.algorithm != Algorithm::Direct && order.limits.tolerance.is_none() {
            self.gate.pass(stop);
        }
        self.inner.produce(order, prepared, stop, watch)
    }
}

fn optimality(plan: &Plan) -> Ratio {
    plan.quality.as_ref().unwrap().optimality.parse().unwrap()
}

/// What comes of a request whose plan is made once `enough` candidates are there: these, and the plan.
async fn candidates_of(on_miss: OnMiss, enough: usize) -> (TestServer, Vec<Plan>, Plan) {
    let gate = Arc::new(Gate::default());
    let planner = LateOptimum { inner: Pipeline::new(TopologyLimits::STANDARD), gate: Arc::clone(&gate) };
    let server = TestServer::start_with(|_| {}, Arc::new(planner)).await;
    let quality = Some(QualityPolicy { on_miss: on_miss.into(), ..QualityPolicy::default() });
    let mut asked = Request::new(PlanRequest { quality, ..request(RAIL) });
    asked.set_timeout(Duration::from_secs(20));
    let mut events = server.client().plan_stream(asked).await.unwrap().into_inner();
    let (mut candidates, mut last) = (Vec::new(), None);
    while let Some(event) = events.message().await.unwrap() {
        match event.event.unwrap() {
            Event::Accepted(_) if enough == 0 => gate.open(),
            Event::Candidate(reply) => {
                assert!(last.is_none(), "no candidate follows the plan");
                assert!(reply.fallback.is_none());
                candidates.push(reply.plan.unwrap());
                if candidates.len() == enough {
                    gate.open();
                }
            }
            Event::Final(reply) => last = reply.plan,
            Event::Accepted(_) | Event::Progress(_) | Event::Content(_) => {}
        }
    }
    (server, candidates, last.unwrap())
}

async fn get(server: &TestServer, plan: &Plan) -> Plan {
    server.client().get_plan(GetPlanRequest { name: plan.id.clone(), ..GetPlanRequest::default() }).await.unwrap().into_inner()
}

/// Who takes the best so far sees each plan that is better than those before, and all of them are kept.
#[tokio::test(flavor = "multi_thread")]
async fn better_and_better_plans_come_before_the_optimum() {
    let (server, candidates, last) = candidates_of(OnMiss::BestSoFar, 2).await;
    assert_eq!(candidates[0].algorithm, "direct");
    assert!(candidates.is_sorted_by(|plan, next| optimality(plan) < optimality(next)));
    assert_eq!((optimality(&last), last.algorithm.as_str()), (Ratio::new(1_u32, 1_u32).unwrap(), "forest"));
    for candidate in &candidates {
        assert_eq!(candidate.checked.len(), 5);
        assert!(candidate.artifacts.iter().all(|file| file.content.is_none() && file.size_bytes > 0));
        let kept = get(&server, candidate).await;
        assert_eq!((kept.algorithm.as_str(), kept.superseded_by.as_str()), (&*candidate.algorithm, &*last.id));
    }
    server.stop().await;
}

/// Who takes a quick plan that stands in sees that one, and nobody else sees any.
#[tokio::test(flavor = "multi_thread")]
async fn the_quick_plan_is_a_candidate_for_who_would_take_it() {
    let (server, candidates, last) = candidates_of(OnMiss::Fallback, 1).await;
    assert_eq!(candidates.iter().map(|plan| plan.algorithm.as_str()).collect::<Vec<_>>(), ["direct"]);
    assert_eq!(get(&server, &candidates[0]).await.superseded_by, last.id);
    server.stop().await;
    let (server, candidates, _) = candidates_of(OnMiss::Fail, 0).await;
    assert_eq!(candidates, []);
    server.stop().await;
}
