//! Plans to write and read.

use canopy_plan::{PlanFile, Provenance, read_plan, write_plan};
use canopy_schedule::{
    Action, Blocks, Bound, Carrier, Certificate, Collective, CollectiveKind, CutDirection, Flow, Forest, Hop, Pace,
    Path, PathTrees, Phase, RouteIndex, RouteTable, Schedule, Send, Shape, Shares, Steps, Tree, certified_bound, check,
    check_flow, compile, judge_until,
};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, Synthesized, bound, synthesize_explained};
use canopy_topology::{Capacity, Latency, LinkIndex, NodeIndex, Rank, Rate, TopologyDraft, TopologyLimits, generate};

/// What is planned by a rule.
pub(crate) const RULE_KINDS: [CollectiveKind; 3] =
    [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce];

/// Writes a plan and reads it again; returns its text.
#[track_caller]
pub(crate) fn comes_back(plan: &PlanFile) -> String {
    let written = text(plan);
    assert_eq!(read_plan(written.as_bytes(), &TopologyLimits::STANDARD).unwrap(), *plan, "{written:.300}");
    written
}

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
        carrier(RouteIndex::new(1), 1),
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
            shares: Shares::Equal,
            shape: Shape::Forest(forest),
        },
        form: None,
        bound: Bound {
            upper: Rate::new(5_001_u32, 1_u32).unwrap(),
            lower: Rate::new(9_003_u32, 2_u32).unwrap(),
            certificate: Certificate::Cut { direction: CutDirection::Out, nodes: vec![NodeIndex::new(0)] },
        },
        achieved: Rate::new(9_003_u32, 2_u32).unwrap(),
        in_network: None,
        provenance: Provenance { version: "0.1.0".to_owned(), algorithm: "auto".to_owned() },
    }
}

/// The same topology; weighted shares, an allgather in two steps.
pub(crate) fn steps_by_hand() -> PlanFile {
    let plan = by_hand();
    let routes = routes(&[0, 1, 2]);
    let carrier = |route, chunk_count| Carrier { route: RouteIndex::new(route), chunk_count };
    let send = |step, from, to, chunks, carriers| {
        let (action, from, to) = (Action::Copy, Rank::new(from), Rank::new(to));
        Send { step, action, from, to, chunks, carriers }
    };
    let steps = Steps {
        chunks_per_share: 1,
        pace: Pace::Barriers,
        routes,
        carriers: vec![carrier(0, 1), carrier(1, 1), carrier(2, 1), carrier(1, 1)],
        sends: vec![send(0, 0, 1, 0..2, 0..2), send(0, 1, 0, 3..4, 2..3), send(1, 0, 1, 2..3, 3..4)],
    };
    let schedule = Schedule {
        collective: Collective::new(CollectiveKind::Allgather, None, 2).unwrap(),
        shares: Shares::Weighted(vec![3, 1]),
        shape: Shape::Steps(steps),
        ..plan.schedule
    };
    judged(PlanFile { schedule, ..plan })
}

/// The same topology; an all-to-all with paths over either link, and an lp-dual.
pub(crate) fn flow_by_hand() -> PlanFile {
    let plan = by_hand();
    let routes = routes(&[0, 1, 2]);
    let path = |source, destination, chunk_count, hop| {
        let (source, destination) = (Rank::new(source), Rank::new(destination));
        Path { source, destination, chunk_count, hops: hop..hop + 1 }
    };
    let flow = Flow {
        chunks_per_share: 5,
        routes,
        hops: [0, 1, 2].map(RouteIndex::new).to_vec(),
        paths: vec![path(0, 1, 3, 0), path(0, 1, 2, 1), path(1, 0, 5, 2)],
    };
    let schedule = Schedule {
        collective: Collective::new(CollectiveKind::AllToAll, None, 2).unwrap(),
        shape: Shape::Flow(flow),
        ..plan.schedule
    };
    let certificate = Certificate::LpDual { lengths: vec![0, 0, 7] };
    judged(PlanFile { schedule, bound: Bound { certificate, ..plan.bound }, ..plan })
}

/// An all-to-all along a line of 257 ranks, the fewest whose paths are written by trees.
pub(crate) fn trees_by_hand() -> PlanFile {
    let topology = generate("mesh:1x257", &TopologyLimits::STANDARD).unwrap();
    let mut trees = PathTrees::new(&topology);
    for source in topology.ranks() {
        for (link, ends) in (0..).map(LinkIndex::new).zip(topology.links()) {
            let away = |node: NodeIndex| node.number().abs_diff(source.number());
            if away(ends.to) > away(ends.from) {
                trees.set(source, ends.to, link);
            }
        }
    }
    let flow = trees.flow(&topology, 3, |_, _| 3, &|| false).unwrap();
    let schedule = Schedule {
        collective: Collective::new(CollectiveKind::AllToAll, None, 257).unwrap(),
        shape: Shape::Flow(flow),
        ..by_hand().schedule
    };
    let lengths = vec![1; topology.links().len()];
    let achieved = check_flow(&topology, &schedule).unwrap().algbw;
    let upper = certified_bound(
        &topology,
        schedule.collective,
        &Shares::Equal,
        &Certificate::LpDual { lengths: lengths.clone() },
    );
    let bound = Bound { upper: upper.unwrap(), lower: achieved.clone(), certificate: Certificate::LpDual { lengths } };
    PlanFile { topology, schedule, bound, achieved, ..by_hand() }
}

/// A broadcast along a line of 257 ranks in 256 trees, one per chunk: the fewest hops that are written by routes. The first
/// hop of the first tree has two chunks, on a route each that are one.
pub(crate) fn hops_by_hand() -> PlanFile {
    let topology = generate("mesh:1x257", &TopologyLimits::STANDARD).unwrap();
    let mut routes = RouteTable::default();
    let up = |from: u32| {
        (0..).zip(topology.links()).find(|(_, link)| (link.from.number(), link.to.number()) == (from, from + 1))
    };
    for from in 0..256 {
        routes.push(&[LinkIndex::new(up(from).unwrap().0)]);
    }
    let (mut hops, mut carriers, mut trees) = (Vec::new(), Vec::new(), Vec::new());
    for tree in 0..256 {
        let start = u32::try_from(hops.len()).unwrap();
        let multiplicity = if tree == 0 { 2 } else { 1 };
        for from in 0..256 {
            let first = u32::try_from(carriers.len()).unwrap();
            let parts = if (tree, from) == (0, 0) { vec![1, 1] } else { vec![multiplicity] };
            let carrier = |chunk_count| Carrier { route: RouteIndex::new(from), chunk_count };
            carriers.extend(parts.into_iter().map(carrier));
            let carriers = first..u32::try_from(carriers.len()).unwrap();
            hops.push(Hop { from: Rank::new(from), to: Rank::new(from + 1), carriers });
        }
        trees.push(Tree { root: Rank::new(0), multiplicity, hops: start..start + 256 });
    }
    let phases = vec![Phase { action: Action::Copy, trees }];
    let schedule = Schedule {
        collective: Collective::new(CollectiveKind::Broadcast, None, 257).unwrap(),
        shape: Shape::Forest(Forest { chunks_per_share: 257, routes, carriers, hops, phases }),
        ..by_hand().schedule
    };
    judged(PlanFile { topology, schedule, ..by_hand() })
}

/// The all-to-all of two ranks with blocks of different sizes: twice as much one way as the other, and something that stays.
pub(crate) fn blocks_by_hand() -> PlanFile {
    let plan = flow_by_hand();
    let Shape::Flow(mut flow) = plan.schedule.shape else { panic!("not a flow") };
    flow.paths[0].chunk_count = 6;
    flow.paths[1].chunk_count = 4;
    let shares = Shares::Blocks(Blocks::new(2, vec![1, 2, 1, 0]).unwrap());
    let schedule = Schedule { shares, shape: Shape::Flow(flow), ..plan.schedule };
    judged(PlanFile { schedule, ..plan })
}

fn routes(links: &[u32]) -> RouteTable {
    let mut routes = RouteTable::default();
    for &link in links {
        routes.push(&[LinkIndex::new(link)]);
    }
    routes
}

/// The plan with rates that are true of it.
fn judged(plan: PlanFile) -> PlanFile {
    let Schedule { collective, shares, .. } = &plan.schedule;
    let achieved = check(&plan.topology, &compile(&plan.topology, &plan.schedule).unwrap()).unwrap().algbw;
    let upper = certified_bound(&plan.topology, *collective, shares, &plan.bound.certificate).unwrap();
    PlanFile { bound: Bound { upper, lower: achieved.clone(), ..plan.bound }, achieved, ..plan }
}

/// A plan as the service makes it.
pub(crate) fn synthesized(expression: &str, kind: CollectiveKind) -> PlanFile {
    synthesized_by(Algorithm::Auto, expression, kind)
}

/// The same by an algorithm.
pub(crate) fn synthesized_by(algorithm: Algorithm, expression: &str, kind: CollectiveKind) -> PlanFile {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let request = SynthesisRequest::new(collective, algorithm);
    let Synthesized { schedule, form, .. } = synthesize_explained(&topology, &request, None, &Never, &Silent).unwrap();
    let verdict = judge_until(&topology, &schedule, &|| false).unwrap();
    let bound = bound(&topology, collective, &Shares::Equal, &Never).unwrap();
    let provenance = Provenance { version: "0.1.0".to_owned(), algorithm: algorithm.name().to_owned() };
    PlanFile { topology, schedule, form, bound, achieved: verdict.algbw, in_network: verdict.in_network, provenance }
}
