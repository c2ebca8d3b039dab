//! Groups that keep a given rate, and what is left for others.

use canopy_training::groups::{GroupKind, GroupOptions, GroupsError, Patience, group_levels, group_optimum};

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One as _, ToPrimitive as _, Zero as _};

use crate::costs::lacking;
use crate::levels::{check_levels, check_sent, levels};
use crate::networks::{Network, group};
use crate::random::{Case, Random, cases};
use crate::whole_program::Program;

const CASES: u32 = 400;

fn fraction(above: u32, below: u32) -> BigRational {
    BigRational::new(above.into(), below.into())
}

/// Frozen at parts of what all frozen ones could have; with all of it, little or nothing may be left.
#[test]
fn newcomers_get_what_the_whole_program_leaves_them() {
    let (mut solved, mut nothing) = (0, 0);
    for number in 0..u64::from(cases(CASES)) {
        let case = Case::numbered(number);
        let mut random = Random(number);
        if case.groups.len() < 2 || lacking(&case.network, &case.groups).is_some() {
            continue;
        }
        let count = 1 + random.below(u32::try_from(case.groups.len()).unwrap() - 1) as usize;
        let tenants = case.network.problem(case.groups[..count].to_vec());
        let most = group_optimum(&tenants, GroupOptions::STANDARD, Patience::ENDLESS).unwrap().rate;
        let part = most * fraction(random.between(1, 4), 4);
        let mut problem = case.network.problem(case.groups.clone());
        for group in 0..count {
            let rate = &part * BigInt::from(case.groups[group].size);
            problem = problem.with_frozen(group, rate).unwrap();
        }
        let [with, without] = [true, false].map(|uses| levels(&problem, uses));
        for (found, uses_symmetry) in [(&with, true), (&without, false)] {
            check_levels(&problem, found);
            check_sent(&problem, found, uses_symmetry);
        }
        assert_eq!(with.rates, without.rates, "case {number}: {case:?}");
        let rate = with.levels[0].rate.to_f64().unwrap();
        let frozen: Vec<Option<f64>> =
            problem.frozen().iter().map(|rate| Some(rate.as_ref()?.to_f64().unwrap())).collect();
        let expected = Program::new(&case.network).solved(&case.groups, &frozen);
        let about = expected.abs().max(part.to_f64().unwrap());
        assert!((rate - expected).abs() < 1e-5 * about, "case {number}: {rate} instead of {expected}, {case:?}");
        solved += 1;
        nothing += u32::from(with.levels[0].rate.is_zero());
    }
    assert!(solved >= 100 && nothing >= 5, "{solved}, {nothing}");
}

/// Every group but one keeps its rate: that one has its own again, and no more.
#[test]
fn a_group_has_its_level_beside_all_others() {
    for number in 0..u64::from(cases(150)) {
        let case = Case::numbered(number);
        if lacking(&case.network, &case.groups).is_some() {
            continue;
        }
        let problem = case.network.problem(case.groups.clone());
        let found = levels(&problem, true);
        for one in 0..case.groups.len() {
            let mut beside = problem.clone();
            for other in (0..case.groups.len()).filter(|&other| other != one) {
                beside = beside.with_frozen(other, found.rates[other].clone()).unwrap();
            }
            assert_eq!(levels(&beside, true).rates, found.rates, "case {number}, group {one}: {case:?}");
        }
    }
}

fn path() -> Network {
    let mut network = Network::nodes(3);
    network.link(0, 1, 2);
    network.link(1, 2, 6);
    network
}

/// An allreduce of two takes its rate of a link each way.
#[test]
fn a_path_leaves_what_tenants_do_not_use() {
    let pair = |a, b| group(GroupKind::AllReduce, vec![a, b], 1);
    let problem = path().problem(vec![pair(0, 2), pair(0, 1), pair(1, 2)]);
    let found = levels(&problem, true);
    assert_eq!(found.rates, [fraction(1, 1), fraction(1, 1), fraction(5, 1)]);
    let with = |rate: BigRational| problem.clone().with_frozen(0, rate);
    let found = levels(&with(fraction(3, 2)).unwrap(), true);
    assert_eq!(found.rates, [fraction(3, 2), fraction(1, 2), fraction(9, 2)]);
    assert_eq!(found.level_of, [None, Some(0), Some(1)]);
    // All of the first link is taken.
    let found = levels(&with(fraction(2, 1)).unwrap(), true);
    assert_eq!(found.rates, [fraction(2, 1), BigRational::zero(), fraction(4, 1)]);
    let one = group_levels(&with(fraction(1, 2)).unwrap(), GroupOptions::STANDARD, 1, Patience::ENDLESS).unwrap();
    assert_eq!((one.levels.len(), &one.levels[0].groups), (1, &vec![1]));
    assert_eq!(one.rates, [fraction(1, 2), fraction(3, 2), fraction(3, 2)]);
}

#[test]
fn rates_that_cannot_be_are_refused() {
    let pair = |a, b| group(GroupKind::AllReduce, vec![a, b], 1);
    let problem = path().problem(vec![pair(0, 2), pair(1, 2)]);
    let frozen = |group: usize, rate: BigRational| problem.clone().with_frozen(group, rate);
    assert_eq!(frozen(2, fraction(1, 1)).unwrap_err(), GroupsError::NoSuchGroup { group: 2, count: 2 });
    let none = BigRational::zero();
    assert_eq!(frozen(1, none.clone()).unwrap_err(), GroupsError::FrozenRate { group: 1, rate: none });
    let solve = |problem| group_levels(&problem, GroupOptions::STANDARD, usize::MAX, Patience::ENDLESS);
    let fast = solve(frozen(0, fraction(5, 2)).unwrap()).unwrap_err();
    assert_eq!(fast, GroupsError::FrozenTooFast { share: fraction(4, 5) });
    assert_eq!(
        fast.to_string(),
        "the frozen groups need more than the network carries; lower their rates to 4/5 of each, or less"
    );
    let both = frozen(0, fraction(1, 1)).unwrap().with_frozen(1, fraction(1, 1)).unwrap();
    assert_eq!(solve(both).unwrap_err(), GroupsError::AllFrozen);
    let optimum = group_optimum(&frozen(1, BigRational::one()).unwrap(), GroupOptions::STANDARD, Patience::ENDLESS);
    assert_eq!(optimum.unwrap_err(), GroupsError::Frozen { group: 1 });
}
