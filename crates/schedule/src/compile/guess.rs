//! Search in sorted tables of numbers that are mostly as far apart everywhere.

/// How many items have a number below another; numbers never fall along the table.
///
/// The search begins where evenly spread numbers would put it: in tables beyond the caches, that is a look or two at memory instead of one
/// for each halving. O(log items), whatever the numbers.
pub(super) fn count_below<T>(items: &[T], number: impl Fn(&T) -> u64, limit: u64) -> usize {
    let (Some(first), Some(last)) = (items.first(), items.last()) else { return 0 };
    let (first, last) = (number(first), number(last));
    if limit <= first {
        return 0;
    }
    if limit > last {
        return items.len();
    }
    // first < limit <= last.
    let part = u128::from(limit - first) * (items.len() - 1) as u128 / u128::from(last - first);
    let guess = usize::try_from(part).map_or(0, |guess| guess.min(items.len() - 1));
    let (mut low, mut high, mut stride) = (guess, guess, 1);
    // Widened until the number at `low` is below the limit, and that at `high` is not.
    while number(&items[low]) >= limit {
        high = low;
        low = low.saturating_sub(stride);
        stride *= 2;
    }
    stride = 1;
    while number(&items[high]) < limit {
        low = high;
        high = (high + stride).min(items.len() - 1);
        stride *= 2;
    }
    low + items[low..high].partition_point(|item| number(item) < limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However unevenly they are spread, and where several are equal.
        #[test]
        fn a_guess_finds_what_halving_does(
            mut numbers in prop::collection::vec(prop_oneof![0..20_u64, 0..1_000_u64, any::<u64>()], 0..80),
            limit in prop_oneof![0..20_u64, 0..1_000_u64, any::<u64>()],
        ) {
            numbers.sort_unstable();
            for limit in numbers.iter().copied().chain([limit, 0, u64::MAX]) {
                prop_assert_eq!(count_below(&numbers, |&number| number, limit), numbers.partition_point(|&number| number < limit));
            }
        }
    }
}
