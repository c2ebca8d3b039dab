//! Decisions against all choices.

use proptest::prelude::*;

use super::*;
use crate::stop::Never;

/// Neither means spared, or the search alone.
const EFFORTS: [BinaryEffort; 2] = [
    BinaryEffort { relaxed_variables_max: 1 << 10, conflicts_max: 1 << 14 },
    BinaryEffort { relaxed_variables_max: 0, conflicts_max: 1 << 14 },
];

/// Whether there is a choice, tried out.
fn is_feasible(program: &BinaryProgram) -> bool {
    let count = program.variable_count();
    (0..1_u32 << count).any(|bits| {
        let choice: Vec<bool> = (0..count).map(|variable| bits >> variable & 1 == 1).collect();
        program.allows(&choice)
    })
}

fn programs() -> impl Strategy<Value = BinaryProgram> {
    let row = (prop::collection::btree_map(0_u32..10, any::<bool>(), 1..7), 0_u32..4);
    let rows = prop::collection::vec(row, 0..40);
    (rows, prop::collection::btree_set(0_u32..10, 0..4)).prop_map(|(rows, wanted)| {
        let mut program = BinaryProgram::default();
        (0..10).for_each(|_| {
            program.variable();
        });
        for (literals, most) in rows {
            let literal = |(&variable, &is_one): (&u32, &bool)| {
                if is_one { Literal::is_one(variable) } else { Literal::is_zero(variable) }
            };
            // Most rows are such that only one choice of their variables is excluded: they conflict late.
            let count = u32::try_from(literals.len()).unwrap();
            program.at_most(count.saturating_sub(1).min(most.max(count / 2)), literals.iter().map(literal).collect());
        }
        wanted.into_iter().for_each(|variable| program.want(variable, 1));
        program
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn decisions_are_those_of_trying_all_choices(program in programs()) {
        for effort in EFFORTS {
            match program.decide(effort, &Never).unwrap() {
                Decision::Feasible(choice) => prop_assert!(program.allows(&choice)),
                Decision::Infeasible => prop_assert!(!is_feasible(&program)),
                Decision::Undecided => prop_assert!(false, "a small program was not decided"),
            }
        }
    }
}

/// So many pigeons, each in a hole of its own.
fn pigeons(pigeons: u32, holes: u32) -> BinaryProgram {
    let mut program = BinaryProgram::default();
    let places: Vec<Vec<u32>> = (0..pigeons).map(|_| (0..holes).map(|_| program.variable()).collect()).collect();
    for hole in 0..holes as usize {
        program.at_most(1, places.iter().map(|places| Literal::is_one(places[hole])).collect());
    }
    for places in &places {
        let housed = program.variable();
        program.implies(Literal::is_one(housed), places.iter().copied().map(Literal::is_one));
        program.want(housed, 1);
    }
    program
}

/// Clauses alone take exponentially many steps for this (Haken 1985); prices see it at once.
#[test]
fn the_relaxation_proves_what_is_too_scarce() {
    let effort = BinaryEffort { relaxed_variables_max: 1 << 12, conflicts_max: 0 };
    assert_eq!(pigeons(13, 12).decide(effort, &Never), Ok(Decision::Infeasible));
    let of_search = BinaryEffort { relaxed_variables_max: 0, conflicts_max: 50 };
    assert_eq!(pigeons(13, 12).decide(of_search, &Never), Ok(Decision::Undecided));
    assert!(matches!(pigeons(12, 12).decide(EFFORTS[0], &Never), Ok(Decision::Feasible(_))));
}

#[test]
fn a_standing_request_stops() {
    assert_eq!(pigeons(9, 8).decide(EFFORTS[0], &|| true), Err(Stopped));
    assert_eq!(pigeons(9, 8).decide(EFFORTS[1], &|| true), Err(Stopped));
}

#[test]
fn a_program_of_nothing_is_decided() {
    assert_eq!(BinaryProgram::default().decide(EFFORTS[1], &Never), Ok(Decision::Feasible(Vec::new())));
    let mut program = BinaryProgram::default();
    let variable = program.variable();
    program.want(variable, 1);
    program.at_most(0, vec![Literal::is_one(variable)]);
    for effort in EFFORTS {
        assert_eq!(program.decide(effort, &Never), Ok(Decision::Infeasible));
    }
}
