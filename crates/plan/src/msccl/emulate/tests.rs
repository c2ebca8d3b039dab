//! One run per seed: right programs give right bytes, broken ones say why.

use std::sync::atomic::{AtomicU32, Ordering};

use canopy_schedule::CollectiveKind;

use super::{ElementType, EmulateOptions, EmulationError, Operator, emulate, emulate_until};
use crate::msccl::examples::{
    after, awaited, block, program, rank, ring_allgather, ring_allreduce, split_allgather, step,
};
use crate::msccl::{Operation, Place, Profile, Program, Purpose};

fn standard(seed: u64) -> EmulateOptions {
    EmulateOptions::standard(Profile::Msccl, seed)
}

#[test]
fn right_programs_give_right_bytes() {
    for seed in 0..20 {
        for operator in [Operator::Sum, Operator::Min, Operator::Max, Operator::Xor] {
            let options = EmulateOptions { operator, ..standard(seed) };
            for program in [ring_allgather(1), ring_allgather(3), ring_allreduce(), split_allgather()] {
                emulate(&program, &options).unwrap();
            }
        }
    }
    let report = emulate(&ring_allgather(3), &standard(0)).unwrap();
    assert_eq!((report.steps, report.transfers, report.chunks), (20, 12, 36));
    assert_eq!(report.elements_compared, 4 * 12 * 2);
    let split = EmulateOptions { chunks_per_transfer: Some(1), slots: Some(4), ..standard(0) };
    assert_eq!(emulate(&ring_allgather(3), &split).unwrap().transfers, 36);
}

/// Every type with every operator, the queues of every profile, and two slots, under several interleavings.
#[test]
fn every_type_and_operator_gives_right_results() {
    let two_slots = [None, Some(2)];
    for element in ElementType::ALL {
        for operator in Operator::ALL {
            for (seed, profile) in (0..).zip(Profile::ALL) {
                for slots in two_slots {
                    let options =
                        EmulateOptions { element, operator, slots, ..EmulateOptions::standard(profile, seed) };
                    for program in [ring_allgather(2), ring_allreduce(), split_allgather()] {
                        emulate(&program, &options).unwrap();
                    }
                }
            }
        }
    }
}

/// The runs of a server differ in all that they may, and each by itself finds a wrong sum or a lack of slots.
#[test]
fn the_various_runs_differ_and_all_judge() {
    for profile in Profile::ALL {
        let runs = EmulateOptions::various(profile, u64::MAX);
        assert_eq!(runs[0], EmulateOptions::standard(profile, u64::MAX));
        assert_eq!((runs[1].slots, runs[2].chunks_per_transfer), (Some(2), Some(71)));
        for (position, run) in runs.iter().enumerate() {
            let differs = |other: &EmulateOptions| {
                (run.seed, run.element, run.operator) != (other.seed, other.element, other.operator)
            };
            assert!(runs[..position].iter().all(differs), "{run:?}");
            for program in [ring_allgather(2), ring_allreduce(), split_allgather()] {
                emulate(&program, run).unwrap();
            }
            let mut wrong = ring_allreduce();
            wrong.ranks[2].thread_blocks[0].steps[2].operation = Operation::ReceiveCopySend;
            assert!(matches!(emulate(&wrong, run), Err(EmulationError::WrongOutput { .. })), "{run:?}");
        }
    }
}

/// A contribution missing or added twice shows in every type whose operator is not idempotent; the largest of many
/// random words hides some, so only a wrong value there is certain to show.
#[test]
fn a_wrong_sum_shows_in_every_type() {
    for element in ElementType::ALL {
        for operator in [Operator::Sum, Operator::Product, Operator::Xor] {
            let mut program = ring_allreduce();
            program.ranks[2].thread_blocks[0].steps[2].operation = Operation::ReceiveCopySend;
            let options = EmulateOptions { element, operator, elements_per_chunk: 16, ..standard(4) };
            let error = emulate(&program, &options).unwrap_err();
            assert!(matches!(error, EmulationError::WrongOutput { .. }), "{element:?} {operator:?}: {error}");
        }
    }
}

#[test]
fn a_run_can_be_stopped() {
    let asked = AtomicU32::new(0);
    let run = |most: u32| {
        asked.store(0, Ordering::Relaxed);
        emulate_until(&ring_allreduce(), &standard(0), &|| asked.fetch_add(1, Ordering::Relaxed) >= most)
    };
    for most in [0, 1, 5] {
        assert_eq!(run(most), Err(EmulationError::Stopped));
    }
    assert!(run(u32::MAX).is_ok());
}

#[test]
fn gather_scatter_and_what_promises_nothing_are_run() {
    let send = |to, from: &str| block(Some(to), None, vec![step("s", from, "i0", 1)]);
    let receive = |from, to: &str| block(None, Some(from), vec![step("r", "i0", to, 1)]);
    let own = || block(None, None, vec![step("cpy", "i0", "o0", 1)]);
    let gather = vec![rank(0, [1, 2, 0], vec![receive(1, "o1"), own()]), rank(1, [1, 0, 0], vec![send(0, "i0")])];
    let gather = program(CollectiveKind::Gather, false, 1, gather);
    assert_eq!(emulate(&gather, &standard(1)).unwrap().elements_compared, 4);
    let scatter = vec![rank(0, [2, 1, 0], vec![send(1, "i1"), own()]), rank(1, [0, 1, 0], vec![receive(0, "o0")])];
    let mut scatter = program(CollectiveKind::Scatter, false, 1, scatter);
    assert_eq!(emulate(&scatter, &standard(1)).unwrap().elements_compared, 4);
    scatter.ranks[0].thread_blocks[0].steps[0].source.offset = Some(0);
    assert_eq!(emulate(&scatter, &standard(1)), Err(EmulationError::WrongOutput { rank: 1, chunk: 0 }));
    let custom = Program { purpose: Purpose::Unjudged("custom"), ..split_allgather() };
    assert_eq!(emulate(&custom, &standard(1)).unwrap().elements_compared, 0);
}

#[test]
fn collectives_with_a_root_and_local_steps_are_understood() {
    let send = |operation| block(Some(1), None, vec![step(operation, "i0", "i0", 1)]);
    let sink = |operation| block(None, Some(0), vec![step(operation, "i0", "o0", 1)]);
    let own = block(None, None, vec![step("cpy", "i0", "o0", 1)]);
    let ranks = vec![rank(0, [1, 1, 0], vec![send("s"), own]), rank(1, [1, 1, 0], vec![sink("r")])];
    emulate(&program(CollectiveKind::Broadcast, false, 1, ranks), &standard(1)).unwrap();
    let sum = block(None, Some(1), vec![awaited(step("r", "s0", "s0", 1))]);
    let local = block(None, None, vec![step("cpy", "i0", "o0", 1), after(0, 0, step("re", "s0", "o0", 1))]);
    let source = block(Some(0), None, vec![step("s", "i0", "i0", 1)]);
    let ranks = vec![rank(0, [1, 1, 1], vec![sum, local]), rank(1, [1, 1, 0], vec![source])];
    emulate(&program(CollectiveKind::Reduce, false, 1, ranks), &standard(1)).unwrap();
}

#[test]
fn a_ring_that_sends_first_deadlocks_with_one_slot() {
    let single = EmulateOptions { slots: Some(1), ..standard(3) };
    for ring in [ring_allgather(1), ring_allreduce()] {
        let Err(EmulationError::Deadlock { blocked }) = emulate(&ring, &single) else { panic!("no deadlock") };
        assert_eq!(blocked.len(), 4);
        assert_eq!(blocked[0].place, Place::step(0, 0, 1));
        assert_eq!(blocked[0].reason, "waits for a free slot");
    }
    emulate(&split_allgather(), &single).unwrap();
}

#[test]
fn a_wait_for_what_is_never_published_deadlocks() {
    let mut program = split_allgather();
    program.ranks[0].thread_blocks[0].steps[1].is_awaited = false;
    let error = emulate(&program, &standard(0)).unwrap_err();
    assert!(error.to_string().contains("gpu 0 tb 1 step 2 waits for another block"), "{error}");
}

#[test]
fn a_missing_wait_shows_in_some_interleaving() {
    let mut program = split_allgather();
    let step = &mut program.ranks[0].thread_blocks[1].steps[2];
    (step.wait_block, step.wait_step) = (None, None);
    let wrong = (0..50).filter(|&seed| emulate(&program, &standard(seed)).is_err()).count();
    assert!(wrong > 0);
}

#[test]
fn wrong_results_are_named() {
    let mut swapped = ring_allgather(1);
    swapped.ranks[1].thread_blocks[1].steps[0].destination.offset = Some(2);
    // The copy goes where another share belongs; the own place stays garbage.
    let error = emulate(&swapped, &standard(0)).unwrap_err();
    assert!(matches!(error, EmulationError::WrongOutput { rank: 1, .. }), "{error}");
    let mut scribbling = ring_allgather(1);
    scribbling.ranks[2].thread_blocks[1].steps.push(step("re", "o2", "i0", 1));
    // The share is sent before or after it is doubled; either way something is wrong.
    for seed in 0..10 {
        let error = emulate(&scribbling, &standard(seed)).unwrap_err();
        let is_named =
            matches!(error, EmulationError::WrongOutput { .. } | EmulationError::InputChanged { rank: 2, .. });
        assert!(is_named, "{error}");
    }
}

#[test]
fn ends_that_disagree_are_named() {
    let mut program = ring_allgather(2);
    program.ranks[1].thread_blocks[0].steps[1].chunk_count = 1;
    let error = emulate(&program, &standard(0)).unwrap_err();
    assert!(matches!(error, EmulationError::TransferSize { found: 2, expected: 1, .. }), "{error}");
    let mut program = split_allgather();
    program.ranks[1].thread_blocks[0].steps.truncate(2);
    let error = emulate(&program, &standard(0)).unwrap_err();
    assert!(matches!(error, EmulationError::LeftOver { from: 0, to: 1, channel: 0, count: 1 }), "{error}");
}

#[test]
fn programs_that_refer_to_nothing_are_refused() {
    let check = |change: fn(&mut Program), what: &str| {
        let mut program = split_allgather();
        change(&mut program);
        let error = emulate(&program, &standard(0)).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    };
    check(|program| program.rank_count = 5, "ranks or chunks are missing");
    check(|program| program.chunk_count = 0, "ranks or chunks are missing");
    check(|program| program.chunk_count = 3, "a share below one chunk");
    check(|program| program.ranks[0].rank = 7, "a rank that is listed twice or does not exist");
    check(|program| program.ranks[0].output_chunks = 5, "a buffer larger than the collective's");
    check(|program| program.ranks[0].thread_blocks[1].send = None, "a peer that does not exist");
    check(
        |program| program.ranks[0].thread_blocks[0].steps[0].destination.offset = Some(4),
        "chunks outside the buffer",
    );
    check(
        |program| program.ranks[0].thread_blocks[1].steps[1].wait_step = Some(9),
        "a wait for a step that does not exist",
    );
    check(|program| program.ranks[0].scratch_chunks = u32::MAX, "over the limit of 268435456");
}

#[test]
fn useless_options_are_refused() {
    for (options, message) in [
        (EmulateOptions { slots: Some(0), ..standard(0) }, "slots is 0; use at least 1"),
        (EmulateOptions { chunks_per_transfer: Some(0), ..standard(0) }, "chunks per transfer is 0; use at least 1"),
        (EmulateOptions { elements_per_chunk: 0, ..standard(0) }, "elements per chunk is 0; use at least 1"),
    ] {
        assert_eq!(emulate(&ring_allreduce(), &options).unwrap_err().to_string(), message);
    }
}
