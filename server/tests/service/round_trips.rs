//! Everything that a server has planned comes out of it in an archive, and into another one unchanged.

use canopy_proto::v1::Fraction;
use canopy_wire::fraction_of;
use std::collections::BTreeSet;
use std::sync::Arc;

use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    AllreduceForm, CacheOutcome, Collective, CollectiveSpec, Fault, GetStatusRequest, GroupTransit, JointCollective,
    JointSpec, LinkTarget, ListPlansRequest, OutputFormat, OutputSpec, Placement, PlanSpec, Punctured,
    PutTopologyRequest, RankSlot, RootPolicy, TopologySource, fault,
};
use canopy_server::Pipeline;
use canopy_topology::TopologyLimits;

use crate::archives::{export, import, messages};
use crate::support::{TestServer, both_outputs, request};

const COLLECTIVES: [Collective; 8] = [
    Collective::Allgather,
    Collective::ReduceScatter,
    Collective::Allreduce,
    Collective::AllToAll,
    Collective::Broadcast,
    Collective::Reduce,
    Collective::Gather,
    Collective::Scatter,
];

fn of(expression: &str, kind: Collective) -> PlanSpec {
    let root = matches!(kind, Collective::Broadcast | Collective::Reduce | Collective::Gather | Collective::Scatter);
    let collective = CollectiveSpec { kind: kind.into(), root: root.then_some(0) };
    PlanSpec { collective: Some(collective), outputs: both_outputs()[..1].to_vec(), ..request(expression) }
}

/// What is left of a link, or that it is gone.
fn without(request: PlanSpec, (from, to): (&str, &str), remaining: Option<Fraction>) -> PlanSpec {
    let link = LinkTarget { from: from.to_owned(), to: to.to_owned(), one_way: false };
    let faults = vec![Fault { target: Some(fault::Target::Link(link)), remaining }];
    let base = request.topology.map(Box::new);
    let punctured = Punctured { base, faults };
    PlanSpec { topology: Some(TopologySource { source: Some(Source::Punctured(Box::new(punctured))) }), ..request }
}

fn output(format: OutputFormat) -> Vec<OutputSpec> {
    vec![OutputSpec { format: format.into(), ..OutputSpec::default() }]
}

/// Every collective on every network, with faults, in every form that can be asked for.
fn by_option() -> Vec<PlanSpec> {
    let mut wanted = Vec::new();
    let half = Some(fraction_of(1, 2));
    for kind in COLLECTIVES {
        for expression in [
            "ring:5",
            "torus:3x3",
            "dgx-a100:boxes=2,gpus=4",
            "dgx-a100:boxes=2,gpus=4,down=b0g3-ib",
            "uniring:n=4,d=1",
            "dgx-h100:boxes=2,gpus=4,nvls=true",
            "dgx-h100:boxes=2,gpus=4",
        ] {
            wanted.push(of(expression, kind));
            wanted.push(PlanSpec { outputs: output(OutputFormat::MscclXml), ..of(expression, kind) });
            wanted.push(PlanSpec { outputs: Vec::new(), ..of(expression, kind) });
        }
        let boxes = || of("dgx-a100:boxes=2,gpus=4", kind);
        for remaining in [None, half.clone()] {
            wanted.push(without(boxes(), ("b0g3", "ib"), remaining.clone()));
            wanted.push(without(of("torus:3x3", kind), ("00", "01"), remaining));
        }
        for form in [AllreduceForm::TwoPhase, AllreduceForm::Trees] {
            for roots in [RootPolicy::Unspecified, RootPolicy::Centre, RootPolicy::Spread] {
                let formed = PlanSpec { form: form.into(), root_policy: roots.into(), ..boxes() };
                wanted.push(without(formed.clone(), ("b0g3", "ib"), None));
                wanted.push(formed);
            }
        }
        let equal_or_not: [Vec<u64>; 2] = [vec![1; 8], vec![1, 2, 1, 3, 1, 1, 0, 1]];
        wanted.extend(equal_or_not.map(|shares| PlanSpec { shares, ..boxes() }));
        for transit in [GroupTransit::Forward, GroupTransit::Unused] {
            wanted.push(PlanSpec { ranks: vec![0, 1, 4, 6], transit: transit.into(), ..boxes() });
        }
        let slots =
            |device: u32| RankSlot { node: format!("gpu0{}", 1 + device / 4), device: device % 4, count: Some(1) };
        wanted.push(PlanSpec { placement: Some(Placement { slots: (0..8).map(slots).collect() }), ..boxes() });
        wanted.push(PlanSpec { size_bytes_min: Some(1 << 10), size_bytes_max: Some(1 << 20), ..boxes() });
        wanted.push(PlanSpec { trees_per_root: Some(1), max_chunks: Some(4), max_depth: Some(2), ..boxes() });
        wanted.push(PlanSpec { in_place: Some(true), ..boxes() });
        wanted.push(PlanSpec { alpha_ns: Some(700), ..boxes() });
    }
    let joint = |name: &str, ranks: std::ops::Range<u32>, kind: Collective| JointCollective {
        name: name.to_owned(),
        ranks: ranks.collect(),
        collective: Some(CollectiveSpec { kind: kind.into(), root: None }),
        size_bytes: Some(1 << 20),
        chunks: None,
    };
    let both = vec![joint("up", 0..6, Collective::Allgather), joint("down", 3..9, Collective::ReduceScatter)];
    for position in 0..2 {
        wanted.push(PlanSpec { joint: Some(JointSpec { collectives: both.clone(), position }), ..request("mesh:3x3") });
    }
    wanted
}

/// Every algorithm for every collective.
async fn by_algorithm(server: &TestServer) -> Vec<PlanSpec> {
    let status = ServerClient::new(server.channel.clone()).get_status(GetStatusRequest {}).await.unwrap();
    let mut wanted = Vec::new();
    for algorithm in status.into_inner().algorithms {
        for kind in COLLECTIVES {
            for expression in ["mesh:2x3", "dgx-a100:boxes=2,gpus=2"] {
                wanted.push(PlanSpec { algorithm: Some(algorithm.clone()), ..of(expression, kind) });
            }
        }
    }
    wanted
}

async fn ids(server: &TestServer) -> BTreeSet<String> {
    let mut admin = PlansClient::new(server.channel.clone());
    let mut found = BTreeSet::new();
    let mut page_token = String::new();
    loop {
        let asked = ListPlansRequest { page_size: 1000, page_token, ..ListPlansRequest::default() };
        let page = admin.list_plans(asked).await.unwrap().into_inner();
        found.extend(page.plans.into_iter().map(|plan| plan.name));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return found;
        }
    }
}

/// A server that takes networks of any size that can be planned for.
async fn roomy() -> TestServer {
    let limits = TopologyLimits::STANDARD;
    TestServer::start_with(|options| options.limits = limits, Arc::new(Pipeline::new(limits))).await
}

/// Plans what can be planned of these, takes it to an empty server, and compares all of it.
async fn round_trip(server: &TestServer, wanted: Vec<PlanSpec>, planned_min: usize) {
    let mut planned = Vec::new();
    for asked in wanted {
        // What an algorithm cannot do, other tests say.
        if let Ok(reply) = server.client().plan(asked.clone().into_plan()).await {
            planned.push((asked, reply.into_inner().plan.unwrap()));
        }
    }
    assert!(planned.len() >= planned_min, "{} of them were planned", planned.len());
    let (archive, _) = export(server, "").await.unwrap();
    let empty = roomy().await;
    let reply = import(&empty, messages(&archive, "")).await.unwrap();
    assert_eq!(reply.skipped, Vec::new());
    let ids_before = ids(server).await;
    assert_eq!((reply.plans_added, ids(&empty).await), (ids_before.len() as u64, ids_before));
    for (asked, plan) in planned {
        let reply = empty.client().plan(asked.clone().into_plan()).await.unwrap().into_inner();
        assert_eq!(reply.cache(), CacheOutcome::Hit, "{asked:?}");
        assert_eq!(reply.plan.unwrap(), plan, "{asked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_all_options_come_back_from_archives() {
    let server = roomy().await;
    round_trip(&server, by_option(), 150).await;
}

/// Plans by a rule, of more ranks than trees can be written down for.
fn by_rule() -> Vec<PlanSpec> {
    let mut wanted = Vec::new();
    for kind in [Collective::Allgather, Collective::ReduceScatter, Collective::Allreduce] {
        for expression in ["dgx-a100:boxes=736", "dgx-a100:boxes=736,down=b0g3-ib", "torus:72x81"] {
            wanted.push(of(expression, kind));
            wanted.push(PlanSpec { outputs: Vec::new(), ..of(expression, kind) });
        }
    }
    wanted
}

/// Plans on topologies that the server stores, in words of its own.
async fn on_stored(server: &TestServer) -> Vec<PlanSpec> {
    let mut topologies = NetworksClient::new(server.channel.clone());
    let mut wanted = Vec::new();
    for (expression, kind) in [("dgx-h100:boxes=2,gpus=2", Collective::Allreduce), ("torus:3x3", Collective::AllToAll)]
    {
        let put = PutTopologyRequest { topology: request(expression).topology, request_id: String::new() };
        let id = topologies.put_topology(put).await.unwrap().into_inner().topology.unwrap().name;
        let stored = || Some(TopologySource { source: Some(Source::Name(id.clone())) });
        let whole = PlanSpec { topology: stored(), ..of(expression, kind) };
        wanted.push(PlanSpec { ranks: vec![0, 1, 3], ..whole.clone() });
        wanted.push(whole);
    }
    wanted.push(without(wanted[1].clone(), ("b0g1", "ib"), None));
    wanted
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_by_a_rule_come_back_from_archives() {
    round_trip(&roomy().await, by_rule(), 18).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_on_stored_topologies_come_back_from_archives() {
    let server = roomy().await;
    let wanted = on_stored(&server).await;
    round_trip(&server, wanted, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_all_algorithms_come_back_from_archives() {
    let server = roomy().await;
    let wanted = by_algorithm(&server).await;
    round_trip(&server, wanted, 100).await;
}
