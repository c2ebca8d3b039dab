//! Execution plans of MSCCL++ for every collective: written, read back, proved and run.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use canopy_plan::{
    ExecutionLowerOptions, ExecutionOptions, ExecutionPlan, ExecutorProfile, emulate_execution_plan,
    lower_execution_plan, parse_execution_plan, prove_execution_plan, write_execution_plan,
};
use canopy_schedule::{Collective, CollectiveKind, TransferGraph, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn graph(topology: &Topology, kind: CollectiveKind, root: Option<Rank>, algorithm: Algorithm) -> TransferGraph {
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let request = SynthesisRequest::new(collective, algorithm);
    compile(topology, &synthesize(topology, &request, &Never, &Silent).unwrap()).unwrap()
}

/// Ranks of boxes that are named reach each other's memory; without names all do.
fn boxes(topology: &Topology) -> Vec<u32> {
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

fn lowered(topology: &Topology, graph: &TransferGraph, profile: ExecutorProfile, in_place: bool) -> ExecutionPlan {
    let options = ExecutionLowerOptions {
        in_place,
        bytes_max: 1 << 30,
        profile,
        name: "test".to_owned(),
        boxes: boxes(topology),
    };
    lower_execution_plan(graph, &options, &|| false).unwrap()
}

/// Reads back, proves, and runs in several interleavings.
#[track_caller]
fn judge(plan: &ExecutionPlan, asked: Collective, profile: ExecutorProfile) {
    let text = write_execution_plan(plan);
    let read = parse_execution_plan(&text).unwrap();
    assert_eq!(&read, plan);
    let proof = prove_execution_plan(&read, Some(asked), profile, &|| false).unwrap();
    assert!(proof.is_ok(), "{profile} {}: {:#?}\n{text}", asked.kind(), proof.problems);
    assert_eq!(proof.warnings, []);
    for options in ExecutionOptions::various(profile, 1) {
        emulate_execution_plan(&read, Some(asked), &options, &|| false).unwrap();
    }
}

#[test]
fn every_collective_is_lowered_on_every_kind_of_network() {
    for expression in ["ring:8", "torus:3x3", "dgx-a100:boxes=2", "hypercube:4"] {
        let topology = topology(expression);
        for kind in CollectiveKind::ALL {
            let graph = graph(&topology, kind, None, Algorithm::Auto);
            for profile in ExecutorProfile::ALL {
                for in_place in [false, true] {
                    let plan = lowered(&topology, &graph, profile, in_place);
                    judge(&plan, graph.collective, profile);
                }
            }
        }
    }
}

/// A star has more children than an operation has channels, and so many trees that a lane needs several blocks.
#[test]
fn trees_of_any_degree_and_any_root_are_lowered() {
    let topology = topology("leaf-spine:leaves=1,hosts=12,spines=1");
    for kind in CollectiveKind::ALL.into_iter().filter(|kind| kind.has_root()) {
        let graph = graph(&topology, kind, Some(Rank::new(5)), Algorithm::Direct);
        for in_place in [false, true] {
            judge(&lowered(&topology, &graph, ExecutorProfile::V09, in_place), graph.collective, ExecutorProfile::V09);
        }
    }
}
