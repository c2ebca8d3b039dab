//! The limits of requests that comments state as numbers.

use canopy_proto::v1::output_spec::Instancing;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    AcquireLeaseRequest, BundleCommunicator, Collective, CollectiveSpec, EvictPlansRequest, Fault, FindNetworksRequest,
    FindPathsRequest, GroupClass, JointCollective, OrderMachinesRequest, OutputFormat, OutputSpec, PlanBundleRequest,
    PlanGroupsRequest, PlanSpec, Punctured, RankGroups, RankSlot, RunningGroups, SimulatePlanRequest, TopologySource,
    WeighFaultsRequest,
};
use canopy_wire::fraction_of;

use super::requests::{
    bundle, class, count, event, groups, joint, machines, one_of_joint, paths, report, ring, slot, small, text,
};
use super::{Call, Limit};
use crate::support::request;

/// All limits of requests that the comments state as numbers.
pub(super) const LIMITS: &[Limit] = &[
    Limit {
        field: "FindPathsRequest.size_bytes",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "size_bytes",
        call: |number| Call::Paths(FindPathsRequest { size_bytes: number, ..paths() }),
    },
    Limit {
        field: "FindPathsRequest.paths_max",
        words: "1 to 64",
        kept: &[1, 64],
        broken: &[0, 65],
        path: "paths_max",
        call: |number| Call::Paths(FindPathsRequest { paths_max: Some(small(number)), ..paths() }),
    },
    Limit {
        field: "OrderMachinesRequest.groups",
        words: "at most 8",
        kept: &[8],
        broken: &[9],
        path: "groups",
        call: |number| {
            let group = RankGroups { size: 1, ..RankGroups::default() };
            let whole = RankGroups { size: 16, ..RankGroups::default() };
            let groups = vec![group; count(number) - 1];
            Call::Order(OrderMachinesRequest { groups: [groups, vec![whole.clone()]].concat(), ..machines(whole) })
        },
    },
    Limit {
        field: "RankGroups.size",
        words: "> 0",
        kept: &[16],
        broken: &[0],
        path: "groups",
        call: |number| Call::Order(machines(RankGroups { size: small(number), ..RankGroups::default() })),
    },
    Limit {
        field: "RankGroups.weight",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "groups[0].weight",
        call: |number| {
            Call::Order(machines(RankGroups { size: 16, weight: Some(small(number)), ..RankGroups::default() }))
        },
    },
    Limit {
        field: "FindNetworksRequest.nodes",
        words: "from 2 to 16,384",
        kept: &[2],
        broken: &[1, 16_385],
        path: "nodes",
        call: |number| {
            Call::Networks(FindNetworksRequest { nodes: small(number), degree: 1, ..FindNetworksRequest::default() })
        },
    },
    Limit {
        field: "FindNetworksRequest.degree",
        words: "from 1 to 32",
        kept: &[1, 32],
        broken: &[0, 33],
        path: "degree",
        call: |number| {
            Call::Networks(FindNetworksRequest { nodes: 4, degree: small(number), ..FindNetworksRequest::default() })
        },
    },
    Limit {
        field: "WeighFaultsRequest.remaining",
        words: "at most 1",
        kept: &[0, 1, 2],
        broken: &[3],
        path: "remaining",
        call: |number| {
            let remaining = Some(fraction_of(number, 2));
            Call::Weigh(WeighFaultsRequest { remaining, ..request("ring:4").into_weigh_faults() })
        },
    },
    Limit {
        field: "FaultEvent.source",
        words: "at most 64 bytes",
        kept: &[1, 64],
        broken: &[0, 65],
        path: "source",
        call: |number| report(vec![event(text(number), "1".to_owned())]),
    },
    Limit {
        field: "FaultEvent.event_id",
        words: "at most 128 bytes",
        kept: &[1, 128],
        broken: &[0, 129],
        path: "event_id",
        call: |number| report(vec![event("a".to_owned(), text(number))]),
    },
    Limit {
        field: "ReportFaultsRequest.events",
        words: "1 to 10,000",
        kept: &[1, 10_000],
        broken: &[0, 10_001],
        path: "events",
        call: |number| report(vec![event("a".to_owned(), "1".to_owned()); count(number)]),
    },
    Limit {
        field: "GroupClass.name",
        words: "1 to 64 letters",
        kept: &[1, 64],
        broken: &[0, 65],
        path: "groups[0].name",
        call: |number| Call::Groups(PlanGroupsRequest { groups: vec![class(text(number))], ..groups() }),
    },
    Limit {
        field: "GroupClass.size_bytes",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "groups[0].size_bytes",
        call: |number| {
            let class = GroupClass { size_bytes: number, ..class("all".to_owned()) };
            Call::Groups(PlanGroupsRequest { groups: vec![class], ..groups() })
        },
    },
    Limit {
        field: "PlanGroupsRequest.groups",
        words: "1 to 64",
        kept: &[1, 64],
        broken: &[0, 65],
        path: "groups",
        call: |number| {
            let groups_of = (0..number).map(|number| class(format!("g{number}"))).collect();
            Call::Groups(PlanGroupsRequest { groups: groups_of, ..groups() })
        },
    },
    Limit {
        field: "PlanGroupsRequest.running",
        words: "at most 16",
        kept: &[16],
        broken: &[17],
        path: "running",
        call: |number| {
            let PlanGroupsRequest { layout, groups: classes, .. } = groups();
            let seconds = Some(fraction_of(1 << 20, 1));
            let running = RunningGroups { layout, groups: classes, seconds, ..RunningGroups::default() };
            Call::Groups(PlanGroupsRequest { running: vec![running; count(number)], ..groups() })
        },
    },
    Limit {
        field: "AcquireLeaseRequest.job",
        words: "1 to 128 bytes",
        kept: &[1, 128],
        broken: &[0, 129],
        path: "job",
        call: |number| {
            let specs = vec![request("ring:4")];
            Call::Lease(AcquireLeaseRequest { job: text(number), specs, ..AcquireLeaseRequest::default() })
        },
    },
    Limit {
        field: "AcquireLeaseRequest.specs",
        words: "1 to 64",
        kept: &[1, 64],
        broken: &[0, 65],
        path: "specs",
        call: |number| {
            let specs = vec![request("ring:4"); count(number)];
            Call::Lease(AcquireLeaseRequest { job: "17".to_owned(), specs, ..AcquireLeaseRequest::default() })
        },
    },
    Limit {
        field: "OutputSpec.instances",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "spec.outputs[0].instances",
        call: |number| {
            let instancing = Some(Instancing::Instances(small(number)));
            let output = OutputSpec { format: OutputFormat::MscclXml.into(), instancing, ..OutputSpec::default() };
            Call::Plan(PlanSpec { outputs: vec![output], ..request("ring:4") })
        },
    },
    Limit {
        field: "OutputSpec.max_layers",
        words: "> 0",
        kept: &[8],
        broken: &[0],
        path: "spec.outputs[0].max_layers",
        call: |number| {
            let max_layers = Some(small(number));
            let output = OutputSpec { format: OutputFormat::RoutesXml.into(), max_layers, ..OutputSpec::default() };
            let collective = Some(CollectiveSpec { kind: Collective::AllToAll.into(), root: None });
            Call::Plan(PlanSpec { outputs: vec![output], collective, ..request("ring:4") })
        },
    },
    Limit {
        field: "RankSlot.node",
        words: "1 to 255 bytes",
        kept: &[1, 255],
        broken: &[0, 256],
        path: "spec.placement.slots[0]",
        call: |number| slot(RankSlot { node: text(number), device: 0, count: Some(4) }),
    },
    Limit {
        field: "RankSlot.count",
        words: "> 0",
        kept: &[4],
        broken: &[0],
        path: "spec.placement.slots[0].count",
        call: |number| slot(RankSlot { node: "a".to_owned(), device: 0, count: Some(small(number)) }),
    },
    Limit {
        field: "PlanSpec.size_bytes_max",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "spec.size_bytes_max",
        call: |number| Call::Plan(PlanSpec { size_bytes_max: Some(number), ..request("ring:4") }),
    },
    Limit {
        field: "PlanSpec.outputs",
        words: "1 to 8",
        kept: &[8],
        broken: &[9],
        path: "spec.outputs",
        call: |number| {
            let of = |instances| {
                let instancing = Some(Instancing::Instances(instances));
                OutputSpec { format: OutputFormat::MscclXml.into(), instancing, ..OutputSpec::default() }
            };
            Call::Plan(PlanSpec { outputs: (1..=small(number)).map(of).collect(), ..request("ring:4") })
        },
    },
    Limit {
        field: "PlanSpec.trees_per_root",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "spec.trees_per_root",
        call: |number| Call::Plan(PlanSpec { trees_per_root: Some(small(number)), ..request("ring:4") }),
    },
    Limit {
        field: "PlanSpec.max_chunks",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "spec.max_chunks",
        call: |number| Call::Plan(PlanSpec { max_chunks: Some(number), ..request("ring:4") }),
    },
    Limit {
        field: "PlanSpec.max_depth",
        words: "> 0",
        kept: &[3],
        broken: &[0],
        path: "spec.max_depth",
        call: |number| Call::Plan(PlanSpec { max_depth: Some(small(number)), ..request("ring:4") }),
    },
    Limit {
        field: "PlanSpec.tolerance",
        words: "more than 0 and less than 1",
        kept: &[1, 7],
        broken: &[0, 8, 9],
        path: "spec.tolerance",
        call: |number| Call::Plan(PlanSpec { tolerance: Some(fraction_of(number, 8)), ..request("ring:4") }),
    },
    Limit {
        field: "PlanSpec.chunks",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "spec.chunks",
        call: |number| {
            let algorithm = Some("bfb".to_owned());
            Call::Plan(PlanSpec { chunks: Some(number), algorithm, ..request("ring:4") })
        },
    },
    Limit {
        field: "PlanSpec.alpha_ns",
        words: "at most 1 s",
        kept: &[0, 1_000_000_000],
        broken: &[1_000_000_001],
        path: "spec.alpha_ns",
        call: |number| Call::Plan(PlanSpec { alpha_ns: Some(number), ..request("ring:4") }),
    },
    Limit {
        field: "JointSpec.collectives",
        words: "1 to 16",
        kept: &[1, 16],
        broken: &[0, 17],
        path: "spec.joint.collectives",
        call: |number| joint(vec![one_of_joint(); count(number)]),
    },
    Limit {
        field: "JointCollective.size_bytes",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "spec.joint.collectives[0].size_bytes",
        call: |number| joint(vec![JointCollective { size_bytes: Some(number), ..one_of_joint() }]),
    },
    Limit {
        field: "JointCollective.chunks",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "spec.joint.collectives[0].chunks",
        call: |number| joint(vec![JointCollective { chunks: Some(number), ..one_of_joint() }]),
    },
    Limit {
        field: "PlanBundleRequest.communicators",
        words: "at most 64",
        kept: &[1],
        broken: &[65],
        path: "communicators",
        call: |number| {
            let of = |number| BundleCommunicator { name: format!("c{number}"), ..BundleCommunicator::default() };
            Call::Bundle(PlanBundleRequest { communicators: (0..number).map(of).collect(), ..bundle() })
        },
    },
    Limit {
        field: "PlanBundleRequest.size_bytes_min",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "size_bytes_min",
        call: |number| Call::Bundle(PlanBundleRequest { size_bytes_min: Some(number), ..bundle() }),
    },
    Limit {
        field: "PlanBundleRequest.size_bytes_max",
        words: "> 0",
        kept: &[1],
        broken: &[0],
        path: "size_bytes_max",
        call: |number| Call::Bundle(PlanBundleRequest { size_bytes_max: Some(number), ..bundle() }),
    },
    Limit {
        field: "BundleCommunicator.name",
        words: "1 to 63 letters",
        kept: &[1, 63],
        broken: &[0, 64],
        path: "communicators[0].name",
        call: |number| {
            let communicator = BundleCommunicator { name: text(number), ..BundleCommunicator::default() };
            Call::Bundle(PlanBundleRequest { communicators: vec![communicator], ..bundle() })
        },
    },
    Limit {
        field: "ListPlansRequest.page_size",
        words: "at most 1000",
        kept: &[1, 1000],
        broken: &[1001],
        path: "page_size",
        call: |number| Call::Lists(small(number)),
    },
    Limit {
        field: "EvictPlansRequest.names",
        words: "at most 1000",
        kept: &[1000],
        broken: &[1001],
        path: "names",
        call: |number| {
            let names = vec![format!("plans/{:064}", 0); count(number)];
            Call::Evict(EvictPlansRequest { names, validate_only: true, ..EvictPlansRequest::default() })
        },
    },
    Limit {
        field: "SimulatePlanRequest.sizes_bytes",
        words: "at most 16",
        kept: &[16],
        broken: &[17],
        path: "sizes_bytes",
        call: |number| {
            Call::Simulate(SimulatePlanRequest {
                sizes_bytes: (1..=number).map(|number| number << 10).collect(),
                ..SimulatePlanRequest::default()
            })
        },
    },
    Limit {
        field: "SimulatePlanRequest.alpha_ns",
        words: "at most 1 s",
        kept: &[1_000_000_000],
        broken: &[1_000_000_001],
        path: "alpha_ns",
        call: |number| Call::Simulate(SimulatePlanRequest { alpha_ns: Some(number), ..SimulatePlanRequest::default() }),
    },
    Limit {
        field: "Punctured.faults",
        words: "at most 10,000",
        kept: &[1, 10_000],
        broken: &[10_001],
        path: "spec.topology.punctured.faults",
        call: |number| {
            let fault = event(String::new(), String::new()).fault.unwrap();
            let punctured = Punctured { base: ring().map(Box::new), faults: vec![fault; count(number)] };
            let topology = Some(TopologySource { source: Some(Source::Punctured(Box::new(punctured))) });
            Call::Plan(PlanSpec { topology, ..request("") })
        },
    },
    Limit {
        field: "Fault.remaining",
        words: "at most 1",
        kept: &[1],
        broken: &[3],
        path: "spec.topology.punctured.faults[0].remaining",
        call: |number| {
            let fault = event(String::new(), String::new()).fault.unwrap();
            let fault = Fault { remaining: Some(fraction_of(number, 2)), ..fault };
            let punctured = Punctured { base: ring().map(Box::new), faults: vec![fault] };
            let topology = Some(TopologySource { source: Some(Source::Punctured(Box::new(punctured))) });
            Call::Plan(PlanSpec { topology, ..request("") })
        },
    },
];
