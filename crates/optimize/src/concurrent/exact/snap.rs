//! Lengths in floats to whole ones that prove as much, and often the very optimum.

use std::collections::{BTreeMap, BTreeSet};

use num_integer::Integer;

use super::mend::as_float;
use super::tree::{Distances, distances, greatest, mean};
use crate::concurrent::{ConcurrentError, ConcurrentProblem, length_bound};
use crate::fraction::Fraction;
use crate::nullspace::{Nullspace, Part, combined};
use crate::stop::Stop;

/// Parts of the mean distance below which two lengths, or ways, are taken for alike.
const LIKENESSES: [f64; 6] = [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4];

/// Bits of the numbers that can be chosen freely.
const BITS: [u32; 3] = [6, 16, 28];

/// Bits of a mean distance where lengths are rounded one by one.
const PLAIN_BITS: [u32; 4] = [44, 36, 28, 20];

/// Most different lengths in which equations are solved.
const WIDTH_MAX: usize = 1_200;

/// Whole lengths, of those near `lengths` the ones whose [`length_bound`] is least.
///
/// Best lengths are a face of a cone: on shortest ways with a flow it is an equation that they are of one length. From lengths
/// inside the face one can tell which ways are shortest; the equations are solved in fractions, and what they leave open is
/// chosen near the lengths given. So what is found is best exactly, if the ways were told right; several guesses are
/// made of what is alike, and lengths rounded one by one are tried, too. The exact bounds decide.
///
/// * **In.** By arc, not negative; whatever is no number counts as zero. With orbits, the mean of each counts.
/// * **Out.** By arc, below 2⁶³. Rounding alone loses less than 10⁻⁹ of the bound, unless capacities or demands are too great
///   for 128 bits together with lengths of 44 bits.
/// * **Errors.** Of [`length_bound`].
/// * **Cost.** Some 50 searches by Dijkstra for each commodity, and the cube of the number of different lengths; more than
///   [`super::EXACT_VARIABLES_MAX`] commodities times arcs are rounded only, by up to four searches for each commodity.
pub fn sharpened(
    problem: &ConcurrentProblem<'_>,
    lengths: &[f64],
    stop: &dyn Stop,
) -> Result<Vec<u64>, ConcurrentError> {
    let arcs = &problem.graph().arcs;
    if lengths.len() != arcs.len() {
        return Err(ConcurrentError::LengthCount { found: lengths.len(), expected: arcs.len() });
    }
    let lengths = means_of_orbits(problem, lengths);
    let found = distances(problem, &lengths)?;
    let (mean, greatest) = (mean(&found), greatest(&found));
    let mut best = Best { problem, stop, bound: None, tried: BTreeSet::new() };
    if !(mean > 0.0 && mean.is_finite()) {
        return Ok(vec![1; arcs.len()]);
    }
    for bits in PLAIN_BITS {
        let rounded = lengths.iter().map(|&length| whole((length / mean).min(greatest / mean), bits)).collect();
        if best.consider(rounded)? {
            break;
        }
    }
    if arcs.len() * problem.commodities().len() <= usize::try_from(super::EXACT_VARIABLES_MAX).unwrap_or(usize::MAX) {
        for likeness in LIKENESSES {
            let near = likeness * mean;
            let kept: Vec<f64> = lengths.iter().map(|&length| if length > near { length } else { 0.0 }).collect();
            let found = distances(problem, &kept)?;
            for classes in [alike(problem.orbits(), &kept, near), alike(problem.orbits(), &kept, 0.0)] {
                solve_equations(problem, &kept, &classes, (&found, near), &mut best)?;
            }
        }
    }
    Ok(best.bound.map_or_else(|| vec![1; arcs.len()], |(_, lengths)| lengths))
}

/// The best lengths so far.
struct Best<'a> {
    problem: &'a ConcurrentProblem<'a>,
    stop: &'a dyn Stop,
    bound: Option<(Fraction, Vec<u64>)>,
    tried: BTreeSet<Vec<u64>>,
}

impl Best<'_> {
    /// Keeps the lengths if they prove more. Whether they prove anything.
    fn consider(&mut self, mut lengths: Vec<u64>) -> Result<bool, ConcurrentError> {
        let divisor = lengths.iter().fold(0, |divisor: u64, length| divisor.gcd(length)).max(1);
        lengths.iter_mut().for_each(|length| *length /= divisor);
        if self.tried.contains(&lengths) {
            return Ok(true);
        }
        let bound = match length_bound(self.problem, &lengths, self.stop) {
            Ok(Some(bound)) => bound,
            Ok(None) | Err(ConcurrentError::TooLarge) => return Ok(false),
            Err(error) => return Err(error),
        };
        if self.bound.as_ref().is_none_or(|(least, _)| bound < *least) {
            self.bound = Some((bound, lengths.clone()));
        }
        self.tried.insert(lengths);
        Ok(true)
    }
}

/// By arc, the mean length of its orbit; nothing negative, nothing that is no number.
fn means_of_orbits(problem: &ConcurrentProblem<'_>, lengths: &[f64]) -> Vec<f64> {
    let sound = |length: f64| if length.is_finite() { length.max(0.0) } else { 0.0 };
    if problem.orbits().is_empty() {
        return lengths.iter().map(|&length| sound(length)).collect();
    }
    let mut sums: BTreeMap<u32, (f64, u64)> = BTreeMap::new();
    for (&orbit, &length) in problem.orbits().iter().zip(lengths) {
        let (sum, count) = sums.entry(orbit).or_default();
        (*sum, *count) = (*sum + sound(length), *count + 1);
    }
    let mean = |orbit| sums.get(orbit).map_or(0.0, |&(sum, count)| sum / as_float(count));
    problem.orbits().iter().map(mean).collect()
}

/// `part · 2^bits` to the nearest whole number, below 2⁶².
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "neither negative nor too large")]
fn whole(part: f64, bits: u32) -> u64 {
    (part * as_float(1 << bits)).round().clamp(0.0, as_float(1 << 62)) as u64
}

/// Positive lengths in classes: by arc, the number of its class, and by class a length. Within a class neighbours in order
/// differ by no more than `near`; with `near` zero each arc is alone, or each orbit where there are any.
fn alike(orbits: &[u32], lengths: &[f64], near: f64) -> (Vec<Option<usize>>, Vec<f64>) {
    let orbit = |arc: usize| orbits.get(arc).copied();
    let mut order: Vec<usize> = (0..lengths.len()).filter(|&arc| lengths[arc] > 0.0).collect();
    // The longest first: numbers that can be chosen freely are rounded the better, the longer they are.
    order.sort_by(|&first, &second| {
        let by_length = lengths[second].total_cmp(&lengths[first]);
        by_length.then(orbit(first).cmp(&orbit(second))).then(first.cmp(&second))
    });
    let mut class_of = vec![None; lengths.len()];
    let mut classes: Vec<f64> = Vec::new();
    let mut before: Option<usize> = None;
    for arc in order {
        let follows = |before: usize| match near > 0.0 {
            true => lengths[before] - lengths[arc] <= near,
            false => orbit(arc).is_some() && orbit(before) == orbit(arc),
        };
        if !before.is_some_and(follows) {
            classes.push(lengths[arc]);
        }
        before = Some(arc);
        class_of[arc] = Some(classes.len() - 1);
    }
    (class_of, classes)
}

/// Considers lengths for which all ways that are nearly shortest are of one length.
fn solve_equations(
    problem: &ConcurrentProblem<'_>,
    lengths: &[f64],
    (class_of, classes): &(Vec<Option<usize>>, Vec<f64>),
    (found, near): (&[Distances], f64),
    best: &mut Best<'_>,
) -> Result<(), ConcurrentError> {
    let arcs = &problem.graph().arcs;
    if classes.len() > WIDTH_MAX {
        return Ok(());
    }
    let mut space = Nullspace::new(classes.len());
    let mut known = BTreeSet::new();
    for (commodity, found) in problem.commodities().iter().zip(found) {
        if best.stop.is_requested() {
            return Err(ConcurrentError::Stopped);
        }
        for number in found.tight_arcs(problem, commodity, lengths, near) {
            let arc = arcs[number];
            let mut sum: BTreeMap<usize, i64> = BTreeMap::new();
            let mut add = |class: Option<usize>, factor| {
                if let Some(class) = class {
                    *sum.entry(class).or_default() += factor;
                }
            };
            add(class_of[number], 1);
            found.way(arcs, arc.from).for_each(|arc| add(class_of[arc], 1));
            found.way(arcs, arc.to).for_each(|arc| add(class_of[arc], -1));
            let terms: Vec<(usize, i64)> = sum.into_iter().filter(|&(_, factor)| factor != 0).collect();
            if !terms.is_empty() && known.insert(terms.clone()) {
                space.require(&terms);
            }
        }
    }
    if space.dimension() == 0 {
        return Ok(());
    }
    let vectors = space.reduced(best.stop).map_err(|_| ConcurrentError::Stopped)?;
    let Some(vectors) = vectors else { return Ok(()) };
    let bits: &[u32] = if vectors.len() == 1 { &BITS[..1] } else { &BITS };
    for &bits in bits {
        if let Some(chosen) = chosen(&vectors, classes, bits) {
            best.consider(class_of.iter().map(|class| class.map_or(0, |class| chosen[class])).collect())?;
        }
    }
    Ok(())
}

/// By class, a length of the space near what is given; `None` where one is negative, or does not fit.
fn chosen(vectors: &[(usize, Vec<Part>)], classes: &[f64], bits: u32) -> Option<Vec<u64>> {
    let unit = vectors.iter().map(|&(position, _)| classes[position]).fold(0.0, f64::max);
    let free: Vec<i128> = vectors.iter().map(|&(position, _)| whole(classes[position] / unit, bits).into()).collect();
    let (sums, _) = combined(vectors, &free)?;
    let divisor = sums.iter().fold(0, |divisor: i128, sum| divisor.gcd(sum)).max(1);
    sums.into_iter().map(|sum| u64::try_from(sum / divisor).ok().filter(|&length| length < 1 << 63)).collect()
}
