//! The proof is tested by breaking right programs: it must object each time.

use canopy_plan::{Operation, Profile, Program, Step, ThreadBlock, parse_msccl_xml, prove, write_msccl_xml};
use canopy_schedule::CollectiveKind;
use graphs::{graph, heap_tree, lowered, path_tree, ring_tree, star_tree, synthesized};

use crate::support::graphs;
use crate::support::order;

/// Programs with fused and separate forwards, several additions per sum, scratch, waits, and two channels.
fn plans() -> Vec<(&'static str, Program)> {
    let mixed = |kind| {
        graph(kind, 5, 6, 3, |root, part| match part {
            0 => heap_tree(5, root, 2),
            1 => star_tree(5, root),
            _ => path_tree(5, root),
        })
    };
    let mut spread = lowered(&mixed(CollectiveKind::Allgather), false);
    spread.channel_count = 2;
    vec![
        ("ring allgather", lowered(&graph(CollectiveKind::Allgather, 4, 2, 1, |root, _| ring_tree(4, root)), false)),
        ("mixed allgather in place", lowered(&mixed(CollectiveKind::Allgather), true)),
        ("mixed allgather, spare channel", spread),
        ("mixed reduce-scatter", lowered(&mixed(CollectiveKind::ReduceScatter), false)),
        ("mixed reduce-scatter in place", lowered(&mixed(CollectiveKind::ReduceScatter), true)),
        ("mixed allreduce", lowered(&mixed(CollectiveKind::Allreduce), false)),
        ("mixed allreduce in place", lowered(&mixed(CollectiveKind::Allreduce), true)),
        ("mixed broadcast", lowered(&mixed(CollectiveKind::Broadcast), false)),
        ("mixed reduce", lowered(&mixed(CollectiveKind::Reduce), false)),
        ("wide broadcast", lowered(&graph(CollectiveKind::Broadcast, 36, 1, 1, |root, _| star_tree(36, root)), true)),
        ("torus allreduce", lowered(&synthesized("torus:2x3", CollectiveKind::Allreduce), true)),
    ]
}

/// Whether reading or proving objects to a program, after a trip through text.
fn is_rejected(program: &Program) -> bool {
    parse_msccl_xml(&write_msccl_xml(program, Profile::Msccl), Profile::Msccl)
        .map_or(true, |parsed| !prove(&parsed, Profile::Msccl).is_ok())
}

/// Applies `change` to each step or block of a copy in turn and keeps the changed programs.
fn mutants_by_block(program: &Program, change: impl Fn(&Program, &mut ThreadBlock) -> bool) -> Vec<Program> {
    let mut mutants = Vec::new();
    for (rank, of_rank) in program.ranks.iter().enumerate() {
        for block in 0..of_rank.thread_blocks.len() {
            let mut mutant = program.clone();
            if change(program, &mut mutant.ranks[rank].thread_blocks[block]) {
                mutants.push(mutant);
            }
        }
    }
    mutants
}

fn mutants_by_step(program: &Program, change: impl Fn(&mut Vec<Step>, usize) -> bool) -> Vec<Program> {
    let most = program.ranks.iter().flat_map(|rank| &rank.thread_blocks).map(|block| block.steps.len()).max();
    let at =
        |step: usize| mutants_by_block(program, |_, block| step < block.steps.len() && change(&mut block.steps, step));
    (0..most.unwrap_or(0)).flat_map(at).collect()
}

fn is_data(step: &Step) -> bool {
    step.operation != Operation::Nop
}

fn renumber(steps: &mut [Step]) {
    for (index, step) in (0..).zip(steps) {
        step.index = index;
    }
}

/// Drops or duplicates a data step; numbers are kept or made right again.
fn dropped_and_duplicated(program: &Program) -> Vec<Program> {
    let mut mutants = Vec::new();
    for renumbers in [false, true] {
        mutants.extend(mutants_by_step(program, |steps, at| {
            let is_last = at + 1 == steps.len();
            let removed = steps.remove(at);
            if renumbers {
                renumber(steps);
            }
            // Without the last step the numbers are right either way: one mutant, not two.
            is_data(&removed) && !(is_last && renumbers)
        }));
        mutants.extend(mutants_by_step(program, |steps, at| {
            let copy = steps[at];
            steps.insert(at, copy);
            if renumbers {
                renumber(steps);
            }
            // A local copy twice over changes nothing once the numbers are right.
            is_data(&copy) && !(copy.operation == Operation::Copy && renumbers)
        }));
    }
    mutants
}

/// Moves a used offset, or changes a count, by one either way.
fn shifted(program: &Program) -> Vec<Program> {
    let mut mutants = Vec::new();
    for up in [false, true] {
        let shift = |value: &mut u32| {
            let shifted = if up { Some(*value + 1) } else { value.checked_sub(1) };
            shifted.is_some_and(|shifted| {
                *value = shifted;
                true
            })
        };
        mutants.extend(mutants_by_step(program, |steps, at| {
            steps[at].operation.reads_source() && steps[at].source.offset.as_mut().is_some_and(shift)
        }));
        mutants.extend(mutants_by_step(program, |steps, at| {
            steps[at].operation.writes_destination() && steps[at].destination.offset.as_mut().is_some_and(shift)
        }));
        mutants.extend(mutants_by_step(program, |steps, at| is_data(&steps[at]) && shift(&mut steps[at].chunk_count)));
    }
    mutants
}

/// Gives a connection another peer or channel at one end.
fn rewired(program: &Program) -> Vec<Program> {
    let other = |peer: &mut Option<u32>, ranks: u32| {
        peer.as_mut().is_some_and(|peer| {
            *peer = (*peer + 1) % ranks;
            true
        })
    };
    let mut mutants = mutants_by_block(program, |program, block| other(&mut block.send, program.rank_count));
    mutants.extend(mutants_by_block(program, |program, block| other(&mut block.receive, program.rank_count)));
    let mut rechannelled = mutants_by_block(program, |_, block| {
        block.channel += 1;
        block.send.or(block.receive).is_some()
    });
    for mutant in &mut rechannelled {
        mutant.channel_count += 1;
    }
    mutants.extend(rechannelled);
    mutants
}

/// Removes a wait from a step that does something.
fn unordered(program: &Program) -> Vec<Program> {
    mutants_by_step(program, |steps, at| {
        let step = &mut steps[at];
        step.wait_step = None;
        is_data(step) && step.wait_block.take().is_some()
    })
}

#[test]
fn unchanged_plans_are_accepted() {
    for (name, program) in plans() {
        assert!(!is_rejected(&program), "{name}");
        assert_eq!(order::unordered_conflict(&program), None, "{name}");
    }
}

#[test]
fn every_change_of_data_flow_is_rejected() {
    let mut count = 0;
    for (name, program) in plans() {
        let mutants = [dropped_and_duplicated(&program), shifted(&program), rewired(&program)].concat();
        count += mutants.len();
        for mutant in mutants {
            assert!(is_rejected(&mutant), "{name}: a mutant survives\n{}", write_msccl_xml(&mutant, Profile::Msccl));
        }
    }
    println!("{count} mutants");
    assert!(count >= 1000, "only {count} mutants");
}

/// A wait may be implied by others; whether it is, a search for unordered conflicts decides.
#[test]
fn removed_waits_are_rejected_exactly_when_they_matter() {
    let (mut harmful, mut harmless) = (0, 0);
    for (name, program) in plans() {
        for mutant in unordered(&program) {
            let conflict = order::unordered_conflict(&mutant);
            assert_eq!(
                is_rejected(&mutant),
                conflict.is_some(),
                "{name}: {conflict:?}\n{}",
                write_msccl_xml(&mutant, Profile::Msccl)
            );
            *if conflict.is_some() { &mut harmful } else { &mut harmless } += 1;
        }
    }
    println!("{harmful} harmful, {harmless} harmless");
    assert!(harmful >= 100, "only {harmful} waits mattered");
}
