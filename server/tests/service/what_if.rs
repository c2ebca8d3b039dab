//! Faults weighed by a server, over a real socket.

use canopy_planner::{Left, WhatIf};
use canopy_proto::Exact as _;
use canopy_proto::v1::weigh_faults_event::Event;
use canopy_proto::v1::{
    Collective as WireCollective, CollectiveSpec, FaultKind as WireKind, PlanSpec, Priority, WeighFaultsRequest,
    WeighFaultsStarted, WeighedFault, WeighedOutcome,
};
use canopy_schedule::{Collective, CollectiveKind};
use canopy_synth::Never;
use canopy_topology::{TopologyLimits, generate};
use canopy_wire::fraction;
use canopy_wire::fraction_of;
use canopy_wire::left_of_wire;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::support::{TestServer, request};

fn on(expression: &str, kind: WireCollective) -> WeighFaultsRequest {
    let collective = Some(CollectiveSpec { kind: kind.into(), root: None });
    PlanSpec { collective, ..request(expression) }.into_weigh_faults()
}

async fn ask(
    server: &TestServer,
    request: WeighFaultsRequest,
) -> Result<(WeighFaultsStarted, Vec<WeighedFault>), Status> {
    let mut events = server.analysis().weigh_faults(request).await?.into_inner();
    let (mut started, mut groups, mut weighed) = (None, Vec::new(), 0);
    while let Some(message) = events.message().await? {
        match message.event.unwrap() {
            Event::Started(first) => {
                assert!(started.is_none() && groups.is_empty());
                started = Some(first);
            }
            Event::Progress(progress) => {
                assert!(progress.weighed > weighed && groups.is_empty(), "{progress:?}");
                weighed = progress.weighed;
            }
            Event::Weighed(more) => groups.extend(more.groups),
        }
    }
    let started = started.unwrap();
    assert_eq!(groups.len(), started.groups as usize);
    Ok((started, groups))
}

#[tokio::test]
async fn faults_are_ranked_as_the_library_weighs_them() {
    let server = TestServer::start().await;
    let expression = "dgx-a100:boxes=2";
    let (started, groups) = ask(&server, on(expression, WireCollective::Allgather)).await.unwrap();
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count()).unwrap();
    let what_if = WhatIf::new(topology, collective, &Never).unwrap();
    assert_eq!(started.bound, fraction(&what_if.sound(&Never).unwrap()));
    assert_eq!(started.topology.unwrap().ranks, 16);
    let mut last = Left::TooFewRanks;
    for group in &groups {
        let left = left_of_wire(group).unwrap();
        assert!(last.harm() <= left.harm(), "{group:?}");
        for fault in &group.faults {
            assert_eq!(
                what_if.left(&what_if.directory(), &canopy_wire::loss(fault).unwrap(), &Never).unwrap(),
                left,
                "{fault:?}"
            );
        }
        assert_eq!(group.alike as usize, group.faults.len());
        last = left;
    }
    let kinds: Vec<WireKind> = groups.iter().map(WeighedFault::kind).collect();
    assert!(
        [WireKind::Links, WireKind::Nics, WireKind::Gpus, WireKind::Boxes, WireKind::Switches]
            .iter()
            .all(|kind| kinds.contains(kind))
    );
    assert_eq!(groups[0].outcome(), WeighedOutcome::Disconnected, "without the switch between the boxes");
}

#[tokio::test]
async fn kinds_and_fractions_are_those_that_were_asked_for() {
    let server = TestServer::start().await;
    let halved = WeighFaultsRequest {
        kinds: vec![WireKind::Nics.into()],
        remaining: Some(fraction_of(1, 2)),
        ..on("dgx-a100:boxes=2", WireCollective::Allgather)
    };
    let (started, groups) = ask(&server, halved).await.unwrap();
    let [group] = &groups[..] else { panic!("{groups:?}") };
    assert_eq!((started.slices, group.alike, group.bound.exact()), (1, 16, "1000000000000/3"));
    assert_eq!(group.faults[0].remaining, Some(fraction_of(1, 2)));
    let (_, groups) = ask(&server, on("ring:3", WireCollective::Broadcast)).await.unwrap();
    assert!(groups.iter().any(|group| group.outcome() == WeighedOutcome::RootLost));
}

#[tokio::test]
async fn refusals_name_the_field() {
    let server = TestServer::start().await;
    let ring = || on("ring:4", WireCollective::Allgather);
    let with = |change: &dyn Fn(&mut WeighFaultsRequest)| {
        let mut asked = ring();
        change(&mut asked);
        asked
    };
    let refused = [
        (WeighFaultsRequest::default(), "FIELD_MISSING", "topology"),
        (WeighFaultsRequest { kinds: vec![WireKind::Gpus.into(), 77], ..ring() }, "ENUM_VALUE_UNKNOWN", "kinds[1]"),
        (WeighFaultsRequest { remaining: Some(fraction_of(1, 0)), ..ring() }, "FRACTION_INVALID", "remaining"),
        (with(&|request| request.priority = 77), "ENUM_VALUE_UNKNOWN", "priority"),
    ];
    for (asked, reason, field) in refused {
        let status = ask(&server, asked).await.unwrap_err();
        let details = status.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, reason, "{status:?}");
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, field, "{status:?}");
        assert_eq!(status.code(), Code::InvalidArgument);
    }
    let apart = ask(&server, on("ring:4,down=0-1+2-3", WireCollective::Allgather)).await.unwrap_err();
    assert_eq!(apart.code(), Code::FailedPrecondition, "{apart:?}");
    let urgent = with(&|request| request.priority = Priority::JobStart.into());
    ask(&server, urgent).await.unwrap();
}

#[tokio::test]
async fn a_deadline_ends_it_in_time() {
    let server = TestServer::start().await;
    let mut late = tonic::Request::new(on("torus:7x7x7,faults=links:3+seed:1", WireCollective::AllToAll));
    late.set_timeout(std::time::Duration::from_millis(300));
    let mut client = server.analysis();
    let ended = async {
        match client.weigh_faults(late).await {
            Err(status) => status,
            Ok(events) => {
                let mut events = events.into_inner();
                loop {
                    match events.message().await {
                        Err(status) => break status,
                        Ok(message) => assert!(message.is_some(), "it ended in time after all"),
                    }
                }
            }
        }
    };
    let status = tokio::time::timeout(std::time::Duration::from_secs(10), ended).await.expect("the deadline ends it");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
}
