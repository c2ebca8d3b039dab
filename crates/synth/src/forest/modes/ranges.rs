//! For how much of the demand trees may enter a box once.

use num_rational::BigRational;
use num_traits::{One, Zero};

use super::need::Need;

/// For which part of all trees λ they may enter a box once, while the others enter it at every rank: from, to.
///
/// With m for the trees from outside the box, a for what those that enter at every unit need of the links inside, if they
/// are all trees, and sums over its units,
///
/// * NICs suffice if `λ·m + (1−λ)·Σ(n − a) ≤ ΣX`, and at each unit `(1−λ)·(n − a) ≤ X`;
/// * links inside suffice if `λ·(Σn − m) ≤ Σ(I − (1−λ)·a)`.
pub(super) fn range(needs: &[Need], across: &[BigRational], entering: i128) -> (BigRational, BigRational) {
    let whole = |value: i128| BigRational::from_integer(value.into());
    let sum = |of: &dyn Fn(&Need) -> i128| whole(needs.iter().map(of).sum());
    let entering = whole(entering);
    let across_sum: BigRational = across.iter().sum();
    let wanted = sum(&|need| need.wanted);
    let direct_sum = &wanted - &across_sum;
    let mut least = BigRational::zero();
    if direct_sum > entering {
        least = least.max((&direct_sum - sum(&|need| need.outer)) / (&direct_sum - &entering));
    }
    for (need, across) in needs.iter().zip(across) {
        let direct = whole(need.wanted) - across;
        if direct > whole(need.outer) {
            least = least.max(BigRational::one() - whole(need.outer) / direct);
        }
    }
    let spread = wanted - entering - &across_sum;
    let inner = sum(&|need| need.inner) - across_sum;
    let most = if spread > inner { inner / spread } else { BigRational::one() };
    (least, most.max(BigRational::zero()))
}

/// The ranges without what is beyond the last multiple of `1/count` in each; `None` if one holds no such multiple.
pub(super) fn scaled_to_parts(
    ranges: &[(BigRational, BigRational)],
    count: u64,
) -> Option<Vec<(BigRational, BigRational)>> {
    let count = BigRational::from_integer(count.into());
    let shorten = |(from, to): &(BigRational, BigRational)| {
        let last = (to * &count).floor() / &count;
        (last >= *from).then(|| (from.clone(), last))
    };
    ranges.iter().map(shorten).collect()
}

/// As few values as there can be such that one lies in each of the ranges, in ascending order.
pub(super) fn common_values(ranges: &[(BigRational, BigRational)]) -> Vec<BigRational> {
    let mut by_end: Vec<&(BigRational, BigRational)> = ranges.iter().collect();
    by_end.sort_by(|one, other| one.1.cmp(&other.1));
    let mut values: Vec<BigRational> = Vec::new();
    for (from, to) in by_end {
        if values.last().is_none_or(|value| value < from) {
            values.push(to.clone());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(numerator: i64, denominator: i64) -> BigRational {
        BigRational::new(numerator.into(), denominator.into())
    }

    /// Two boxes of two ranks with one tree each: 3 to take for each rank, 2 of them from outside the box.
    #[test]
    fn a_box_needs_links_inside_for_what_enters_once() {
        let needs = |inner: i128, outer: i128| [0, 1].map(|unit| Need { unit, wanted: 3, inner, outer });
        let none = [fraction(0, 1), fraction(0, 1)];
        // 4 of the 6 inside if all enter once.
        assert_eq!(range(&needs(2, 1), &none, 2), (fraction(1, 1), fraction(1, 1)));
        // 2 inside, so half; the NICs take 4, so half at least.
        assert_eq!(range(&needs(1, 2), &none, 2), (fraction(1, 2), fraction(1, 2)));
        assert_eq!(range(&needs(1, 9), &none, 2), (fraction(0, 1), fraction(1, 2)));
        // All of what is inside connects what NICs do not.
        let all = [fraction(1, 1), fraction(1, 1)];
        assert_eq!(range(&needs(1, 2), &all, 2).1, fraction(0, 1));
    }

    #[test]
    fn few_values_serve_all_ranges() {
        let range = |from: (i64, i64), to: (i64, i64)| (fraction(from.0, from.1), fraction(to.0, to.1));
        let ranges = [range((0, 1), (1, 2)), range((1, 3), (3, 4)), range((2, 3), (1, 1))];
        assert_eq!(common_values(&ranges), [fraction(1, 2), fraction(1, 1)]);
        assert_eq!(common_values(&scaled_to_parts(&ranges, 3).unwrap()), [fraction(1, 3), fraction(1, 1)]);
        assert!(scaled_to_parts(&[range((2, 5), (3, 5))], 3).is_none());
    }
}
