//! Right programs pass every check; each kind of damage is found by the check that is for it.

use std::sync::atomic::{AtomicU32, Ordering};

use canopy_topology::{TopologyLimits, generate};

use super::*;
use crate::msccl::Buffer;
use crate::oneccl::examples::programs;
use crate::oneccl::parse;
use crate::oneccl::program::{Completion, Local, Meta, Receive, Route, Scope, Send, Span, Step};

fn all_to_all() -> Program {
    let [program, _] = programs();
    program
}

fn allreduce() -> Program {
    let [_, program] = programs();
    program
}

/// A program as changed fails in this check, with these words.
#[track_caller]
fn damaged(mut program: Program, change: impl FnOnce(&mut Program), check: &str, words: &str) {
    change(&mut program);
    prove(&program).assert_refused(check, words);
}

fn completion(program: &mut Program, rank: usize, step: usize) -> &mut Completion {
    program.ranks[rank].steps[step].completion.as_mut().unwrap()
}

#[test]
fn the_examples_are_right() {
    for program in programs() {
        let proof = prove(&program);
        assert!(proof.is_ok(), "{:?}", proof.problems);
        let names: Vec<&str> = proof.checks.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["structure", "matching", "deadlock", "meaning"]);
    }
}

#[test]
fn structure_is_checked() {
    let check = |change: fn(&mut Program), words| damaged(allreduce(), change, "structure", words);
    check(|program| program.name = "a b".to_owned(), "the name is not valid");
    check(|program| program.ranks.truncate(1), "there are 1 <rank>");
    let devices = |program: &mut Program, value: &str| {
        program.meta.push(Meta { key: "rank_map".to_owned(), value: value.to_owned() });
    };
    damaged(allreduce(), |program| devices(program, "a:0"), "structure", "a device for each of 2 ranks");
    damaged(allreduce(), |program| devices(program, "a:0,b"), "structure", "write host:index for each");
    check(|program| program.ranks[1].rank = 0, "rank 0: is listed twice");
    check(|program| program.ranks[1].rank = 2, "rank 2: is not one of the ranks 0 to 1");
    check(|program| program.ranks[1].input_chunks = 3, "i_chunks is 3, but the collective gives this rank 2");
    check(|program| program.ranks[1].steps[1].index = 2, "number steps");
    check(|program| program.ranks[1].steps[0].completion = None, "has no <sync>");
    check(|program| program.ranks[0].steps[0].sends[0].peer = 0, "rank 0, which is not another rank");
    check(|program| program.ranks[0].steps[0].receives[0].peer = 2, "rank 2, which is not another rank");
    check(|program| program.ranks[0].steps[0].sends[0].span.count = 0, "sends no chunks");
    check(|program| program.ranks[0].steps[0].sends[0].span.count = 2, "sends i[1..3], but `i` has 2 chunks");
    check(|program| program.ranks[0].scratch_chunks = 0, "`s` has 0 chunks");
    check(|program| program.ranks[0].scratch_chunks = u32::MAX, "for a proof");
    check(|program| program.ranks[0].steps[0].receives[0].span.buffer = Buffer::Input, "must not write the caller's");
    check(|program| completion(program, 0, 0).locals[1].source.buffer = Buffer::Output, "which overlap");
    check(|program| program.ranks[0].steps[0].sends[0].route = Some(4), "route 4, which does not exist");
    check(|program| (program.bytes_min, program.bytes_max) = (5, Some(4)), "no message is from minbytes 5");
    check(
        |program| {
            let step = &mut program.ranks[0].steps[1];
            step.receives[0].span = step.sends[0].span;
        },
        "sends o[0..1] while it receives o[0..1]",
    );
    let check = |change: fn(&mut Program), words| damaged(all_to_all(), change, "structure", words);
    check(|program| program.chunk_count = 4, "cannot be shared equally by 3 ranks");
    check(
        |program| program.ranks[0].steps[0].receives[1].span = program.ranks[0].steps[0].receives[0].span,
        "receives o[2..3] and o[2..3], which overlap",
    );
}

#[test]
fn ends_must_agree() {
    let check = |change: fn(&mut Program), words| damaged(all_to_all(), change, "matching", words);
    check(
        |program| {
            _ = program.ranks[0].steps[1].sends.pop();
        },
        "receives a message that rank 0 never sends",
    );
    check(
        |program| {
            _ = program.ranks[0].steps[1].receives.pop();
        },
        "never receives",
    );
    check(
        |program| {
            program.ranks[0].steps[0].sends[0].span.count = 2;
            program.ranks[0].steps[0].sends.truncate(1);
        },
        "sends 2 chunks to rank 1 in message 0 between the two, but rank 1 receives 1 in its step 0",
    );
}

/// A step of one message that only waits for its own rank.
fn step(index: u32, sends: Vec<Send>, receives: Vec<Receive>) -> Step {
    let completion = Some(Completion { scope: Scope::Local, locals: Vec::new(), after: None });
    Step { index, sends, receives, completion }
}

/// Both ranks send before they receive: right with buffers, stuck without.
#[test]
fn sends_that_wait_for_receives_may_not_wait_in_a_ring() {
    let split = |program: &mut Program| {
        for rank in &mut program.ranks {
            let last = rank.steps.pop().unwrap();
            rank.steps.push(step(1, last.sends, Vec::new()));
            rank.steps.push(step(2, Vec::new(), last.receives));
        }
    };
    damaged(allreduce(), split, "deadlock", "rank 0 step 1: waits forever");
    let mut one_sided = allreduce();
    let last = one_sided.ranks[0].steps.pop().unwrap();
    one_sided.ranks[0].steps.push(step(1, last.sends, Vec::new()));
    one_sided.ranks[0].steps.push(step(2, Vec::new(), last.receives));
    let last = one_sided.ranks[1].steps.pop().unwrap();
    one_sided.ranks[1].steps.push(step(1, Vec::new(), last.receives));
    one_sided.ranks[1].steps.push(step(2, last.sends, Vec::new()));
    assert!(prove(&one_sided).is_ok());
}

#[test]
fn waits_for_all_are_everybodys() {
    let mut joined = allreduce();
    for rank in &mut joined.ranks {
        rank.steps[0].completion.as_mut().unwrap().scope = Scope::All;
        rank.steps[1].completion.as_mut().unwrap().after = Some(Scope::All);
    }
    assert!(prove(&joined).is_ok());
    let alone = |program: &mut Program| completion(program, 0, 0).scope = Scope::All;
    damaged(allreduce(), alone, "deadlock", "rank 1: waits for all ranks 0 times");
    // One waits for all before it receives what the other sends after it.
    let crossed = |program: &mut Program| {
        completion(program, 0, 0).scope = Scope::All;
        completion(program, 1, 1).scope = Scope::All;
    };
    damaged(allreduce(), crossed, "deadlock", "waits forever");
}

#[test]
fn values_are_followed() {
    let check = |change: fn(&mut Program), words| damaged(allreduce(), change, "meaning", words);
    check(
        |program| {
            _ = completion(program, 0, 0).locals.remove(0);
        },
        "reads chunk 0 of `o`, which has not been written",
    );
    check(
        |program| {
            _ = completion(program, 0, 0).locals.pop();
        },
        "output chunk 0 holds chunk 0 of rank 0 instead of",
    );
    check(
        |program| {
            let locals = &mut completion(program, 0, 0).locals;
            locals.push(locals[1]);
        },
        "adds the contribution of rank 1 to chunk 0 a second time",
    );
    check(|program| program.ranks[0].steps[0].sends[0].span.first = 0, "adds chunk 0 to chunk 1");
    check(
        |program| completion(program, 0, 0).locals[1].is_reduction = false,
        "instead of the sum of chunk 0 of ranks 0, 1",
    );
    let check = |change: fn(&mut Program), words| damaged(all_to_all(), change, "meaning", words);
    check(|program| program.ranks[0].steps[0].sends.swap(0, 1), "output chunk");
    check(
        |program| {
            _ = completion(program, 2, 0).locals.pop();
        },
        "rank 2: output chunk 2 holds nothing",
    );
}

/// Chunks of one message differ in length by one element where the message cannot be divided equally.
#[test]
fn chunks_lie_where_they_fit() {
    let swap = |program: &mut Program| {
        // Through the other chunk's place in the output, and back.
        let span = |buffer, first| Span { buffer, first, count: 1 };
        let copy = |source, destination| Local { is_reduction: false, source, destination };
        let locals = &mut completion(program, 0, 0).locals;
        locals.insert(0, copy(span(Buffer::Input, 0), span(Buffer::Output, 1)));
    };
    damaged(allreduce(), swap, "meaning", "puts chunk 0 of rank 0 into chunk 1 of `o`, which may have another length");
}

#[test]
fn work_can_be_stopped() {
    let asked = AtomicU32::new(0);
    for most in 0..4 {
        asked.store(0, Ordering::Relaxed);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= most;
        assert_eq!(prove_until(&allreduce(), &stop), Err(Stopped), "{most}");
    }
}

#[test]
fn routes_are_links_and_cannot_block_each_other() {
    let ring = generate("ring:3,dir=uni", &TopologyLimits::STANDARD).unwrap();
    let routed = |hops: &[&[u32]], layers: &[u32]| {
        let routes = (0_u32..).zip(hops).zip(layers).map(|((id, hops), &layer)| Route {
            id,
            source: hops[0],
            destination: hops[hops.len() - 1],
            layer,
            hops: hops.to_vec(),
        });
        let program = Program { routes: routes.collect(), ..all_to_all() };
        assert!(prove(&program).is_ok());
        prove_routes(&program, &ring, &|| false).unwrap().problems.first().map(ToString::to_string)
    };
    assert_eq!(routed(&[&[0, 1], &[1, 2, 0]], &[0, 0]), None);
    let backwards = routed(&[&[0, 2]], &[0]).unwrap();
    assert_eq!(backwards, "file: route 0 goes from `0` to `2`, which no link joins");
    let around: [&[u32]; 3] = [&[0, 1, 2], &[1, 2, 0], &[2, 0, 1]];
    let stuck = routed(&around, &[0, 0, 0]).unwrap();
    assert_eq!(stuck, "file: the routes make 3 channels of layer 0 wait for each other in a cycle; use more layers");
    assert_eq!(routed(&around, &[0, 0, 1]), None);
    let small = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
    assert!(!prove_routes(&all_to_all(), &small, &|| false).unwrap().is_ok());
    // The reader refuses nothing here that the proof has to judge.
    let text = crate::oneccl::write(&Program { ranks: Vec::new(), ..all_to_all() });
    assert!(!prove(&parse(&text).unwrap()).is_ok());
}
