//! Plans of small networks.

use canopy_optimize::Fraction;

use super::*;
use crate::bound::bound;
use crate::check::check;
use crate::tiers::Rates;

fn time(tiers: &Tiers, matrix: &Matrix) -> (Fraction, Fraction) {
    let planned = plan(tiers, matrix, None).unwrap();
    (check(tiers, matrix, &planned.parts).unwrap().time, bound(tiers, matrix).unwrap().time)
}

fn fraction(numerator: u128, denominator: u128) -> Fraction {
    Fraction::new(numerator, denominator).unwrap()
}

/// All traffic is that of one pair of ranks: all NICs of both boxes carry it.
#[test]
fn a_single_pair_takes_all_rails() {
    for fabric in [Fabric::Rails, Fabric::Full] {
        let tiers = Tiers::even(fabric, 2, 4, 9, 1).unwrap();
        let mut bytes = vec![0; 64];
        bytes[7] = 4_000;
        assert_eq!(time(&tiers, &Matrix::new(8, bytes).unwrap()), (fraction(1_000, 1), fraction(1_000, 1)));
    }
}

/// The sender's link to the switch binds: what leaves it passes that, and its own NIC.
#[test]
fn a_narrow_link_to_the_switch_binds() {
    let mut rates = Tiers::even(Fabric::Rails, 2, 4, 9, 3).unwrap().rates().clone();
    rates.inner_out[0] = 2;
    let tiers = Tiers::new(Fabric::Rails, 4, rates).unwrap();
    let mut bytes = vec![0; 64];
    bytes[7] = 5_000;
    let (time, bound) = time(&tiers, &Matrix::new(8, bytes).unwrap());
    assert_eq!(bound, fraction(1_000, 1));
    assert!(time.to_float() <= 1_000.0 * 1.001, "{time:?}");
}

/// One box sends everything, one of its four NICs is dead: the other three take it, on both ends.
#[test]
fn a_dead_nic_leaves_the_others() {
    for fabric in [Fabric::Rails, Fabric::Full] {
        let mut rates = Tiers::even(fabric, 3, 4, 90, 1).unwrap().rates().clone();
        rates.outer_out[1] = 0;
        let tiers = Tiers::new(fabric, 4, rates).unwrap();
        let bytes = (0..144).map(|entry| u64::from(entry / 12 < 4 && entry % 12 >= 4) * 3_000);
        let (time, bound) = time(&tiers, &Matrix::new(12, bytes.collect()).unwrap());
        assert_eq!(bound, fraction(32_000, 1));
        assert!(time.to_float() < 32_001.0, "{time:?}");
    }
}

#[test]
fn without_traffic_there_is_nothing_to_do() {
    for fabric in [Fabric::Rails, Fabric::Full] {
        let tiers = Tiers::even(fabric, 2, 2, 1, 0).unwrap();
        let matrix = Matrix::new(4, vec![0; 16]).unwrap();
        assert_eq!(plan(&tiers, &matrix, None).unwrap().parts, []);
        assert_eq!(time(&tiers, &matrix), (Fraction::ZERO, Fraction::ZERO));
    }
}

#[test]
fn boxes_without_a_common_rail_are_named() {
    let all = |rate: u64| vec![rate; 4];
    let rates = Rates { inner_out: all(9), inner_in: all(9), outer_out: vec![1, 0, 1, 1], outer_in: vec![1, 1, 0, 1] };
    let tiers = Tiers::new(Fabric::Rails, 2, rates.clone()).unwrap();
    let mut bytes = vec![0; 16];
    bytes[2] = 1;
    let matrix = Matrix::new(4, bytes).unwrap();
    let text = "rank 0 cannot reach rank 2: no live NICs join their boxes; mend one, or send nothing there";
    let error = plan(&tiers, &matrix, None).unwrap_err();
    assert_eq!((error, error.to_string().as_str()), (PlanError::NoWay { from: 0, to: 2 }, text));
    assert_eq!(bound(&tiers, &matrix).map_err(|error| error.to_string()), Err(text.to_owned()));
    let error = plan_at_ends(&tiers, &matrix, None).unwrap_err();
    let text = "no live NICs join box 0 to box 1 directly; mend one, or send nothing from one to the other";
    assert_eq!((error, error.to_string().as_str()), (PlanError::NoRail { from: 0, to: 1 }, text));
    // One fabric joins any two.
    let tiers = Tiers::new(Fabric::Full, 2, rates).unwrap();
    assert_eq!(time(&tiers, &matrix), (fraction(1, 1), fraction(1, 1)));
}

#[test]
fn a_state_of_another_network_is_ignored() {
    let matrix = |ranks: u32| Matrix::new(ranks, (0..u64::from(ranks * ranks)).collect()).unwrap();
    let small = Tiers::even(Fabric::Rails, 2, 2, 9, 1).unwrap();
    let large = Tiers::even(Fabric::Rails, 2, 4, 9, 1).unwrap();
    let state = plan(&small, &matrix(4), None).unwrap().state;
    assert_eq!(plan(&large, &matrix(8), Some(&state)), plan(&large, &matrix(8), None));
    assert_eq!(plan(&small, &matrix(8), None), Err(PlanError::Ranks { ranks: 4, matrix: 8 }));
}
