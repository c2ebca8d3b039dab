//! Linear programs as such: good_lp writes them out, interior points of clarabel solve them, and a [`Stop`] ends that.
//!
//! It computes in floats, and so only proposes.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use clarabel::solver::{IPSolver, SolverStatus};
use good_lp::{Constraint, Expression, ProblemVariables, SolverModel, Variable, clarabel, constraint, variable};

use crate::stop::{Stop, Stopped};

/// How near to the optimum, and to what the rows allow, a solution is: parts of the greatest numbers of the program.
const TOLERANCE: f64 = 1e-10;

/// What is taken where the solver gets no nearer.
const LOOSE_TOLERANCE: f64 = 1e-7;

/// Variables of at least 0, and rows that hold sums of them down.
///
/// Numbers are best within some powers of ten of 1.
#[derive(Default)]
pub(crate) struct Program {
    variables: ProblemVariables,
    rows: Vec<Constraint>,
    /// By row, whether it holds its sum up as well as down.
    is_exact: Vec<bool>,
}

/// A point inside the face of optimal solutions, near its analytic centre: whatever can be positive in a solution is.
#[derive(Debug)]
pub(crate) struct Solution {
    /// By variable, in the order in which they were made; not below 0.
    pub(crate) values: Vec<f64>,
    /// By row, in the order in which they were made, what one unit more of its right side is worth; below 0 only of
    /// exact ones.
    pub(crate) prices: Vec<f64>,
}

impl Program {
    /// One more variable; they are numbered from 0.
    pub(crate) fn variable(&mut self) -> Variable {
        self.variables.add(variable().min(0.0))
    }

    /// How many variables there are.
    pub(crate) fn variable_count(&self) -> usize {
        self.variables.len()
    }

    /// How many rows there are.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// One more row: the sum is at most `right`.
    pub(crate) fn at_most(&mut self, sum: Expression, right: f64) {
        self.rows.push(constraint!(sum <= right));
        self.is_exact.push(false);
    }

    /// One more row: the sum is this.
    pub(crate) fn exactly(&mut self, sum: Expression, right: f64) {
        self.rows.push(constraint!(sum == right));
        self.is_exact.push(true);
    }

    /// The greatest value of `objective`; `None` where the solver finds none.
    ///
    /// * **Errors.** Stopped: asked between two iterations, of which there are some 10 to 40.
    /// * **Cost.** Each iteration factorises a sparse matrix of as many rows as there are variables and rows together.
    pub(crate) fn maximised(self, objective: Expression, stop: &dyn Stop) -> Result<Option<Solution>, Stopped> {
        if stop.is_requested() {
            return Err(Stopped);
        }
        // The solver asks from a thread of its own, as it keeps nothing that is only lent to it.
        let ((ask, asked), (answer, answered)) = (channel::<()>(), channel::<bool>());
        let mut is_stopped = false;
        let solution = thread::scope(|scope| {
            let answered = Mutex::new(answered);
            let is_requested = move || {
                ask.send(()).is_err() || answered.lock().map_or(true, |answered| answered.recv().unwrap_or(true))
            };
            let solver = scope.spawn(move || self.solved(objective, is_requested));
            // Until the solver, and with it what asks, is gone.
            for () in asked {
                is_stopped |= stop.is_requested();
                if answer.send(is_stopped).is_err() {
                    break;
                }
            }
            // A solver that panics has no solution, as one that gives up.
            solver.join().unwrap_or(None)
        });
        if is_stopped { Err(Stopped) } else { Ok(solution) }
    }

    fn solved(
        self,
        objective: Expression,
        is_requested: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Option<Solution> {
        let variable_count = self.variable_count();
        let mut model =
            self.rows.into_iter().fold(self.variables.maximise(objective).using(clarabel), SolverModel::with);
        let settings = model.settings();
        settings.tol_feas(TOLERANCE).tol_gap_abs(TOLERANCE).tol_gap_rel(TOLERANCE);
        settings.reduced_tol_feas(LOOSE_TOLERANCE);
        settings.reduced_tol_gap_abs(LOOSE_TOLERANCE).reduced_tol_gap_rel(LOOSE_TOLERANCE);
        let mut solver = model.try_into_solver().ok()?;
        solver.set_termination_callback(move |_| is_requested());
        solver.solve();
        let is_near = matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved);
        // That variables are not negative are the solver's first rows.
        let prices = solver.solution.z.get(variable_count..).unwrap_or_default();
        let price = |(&price, is_exact): (&f64, bool)| if is_exact { price } else { price.max(0.0) };
        is_near.then(|| Solution {
            values: solver.solution.x.iter().map(|&value| value.max(0.0)).collect(),
            prices: prices.iter().zip(self.is_exact).map(price).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Never;

    /// max 3x + 2y subject to x + y ≤ 4, x ≤ 3: x = 3, y = 1; a unit of the first row is worth 2, of the second 1.
    fn small() -> (Program, Expression) {
        let mut program = Program::default();
        let (x, y) = (program.variable(), program.variable());
        program.at_most(x + y, 4.0);
        program.at_most(x.into(), 3.0);
        (program, 3.0 * x + 2.0 * y)
    }

    #[test]
    fn values_and_prices_are_those_of_the_optimum() {
        let (program, objective) = small();
        let solution = program.maximised(objective, &Never).unwrap().unwrap();
        for (found, expected) in solution.values.iter().chain(&solution.prices).zip([3.0, 1.0, 2.0, 1.0]) {
            assert!((found - expected).abs() < 1e-8, "{solution:?}");
        }
    }

    #[test]
    fn a_program_without_an_optimum_has_no_solution() {
        let mut program = Program::default();
        let x = program.variable();
        program.at_most(-1.0 * x, 0.0);
        assert!(program.maximised(x.into(), &Never).unwrap().is_none());
    }

    #[test]
    fn a_standing_request_stops_at_once() {
        let (program, objective) = small();
        assert_eq!(program.maximised(objective, &|| true).unwrap_err(), Stopped);
    }
}
