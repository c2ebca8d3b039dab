//! Requests that are right but for the limit that is tried.

use canopy_proto::v1::{
    Collective, CollectiveSpec, Fault, FaultEvent, FindPathsRequest, GroupClass, JointCollective, JointSpec,
    LinkTarget, OrderMachinesRequest, OutputFormat, OutputSpec, Placement, PlanBundleRequest, PlanGroupsRequest,
    PlanSpec, RankGroups, RankSlot, ReportFaultsRequest, TopologySource, fault,
};

use super::Call;
use crate::support::request;

pub(super) fn count(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

pub(super) fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap()
}

pub(super) fn text(length: u64) -> String {
    "a".repeat(count(length))
}

pub(super) fn ring() -> Option<TopologySource> {
    request("ring:4").topology
}

pub(super) fn allgather() -> CollectiveSpec {
    CollectiveSpec { kind: Collective::Allgather.into(), root: None }
}

pub(super) fn bundle() -> PlanBundleRequest {
    let output = OutputSpec { format: OutputFormat::MscclXml.into(), ..OutputSpec::default() };
    PlanBundleRequest {
        topology: ring(),
        collectives: vec![allgather()],
        output: Some(output),
        size_bytes_max: Some(1 << 20),
        ..PlanBundleRequest::default()
    }
}

pub(super) fn class(name: String) -> GroupClass {
    GroupClass {
        name,
        over: vec!["tp".to_owned()],
        collective: Collective::Allgather.into(),
        size_bytes: 1 << 20,
        ..GroupClass::default()
    }
}

pub(super) fn groups() -> PlanGroupsRequest {
    PlanGroupsRequest {
        topology: ring(),
        layout: "tp=4".to_owned(),
        groups: vec![class("all".to_owned())],
        without_comparison: true,
        ..PlanGroupsRequest::default()
    }
}

pub(super) fn paths() -> FindPathsRequest {
    FindPathsRequest { topology: ring(), target_rank: 1, size_bytes: 1, ..FindPathsRequest::default() }
}

pub(super) fn machines(group: RankGroups) -> OrderMachinesRequest {
    OrderMachinesRequest {
        topology: request("dgx-a100:boxes=2").topology,
        groups: vec![group],
        ..OrderMachinesRequest::default()
    }
}

pub(super) fn event(source: String, event_id: String) -> FaultEvent {
    let link = LinkTarget { from: "0".to_owned(), to: "1".to_owned(), one_way: false };
    let fault = Some(Fault { target: Some(fault::Target::Link(link)), remaining: None });
    FaultEvent { source, event_id, fault, ..FaultEvent::default() }
}

pub(super) fn report(events: Vec<FaultEvent>) -> Call {
    // Another network than that of the other calls, which would be planned around them.
    let topology = request("ring:5").topology;
    Call::Report(ReportFaultsRequest { topology, events, ..ReportFaultsRequest::default() })
}

pub(super) fn joint(collectives: Vec<JointCollective>) -> Call {
    let joint = Some(JointSpec { collectives, position: 0 });
    Call::Plan(PlanSpec { topology: ring(), joint, ..PlanSpec::default() })
}

pub(super) fn one_of_joint() -> JointCollective {
    JointCollective { collective: Some(allgather()), size_bytes: Some(1 << 10), ..JointCollective::default() }
}

pub(super) fn slot(slot: RankSlot) -> Call {
    Call::Plan(PlanSpec { placement: Some(Placement { slots: vec![slot] }), ..request("ring:4") })
}
