//! Ranges of straight lines, whose crossings are known, and of times without any order.

use std::convert::Infallible;

use proptest::prelude::*;

use super::*;

fn sizes(min: u64, last: u64) -> ByteRange {
    ByteRange::new(min, last + 1).unwrap()
}

/// Ranges of plans that take `start + bytes · slope`.
fn of_lines(lines: &[(u64, u64)], search: &RangeSearch) -> Vec<PlanRange> {
    let mut ask = |candidate: usize, bytes: u64| {
        let (start, slope) = lines[candidate];
        Ok::<_, Infallible>(start + bytes * slope)
    };
    ranges(&mut Times::new(lines.len(), &mut ask), search).unwrap()
}

fn plain(found: &[PlanRange]) -> Vec<(usize, u64, u64)> {
    found.iter().map(|found| (found.candidate, found.range.first(), found.range.end())).collect()
}

#[test]
fn a_crossing_is_found_to_the_byte() {
    // 1000 + 2b is less than 100 + 5b for b > 300, and as much at 300, where the later one stays.
    let search = RangeSearch { sizes: sizes(1, 1 << 20), factor: 4, align: 1, margin: Margin::NONE };
    let lines = [(1000, 2), (100, 5)];
    assert_eq!(plain(&of_lines(&lines, &search)), [(1, 1, 300), (0, 300, (1 << 20) + 1)]);
    // A margin decides whether there is a change, not where.
    let tenth = RangeSearch { margin: Margin::new(1, 10).unwrap(), ..search };
    assert_eq!(plain(&of_lines(&lines, &tenth)), [(1, 1, 300), (0, 300, (1 << 20) + 1)]);
    let tenfold = RangeSearch { margin: Margin::new(10, 1).unwrap(), ..search };
    assert_eq!(plain(&of_lines(&lines, &tenfold)), [(0, 1, (1 << 20) + 1)]);
    let aligned = RangeSearch { align: 64, ..search };
    assert_eq!(plain(&of_lines(&lines, &aligned)), [(1, 1, 320), (0, 320, (1 << 20) + 1)]);
}

#[test]
fn one_plan_serves_all_where_none_beats_it() {
    let search = RangeSearch { sizes: sizes(1024, 4096), factor: 4, align: 1, margin: Margin::STANDARD };
    assert_eq!(plain(&of_lines(&[(10, 3), (10, 3), (9, 3)], &search)), [(2, 1024, 4097)]);
    assert_eq!(plain(&of_lines(&[(10, 3), (10, 3)], &search)), [(0, 1024, 4097)]);
    assert_eq!(plain(&of_lines(&[], &search)), []);
    let single = RangeSearch { sizes: sizes(7, 7), ..search };
    assert_eq!(plain(&of_lines(&[(10, 3), (1, 3)], &single)), [(1, 7, 8)]);
}

#[test]
fn what_is_faster_by_less_than_the_margin_does_not_take_over() {
    let search = RangeSearch { sizes: sizes(1, 1 << 20), factor: 2, align: 1, margin: Margin::STANDARD };
    // 4 % faster for small messages.
    assert_eq!(plain(&of_lines(&[(100, 1), (96, 2)], &search)), [(0, 1, (1 << 20) + 1)]);
    assert_eq!(of_lines(&[(100, 1), (90, 2)], &search).len(), 2);
    assert!(Margin::NONE.is_beaten(10, 9) && !Margin::NONE.is_beaten(10, 10) && !Margin::NONE.is_beaten(0, 0));
    assert!(Margin::STANDARD.is_beaten(21, 20) && !Margin::STANDARD.is_beaten(20, 20));
    assert!(Margin::STANDARD.is_beaten(u64::MAX, 1));
}

#[test]
fn a_time_is_asked_for_once() {
    let mut asked = Vec::new();
    let mut ask = |candidate: usize, bytes: u64| {
        asked.push((candidate, bytes));
        Ok::<_, Infallible>(if candidate == 0 { 5000 + bytes } else { 3 * bytes })
    };
    let search = RangeSearch { sizes: sizes(1, 1 << 30), factor: 4, align: 1, margin: Margin::NONE };
    let mut times = Times::new(2, &mut ask);
    assert_eq!(plain(&ranges(&mut times, &search).unwrap()), [(1, 1, 2500), (0, 2500, (1 << 30) + 1)]);
    let mut once = asked.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), asked.len());
    assert!(asked.len() < 80, "{} times were asked for", asked.len());
}

#[test]
fn an_error_ends_the_search() {
    let mut ask = |_: usize, bytes: u64| if bytes > 100 { Ok(bytes) } else { Err("too late") };
    let search = RangeSearch { sizes: sizes(1, 1 << 20), factor: 4, align: 1, margin: Margin::NONE };
    assert_eq!(ranges(&mut Times::new(2, &mut ask), &search), Err("too late"));
}

proptest! {
    /// Whatever the times are: ranges cover all sizes once, and at each sample nobody beats the plan of the range by more
    /// than the margin.
    #[test]
    fn ranges_cover_everything_and_keep_the_margin(
        lines in prop::collection::vec((0_u64..1_000_000, 1_u64..200), 1..6),
        bumps in prop::collection::vec(0_u64..50_000, 1..8),
        min in 1_u64..5000,
        span in 0_u64..10_000_000,
        factor in 2_u64..6,
        align in prop::sample::select(vec![1_u64, 3, 64, 4096]),
        margin in (0_u32..3, 8_u32..30),
    ) {
        let margin = Margin::new(margin.0, margin.1).unwrap();
        let search = RangeSearch { sizes: sizes(min, min + span), factor, align, margin };
        let time = |candidate: usize, bytes: u64| {
            let (start, slope) = lines[candidate];
            let bump = bumps[(usize::try_from(bytes.ilog2()).unwrap() + candidate) % bumps.len()];
            start + bytes * slope + bump
        };
        let mut ask = |candidate: usize, bytes: u64| Ok::<_, Infallible>(time(candidate, bytes));
        let found = ranges(&mut Times::new(lines.len(), &mut ask), &search).unwrap();
        prop_assert_eq!(found.first().map(|first| first.range.first()), Some(min));
        prop_assert_eq!(found.last().map(|last| last.range.last()), Some(min + span));
        for pair in found.windows(2) {
            prop_assert_eq!(pair[0].range.end(), pair[1].range.first());
            prop_assert_ne!(pair[0].candidate, pair[1].candidate);
            prop_assert!(pair[1].range.first().is_multiple_of(align));
        }
        if align == 1 {
            for bytes in search.samples() {
                let serving = found.iter().find(|found| found.range.contains(bytes)).unwrap().candidate;
                for other in 0..lines.len() {
                    prop_assert!(!margin.is_beaten(time(serving, bytes), time(other, bytes)), "{bytes} {serving} {other}");
                }
            }
        }
    }
}
