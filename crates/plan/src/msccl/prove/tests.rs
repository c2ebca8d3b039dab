//! Each rule: right programs pass, and a program that breaks it is refused with its reason.

use canopy_schedule::CollectiveKind;

use super::{Place, Problem, Stopped, prove, prove_until};
use crate::msccl::Profile;
use crate::msccl::examples::{
    after, awaited, block, program, rank, ring_allgather, ring_allreduce, split_allgather, step,
};
use crate::msccl::program::{Program, Purpose, RankProgram, Step, ThreadBlock};

mod profiles;

#[track_caller]
fn accept(program: &Program) {
    let proof = prove(program, Profile::Msccl);
    assert!(proof.is_ok(), "{:#?}", proof.problems);
    assert_eq!(proof.checks.len(), 7);
}

/// The first problem is of this check and says this.
#[track_caller]
fn refuse(program: &Program, check: &str, message: &str) {
    let proof = prove(program, Profile::Msccl);
    let found = proof.problems.iter().find(|problem| problem.check == check && problem.message.contains(message));
    assert!(found.is_some(), "no {check} problem says `{message}`: {:#?}", proof.problems);
    assert!(proof.checks.contains(&(found.unwrap().check, false)));
}

#[track_caller]
fn refuse_changed(mut program: Program, change: impl Fn(&mut Program), check: &str, message: &str) {
    accept(&program);
    change(&mut program);
    refuse(&program, check, message);
}

fn first_step(program: &mut Program) -> &mut Step {
    &mut program.ranks[0].thread_blocks[0].steps[0]
}

#[test]
fn the_examples_are_right() {
    accept(&ring_allgather(1));
    accept(&ring_allgather(2));
    accept(&ring_allreduce());
    accept(&split_allgather());
}

#[test]
fn the_order_of_ranks_and_blocks_in_the_file_does_not_matter() {
    let mut program = split_allgather();
    program.ranks.reverse();
    program.ranks[1].thread_blocks.reverse();
    accept(&program);
}

#[test]
fn the_head_must_make_sense() {
    let check = |change: fn(&mut Program), message| refuse_changed(ring_allgather(1), change, "structure", message);
    check(|program| program.purpose = Purpose::Collective(CollectiveKind::Gather), "cannot express");
    check(|program| program.rank_count = 1, "ngpus is 1; use at least 2");
    check(|program| program.rank_count = 5, "ngpus is 5 but there are 4 <gpu>");
    check(|program| program.channel_count = 0, "at least 1");
    check(|program| program.chunk_count = 0, "at least 1");
    check(|program| program.chunk_count = 6, "cannot be shared equally");
    check(|program| program.bytes_min = Some(1 << 20), "no message is from minBytes 1048576 up to maxBytes 1048576");
    check(|program| program.bytes_max = Some(1), "no message is from minBytes 0 up to maxBytes 1");
    check(|program| program.bytes_max = Some(0), "no message is from minBytes 0 up to maxBytes 0");
    check(|program| program.ranks[1].rank = 0, "is listed twice");
    check(|program| program.ranks[1].rank = 4, "is not one of the ranks 0 to 3");
    check(|program| program.ranks.clear(), "there are 0 <gpu>");
}

#[test]
fn blocks_and_steps_must_make_sense() {
    let check = |change: fn(&mut RankProgram), message| {
        refuse_changed(ring_allgather(1), |program| change(&mut program.ranks[2]), "structure", message);
    };
    check(|rank| rank.input_chunks = 2, "i_chunks is 2; use 1");
    check(|rank| rank.output_chunks = 1, "o_chunks is 1; use 4");
    check(|rank| rank.thread_blocks[1].id = 0, "is listed twice");
    check(|rank| rank.thread_blocks[1].id = 2, "leaves a gap");
    check(|rank| rank.thread_blocks[0].send = Some(2), "send peer 2 is not another rank");
    check(|rank| rank.thread_blocks[0].receive = Some(4), "recv peer 4 is not another rank");
    check(|rank| rank.thread_blocks[0].channel = 1, "channel 1 is not below nchannels 1");
    check(|rank| rank.thread_blocks[0].send = None, "has no send peer");
    check(|rank| rank.thread_blocks[0].receive = None, "has no receive peer");
    check(|rank| rank.thread_blocks[0].steps[1].index = 2, "s is 2");
    check(|rank| rank.thread_blocks[0].steps[0].chunk_count = 0, "cnt is 0");
    check(|rank| rank.thread_blocks[0].steps[0].chunk_count = 2, "chunks 0 to 1 of `i`, which has 1 chunks");
    check(|rank| rank.thread_blocks[0].steps[1].destination.offset = None, "offset -1");
}

/// Files say 32 TB where they mean any message. Flags count the rounds of all that memory has room for.
#[test]
fn a_bound_beyond_all_memory_is_no_failure_of_rounds() {
    for bytes_max in [1 << 40, 32 << 40, 1 << 60] {
        let proof = prove(&Program { bytes_max: Some(bytes_max), ..ring_allgather(1) }, Profile::Msccl);
        assert!(proof.is_ok(), "{:#?}", proof.problems);
    }
}

#[test]
fn the_tables_of_the_runtime_are_respected() {
    let check = |change: fn(&mut Program), message| refuse_changed(ring_allgather(1), change, "limits", message);
    check(|program| program.name = "two words".to_owned(), "the name is not valid");
    check(|program| program.name = "n".repeat(64), "the name is not valid");
    check(|program| program.channel_count = 33, "33 nchannels, over the runtime's 32");
    check(|program| first_step(program).chunk_count = 72, "72 chunks in one step, over the runtime's 71");
    check(|program| first_step(program).destination.offset = Some(32768), "32768 as a chunk offset");
    check(|program| first_step(program).wait_block = Some(128), "128 as the block of a dependency");
    check(
        |program| {
            program.protocol = crate::msccl::Protocol::Ll;
            program.bytes_max = Some(1 << 40);
        },
        "a message of 309237645312 bytes takes",
    );
    check(|program| program.ranks[0].thread_blocks[1].steps = vec![step("cpy", "i0", "o0", 1); 257], "257 steps");
    check(|program| program.ranks[0].thread_blocks = vec![block(None, None, Vec::new()); 217], "217 thread blocks");
    let many = |program: &mut Program| {
        program.ranks[0].thread_blocks = vec![block(None, None, vec![step("cpy", "i0", "o0", 1); 256]); 16];
    };
    refuse_changed(ring_allgather(1), many, "limits", "4117 XML nodes, over the runtime's 4095");
    check(
        |program| program.ranks[0].thread_blocks = vec![block(Some(1), None, Vec::new()); 33],
        "33 blocks with a send peer",
    );
}

#[test]
fn both_ends_of_a_connection_agree() {
    let check = |change: fn(&mut Program), message| refuse_changed(split_allgather(), change, "connections", message);
    check(|program| program.ranks[0].thread_blocks[2].send = Some(1), "a second block sends to rank 1 on channel 0");
    check(|program| program.ranks[0].thread_blocks[2].receive = Some(3), "a second block receives from rank 3");
    check(|program| program.ranks[0].thread_blocks[1].send = Some(2), "rank 2 has no block that receives from rank 0");
    check(|program| program.ranks[0].thread_blocks[0].receive = Some(2), "rank 2 has no block that sends to rank 0");
    check(
        |program| program.ranks[0].thread_blocks[1].steps.truncate(2),
        "sends 2 times, but gpu 1 tb 0 receives from it 3 times",
    );
    let narrow = |program: &mut Program| program.ranks[0].thread_blocks[0].steps[1].chunk_count = 1;
    refuse_changed(ring_allgather(2), narrow, "connections", "sends 2 chunks, but gpu 0 tb 0 step 1 receives 1");
}

#[test]
fn waits_name_steps_that_publish() {
    let check = |change: fn(&mut RankProgram), message| {
        refuse_changed(split_allgather(), |program| change(&mut program.ranks[1]), "dependencies", message);
    };
    check(|rank| rank.thread_blocks[1].steps[1].wait_step = None, "only one of depid and deps is -1");
    check(|rank| rank.thread_blocks[1].steps[1].wait_block = Some(1), "waits for its own block");
    check(|rank| rank.thread_blocks[1].steps[1].wait_block = Some(3), "tb 3 step 0, which does not exist");
    check(|rank| rank.thread_blocks[1].steps[1].wait_step = Some(3), "tb 0 step 3, which does not exist");
    check(|rank| rank.thread_blocks[0].steps[0].is_awaited = false, "hasdep is 0");
    let nop = |rank: &mut RankProgram, at: usize, nop: Step| {
        rank.thread_blocks[1].steps.insert(at, nop);
        (0..).zip(&mut rank.thread_blocks[1].steps).for_each(|(index, step)| step.index = index);
    };
    let nop = |at: usize, step: Step| move |program: &mut Program| nop(&mut program.ranks[1], at, step);
    let (bare, waiting) = (step("nop", "i-", "o-", 0), after(0, 0, step("nop", "i-", "o-", 0)));
    refuse_changed(split_allgather(), nop(1, bare), "dependencies", "a nop without a dependency");
    refuse_changed(split_allgather(), nop(0, waiting), "dependencies", "follows a nop but has no dependency");
    refuse_changed(split_allgather(), nop(3, waiting), "dependencies", "put a step after it");
    let mut program = split_allgather();
    nop(1, waiting)(&mut program);
    accept(&program);
    program.ranks[1].thread_blocks[2].steps[0] = after(1, 1, program.ranks[1].thread_blocks[2].steps[0]);
    refuse(&program, "dependencies", "a nop, which signals nothing");
}

#[test]
fn a_ring_that_sends_first_needs_a_slot_to_spare() {
    // Two chunks of a 1 MiB message fit one transfer; of a 1 GiB message each is one, and they fill the queue.
    let large = |program: Program| Program { bytes_max: Some((1 << 30) + 1), ..program };
    accept(&ring_allgather(2));
    refuse(&large(ring_allgather(2)), "deadlock", "waits for one of 2 slots");
    accept(&large(ring_allgather(1)));
}

#[test]
fn two_ranks_that_both_receive_first_never_end() {
    let of_rank = |own: u32| {
        let steps = vec![step("r", "i0", &format!("o{}", 1 - own), 1), step("s", "i0", "i0", 1)];
        let copy = block(None, None, vec![step("cpy", "i0", &format!("o{own}"), 1)]);
        rank(own, [1, 2, 0], vec![block(Some(1 - own), Some(1 - own), steps), copy])
    };
    let program = program(CollectiveKind::Allgather, false, 2, (0..2).map(of_rank).collect());
    refuse(&program, "deadlock", "2 of 4 blocks never end: gpu 0 tb 0 step 0 waits for data from gpu 1 tb 0");
}

#[test]
fn a_forward_must_wait_for_what_it_forwards() {
    let forget = |program: &mut Program| {
        let step = &mut program.ranks[3].thread_blocks[1].steps[2];
        (step.wait_block, step.wait_step) = (None, None);
    };
    refuse_changed(split_allgather(), forget, "races", "gpu 3 tb 1 step 2 touches too");
}

/// A rank sends chunks round by way of another, which stores nothing: messages alone order the send before the
/// receive, chunk by chunk.
fn round_trip(back_to: u32) -> Program {
    let out = block(Some(1), None, vec![step("s", "i4", "i4", 4)]);
    let back = block(None, Some(1), vec![step("r", "i0", &format!("i{back_to}"), 4)]);
    let forward = block(Some(0), Some(0), vec![step("rrs", "i4", "i4", 4)]);
    let ranks = vec![rank(0, [12, 0, 0], vec![out, back]), rank(1, [12, 0, 0], vec![forward])];
    program(CollectiveKind::Allreduce, true, 12, ranks)
}

#[test]
fn messages_order_chunk_by_chunk() {
    let has_race = |program: &Program| {
        let proof = prove(program, Profile::Msccl);
        assert!(!proof.is_ok());
        proof.checks.contains(&("races", false))
    };
    assert!(!has_race(&round_trip(4)));
    // The first chunk comes back to where the third has been sent from, or not yet.
    assert!(has_race(&round_trip(6)));
    // The third comes back to where the first was, which has gone before it.
    assert!(!has_race(&round_trip(2)));
    assert!(!has_race(&round_trip(8)));
}

#[test]
fn a_copy_onto_itself_askew_is_a_race() {
    let mut program = ring_allgather(2);
    program.ranks[0].thread_blocks[1].steps.push(Step { index: 1, ..step("cpy", "o0", "o1", 2) });
    refuse(&program, "races", "overlap without being the same");
}

#[test]
fn values_must_be_those_the_collective_promises() {
    let check =
        |program: Program, change: fn(&mut Program), message| refuse_changed(program, change, "meaning", message);
    check(ring_allgather(1), |program| program.ranks[0].thread_blocks[1].steps.clear(), "output chunk 0 holds nothing");
    check(ring_allreduce(), |program| program.ranks[2].thread_blocks[0].steps[1].source.offset = Some(2), "adds chunk");
    let copy_again = |program: &mut Program| {
        program.ranks[0].thread_blocks[1].steps.push(Step { index: 1, ..step("cpy", "i0", "o0", 1) });
    };
    // A copy twice over costs time, no more.
    let mut copies_twice = ring_allgather(1);
    copy_again(&mut copies_twice);
    accept(&copies_twice);
    let warned = prove(&copies_twice, Profile::Msccl).warnings;
    assert!(warned.iter().any(|warning| warning.message.contains("1 are there already")), "{warned:?}");
    let mut writes_input = split_allgather();
    writes_input.ranks[0].thread_blocks[0].steps[2] = step("r", "o1", "i0", 1);
    writes_input.ranks[0].thread_blocks[0].steps[2].index = 2;
    refuse(&writes_input, "races", "one of them writing");
    let mut unwritten = ring_allgather(1);
    unwritten.ranks[0].scratch_chunks = 1;
    unwritten.ranks[0].thread_blocks[1].steps[0] = step("cpy", "s0", "o0", 1);
    refuse(&unwritten, "meaning", "reads chunk 0 of `s`, which has not been written");
}

#[test]
fn an_input_out_of_place_is_not_written() {
    let of_rank = |own: u32| {
        let steps = vec![step("s", "i0", "i0", 1), step("rrc", "i0", "i0", 1)];
        let mut blocks = vec![block(Some(1 - own), Some(1 - own), steps)];
        blocks[0].steps[1].is_awaited = true;
        blocks.push(block(None, None, vec![after(0, 1, step("cpy", "i0", "o0", 1))]));
        rank(own, [1, 1, 0], blocks)
    };
    let program = program(CollectiveKind::Allreduce, false, 1, (0..2).map(of_rank).collect());
    refuse(&program, "meaning", "writes the input of an out-of-place collective");
}

#[test]
fn a_file_for_both_kinds_of_call_is_judged_both_ways() {
    let for_both = |program: &mut Program| program.out_of_place = Some(true);
    let mut ring = ring_allreduce();
    for_both(&mut ring);
    for profile in [Profile::MscclExecutor, Profile::RcclMsccl] {
        let proof = prove(&Program { thread_count: None, ..ring.clone() }, profile);
        let found = proof
            .problems
            .iter()
            .any(|problem| problem.message.contains("used out of place, which the file also allows: writes the input"));
        // Stock RCCL lacks the operations of this ring, which is reason enough.
        assert!(found || profile == Profile::RcclMsccl && !proof.is_ok(), "{:#?}", proof.problems);
    }
    // msccl compares inplace, so the file is never used out of place there.
    accept(&ring);
    assert!(prove(&ring, Profile::Msccl).warnings[0].message.contains("the file serves only calls in place"));
    // Two ranks exchange their input and add it into the output, wherever that is.
    let of_rank = |own: u32| {
        let exchange = vec![step("s", "i0", "i0", 1), step("rrc", "i0", "o0", 1)];
        rank(own, [1, 1, 0], vec![block(Some(1 - own), Some(1 - own), exchange)])
    };
    let mut program = program(CollectiveKind::Allreduce, true, 1, (0..2).map(of_rank).collect());
    for_both(&mut program);
    accept(&program);
    assert!(prove(&program, Profile::MscclExecutor).is_ok());
}

/// The destination of `rrs` is unused and may be anywhere, also when what it waits for never comes.
#[test]
fn a_problem_upstream_does_not_lead_out_of_memory() {
    let mut program = ring_allreduce();
    // Rank 0 adds chunk 2 to chunk 3 and so sends nothing; rank 1 would forward it.
    program.ranks[0].thread_blocks[0].steps[1].source.offset = Some(2);
    program.ranks[1].thread_blocks[0].steps[2].destination.offset = Some(32767);
    refuse(&program, "meaning", "adds chunk");
}

#[test]
fn no_contribution_is_added_twice() {
    // Each of two ranks adds what the other sends to its own value, twice.
    let of_rank = |own: u32| {
        let steps = vec![
            step("s", "i0", "i0", 1),
            step("rrc", "i0", "o0", 1),
            step("s", "i0", "i0", 1),
            step("rrc", "o0", "o0", 1),
        ];
        rank(own, [1, 1, 0], vec![block(Some(1 - own), Some(1 - own), steps)])
    };
    let program = program(CollectiveKind::Allreduce, false, 1, (0..2).map(of_rank).collect());
    refuse(&program, "meaning", "adds the contribution of rank 1 to chunk 0 a second time");
}

#[test]
fn local_reductions_and_all_to_all_are_understood() {
    let of_rank = |own: u32| {
        let exchange = vec![step("s", "i0", "i0", 1), awaited(step("r", "s0", "s0", 1))];
        let reduce = vec![step("cpy", "i0", "o0", 1), after(0, 1, step("re", "s0", "o0", 1))];
        let blocks = vec![block(Some(1 - own), Some(1 - own), exchange), block(None, None, reduce)];
        rank(own, [1, 1, 1], blocks)
    };
    accept(&program(CollectiveKind::Allreduce, false, 1, (0..2).map(of_rank).collect()));
    let of_rank = |own: u32| {
        let (mine, other) = (format!("i{own}"), 1 - own);
        let exchange = vec![step("s", &format!("i{other}"), "i0", 1), step("r", "i0", &format!("o{other}"), 1)];
        let copy = block(None, None, vec![step("cpy", &mine, &format!("o{own}"), 1)]);
        rank(own, [2, 2, 0], vec![block(Some(other), Some(other), exchange), copy])
    };
    accept(&program(CollectiveKind::AllToAll, false, 2, (0..2).map(of_rank).collect()));
}

#[test]
fn absurd_sizes_are_refused_without_being_allocated() {
    let mut program = ring_allgather(1);
    program.ranks[0].scratch_chunks = i32::MAX as u32;
    refuse(&program, "meaning", "for a proof");
}

#[test]
fn unequal_counts_in_a_fused_chain_are_refused() {
    let mut program = ring_allgather(2);
    program.ranks[0].thread_blocks[1].steps.extend([step("re", "i0", "o0", 1), step("re", "i0", "o0", 2)]);
    refuse(&program, "limits", "unequal cnt");
}

/// Compilers write 1, and the runtimes do not look.
#[test]
fn the_count_of_a_nop_is_no_problem() {
    let says = |found: &[Problem]| found.iter().any(|problem| problem.message.contains("moves no data"));
    for (count, is_warned) in [(0, false), (1, true)] {
        let mut program = ring_allgather(1);
        program.ranks[2].thread_blocks[0].steps.push(step("nop", "i-", "o-", count));
        let proof = prove(&program, Profile::Msccl);
        assert_eq!((says(&proof.problems), says(&proof.warnings)), (false, is_warned), "{count}");
    }
}

#[test]
fn unwise_things_are_warned_of() {
    let warned = |program: Program, message: &str| {
        let proof = prove(&program, Profile::Msccl);
        assert!(proof.is_ok(), "{:#?}", proof.problems);
        let found = proof.warnings.iter().any(|warning| warning.message.contains(message));
        assert!(found, "no warning says `{message}`: {:#?}", proof.warnings);
    };
    assert_eq!(prove(&split_allgather(), Profile::Msccl).warnings, Vec::new());
    warned(Program { channel_count: 2, ..ring_allgather(1) }, "some are unused");
    warned(ring_allgather(17), "multiple of 17");
    let mut program = ring_allgather(1);
    first_step(&mut program).is_awaited = true;
    warned(program, "no step waits for it");
    let mut program = ring_allgather(1);
    program.ranks[0].scratch_chunks = 5;
    warned(program, "scratch of 5 chunks");
    let mut program = ring_allgather(1);
    let idle = |id| ThreadBlock { id, ..block(None, None, Vec::new()) };
    program.ranks[0].thread_blocks.extend((2..109).map(idle));
    warned(program, "109 thread blocks");
}

/// Where 0 is no bound, the file is used, for messages of any size.
#[test]
fn a_file_without_a_bound_is_warned_of_where_it_is_used() {
    for profile in [Profile::MscclExecutor, Profile::RcclMsccl] {
        let proof = prove(&Program { bytes_max: Some(0), ..split_allgather() }, profile);
        assert!(proof.is_ok(), "{:#?}", proof.problems);
        assert!(proof.warnings.iter().any(|warning| warning.message.contains("maxBytes 0")), "{:#?}", proof.warnings);
    }
}

#[test]
fn places_are_written_as_the_file_counts() {
    assert_eq!(Place::FILE.to_string(), "file");
    assert_eq!(Place::rank(3).to_string(), "gpu 3");
    assert_eq!(Place::step(3, 2, 5).to_string(), "gpu 3 tb 2 step 5");
}
