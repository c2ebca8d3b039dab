//! The linear program over the units found so far, by the simplex method in floats: it proposes, fractions decide.
//!
//! One unknown is minimised, beside weights of units and a slack for each row. Where it is the common time U, the
//! weights of a commodity add up to 1, and the time that all units take on a row is at most U, which begins at the
//! greatest time of one unit of each commodity. Everything is about 1.

use canopy_optimize::Stop;

use crate::groups::patience::Asking;
use crate::groups::problem::GroupsError;

/// A unit in the program.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) commodity: usize,
    /// By row that it uses, rising, the time that all of the commodity's demand would take there.
    pub(crate) times: Vec<(u32, f64)>,
}

impl Column {
    /// What a unit of it costs at these prices, less what its commodity is worth.
    pub(crate) fn reduced(&self, prices: &Prices) -> f64 {
        let cost: f64 = self.times.iter().map(|&(row, time)| time * prices.rows[row as usize]).sum();
        cost - prices.commodities[self.commodity]
    }
}

/// A variable of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// The common time, or whatever is minimised.
    Time,
    /// What is left of a row.
    Slack(usize),
    /// The weight of a column.
    Weight(usize),
}

/// Prices of rows, and what a unit of each commodity costs at most.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    /// By row; not negative, and 1 in sum.
    pub(crate) rows: Vec<f64>,
    /// By commodity.
    pub(crate) commodities: Vec<f64>,
}

/// The program, and a basis of it.
pub(crate) struct Master {
    row_count: usize,
    commodity_count: usize,
    columns: Vec<Column>,
    /// By row and commodity, the entry of what is minimised.
    moves: Vec<f64>,
    /// By row and commodity, the right side.
    right: Vec<f64>,
    /// Whether what is minimised has reached its end at zero.
    ends_at_zero: bool,
    basis: Vec<Variable>,
    /// Inverse of the basis, row by row.
    inverse: Vec<f64>,
    /// By row of the basis, the value of its variable.
    values: Vec<f64>,
    is_basic: Vec<bool>,
    pivots_since: usize,
    degenerate: usize,
}

/// How the pivots of a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pivots {
    /// No column is worth more.
    Done,
    Stopped,
    /// What is minimised is zero, and left the basis.
    Zero,
}

/// A basis to begin with, and the values of its variables.
pub(crate) struct Start {
    pub(crate) basis: Vec<Variable>,
    pub(crate) values: Vec<f64>,
}

/// What counts as a negative price of a column.
const PRICE_EPS: f64 = 1e-11;
/// What counts as an entry to pivot on.
const PIVOT_EPS: f64 = 1e-9;
/// How much rows differ, so that few of them are full at the same time.
const SHIFT: f64 = 1e-9;
/// Pivots for each row that may change nothing before it is given up.
const DEGENERATE_MAX: usize = 100;
/// Pivots before the inverse is computed anew.
const PIVOTS_MAX: usize = 150;

impl Master {
    /// A program in which each commodity has one column, in order.
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn new(row_count: usize, columns: Vec<Column>, stop: &dyn Stop) -> Result<Self, GroupsError> {
        let commodity_count = columns.len();
        let size = row_count + commodity_count;
        let mut times = vec![0.0; row_count];
        for &(row, time) in columns.iter().flat_map(|column| &column.times) {
            times[row as usize] += time;
        }
        let full = (0..row_count).max_by(|&a, &b| times[a].total_cmp(&times[b])).unwrap_or(0);
        let mut basis: Vec<Variable> =
            (0..row_count).map(|row| if row == full { Variable::Time } else { Variable::Slack(row) }).collect();
        basis.extend((0..commodity_count).map(Variable::Weight));
        let mut moves = vec![-1.0; row_count];
        moves.resize(size, 0.0);
        let mut right: Vec<f64> = (0..row_count).map(shift).collect();
        right.resize(size, 1.0);
        let mut master = Self::plain(row_count, commodity_count, columns, moves, basis);
        master.right = right;
        master.invert(stop)?;
        Ok(master)
    }

    /// A program with a basis to begin with. If what is minimised is not in the basis, it begins at zero and enters.
    ///
    /// * **In.** `moves`: by row and commodity, the entry of what is minimised; `ends_at_zero`: whether it may not be
    ///   negative.
    /// * **None.** Nothing keeps it from falling.
    /// * **Errors.** Stopped.
    pub(crate) fn at(
        row_count: usize,
        columns: Vec<Column>,
        moves: Vec<f64>,
        start: Start,
        ends_at_zero: bool,
        stop: &dyn Stop,
    ) -> Result<Option<Self>, GroupsError> {
        let commodity_count = moves.len() - row_count;
        let mut master = Self::plain(row_count, commodity_count, columns, moves, start.basis);
        master.ends_at_zero = ends_at_zero;
        // Sides that make every variable positive, so that few of them reach zero at the same time.
        for (place, &value) in start.values.iter().enumerate() {
            let value = value.max(0.0) + shift(place);
            for (at, entry) in master.entries(master.basis[place]) {
                master.right[at] += entry * value;
            }
        }
        master.invert(stop)?;
        if !master.basis.contains(&Variable::Time) {
            let falls: Vec<f64> = master.direction(Variable::Time).into_iter().map(|fall| -fall).collect();
            let Some(place) = master.leaving(&falls) else { return Ok(None) };
            if let Variable::Weight(column) = std::mem::replace(&mut master.basis[place], Variable::Time) {
                master.is_basic[column] = false;
            }
            master.invert(stop)?;
        }
        Ok(Some(master))
    }

    fn plain(
        row_count: usize,
        commodity_count: usize,
        columns: Vec<Column>,
        moves: Vec<f64>,
        basis: Vec<Variable>,
    ) -> Self {
        let size = row_count + commodity_count;
        let mut is_basic = vec![false; columns.len()];
        for &variable in &basis {
            if let Variable::Weight(column) = variable {
                is_basic[column] = true;
            }
        }
        Self {
            row_count,
            commodity_count,
            columns,
            moves,
            right: vec![0.0; size],
            ends_at_zero: false,
            basis,
            inverse: vec![0.0; size * size],
            values: vec![0.0; size],
            is_basic,
            pivots_since: 0,
            degenerate: 0,
        }
    }

    pub(crate) fn basis(&self) -> &[Variable] {
        &self.basis
    }

    pub(crate) fn add(&mut self, column: Column) {
        self.columns.push(column);
        self.is_basic.push(false);
    }

    /// The common time.
    pub(crate) fn time(&self) -> f64 {
        let place = self.basis.iter().position(|&variable| variable == Variable::Time);
        place.map_or(0.0, |place| self.values[place])
    }

    /// By column, its weight.
    pub(crate) fn weights(&self) -> Vec<f64> {
        let mut weights = vec![0.0; self.columns.len()];
        for (&variable, &value) in self.basis.iter().zip(&self.values) {
            if let Variable::Weight(column) = variable {
                weights[column] = value.max(0.0);
            }
        }
        weights
    }

    /// The prices that belong to the basis.
    pub(crate) fn prices(&self) -> Prices {
        let size = self.size();
        let place = self.basis.iter().position(|&variable| variable == Variable::Time).unwrap_or(0);
        let row = &self.inverse[place * size..(place + 1) * size];
        let rows = row[..self.row_count].iter().map(|price| (-price).max(0.0)).collect();
        Prices { rows, commodities: row[self.row_count..].to_vec() }
    }

    /// Pivots until no column is worth more, or what is minimised is at its end.
    pub(crate) fn solve(&mut self, stop: &dyn Stop) -> Pivots {
        loop {
            // Of a stopped inversion nothing is left, and the one that pivots have changed still holds.
            if stop.is_requested() || (self.pivots_since >= PIVOTS_MAX && self.invert(stop).is_err()) {
                return Pivots::Stopped;
            }
            let prices = self.prices();
            let Some(entering) = self.entering(&prices) else { return Pivots::Done };
            let direction = self.direction(entering);
            let Some(place) = self.leaving(&direction) else { return Pivots::Done };
            let is_end = self.basis[place] == Variable::Time;
            self.pivot(place, entering, &direction);
            if is_end {
                return Pivots::Zero;
            }
            if self.degenerate > DEGENERATE_MAX * self.size() {
                // It may go round in circles: these prices are as good as others.
                return Pivots::Done;
            }
        }
    }

    fn size(&self) -> usize {
        self.row_count + self.commodity_count
    }

    /// The variable of the most negative price; after many pivots that changed nothing, the first of a negative one.
    fn entering(&self, prices: &Prices) -> Option<Variable> {
        let place = self.basis.iter().position(|&variable| variable == Variable::Time).unwrap_or(0);
        let duals = &self.inverse[place * self.size()..][..self.row_count];
        let slacks = duals.iter().enumerate().map(|(row, dual)| (Variable::Slack(row), -dual));
        let weights = (0..self.columns.len())
            .filter(|&column| !self.is_basic[column])
            .map(|column| (Variable::Weight(column), self.columns[column].reduced(prices)));
        let mut negative = slacks.chain(weights).filter(|&(_, price)| price < -PRICE_EPS);
        if self.degenerate > 4 * self.size() {
            return negative.next().map(|(variable, _)| variable);
        }
        negative.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(variable, _)| variable)
    }

    /// How the basic variables fall while one enters.
    fn direction(&self, entering: Variable) -> Vec<f64> {
        let size = self.size();
        let entries = self.entries(entering);
        (0..size)
            .map(|place| {
                let row = &self.inverse[place * size..(place + 1) * size];
                entries.iter().map(|&(at, entry)| row[at] * entry).sum()
            })
            .collect()
    }

    /// The column of a variable, where it is not zero.
    fn entries(&self, variable: Variable) -> Vec<(usize, f64)> {
        match variable {
            Variable::Time => self.moves.iter().copied().enumerate().filter(|(_, entry)| entry.abs() > 0.0).collect(),
            Variable::Slack(row) => vec![(row, 1.0)],
            Variable::Weight(column) => {
                let Column { commodity, times } = &self.columns[column];
                let mut entries: Vec<(usize, f64)> = times.iter().map(|&(row, time)| (row as usize, time)).collect();
                entries.push((self.row_count + commodity, 1.0));
                entries
            }
        }
    }

    /// The place whose variable reaches zero first; of several, that of the largest entry.
    fn leaving(&self, direction: &[f64]) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for (place, &fall) in direction.iter().enumerate().filter(|(_, fall)| **fall > PIVOT_EPS) {
            if self.basis[place] == Variable::Time && !self.ends_at_zero {
                continue;
            }
            let ratio = self.values[place].max(0.0) / fall;
            let is_better = best.is_none_or(|(other, least)| {
                ratio < least - 1e-13 || (ratio <= least + 1e-13 && fall > direction[other])
            });
            if is_better {
                best = Some((place, ratio));
            }
        }
        best.map(|(place, _)| place)
    }

    fn pivot(&mut self, place: usize, entering: Variable, direction: &[f64]) {
        let size = self.size();
        let step = self.values[place].max(0.0) / direction[place];
        self.degenerate = if step > 1e-12 { 0 } else { self.degenerate + 1 };
        for (other, fall) in direction.iter().enumerate() {
            if other != place {
                self.values[other] -= step * fall;
            }
        }
        self.values[place] = step;
        let pivot = direction[place];
        let mut row = self.inverse[place * size..(place + 1) * size].to_vec();
        row.iter_mut().for_each(|entry| *entry /= pivot);
        let used: Vec<(usize, f64)> = row.iter().copied().enumerate().filter(|&(_, entry)| entry.abs() > 0.0).collect();
        for (other, &fall) in direction.iter().enumerate() {
            if other != place && fall.abs() > 0.0 {
                let target = &mut self.inverse[other * size..(other + 1) * size];
                used.iter().for_each(|&(at, entry)| target[at] -= fall * entry);
            }
        }
        self.inverse[place * size..(place + 1) * size].copy_from_slice(&row);
        if let Variable::Weight(column) = self.basis[place] {
            self.is_basic[column] = false;
        }
        if let Variable::Weight(column) = entering {
            self.is_basic[column] = true;
        }
        self.basis[place] = entering;
        self.pivots_since += 1;
    }

    /// Computes the inverse and the values from the basis. O(rows³).
    ///
    /// # Errors
    /// Stopped: nothing has changed.
    fn invert(&mut self, stop: &dyn Stop) -> Result<(), GroupsError> {
        let size = self.size();
        let mut matrix = vec![0.0; size * size];
        for (place, &variable) in self.basis.iter().enumerate() {
            self.entries(variable).into_iter().for_each(|(at, entry)| matrix[at * size + place] = entry);
        }
        if let Some(inverse) = inverted(matrix, size, stop)? {
            self.inverse = inverse;
        }
        self.pivots_since = 0;
        for place in 0..size {
            let row = &self.inverse[place * size..(place + 1) * size];
            self.values[place] = row.iter().zip(&self.right).map(|(entry, right)| entry * right).sum();
        }
        Ok(())
    }
}

/// How much more a row carries than it does.
fn shift(row: usize) -> f64 {
    // Some bits that look as if by chance.
    let mixed = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    SHIFT * (1.0 + mixed as f64 / f64::from(1 << 24))
}

/// By elimination with the largest pivots; `None` where there is no inverse.
fn inverted(mut matrix: Vec<f64>, size: usize, stop: &dyn Stop) -> Result<Option<Vec<f64>>, GroupsError> {
    let mut asking = Asking::of(stop);
    let mut inverse = vec![0.0; size * size];
    (0..size).for_each(|place| inverse[place * size + place] = 1.0);
    for column in 0..size {
        // Entries of a column are far from each other in memory.
        asking.before(16 * size)?;
        let by_size =
            |&a: &usize, &b: &usize| matrix[a * size + column].abs().total_cmp(&matrix[b * size + column].abs());
        let Some(pivot) = (column..size).max_by(by_size) else { return Ok(None) };
        let entry = matrix[pivot * size + column];
        if entry.abs() < 1e-14 {
            return Ok(None);
        }
        for at in 0..size {
            matrix.swap(pivot * size + at, column * size + at);
            inverse.swap(pivot * size + at, column * size + at);
        }
        for at in 0..size {
            matrix[column * size + at] /= entry;
            inverse[column * size + at] /= entry;
        }
        let (row, own): (Vec<f64>, Vec<f64>) =
            (matrix[column * size..(column + 1) * size].to_vec(), inverse[column * size..(column + 1) * size].to_vec());
        for other in (0..size).filter(|&other| other != column) {
            let factor = matrix[other * size + column];
            if factor.abs() > 0.0 {
                asking.before(2 * size)?;
                for at in column..size {
                    matrix[other * size + at] -= factor * row[at];
                }
                for at in 0..size {
                    inverse[other * size + at] -= factor * own[at];
                }
            }
        }
    }
    Ok(Some(inverse))
}
