//! What is known of levels when time or rounds are over.

use std::sync::atomic::{AtomicU32, Ordering};

use canopy_optimize::Stop;
use canopy_training::groups::{GroupLevels, GroupOptions, GroupProblem, GroupsError, Patience, group_levels};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One as _;

use crate::certificate::proven_beside;
use crate::costs::lacking;
use crate::levels::{each, levels};
use crate::parts::check_parts;
use crate::random::{Case, Random, cases};

const CASES: u32 = 120;

/// Requested after so many questions.
struct After(u32, AtomicU32);

impl Stop for After {
    fn is_requested(&self) -> bool {
        self.1.fetch_add(1, Ordering::Relaxed) >= self.0
    }
}

/// Known levels are those of the optimum; all others have what is sent, between the last rate and the limit.
fn check(problem: &GroupProblem, found: &GroupLevels, optimum: &GroupLevels) {
    check_parts(problem, &found.parts, &each(problem, &found.rates), &BigRational::one());
    let mut settled = problem.frozen().to_vec();
    for (level, other) in found.levels.iter().zip(&optimum.levels) {
        assert_eq!((&level.rate, &level.bound), (&other.rate, &other.rate), "{problem:?}");
        level.groups.iter().for_each(|&group| settled[group] = Some(found.rates[group].clone()));
    }
    let last = found.levels.last().map(|level| level.rate.clone()).unwrap_or_default();
    for (group, level) in found.level_of.iter().enumerate() {
        if level.is_none() && problem.frozen()[group].is_none() {
            assert!(found.rates[group] >= &last * BigInt::from(problem.groups()[group].size));
        }
    }
    if let Some(open) = &found.open {
        assert!(last <= open.rate && open.rate <= open.bound, "{problem:?}");
        assert_eq!(proven_beside(problem, &settled, &open.lengths), open.bound, "{problem:?}");
    }
}

#[test]
fn what_is_known_in_time_holds() {
    let mut open = 0;
    for number in 0..u64::from(cases(CASES)) {
        let case = Case::numbered(number);
        let mut random = Random(number);
        if lacking(&case.network, &case.groups).is_some() {
            continue;
        }
        let free = case.network.problem(case.groups.clone());
        let mut problems = vec![free.clone()];
        if case.groups.len() > 1 {
            let rate = levels(&free, false).rates[0].clone() / BigInt::from(2);
            problems.push(free.with_frozen(0, rate).unwrap());
        }
        for problem in problems {
            let optimum = levels(&problem, false);
            for _ in 0..8 {
                let stop = After(random.below(200), AtomicU32::new(0));
                let options = GroupOptions { uses_symmetry: false, ..GroupOptions::STANDARD };
                match group_levels(&problem, options, usize::MAX, Patience { enough: &stop, ..Patience::ENDLESS }) {
                    Ok(found) => {
                        open += u32::from(found.open.is_some());
                        check(&problem, &found, &optimum);
                    }
                    Err(error) => assert_eq!(error, GroupsError::Stopped),
                }
            }
            for rounds_max in 1..6 {
                let options = GroupOptions { uses_symmetry: false, rounds_max };
                match group_levels(&problem, options, usize::MAX, Patience::ENDLESS) {
                    Ok(found) => check(&problem, &found, &optimum),
                    Err(error) => assert_eq!(error, GroupsError::Stopped),
                }
            }
        }
    }
    assert!(open > 50, "{open}");
}
