//! Random changes to small right programs of every collective and profile: whatever the proof still accepts is right
//! in every order of execution.
//!
//! A search through all interleavings decides. Changes that it finds to matter are counted; none of them may pass.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use canopy_plan::{
    Buffer, Chunks, EmulateOptions, ForeignFile, Operation, Profile, Program, Protocol, Purpose, RankProgram, Step,
    ThreadBlock, convert, emulate, parse_msccl_xml, prove, write_msccl_xml,
};
use canopy_schedule::CollectiveKind;
use interleavings::{Verdict, judge, mix};

use crate::support::interleavings;

/// Changes tried per program and profile.
const CHANGES: u64 = 600;

fn chunks(text: &str) -> Chunks {
    let buffer = match text.as_bytes()[0] {
        b'o' => Buffer::Output,
        b's' => Buffer::Scratch,
        _ => Buffer::Input,
    };
    Chunks { buffer, offset: text[1..].parse().ok() }
}

fn step(operation: Operation, source: &str, destination: &str, chunk_count: u32) -> Step {
    Step {
        index: 0,
        operation,
        source: chunks(source),
        destination: chunks(destination),
        chunk_count,
        wait_block: None,
        wait_step: None,
        is_awaited: false,
    }
}

fn after(block: u32, awaited: u32, step: Step) -> Step {
    Step { wait_block: Some(block), wait_step: Some(awaited), ..step }
}

fn awaited(step: Step) -> Step {
    Step { is_awaited: true, ..step }
}

fn block(send: Option<u32>, receive: Option<u32>, steps: Vec<Step>) -> ThreadBlock {
    let steps = (0..).zip(steps).map(|(index, step)| Step { index, ..step }).collect();
    ThreadBlock { id: 0, send, receive, channel: 0, steps }
}

fn program(
    kind: CollectiveKind,
    in_place: bool,
    chunk_count: u32,
    ranks: Vec<([u32; 3], Vec<ThreadBlock>)>,
) -> Program {
    let rank = |(rank, (sizes, blocks)): (u32, ([u32; 3], Vec<ThreadBlock>))| {
        let [input_chunks, output_chunks, scratch_chunks] = sizes;
        let thread_blocks = (0..).zip(blocks).map(|(id, block)| ThreadBlock { id, ..block }).collect();
        RankProgram { rank, input_chunks, output_chunks, scratch_chunks, thread_blocks }
    };
    Program {
        name: "small".to_owned(),
        protocol: Protocol::Simple,
        channel_count: 1,
        chunk_count,
        rank_count: u32::try_from(ranks.len()).unwrap(),
        purpose: Purpose::Collective(kind),
        in_place,
        out_of_place: Some(!in_place),
        bytes_min: Some(0),
        // One chunk fills a transfer.
        bytes_max: Some((2 << 20) * u64::from(chunk_count)),
        thread_count: None,
        ranks: (0..).zip(ranks).map(rank).collect(),
    }
}

/// Receives in one block, sends in another that waits for them, the local copy in a third.
fn split_ring_allgather(ranks: u32, k: u32) -> Program {
    use Operation::{Copy, Receive, Send};
    let of_rank = |own: u32| {
        let at = |distance: u32| format!("o{}", (own + ranks - distance) % ranks * k);
        let receive = |distance: u32| {
            let receive = step(Receive, &at(distance), &at(distance), k);
            if distance + 1 < ranks { awaited(receive) } else { receive }
        };
        let send = |distance: u32| after(0, distance - 1, step(Send, &at(distance), &at(distance), k));
        let mut sends = vec![step(Send, "i0", &at(0), k)];
        sends.extend((1..ranks - 1).map(send));
        let blocks = vec![
            block(None, Some((own + ranks - 1) % ranks), (1..ranks).map(receive).collect()),
            block(Some((own + 1) % ranks), None, sends),
            block(None, None, vec![step(Copy, "i0", &at(0), k)]),
        ];
        ([k, ranks * k, 0], blocks)
    };
    program(CollectiveKind::Allgather, false, ranks * k, (0..ranks).map(of_rank).collect())
}

/// Chunks travel round the ring, summed up on the way, then copied.
fn ring_allreduce(ranks: u32) -> Program {
    let of_rank = |own: u32| {
        let at = |distance: u32| format!("i{}", (own + 2 * ranks - distance) % ranks);
        let mut operations = vec![Operation::Send];
        operations.extend((2..ranks).map(|_| Operation::ReceiveReduceSend));
        operations.push(Operation::ReceiveReduceCopySend);
        operations.extend((2..ranks).map(|_| Operation::ReceiveCopySend));
        operations.push(Operation::Receive);
        let steps = (0..).zip(operations).map(|(distance, name)| step(name, &at(distance), &at(distance), 1)).collect();
        ([ranks, 0, 0], vec![block(Some((own + 1) % ranks), Some((own + ranks - 1) % ranks), steps)])
    };
    program(CollectiveKind::Allreduce, true, ranks, (0..ranks).map(of_rank).collect())
}

/// Every rank sends each other its shares; a last block adds what has arrived in scratch.
fn direct_reduce_scatter(ranks: u32) -> Program {
    use Operation::{Copy, Nop, Receive, Reduce, Send};
    let of_rank = |own: u32| {
        let others: Vec<u32> = (0..ranks).filter(|&other| other != own).collect();
        let exchange = |(slot, &other): (usize, &u32)| {
            let there = format!("i{other}");
            let here = format!("s{slot}");
            block(
                Some(other),
                Some(other),
                vec![step(Send, &there, &there, 1), awaited(step(Receive, &here, &here, 1))],
            )
        };
        let mut blocks: Vec<ThreadBlock> = others.iter().enumerate().map(exchange).collect();
        let mut sums = vec![step(Copy, &format!("i{own}"), "o0", 1)];
        let slots = u32::try_from(others.len()).unwrap();
        // All waits before the first sum, by nops, as the runtimes demand; then one chain of reductions.
        sums.extend((0..slots - 1).map(|slot| after(slot, 1, step(Nop, "i-", "o-", 0))));
        sums.push(after(slots - 1, 1, step(Reduce, "s0", "o0", 1)));
        sums.extend((1..slots).map(|slot| step(Reduce, &format!("s{slot}"), "o0", 1)));
        blocks.push(block(None, None, sums));
        ([ranks, 1, slots], blocks)
    };
    program(CollectiveKind::ReduceScatter, false, ranks, (0..ranks).map(of_rank).collect())
}

fn direct_all_to_all(ranks: u32, k: u32) -> Program {
    use Operation::{Copy, Receive, Send};
    let of_rank = |own: u32| {
        let exchange = |other: u32| {
            let (there, here) = (format!("i{}", other * k), format!("o{}", other * k));
            block(Some(other), Some(other), vec![step(Send, &there, &there, k), step(Receive, &here, &here, k)])
        };
        let mut blocks: Vec<ThreadBlock> = (0..ranks).filter(|&other| other != own).map(exchange).collect();
        blocks.push(block(None, None, vec![step(Copy, &format!("i{}", own * k), &format!("o{}", own * k), k)]));
        ([ranks * k, ranks * k, 0], blocks)
    };
    program(CollectiveKind::AllToAll, false, ranks * k, (0..ranks).map(of_rank).collect())
}

/// Along the path 0, 1, … with two chunks, in place.
fn path_broadcast(ranks: u32) -> Program {
    let of_rank = |own: u32| {
        let operation = match own {
            0 => Operation::Send,
            _ if own + 1 < ranks => Operation::ReceiveCopySend,
            _ => Operation::Receive,
        };
        let steps = vec![step(operation, "o0", "o0", 1), step(operation, "o1", "o1", 1)];
        ([0, 2, 0], vec![block((own + 1 < ranks).then_some(own + 1), own.checked_sub(1), steps)])
    };
    program(CollectiveKind::Broadcast, true, 2, (0..ranks).map(of_rank).collect())
}

/// Along the path …, 1, 0, added up on the way.
fn path_reduce(ranks: u32) -> Program {
    let of_rank = |own: u32| {
        let operation = match own {
            0 => Operation::ReceiveReduceCopy,
            _ if own + 1 < ranks => Operation::ReceiveReduceSend,
            _ => Operation::Send,
        };
        let steps = vec![step(operation, "i0", "o0", 1), step(operation, "i1", "o1", 1)];
        ([2, 2, 0], vec![block(own.checked_sub(1), (own + 1 < ranks).then_some(own + 1), steps)])
    };
    program(CollectiveKind::Reduce, false, 2, (0..ranks).map(of_rank).collect())
}

/// The root has a block for each other rank.
fn star_gather(ranks: u32) -> Program {
    let of_rank = |own: u32| {
        if own > 0 {
            return ([1, 0, 0], vec![block(Some(0), None, vec![step(Operation::Send, "i0", "i0", 1)])]);
        }
        let receive = |other: u32| {
            let here = format!("o{other}");
            block(None, Some(other), vec![step(Operation::Receive, &here, &here, 1)])
        };
        let mut blocks: Vec<ThreadBlock> = (1..ranks).map(receive).collect();
        blocks.push(block(None, None, vec![step(Operation::Copy, "i0", "o0", 1)]));
        ([1, ranks, 0], blocks)
    };
    program(CollectiveKind::Gather, false, 1, (0..ranks).map(of_rank).collect())
}

fn star_scatter(ranks: u32) -> Program {
    let of_rank = |own: u32| {
        if own > 0 {
            return ([0, 1, 0], vec![block(None, Some(0), vec![step(Operation::Receive, "o0", "o0", 1)])]);
        }
        let send = |other: u32| {
            let there = format!("i{other}");
            block(Some(other), None, vec![step(Operation::Send, &there, &there, 1)])
        };
        let mut blocks: Vec<ThreadBlock> = (1..ranks).map(send).collect();
        blocks.push(block(None, None, vec![step(Operation::Copy, "i0", "o0", 1)]));
        ([ranks, 1, 0], blocks)
    };
    program(CollectiveKind::Scatter, false, 1, (0..ranks).map(of_rank).collect())
}

/// Small programs of all collectives for every profile that can say them.
fn programs() -> Vec<(String, Profile, Program)> {
    let made = [
        ("split ring allgather", split_ring_allgather(3, 2)),
        ("ring allreduce", ring_allreduce(3)),
        ("ring allreduce of four", ring_allreduce(4)),
        ("direct reduce-scatter", direct_reduce_scatter(3)),
        ("direct all-to-all", direct_all_to_all(3, 2)),
        ("path broadcast", path_broadcast(4)),
        ("path reduce", path_reduce(4)),
        ("star gather", star_gather(4)),
        ("star scatter", star_scatter(4)),
    ];
    let mut all = Vec::new();
    for (name, program) in made {
        for profile in Profile::ALL {
            let file = ForeignFile { program: program.clone(), deviations: Vec::new() };
            if let Ok(conversion) = convert(&file, Profile::MscclExecutor, profile) {
                all.push((format!("{name} for {profile}"), profile, conversion.program));
            }
        }
    }
    all
}

/// Source of chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        usize::try_from(mix(self.0) % bound.max(1) as u64).unwrap()
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn near(&mut self, value: u32) -> u32 {
        if self.below(2) == 0 { value + 1 } else { value.saturating_sub(1) }
    }
}

/// One random change; the program may stay as it was.
fn change(program: &mut Program, chance: &mut Chance) {
    let rank_count = program.rank_count;
    let rank = chance.below(program.ranks.len());
    let blocks = program.ranks[rank].thread_blocks.len();
    if chance.below(16) == 0 {
        return change_head(program, rank, chance);
    }
    let at_block = chance.below(blocks);
    let block = &mut program.ranks[rank].thread_blocks[at_block];
    if chance.below(10) == 0 || block.steps.is_empty() {
        match chance.below(4) {
            0 => block.send = block.send.map(|peer| (peer + 1) % rank_count),
            1 => block.receive = block.receive.map(|peer| (peer + 1) % rank_count),
            2 => std::mem::swap(&mut block.send, &mut block.receive),
            _ => block.steps.clear(),
        }
        return;
    }
    let at = chance.below(block.steps.len());
    match chance.below(14) {
        0 => drop(block.steps.remove(at)),
        1 => block.steps.insert(at, block.steps[at]),
        2 | 3 => {
            let other = chance.below(block.steps.len());
            block.steps.swap(at, other);
        }
        4 => block.steps[at].operation = chance.of(&Operation::ALL),
        5 => block.steps[at].chunk_count = chance.near(block.steps[at].chunk_count),
        6 => block.steps[at].source.offset = block.steps[at].source.offset.map(|offset| chance.near(offset)),
        7 | 8 => {
            block.steps[at].destination.offset = block.steps[at].destination.offset.map(|offset| chance.near(offset))
        }
        9 => block.steps[at].source.buffer = chance.of(&[Buffer::Input, Buffer::Output, Buffer::Scratch]),
        10 => block.steps[at].destination.buffer = chance.of(&[Buffer::Input, Buffer::Output, Buffer::Scratch]),
        11 => (block.steps[at].wait_block, block.steps[at].wait_step) = (None, None),
        12 => block.steps[at].wait_step = block.steps[at].wait_step.map(|awaited| chance.near(awaited)),
        _ => block.steps[at].is_awaited ^= true,
    }
    for (position, step) in (0..).zip(&mut block.steps) {
        step.index = position;
    }
}

fn change_head(program: &mut Program, rank: usize, chance: &mut Chance) {
    match chance.below(6) {
        0 => program.purpose = Purpose::Collective(chance.of(&CollectiveKind::ALL)),
        1 => program.in_place ^= true,
        2 => program.chunk_count = chance.near(program.chunk_count),
        3 => program.ranks[rank].scratch_chunks = chance.near(program.ranks[rank].scratch_chunks),
        4 => program.ranks.swap(0, rank),
        _ => {
            let other = chance.below(program.ranks.len());
            let numbers = (program.ranks[rank].rank, program.ranks[other].rank);
            (program.ranks[other].rank, program.ranks[rank].rank) = numbers;
        }
    }
}

/// Whether reading or proving objects, after a trip through text.
fn is_rejected(program: &Program, profile: Profile) -> bool {
    parse_msccl_xml(&write_msccl_xml(program, profile), profile).map_or(true, |read| !prove(&read, profile).is_ok())
}

#[test]
fn the_small_programs_are_right() {
    let programs = programs();
    assert_eq!(programs.len(), 9 * 3 - 2, "msccl cannot say gather and scatter");
    for (name, profile, program) in programs {
        assert!(!is_rejected(&program, profile), "{name}: {:#?}", prove(&program, profile).problems);
        assert_eq!(judge(&program, profile), Verdict::Right, "{name}");
    }
}

/// Conversion takes any program, right or wrong, and what is proved of its result holds.
#[test]
fn what_conversion_makes_is_right_if_it_is_proved() {
    let (mut right, mut refused) = (0, 0);
    for (number, (name, from, program)) in (0_u32..).zip(programs()) {
        for seed in 0..60 {
            let mut chance = Chance(mix(u64::from(!number) << 32 | seed));
            let mut mutant = program.clone();
            for _ in 0..seed % 3 {
                change(&mut mutant, &mut chance);
            }
            let to = chance.of(&Profile::ALL);
            let Ok(conversion) = convert(&ForeignFile { program: mutant, deviations: Vec::new() }, from, to) else {
                refused += 1;
                continue;
            };
            if is_rejected(&conversion.program, to) {
                refused += 1;
                continue;
            }
            right += 1;
            let verdict = judge(&conversion.program, to);
            assert_eq!(
                verdict,
                Verdict::Right,
                "{name} for {to}, seed {seed}\n{}",
                write_msccl_xml(&conversion.program, to)
            );
        }
    }
    assert!(right >= 500 && refused >= 200, "{right} right, {refused} refused");
}

#[test]
fn no_change_that_matters_is_accepted() {
    let (mut harmful, mut harmless, mut cautious, mut undecided) = (0, 0, 0, 0);
    for (number, (name, profile, program)) in (0_u64..).zip(programs()) {
        for seed in 0..CHANGES {
            let mut chance = Chance(mix(number << 32 | seed));
            let mut mutant = program.clone();
            for _ in 0..=seed % 3 {
                change(&mut mutant, &mut chance);
            }
            let verdict = judge(&mutant, profile);
            let is_rejected = is_rejected(&mutant, profile);
            // The emulator must not know better, nor fall over what is wrong.
            let run = emulate(&mutant, &EmulateOptions::standard(profile, seed));
            assert!(is_rejected || run.is_ok(), "{name}, seed {seed}: {run:?}");
            match (is_rejected, verdict) {
                (true, Verdict::Wrong(_)) => harmful += 1,
                (true, Verdict::Right) => cautious += 1,
                (false, Verdict::Right) => harmless += 1,
                (_, Verdict::Undecided) => undecided += 1,
                (false, Verdict::Wrong(reason)) => {
                    panic!("{name}, seed {seed}: accepted, but {reason}\n{}", write_msccl_xml(&mutant, profile))
                }
            }
        }
    }
    println!("{harmful} harmful, {harmless} harmless, {cautious} harmless but refused, {undecided} undecided");
    assert!(harmful >= 10_000, "only {harmful} changes mattered");
    assert!(harmless >= 500, "only {harmless} harmless changes passed: the proof refuses too much");
    assert!(undecided * 50 < harmful, "{undecided} programs are too large for the search");
}
