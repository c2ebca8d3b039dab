//! Plans to write and read.

use canopy_plan::{PlanFile, Provenance, write_plan};
use canopy_schedule::{
    Action, Bound, Carrier, Certificate, Collective, CollectiveKind, CutDirection, Forest, Hop, Phase, RouteTable,
    Schedule, Shape, Tree, check, compile,
};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, bound, synthesize};
use canopy_topology::{Capacity, Latency, LinkIndex, NodeIndex, Rank, Rate, TopologyDraft, TopologyLimits, generate};

/// The plan as text.
pub(crate) fn text(plan: &PlanFile) -> String {
    let mut bytes = Vec::new();
    write_plan(plan, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Two ranks with two parallel links one way; a broadcast that uses both. Written out in full in the tests.
pub(crate) fn by_hand() -> PlanFile {
    let mut draft = TopologyDraft { name: Some("pair".to_owned()), ..TopologyDraft::default() };
    draft.add_compute("a");
    draft.add_compute("b");
    let capacity = |rate| Capacity::from_bytes_per_sec(rate).unwrap();
    draft.add_link("a", "b", capacity(2_000), Latency::default());
    draft.add_link("a", "b", capacity(3_001), Latency::from_nanos(700));
    draft.add_link("b", "a", capacity(1_000), Latency::default());
    let mut routes = RouteTable::default();
    let carrier = |route, chunk_count| Carrier { route, chunk_count };
    let carriers = vec![
        carrier(routes.push(&[LinkIndex::new(0)]), 2),
        carrier(routes.push(&[LinkIndex::new(1)]), 3),
        carrier(canopy_schedule::RouteIndex::new(1), 1),
    ];
    let hop = |carriers| Hop { from: Rank::new(0), to: Rank::new(1), carriers };
    let tree = |multiplicity, hops| Tree { root: Rank::new(0), multiplicity, hops };
    let phase = Phase { action: Action::Copy, trees: vec![tree(5, 0..1), tree(1, 1..2)] };
    let hops = vec![hop(0..2), hop(2..3)];
    let forest = Forest { chunks_per_share: 6, routes, carriers, hops, phases: vec![phase] };
    PlanFile {
        topology: draft.build(&TopologyLimits::STANDARD).unwrap(),
        schedule: Schedule {
            collective: Collective::new(CollectiveKind::Broadcast, None, 2).unwrap(),
            algorithm: "by-hand".to_owned(),
            shape: Shape::Forest(forest),
        },
        bound: Bound {
            upper: Rate::new(5_001_u32, 1_u32).unwrap(),
            lower: Rate::new(9_003_u32, 2_u32).unwrap(),
            certificate: Certificate::Cut { direction: CutDirection::Out, nodes: vec![NodeIndex::new(0)] },
        },
        achieved: Rate::new(9_003_u32, 2_u32).unwrap(),
        provenance: Provenance { version: "0.1.0".to_owned(), algorithm: "auto".to_owned() },
    }
}

/// A plan as the service makes it.
pub(crate) fn synthesized(expression: &str, kind: CollectiveKind) -> PlanFile {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let request = SynthesisRequest { collective, algorithm: Algorithm::Auto };
    let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
    let verdict = check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
    let bound = bound(&topology, collective, &Never).unwrap();
    let provenance = Provenance { version: "0.1.0".to_owned(), algorithm: Algorithm::Auto.name().to_owned() };
    PlanFile { topology, schedule, bound, achieved: verdict.algbw, provenance }
}
