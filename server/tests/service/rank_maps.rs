//! Rank maps on the wire: in requests, in answers, and asked for where plans are fetched.

use canopy_proto::v1::{
    CacheOutcome, ExplainPlanRequest, FetchPlanFileRequest, GetPlanRequest, OutputFormat, Placement, PlanSpec, RankSlot,
};
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::cached::check_refused;
use crate::support::{TestServer, request};

fn placement(slots: &[(&str, u32)]) -> Option<Placement> {
    let slot = |&(node, device): &(&str, u32)| RankSlot { node: node.to_owned(), device, count: Some(1) };
    Some(Placement { slots: slots.iter().map(slot).collect() })
}

fn placed(slots: &[(&str, u32)]) -> PlanSpec {
    PlanSpec { placement: placement(slots), ..request("dgx-a100:boxes=2,gpus=1") }
}

#[tokio::test]
async fn a_plan_says_its_rank_map_and_answers_no_other() {
    let server = TestServer::start().await;
    let here = [("a.site", 0), ("b.site", 0)];
    let reply = server.client().plan(placed(&here).into_plan()).await.unwrap().into_inner();
    assert_eq!((reply.warnings.clone(), reply.plan.as_ref().unwrap().rank_map.clone()), (Vec::new(), placement(&here)));
    let name = reply.plan.unwrap().name;
    let again = server.client().look_up_plan(placed(&here).into_look_up()).await.unwrap().into_inner();
    assert_eq!((again.cache(), again.plan.unwrap().rank_map), (CacheOutcome::Hit, placement(&here)));
    for other in [[("b.site", 0), ("a.site", 0)], [("a.site", 1), ("b.site", 0)]] {
        // Of the same shape, so the schedule is there; the plan is another.
        let elsewhere = server.client().look_up_plan(placed(&other).into_look_up()).await.unwrap().into_inner();
        let plan = elsewhere.plan.unwrap();
        assert_eq!(plan.rank_map, placement(&other));
        assert_ne!(plan.name, name);
    }

    let wrong = placement(&[("a", 0), ("c", 0)]);
    let mut client = server.plans();
    let get = GetPlanRequest { name: name.clone(), placement: wrong.clone() };
    let explain = ExplainPlanRequest { name: name.clone(), placement: wrong.clone() };
    let fetch = FetchPlanFileRequest {
        name: name.clone(),
        format: OutputFormat::Json.into(),
        placement: wrong,
        ..FetchPlanFileRequest::default()
    };
    let refusals = [
        client.get_plan(get.clone()).await.unwrap_err(),
        client.explain_plan(explain).await.unwrap_err(),
        client.fetch_plan_file(fetch.clone()).await.unwrap_err(),
    ];
    for refused in refusals {
        let details = refused.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!((refused.code(), &*info.reason), (Code::FailedPrecondition, "RANK_MAP_MISMATCH"));
        let said = |name: &str| info.metadata.get(name).map(String::as_str);
        assert_eq!((said("rank"), said("plan_slot"), said("given_slot")), (Some("1"), Some("b.site:0"), Some("c:0")));
        assert_eq!(details.precondition_failure().unwrap().violations[0].subject, "placement");
    }
    let right = placement(&[("a", 0), ("b", 0)]);
    client.get_plan(GetPlanRequest { placement: right.clone(), ..get }).await.unwrap();
    client.fetch_plan_file(FetchPlanFileRequest { placement: right, ..fetch }).await.unwrap();
}

/// A slot may stand for several ranks, and answers say it so; what it stands for is what counts.
#[tokio::test]
async fn ranks_in_a_row_are_placed_by_one_slot() {
    let server = TestServer::start().await;
    let slot = |node: &str, device, count| RankSlot { node: node.to_owned(), device, count };
    let on = |slots| PlanSpec { placement: Some(Placement { slots }), ..request("dgx-a100:boxes=2,gpus=3") };
    let rows = vec![slot("a", 1, Some(3)), slot("b", 0, Some(3))];
    let one_by_one =
        vec![slot("a", 1, None), slot("a", 2, None), slot("a", 3, Some(1)), slot("b", 0, Some(2)), slot("b", 2, None)];
    let reply = server.client().plan(on(rows.clone()).into_plan()).await.unwrap().into_inner();
    let plan = reply.plan.unwrap();
    assert_eq!(plan.rank_map.unwrap().slots, rows);
    let again = server.client().plan(on(one_by_one.clone()).into_plan()).await.unwrap().into_inner();
    assert_eq!((again.cache(), again.plan.unwrap().name), (CacheOutcome::Hit, plan.name.clone()));
    let get = GetPlanRequest { name: plan.name, placement: Some(Placement { slots: one_by_one }) };
    server.plans().get_plan(get).await.unwrap();
    let endless = server.client().plan(on(vec![slot("a", 0, Some(u32::MAX)); 2]).into_plan()).await;
    check_refused(endless, Code::InvalidArgument, "PLACEMENT_INVALID", "spec.placement.slots");
    let beyond = server.client().plan(on(vec![slot("a", 0, Some(1)), slot("b", u32::MAX, Some(2))]).into_plan()).await;
    check_refused(beyond, Code::InvalidArgument, "PLACEMENT_INVALID", "spec.placement.slots[1].count");
}

#[tokio::test]
async fn a_placement_is_refused_by_its_field() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let twice = client.plan(placed(&[("a", 0), ("a", 0)]).into_plan()).await;
    check_refused(twice, Code::InvalidArgument, "PLACEMENT_DUPLICATE", "spec.placement.slots[1]");
    let unknown = client.plan(placed(&[("b1", 0), ("b2", 0)]).into_plan()).await;
    check_refused(unknown, Code::InvalidArgument, "UNKNOWN_NODE", "spec.placement.slots[1]");
    let nameless = client.plan(placed(&[("a", 0), ("", 0)]).into_plan()).await;
    check_refused(nameless, Code::InvalidArgument, "PLACEMENT_INVALID", "spec.placement.slots[1]");
    let few = client.plan(placed(&[("a", 0)]).into_plan()).await;
    check_refused(few, Code::InvalidArgument, "PLACEMENT_DISAGREES", "spec.placement");
    let disagreeing = client.plan(PlanSpec { ranks: vec![1, 0], ..placed(&[("b0", 0), ("b1", 0)]) }.into_plan()).await;
    check_refused(disagreeing, Code::InvalidArgument, "PLACEMENT_DISAGREES", "spec.placement.slots[0]");
    let none = client.plan(placed(&[]).into_plan()).await;
    check_refused(none, Code::InvalidArgument, "FIELD_MISSING", "spec.placement.slots");
    let asked =
        server.plans().get_plan(GetPlanRequest { name: "plans/none".to_owned(), placement: placement(&[]) }).await;
    check_refused(asked, Code::InvalidArgument, "NAME_INVALID", "name");
}
