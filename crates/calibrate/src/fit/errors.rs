//! How far parameters may be off: by the spread of times around the model, whatever its cause.

use super::{NOISE_LEAST, has_effect};
use crate::solve::{inverse, products, spread};

/// Deviations up to which a time that does not fit counts to the noise.
const CUT: f64 = 2.5;
/// The part of the largest diagonal element that is added to all, so that parameters that are alike have large errors instead
/// of none.
const RIDGE: f64 = 1e-7;
/// The largest likeness of neighbouring times that is believed.
const LIKENESS_MAX: f64 = 0.8;

/// The standard deviation of times around the model. Times that do not fit count up to a distance, so that many of them tell
/// that the model is wrong.
pub(super) fn noise(residuals: &[f64], parameters: usize) -> f64 {
    let count = residuals.len() as f64;
    // As many residuals as parameters can be made nothing.
    let freedom = count / (count - parameters as f64).max(1.0);
    let usual = (spread(residuals.iter().copied(), 0.0) * freedom.sqrt()).max(NOISE_LEAST);
    let cut: f64 = residuals.iter().map(|off| off.abs().min(CUT * usual).powi(2)).sum();
    (cut / count * freedom).sqrt().max(usual * 0.7).max(NOISE_LEAST)
}

/// By parameter: its standard error in its unit, so that twice as much holds the truth in 95 of 100 cases; infinite if no time
/// depends on it, very large if others change all times alike.
pub(super) fn errors(
    columns: &[Vec<f64>],
    jumps: &[Vec<f64>],
    weights: &[f64],
    residuals: &[f64],
    noise: f64,
) -> Vec<f64> {
    let counted: Vec<&Vec<f64>> = columns.iter().filter(|column| has_effect(column)).collect();
    let parameters = counted.len();
    let all: Vec<Vec<f64>> = counted.into_iter().chain(jumps).cloned().collect();
    let mut matrix = products(&all, weights);
    let largest = (0..parameters).map(|number| matrix[number][number]).fold(0.0, f64::max);
    for (number, row) in matrix.iter_mut().enumerate() {
        row[number] += if number < parameters { RIDGE * largest } else { noise * noise };
    }
    let inverse = inverse(&matrix);
    let freedom = residuals.len().saturating_sub(columns.len());
    // What jumps are is known from few places, too.
    let freedom = if jumps.is_empty() { freedom } else { freedom.min(jumps.len()) };
    let factor = noise * few(freedom) * alike(residuals, weights);
    let mut places = 0_usize..;
    let error = |column: &Vec<f64>| {
        let place = if has_effect(column) { places.next() } else { None };
        let row = place.and_then(|place| inverse.as_ref()?.get(place)?.get(place).copied());
        row.map_or(f64::INFINITY, |variance| factor * variance.abs().sqrt())
    };
    columns.iter().map(error).collect()
}

/// By what errors grow where few times tell the noise: Student's 97.5 % beside that of the normal distribution.
fn few(freedom: usize) -> f64 {
    const QUANTILES: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    let quantile = freedom.checked_sub(1).and_then(|place| QUANTILES.get(place).copied());
    let quantile = quantile.unwrap_or_else(|| 1.96 + 2.7 / freedom.max(1) as f64);
    quantile / 1.96
}

/// By what errors grow where neighbouring times are off alike, as they are where the model is wrong: so many fewer of them count.
fn alike(residuals: &[f64], weights: &[f64]) -> f64 {
    let counted: Vec<f64> = residuals.iter().zip(weights).map(|(off, weight)| off * weight.sqrt()).collect();
    let squares: f64 = counted.iter().map(|off| off * off).sum();
    let neighbours: f64 = counted.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let likeness = neighbours / squares.max(f64::MIN_POSITIVE);
    // By chance alone it is as large as this in one of forty cases.
    let by_chance = 2.0 / (counted.len().max(1) as f64).sqrt();
    let likeness = if likeness > by_chance { likeness.min(LIKENESS_MAX) } else { 0.0 };
    ((1.0 + likeness) / (1.0 - likeness)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_times_tell_little_of_noise() {
        assert!((few(1) - 6.48).abs() < 0.01 && (few(5) - 1.31).abs() < 0.01 && few(1_000) < 1.01);
    }

    #[test]
    fn times_off_alike_count_less() {
        let ones = vec![1.0; 100];
        let turns: Vec<f64> = (0..100).map(|number| if number % 2 == 0 { 0.03 } else { -0.03 }).collect();
        let waves: Vec<f64> = (0..100).map(|number| if number % 50 < 25 { 0.03 } else { -0.03 }).collect();
        assert!(alike(&turns, &ones) < 1.01 && alike(&waves, &ones) > 2.5);
    }

    /// One time of twenty far off adds little; half of them add much.
    #[test]
    fn what_does_not_fit_is_noise() {
        let with = |far: usize| -> Vec<f64> {
            (0..40)
                .map(|place| {
                    if place < far {
                        1.0
                    } else if place % 2 == 0 {
                        0.03
                    } else {
                        -0.03
                    }
                })
                .collect()
        };
        let [none, one, many] = [0, 1, 16].map(|far| noise(&with(far), 2));
        assert!((0.02..0.05).contains(&none) && one < 1.2 * none && many > 1.5 * none, "{none} {one} {many}");
    }
}
