//! Plans and their execution plans, for tests.

use canopy_plan::{
    ExecutionLowerError, ExecutionLowerOptions, ExecutionPlan, ExecutorProfile, lower_execution_plan, switch_domains,
};
use canopy_schedule::{Collective, CollectiveKind, TransferGraph, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};

pub(crate) fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

pub(crate) fn graph(
    topology: &Topology,
    kind: CollectiveKind,
    root: Option<Rank>,
    algorithm: Algorithm,
) -> TransferGraph {
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let request = SynthesisRequest::new(collective, algorithm);
    compile(topology, &synthesize(topology, &request, &Never, &Silent).unwrap()).unwrap()
}

/// Ranks of boxes that are named reach each other's memory; without names all do.
pub(crate) fn boxes(topology: &Topology) -> Vec<u32> {
    let mut names: Vec<Option<&str>> = Vec::new();
    let ranks = topology.nodes().iter().take(topology.rank_count() as usize);
    let number = |name| match names.iter().position(|known| *known == name) {
        Some(number) => number,
        None => {
            names.push(name);
            names.len() - 1
        }
    };
    ranks
        .map(|node| node.attributes.box_name.as_deref())
        .map(number)
        .map(|number| u32::try_from(number).unwrap())
        .collect()
}

pub(crate) fn try_lowered(
    topology: &Topology,
    graph: &TransferGraph,
    profile: ExecutorProfile,
    in_place: bool,
) -> Result<ExecutionPlan, ExecutionLowerError> {
    let (bytes_max, name) = (1 << 30, "test".to_owned());
    let boxes = boxes(topology);
    let switches = switch_domains(topology, &boxes);
    let options = ExecutionLowerOptions { in_place, bytes_max, profile, name, boxes, switches };
    lower_execution_plan(graph, &options, &|| false)
}

pub(crate) fn lowered(
    topology: &Topology,
    graph: &TransferGraph,
    profile: ExecutorProfile,
    in_place: bool,
) -> ExecutionPlan {
    try_lowered(topology, graph, profile, in_place).unwrap()
}
