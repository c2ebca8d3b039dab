//! The fastest of several networks by amount of data.
//!
//! A collective of M bytes takes `steps·α + weight·M/B`: a line in `x = M/(α·B)` when time is counted in α. What is least at
//! each x is the lower envelope of these lines, and where it bends is a fraction that depends on neither α nor B.

use canopy_optimize::Fraction;

/// Cost of one collective on one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// In units of α.
    pub steps: u32,
    /// In units of M/B.
    pub weight: Fraction,
}

/// A network that is fastest from some amount of data on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Position of its line.
    pub index: usize,
    /// It is fastest from this M/(α·B) up to that of the next one.
    pub from: Fraction,
}

/// The fastest for every amount of data, by rising amounts; the first from 0 on. Of equal lines the first. None for no lines
/// or numbers that do not fit 128 bits. O(lines²).
pub fn choices(lines: &[Line]) -> Vec<Choice> {
    let fastest = |at: usize| (lines[at].steps, lines[at].weight, at);
    let Some(mut now) = (0..lines.len()).min_by_key(|&at| fastest(at)) else { return Vec::new() };
    let mut found = vec![Choice { index: now, from: Fraction::ZERO }];
    loop {
        // Lighter ones are slower up to where they cross; the nearest crossing decides, then the least weight.
        let lighter = (0..lines.len()).filter(|&at| lines[at].weight < lines[now].weight);
        let crossing = |at: usize| Some((crossing(lines[now], lines[at])?, lines[at].weight, at));
        let Some((from, _, next)) = lighter.filter_map(crossing).min() else { return found };
        found.push(Choice { index: next, from });
        now = next;
    }
}

/// Where the time on the heavier line comes to that on the lighter one.
fn crossing(heavier: Line, lighter: Line) -> Option<Fraction> {
    let steps = u128::from(lighter.steps.saturating_sub(heavier.steps));
    let (top, bottom) = (heavier.weight, lighter.weight);
    let left = top.numerator.checked_mul(bottom.denominator)?;
    let right = bottom.numerator.checked_mul(top.denominator)?;
    let both = top.denominator.checked_mul(bottom.denominator)?;
    Fraction::new(steps.checked_mul(both)?, left.checked_sub(right)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(steps: u32, numerator: u128, denominator: u128) -> Line {
        Line { steps, weight: Fraction::new(numerator, denominator).unwrap() }
    }

    /// Table 3.4: allreduce on 1,024 nodes. The second is better than the first from 3·256/84 on, the third than it from
    /// 3·256 on.
    #[test]
    fn published_networks_cross_where_their_times_are_equal() {
        let found = choices(&[line(10, 341, 128), line(16, 257, 128), line(22, 2, 1)]);
        let from = |numerator, denominator| Fraction::new(numerator, denominator).unwrap();
        let expected = [(0, Fraction::ZERO), (1, from(64, 7)), (2, from(768, 1))];
        assert_eq!(found, expected.map(|(index, from)| Choice { index, from }));
        assert_eq!(choices(&[]), []);
    }

    proptest! {
        /// At every amount the one that is chosen takes no longer than any other.
        #[test]
        fn what_is_chosen_is_fastest(
            all in prop::collection::vec((0_u32..30, 1_u128..40, 1_u128..20), 1..12), top in 0_u128..200, bottom in 1_u128..20,
        ) {
            let lines: Vec<Line> = all.into_iter().map(|(steps, numerator, denominator)| line(steps, numerator, denominator)).collect();
            let x = Fraction::new(top, bottom).unwrap();
            let found = choices(&lines);
            let chosen = found.iter().rev().find(|choice| choice.from <= x).unwrap().index;
            let time = |line: &Line| {
                let waits = Fraction::new(line.steps.into(), 1).unwrap();
                waits.checked_add(Fraction::new(line.weight.numerator * top, line.weight.denominator * bottom).unwrap()).unwrap()
            };
            prop_assert_eq!(time(&lines[chosen]), lines.iter().map(time).min().unwrap());
            prop_assert!(found.windows(2).all(|pair| pair[0].from <= pair[1].from));
        }
    }
}
