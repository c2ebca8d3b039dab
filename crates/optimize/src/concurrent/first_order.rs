//! Maximum concurrent flow by a first-order method, for networks whose linear program is too large to be solved as one: a rate
//! with a flow that has it, and a limit with lengths that prove it, as near each other as is asked for.
//!
//! The program is solved as a saddle-point problem: flows that meet all demands against lengths of arcs whose sum with
//! the capacities is fixed, `min_g max_ℓ Σ ℓ·load(g)`, with a potential for each source and node where demand must be met. Iterates are those of a
//! primal-dual hybrid gradient method, reflected, averaged with an anchor (Halpern), and restarted. Every so often they are
//! mended into a bracket of the optimum that holds whatever the iterates are.
//!
//! Nothing here reads a clock or depends on how many threads there are: same problem and options, same bits.

mod block;
mod certificate;
mod distances;
mod finish;
mod layout;
mod prices;
mod primal_dual;
mod real;
mod restarts;
mod stepsizes;

use self::finish::finished;
use self::layout::Layout;
use self::primal_dual::PrimalDual;
use self::real::Real;
use super::ConcurrentOptimum;
use super::problem::{ConcurrentError, ConcurrentProblem};
use crate::stop::Stop;

/// Commodities from which several share a block: lanes that none takes cost as much as others.
const LANES_MIN: usize = 4;
/// Commodities from which single width pays.
const SINGLE_COMMODITIES_MIN: usize = 128;
/// Tolerance down to which single width is precise enough.
const SINGLE_TOLERANCE_MIN: f64 = 1e-4;

/// Stopping criteria.
#[derive(Clone, Copy, Debug)]
pub struct SolverOptions {
    /// Relative gap between rate and limit at which to stop, such as 0.01. Gaps below 1e-12 are out of reach.
    pub tolerance: f64,
    /// Variables times iterations after which to stop with the best result. A variable is an arc of a source.
    pub work_max: u64,
}

/// Finds a flow and lengths that bracket the greatest rate at which all demands can be met at once.
///
/// * **Source.** The program of Basu 2024, equations (6)–(9). Iteration: H. Lu and J. Yang, *Restarted Halpern PDHG for linear
///   programming*, 2024.
/// * **In.** `progress` is told rate and limit, in units of capacity for each unit of demand, at the start and every 40
///   iterations; neither gets worse from one call to the next.
/// * **Out.** `rate ≤ limit`; unless the work was spent, they differ by no more than the tolerance. Flows have no circles and bring each sink
///   what it wants but for rounding in the sixteenth digit; lengths are one for each orbit.
/// * **Errors.** A sink out of reach, before any work; stopped, which is asked about every few milliseconds; sums beyond 128 bits.
/// * **Cost.** A few nanoseconds for each variable and iteration, on as many threads as there are; some hundred iterations to a
///   hundredth on expanders of a thousand nodes, after which each digit takes about as many again. Four numbers for each
///   variable are kept, in single width down to tolerances of 10⁻⁴ for 128 commodities and more, else in double.
pub fn solve(
    problem: &ConcurrentProblem<'_>,
    options: &SolverOptions,
    stop: &dyn Stop,
    progress: &mut dyn FnMut(f64, f64),
) -> Result<ConcurrentOptimum, ConcurrentError> {
    if stop.is_requested() {
        return Err(ConcurrentError::Stopped);
    }
    let layout = Layout::new(problem)?;
    let few = layout.commodities.len() < LANES_MIN;
    let coarse = options.tolerance >= SINGLE_TOLERANCE_MIN && layout.commodities.len() >= SINGLE_COMMODITIES_MIN;
    match (few, coarse) {
        (true, _) => run::<f64, 1>(problem, &layout, options, stop, progress),
        (false, false) => run::<f64, 8>(problem, &layout, options, stop, progress),
        (false, true) => run::<f32, 16>(problem, &layout, options, stop, progress),
    }
}

fn run<R: Real, const L: usize>(
    problem: &ConcurrentProblem<'_>,
    layout: &Layout<'_>,
    options: &SolverOptions,
    stop: &dyn Stop,
    progress: &mut dyn FnMut(f64, f64),
) -> Result<ConcurrentOptimum, ConcurrentError> {
    let mut iteration = PrimalDual::<R, L>::new(layout, stop);
    iteration.run(options, progress)?;
    finished(problem, layout, iteration, stop)
}

#[cfg(test)]
mod tests;
