//! What the text on FAST (arXiv 2505.09764) states, on networks small enough to add up by hand.

use canopy_moving::{Fabric, Matrix, StagedError, Tiers, bound, check, plan, staged};
use canopy_optimize::Fraction;

fn seconds(time: u128) -> Fraction {
    Fraction::new(time, 1).expect("a denominator")
}

/// Two boxes of two ranks. All that rank 0 has is for rank 2: half of it moves to rank 1, crosses, and moves to rank 2.
#[test]
fn stages_balance_exchange_and_distribute() {
    let tiers = Tiers::even(Fabric::Rails, 2, 2, 10, 1).unwrap();
    let mut bytes = vec![0; 16];
    bytes[2] = 200;
    let matrix = Matrix::new(4, bytes).unwrap();
    let stages = staged(&tiers, &matrix).unwrap();
    assert_eq!((stages.time, stages.balance, stages.stages), (seconds(10 + 100 + 10), seconds(10), 1));
    // Without stages, the switches work meanwhile.
    let planned = plan(&tiers, &matrix, None).unwrap();
    assert_eq!(check(&tiers, &matrix, &planned.parts).unwrap().time, seconds(100));
    assert_eq!(bound(&tiers, &matrix).unwrap().time, seconds(100));
}

/// Of an even exchange, the matchings between boxes take as long as each box needs: stages lose nothing there but the
/// last distribution.
#[test]
fn an_even_exchange_takes_a_stage_for_each_other_box() {
    let tiers = Tiers::even(Fabric::Full, 4, 2, 100, 1).unwrap();
    let stages = staged(&tiers, &Matrix::new(8, vec![50; 64]).unwrap()).unwrap();
    assert_eq!((stages.stages, stages.balance), (3, seconds(0)));
    assert_eq!(stages.time, Fraction::new(601, 2).unwrap());
}

/// A box that all others send to is busy all the time: as many stages as senders, and no more time than its NICs take.
#[test]
fn incast_is_taken_apart() {
    let tiers = Tiers::even(Fabric::Rails, 3, 1, 10, 1).unwrap();
    let stages = staged(&tiers, &Matrix::new(3, vec![0, 0, 30, 0, 0, 20, 5, 0, 0]).unwrap()).unwrap();
    assert_eq!((stages.time, stages.balance), (seconds(50), seconds(0)));
    assert!(stages.stages >= 2);
}

#[test]
fn what_cannot_be_staged_is_refused() {
    let tiers = Tiers::even(Fabric::Rails, 2, 1, 1, 0).unwrap();
    let matrix = Matrix::new(2, vec![0, 1, 0, 0]).unwrap();
    assert_eq!(staged(&tiers, &matrix), Err(StagedError::NoRail { from: 0, to: 1 }));
    let many = Tiers::even(Fabric::Rails, 129, 1, 1, 1).unwrap();
    assert_eq!(staged(&many, &Matrix::new(129, vec![0; 129 * 129]).unwrap()), Err(StagedError::Boxes { boxes: 129 }));
    assert_eq!(staged(&many, &matrix), Err(StagedError::Ranks { ranks: 129, matrix: 2 }));
}
