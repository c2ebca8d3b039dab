//! The linear programs over units: what is minimised, and what it does to rows and demands.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One as _, Signed as _, Zero as _};

use crate::groups::layout::Layout;

/// What is minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The time in which all demands are met.
    Time,
    /// The negative of the common rate of all groups that are not frozen.
    Rate,
    /// The part of frozen rates that finds no room.
    Missing,
}

/// A program: minimise z, where the units of a commodity add up to `fixed − moves · z`, and the loads of rows to no
/// more than capacities; where z is a time, to capacities times z.
pub(crate) struct Program {
    pub(crate) aim: Aim,
    /// By commodity class.
    pub(crate) moves: Vec<BigRational>,
    /// By commodity class.
    pub(crate) fixed: Vec<BigRational>,
}

impl Program {
    /// All demands in the least time.
    pub(crate) fn time(layout: &Layout<'_>) -> Self {
        Self { aim: Aim::Time, moves: vec![BigRational::zero(); layout.demands.len()], fixed: layout.demands.clone() }
    }

    /// All demands that are not frozen, at the greatest common rate.
    pub(crate) fn rate(layout: &Layout<'_>, frozen: &[Option<BigRational>]) -> Self {
        let moves = |(frozen, demand): (&Option<BigRational>, &BigRational)| {
            if frozen.is_some() { BigRational::zero() } else { demand.clone() }
        };
        Self {
            aim: Aim::Rate,
            moves: frozen.iter().zip(&layout.demands).map(moves).collect(),
            fixed: frozen.iter().map(|frozen| frozen.clone().unwrap_or_default()).collect(),
        }
    }

    /// As much as possible of what is frozen.
    pub(crate) fn missing(frozen: &[Option<BigRational>]) -> Self {
        let fixed: Vec<BigRational> = frozen.iter().map(|frozen| frozen.clone().unwrap_or_default()).collect();
        Self { aim: Aim::Missing, moves: fixed.clone(), fixed }
    }

    /// For a capacity of 1, the entry of z in a row, and its right side.
    pub(crate) const fn of_row(&self) -> (i32, i32) {
        match self.aim {
            Aim::Time => (-1, 0),
            Aim::Rate | Aim::Missing => (0, 1),
        }
    }

    /// Whether a commodity class sends anything.
    pub(crate) fn counts(&self, commodity: usize) -> bool {
        self.moves[commodity].is_positive() || self.fixed[commodity].is_positive()
    }

    /// By how much of their capacity rows may be used.
    pub(crate) fn room(&self, value: &BigRational) -> BigRational {
        if self.aim == Aim::Time { value.clone() } else { BigRational::one() }
    }

    /// What z is at least, by lengths of rows and what the cheapest units of commodity classes cost: units take no less
    /// length than they cost, and no more than there is.
    pub(crate) fn limit(&self, layout: &Layout<'_>, rows: &[u128], costs: &[u128]) -> Option<BigRational> {
        let room: BigInt = layout.capacities.iter().zip(rows).map(|(capacity, &length)| capacity * length).sum();
        let room = BigRational::from_integer(room);
        let paid = |parts: &[BigRational]| -> BigRational {
            parts.iter().zip(costs).map(|(part, &cost)| part * BigInt::from(cost)).sum()
        };
        let (of_z, right) = self.of_row();
        let below = paid(&self.moves) - &room * BigInt::from(of_z);
        below.is_positive().then(|| (paid(&self.fixed) - room * BigInt::from(right)) / below)
    }
}
