//! Small systems of linear equations, and what is typical of many values.

/// What makes weighted squares least, by the matrix and the side that [`products`] and [`product`] give; `None` if there is
/// no single answer.
pub(crate) fn solution(matrix: &[Vec<f64>], side: &[f64]) -> Option<Vec<f64>> {
    Some(inverse(matrix)?.iter().map(|row| row.iter().zip(side).map(|(a, b)| a * b).sum()).collect())
}

/// Weighted products of each column with each.
pub(crate) fn products(columns: &[Vec<f64>], weights: &[f64]) -> Vec<Vec<f64>> {
    columns.iter().map(|a| columns.iter().map(|b| product(a, b, weights)).collect()).collect()
}

/// The weighted product of two columns.
pub(crate) fn product(a: &[f64], b: &[f64], weights: &[f64]) -> f64 {
    a.iter().zip(b).zip(weights).map(|((a, b), weight)| a * b * weight).sum()
}

/// The inverse of a symmetric, positive definite matrix; `None` if it is singular, as far as numbers can tell.
pub(crate) fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let count = matrix.len();
    let mut rows: Vec<Vec<f64>> = matrix.to_vec();
    for (number, row) in rows.iter_mut().enumerate() {
        row.extend((0..count).map(|column| f64::from(u8::from(column == number))));
    }
    // Gauss and Jordan, largest pivot first.
    for column in 0..count {
        let pivot = (column..count).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        let largest = matrix.iter().flatten().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let by = rows[column][column];
        if by.abs() <= largest * 1e-12 {
            return None;
        }
        rows[column].iter_mut().for_each(|value| *value /= by);
        for other in (0..count).filter(|&other| other != column) {
            let times = rows[other][column];
            let taken: Vec<f64> = rows[column].iter().map(|value| value * times).collect();
            rows[other].iter_mut().zip(taken).for_each(|(value, taken)| *value -= taken);
        }
    }
    Some(rows.into_iter().map(|row| row[count..].to_vec()).collect())
}

/// The median; none of nothing.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values.get(middle).copied()
    } else {
        Some(f64::midpoint(*values.get(middle.checked_sub(1)?)?, *values.get(middle)?))
    }
}

/// The spread of values around a middle, as a standard deviation, whatever a few of them are.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>, middle: f64) -> f64 {
    1.4826 * median(values.into_iter().map(|value| (value - middle).abs())).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_undo() {
        let matrix = vec![vec![4.0, 1.0, 0.5], vec![1.0, 3.0, 0.0], vec![0.5, 0.0, 2.0]];
        let inverse = inverse(&matrix).unwrap();
        for (row, column) in (0..3).flat_map(|row| (0..3).map(move |column| (row, column))) {
            let product: f64 = (0..3).map(|k| matrix[row][k] * inverse[k][column]).sum();
            assert!((product - f64::from(u8::from(row == column))).abs() < 1e-12);
        }
        assert_eq!(super::inverse(&[vec![1.0, 2.0], vec![2.0, 4.0]]), None);
    }

    #[test]
    fn few_outliers_change_no_median() {
        assert_eq!(median([3.0, 1.0, 1e9]), Some(3.0));
        assert_eq!(median([1.0, 2.0]), Some(1.5));
        assert_eq!(median([]), None);
        assert!((spread([0.9, 1.0, 1.1, 50.0], 1.0) - 0.14826).abs() < 1e-9);
    }
}
