//! Lowered plans are read back unchanged, proved, and run on bytes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use canopy_plan::{EmulateOptions, Operator, Profile, Program, emulate, parse_msccl_xml, prove, write_msccl_xml};
use canopy_schedule::{CollectiveKind, TransferGraph};
use graphs::{graph, heap_tree, lowered, path_tree, ring_tree, star_tree, synthesized};

use crate::support::graphs;

const KINDS: [CollectiveKind; 5] = [
    CollectiveKind::Allgather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Allreduce,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
];

/// Reads back, proves, and runs with the runtime's queues and with a single slot: a lowered plan must not need more,
/// however its steps are split.
#[track_caller]
fn check(program: &Program, seeds: u64) {
    let parsed = parse_msccl_xml(&write_msccl_xml(program, Profile::Msccl), Profile::Msccl).unwrap();
    assert_eq!(&parsed, program);
    let proof = prove(&parsed, Profile::Msccl);
    assert!(proof.is_ok(), "{:#?}", proof.problems);
    assert_eq!(proof.checks.len(), 7);
    for seed in 0..seeds {
        for (slots, chunks_per_transfer, operator) in
            [(None, None, Operator::Sum), (Some(1), Some(1), Operator::Xor), (Some(1), Some(71), Operator::Min)]
        {
            let standard = EmulateOptions::standard(Profile::Msccl, seed);
            emulate(&parsed, &EmulateOptions { slots, chunks_per_transfer, operator, ..standard }).unwrap();
        }
    }
}

#[track_caller]
fn check_all(make: impl Fn(CollectiveKind) -> TransferGraph, seeds: u64) {
    for kind in KINDS {
        for in_place in [false, true] {
            check(&lowered(&make(kind), in_place), seeds);
        }
    }
}

#[test]
fn rings_stars_and_paths() {
    check_all(|kind| graph(kind, 2, 1, 1, |root, _| ring_tree(2, root)), 5);
    check_all(|kind| graph(kind, 5, 2, 1, |root, _| ring_tree(5, root)), 5);
    check_all(|kind| graph(kind, 5, 3, 1, |root, _| star_tree(5, root)), 5);
    check_all(|kind| graph(kind, 4, 1, 1, |root, _| path_tree(4, root)), 5);
}

#[test]
fn trees_with_several_children() {
    check_all(|kind| graph(kind, 9, 100, 1, |root, _| heap_tree(9, root, 2)), 3);
    check_all(|kind| graph(kind, 14, 1, 1, |root, _| heap_tree(14, root, 3)), 3);
}

#[test]
fn different_trees_for_parts_of_a_share() {
    let tree_of = |root, part| match part {
        0 => heap_tree(6, root, 2),
        1 => star_tree(6, root),
        _ => path_tree(6, root),
    };
    check_all(|kind| graph(kind, 6, 10, 3, tree_of), 5);
}

/// The copied parts of a share need not be those that were reduced: a root waits for all it needs.
#[test]
fn phases_may_divide_shares_differently() {
    // The root of the n-th quarter has one neighbour, at distance n + 1, which has all the others.
    let mut allreduce = graph(CollectiveKind::Allreduce, 5, 12, 4, |root, part| {
        let hub = (root + 1 + u32::try_from(part).unwrap()) % 5;
        let others = star_tree(5, hub).into_iter().filter(|&(_, rank)| rank != root);
        std::iter::once((root, hub)).chain(others).collect()
    });
    let thirds = graph(CollectiveKind::Allgather, 5, 12, 3, |root, _| path_tree(5, root));
    let reduced = allreduce.batches.len() / 2;
    allreduce.batches.truncate(reduced);
    let offset = u32::try_from(allreduce.transfers.len()).unwrap();
    allreduce.transfers.extend(thirds.transfers);
    allreduce.batches.extend(thirds.batches.into_iter().map(|mut batch| {
        batch.transfers = batch.transfers.start + offset..batch.transfers.end + offset;
        batch
    }));
    for in_place in [false, true] {
        let program = lowered(&allreduce, in_place);
        assert!(write_msccl_xml(&program, Profile::Msccl).contains("hasdep=\"1\""), "some step waits for a sum");
        check(&program, 5);
    }
}

#[test]
fn more_peers_than_a_channel_has_room_for() {
    for kind in [CollectiveKind::Allreduce, CollectiveKind::Broadcast] {
        let program = lowered(&graph(kind, 40, 1, 1, |root, _| star_tree(40, root)), false);
        assert_eq!(program.channel_count, 2);
        check(&program, 1);
    }
}

#[test]
fn more_steps_than_a_block_has_room_for() {
    let program = lowered(&graph(CollectiveKind::Allreduce, 6, 3101, 2, |root, _| ring_tree(6, root)), true);
    assert_eq!(program.channel_count, 2);
    check(&program, 1);
}

/// Greatest numbers of any rank or block: channels, thread blocks, steps of a block, XML nodes.
fn size(program: &Program) -> [usize; 4] {
    let most = |count: &dyn Fn(&canopy_plan::RankProgram) -> usize| program.ranks.iter().map(count).max().unwrap();
    let steps = |rank: &canopy_plan::RankProgram| -> Vec<usize> {
        rank.thread_blocks.iter().map(|block| block.steps.len()).collect()
    };
    [
        program.channel_count as usize,
        most(&|rank| rank.thread_blocks.len()),
        most(&|rank| steps(rank).into_iter().max().unwrap()),
        most(&|rank| 1 + program.ranks.len() + rank.thread_blocks.len() + steps(rank).into_iter().sum::<usize>()),
    ]
}

/// Optimal plans of real machines, the largest last, on one channel and few blocks.
#[test]
fn optimal_plans_of_real_machines() {
    for (expression, blocks) in [
        ("ring:8", 4),
        ("torus:4x4", 9),
        ("complete:8", 9),
        ("hypercube:4", 9),
        ("dgx-a100:boxes=2", 24),
        ("dgx-h100:boxes=2", 24),
        ("mi250:boxes=2,gpus=8", 16),
        ("mi250:boxes=2", 32),
    ] {
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce] {
            let graph = synthesized(expression, kind);
            for in_place in [false, true] {
                let program = lowered(&graph, in_place);
                let size = size(&program);
                println!("{expression} {kind}, in place {in_place}: channels, blocks, steps, nodes {size:?}");
                assert!(size[0] == 1 && size[1] <= blocks, "{expression} {kind}: {size:?}");
                check(&program, 1);
            }
        }
    }
}
