//! A basis of the linear program, solved in fractions.

use num_bigint::BigInt;
use num_integer::Integer as _;
use num_rational::BigRational;
use num_traits::{One as _, Signed as _, ToPrimitive as _, Zero as _};

use crate::exact::{Rows, System};
use crate::layout::{Layout, Use, greatest_time};
use crate::master::Variable;

/// Lengths of more bits than this could overflow in sums.
const LENGTH_BITS_MAX: u64 = 100;

/// A basis in fractions.
pub(crate) struct Vertex {
    /// By column of the pool, the bytes of it.
    pub(crate) weights: Vec<BigRational>,
    /// The common time, for sizes of one byte each.
    pub(crate) time: BigRational,
    /// By row, the price of capacity, over a denominator that `worth` has, too.
    prices: Vec<BigInt>,
    /// By commodity class, what a unit of it costs.
    pub(crate) worth: Vec<BigInt>,
}

impl Vertex {
    /// `None` where the numbers are too long, or the basis is not one of an optimum in fractions.
    pub(crate) fn of(layout: &Layout<'_>, uses: &[Use], basis: &[Variable]) -> Option<Self> {
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
        let time = columns.len();
        full.iter().enumerate().for_each(|(number, &row)| rows[number].push((time, -&layout.capacities[row])));
        let common = layout.demands.iter().fold(BigInt::one(), |common, demand| common.lcm(demand.denom()));
        let mut right = vec![BigInt::zero(); full.len()];
        right.extend(layout.demands.iter().map(|demand| demand.numer() * (&common / demand.denom())));
        let system = System::new(rows)?;
        let primal = system.solved(&right)?;
        let mut objective = vec![BigInt::zero(); time];
        objective.push(BigInt::one());
        let dual = system.solved_transposed(&objective)?;
        let denominator = &primal.denominator * common;
        let mut weights = vec![BigRational::zero(); uses.len()];
        for (number, &column) in columns.iter().enumerate() {
            weights[column] = BigRational::new(primal.numerators[number].clone(), denominator.clone());
        }
        let mut prices = vec![BigInt::zero(); row_count];
        full.iter().enumerate().for_each(|(number, &row)| prices[row] = -&dual.numerators[number]);
        let vertex = Self {
            time: BigRational::new(primal.numerators[time].clone(), denominator),
            worth: dual.numerators[full.len()..].to_vec(),
            weights,
            prices,
        };
        vertex.is_feasible(layout, uses).then_some(vertex)
    }

    fn is_feasible(&self, layout: &Layout<'_>, uses: &[Use]) -> bool {
        self.time.is_positive()
            && !self.weights.iter().any(BigRational::is_negative)
            && !self.prices.iter().any(BigInt::is_negative)
            && greatest_time(layout, uses, &self.weights) <= self.time
    }

    /// Whole lengths of rows in the proportion of the prices; `None` where they have too many bits.
    pub(crate) fn lengths(&self) -> Option<Vec<u128>> {
        self.prices.iter().map(|price| (price.bits() <= LENGTH_BITS_MAX).then(|| price.to_u128()).flatten()).collect()
    }
}
