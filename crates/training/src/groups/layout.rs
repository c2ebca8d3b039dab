//! The linear program of a problem: a row for each class of arcs, a demand for each class of commodities, and how units
//! use rows.

use std::collections::BTreeMap;

use canopy_optimize::Stop;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed as _, Zero as _};
use rayon::prelude::*;

use crate::groups::commodity::{Commodity, Lengths, Unit, Width};
use crate::groups::joined::Classes;
use crate::groups::patience::Asking;
use crate::groups::problem::{GroupProblem, GroupsError};
use crate::groups::symmetry::Symmetry;

/// Bytes for each entry of the inverse of a basis: itself, the one before, and what it is computed from.
const ENTRY_BYTES: u64 = 32;

/// By row, how often a unit uses it.
pub(crate) type Loads = Vec<(u32, u64)>;

/// The program's data: classes of arcs and commodities, and what one unit takes of them.
pub(crate) struct Layout<'a> {
    pub(crate) problem: &'a GroupProblem,
    pub(crate) symmetry: &'a Symmetry,
    pub(crate) is_reversible: bool,
    /// Whether all links carry as much both ways.
    is_even: bool,
    pub(crate) rows: Classes,
    /// By row, the capacity of all its arcs.
    pub(crate) capacities: Vec<BigInt>,
    pub(crate) commodities: Vec<Commodity>,
    /// By commodity class, the demand of all of it.
    pub(crate) demands: Vec<BigRational>,
    /// By commodity class, what all of it sends at the rate at which its group is frozen.
    pub(crate) frozen: Vec<Option<BigRational>>,
    /// By group, the group whose commodities stand for its own.
    pub(crate) like: Vec<usize>,
    /// By commodity class, where pairs of trees may have their root.
    roots: Vec<Vec<u32>>,
}

impl<'a> Layout<'a> {
    /// # Errors
    /// Stopped.
    pub(crate) fn new(problem: &'a GroupProblem, symmetry: &'a Symmetry, stop: &dyn Stop) -> Result<Self, GroupsError> {
        let is_reversible = problem.is_reversible();
        let rows = symmetry.arcs(problem, is_reversible, stop)?;
        let mut capacities = vec![BigInt::zero(); rows.first.len()];
        for (arc, &row) in problem.graph().arcs.iter().zip(&rows.of) {
            capacities[row as usize] += arc.capacity;
        }
        let all = Commodity::all(problem);
        let classes = symmetry.commodities(problem, &all, stop)?;
        let commodities: Vec<Commodity> = classes.first.iter().map(|&first| all[first]).collect();
        let mut like = vec![0; problem.groups().len()];
        for (one, &class) in all.iter().zip(&classes.of) {
            like[one.group] = commodities[class as usize].group;
        }
        let demands: Vec<BigRational> = commodities
            .iter()
            .zip(&classes.count)
            .map(|(commodity, &count)| commodity.demand(problem) * BigInt::from(count))
            .collect();
        let frozen = commodities.iter().zip(&demands).map(|(one, demand)| {
            let rate = problem.frozen()[one.group].as_ref()?;
            Some(rate * demand / BigInt::from(problem.groups()[one.group].size))
        });
        let frozen = frozen.collect();
        let needs_roots = |one: &Commodity| one.root.is_none() && !is_reversible && !symmetry.is_none();
        let every =
            |one: &Commodity| (0_u32..).zip(&problem.groups()[one.group].members).map(|(root, _)| root).collect();
        let of = |one: &Commodity| {
            if needs_roots(one) { symmetry.roots(problem, one.group, stop) } else { Ok(every(one)) }
        };
        let roots = commodities.iter().map(of).collect::<Result<_, _>>()?;
        let is_even = problem.is_even();
        Ok(Self {
            problem,
            symmetry,
            is_reversible,
            is_even,
            rows,
            capacities,
            commodities,
            demands,
            frozen,
            like,
            roots,
        })
    }

    /// Bytes that a search takes, roughly: the inverse of the basis, what a unit of each commodity takes of each row,
    /// one unit of each commodity with the next one, and the searches of the network that run at once.
    pub(crate) fn search_bytes(&self) -> u64 {
        let (rows, classes) = (self.capacities.len() as u64, self.commodities.len() as u64);
        let size = rows.saturating_add(classes);
        let units = self.commodities.iter().map(|one| one.unit_bytes(self.problem)).fold(0, u64::saturating_add);
        let pricing = self.commodities.iter().map(|one| one.pricing_bytes(self.problem)).max().unwrap_or(0);
        let at_once = (rayon::current_num_threads() as u64).min(classes);
        (size.saturating_mul(size).saturating_mul(ENTRY_BYTES))
            .saturating_add(rows.saturating_mul(classes).saturating_mul(8))
            .saturating_add(units.saturating_mul(2))
            .saturating_add(pricing.saturating_mul(at_once))
    }

    /// By arc, its length, from those of rows.
    pub(crate) fn by_arc(&self, rows: &[u128]) -> Vec<u128> {
        self.rows.of.iter().map(|&row| rows[row as usize]).collect()
    }

    /// The narrowest units that are enough, or may be.
    pub(crate) const fn least_width(&self) -> Width {
        if self.is_even { Width::Trees } else { Width::Pairs }
    }

    /// The cheapest units, by commodity class, and what they cost: among trees used both ways alone, where these are
    /// enough.
    pub(crate) fn priced(
        &self,
        rows: &[u128],
        width: Width,
        stop: &dyn Stop,
    ) -> Result<Vec<(u128, Unit)>, GroupsError> {
        let width = if self.is_reversible { Width::Trees } else { width };
        let lengths = Lengths::new(self.problem, self.by_arc(rows));
        let price = |(commodity, roots): (&Commodity, &Vec<u32>)| {
            if stop.is_requested() {
                return Err(GroupsError::Stopped);
            }
            let priced = commodity.priced(self.problem, &lengths, width, roots, stop)?;
            Ok((priced.cost, priced.unit))
        };
        // The first error is the same in every run.
        let priced: Vec<Result<_, GroupsError>> = self.commodities.par_iter().zip(&self.roots).map(price).collect();
        priced.into_iter().collect()
    }

    /// How often a unit uses each row.
    pub(crate) fn loads(&self, unit: &Unit) -> Loads {
        let mut loads: BTreeMap<u32, u64> = BTreeMap::new();
        unit.for_each_arc(self.problem, |arc| *loads.entry(self.rows.of[arc as usize]).or_default() += 1);
        loads.into_iter().collect()
    }
}

/// A unit of a commodity class, and how often it uses each row.
pub(crate) struct Use {
    pub(crate) commodity: usize,
    pub(crate) unit: Unit,
    pub(crate) loads: Loads,
}

/// The greatest time of a row.
///
/// # Errors
/// Stopped.
pub(crate) fn greatest_time(
    layout: &Layout<'_>,
    uses: &[Use],
    weights: &[BigRational],
    stop: &dyn Stop,
) -> Result<BigRational, GroupsError> {
    let mut asking = Asking::of(stop);
    let mut loads = vec![BigRational::zero(); layout.capacities.len()];
    for (weight, one) in weights.iter().zip(uses).filter(|(weight, _)| weight.is_positive()) {
        for &(row, count) in &one.loads {
            let load = &mut loads[row as usize];
            // Sums of fractions take longer the longer their denominators are.
            let digits = usize::try_from(load.denom().bits() / 64).unwrap_or(usize::MAX);
            asking.before(64 * (1 + digits.saturating_mul(digits)))?;
            *load += weight * BigInt::from(count);
        }
    }
    let times = loads.into_iter().zip(&layout.capacities).map(|(load, capacity)| load / capacity);
    Ok(times.max().unwrap_or_else(BigRational::zero))
}
