//! Levels of random cases against the program written out whole, their proofs, and what is sent at all rates at once.

use canopy_training::groups::{
    GroupLevels, GroupOptions, GroupProblem, Patience, group_levels, group_optimum, level_shares,
};

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive as _;

use crate::certificate::proven_beside;
use crate::costs::lacking;
use crate::parts::check_parts;
use crate::random::{Case, cases};
use crate::shared::check_shares;
use crate::whole_program::Program;

/// Cases where no number is asked for.
const CASES: u32 = 500;

pub(crate) fn levels(problem: &GroupProblem, uses_symmetry: bool) -> GroupLevels {
    let options = GroupOptions { uses_symmetry, ..GroupOptions::STANDARD };
    group_levels(problem, options, usize::MAX, Patience::ENDLESS).unwrap()
}

/// By group, its rate for one byte of its size.
pub(crate) fn each(problem: &GroupProblem, rates: &[BigRational]) -> Vec<BigRational> {
    rates.iter().zip(problem.groups()).map(|(rate, group)| rate / BigInt::from(group.size)).collect()
}

/// Levels rise, every group is in one or frozen, has its rate, and each is proven beside what was settled before.
pub(crate) fn check_levels(problem: &GroupProblem, found: &GroupLevels) {
    assert!(found.open.is_none(), "{problem:?}");
    let mut settled = problem.frozen().to_vec();
    for (number, level) in found.levels.iter().enumerate() {
        assert!(!level.groups.is_empty());
        assert!(number == 0 || found.levels[number - 1].rate <= level.rate, "{problem:?}");
        assert_eq!(level.rate, level.bound, "level {number} of {problem:?}");
        assert_eq!(proven_beside(problem, &settled, &level.lengths), level.bound, "level {number} of {problem:?}");
        for &group in &level.groups {
            let rate = &level.rate * BigInt::from(problem.groups()[group].size);
            assert_eq!((found.level_of[group], &found.rates[group]), (Some(number), &rate));
            assert!(settled[group].replace(rate).is_none(), "group {group} is in two levels");
        }
    }
    let rates: Option<Vec<BigRational>> = settled.into_iter().collect();
    assert_eq!(rates.as_ref(), Some(&found.rates), "{problem:?}");
}

/// What is sent without symmetries fits; shares fit with them, too.
pub(crate) fn check_sent(problem: &GroupProblem, found: &GroupLevels, uses_symmetry: bool) {
    let each = each(problem, &found.rates);
    if !uses_symmetry {
        check_parts(problem, &found.parts, &each, &BigRational::from_integer(1.into()));
    }
    check_shares(problem, &level_shares(problem, found, Patience::ENDLESS).unwrap(), &each);
}

/// No group can be faster while all slower ones keep their rates, and all others have its own at least. Floats are
/// right to a millionth of what all groups together get.
fn check_fair(case: &Case, problem: &GroupProblem, found: &GroupLevels) {
    let each: Vec<f64> = each(problem, &found.rates).iter().map(|rate| rate.to_f64().unwrap()).collect();
    let sizes: u64 = case.groups.iter().map(|group| group.size).sum();
    for group in 0..each.len() {
        let kept = |other: usize| {
            let rate = each[other].min(each[group]) * case.groups[other].size as f64;
            (other != group).then_some(rate)
        };
        let frozen: Vec<Option<f64>> = (0..each.len()).map(kept).collect();
        let most = Program::new(&case.network).solved(&case.groups, &frozen);
        let part = case.groups[group].size as f64 / sizes as f64;
        let is_near = (most / each[group] - 1.0).abs() * part < 1e-6;
        assert!(is_near, "group {group}: {} instead of {most}, {case:?}", each[group]);
    }
}

#[test]
fn levels_are_fair_by_the_whole_program_proven_and_reached() {
    let (mut solved, mut several) = (0, 0);
    let cases = cases(CASES);
    for number in 0..u64::from(cases) {
        let case = Case::numbered(number);
        if lacking(&case.network, &case.groups).is_some() {
            continue;
        }
        let problem = case.network.problem(case.groups.clone());
        let first = group_optimum(&problem, GroupOptions::STANDARD, Patience::ENDLESS).unwrap();
        let [with, without] = [true, false].map(|uses| levels(&problem, uses));
        for (found, uses_symmetry) in [(&with, true), (&without, false)] {
            check_levels(&problem, found);
            check_sent(&problem, found, uses_symmetry);
            assert_eq!(found.levels[0].rate, first.rate);
        }
        assert_eq!(with.rates, without.rates, "case {number}: {case:?}");
        check_fair(&case, &problem, &with);
        solved += 1;
        several += u32::from(with.levels.last().unwrap().rate > first.rate);
    }
    assert!(solved * 2 > cases && several * 5 > cases, "{solved} and {several} of {cases}");
}
