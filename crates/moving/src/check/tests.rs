//! Broken routes are found out.

use super::*;
use crate::tiers::Rates;

/// Two boxes of two ranks; the NIC of rank 3 receives nothing.
fn tiers(fabric: Fabric) -> Tiers {
    let all = |rate: u64| vec![rate; 4];
    let outer_in = vec![1, 1, 1, 0];
    Tiers::new(fabric, 2, Rates { inner_out: all(9), inner_in: all(9), outer_out: all(1), outer_in }).unwrap()
}

/// Rank 0 sends 6 bytes to rank 1 and 4 to rank 3; rank 2 keeps 5.
fn matrix() -> Matrix {
    Matrix::new(4, vec![0, 6, 0, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0]).unwrap()
}

fn across(from: u32, to: u32, leaves: u32, enters: u32, bytes: u64) -> Part {
    Part { from, to, route: Route::Across { leaves, enters }, bytes }
}

fn parts() -> Vec<Part> {
    vec![Part { from: 0, to: 1, route: Route::Inside, bytes: 6 }, across(0, 3, 0, 2, 4)]
}

#[track_caller]
fn refused(fabric: Fabric, parts: &[Part], expected: &str) {
    let found = check(&tiers(fabric), &matrix(), parts).map_err(|error| error.to_string());
    assert_eq!(found.map(|checked| checked.time), Err(expected.to_owned()));
}

#[test]
fn loads_add_up_link_by_link() {
    let checked = check(&tiers(Fabric::Rails), &matrix(), &parts()).unwrap();
    let expected = Loads {
        inner_out: vec![6, 0, 4, 0],
        inner_in: vec![0, 6, 0, 4],
        outer_out: vec![4, 0, 0, 0],
        outer_in: vec![0, 0, 4, 0],
        pairs: Vec::new(),
    };
    assert_eq!(checked.loads, expected);
    assert_eq!((checked.time, checked.busiest), (Fraction::new(4, 1).unwrap(), Some((LinkKind::OuterOut, 0))));
    assert_eq!(ratio(Fraction::new(1, 1).unwrap(), checked.time), Fraction::new(1, 4));
    assert_eq!(ratio(Fraction::ZERO, Fraction::ZERO), Fraction::new(1, 1));
}

#[test]
fn each_fault_is_named() {
    let inside = |from, to, bytes| Part { from, to, route: Route::Inside, bytes };
    let with = |part: Part| [parts(), vec![part]].concat();
    refused(Fabric::Rails, &parts()[..1], "rank 3 gets 0 bytes of rank 0 instead of 4");
    refused(Fabric::Rails, &with(parts().swap_remove(0)), "rank 1 gets 12 bytes of rank 0 instead of 6");
    refused(Fabric::Rails, &with(across(2, 0, 2, 0, 1)), "rank 0 gets 1 bytes of rank 2 instead of 0");
    refused(Fabric::Rails, &with(inside(0, 4, 1)), "parts[2] names rank 4, and there are 4, numbered from 0");
    refused(Fabric::Rails, &with(across(0, 2, u32::MAX, 2, 1)), {
        "parts[2] names rank 4294967295, and there are 4, numbered from 0"
    });
    refused(Fabric::Rails, &with(inside(0, 1, 0)), "parts[2] has 0 bytes; leave it out");
    let outside = "parts[2] is inside a box, and ranks 0 and 2 are not; state an outer route";
    refused(Fabric::Rails, &with(inside(0, 2, 1)), outside);
    let foreign = "parts[2] uses the NIC of rank 2, which is not in the box of rank 0; take one of that box";
    refused(Fabric::Rails, &with(across(0, 2, 2, 2, 1)), foreign);
    let same = "parts[2] leaves and enters the same box; bytes for it take its switch";
    refused(Fabric::Rails, &with(across(0, 1, 0, 1, 1)), same);
    let other = "parts[2] changes rails between the NICs of ranks 1 and 2; take NICs at the same place";
    refused(Fabric::Rails, &with(across(0, 2, 1, 2, 1)), other);
    refused(Fabric::Rails, &with(across(1, 3, 1, 3, 1)), "parts[2] uses the dead NIC of rank 3; take another one");
    refused(Fabric::Full, &with(across(1, 3, 1, 2, u64::MAX)), {
        "rank 3 gets 18446744073709551615 bytes of rank 1 instead of 0"
    });
}
