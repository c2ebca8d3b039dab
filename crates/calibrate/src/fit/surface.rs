//! How times depend on parameters around a place, taken from many places near it: times of simulations jump, so that a single
//! change says little of how they go on the whole.
//!
//! By time, a square polynomial of the parameters is nearest to the logarithms at all places. What it leaves are jumps: they
//! may be there at the truth as well, so they count as what the model does not know.

use super::trust::Trust;
use super::{NOISE_LEAST, errors, unit};
use crate::parameters::{Parameter, Parameters};
use crate::solve::{inverse, product, products, solution};

/// Places at least.
const PLACES_LEAST: usize = 16;
/// Places beside terms of the polynomial.
const PLACES_PER_TERM: usize = 2;
/// Part of the distance at which slopes are compared to find bends.
const BEND_AT: f64 = 0.5;
/// Steps of less are none.
const MOVED_LEAST: f64 = 1e-5;
/// Length, as a part of its own, below which a vector lies in the span of others.
const SPAN_LEAST: f64 = 1e-6;
/// Latencies are changed by so much more than rates: times are linear in them.
const LATENCIES: f64 = 2.0;
/// How often weights follow from residuals, and these from weights.
const ROUNDS: usize = 12;
/// Jumps of less are none.
const JUMP_LEAST: f64 = 0.002;

/// Times around a place.
pub(super) struct Surface {
    /// By time: the logarithm of the one observed beside that of the surface at the place itself.
    pub(super) residuals: Vec<f64>,
    /// By parameter and time: how the logarithm changes with the parameter, in its unit.
    pub(super) columns: Vec<Vec<f64>>,
    /// The same on the side where it changes less: at a bend, another link begins to bind.
    pub(super) weakest: Vec<Vec<f64>>,
    /// By number and time: jumps, so that the sum of their squares is the square of what a time jumps by.
    pub(super) jumps: Vec<Vec<f64>>,
}

impl Surface {
    /// The surface as far as `radius` units of each parameter, rates both ways, latencies from zero on. `off` gives the
    /// logarithms of what was observed beside the model's times. About two calls for each term.
    pub(super) fn around<E>(
        wanted: &[Parameter],
        at: &Parameters,
        radius: f64,
        off: &mut impl FnMut(&Parameters) -> Result<Vec<f64>, E>,
    ) -> Result<Self, E> {
        let radii: Vec<f64> =
            wanted.iter().map(|one| if one.is_latency() { LATENCIES * radius } else { radius }).collect();
        let places = places(wanted, at, &radii);
        let mut found = Vec::with_capacity(places.len());
        for place in &places {
            let mut there = *at;
            for ((&parameter, away), radius) in wanted.iter().zip(place).zip(&radii) {
                there = there.with(parameter, at.get(parameter) + away * radius * unit(parameter, at));
            }
            found.push(off(&there)?);
        }
        Ok(Self::of(&radii, &places, &found))
    }

    fn of(radii: &[f64], places: &[Vec<f64>], found: &[Vec<f64>]) -> Self {
        let parameters = radii.len();
        let rows: Vec<Vec<f64>> = places.iter().map(|place| terms(place)).collect();
        let count = rows.first().map_or(0, Vec::len);
        let term = |number: usize| -> Vec<f64> { rows.iter().map(|row| row[number]).collect() };
        let terms: Vec<Vec<f64>> = (0..count).map(term).collect();
        let ones = vec![1.0; places.len()];
        let mut matrix = products(&terms, &ones);
        (0..count).for_each(|number| matrix[number][number] += 1e-9);
        let inverse = inverse(&matrix).unwrap_or_else(|| vec![vec![0.0; count]; count]);
        let times = found.first().map_or(0, Vec::len);
        let left = others(&terms, places.len());
        let freedom = left.len().max(1) as f64;
        let mut surface = Self {
            residuals: Vec::with_capacity(times),
            columns: vec![Vec::with_capacity(times); parameters],
            weakest: vec![Vec::with_capacity(times); parameters],
            jumps: vec![Vec::with_capacity(times); left.len()],
        };
        let mut largest = 0.0_f64;
        for time in 0..times {
            let values: Vec<f64> = found.iter().map(|values| values[time]).collect();
            let side: Vec<f64> = terms.iter().map(|term| dot(term, &values)).collect();
            let factors: Vec<f64> = inverse.iter().map(|row| dot(row, &side)).collect();
            surface.residuals.push(factors[0]);
            let mut squares = 0.0;
            for (jump, left) in surface.jumps.iter_mut().zip(&left) {
                let size = dot(left, &values) / freedom.sqrt();
                squares += size * size;
                jump.push(size);
            }
            let jump = squares.sqrt();
            largest = largest.max(jump);
            for (parameter, radius) in radii.iter().enumerate() {
                let line = 1 + parameter;
                let square = 1 + parameters + parameter;
                // What jumps alone would make is no slope, and no bend.
                let chance = |term: usize| jump * inverse[term][term].sqrt();
                let slope = factors[line].abs() - chance(line);
                let slope = if slope > chance(line) { slope } else { 0.0 };
                let bend = 2.0 * BEND_AT * (factors[square].abs() - 2.0 * chance(square)).max(0.0);
                let sign = -factors[line].signum() / radius;
                surface.columns[parameter].push(sign * slope);
                surface.weakest[parameter].push(sign * (slope - bend).max(0.0));
            }
        }
        if largest < JUMP_LEAST {
            surface.jumps.clear();
        }
        surface
    }
}

/// What a surface says.
pub(super) struct Settled {
    /// By parameter: how far it is from the place, in its unit.
    pub(super) steps: Vec<f64>,
    /// Its standard error, in its unit.
    pub(super) errors: Vec<f64>,
    /// By time: the logarithm of the one observed beside that of the surface there.
    pub(super) residuals: Vec<f64>,
    /// By time: how much it counts.
    weights: Vec<f64>,
    /// The standard deviation of residuals, and without jumps.
    pub(super) noise: f64,
    own_noise: f64,
}

impl Surface {
    /// The parameters that fit best. Jumps are parameters too, each with a factor that is likely to be about 1.
    pub(super) fn settled(&self, wanted: &[Parameter], at: &Parameters) -> Settled {
        let times = self.residuals.len();
        let jumped: f64 = self.jumps.iter().flatten().map(|jump| jump * jump).sum::<f64>() / times.max(1) as f64;
        let mut steps = vec![0.0; wanted.len()];
        let mut factors = vec![0.0; self.jumps.len()];
        let mut weights = vec![1.0; times];
        let mut residuals = self.residuals.clone();
        let mut noise = 0.0;
        for _ in 0..ROUNDS {
            residuals = less(&self.residuals, &self.columns, &steps);
            let rest = less(&residuals, &self.jumps, &factors);
            noise = errors::noise(&residuals, wanted.len());
            weights = Trust::None.weights(&rest);
            let own = own_noise(noise, jumped);
            let Some(found) = self.step(wanted, at, &weights, own) else { break };
            let (first, second) = found.split_at(wanted.len());
            let moved = first.iter().zip(&steps).map(|(next, step)| (next - step).abs()).fold(0.0, f64::max);
            steps = first.to_vec();
            factors = second.to_vec();
            if moved < MOVED_LEAST {
                break;
            }
        }
        let rest = less(&residuals, &self.jumps, &factors);
        let own_noise = own_noise(noise, jumped);
        let errors = errors::errors(&self.weakest, &self.jumps, &weights, &rest, own_noise);
        Settled { steps, errors, residuals, weights, noise, own_noise }
    }

    /// Errors of parameters as far as these times tell.
    pub(super) fn errors(&self, counted: &[f64], settled: &Settled) -> Vec<f64> {
        let weights: Vec<f64> =
            counted.iter().zip(&settled.weights).map(|(counted, weight)| counted * weight).collect();
        errors::errors(&self.weakest, &self.jumps, &weights, &settled.residuals, settled.own_noise)
    }

    /// Steps of parameters and factors of jumps. Latencies that would fall below zero are held there.
    fn step(&self, wanted: &[Parameter], at: &Parameters, weights: &[f64], noise: f64) -> Option<Vec<f64>> {
        let mut held: Vec<Option<f64>> = vec![None; wanted.len()];
        loop {
            let mut side = self.residuals.clone();
            for (column, held) in self.columns.iter().zip(&held) {
                let Some(step) = held else { continue };
                side.iter_mut().zip(column).for_each(|(side, slope)| *side -= step * slope);
            }
            let free = self.columns.iter().zip(&held).filter(|(_, held)| held.is_none()).map(|(column, _)| column);
            let parameters = free.clone().count();
            let columns: Vec<Vec<f64>> = free.chain(&self.jumps).cloned().collect();
            let mut matrix = products(&columns, weights);
            for (number, row) in matrix.iter_mut().enumerate() {
                row[number] += if number < parameters { row[number] * 1e-9 + 1e-9 } else { noise * noise };
            }
            let side: Vec<f64> = columns.iter().map(|column| product(column, &side, weights)).collect();
            let mut found = solution(&matrix, &side)?.into_iter();
            let steps: Vec<f64> = held.iter().map(|held| held.unwrap_or_else(|| found.next().unwrap_or(0.0))).collect();
            let below = |&number: &usize| {
                let least = -at.get(wanted[number]) / unit(wanted[number], at);
                held[number].is_none() && wanted[number].is_latency() && steps[number] < least
            };
            match (0..wanted.len()).find(below) {
                Some(number) => held[number] = Some(-at.get(wanted[number]) / unit(wanted[number], at)),
                None => return Some(steps.into_iter().chain(found).collect()),
            }
        }
    }
}

/// Directions at right angles to all these and to each other, of length 1: Gram and Schmidt.
fn others(columns: &[Vec<f64>], dimensions: usize) -> Vec<Vec<f64>> {
    let axis = |at: usize| (0..dimensions).map(|other| f64::from(u8::from(other == at))).collect::<Vec<f64>>();
    let mut all: Vec<Vec<f64>> = Vec::new();
    let mut spanned = 0;
    for (number, vector) in columns.iter().cloned().chain((0..dimensions).map(axis)).enumerate() {
        let mut left = vector.clone();
        // Rounding leaves something the first time.
        for _ in 0..2 {
            let factors: Vec<f64> = all.iter().map(|one| dot(one, &left)).collect();
            left = less(&left, &all, &factors);
        }
        let length = dot(&left, &left).sqrt();
        if length > SPAN_LEAST * dot(&vector, &vector).sqrt() {
            all.push(left.iter().map(|value| value / length).collect());
            spanned += usize::from(number < columns.len());
        }
    }
    all.split_off(spanned)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Values less columns, each times a factor.
fn less(values: &[f64], columns: &[Vec<f64>], factors: &[f64]) -> Vec<f64> {
    let mut left = values.to_vec();
    for (column, factor) in columns.iter().zip(factors) {
        left.iter_mut().zip(column).for_each(|(left, value)| *left -= factor * value);
    }
    left
}

/// The noise of times without jumps, if these have the mean square `jumped`.
fn own_noise(noise: f64, jumped: f64) -> f64 {
    (noise * noise - jumped).max(noise * noise / 4.0).sqrt().max(NOISE_LEAST)
}

/// The terms of a square polynomial.
fn terms(place: &[f64]) -> Vec<f64> {
    let squares = place.iter().map(|away| away * away);
    let pairs = (0..place.len()).flat_map(|a| (a + 1..place.len()).map(move |b| place[a] * place[b]));
    std::iter::once(1.0).chain(place.iter().copied()).chain(squares).chain(pairs).collect()
}

/// Places around the middle, in radii: each with its mirror image, but for latencies, none of which is below zero.
fn places(wanted: &[Parameter], at: &Parameters, radii: &[f64]) -> Vec<Vec<f64>> {
    let count = (PLACES_PER_TERM * terms(&vec![0.0; wanted.len()]).len()).max(PLACES_LEAST);
    // The root of x^(d+1) = x + 1 spreads points evenly in d dimensions (Roberts).
    let root = (0..50).fold(2.0_f64, |root, _| (1.0 + root).powf(1.0 / (wanted.len() as f64 + 1.0)));
    let steps: Vec<f64> = (0..wanted.len())
        .scan(1.0, |part, _| {
            *part /= root;
            Some(*part)
        })
        .collect();
    let place = |number: usize| -> Vec<f64> {
        let is_mirrored = number % 2 == 1;
        let away = |((parameter, step), radius): ((&Parameter, &f64), &f64)| {
            let even = (0.5 + (number / 2 + 1) as f64 * step).fract() * 2.0 - 1.0;
            let even = if is_mirrored { -even } else { even };
            let least =
                if parameter.is_latency() { -at.get(*parameter) / (radius * unit(*parameter, at)) } else { -1.0 };
            even + (1.0 + least).max(0.0)
        };
        wanted.iter().zip(&steps).zip(radii).map(away).collect()
    };
    (0..count).map(place).collect()
}
