//! Systems of linear equations with whole coefficients, solved in fractions.

use canopy_optimize::Stop;
use canopy_optimize::field::{self, FIELD, add, subtract, times};
use num_bigint::{BigInt, Sign};
use num_integer::Integer as _;
use num_traits::{One as _, Signed as _, ToPrimitive as _, Zero as _};

use crate::groups::patience::Asking;
use crate::groups::problem::GroupsError;

/// Most digits of that base that a solution is computed to, and the first number that is tried.
const DIGITS_MAX: usize = 1 << 12;
const DIGITS_FIRST: usize = 4;

/// By row, the entries that are not zero: column, value.
pub(crate) type Rows = Vec<Vec<(usize, BigInt)>>;

/// Numbers over one denominator, which is positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fractions {
    pub(crate) numerators: Vec<BigInt>,
    pub(crate) denominator: BigInt,
}

/// A square system that is solved for several right sides, and its transpose.
pub(crate) struct System {
    rows: Rows,
    columns: Rows,
    /// Inverse in the field, row by row.
    inverse: Vec<u64>,
}

impl System {
    /// `None` where the matrix has no inverse in the field.
    ///
    /// * **Errors.** Stopped.
    /// * **Cost.** O(rows³).
    pub(crate) fn new(rows: Rows, stop: &dyn Stop) -> Result<Option<Self>, GroupsError> {
        let size = rows.len();
        let mut columns: Rows = vec![Vec::new(); size];
        let mut matrix = vec![0; size * size];
        for (row, entries) in rows.iter().enumerate() {
            for (column, entry) in entries {
                let Some(of_column) = columns.get_mut(*column) else { return Ok(None) };
                of_column.push((row, entry.clone()));
                matrix[row * size + column] = element(entry);
            }
        }
        let inverse = inverted(matrix, size, stop)?;
        Ok(inverse.map(|inverse| Self { rows, columns, inverse }))
    }

    /// The x with `matrix · x = right`.
    ///
    /// * **Source.** Dixon 1982, *Exact solution of linear equations using p-adic expansions*.
    /// * **None.** Its numbers are too long.
    /// * **Errors.** Stopped.
    /// * **Cost.** O(digits · rows²), and digits² for each row to read them.
    pub(crate) fn solved(&self, right: &[BigInt], stop: &dyn Stop) -> Result<Option<Fractions>, GroupsError> {
        self.lifted(&self.rows, right, false, stop)
    }

    /// The y with `y · matrix = right`.
    pub(crate) fn solved_transposed(
        &self,
        right: &[BigInt],
        stop: &dyn Stop,
    ) -> Result<Option<Fractions>, GroupsError> {
        self.lifted(&self.columns, right, true, stop)
    }

    fn lifted(
        &self,
        rows: &Rows,
        right: &[BigInt],
        transposed: bool,
        stop: &dyn Stop,
    ) -> Result<Option<Fractions>, GroupsError> {
        let mut asking = Asking::of(stop);
        let size = rows.len();
        let field = BigInt::from(FIELD);
        let mut rest = right.to_vec();
        let mut sums = vec![BigInt::zero(); size];
        let mut power = BigInt::one();
        let mut wanted = DIGITS_FIRST;
        for digit in 1..=DIGITS_MAX {
            let residues: Vec<u64> = rest.iter().map(element).collect();
            let mut next = Vec::with_capacity(size);
            for place in 0..size {
                // Entries of a column are far from each other in memory.
                asking.before(if transposed { 16 * size } else { size })?;
                next.push(self.digit(place, &residues, transposed));
            }
            for (sum, &part) in sums.iter_mut().zip(&next) {
                asking.before(digit)?;
                *sum += &power * part;
            }
            for (rest, row) in rest.iter_mut().zip(rows) {
                asking.before(16 * row.len())?;
                let product: BigInt = row.iter().map(|(column, entry)| entry * next[*column]).sum();
                *rest = (&*rest - product) / &field;
            }
            power *= &field;
            if digit == wanted {
                if let Some(read) = read(&sums, &power, &mut asking)?.filter(|read| solves(rows, read, right)) {
                    return Ok(Some(read));
                }
                wanted *= 2;
            }
        }
        Ok(None)
    }

    fn digit(&self, place: usize, residues: &[u64], transposed: bool) -> u64 {
        let size = residues.len();
        let entry = |at: usize| self.inverse[if transposed { at * size + place } else { place * size + at }];
        (0..size).filter(|&at| residues[at] != 0).fold(0, |sum, at| add(sum, times(entry(at), residues[at])))
    }
}

/// Whether a solution is one.
fn solves(rows: &Rows, found: &Fractions, right: &[BigInt]) -> bool {
    rows.iter().zip(right).all(|(row, right)| {
        let sum: BigInt = row.iter().map(|(column, entry)| entry * &found.numerators[*column]).sum();
        sum == right * &found.denominator
    })
}

/// The fractions of small numbers that these residues of a power stand for.
fn read(residues: &[BigInt], power: &BigInt, asking: &mut Asking<'_>) -> Result<Option<Fractions>, GroupsError> {
    // Each is read in as many steps as it has digits, on numbers as long as that.
    let digits = usize::try_from(power.bits() / 64).unwrap_or(usize::MAX);
    let limit = (power / 2_u32).sqrt();
    // Denominators have much in common: what is known of them is taken out first.
    let mut denominator = BigInt::one();
    let mut parts: Vec<(BigInt, BigInt)> = Vec::with_capacity(residues.len());
    for residue in residues {
        asking.before(digits.saturating_mul(digits).saturating_mul(64))?;
        let scaled = (residue * &denominator).mod_floor(power);
        let Some((numerator, further)) = fraction(&scaled, power, &limit) else { return Ok(None) };
        let below = &denominator * &further;
        denominator = denominator.lcm(&below);
        parts.push((numerator, below));
    }
    let numerators = parts.into_iter().map(|(numerator, own)| numerator * (&denominator / own)).collect();
    Ok(Some(Fractions { numerators, denominator }))
}

/// The first remainder of Euclid's algorithm below the limit, and its factor.
///
/// * **Source.** Wang 1981, rational reconstruction.
fn fraction(residue: &BigInt, power: &BigInt, limit: &BigInt) -> Option<(BigInt, BigInt)> {
    let (mut before, mut rest) = (power.clone(), residue.clone());
    let (mut before_factor, mut factor) = (BigInt::zero(), BigInt::one());
    while &rest > limit {
        let (whole, next) = before.div_rem(&rest);
        (before, rest) = (rest, next);
        let next = before_factor - whole * &factor;
        (before_factor, factor) = (factor, next);
    }
    if factor.is_negative() {
        (rest, factor) = (-rest, -factor);
    }
    (&factor <= limit && factor.is_positive()).then_some((rest, factor))
}

/// The element that a whole number stands for.
fn element(number: &BigInt) -> u64 {
    let rest = (number.magnitude() % FIELD).to_u64().expect("a remainder is below the field");
    if number.sign() == Sign::Minus && rest != 0 { FIELD - rest } else { rest }
}

/// By elimination; `None` where there is no inverse.
fn inverted(mut matrix: Vec<u64>, size: usize, stop: &dyn Stop) -> Result<Option<Vec<u64>>, GroupsError> {
    let mut asking = Asking::of(stop);
    let mut inverse = vec![0; size * size];
    (0..size).for_each(|place| inverse[place * size + place] = 1);
    for column in 0..size {
        asking.before(16 * size)?;
        let Some(pivot) = (column..size).find(|&row| matrix[row * size + column] != 0) else { return Ok(None) };
        let factor = field::inverse(matrix[pivot * size + column]);
        for at in 0..size {
            matrix.swap(pivot * size + at, column * size + at);
            inverse.swap(pivot * size + at, column * size + at);
        }
        let scaled = |numbers: &mut [u64]| numbers.iter_mut().for_each(|number| *number = times(*number, factor));
        scaled(&mut matrix[column * size..(column + 1) * size]);
        scaled(&mut inverse[column * size..(column + 1) * size]);
        let row = matrix[column * size..(column + 1) * size].to_vec();
        let own = inverse[column * size..(column + 1) * size].to_vec();
        for other in (0..size).filter(|&other| other != column) {
            let factor = matrix[other * size + column];
            if factor != 0 {
                asking.before(4 * size)?;
                subtract(&mut matrix[other * size..(other + 1) * size], &row, factor);
                subtract(&mut inverse[other * size..(other + 1) * size], &own, factor);
            }
        }
    }
    Ok(Some(inverse))
}

#[cfg(test)]
mod tests {
    use super::*;
    use canopy_optimize::Never;
    use proptest::prelude::*;

    fn rows(matrix: &[Vec<i64>]) -> Rows {
        let row = |row: &Vec<i64>| {
            let entries = row.iter().enumerate().filter(|(_, entry)| **entry != 0);
            entries.map(|(column, &entry)| (column, BigInt::from(entry))).collect()
        };
        matrix.iter().map(row).collect()
    }

    #[test]
    fn solutions_are_exact_both_ways() {
        let system = System::new(rows(&[vec![3, 1], vec![1, -2]]), &Never).unwrap().unwrap();
        let numbers = |all: &[i64]| all.iter().map(|&one| BigInt::from(one)).collect::<Vec<BigInt>>();
        // 3x + y = 1, x − 2y = 5: x = 1, y = −2.
        let found = system.solved(&numbers(&[1, 5]), &Never).unwrap().unwrap();
        assert_eq!(found, Fractions { numerators: numbers(&[1, -2]), denominator: BigInt::one() });
        // 3x + y = 1, x − 2y = 0: x = 2/7, y = 1/7.
        let found = system.solved_transposed(&numbers(&[1, 0]), &Never).unwrap().unwrap();
        assert_eq!(found, Fractions { numerators: numbers(&[2, 1]), denominator: BigInt::from(7) });
        assert!(System::new(rows(&[vec![1, 2], vec![2, 4]]), &Never).unwrap().is_none());
    }

    proptest! {
        #[test]
        fn what_is_found_solves_the_system(
            matrix in prop::collection::vec(prop::collection::vec(-1000..1000_i64, 9), 9),
            right in prop::collection::vec(-1_000_000_000..1_000_000_000_i64, 9),
        ) {
            if let Some(system) = System::new(rows(&matrix), &Never).unwrap() {
                let right: Vec<BigInt> = right.into_iter().map(BigInt::from).collect();
                let found = system.solved(&right, &Never).unwrap().unwrap();
                prop_assert!(solves(&system.rows, &found, &right));
                let found = system.solved_transposed(&right, &Never).unwrap().unwrap();
                prop_assert!(solves(&system.columns, &found, &right));
            }
        }
    }
}
