//! One run per seed: right programs give right bytes, broken ones say why.

use super::*;
use crate::elements::{ElementType, Operator};
use crate::oneccl::examples::programs;
use crate::oneccl::program::Scope;

fn options(seed: u64) -> EmulateOptions {
    let (element, operator) = (ElementType::U64, Operator::Sum);
    EmulateOptions { seed, elements: 7, element, operator, is_eager: seed.is_multiple_of(2) }
}

#[test]
fn right_programs_give_right_bytes() {
    for program in programs() {
        for seed in 0..50 {
            for elements in [1, 2, 5, 6] {
                emulate(&program, &EmulateOptions { elements, ..options(seed) }).unwrap();
            }
            for options in EmulateOptions::various(&program, seed) {
                emulate(&program, &options).unwrap();
            }
        }
    }
    let [all_to_all, _] = programs();
    let report = emulate(&all_to_all, &options(0)).unwrap();
    assert_eq!((report.messages, report.chunks, report.elements_compared), (9, 9, 63));
}

/// In each of the runs that a program must survive, whatever the type and the lengths.
#[test]
fn damage_shows() {
    let [all_to_all, allreduce] = programs();
    let check = |program: &Program, words: &str| {
        for options in EmulateOptions::various(program, 3) {
            let error = emulate(program, &options).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    };
    let mut crossed = all_to_all.clone();
    crossed.ranks[0].steps[0].sends.swap(0, 1);
    check(&crossed, "is wrong");
    let mut silent = all_to_all;
    silent.ranks[0].steps[1].sends.clear();
    check(&silent, "rank 1 step 1 waits for messages");
    silent.ranks[1].steps[1].receives.clear();
    check(&silent, "is wrong");
    let mut lonely = allreduce.clone();
    lonely.ranks[0].steps[1].completion.as_mut().unwrap().scope = Scope::All;
    check(&lonely, "deadlock: 1 ranks wait: rank 0 step 1 waits for all ranks");
    let mut missing = allreduce;
    missing.ranks[0].scratch_chunks = 0;
    check(&missing, "the program cannot be run: rank 0 step 0");
}

#[test]
fn waits_for_all_end() {
    let [_, mut program] = programs();
    for rank in &mut program.ranks {
        let completion = rank.steps[0].completion.as_mut().unwrap();
        (completion.scope, completion.after) = (Scope::All, Some(Scope::All));
    }
    for seed in 0..20 {
        emulate(&program, &options(seed)).unwrap();
    }
}

#[test]
fn chunks_of_other_lengths_are_named() {
    let [_, mut program] = programs();
    let locals = &mut program.ranks[0].steps[0].completion.as_mut().unwrap().locals;
    let mut crossed = locals[0];
    crossed.destination.first = 1;
    locals.insert(0, crossed);
    let error = emulate(&program, &options(1)).unwrap_err();
    assert_eq!(error, EmulationError::Length { place: Place::step(0, 0), found: 3, expected: 4 });
}

#[test]
fn useless_runs_are_refused() {
    let [_, program] = programs();
    assert_eq!(emulate(&program, &EmulateOptions { elements: 0, ..options(0) }), Err(EmulationError::NoElements));
    let huge = EmulateOptions { elements: 1 << 40, ..options(0) };
    assert!(matches!(emulate(&program, &huge), Err(EmulationError::TooLarge { .. })));
    assert_eq!(emulate_until(&program, &options(0), &|| true), Err(EmulationError::Stopped));
}
