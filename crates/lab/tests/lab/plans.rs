//! Plans that are put into the lab.

use canopy_lab::{Compiled, Job, LabError, compile};
use canopy_schedule::{Collective, CollectiveKind, TransferGraph, check};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Topology, TopologyLimits, generate};

/// Nanoseconds that plans are said to take.
pub(crate) const TIME_NS: u64 = 2_000_000_000;

pub(crate) fn planned(expression: &str, kind: CollectiveKind, algorithm: Algorithm) -> (Topology, TransferGraph) {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let request = SynthesisRequest::new(collective, algorithm);
    let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
    let graph = canopy_schedule::compile(&topology, &schedule).unwrap();
    check(&topology, &graph).unwrap();
    (topology, graph)
}

pub(crate) fn job<'a>(topology: &'a Topology, graph: &'a TransferGraph, size_bytes: u64, piece_bytes: u64) -> Job<'a> {
    Job { topology, graph, size_bytes, piece_bytes, time_ns: TIME_NS, pace_percent: 102, route_first: 0 }
}

pub(crate) fn compiled(topology: &Topology, graph: &TransferGraph, size_bytes: u64, piece_bytes: u64) -> Compiled {
    compile(&job(topology, graph, size_bytes, piece_bytes)).unwrap()
}

#[test]
fn too_much_and_too_little_are_refused() {
    let (topology, graph) = planned("ring:4", CollectiveKind::Allgather, Algorithm::Forest);
    let refused = |size, piece| compile(&job(&topology, &graph, size, piece)).unwrap_err();
    assert_eq!(refused(3, 64), LabError::TooSmall { size_bytes: 3 });
    assert!(matches!(refused(1 << 40, 64), LabError::TooManyPieces { .. }));
    assert!(matches!(refused(1 << 40, 1 << 30), LabError::TooMuchMemory { .. }));
    assert!(matches!(refused(u64::MAX, u64::MAX), LabError::TooMuchMemory { .. }));
    let late = Job { route_first: u32::MAX, ..job(&topology, &graph, 4096, 64) };
    assert!(matches!(compile(&late), Err(LabError::TooManyRoutes { .. })));
    let mut cyclic = graph.clone();
    cyclic.dependencies.iter_mut().for_each(|before| *before = u32::MAX);
    assert!(matches!(compile(&job(&topology, &cyclic, 4096, 64)), Err(LabError::Malformed { .. })));
    let mut foreign = graph.clone();
    foreign.batches[0].chunk_first = u64::MAX;
    assert!(matches!(compile(&job(&topology, &foreign, 4096, 64)), Err(LabError::Malformed { .. })));
}
