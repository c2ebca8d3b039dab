//! The way to the optimum that suits the size of a problem.

use super::ConcurrentOptimum;
use super::bound::length_bound;
use super::exact::{sharpened, solve_exactly};
use super::first_order::{SolverOptions, solve};
use super::problem::{ConcurrentError, ConcurrentProblem};
use crate::stop::Stop;

/// Variables up to which the program is solved whole, and up to which the result of iterations is made exact.
const WHOLE_MAX: u64 = 1 << 13;
const SHARP_MAX: u64 = 40_000;
/// Gap at which iterations end whose result is made exact.
const SHARP_GAP: f64 = 1e-9;
/// Tolerance from which on no exact result is needed.
const SHARP_TOLERANCE: f64 = 1e-6;

/// Solves small programs whole and others by iterations, whose lengths are made exact where that is quick.
///
/// * **In.** `tolerance`: the part of the rate that may be lacking; half of it is left to a division into whole chunks.
/// * **Errors, cost.** Those of [`solve_exactly`], [`solve`] and [`sharpened`].
pub fn concurrent_optimum(
    problem: &ConcurrentProblem<'_>,
    options: &SolverOptions,
    stop: &dyn Stop,
) -> Result<ConcurrentOptimum, ConcurrentError> {
    let variables = problem.variables();
    if variables <= WHOLE_MAX
        && let Some(optimum) = solve_exactly(problem, stop)?
    {
        return Ok(optimum);
    }
    let is_sharp = variables <= SHARP_MAX && options.tolerance <= SHARP_TOLERANCE;
    let tolerance = if is_sharp { SHARP_GAP } else { options.tolerance / 2.0 };
    let mut optimum = solve(problem, &SolverOptions { tolerance, ..*options }, stop, &mut |_, _| ())?;
    if is_sharp {
        #[expect(clippy::cast_precision_loss, reason = "near which lengths exact ones are looked for")]
        let near: Vec<f64> = optimum.lengths.iter().map(|&length| length as f64).collect();
        let lengths = sharpened(problem, &near, stop)?;
        let bound = |lengths: &[u64]| length_bound(problem, lengths, stop);
        if let (Some(sharp), Some(plain)) = (bound(&lengths)?, bound(&optimum.lengths)?)
            && sharp < plain
        {
            optimum = ConcurrentOptimum { lengths, limit: sharp.to_float(), ..optimum };
        }
    }
    Ok(optimum)
}
