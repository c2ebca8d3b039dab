//! What each runtime makes of the same program, collectives only some can name, largest messages, and stopping.

use canopy_schedule::CollectiveKind;

use super::{Stopped, accept, prove, prove_until, refuse};
use crate::msccl::Profile;
use crate::msccl::examples::{block, program, rank, split_allgather, step};
use crate::msccl::program::{Program, Purpose, ThreadBlock};

/// All of what `inplace`, `outofplace`, `maxBytes` and `name` mean to each runtime.
#[test]
fn each_runtime_reads_the_head_in_its_own_way() {
    let problem = |change: fn(&mut Program), profile: Profile| {
        let mut program = split_allgather();
        change(&mut program);
        prove(&program, profile).problems.first().map(|problem| problem.message.clone()).unwrap_or_default()
    };
    let nothing = |program: &mut Program| program.out_of_place = Some(false);
    assert_eq!(problem(nothing, Profile::Msccl), "");
    for profile in [Profile::MscclExecutor, Profile::RcclMsccl] {
        assert!(problem(nothing, profile).contains("inplace and outofplace are both 0"));
        assert!(problem(|program| program.bytes_max = None, profile).contains("maxBytes is missing"));
        assert_eq!(problem(|program| program.name.clear(), profile), "");
        // 0 is no bound there: the proof takes the worst case.
        assert_eq!(problem(|program| program.bytes_max = Some(0), profile), "");
    }
    assert_eq!(problem(|program| program.bytes_max = None, Profile::Msccl), "");
    assert!(problem(|program| program.name.clear(), Profile::Msccl).contains("the name is not valid"));
    let tight = |program: &mut Program| (program.bytes_min, program.bytes_max) = (Some(4096), Some(4096));
    assert!(problem(tight, Profile::Msccl).contains("no message is from minBytes 4096 up to maxBytes 4096"));
    assert_eq!(problem(tight, Profile::MscclExecutor), "");
}

#[test]
fn stock_rccl_refuses_fused_operations() {
    for (operation, is_fused) in [("rcs", true), ("rrs", true), ("rrc", true), ("rrcs", true), ("r", false)] {
        let mut program = split_allgather();
        program.ranks[0].thread_blocks[0].steps[2].operation =
            crate::msccl::Operation::ALL.into_iter().find(|known| known.name() == operation).unwrap();
        let proof = prove(&program, Profile::RcclMsccl);
        let words = format!("rccl-msccl has no operation `{operation}`; use s, r, cpy, re, nop");
        assert_eq!(proof.problems.iter().any(|problem| problem.message == words), is_fused, "{operation}");
    }
    assert!(prove(&split_allgather(), Profile::RcclMsccl).is_ok());
}

/// Two ranks; rank 0 gathers into `o` or scatters from `i`.
fn rooted(kind: CollectiveKind) -> Program {
    let gathers = kind == CollectiveKind::Gather;
    let (near, far) = if gathers { ("r", "s") } else { ("s", "r") };
    let near = match gathers {
        true => block(None, Some(1), vec![step(near, "i0", "o2", 2)]),
        false => block(Some(1), None, vec![step(near, "i2", "o0", 2)]),
    };
    let far = match gathers {
        true => block(Some(0), None, vec![step(far, "i0", "o0", 2)]),
        false => block(None, Some(0), vec![step(far, "i0", "o0", 2)]),
    };
    let copy = block(None, None, vec![step("cpy", "i0", "o0", 2)]);
    let sizes = if gathers { [[2, 4, 0], [2, 0, 0]] } else { [[4, 2, 0], [0, 2, 0]] };
    let ranks = vec![rank(0, sizes[0], vec![near, copy]), rank(1, sizes[1], vec![far])];
    program(kind, false, 2, ranks)
}

/// `nchunksperloop` of a gather counts the chunks of one share: the runtimes do not multiply its count.
#[test]
fn gather_and_scatter_are_judged_where_a_file_can_say_them() {
    for kind in [CollectiveKind::Gather, CollectiveKind::Scatter] {
        let right = rooted(kind);
        let proof = prove(&right, Profile::MscclExecutor);
        assert!(proof.is_ok(), "{kind}: {:#?}", proof.problems);
        assert!(prove(&right, Profile::RcclMsccl).is_ok());
        refuse(&right, "structure", "files for msccl cannot express");
        let first = |change: &dyn Fn(&mut Program)| {
            let mut wrong = right.clone();
            change(&mut wrong);
            let proof = prove(&wrong, Profile::MscclExecutor);
            proof.problems.first().map(ToString::to_string).unwrap_or_default()
        };
        let swapped = |program: &mut Program| program.ranks[0].thread_blocks[1].steps[0].chunk_count = 1;
        assert!(first(&swapped).contains("gpu 0: output chunk 1 holds nothing"), "{}", first(&swapped));
        let at_leaf = |program: &mut Program| {
            (program.ranks[1].input_chunks, program.ranks[1].output_chunks) =
                if kind == CollectiveKind::Gather { (2, 4) } else { (4, 2) };
            program.ranks[1]
                .thread_blocks
                .push(ThreadBlock { id: 1, ..block(None, None, vec![step("cpy", "i0", "o0", 1)]) });
        };
        assert!(first(&at_leaf).contains("which only rank 0 has in a"), "{}", first(&at_leaf));
    }
}

#[test]
fn values_of_what_promises_nothing_are_not_judged() {
    let mut program = split_allgather();
    program.purpose = Purpose::Unjudged("custom");
    program.ranks[0].thread_blocks[2].steps.clear();
    let proof = prove(&program, Profile::Msccl);
    assert!(proof.is_ok(), "{:#?}", proof.problems);
    assert!(proof.checks.iter().all(|(check, _)| *check != "meaning"));
    assert!(proof.warnings.iter().any(|warning| warning.message.contains("`custom` promises no result")));
    assert!(!prove(&program, Profile::RcclMsccl).is_ok(), "the word is msccl's own");
    let step = &mut program.ranks[0].thread_blocks[1].steps[2];
    (step.wait_block, step.wait_step) = (None, None);
    refuse(&program, "races", "nothing orders them");
}

/// Each rank sends all others `steps` steps of eight chunks before it receives anything.
fn all_pairs(ranks: u32, steps: u32, bytes_max: u64) -> Program {
    let share = steps * 8;
    let of_rank = |own: u32| {
        let others = (0..ranks).filter(|&other| other != own);
        let exchange = |other: u32| {
            let sends = (0..steps).map(|at| step("s", &format!("i{}", other * share + at * 8), "o0", 8));
            let receives = (0..steps).map(|at| step("r", "i0", &format!("o{}", other * share + at * 8), 8));
            block(Some(other), Some(other), sends.chain(receives).collect())
        };
        let mut blocks: Vec<ThreadBlock> = others.map(exchange).collect();
        let copies = (0..steps).map(|at| {
            let place = own * share + at * 8;
            step("cpy", &format!("i{place}"), &format!("o{place}"), 8)
        });
        blocks.push(block(None, None, copies.collect()));
        let whole = ranks * share;
        rank(own, [whole, whole, 0], blocks)
    };
    let program = program(CollectiveKind::AllToAll, false, ranks * share, (0..ranks).map(of_rank).collect());
    Program { bytes_max: Some(bytes_max), ..program }
}

/// Eight ranks and 512 chunks in one step of eight per peer: 256 MiB put four chunks into a transfer, so a step takes
/// both slots of a Simple queue. One byte more makes it three transfers, and every rank waits for a slot.
#[test]
fn the_largest_message_decides_whether_queues_suffice() {
    let wide = |bytes_max: u64| {
        let mut program = all_pairs(8, 1, bytes_max);
        // Eight times the chunks in the message, as in the real file, whose steps move an eighth of a share.
        program.chunk_count = 512;
        program.purpose = Purpose::Unjudged("custom");
        program
    };
    accept(&all_pairs(8, 2, 16 << 20));
    for (profile, most) in [(Profile::Msccl, (256 << 20) + 1), (Profile::MscclExecutor, 256 << 20)] {
        let mut program = wide(most);
        if profile != Profile::Msccl {
            program.purpose = Purpose::Unjudged("alltoallv");
        }
        assert!(prove(&program, profile).is_ok(), "{:#?}", prove(&program, profile).problems);
        program.bytes_max = Some(most + 1);
        let proof = prove(&program, profile);
        let problem = &proof.problems[0];
        assert_eq!(problem.check, "deadlock");
        assert!(problem.message.contains("waits for one of 2 slots to gpu 1 tb 0, gpu 1 tb 0 step 0"), "{problem}");
    }
}

#[test]
fn a_proof_can_be_stopped() {
    let program = all_pairs(8, 2, 16 << 20);
    let asked = std::sync::atomic::AtomicU32::new(0);
    let stop_at = |most: u32| {
        asked.store(0, std::sync::atomic::Ordering::Relaxed);
        prove_until(&program, Profile::Msccl, &|| asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= most)
    };
    assert_eq!(stop_at(0), Err(Stopped));
    assert_eq!(stop_at(3), Err(Stopped));
    assert_eq!(stop_at(u32::MAX), Ok(prove(&program, Profile::Msccl)));
}
