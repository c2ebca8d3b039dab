//! Solutions of homogeneous equations with small whole coefficients, in fractions.
//!
//! Computed in a field and read back as the fractions of small numbers that they stand for, where
//! there are some: they may be wrong, and whoever uses them finds out.

use num_integer::Integer;

use crate::field::{FIELD, add, element, inverse, subtract, times};
use crate::stop::{Stop, Stopped};

/// Greatest numerator and denominator: twice their product is below [`FIELD`], so that no two such fractions are one element.
const PART_MAX: i128 = 1 << 29;

/// A fraction in lowest terms, the denominator positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) numerator: i128,
    pub(crate) denominator: i128,
}

/// A vector and a position at which it is 1.
pub(crate) type Spanning = (usize, Vec<Part>);

/// All vectors that satisfy some equations.
pub(crate) struct Nullspace {
    /// Vectors that span it.
    basis: Vec<Vec<u64>>,
}

impl Nullspace {
    /// All vectors of so many numbers.
    pub(crate) fn new(width: usize) -> Self {
        let unit = |position| (0..width).map(|other| u64::from(other == position)).collect();
        Self { basis: (0..width).map(unit).collect() }
    }

    /// How many numbers can be chosen freely.
    pub(crate) fn dimension(&self) -> usize {
        self.basis.len()
    }

    /// Keeps the vectors for which the sum of these multiples of their numbers is zero.
    ///
    /// * **Cost.** O(dimension · terms), and O(dimension · width) where the equation is a new one.
    pub(crate) fn require(&mut self, terms: &[(usize, i64)]) {
        let terms: Vec<(usize, u64)> = terms.iter().map(|&(position, factor)| (position, element(factor))).collect();
        let sum = |vector: &Vec<u64>| terms.iter().fold(0, |sum, &(at, factor)| add(sum, times(vector[at], factor)));
        let sums: Vec<u64> = self.basis.iter().map(sum).collect();
        let Some(last) = sums.iter().rposition(|&sum| sum != 0) else { return };
        let out = self.basis.swap_remove(last);
        let mut sums = sums;
        let divisor = inverse(sums.swap_remove(last));
        for (vector, sum) in self.basis.iter_mut().zip(sums).filter(|&(_, sum)| sum != 0) {
            subtract(vector, &out, times(sum, divisor));
        }
    }

    /// Vectors that span it, each with a position at which it is 1 and all others 0, ascending; `None` where one has numbers
    /// that are no fractions of small ones.
    ///
    /// * **Errors.** Stopped. **Cost.** O(dimension² · width).
    pub(crate) fn reduced(mut self, stop: &dyn Stop) -> Result<Option<Vec<Spanning>>, Stopped> {
        let mut positions = Vec::new();
        let width = self.basis.first().map_or(0, Vec::len);
        for position in 0..width {
            let done = positions.len();
            let Some(row) = (done..self.basis.len()).find(|&row| self.basis[row][position] != 0) else { continue };
            if stop.is_requested() {
                return Err(Stopped);
            }
            self.basis.swap(done, row);
            let factor = inverse(self.basis[done][position]);
            let pivot: Vec<u64> = self.basis[done].iter().map(|&number| times(number, factor)).collect();
            for vector in self.basis.iter_mut().filter(|vector| vector[position] != 0) {
                let factor = vector[position];
                subtract(vector, &pivot, factor);
            }
            self.basis[done] = pivot;
            positions.push(position);
        }
        let read = |(position, vector): (usize, Vec<u64>)| {
            Some((position, vector.into_iter().map(part).collect::<Option<Vec<Part>>>()?))
        };
        Ok(positions.into_iter().zip(self.basis).map(read).collect())
    }
}

/// The vector of whole numbers whose numbers at the free positions of `vectors` are these times a common factor: the vector and
/// the factor; `None` where they do not fit.
pub(crate) fn combined(vectors: &[Spanning], free: &[i128]) -> Option<(Vec<i128>, i128)> {
    let mut common = 1_i128;
    for part in vectors.iter().flat_map(|(_, vector)| vector) {
        common = common.checked_mul(part.denominator / common.gcd(&part.denominator))?;
    }
    let width = vectors.first().map_or(0, |(_, vector)| vector.len());
    let mut sums = vec![0_i128; width];
    for ((_, vector), &free) in vectors.iter().zip(free) {
        for (sum, part) in sums.iter_mut().zip(vector) {
            let term = part.numerator.checked_mul(common / part.denominator)?.checked_mul(free)?;
            *sum = sum.checked_add(term)?;
        }
    }
    Some((sums, common))
}

/// Many sparse equations: those that say that two numbers are equal, or one is zero, leave fewer numbers to the others.
pub(crate) struct Equations {
    width: usize,
    all: Vec<Vec<(usize, i64)>>,
}

/// All vectors that satisfy equations.
pub(crate) struct Solutions {
    /// By position, which of the numbers that are left it has; `None` where it is zero.
    class_of: Vec<Option<usize>>,
    /// Of the numbers that are left, the first position that has each.
    first: Vec<usize>,
    vectors: Vec<Spanning>,
}

impl Equations {
    /// None yet, of so many numbers.
    pub(crate) const fn new(width: usize) -> Self {
        Self { width, all: Vec::new() }
    }

    /// The sum of these multiples of numbers is zero.
    pub(crate) fn require(&mut self, terms: Vec<(usize, i64)>) {
        self.all.push(terms);
    }

    /// Their solutions; `None` where more than `width_max` numbers are left, only zeros, or numbers that are no fractions of
    /// small ones.
    pub(crate) fn solved(mut self, width_max: usize, stop: &dyn Stop) -> Result<Option<Solutions>, Stopped> {
        // By position, an earlier one that is equal; `None` for zero.
        let mut equal: Vec<Option<usize>> = (0..self.width).map(Some).collect();
        let find = |equal: &mut Vec<Option<usize>>, mut position: usize| loop {
            match equal[position] {
                Some(other) if other != position => {
                    equal[position] = equal[other];
                    position = other;
                }
                found => return found,
            }
        };
        loop {
            if stop.is_requested() {
                return Err(Stopped);
            }
            let before = self.all.len();
            let mut left = Vec::with_capacity(before);
            for terms in self.all {
                let found = terms.into_iter().filter_map(|(at, factor)| Some((find(&mut equal, at)?, factor)));
                let mut found: Vec<(usize, i64)> = found.collect();
                found.sort_unstable();
                found.dedup_by(|next, kept| {
                    let is_same = next.0 == kept.0;
                    kept.1 += if is_same { next.1 } else { 0 };
                    is_same
                });
                found.retain(|&(_, factor)| factor != 0);
                match found.as_slice() {
                    [] => {}
                    &[(position, _)] => equal[position] = None,
                    &[(first, one), (second, other)] if one + other == 0 => equal[second] = Some(first),
                    _ => left.push(found),
                }
            }
            self.all = left;
            if self.all.len() == before {
                break;
            }
        }
        let mut first = Vec::new();
        let mut number = vec![None; self.width];
        let mut class_of = Vec::with_capacity(self.width);
        for position in 0..self.width {
            class_of.push(find(&mut equal, position).map(|root| {
                *number[root].get_or_insert_with(|| {
                    first.push(position);
                    first.len() - 1
                })
            }));
        }
        if first.len() > width_max {
            return Ok(None);
        }
        let mut space = Nullspace::new(first.len());
        for terms in self.all {
            if stop.is_requested() {
                return Err(Stopped);
            }
            let class = |(at, factor): (usize, i64)| Some((class_of[at]?, factor));
            space.require(&terms.into_iter().filter_map(class).collect::<Vec<_>>());
        }
        let vectors = space.reduced(stop)?.filter(|vectors| !vectors.is_empty());
        Ok(vectors.map(|vectors| Solutions { class_of, first, vectors }))
    }
}

impl Solutions {
    /// Positions whose numbers can be chosen freely, ascending.
    pub(crate) fn free(&self) -> Vec<usize> {
        self.vectors.iter().map(|&(class, _)| self.first[class]).collect()
    }

    /// The solution that has these numbers at the free positions, times a common factor; `None` where it does not fit.
    pub(crate) fn with(&self, free: &[i128]) -> Option<(Vec<i128>, i128)> {
        let (sums, common) = combined(&self.vectors, free)?;
        Some((self.class_of.iter().map(|class| class.map_or(0, |class| sums[class])).collect(), common))
    }
}

/// The fraction of small numbers that an element stands for: the first remainder of Euclid's algorithm that is small.
///
/// * **Source.** Wang 1981, rational reconstruction.
fn part(number: u64) -> Option<Part> {
    let (mut before, mut rest) = (i128::from(FIELD), i128::from(number));
    let (mut before_factor, mut factor) = (0_i128, 1_i128);
    while rest > PART_MAX {
        let whole = before / rest;
        (before, rest) = (rest, before - whole * rest);
        (before_factor, factor) = (factor, before_factor - whole * factor);
    }
    let sign = factor.signum();
    let (numerator, denominator) = (rest * sign, factor * sign);
    (denominator <= PART_MAX && numerator.gcd(&denominator) == 1).then_some(Part { numerator, denominator })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Never;
    use proptest::prelude::*;

    #[test]
    fn one_solution_is_found_in_lowest_terms() {
        // 3a = 2b, 7b = 5c: c = 1, b = 5/7, a = 10/21.
        let mut space = Nullspace::new(3);
        space.require(&[(0, 3), (1, -2)]);
        space.require(&[(1, 7), (2, -5)]);
        space.require(&[(0, 21), (2, -10)]);
        assert_eq!(space.dimension(), 1);
        let parts =
            |all: [(i128, i128); 3]| all.map(|(numerator, denominator)| Part { numerator, denominator }).to_vec();
        // The first position is the one that is 1.
        assert_eq!(space.reduced(&Never), Ok(Some(vec![(0, parts([(1, 1), (3, 2), (21, 10)]))])));
    }

    #[test]
    fn equations_that_leave_nothing_leave_nothing() {
        let mut space = Nullspace::new(2);
        space.require(&[(0, 1), (1, -1)]);
        space.require(&[(0, 1), (1, 1)]);
        assert_eq!(space.dimension(), 0);
        assert_eq!(space.reduced(&Never), Ok(Some(Vec::new())));
    }

    proptest! {
        #[test]
        fn every_vector_found_satisfies_every_equation(
            equations in prop::collection::vec(prop::collection::vec((0..8_usize, -3..4_i64), 1..5), 0..7),
        ) {
            let mut space = Nullspace::new(8);
            equations.iter().for_each(|terms| space.require(terms));
            let dimension = space.dimension();
            prop_assert!(dimension >= 8 - equations.len());
            let vectors = space.reduced(&Never).unwrap().unwrap();
            prop_assert_eq!(vectors.len(), dimension);
            for (free, vector) in &vectors {
                prop_assert_eq!(vector[*free], Part { numerator: 1, denominator: 1 });
                let common = vector.iter().fold(1, |common: i128, part| common.lcm(&part.denominator));
                for terms in &equations {
                    let term = |&(at, factor): &(usize, i64)| {
                        vector[at].numerator * (common / vector[at].denominator) * i128::from(factor)
                    };
                    prop_assert_eq!(terms.iter().map(term).sum::<i128>(), 0);
                }
            }
        }
    }
}
