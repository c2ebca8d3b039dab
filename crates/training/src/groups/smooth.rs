//! The greatest time of all rows, smoothed: weights of units of which no simplex is needed, and prices that many rows
//! share. It fills the pool where rows are many, and the simplex ends what it began.

use canopy_optimize::Stop;

use crate::groups::master::{Column, Prices};
use crate::groups::patience::Asking;
use crate::groups::problem::GroupsError;

/// Steps of Newton's method for one move.
const STEPS: u32 = 4;
/// What counts as a weight.
const WEIGHT_EPS: f64 = 1e-9;

/// Units and their weights; those of a commodity add up to 1.
pub(crate) struct Smooth {
    /// By commodity, its units with their weights.
    units: Vec<Vec<(Column, f64)>>,
    /// By row, the time that all units take.
    times: Vec<f64>,
    /// The difference of times in which the price of a row grows by e.
    scale: f64,
    /// By row, its price beside that of a time of `level`.
    prices: Vec<f64>,
    level: f64,
}

impl Smooth {
    /// Begins with these units, of which the first of each commodity has all weight.
    pub(crate) fn new(row_count: usize, commodity_count: usize, columns: impl IntoIterator<Item = Column>) -> Self {
        let units = vec![Vec::new(); commodity_count];
        let (times, prices) = (vec![0.0; row_count], vec![1.0; row_count]);
        let mut smooth = Self { units, times, scale: 1.0, prices, level: 0.0 };
        for column in columns {
            if smooth.units[column.commodity].is_empty() {
                column.times.iter().for_each(|&(row, time)| smooth.times[row as usize] += time);
                smooth.units[column.commodity].push((column, 1.0));
            } else {
                smooth.add(column);
            }
        }
        smooth
    }

    /// One more unit, of no weight yet.
    pub(crate) fn add(&mut self, column: Column) {
        self.units[column.commodity].push((column, 0.0));
    }

    /// The greatest time of a row.
    pub(crate) fn time(&self) -> f64 {
        self.times.iter().copied().fold(0.0, f64::max)
    }

    /// Prices of rows, 1 in sum, and what the cheapest unit of each commodity costs.
    pub(crate) fn prices(&self) -> Prices {
        let all: f64 = self.prices.iter().sum();
        let rows: Vec<f64> = self.prices.iter().map(|price| price / all).collect();
        let cost = |column: &Column| -> f64 { column.times.iter().map(|&(row, time)| time * rows[row as usize]).sum() };
        let cheapest =
            |units: &Vec<(Column, f64)>| units.iter().map(|(column, _)| cost(column)).fold(f64::MAX, f64::min);
        let commodities = self.units.iter().map(cheapest).collect();
        Prices { rows, commodities }
    }

    /// Moves weights from dear units to cheap ones, `passes` times for each commodity.
    ///
    /// * **Errors.** Stopped.
    /// * **Cost.** O(passes · sum of the rows of all units).
    pub(crate) fn settle(&mut self, scale: f64, passes: u32, stop: &dyn Stop) -> Result<(), GroupsError> {
        (self.scale, self.level) = (scale, self.time());
        for row in 0..self.times.len() {
            self.price(row);
        }
        let mut asking = Asking::of(stop);
        for _ in 0..passes {
            for commodity in 0..self.units.len() {
                asking.before(self.units[commodity].iter().map(|(column, _)| column.times.len()).sum())?;
                self.shift(commodity);
            }
        }
        Ok(())
    }

    fn price(&mut self, row: usize) {
        self.prices[row] = ((self.times[row] - self.level) / self.scale).min(300.0).exp();
    }

    fn cost(&self, column: &Column) -> f64 {
        column.times.iter().map(|&(row, time)| time * self.prices[row as usize]).sum()
    }

    /// Moves weight from the dearest unit of a commodity that has any to its cheapest one.
    fn shift(&mut self, commodity: usize) {
        let costs: Vec<(usize, (f64, f64))> =
            self.units[commodity].iter().map(|(column, weight)| (self.cost(column), *weight)).enumerate().collect();
        let by_cost = |a: &&(usize, (f64, f64)), b: &&(usize, (f64, f64))| a.1.0.total_cmp(&b.1.0);
        let Some(&(to, (least, _))) = costs.iter().min_by(by_cost) else { return };
        let weighty = costs.iter().filter(|(_, (_, weight))| *weight > WEIGHT_EPS);
        let Some(&(from, (most, all))) = weighty.max_by(by_cost) else { return };
        if to == from || most <= least {
            return;
        }
        let changes = changes(&self.units[commodity][from].0, &self.units[commodity][to].0);
        let moved = self.best_move(&changes, all);
        self.units[commodity][from].1 -= moved;
        self.units[commodity][to].1 += moved;
        for (row, change) in changes {
            self.times[row as usize] += change * moved;
            self.price(row as usize);
        }
    }

    /// How much weight to move, at most `all`, so that the smoothed time is least: Newton's method on its slope.
    fn best_move(&self, changes: &[(u32, f64)], all: f64) -> f64 {
        let mut moved = 0.0;
        for _ in 0..STEPS {
            let (mut slope, mut bend) = (0.0, 0.0);
            for &(row, change) in changes {
                let price = self.prices[row as usize] * (change * moved / self.scale).min(300.0).exp();
                slope += price * change;
                bend += price * change * change / self.scale;
            }
            if bend <= f64::MIN_POSITIVE {
                break;
            }
            moved = (moved - slope / bend).clamp(0.0, all);
        }
        moved
    }
}

/// By row, how its time changes for a weight of 1 that moves from one unit to the other.
fn changes(from: &Column, to: &Column) -> Vec<(u32, f64)> {
    let mut changes = Vec::with_capacity(from.times.len() + to.times.len());
    let (mut old, mut new) = (from.times.iter().peekable(), to.times.iter().peekable());
    loop {
        let change = match (old.peek(), new.peek()) {
            (None, None) => return changes,
            (Some(&&(row, time)), None) => (row, -time, true, false),
            (None, Some(&&(row, time))) => (row, time, false, true),
            (Some(&&(left, time)), Some(&&(right, other))) => {
                if left < right {
                    (left, -time, true, false)
                } else if right < left {
                    (right, other, false, true)
                } else {
                    (left, other - time, true, true)
                }
            }
        };
        if change.2 {
            old.next();
        }
        if change.3 {
            new.next();
        }
        if change.1.abs() > 0.0 {
            changes.push((change.0, change.1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(commodity: usize, times: &[(u32, f64)]) -> Column {
        Column { commodity, times: times.to_vec() }
    }

    /// Two commodities that both want the first row, and may go round.
    #[test]
    fn weights_move_until_rows_are_even() {
        let first = [column(0, &[(0, 1.0)]), column(1, &[(0, 1.0)])];
        let others = [column(0, &[(1, 1.0)]), column(1, &[(1, 1.0), (2, 0.5)])];
        let mut smooth = Smooth::new(3, 2, first.into_iter().chain(others));
        assert!((smooth.time() - 2.0).abs() < 1e-9);
        for scale in [0.3, 0.1, 0.03, 0.01] {
            smooth.settle(scale, 20, &canopy_optimize::Never).unwrap();
        }
        assert!((smooth.time() - 1.0).abs() < 0.02, "{}", smooth.time());
        let Prices { rows, commodities } = smooth.prices();
        assert!((rows.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        // What the cheapest units cost is a bound of the time.
        assert!(commodities.iter().sum::<f64>() <= 1.0 + 1e-9);
    }

    #[test]
    fn changes_are_by_row() {
        let changed = changes(&column(0, &[(0, 1.0), (2, 1.0), (5, 3.0)]), &column(0, &[(1, 2.0), (2, 1.0), (5, 1.0)]));
        assert_eq!(changed, [(0, -1.0), (1, 2.0), (5, -2.0)]);
    }
}
