//! What fractions allow, and what prices prove.

use good_lp::{Expression, Variable};

use super::BinaryProgram;
use crate::concurrent::{Program, Solution, as_float};
use crate::stop::{Stop, Stopped};

/// Parts of one in which prices are re-added.
const ONE: i64 = 1 << 24;
/// Greatest price that counts, in these parts.
const PRICE_MAX: f64 = 1e15;

/// A solution in fractions.
#[derive(Clone, Debug, PartialEq)]
pub struct Relaxed {
    /// By variable: a float between 0 and 1, which decides nothing.
    pub values: Vec<f64>,
    /// More than so much of what is wanted there is not, in parts of 2⁻²⁴: computed in integers from the prices of rows.
    bound: i128,
}

impl Relaxed {
    /// Whether the bound proves that not all that is wanted can be 1.
    pub(super) fn is_short_of(&self, program: &BinaryProgram) -> bool {
        let wanted: i128 = program.wanted.iter().map(|&(_, worth)| i128::from(worth)).sum();
        self.bound < wanted * i128::from(ONE)
    }
}

/// Maximises how much of what is wanted there is, by interior points, and bounds it.
///
/// For any prices y ≥ 0 of rows Ax ≤ b, and 0 ≤ x ≤ 1: c·x ≤ y·b + Σ max(0, c − yA). Those of the solver are rounded first, so
/// that the sum is exact whatever the solver did.
pub(super) fn relaxed(program: &BinaryProgram, stop: &dyn Stop) -> Result<Option<Relaxed>, Stopped> {
    let mut linear = Program::default();
    let variables: Vec<Variable> = (0..program.variable_count).map(|_| linear.variable()).collect();
    for row in &program.rows {
        let mut sum = Expression::with_capacity(row.literals.len());
        let mut right = f64::from(row.most);
        for literal in &row.literals {
            let sign = if literal.is_negated() { -1.0 } else { 1.0 };
            right -= f64::from(literal.is_negated());
            sum.add_mul(sign, variables[literal.variable() as usize]);
        }
        linear.at_most(sum, right);
    }
    let mut objective = Expression::with_capacity(program.wanted.len());
    for &(variable, worth) in &program.wanted {
        linear.at_most(variables[variable as usize].into(), 1.0);
        objective.add_mul(f64::from(worth), variables[variable as usize]);
    }
    let Some(Solution { values, prices }) = linear.maximised(objective, stop)? else { return Ok(None) };
    let values = values.into_iter().map(|value| value.clamp(0.0, 1.0)).collect();
    Ok(Some(Relaxed { values, bound: bound(program, &prices) }))
}

/// The bound that prices prove, in parts.
fn bound(program: &BinaryProgram, prices: &[f64]) -> i128 {
    let mut reduced = vec![0_i128; program.variable_count as usize];
    for &(variable, worth) in &program.wanted {
        reduced[variable as usize] += i128::from(worth) * i128::from(ONE);
    }
    let mut bound = 0;
    for (row, &price) in program.rows.iter().zip(prices) {
        let price = i128::from(rounded(price));
        bound += price * i128::from(row.most);
        for literal in &row.literals {
            let sign = if literal.is_negated() { -1 } else { 1 };
            bound -= if literal.is_negated() { price } else { 0 };
            reduced[literal.variable() as usize] -= sign * price;
        }
    }
    bound + reduced.into_iter().map(|cost| cost.max(0)).sum::<i128>()
}

/// A price in whole parts; whichever it is, the bound holds.
#[expect(clippy::cast_possible_truncation, reason = "clamped to what is exact")]
fn rounded(price: f64) -> i64 {
    (price * as_float(ONE.unsigned_abs())).round().clamp(0.0, PRICE_MAX) as i64
}
