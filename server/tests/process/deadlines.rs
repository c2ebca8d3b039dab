//! Deadlines that the server alone keeps: callers state them, and wait for the answer however long it takes.
//!
//! An answer after its deadline is held to what the server has worked in between.

use std::time::Duration;

use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    Collective, CollectiveSpec, Link, Node, NodeKind, OnMiss, PlanRequest, PlanSpec, Topology, TopologySource,
};
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use crate::bare::{Bare, answered};
use crate::processor::processor_time;
use crate::support::{Process, request, spawn};

/// An answer may take one part in so many of the work for a plan of a thousand ranks on top of its deadline: some 0.2 s of a
/// processor that takes a second for the plan.
const PART: u32 = 5;

/// What an answer may take on top of its deadline, on this machine as it is now.
async fn grace(process: &Process) -> Duration {
    let before = processor_time(process.id());
    answered(process.client().await.plan(network(120).into_plan())).await.unwrap();
    (processor_time(process.id()) - before) / PART
}

/// A process with one planner.
fn serving() -> Process {
    Process::start(|command, _| {
        command.args(["--workers", "1", "--drain-timeout", "0s"]);
    })
}

async fn end(process: Process) {
    process.signal("TERM");
    let ended = tokio::task::spawn_blocking(|| process.end().0).await.unwrap();
    assert_eq!(ended, Some(0));
}

/// What a request with this deadline comes to, and what the server has worked from the deadline to the answer.
async fn answer(process: &Process, deadline: Duration, asked: PlanRequest) -> (Result<(), Status>, Duration) {
    let mut asked = Request::new(asked);
    asked.set_timeout(deadline);
    let mut client = Bare::planner(process.address("tcp")).await;
    let mut call = Box::pin(async move { client.plan(asked).await.map(|_| ()) });
    if let Ok(answer) = timeout(deadline, &mut call).await {
        return (answer, Duration::ZERO);
    }
    let before = processor_time(process.id());
    let answer = answered(call).await;
    (answer, processor_time(process.id()) - before)
}

fn reason(status: &Status) -> String {
    status.get_error_details().error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

/// A network that no other request is for.
fn network(number: u32) -> PlanSpec {
    request(&format!("dgx-a100:boxes=125,degrade=b{number}g3-ib*1/2"))
}

/// Or a server that never answers would pass for one that keeps its deadlines: tonic's transport ends the call by itself.
#[tokio::test(flavor = "multi_thread")]
async fn callers_here_keep_no_deadline_for_the_server() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let asked = || {
        let mut asked = Request::new(request("ring:4"));
        asked.set_timeout(Duration::from_millis(50));
        asked
    };
    let mut bare = Bare::planner(address).await;
    let bare = spawn(async move { bare.plan(asked().map(PlanSpec::into_plan)).await });
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let given_up = answered(PlannerClient::new(channel).plan(asked().map(PlanSpec::into_plan))).await.unwrap_err();
    assert_eq!((given_up.code(), given_up.message()), (Code::Cancelled, "Timeout expired"));
    assert!(!bare.is_finished());
    bare.abort();
}

/// Whatever comes of a request, it comes in time: a plan, one that stands in, or that time was up.
#[tokio::test(flavor = "multi_thread")]
async fn every_deadline_is_kept_at_a_thousand_ranks_under_load() {
    let process = serving();
    let grace = grace(&process).await;
    for number in 0..3 {
        process.client().await.prefetch_plan(network(number).into_prefetch()).await.unwrap();
    }
    let mut number = 3;
    for deadline in [50, 100, 200, 500, 1_000].map(Duration::from_millis) {
        for on_miss in [OnMiss::Fail, OnMiss::BestSoFar] {
            number += 1;
            let asked = PlanRequest { on_miss: on_miss.into(), ..network(number).into_plan() };
            let (answer, worked) = answer(&process, deadline, asked).await;
            eprintln!(
                "{deadline:?}, {on_miss:?}: {worked:?} after the deadline, {:?}",
                answer.as_ref().map_err(reason)
            );
            assert!(worked <= grace, "{deadline:?}, {on_miss:?}: {worked:?} of {grace:?} after the deadline");
            if let Err(status) = answer {
                assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
                assert!(["SOLVER_TIME_LIMIT", "CALL_TIME_LIMIT"].contains(&&*reason(&status)), "{status:?}");
            }
        }
    }
    end(process).await;
}

/// A ring with random chords both ways, whose capacities share no divisor worth mentioning.
fn worst_case(node_count: u64, switch_count: u64, link_count: usize) -> Topology {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let id = |number: u64| format!("n{number}");
    let kind = |number| if number < node_count - switch_count { NodeKind::Compute } else { NodeKind::Switch };
    let nodes =
        (0..node_count).map(|number| Node { id: id(number), kind: kind(number).into(), ..Node::default() }).collect();
    let mut links = Vec::with_capacity(link_count);
    while links.len() + 1 < link_count {
        let pair = links.len() as u64 / 2;
        let (a, b) = if pair < node_count {
            (pair, (pair + 1) % node_count)
        } else {
            (random() % node_count, random() % node_count)
        };
        if a == b {
            continue;
        }
        let bandwidth = (random() >> 1) | 1;
        for (from, to) in [(a, b), (b, a)] {
            links.push(Link { from: id(from), to: id(to), bandwidth, latency_ns: random() % 1000 });
        }
    }
    Topology { display_name: String::new(), nodes, links }
}

/// Hostile requests of permitted size end with their deadline, and the one planner is free for the next.
#[tokio::test(flavor = "multi_thread")]
async fn large_topologies_with_awkward_capacities_end_in_time_and_free_the_worker() {
    let process = serving();
    let grace = grace(&process).await;
    let examples = [
        (Collective::Allgather, worst_case(2_000, 200, 40_000)),
        (Collective::Allreduce, worst_case(1_000, 0, 40_000)),
        (Collective::Broadcast, worst_case(4_000, 3_998, 40_000)),
    ];
    for (place, (kind, topology)) in examples.into_iter().enumerate() {
        let asked = PlanSpec {
            topology: Some(TopologySource { source: Some(Source::Inline(topology)) }),
            collective: Some(CollectiveSpec { kind: kind.into(), root: None }),
            ..PlanSpec::default()
        };
        let (answer, worked) = answer(&process, Duration::from_secs(2), asked.into_plan()).await;
        let before = processor_time(process.id());
        answered(process.client().await.plan(request(&format!("ring:{}", 5 + place)).into_plan())).await.unwrap();
        let next = processor_time(process.id()) - before;
        eprintln!(
            "{kind:?}: {worked:?} after the deadline, {next:?} to the next plan, {:?}",
            answer.as_ref().map_err(reason)
        );
        assert!(worked <= grace, "{kind:?}: {worked:?} of {grace:?} after the deadline");
        assert!(next <= grace, "{kind:?}: the next plan took {next:?} of {grace:?}");
        if let Err(status) = answer {
            assert!(matches!(status.code(), Code::DeadlineExceeded | Code::FailedPrecondition), "{status:?}");
        }
    }
    end(process).await;
}
