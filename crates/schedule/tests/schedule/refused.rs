//! Refusals by name: malformed forests by the compiler, faulty graphs by the judge.

use canopy_schedule::{
    Action, Carrier, CheckError, CollectiveKind, CompileError, Forest, HopFault, MeaningError, RouteFault, Schedule,
    Shape, SharesError, StructureError, TransferFault, TransferGraph, Tree, TreePlace, check, compile,
};
use canopy_topology::{LinkIndex, Rank, Topology};

use crate::forests::{Builder, path_3, star};

fn path_allgather(topology: &Topology) -> Schedule {
    let builder = Builder::new(topology, CollectiveKind::Allgather, None, 2).phase(Action::Copy);
    let builder = builder.tree(0, 1, &[(0, 1), (1, 2)]).tree(0, 1, &[(0, 1), (1, 2)]);
    builder.tree(1, 2, &[(1, 0), (1, 2)]).tree(2, 2, &[(2, 1), (1, 0)]).schedule()
}

fn path_allreduce(topology: &Topology) -> Schedule {
    let builder = Builder::new(topology, CollectiveKind::Allreduce, None, 1).phase(Action::Reduce);
    let builder = builder.tree(0, 1, &[(2, 1), (1, 0)]).tree(1, 1, &[(0, 1), (2, 1)]).tree(2, 1, &[(0, 1), (1, 2)]);
    let builder = builder.phase(Action::Copy);
    let builder = builder.tree(0, 1, &[(0, 1), (1, 2)]).tree(1, 1, &[(1, 0), (1, 2)]).tree(2, 1, &[(2, 1), (1, 0)]);
    builder.schedule()
}

fn forest(schedule: &mut Schedule) -> &mut Forest {
    let Shape::Forest(forest) = &mut schedule.shape else { panic!("not a forest") };
    forest
}

#[track_caller]
fn check_forest(change: impl Fn(&mut Forest), expected: CompileError) {
    let topology = path_3();
    let mut schedule = path_allgather(&topology);
    change(forest(&mut schedule));
    assert_eq!(compile(&topology, &schedule), Err(expected));
}

fn place(tree: usize) -> TreePlace {
    TreePlace { phase: 0, tree }
}

#[test]
fn malformed_forests_have_no_graph() {
    check_forest(|forest| forest.chunks_per_share = 0, CompileError::Shares(SharesError::NoChunks));
    let chunks_per_share = u64::MAX / 2;
    check_forest(
        |forest| forest.chunks_per_share = chunks_per_share,
        CompileError::Shares(SharesError::TooManyChunks { chunks_per_share, rank_count: 3 }),
    );
    check_forest(
        |forest| forest.phases[0].trees[3].multiplicity = 1,
        CompileError::TooFewTrees { phase: 0, share: 2, found: 1, expected: 2 },
    );
    check_forest(
        |forest| forest.phases[0].trees[3].multiplicity = 3,
        CompileError::TooManyTrees { place: place(3), share: 2, limit: 2 },
    );
    check_forest(
        |forest| forest.phases[0].trees[1].multiplicity = u64::MAX,
        CompileError::TooManyTrees { place: place(1), share: 0, limit: 2 },
    );
    check_forest(|forest| forest.phases[0].trees[1].multiplicity = 0, CompileError::NoMultiplicity { place: place(1) });
    check_forest(
        |forest| forest.phases[0].trees.retain(|tree| tree.root != Rank::new(1)),
        CompileError::TooFewTrees { phase: 0, share: 1, found: 0, expected: 2 },
    );
    check_forest(
        |forest| forest.phases[0].trees[3].root = Rank::new(3),
        CompileError::TooFewTrees { phase: 0, share: 2, found: 0, expected: 2 },
    );
    let extra = Tree { root: Rank::new(1), multiplicity: 1, hops: 0..2 };
    check_forest(
        |forest| forest.phases[0].trees.push(extra.clone()),
        CompileError::UnexpectedRoot { place: place(4), root: 1 },
    );
    let phases = |found| CompileError::Phases { collective: CollectiveKind::Allgather, found };
    check_forest(|forest| forest.phases.clear(), phases(0));
    check_forest(|forest| forest.phases.push(forest.phases[0].clone()), phases(2));
    check_forest(|forest| forest.phases[0].action = Action::Reduce, phases(1));
}

#[test]
fn trees_and_hops_must_exist_and_fit_together() {
    let hop = |tree, hop, source| CompileError::Hop { place: place(tree), hop, source };
    let backwards = std::ops::Range { start: 2, end: 1 };
    for range in [0..0, 7..9, 100..200, backwards] {
        check_forest(|forest| forest.phases[0].trees[0].hops = range.clone(), CompileError::NoHops { place: place(0) });
    }
    check_forest(|forest| forest.hops[1].carriers = 8..9, CompileError::NoCarriers { place: place(0), hop: 1 });
    check_forest(
        |forest| forest.phases[0].trees[0].hops = 0..1,
        CompileError::NotSpanning { place: place(0), found: 1, expected: 2 },
    );
    // Trees may share hops, so a small forest can stand for more transfers than fit into memory.
    let share_hops = |forest: &mut Forest| {
        forest.hops.resize(1 << 20, forest.hops[0].clone());
        forest.phases[0].trees = vec![Tree { root: Rank::new(0), multiplicity: 1, hops: 0..1 << 20 }; 129];
    };
    check_forest(share_hops, CompileError::TooManyHops { found: 129 << 20, limit: 128 << 20 });
    check_forest(
        |forest| forest.hops[1].to = Rank::new(3),
        hop(0, 1, HopFault::UnknownRank { rank: 3, rank_count: 3 }),
    );
    check_forest(|forest| forest.hops[1].to = Rank::new(1), hop(0, 1, HopFault::ToItself { rank: 1 }));
    check_forest(|forest| forest.hops.swap(0, 1), hop(0, 0, HopFault::SenderNotReached { rank: 1 }));
    check_forest(|forest| forest.hops[1].to = Rank::new(0), hop(0, 1, HopFault::ReachedTwice { rank: 0 }));
}

#[test]
fn reduce_trees_must_flow_to_their_root() {
    let topology = path_3();
    for (change, source) in [
        ((2, 1), HopFault::SendsTwice { rank: 2 }),
        ((0, 1), HopFault::SendsTwice { rank: 0 }),
        ((1, 2), HopFault::ReceivesLate { rank: 2 }),
    ] {
        let mut schedule = path_allreduce(&topology);
        let hop = &mut forest(&mut schedule).hops[1];
        (hop.from, hop.to) = (Rank::new(change.0), Rank::new(change.1));
        assert_eq!(compile(&topology, &schedule), Err(CompileError::Hop { place: place(0), hop: 1, source }));
    }
}

#[test]
fn rooted_collectives_have_the_trees_of_their_root() {
    let topology = path_3();
    let broadcast = Builder::new(&topology, CollectiveKind::Broadcast, Some(1), 1).phase(Action::Copy);
    let schedule = broadcast.tree(0, 1, &[(0, 1), (1, 2)]).schedule();
    let expected = CompileError::TooFewTrees { phase: 0, share: 1, found: 0, expected: 1 };
    assert_eq!(compile(&topology, &schedule), Err(expected));
    let gather = Builder::new(&topology, CollectiveKind::Gather, Some(0), 1).phase(Action::Copy);
    let schedule = gather.tree(0, 1, &[(0, 1)]).tree(1, 1, &[(1, 0)]).tree(2, 1, &[(2, 1), (1, 0)]).schedule();
    assert!(matches!(compile(&topology, &schedule), Err(CompileError::TooFewTrees { share: 1, found: 0, .. })));
    let exchange = Builder::new(&topology, CollectiveKind::AllToAll, None, 1).phase(Action::Copy).schedule();
    let expected = CompileError::Unsupported { collective: CollectiveKind::AllToAll, shape: "forest" };
    assert_eq!(compile(&topology, &exchange), Err(expected));
    let ranks_2 = crate::forests::topology(2, 0, &[("r0", "r1"), ("r1", "r0")]);
    let broadcast = Builder::new(&topology, CollectiveKind::Broadcast, Some(2), 1).phase(Action::Copy);
    let expected = CompileError::UnknownRoot { root: 2, rank_count: 2 };
    assert_eq!(compile(&ranks_2, &broadcast.schedule()), Err(expected));
}

#[track_caller]
fn check_graph(
    schedule: fn(&Topology) -> Schedule,
    change: impl Fn(&mut TransferGraph),
    expected: impl Into<CheckError>,
) {
    let topology = path_3();
    let mut graph = compile(&topology, &schedule(&topology)).unwrap();
    assert!(check(&topology, &graph).is_ok());
    change(&mut graph);
    assert_eq!(check(&topology, &graph), Err(expected.into()));
}

#[test]
fn structure_faults_are_named() {
    let check = |change: fn(&mut TransferGraph), expected| check_graph(path_allgather, change, expected);
    check(|graph| graph.rank_count = 4, StructureError::RankCount { found: 4, expected: 3 });
    check(|graph| graph.chunks_per_share = 0, StructureError::Shares(SharesError::NoChunks));
    let chunks_per_share = u64::MAX;
    check(
        |graph| graph.chunks_per_share = u64::MAX,
        StructureError::Shares(SharesError::TooManyChunks { chunks_per_share, rank_count: 3 }),
    );
    check(
        |graph| graph.batches[1].transfers = 3..4,
        StructureError::BatchTransfers { batch: 1, start: 3, end: 4, expected: 2 },
    );
    check(
        |graph| graph.batches[3].transfers.end = 9,
        StructureError::BatchTransfers { batch: 3, start: 6, end: 9, expected: 6 },
    );
    check(|graph| graph.batches.truncate(3), StructureError::NoBatch { transfer: 6 });
    check(|graph| graph.batches[2].root = Rank::new(3), StructureError::BatchRoot { batch: 2, root: 3 });
    for (first, count) in [(0, 0), (5, 2), (u64::MAX, 1), (1, u64::MAX)] {
        let change = |graph: &mut TransferGraph| {
            (graph.batches[2].chunk_first, graph.batches[2].chunk_count) = (first, count);
        };
        check_graph(path_allgather, change, StructureError::ChunkRange { batch: 2, first, count, total: 6 });
    }
}

/// Links of the path: 0 is r0 → r1, 1 is r1 → r0, 2 is r1 → r2, 3 is r2 → r1. Route 0 is link 0, route 1 link 2.
#[test]
fn transfer_faults_are_named() {
    let check = |change: fn(&mut TransferGraph), source| {
        check_graph(path_allgather, change, StructureError::Transfer { transfer: 1, from: 1, to: 2, source });
    };
    check(|graph| graph.transfers[1].carriers = 7..9, TransferFault::CarrierRange);
    check(|graph| graph.transfers[1].carriers = 0..0, TransferFault::CarrierSum { found: 0, expected: 1 });
    check(|graph| graph.carriers[1].chunk_count = 2, TransferFault::CarrierSum { found: 2, expected: 1 });
    check(|graph| graph.carriers[1].chunk_count = 0, TransferFault::EmptyCarrier { route: 1 });
    check(
        |graph| graph.carriers[1].route = graph.carriers[0].route,
        TransferFault::RouteEnds { route: 0, start: 0, end: 1 },
    );
    check(
        |graph| {
            graph.routes = canopy_schedule::RouteTable::default();
            graph.routes.push(&[LinkIndex::new(0)]);
        },
        TransferFault::UnknownRoute { route: 1 },
    );
    check(|graph| graph.transfers[1].dependencies = 1..1000, TransferFault::DependencyRange);
    check(
        |graph| {
            graph.dependencies = vec![1];
            graph.transfers.iter_mut().for_each(|transfer| transfer.dependencies = 0..0);
            graph.transfers[1].dependencies = 0..1;
        },
        TransferFault::ForwardDependency { dependency: 1 },
    );
    let fault = |transfer, from, to, source| StructureError::Transfer { transfer, from, to, source };
    let to = |rank| move |graph: &mut TransferGraph| graph.transfers[1].to = Rank::new(rank);
    check_graph(path_allgather, to(3), fault(1, 1, 3, TransferFault::UnknownRank { rank: 3 }));
    check_graph(path_allgather, to(0), {
        // The route is judged before the tree.
        fault(1, 1, 0, TransferFault::RouteEnds { route: 1, start: 1, end: 2 })
    });
    let root = |graph: &mut TransferGraph| graph.batches[0].root = Rank::new(1);
    check_graph(path_allgather, root, fault(0, 0, 1, TransferFault::SenderNotReached));
    check_graph(path_allgather, to(1), fault(1, 1, 1, TransferFault::ToItself));
}

#[test]
fn routes_must_be_routes() {
    let topology = star(3);
    let builder = Builder::new(&topology, CollectiveKind::Broadcast, Some(0), 1).phase(Action::Copy);
    let graph = compile(&topology, &builder.tree(0, 1, &[(0, 1), (0, 2)]).schedule()).unwrap();
    let link = |from, to| crate::forests::link(&topology, from, to);
    let around = [link("r0", "s0"), link("s0", "r1"), link("r1", "s0"), link("s0", "r2")];
    for (links, source) in [
        (&[][..], RouteFault::Empty),
        (&[link("r0", "s0"), LinkIndex::new(6)], RouteFault::UnknownLink { position: 1, link: 6, link_count: 6 }),
        (&[link("r0", "s0"), link("r1", "s0")], RouteFault::Gap { position: 1 }),
        (&around, RouteFault::ThroughRank { position: 2, rank: 1 }),
    ] {
        let mut graph = graph.clone();
        graph.routes.push(links);
        assert_eq!(check(&topology, &graph), Err(StructureError::Route { route: 2, source }.into()));
    }
}

/// A route that uses a link twice is a poor one, not a wrong one: the link carries the chunks twice.
#[test]
fn detours_cost_load() {
    let topology =
        crate::forests::topology(2, 2, &[("r0", "s0"), ("s0", "s1"), ("s1", "s0"), ("s1", "r1"), ("r1", "r0")]);
    let link = |from, to| crate::forests::link(&topology, from, to);
    let direct = [link("r0", "s0"), link("s0", "s1"), link("s1", "r1")];
    let detour = [direct[0], direct[1], link("s1", "s0"), direct[1], direct[2]];
    let mut algbws = Vec::new();
    for links in [&direct[..], &detour] {
        let builder = Builder::new(&topology, CollectiveKind::Broadcast, Some(0), 1).phase(Action::Copy);
        let mut schedule = builder.schedule();
        let forest = forest(&mut schedule);
        let route = forest.routes.push(links);
        forest.carriers.push(Carrier { route, chunk_count: 1 });
        forest.hops.push(canopy_schedule::Hop { from: Rank::new(0), to: Rank::new(1), carriers: 0..1 });
        forest.phases[0].trees.push(Tree { root: Rank::new(0), multiplicity: 1, hops: 0..1 });
        let verdict = check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
        algbws.push((verdict.algbw.to_string(), verdict.busiest_link));
    }
    assert_eq!(algbws, [("1000".to_owned(), direct[0]), ("500".to_owned(), direct[1])]);
}

#[test]
fn meaning_faults_are_named() {
    let check = |change: fn(&mut TransferGraph), expected| check_graph(path_allgather, change, expected);
    // The first tree of root 0 takes chunk 0, the second chunk 1.
    check(|graph| graph.batches[1].chunk_first = 0, MeaningError::Redundant { transfer: 2, from: 0, to: 1, chunk: 0 });
    check(|graph| graph.batches[0].chunk_first = 2, MeaningError::Missing { rank: 1, chunk: 0, contribution: 0 });
    check(
        |graph| {
            graph.batches[1].chunk_first = 4;
            graph.batches[3].chunk_count = 1;
            graph.carriers[6].chunk_count = 1;
            graph.carriers[7].chunk_count = 1;
        },
        MeaningError::Missing { rank: 1, chunk: 1, contribution: 0 },
    );
    let check = |change: fn(&mut TransferGraph), expected| check_graph(path_allreduce, change, expected);
    check(
        |graph| graph.batches[1].chunk_first = 0,
        MeaningError::ReducedTwice { transfer: 2, from: 0, to: 1, chunk: 0, contribution: 1 },
    );
    check(
        |graph| graph.transfers[6].dependencies = 0..0,
        MeaningError::Unordered { first: 1, second: 6, rank: 0, chunk: 0 },
    );
    check(
        |graph| graph.transfers[1].dependencies = 0..0,
        MeaningError::Unordered { first: 0, second: 1, rank: 1, chunk: 0 },
    );
}

#[test]
fn transfers_must_have_something_to_move() {
    let swap_shares = |graph: &mut TransferGraph| {
        (graph.batches[2].chunk_first, graph.batches[3].chunk_first) = (4, 2);
    };
    let expected = MeaningError::NothingToSend { transfer: 6, from: 2, to: 1, chunk: 2 };
    check_graph(path_allgather, swap_shares, expected);
    // Rank 1 adds rank 0's share to nothing; or rank 0's own contribution is overwritten before it is added.
    for (kind, root, hop, action, expected) in [
        (
            CollectiveKind::Broadcast,
            Some(0),
            (0, 1),
            Action::Reduce,
            MeaningError::NothingToReduceInto { transfer: 0, from: 0, to: 1, chunk: 0 },
        ),
        (
            CollectiveKind::Reduce,
            Some(0),
            (1, 0),
            Action::Copy,
            MeaningError::Destroys { transfer: 0, from: 1, to: 0, chunk: 0, contribution: 0 },
        ),
    ] {
        let topology = crate::forests::topology(2, 0, &[("r0", "r1"), ("r1", "r0")]);
        let right = if action == Action::Copy { Action::Reduce } else { Action::Copy };
        let builder = Builder::new(&topology, kind, root, 1).phase(right);
        let mut graph = compile(&topology, &builder.tree(0, 1, &[hop]).schedule()).unwrap();
        (graph.batches[0].action, graph.batches[0].root) = (action, Rank::new(1));
        assert_eq!(check(&topology, &graph), Err(expected.into()));
    }
}
