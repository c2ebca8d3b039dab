//! Ladders of straight lines.

use std::convert::Infallible;

use super::*;
use crate::crossover::{Margin, RangeSearch, ranges};
use crate::range::ByteRange;

fn search() -> RangeSearch {
    let sizes = ByteRange::new(1, (1 << 24) + 1).unwrap();
    RangeSearch { sizes, factor: 2, align: 1, margin: Margin::STANDARD }
}

/// The ladder of plans that take `start + bytes · slope`.
fn of_lines(lines: &[(u64, u64)]) -> Ladder {
    let mut ask = |candidate: usize, bytes: u64| {
        let (start, slope) = lines[candidate];
        Ok::<_, Infallible>(start + bytes * slope)
    };
    let mut times = Times::new(lines.len(), &mut ask);
    let found = ranges(&mut times, &search()).unwrap();
    ladder(found, &search().samples(), &mut times).unwrap()
}

/// Whether ranges are rising, disjoint and without gaps over these sizes.
fn covers(ranges: &[PlanRange], sizes: ByteRange) -> bool {
    ranges.first().map(|found| found.range.first()) == Some(sizes.first())
        && ranges.last().map(|found| found.range.end()) == Some(sizes.end())
        && ranges.windows(2).all(|pair| pair[0].range.end() == pair[1].range.first())
}

/// Crossings near 1 Ki, 32 Ki and 1 Mi.
const FOUR: [(u64, u64); 4] = [(100 << 20, 1), (20 << 20, 100), (4 << 20, 900), (1 << 20, 9_000)];

#[test]
fn each_step_has_one_range_less_and_still_covers_everything() {
    let ladder = of_lines(&FOUR);
    let counts: Vec<usize> = ladder.steps.iter().map(Vec::len).collect();
    assert_eq!(counts, [4, 3, 2, 1]);
    assert!(ladder.steps.iter().all(|ranges| covers(ranges, search().sizes)));
    assert_eq!((ladder.at(0).len(), ladder.at(3).len(), ladder.at(9).len()), (4, 1, 1));
    assert!(Ladder::default().at(0).is_empty());
}

#[test]
fn the_range_that_matters_least_is_given_up_first() {
    // The middle plan is never more than a little faster than its neighbours.
    let lines = [(10_000_000, 10), (900_000, 95), (800_000, 200)];
    let ladder = of_lines(&lines);
    let candidates = |step: usize| ladder.at(step).iter().map(|found| found.candidate).collect::<Vec<_>>();
    assert_eq!(candidates(0), [2, 1, 0]);
    assert_eq!(candidates(1), [1, 0]);
}

#[test]
fn what_does_not_double_gets_no_file() {
    let range = |candidate, min, end| PlanRange { candidate, range: ByteRange::new(min, end).unwrap() };
    let given = vec![range(0, 1, 1000), range(1, 1000, 1500), range(2, 1500, 9000)];
    // The sliver's first neighbour is the slower one there.
    let mut ask = |candidate: usize, _: u64| Ok::<_, Infallible>([30, 10, 20][candidate]);
    let found = ladder(given, &[], &mut Times::new(3, &mut ask)).unwrap();
    assert_eq!(found.at(0), [range(0, 1, 1000), range(2, 1000, 9000)]);
    let alone = vec![range(0, 10, 11)];
    let mut ask = |_: usize, _: u64| Ok::<_, Infallible>(1);
    assert_eq!(ladder(alone.clone(), &[], &mut Times::new(1, &mut ask)).unwrap().at(0), alone);
}

#[test]
fn all_together_keep_to_what_is_read() {
    let ladders = [of_lines(&FOUR), of_lines(&[(5, 5)]), Ladder::default(), of_lines(&FOUR[1..])];
    for files_max in 0..10 {
        let steps = fit(&ladders, files_max);
        let files: usize =
            ladders.iter().zip(&steps).map(|(ladder, step)| step.map_or(0, |step| ladder.at(step).len())).sum();
        assert!(files <= files_max, "{files} of {files_max}");
        assert_eq!(files, files_max.min(8), "no file is left unused");
        // Who comes first gets a file first; who needs none takes nobody's place.
        let served: Vec<bool> = steps.iter().map(Option::is_some).collect();
        let expected = [files_max > 0, files_max > 1, files_max > 2, files_max > 2];
        assert_eq!(served, expected, "{files_max}");
    }
    assert_eq!(fit(&[], 4), []);
}
