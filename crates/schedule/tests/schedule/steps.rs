//! Flows and stepped schedules: what waits for what, rates by hand, and refusals by name.

use canopy_schedule::{
    Action, Carrier, CheckError, Collective, CollectiveKind, CompileError, Flow, LoadError, MeaningError, Pace, Path,
    PathFault, RouteInterner, Schedule, Send, SendFault, Shape, Shares, SharesError, StepCost, Steps, StructureError,
    TransferFault, TransferGraph, Verdict, check, check_until, compile, compile_until,
};
use canopy_topology::{Rank, Rate, Ratio, Topology};
use proptest::prelude::*;

use crate::forests::{CAPACITY, Random, complete_with_switch, number, one_way_ring, path_3, shortest_route, star};
use crate::reference::{computes_the_promise, judge};
use crate::shapes::{any_shape, random_steps};

/// A send as it is written in these tests: step, action, from, to, chunks.
type Sent = (u32, Action, u32, u32, std::ops::Range<u64>);

fn collective(topology: &Topology, kind: CollectiveKind) -> Collective {
    Collective::new(kind, None, topology.rank_count()).unwrap()
}

fn steps(topology: &Topology, kind: CollectiveKind, chunks_per_share: u64, sent: &[Sent]) -> Schedule {
    let mut routes = RouteInterner::default();
    let (mut carriers, mut sends) = (Vec::new(), Vec::new());
    for &(step, action, from, to, ref chunks) in sent {
        let route = routes.intern(&shortest_route(topology, from, to));
        let start = number(carriers.len());
        carriers.push(Carrier { route, chunk_count: chunks.end - chunks.start });
        let (from, to) = (Rank::new(from), Rank::new(to));
        sends.push(Send { step, action, from, to, chunks: chunks.clone(), carriers: start..start + 1 });
    }
    let steps = Steps { chunks_per_share, pace: Pace::Barriers, routes: routes.finish(), carriers, sends };
    let collective = collective(topology, kind);
    Schedule { collective, algorithm: "by-hand".to_owned(), shares: Shares::Equal, shape: Shape::Steps(steps) }
}

/// Paths as lists of ranks, with numbers of chunks.
fn flow(topology: &Topology, kind: CollectiveKind, chunks_per_share: u64, paths: &[(&[u32], u64)]) -> Schedule {
    let mut routes = RouteInterner::default();
    let (mut hops, mut list) = (Vec::new(), Vec::new());
    for &(ranks, chunk_count) in paths {
        let start = number(hops.len());
        hops.extend(ranks.windows(2).map(|ends| routes.intern(&shortest_route(topology, ends[0], ends[1]))));
        let (source, destination) = (Rank::new(ranks[0]), Rank::new(ranks[ranks.len() - 1]));
        list.push(Path { source, destination, chunk_count, hops: start..number(hops.len()) });
    }
    let flow = Flow { chunks_per_share, routes: routes.finish(), hops, paths: list };
    let collective = collective(topology, kind);
    Schedule { collective, algorithm: "by-hand".to_owned(), shares: Shares::Equal, shape: Shape::Flow(flow) }
}

#[track_caller]
fn accepted(topology: &Topology, schedule: &Schedule) -> (TransferGraph, Verdict) {
    let graph = compile(topology, schedule).unwrap();
    assert_eq!(judge(topology, &graph), Ok(()));
    let verdict = check(topology, &graph).unwrap();
    (graph, verdict)
}

fn rate(numerator: u64, denominator: u64) -> Rate {
    Rate::new(numerator * CAPACITY, denominator).unwrap()
}

fn waits(graph: &TransferGraph, transfer: usize) -> &[u32] {
    graph.dependencies_of(&graph.transfers[transfer])
}

/// The one-way ring of three: every step passes on what came in the one before.
fn ring_allgather() -> (Topology, Vec<Sent>) {
    let first = [(0, Action::Copy, 0, 1, 0..1), (0, Action::Copy, 1, 2, 1..2), (0, Action::Copy, 2, 0, 2..3)];
    let second = [(1, Action::Copy, 0, 1, 2..3), (1, Action::Copy, 1, 2, 0..1), (1, Action::Copy, 2, 0, 1..2)];
    (one_way_ring(3), first.into_iter().chain(second).collect())
}

#[test]
fn ring_allgather_waits_for_what_it_passes_on() {
    let (topology, sent) = ring_allgather();
    let (graph, verdict) = accepted(&topology, &steps(&topology, CollectiveKind::Allgather, 1, &sent));
    assert_eq!((waits(&graph, 0), waits(&graph, 3), waits(&graph, 4)), (&[][..], &[2][..], &[0][..]));
    assert_eq!((verdict.algbw, verdict.chain_max, verdict.depth_max), (rate(3, 2), 2, 1));
}

/// Reduce-scatter then allgather around the one-way ring: no barrier between the halves.
#[test]
fn ring_allreduce_orders_sums_before_copies() {
    let topology = one_way_ring(2);
    let sent = [
        (0, Action::Reduce, 0, 1, 1..2),
        (0, Action::Reduce, 1, 0, 0..1),
        (1, Action::Copy, 0, 1, 0..1),
        (1, Action::Copy, 1, 0, 1..2),
    ];
    let (graph, verdict) = accepted(&topology, &steps(&topology, CollectiveKind::Allreduce, 1, &sent));
    // A copy waits for the sum it carries and for the receiver to have sent its own: both are the same transfer here.
    assert_eq!((waits(&graph, 2), waits(&graph, 3)), (&[1][..], &[0][..]));
    assert_eq!((verdict.algbw, verdict.chain_max), (rate(1, 1), 2));
}

/// In one step a place is read before it is written, whatever the order of the list.
#[test]
fn a_step_sends_what_was_there_before_it() {
    let topology = path_3();
    let sent = [(0, Action::Reduce, 2, 1, 0..1), (0, Action::Reduce, 1, 0, 0..1), (1, Action::Reduce, 1, 0, 0..1)];
    let graph = compile(&topology, &steps(&topology, CollectiveKind::Allreduce, 1, &sent)).unwrap();
    let order: Vec<_> = graph.transfers.iter().map(|transfer| (transfer.from.number(), transfer.to.number())).collect();
    assert_eq!(order, [(1, 0), (2, 1), (1, 0)]);
    assert_eq!((waits(&graph, 1), waits(&graph, 2)), (&[0][..], &[1][..]));
    // So rank 1's contribution comes twice: once by itself, once in the sum.
    let twice = MeaningError::ReducedTwice { transfer: 2, from: 1, to: 0, chunk: 0, contribution: 1 };
    assert_eq!(check(&topology, &graph), Err(twice.into()));
}

/// What every rank both sends and overwrites in one step cannot be done in place.
#[test]
fn exchanges_in_place_are_refused() {
    let topology = one_way_ring(2);
    let sent = [(3, Action::Reduce, 0, 1, 0..2), (3, Action::Reduce, 1, 0, 1..2)];
    let schedule = steps(&topology, CollectiveKind::Allreduce, 2, &sent);
    let source = SendFault::Circular { step: 3, rank: 1 };
    assert_eq!(compile(&topology, &schedule), Err(CompileError::Send { send: 0, source }));
}

/// Ranges that overlap in part wait for the parts only.
#[test]
fn waits_are_exact_by_chunk() {
    let topology = path_3();
    let sent = [
        (0, Action::Copy, 0, 1, 0..2),
        (0, Action::Copy, 0, 1, 2..4),
        (1, Action::Copy, 1, 2, 0..1),
        (1, Action::Copy, 1, 2, 1..3),
        (1, Action::Copy, 1, 2, 3..4),
    ];
    let (graph, verdict) = accepted(&topology, &steps(&topology, CollectiveKind::Broadcast, 4, &sent));
    assert_eq!((waits(&graph, 2), waits(&graph, 3), waits(&graph, 4)), (&[0][..], &[0, 1][..], &[1][..]));
    // Each step takes as long as the message on one link.
    assert_eq!(verdict.algbw, rate(1, 2));
}

/// Steps are counted and their busiest links added up: on the ring of three each takes a third of all data.
#[test]
fn steps_cost_what_their_busiest_links_take() {
    let (topology, sent) = ring_allgather();
    let (graph, verdict) = accepted(&topology, &steps(&topology, CollectiveKind::Allgather, 1, &sent));
    let bandwidth = Ratio::new(2_u8, 3_u8).unwrap();
    assert_eq!(verdict.steps, Some(StepCost { count: 2, bandwidth, algbw: rate(3, 2) }));
    assert_eq!(graph.steps, [0, 0, 0, 1, 1, 1]);
    let without = TransferGraph { steps: Vec::new(), ..graph.clone() };
    assert_eq!(check(&topology, &without).unwrap(), Verdict { steps: None, ..verdict });

    // One that is late keeps the others waiting: shares of 1/3 in steps 0, 2 and 3.
    let mut late = sent;
    (late[2].0, late[4].0, late[5].0) = (1, 2, 2);
    late[3].0 = 2;
    let (_, verdict) = accepted(&topology, &steps(&topology, CollectiveKind::Allgather, 1, &late));
    let cost = verdict.steps.unwrap();
    assert_eq!((cost.count, cost.bandwidth, cost.algbw), (3, Ratio::new(1_u8, 1_u8).unwrap(), rate(1, 1)));
}

#[test]
fn steps_that_are_none_are_refused() {
    let (topology, sent) = ring_allgather();
    let (graph, _) = accepted(&topology, &steps(&topology, CollectiveKind::Allgather, 1, &sent));
    let with = |steps: &[u32]| {
        let graph = TransferGraph { steps: steps.to_vec(), ..graph.clone() };
        check(&topology, &graph).unwrap_err().to_string()
    };
    assert_eq!(with(&[0; 5]), "the graph has 5 steps for 6 transfers");
    let faults = |steps: &[u32]| match check(&topology, &TransferGraph { steps: steps.to_vec(), ..graph.clone() }) {
        Err(CheckError::Structure(StructureError::Transfer { transfer, source, .. })) => (transfer, source),
        other => panic!("{other:?}"),
    };
    assert_eq!(faults(&[0, 0, 1, 0, 1, 1]), (3, TransferFault::StepOrder { step: 0, before: 1 }));
    assert_eq!(faults(&[4; 6]), (3, TransferFault::SameStep { dependency: 2, step: 4 }));
}

/// All-to-all on a path of three: blocks 0 → 2 and 2 → 0 pass rank 1, so each link carries two blocks of a buffer of
/// three.
#[test]
fn all_to_all_counts_one_rank_s_buffer() {
    let topology = path_3();
    let paths: [(&[u32], u64); 7] =
        [(&[0, 1], 2), (&[0, 1, 2], 1), (&[0, 1, 2], 1), (&[1, 0], 2), (&[1, 2], 2), (&[2, 1, 0], 2), (&[2, 1], 2)];
    let (graph, verdict) = accepted(&topology, &flow(&topology, CollectiveKind::AllToAll, 2, &paths));
    assert_eq!(graph.chunk_count(), Some(18));
    assert_eq!((graph.layout().unwrap().chunks_of(Rank::new(1)), graph.batches[3].chunk_first), (6..12, 6));
    assert_eq!((verdict.algbw, verdict.depth_max), (rate(3, 2), 2));
    assert_eq!((waits(&graph, 0), waits(&graph, 2)), (&[][..], &[1][..]));
}

#[test]
fn personal_flows_have_paths_of_one_root() {
    let topology = star(3);
    let gather: [(&[u32], u64); 2] = [(&[1, 2, 0], 4), (&[2, 0], 4)];
    let (_, verdict) = accepted(&topology, &flow(&topology, CollectiveKind::Gather, 4, &gather));
    assert_eq!(verdict.algbw, rate(3, 2));
    let scatter: [(&[u32], u64); 2] = [(&[0, 1], 4), (&[0, 2], 4)];
    let (_, verdict) = accepted(&topology, &flow(&topology, CollectiveKind::Scatter, 4, &scatter));
    assert_eq!(verdict.algbw, rate(3, 2));
}

/// Rank 1 has three times the share of rank 0, and rank 2 none; the vector has four units of two chunks.
#[test]
fn weights_are_counted_in_rates() {
    let topology = star(3);
    let gather: [(&[u32], u64); 1] = [(&[1, 0], 6)];
    let mut schedule = flow(&topology, CollectiveKind::Gather, 2, &gather);
    schedule.shares = Shares::Weighted(vec![1, 3, 0]);
    let (graph, verdict) = accepted(&topology, &schedule);
    assert_eq!((graph.batches[0].chunk_first, graph.layout().unwrap().chunks_of(Rank::new(2))), (2, 8..8));
    assert_eq!(verdict.algbw, rate(4, 3));
}

#[test]
fn weights_must_fit() {
    let topology = star(3);
    let judge = |kind, weights: &[u64]| {
        let mut schedule = flow(&topology, kind, 2, &[]);
        schedule.shares = Shares::Weighted(weights.to_vec());
        compile(&topology, &schedule).map(|graph| check(&topology, &graph))
    };
    let all_to_all = CollectiveKind::AllToAll;
    let refused = |error: SharesError| Err(CompileError::Shares(error));
    assert_eq!(judge(all_to_all, &[1, 1, 1]), refused(SharesError::NotApplicable { collective: all_to_all }));
    assert_eq!(judge(CollectiveKind::Gather, &[1, 1]), refused(SharesError::Count { found: 2, rank_count: 3 }));
    assert_eq!(judge(CollectiveKind::Gather, &[0, 0, 0]), refused(SharesError::Nothing));
    let too_many = SharesError::TooManyChunks { chunks_per_share: 2, rank_count: 3 };
    assert_eq!(judge(CollectiveKind::Gather, &[u64::MAX / 2, 1, 0]), refused(too_many));
    // Only the root has a share, and keeps it.
    assert_eq!(judge(CollectiveKind::Gather, &[1, 0, 0]), Ok(Err(CheckError::Load(LoadError::NothingMoves))));
}

#[test]
fn malformed_steps_have_no_graph() {
    let (topology, sent) = ring_allgather();
    let refused = |change: &dyn Fn(&mut Steps), send, source| {
        let mut schedule = steps(&topology, CollectiveKind::Allgather, 1, &sent);
        let Shape::Steps(steps) = &mut schedule.shape else { panic!("not steps") };
        change(steps);
        assert_eq!(compile(&topology, &schedule), Err(CompileError::Send { send, source }));
    };
    refused(&|steps| steps.sends[5].step = 0, 5, SendFault::StepOrder { found: 0, before: 1 });
    refused(&|steps| steps.sends[1].to = Rank::new(3), 1, SendFault::UnknownRank { rank: 3, rank_count: 3 });
    refused(&|steps| steps.sends[1].to = Rank::new(1), 1, SendFault::ToItself { rank: 1 });
    refused(&|steps| steps.sends[1].chunks = 1..1, 1, SendFault::ChunkRange { start: 1, end: 1, total: 3 });
    refused(&|steps| steps.sends[1].chunks = 2..4, 1, SendFault::ChunkRange { start: 2, end: 4, total: 3 });
    refused(&|steps| steps.sends[1].chunks = 1..3, 1, SendFault::AcrossShares { start: 1, end: 3, limit: 2 });
    refused(&|steps| steps.sends[1].carriers = 1..9, 1, SendFault::NoCarriers);
    refused(&|steps| steps.sends[1].carriers = 1..1, 1, SendFault::NoCarriers);
    let schedule = steps(&topology, CollectiveKind::AllToAll, 1, &[(0, Action::Copy, 0, 1, 1..3)]);
    let source = SendFault::AcrossShares { start: 1, end: 3, limit: 2 };
    assert_eq!(compile(&topology, &schedule), Err(CompileError::Send { send: 0, source }));
}

#[test]
fn malformed_flows_have_no_graph() {
    let topology = path_3();
    let paths: [(&[u32], u64); 3] = [(&[0, 1], 1), (&[0, 1, 2], 1), (&[0, 1], 1)];
    let refused = |paths: &[(&[u32], u64)], path, source| {
        let schedule = flow(&topology, CollectiveKind::AllToAll, 1, paths);
        assert_eq!(compile(&topology, &schedule), Err(CompileError::Path { path, source }));
    };
    refused(&[(&[0, 1], 2)], 0, PathFault::TooManyChunks { source_rank: 0, destination: 1, limit: 1 });
    refused(&[(&[0, 1], 0)], 0, PathFault::NoChunks);
    refused(&[(&[0, 1, 0, 1], 1)], 0, PathFault::Loop { hop: 1, rank: 0 });
    let few = CompileError::TooFewPaths { source_rank: 1, destination: 0, found: 0, expected: 1 };
    assert_eq!(compile(&topology, &flow(&topology, CollectiveKind::AllToAll, 1, &paths[..2])), Err(few.clone()));
    // A path out of order leaves the pair whose turn it is without one.
    assert_eq!(compile(&topology, &flow(&topology, CollectiveKind::AllToAll, 1, &paths)), Err(few));
    let whole: [(&[u32], u64); 7] =
        [(&[0, 1], 1), (&[0, 1, 2], 1), (&[1, 0], 1), (&[1, 2], 1), (&[2, 1, 0], 1), (&[2, 1], 1), (&[2, 1], 1)];
    refused(&whole, 6, PathFault::TooManyChunks { source_rank: 2, destination: 1, limit: 1 });
    let change = |change: &dyn Fn(&mut Flow), path, source| {
        let mut schedule = flow(&topology, CollectiveKind::AllToAll, 1, &whole[..6]);
        let Shape::Flow(flow) = &mut schedule.shape else { panic!("not a flow") };
        change(flow);
        assert_eq!(compile(&topology, &schedule), Err(CompileError::Path { path, source }));
    };
    change(&|flow| flow.paths[1].hops = 1..1, 1, PathFault::NoHops);
    change(&|flow| flow.paths[1].hops = 1..99, 1, PathFault::NoHops);
    change(&|flow| flow.paths[1].hops = 2..3, 1, PathFault::Gap { hop: 0, found: 1, expected: 0 });
    change(&|flow| flow.paths[1].hops = 1..2, 1, PathFault::WrongEnd { found: 1, expected: 2 });
    change(&|flow| flow.hops[1] = canopy_schedule::RouteIndex::new(77), 1, PathFault::Route { hop: 0, route: 77 });
    change(
        &|flow| {
            let last = flow.paths[5].clone();
            flow.paths.push(Path { source: Rank::new(7), ..last });
        },
        6,
        PathFault::Unexpected { source_rank: 7, destination: 1 },
    );
    let error = compile(&topology, &flow(&topology, CollectiveKind::Allgather, 1, &[])).unwrap_err();
    assert_eq!(error, CompileError::Unsupported { collective: CollectiveKind::Allgather, shape: "flow" });
}

/// A graph of many ranks that moves hardly anything is refused before its 8·10⁷ blocks are listed.
#[test]
fn blocks_left_out_are_found_at_once() {
    let topology = star(9_000);
    let sent = [(0, Action::Copy, 0, 1, 1..2), (0, Action::Copy, 0, 3, 3..4)];
    let graph = compile(&topology, &steps(&topology, CollectiveKind::AllToAll, 1, &sent)).unwrap();
    let missing = MeaningError::Missing { rank: 2, chunk: 2, contribution: 0 };
    assert_eq!(check(&topology, &graph), Err(missing.into()));
}

#[test]
fn work_ends_when_asked() {
    let topology = complete_with_switch(4);
    for kind in CollectiveKind::ALL {
        let schedule = any_shape(&topology, kind, &mut Random(3));
        assert_eq!(compile_until(&topology, &schedule, &|| true), Err(CompileError::Stopped));
        let graph = compile(&topology, &schedule).unwrap();
        assert_eq!(check_until(&topology, &graph, &|| true), Err(CheckError::Stopped));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the shape, sound schedules are accepted by both judges, and compute what is promised in any order.
    #[test]
    fn sound_schedules_are_accepted(ranks in 2..7_u32, seed: u64) {
        let topology = complete_with_switch(ranks);
        let mut random = Random(seed);
        for kind in CollectiveKind::ALL {
            let schedule = any_shape(&topology, kind, &mut random);
            let graph = compile(&topology, &schedule).unwrap();
            prop_assert_eq!(judge(&topology, &graph), Ok(()));
            prop_assert!(check(&topology, &graph).is_ok());
            prop_assert!(computes_the_promise(&graph, &mut random));
        }
    }

    /// Every wait of a stepped schedule is needed: without any one of a transfer's, some order is open.
    #[test]
    fn steps_wait_for_nothing_in_vain(ranks in 2..5_u32, seed: u64) {
        let topology = complete_with_switch(ranks);
        let mut random = Random(seed);
        let kind = CollectiveKind::ALL[random.below(8)];
        let graph = compile(&topology, &random_steps(&topology, kind, &mut random)).unwrap();
        for transfer in 0..graph.transfers.len() {
            let dependencies = graph.dependencies_of(&graph.transfers[transfer]).to_vec();
            for &first in &dependencies {
                let batch = |of: u32| graph.batches.iter().find(|batch| batch.transfers.contains(&of)).unwrap();
                let (a, b) = (batch(first), batch(number(transfer)));
                let overlap = a.chunk_first < b.chunk_first + b.chunk_count && b.chunk_first < a.chunk_first + a.chunk_count;
                let (from, to) = (&graph.transfers[first as usize], &graph.transfers[transfer]);
                let meet = from.to == to.from || from.from == to.to || from.to == to.to;
                prop_assert!(overlap && meet, "{first} before {transfer}");
            }
        }
    }
}
