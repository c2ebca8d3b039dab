//! A basis of a linear program, solved in fractions.

use canopy_optimize::Stop;
use num_bigint::BigInt;
use num_integer::Integer as _;
use num_rational::BigRational;
use num_traits::{One as _, Signed as _, ToPrimitive as _, Zero as _};

use crate::groups::exact::{Rows, System};
use crate::groups::layout::{Layout, Use, greatest_time};
use crate::groups::master::Variable;
use crate::groups::problem::GroupsError;
use crate::groups::program::{Aim, Program};

/// Lengths of more bits than this could overflow in sums.
const LENGTH_BITS_MAX: u64 = 100;

/// A basis in fractions.
pub(crate) struct Vertex {
    /// By column of the pool, what is sent of it.
    pub(crate) weights: Vec<BigRational>,
    /// What is minimised.
    pub(crate) value: BigRational,
    /// By row, the price of capacity, over a denominator that `worth` has, too.
    prices: Vec<BigInt>,
    /// By commodity class, what a unit of it costs.
    pub(crate) worth: Vec<BigInt>,
}

impl Vertex {
    /// `None` where the numbers are too long, or the basis does not fit the capacities in fractions.
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn of(
        layout: &Layout<'_>,
        program: &Program,
        uses: &[Use],
        basis: &[Variable],
        stop: &dyn Stop,
    ) -> Result<Option<Self>, GroupsError> {
        let row_count = layout.capacities.len();
        let mut is_full = vec![true; row_count];
        let mut columns = Vec::new();
        for &variable in basis {
            match variable {
                Variable::Slack(row) => is_full[row] = false,
                Variable::Weight(column) => columns.push(column),
                Variable::Time => {}
            }
        }
        let full: Vec<usize> = (0..row_count).filter(|&row| is_full[row]).collect();
        let mut place = vec![usize::MAX; row_count];
        full.iter().enumerate().for_each(|(number, &row)| place[row] = number);
        let mut rows: Rows = vec![Vec::new(); full.len() + layout.commodities.len()];
        for (number, &column) in columns.iter().enumerate() {
            let Use { commodity, loads, .. } = &uses[column];
            for &(row, count) in loads.iter().filter(|&&(row, _)| is_full[row as usize]) {
                rows[place[row as usize]].push((number, BigInt::from(count)));
            }
            rows[full.len() + commodity].push((number, BigInt::one()));
        }
        // Weights are over one denominator, and what is minimised is over another.
        let (moving, common) = (denominator(&program.moves), denominator(&program.fixed));
        let last = columns.len();
        let (of_last, of_right) = program.of_row();
        let mut right = Vec::with_capacity(rows.len());
        for (number, &row) in full.iter().enumerate() {
            push(&mut rows[number], last, &layout.capacities[row] * &moving * of_last);
            right.push(&layout.capacities[row] * &common * of_right);
        }
        for (commodity, (moves, fixed)) in program.moves.iter().zip(&program.fixed).enumerate() {
            push(&mut rows[full.len() + commodity], last, moves.numer() * (&moving / moves.denom()));
            right.push(fixed.numer() * (&common / fixed.denom()));
        }
        let Some(system) = System::new(rows, stop)? else { return Ok(None) };
        let Some(primal) = system.solved(&right, stop)? else { return Ok(None) };
        let mut objective = vec![BigInt::zero(); last];
        objective.push(BigInt::one());
        let Some(dual) = system.solved_transposed(&objective, stop)? else { return Ok(None) };
        let below = &primal.denominator * common;
        let mut weights = vec![BigRational::zero(); uses.len()];
        for (number, &column) in columns.iter().enumerate() {
            weights[column] = BigRational::new(primal.numerators[number].clone(), below.clone());
        }
        let mut prices = vec![BigInt::zero(); row_count];
        full.iter().enumerate().for_each(|(number, &row)| prices[row] = -&dual.numerators[number]);
        let vertex = Self {
            value: BigRational::new(&primal.numerators[last] * moving, below),
            worth: dual.numerators[full.len()..].to_vec(),
            weights,
            prices,
        };
        let is_feasible = vertex.is_feasible(layout, program, uses, stop)?;
        Ok(Some(vertex).filter(|_| is_feasible))
    }

    fn is_feasible(
        &self,
        layout: &Layout<'_>,
        program: &Program,
        uses: &[Use],
        stop: &dyn Stop,
    ) -> Result<bool, GroupsError> {
        let is_possible = match program.aim {
            Aim::Time => self.value.is_positive(),
            Aim::Rate => !self.value.is_positive(),
            Aim::Missing => !self.value.is_negative(),
        };
        if !is_possible || self.weights.iter().any(BigRational::is_negative) {
            return Ok(false);
        }
        Ok(greatest_time(layout, uses, &self.weights, stop)? <= program.room(&self.value))
    }

    /// Whole lengths of rows in the proportion of the prices; `None` where the basis is not one of an optimum in
    /// fractions, or they have too many bits.
    pub(crate) fn lengths(&self) -> Option<Vec<u128>> {
        self.prices.iter().map(|price| (price.bits() <= LENGTH_BITS_MAX).then(|| price.to_u128()).flatten()).collect()
    }
}

/// What all fractions can be written over.
fn denominator(fractions: &[BigRational]) -> BigInt {
    fractions.iter().fold(BigInt::one(), |common, fraction| common.lcm(fraction.denom()))
}

fn push(row: &mut Vec<(usize, BigInt)>, column: usize, entry: BigInt) {
    if !entry.is_zero() {
        row.push((column, entry));
    }
}
