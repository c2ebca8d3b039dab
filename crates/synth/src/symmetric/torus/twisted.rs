//! Tori whose lines do not come back to where they began: ranks as elements of a sum of cyclic groups.

use super::start::{Neighbours, Start, Walker};

/// Marks a rank that no walk has come to.
const NOBODY: u32 = u32::MAX;

/// Rows of whole numbers.
type Matrix = Vec<Vec<i64>>;

/// Coordinates of all ranks of an intact torus.
pub(super) struct Twisted {
    pub(super) sides: Vec<u32>,
    pub(super) steps: Vec<Vec<u32>>,
    pub(super) seats: Vec<u32>,
}

impl Twisted {
    /// Walks to all ranks, dimension by dimension. `None`: links or ranks are missing.
    ///
    /// In each dimension it walks until it comes to a rank that it reached through lower ones: so many steps along this
    /// one are as many along those. These relations, as rows of a matrix, are brought to diagonal form; what was
    /// done to its columns turns steps into digits. O(links · links of a rank).
    pub(super) fn from(neighbours: &Neighbours, start: &Start, rank_count: u32) -> Option<Self> {
        let dimensions = start.dimensions.len();
        let mut walked = vec![NOBODY; rank_count as usize];
        *walked.get_mut(start.rank as usize)? = 0;
        // Of those who walked, in their order: how often along each dimension.
        let mut counts: Matrix = vec![vec![0; dimensions]];
        let mut walkers = vec![Walker::at(start)];
        let mut relations: Matrix = Vec::new();
        for dimension in 0..dimensions {
            let mut layer = walkers.clone();
            for count in 1_i64.. {
                layer.iter_mut().try_for_each(|walker| walker.step(neighbours, dimension))?;
                let met = walked[layer.first()?.rank as usize];
                if met != NOBODY {
                    let mut relation: Vec<i64> = counts.get(met as usize)?.iter().map(|&steps| -steps).collect();
                    relation[dimension] += count;
                    relations.push(relation);
                    break;
                }
                for (at, walker) in layer.iter().enumerate() {
                    let slot = &mut walked[walker.rank as usize];
                    if *slot != NOBODY {
                        return None;
                    }
                    *slot = u32::try_from(counts.len()).ok()?;
                    let mut of_walker = counts[at].clone();
                    of_walker[dimension] = count;
                    counts.push(of_walker);
                }
                walkers.extend(layer.iter().cloned());
            }
        }
        let (sizes, columns) = diagonal(relations)?;
        let digits = (0..dimensions).filter(|&digit| sizes[digit] > 1);
        let sides: Vec<u32> = digits.clone().map(|digit| u32::try_from(sizes[digit]).ok()).collect::<Option<_>>()?;
        let digit_of = |steps: &[i64], digit: usize| -> Option<u32> {
            let added = |(&count, row): (&i64, &Vec<i64>)| i128::from(count) * i128::from(row[digit]);
            let sum: i128 = steps.iter().zip(&columns).map(added).sum();
            u32::try_from(sum.rem_euclid(sizes[digit].into())).ok()
        };
        let digits_of =
            |steps: &[i64]| digits.clone().map(|digit| digit_of(steps, digit)).collect::<Option<Vec<u32>>>();
        let along =
            |dimension: usize| digits_of(&(0..dimensions).map(|at| i64::from(at == dimension)).collect::<Vec<_>>());
        let number =
            |digits: Vec<u32>| digits.iter().zip(&sides).fold(0, |number, (digit, side)| number * side + digit);
        let seats = walked.iter().map(|&at| digits_of(counts.get(at as usize)?).map(number));
        let seats = seats.collect::<Option<_>>()?;
        let steps = (0..dimensions).map(along).collect::<Option<_>>()?;
        let seat_count = sides.iter().try_fold(1_u32, |seats, &side| seats.checked_mul(side))?;
        (seat_count == rank_count).then_some(Self { sides, steps, seats })
    }
}

/// Brings a square matrix to diagonal form by adding rows and columns to others: absolute values of the diagonal, and
/// what was done to the columns. `None` where numbers become too large or the matrix has no full rank.
///
/// * **Source.** Smith 1861, without the divisibility of its diagonal.
fn diagonal(mut rows: Matrix) -> Option<(Vec<i64>, Matrix)> {
    let size = rows.len();
    let mut columns: Matrix = (0..size).map(|row| (0..size).map(|column| i64::from(row == column)).collect()).collect();
    let mut at = 0;
    while at < size {
        // The smallest number that is left becomes the pivot: each round makes it smaller, or ends.
        let places = (at..size).flat_map(|row| (at..size).map(move |column| (row, column)));
        let left = places.filter(|&(row, column)| rows[row][column] != 0);
        let (row, column) = left.min_by_key(|&(row, column)| rows[row][column].unsigned_abs())?;
        rows.swap(at, row);
        rows.iter_mut().chain(&mut columns).for_each(|row| row.swap(at, column));
        let pivot = rows[at].clone();
        for row in &mut rows[at + 1..] {
            let times = row[at] / pivot[at];
            take(row, &pivot, times)?;
        }
        for column in at + 1..size {
            let times = pivot[column] / pivot[at];
            for row in rows.iter_mut().chain(&mut columns) {
                row[column] = row[column].checked_sub(row[at].checked_mul(times)?)?;
            }
        }
        let is_alone = (at + 1..size).all(|other| rows[other][at] == 0 && rows[at][other] == 0);
        at += usize::from(is_alone);
    }
    let sizes = (0..size).map(|at| rows[at][at].checked_abs()).collect::<Option<_>>()?;
    Some((sizes, columns))
}

/// Takes another row away from a row so often.
fn take(row: &mut [i64], other: &[i64], times: i64) -> Option<()> {
    for (own, &other) in row.iter_mut().zip(other) {
        *own = own.checked_sub(other.checked_mul(times)?)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::diagonal;

    /// Rows times columns have that diagonal, up to rows added to each other: each row is a multiple of the sizes.
    #[test]
    fn relations_vanish_in_digits() {
        for rows in [
            vec![vec![8, 0], vec![-4, 4]],
            vec![vec![5, 0, 0], vec![-2, 3, 0], vec![-1, -2, 7]],
            vec![vec![4, 0], vec![0, 6]],
            vec![vec![1, 0], vec![-1, 9]],
        ] {
            let determinant: i64 = (0..rows.len()).map(|at| rows[at][at]).product();
            let (sizes, columns) = diagonal(rows.clone()).unwrap();
            assert_eq!(sizes.iter().product::<i64>(), determinant);
            for row in &rows {
                for (digit, size) in sizes.iter().enumerate() {
                    let sum: i64 = row.iter().zip(&columns).map(|(count, of)| count * of[digit]).sum();
                    assert_eq!(sum % size, 0, "{rows:?}");
                }
            }
        }
        assert_eq!(diagonal(vec![vec![1, 1], vec![1, 1]]), None);
    }
}
