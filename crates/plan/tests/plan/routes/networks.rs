//! Flows on several networks: few layers, and files that hold.

use canopy_plan::routes::{LowerError, LowerOptions, Program, lower, parse, prove, prove_on, write};
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, Shares, check_flow};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, layered_flow, synthesize};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};

pub(crate) fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn options(schedule: &Schedule, topology: &Topology) -> LowerOptions {
    let algbw = check_flow(topology, schedule).unwrap().algbw;
    LowerOptions { name: "test".to_owned(), in_place: false, bytes_min: 0, bytes_max: 1 << 30, algbw }
}

fn flow(topology: &Topology, kind: CollectiveKind, root: Option<u32>, shares: Shares) -> Schedule {
    let collective = Collective::new(kind, root.map(Rank::new), topology.rank_count()).unwrap();
    let request = SynthesisRequest { shares, ..SynthesisRequest::new(collective, Algorithm::Flow) };
    synthesize(topology, &request, &Never, &Silent).unwrap()
}

/// The program of a flow; that it is right and is what its text says is asserted.
pub(crate) fn program(topology: &Topology, kind: CollectiveKind, root: Option<u32>, shares: Shares) -> Program {
    let planned = flow(topology, kind, root, shares);
    let layered = layered_flow(topology, &planned, None, &Never).unwrap();
    let schedule = Schedule { shape: Shape::Flow(layered.flow), ..planned.clone() };
    let program = lower(topology, &schedule, &layered.layers, &options(&planned, topology), &|| false).unwrap();
    let text = write(&program);
    assert_eq!(parse(&text).as_ref(), Ok(&program));
    for proof in [prove(&program), prove_on(&program, topology, &|| false).unwrap()] {
        assert_eq!(proof.problems, [], "{:?} on {:?}", kind, topology.name());
    }
    assert_eq!(program.layer_count, layered.layer_count);
    program
}

fn all_to_all(expression: &str) -> Program {
    program(&network(expression), CollectiveKind::AllToAll, None, Shares::Equal)
}

/// Layers of Basu et al. 2024, §5.5: at most 4 for all networks looked at there.
#[test]
fn few_layers_are_enough() {
    for expression in ["hypercube:3", "twisted-cube", "bipartite:4x4", "torus:4x4", "genkautz:n=20,d=4"] {
        let found = all_to_all(expression).layer_count;
        assert!(found <= 4, "{expression}: {found}");
    }
    assert!(all_to_all("genkautz:n=32,d=4").layer_count <= 4);
    assert!(all_to_all("torus:3x3x3").layer_count <= 4);
}

/// Switches are passed like any other node, and two links of different latency between the same nodes are two ports.
#[test]
fn ports_are_in_the_order_of_links() {
    let program = all_to_all("dgx-a100:boxes=2,gpus=2");
    assert!(program.nodes.len() > program.rank_count as usize);
    let mut draft = canopy_topology::TopologyDraft::default();
    ["a", "b"].iter().for_each(|id| draft.add_compute(*id));
    let rate = |rate| canopy_topology::Capacity::from_bytes_per_sec(rate).unwrap();
    for (latency, gigabytes) in [(700, 2), (100, 6)] {
        draft.add_both("a", "b", rate(gigabytes), canopy_topology::Latency::from_nanos(latency));
    }
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let both = self::program(&topology, CollectiveKind::AllToAll, None, Shares::Equal);
    let ports: Vec<(u32, u32, u64)> =
        both.nodes[0].ports.iter().map(|port| (port.to, port.parallel, port.rate)).collect();
    assert_eq!(ports, [(1, 0, 6), (1, 1, 2)]);
    let pairs = &both.ranks[0].queue_pairs;
    assert_eq!((pairs.len(), both.routes_max), (2, 2));
    assert_eq!(pairs.iter().map(|pair| pair.chunk_count).sum::<u32>(), both.block_chunks);
}

#[test]
fn gather_and_scatter_have_routes_for_shares_of_any_size() {
    let topology = network("torus:3x3");
    for kind in [CollectiveKind::Gather, CollectiveKind::Scatter] {
        for shares in [Shares::Equal, Shares::Weighted(vec![3, 0, 1, 1, 2, 5, 1, 1, 4])] {
            let is_equal = shares == Shares::Equal;
            let program = program(&topology, kind, Some(4), shares);
            assert_eq!(program.equal_shares().is_some(), is_equal);
        }
    }
}

#[test]
fn what_a_file_cannot_say_is_refused() {
    let topology = network("ring:4");
    let schedule = flow(&topology, CollectiveKind::AllToAll, None, Shares::Equal);
    let paths = match &schedule.shape {
        Shape::Flow(flow) => flow.paths.len(),
        _ => 0,
    };
    let layers = vec![0; paths];
    let right = options(&schedule, &topology);
    let refused =
        |options: &LowerOptions, layers: &[u32]| lower(&topology, &schedule, layers, options, &|| false).unwrap_err();
    assert_eq!(refused(&LowerOptions { in_place: true, ..right.clone() }, &layers), LowerError::InPlace);
    let name = "a b".to_owned();
    assert_eq!(refused(&LowerOptions { name: name.clone(), ..right.clone() }, &layers), LowerError::Name { name });
    let sizes = LowerOptions { bytes_min: 2, bytes_max: 1, ..right.clone() };
    assert_eq!(refused(&sizes, &layers), LowerError::Sizes { min: 2, max: 1 });
    let short = refused(&right, &layers[1..]);
    assert_eq!(short, LowerError::Malformed { path: paths - 1, what: "has no layer" });
    let deep = LowerError::OverLimit { what: "layers", need: 4097, limit: 4096 };
    assert_eq!(refused(&right, &vec![4096; paths]), deep);
    assert_eq!(lower(&topology, &schedule, &layers, &right, &|| true), Err(LowerError::Stopped));
}
