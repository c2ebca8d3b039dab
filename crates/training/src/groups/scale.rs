//! How floats stand for the numbers of a program: everything is about 1.

use num_traits::ToPrimitive;

use crate::groups::layout::{Layout, Loads, Use};
use crate::groups::master::Column;
use crate::groups::program::{Aim, Program};

/// Units of floats.
pub(crate) struct Scale {
    /// What stands for 1 of z.
    unit: f64,
    /// What z is where its float is 0.
    begin: f64,
    /// By commodity class, what a weight of 1 sends.
    units: Vec<f64>,
    /// By commodity class and row, what a weight of 1 takes if it is used once.
    takes: Vec<Vec<f64>>,
}

pub(crate) fn as_float(number: &impl ToPrimitive) -> f64 {
    number.to_f64().unwrap_or(f64::MAX)
}

impl Scale {
    /// Times are parts of the one that stands for 1.
    pub(crate) fn of_time(capacities: &[f64], units: Vec<f64>, unit: f64) -> Self {
        let takes = |demand: &f64| capacities.iter().map(|capacity| demand / capacity / unit).collect();
        Self { unit, begin: 0.0, takes: units.iter().map(takes).collect(), units }
    }

    /// Rates are multiples of the one that stands for 1, above one that is reached already. What is missing of frozen
    /// rates is a part of 1.
    pub(crate) fn of_rate(layout: &Layout<'_>, program: &Program, capacities: &[f64], rate: f64, unit: f64) -> Self {
        let units = |(fixed, demand)| {
            let fixed = as_float(fixed);
            if fixed > 0.0 { fixed } else { as_float(demand) * unit }
        };
        let units: Vec<f64> = program.fixed.iter().zip(&layout.demands).map(units).collect();
        let takes = |sent: &f64| capacities.iter().map(|capacity| sent / capacity).collect();
        let takes = units.iter().map(takes).collect();
        let (unit, begin) = if program.aim == Aim::Rate { (unit, -rate) } else { (1.0, 0.0) };
        Self { unit, begin, units, takes }
    }

    /// The float of z.
    pub(crate) fn float(&self, value: f64) -> f64 {
        (value - self.begin) / self.unit
    }

    /// What a weight of 1 of a commodity class sends.
    pub(crate) fn sent(&self, commodity: usize) -> f64 {
        self.units[commodity]
    }

    /// A unit in the program of floats.
    pub(crate) fn column(&self, commodity: usize, loads: &Loads) -> Column {
        let takes = &self.takes[commodity];
        let time = |&(row, count): &(u32, u64)| (row, count as f64 * takes[row as usize]);
        Column { commodity, times: loads.iter().map(time).collect() }
    }
}

/// The greatest part of its capacity that units of these sizes take of a row.
pub(crate) fn busiest<'u>(capacities: &[f64], uses: impl Iterator<Item = (&'u Use, f64)>) -> f64 {
    taken(capacities, uses).into_iter().fold(f64::MIN_POSITIVE, f64::max)
}

/// By row, the part of its capacity that units of these sizes take.
pub(crate) fn taken<'u>(capacities: &[f64], uses: impl Iterator<Item = (&'u Use, f64)>) -> Vec<f64> {
    let mut taken = vec![0.0; capacities.len()];
    for (one, size) in uses {
        for &(row, count) in &one.loads {
            taken[row as usize] += count as f64 * size / capacities[row as usize];
        }
    }
    taken
}
