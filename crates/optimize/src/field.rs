//! The field of 2⁶¹ − 1 elements, a prime: whole numbers without rounding, from which fractions are read back.

use num_integer::Integer;

/// Number of elements.
pub const FIELD: u64 = (1 << 61) - 1;

/// The element that a whole number stands for.
pub fn element(number: i64) -> u64 {
    u64::try_from(i128::from(number).mod_floor(&FIELD.into())).expect("below FIELD")
}

/// The sum.
pub const fn add(left: u64, right: u64) -> u64 {
    let sum = left + right;
    if sum >= FIELD { sum - FIELD } else { sum }
}

/// The product: 2⁶¹ is 1, so the bits from the 61st on are added to those below.
pub fn times(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    let low = u64::try_from(product & u128::from(FIELD)).expect("below 2^61");
    add(low, u64::try_from(product >> 61).expect("below 2^61"))
}

/// `vector − factor · other`.
pub fn subtract(vector: &mut [u64], other: &[u64], factor: u64) {
    for (number, &other) in vector.iter_mut().zip(other).filter(|(_, other)| **other != 0) {
        let product = times(other, factor);
        *number = if *number >= product { *number - product } else { *number + (FIELD - product) };
    }
}

/// By Fermat: the power of two less than the field has elements.
pub fn inverse(number: u64) -> u64 {
    let (mut power, mut base, mut left) = (1, number, FIELD - 2);
    while left > 0 {
        if left % 2 == 1 {
            power = times(power, base);
        }
        base = times(base, base);
        left /= 2;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_added_and_divided() {
        assert_eq!(element(-1), FIELD - 1);
        assert_eq!(add(FIELD - 1, 2), 1);
        assert_eq!(times(FIELD - 1, FIELD - 1), 1);
        assert!([1, 2, 3, FIELD - 1, 1 << 60].into_iter().all(|number| times(number, inverse(number)) == 1));
        let mut vector = [0, 5];
        subtract(&mut vector, &[1, 2], 3);
        assert_eq!(vector, [FIELD - 3, FIELD - 1]);
    }
}
