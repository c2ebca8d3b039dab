//! Flows judged by their paths: the same verdict as by their transfer graphs, and the same refusals.

use std::collections::BTreeMap;

use canopy_schedule::{
    CheckError, Collective, CollectiveKind, CompileError, Flow, FlowError, Path, PathFault, RouteFault, RouteIndex,
    RouteInterner, Schedule, Shape, Shares, StructureError, Verdict, check, check_flow, check_flow_until, compile,
    judge_until,
};
use canopy_topology::{LinkIndex, Rank, Topology, TopologyLimits, generate};
use proptest::prelude::*;

use crate::forests::{Random, complete_with_switch, number, shortest_route, star};
use crate::in_network::capable;
use crate::shapes::{any_shape, random_flow};

const KINDS: [CollectiveKind; 3] = [CollectiveKind::Gather, CollectiveKind::Scatter, CollectiveKind::AllToAll];

/// Damages a flow on a topology.
type Damage = fn(&Topology, &mut Schedule, &mut Random);

/// Kinds of damage, by name.
const DAMAGES: [(&str, Damage); 14] = [
    ("drop a path", |_, schedule, random| {
        let paths = &mut flow(schedule).paths;
        paths.remove(random.below(paths.len()));
    }),
    ("drop the last path", |_, schedule, _| {
        let paths = &mut flow(schedule).paths;
        paths.truncate(paths.len() - 1);
    }),
    ("repeat a path", |_, schedule, random| {
        let paths = &mut flow(schedule).paths;
        let path = random.below(paths.len());
        paths.insert(path, paths[path].clone());
    }),
    ("swap two paths", |_, schedule, random| {
        let paths = &mut flow(schedule).paths;
        let (a, b) = (random.below(paths.len()), random.below(paths.len()));
        paths.swap(a, b);
    }),
    ("change a number of chunks", |_, schedule, random| {
        let path = any_path(schedule, random);
        path.chunk_count = if random.below(2) == 0 { path.chunk_count + 1 } else { path.chunk_count - 1 };
    }),
    ("change a source", |topology, schedule, random| {
        any_path(schedule, random).source = Rank::new(number(random.below(topology.rank_count() as usize + 1)));
    }),
    ("change a destination", |topology, schedule, random| {
        any_path(schedule, random).destination = Rank::new(number(random.below(topology.rank_count() as usize + 1)));
    }),
    ("shorten a path", |_, schedule, random| any_path(schedule, random).hops.end -= 1),
    ("lengthen a path", |_, schedule, random| any_path(schedule, random).hops.end += 1),
    ("begin a path later", |_, schedule, random| any_path(schedule, random).hops.start += 1),
    ("change a hop", |_, schedule, random| {
        let flow = flow(schedule);
        let (hop, route) = (random.below(flow.hops.len()), random.below(flow.routes.len() + 1));
        flow.hops[hop] = RouteIndex::new(number(route));
    }),
    ("go there and back", |topology, schedule, random| {
        let (there, back) = (shortest_route(topology, 0, 1), shortest_route(topology, 1, 0));
        let flow = flow(schedule);
        let (there, back) = (flow.routes.push(&there), flow.routes.push(&back));
        let start = number(flow.hops.len());
        let path = random.below(flow.paths.len());
        let path = &mut flow.paths[path];
        flow.hops.extend([there, back]);
        flow.hops.extend_from_within(path.hops.start as usize..path.hops.end as usize);
        path.hops = start..number(flow.hops.len());
    }),
    ("add a route", |topology, schedule, random| {
        let links = (0..1 + random.below(2)).map(|_| LinkIndex::new(number(random.below(topology.links().len() + 1))));
        flow(schedule).routes.push(&links.collect::<Vec<_>>());
    }),
    ("change the promise", |topology, schedule, random| match random.below(3) {
        0 => flow(schedule).chunks_per_share = random.below(4) as u64,
        1 => schedule.shares = Shares::Weighted((0..topology.rank_count()).map(|_| random.below(3) as u64).collect()),
        _ => {
            let kind = CollectiveKind::ALL[random.below(8)];
            let root = kind.has_root().then(|| Rank::new(number(random.below(topology.rank_count() as usize))));
            schedule.collective = Collective::new(kind, root, topology.rank_count()).unwrap();
        }
    }),
];

fn flow(schedule: &mut Schedule) -> &mut Flow {
    match &mut schedule.shape {
        Shape::Flow(flow) => flow,
        other => panic!("not a flow: {}", other.name()),
    }
}

fn any_path<'a>(schedule: &'a mut Schedule, random: &mut Random) -> &'a mut Path {
    let paths = &mut flow(schedule).paths;
    let path = random.below(paths.len());
    &mut paths[path]
}

/// Judges a flow both ways, which must agree: on the verdict, and where one path is at fault, on which and why.
fn judged(topology: &Topology, schedule: &Schedule) -> Result<Verdict, CheckError> {
    let by_paths = check_flow(topology, schedule);
    let by_graph = compile(topology, schedule).map(|graph| check(topology, &graph));
    match (&by_paths, by_graph) {
        // Routes are looked at first here, and last there.
        (Err(CheckError::Structure(StructureError::Route { .. })), graph) => assert!(!matches!(graph, Ok(Ok(_)))),
        (Err(CheckError::Flow(found)), Err(CompileError::Path { path, source })) => {
            assert_eq!(*found, FlowError::Path { path, source });
        }
        (
            Err(CheckError::Flow(found)),
            Err(CompileError::TooFewPaths { source_rank, destination, found: chunks, expected }),
        ) => assert_eq!(*found, FlowError::TooFewPaths { source_rank, destination, found: chunks, expected }),
        (Err(CheckError::Flow(FlowError::Unsupported { .. })), Err(CompileError::Unsupported { .. })) => {}
        (Err(CheckError::Structure(StructureError::Shares(found))), Err(CompileError::Shares(expected))) => {
            assert_eq!(*found, expected);
        }
        (found, Ok(expected)) => assert_eq!(*found, expected, "{schedule:#?}"),
        (found, expected) => panic!("{found:?} by paths, {expected:?} by graph: {schedule:#?}"),
    }
    by_paths
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Sound flows get the very verdict that their transfer graphs get, switches that multicast included.
    #[test]
    fn verdicts_are_those_of_transfer_graphs(ranks in 2..7_u32, kind in prop::sample::select(&KINDS[..]), seed: u64) {
        let plain = complete_with_switch(ranks);
        let schedule = random_flow(&plain, kind, &mut Random(seed));
        let verdict = judged(&plain, &schedule);
        prop_assert!(verdict.is_ok());
        prop_assert!(judged(&capable(&plain, &["s0"]), &schedule).unwrap().in_network.is_some());
        prop_assert_eq!(judge_until(&plain, &schedule, &|| false).unwrap(), verdict.unwrap());
    }
}

/// Every kind of damage is refused by both or by neither, and most of it is.
#[test]
fn damage_is_refused_as_it_is_in_transfer_graphs() {
    let mut random = Random(14);
    let mut refused: BTreeMap<&str, u32> = BTreeMap::new();
    let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
    for round in 0..60 {
        let topology = complete_with_switch(2 + round % 5);
        for kind in KINDS {
            let schedule = random_flow(&topology, kind, &mut random);
            for (name, damage) in DAMAGES {
                let mut mutant = schedule.clone();
                damage(&topology, &mut mutant, &mut random);
                if let Err(error) = judged(&topology, &mutant) {
                    *refused.entry(name).or_default() += 1;
                    let word = format!("{error:?}");
                    let words: Vec<&str> = word.split(|c: char| !c.is_alphanumeric()).take(9).collect();
                    *reasons.entry(format!("{}: {}", error.check(), words.join(" "))).or_default() += 1;
                }
            }
        }
    }
    assert!(DAMAGES.iter().all(|(name, _)| refused.get(name).is_some_and(|&count| count >= 10)), "{refused:#?}");
    assert!(reasons.len() >= 10, "{reasons:#?}");
}

/// An all-to-all on a ring in which everything goes one way round.
fn around(topology: &Topology, chunks_per_share: u64) -> Schedule {
    let ranks = topology.rank_count();
    let mut routes = RouteInterner::default();
    let next: Vec<RouteIndex> =
        (0..ranks).map(|rank| routes.intern(&shortest_route(topology, rank, (rank + 1) % ranks))).collect();
    let (mut hops, mut paths) = (Vec::new(), Vec::new());
    for (source, distance) in (0..ranks).flat_map(|source| (1..ranks).map(move |distance| (source, distance))) {
        let start = number(hops.len());
        hops.extend((0..distance).map(|hop| next[((source + hop) % ranks) as usize]));
        let destination = Rank::new((source + distance) % ranks);
        let hops = start..number(hops.len());
        paths.push(Path { source: Rank::new(source), destination, chunk_count: chunks_per_share, hops });
    }
    paths.sort_by_key(|path| (path.source, path.destination));
    let collective = Collective::new(CollectiveKind::AllToAll, None, ranks).unwrap();
    let flow = Flow { chunks_per_share, routes: routes.finish(), hops, paths };
    Schedule { collective, algorithm: "by-hand".to_owned(), shares: Shares::Equal, shape: Shape::Flow(flow) }
}

/// More paths than one thread follows at a time: 18,906, of 1.3 million hops. The first fault is named, wherever it
/// lies and how many others there are.
#[test]
fn the_first_fault_is_named_among_many_paths() {
    let topology = generate("ring:138", &TopologyLimits::STANDARD).unwrap();
    let mut schedule = around(&topology, 3);
    let verdict = check_flow(&topology, &schedule).unwrap();
    assert_eq!((verdict.depth_max, verdict.batch_count, verdict.tree_count), (137, 138 * 137, 3 * 138 * 137));
    // Each link carries every distance once from each rank that many hops back: 3·(1 + … + 137) chunks of 3·138.
    let capacity = topology.links()[0].capacity.bytes_per_sec();
    assert_eq!(verdict.algbw, canopy_topology::Rate::new(138 * capacity, 137_u64 * 138 / 2).unwrap());
    for path in [18_905, 18_000, 16_400, 16_384, 16_383, 9_000, 1, 0] {
        let paths = &mut flow(&mut schedule).paths;
        paths[path].chunk_count -= 1;
        let (source_rank, destination) = (paths[path].source.number(), paths[path].destination.number());
        let fault = FlowError::TooFewPaths { source_rank, destination, found: 2, expected: 3 };
        assert_eq!(check_flow(&topology, &schedule), Err(fault.into()));
    }
    flow(&mut schedule).paths.clear();
    let fault = FlowError::TooFewPaths { source_rank: 0, destination: 1, found: 0, expected: 3 };
    assert_eq!(check_flow(&topology, &schedule), Err(fault.into()));
}

#[test]
fn what_is_no_flow_or_no_route_is_refused_by_name() {
    let topology = star(3);
    let sound = random_flow(&complete_with_switch(3), CollectiveKind::AllToAll, &mut Random(1));
    // Its links are not those of the star.
    let error = check_flow(&topology, &sound).unwrap_err();
    assert!(matches!(error, CheckError::Structure(StructureError::Route { .. })), "{error:?}");
    assert_eq!(error.check(), "structure");
    let topology = complete_with_switch(3);
    let forest = any_shape(&topology, CollectiveKind::Allgather, &mut Random(1));
    let shape = forest.shape.name();
    assert_ne!(shape, "flow");
    assert_eq!(check_flow(&topology, &forest), Err(FlowError::NotAFlow { shape }.into()));
    let mut empty = sound.clone();
    let route = flow(&mut empty).routes.push(&[]).index();
    let source = RouteFault::Empty;
    assert_eq!(check_flow(&topology, &empty), Err(StructureError::Route { route, source }.into()));
    let mut extra = sound;
    let paths = &mut flow(&mut extra).paths;
    paths.push(Path { source: Rank::new(u32::MAX), destination: Rank::new(u32::MAX), ..paths[0].clone() });
    let source = PathFault::Unexpected { source_rank: u32::MAX, destination: u32::MAX };
    let fault = FlowError::Path { path: flow(&mut extra).paths.len() - 1, source };
    assert_eq!(fault.check(), "meaning");
    assert_eq!(check_flow(&topology, &extra), Err(fault.into()));
    assert_eq!(check_flow_until(&topology, &extra, &|| true), Err(CheckError::Stopped));
}
