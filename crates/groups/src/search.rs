//! Column generation: from the cheapest units for the prices of now to the units of an optimum.

use canopy_optimize::{Never, Stop};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed as _, ToPrimitive, Zero as _};

use crate::commodity::Unit;
use crate::found::{GroupOptimum, GroupOptions, GroupPart};
use crate::layout::{Layout, Loads, Use, greatest_time};
use crate::master::{Column, Master, Prices};
use crate::problem::GroupsError;
use crate::vertex::Vertex;

/// Largest length in pricing by floats, as a power of two.
const LENGTH_BITS: i32 = 60;
/// How near the limit is to the time of floats that may be the same in fractions.
const PROVEN: f64 = 1e-13;
/// By how much less than those of the program a unit must cost to be taken up.
const PAYS: f64 = 1e-10;
/// How often units that pay by fractions alone are tried before floats are thought too coarse.
const FINER_MAX: u32 = 20;

/// What is known at one time.
pub(crate) struct Search<'a> {
    layout: &'a Layout<'a>,
    uses: Vec<Use>,
    /// By commodity class and row, the time that all its demand takes if it is used once.
    unit_times: Vec<Vec<f64>>,
    master: Master,
    best: Best,
    /// By row, its capacity as a float.
    capacities: Vec<f64>,
    demands: Vec<f64>,
    /// What stands for 1 in the program.
    scale: f64,
}

/// The greatest limit of the time that was found.
#[derive(Default)]
struct Best {
    time: f64,
    /// Lengths of rows that prove it.
    lengths: Vec<u128>,
    /// By commodity class, what the cheapest unit costs.
    costs: Vec<u128>,
}

fn as_float(number: &impl ToPrimitive) -> f64 {
    number.to_f64().unwrap_or(f64::MAX)
}

impl<'a> Search<'a> {
    pub(crate) fn new(layout: &'a Layout<'a>, stop: &dyn Stop) -> Result<Self, GroupsError> {
        let capacities: Vec<f64> = layout.capacities.iter().map(as_float).collect();
        let demands: Vec<f64> = layout.demands.iter().map(as_float).collect();
        let even: Vec<f64> =
            capacities.iter().zip(&layout.rows.count).map(|(all, &count)| count as f64 / all).collect();
        let first = layout.priced(&whole(&even), stop)?;
        let used = |(commodity, (_, unit))| Use { commodity, loads: layout.loads(&unit), unit };
        let uses: Vec<Use> = first.into_iter().enumerate().map(used).collect();
        // Times are parts of those that the first units take.
        let mut times = vec![0.0; capacities.len()];
        for one in &uses {
            for &(row, count) in &one.loads {
                times[row as usize] += count as f64 * demands[one.commodity] / capacities[row as usize];
            }
        }
        let scale = times.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let unit_times: Vec<Vec<f64>> = demands
            .iter()
            .map(|demand| capacities.iter().map(|capacity| demand / capacity / scale).collect())
            .collect();
        let columns = uses.iter().map(|one| column(&unit_times, one.commodity, &one.loads)).collect();
        let master = Master::new(capacities.len(), columns);
        Ok(Self { layout, uses, unit_times, master, best: Best::default(), capacities, demands, scale })
    }

    /// Goes on until the optimum is proven, nothing better is found, or it is stopped: then the best so far is the
    /// answer.
    pub(crate) fn run(mut self, options: GroupOptions, stop: &dyn Stop) -> Result<GroupOptimum, GroupsError> {
        let (mut rounds, mut finer) = (0, 0);
        while rounds < options.rounds_max {
            rounds += 1;
            match self.round(rounds == 1, stop) {
                Ok(Exact::Found(optimum)) => return Ok(GroupOptimum { rounds, ..*optimum }),
                Ok(Exact::Better) => {}
                Ok(Exact::Finer) if finer < FINER_MAX => finer += 1,
                Ok(Exact::Finer | Exact::Unknown) => break,
                Err(GroupsError::Stopped) if !self.best.lengths.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        self.approximate(rounds)
    }

    fn round(&mut self, is_first: bool, stop: &dyn Stop) -> Result<Exact, GroupsError> {
        if !self.master.solve(stop) {
            // The prices of any basis prove something.
            self.generate(&self.lengths(&self.master.prices()), &self.master.prices(), &Never)?;
            return Err(GroupsError::Stopped);
        }
        let prices = self.master.prices();
        // Between the prices of now and those of the best bound: they lead to and fro less.
        let mut added = if is_first { 0 } else { self.generate(&self.middle(&prices), &prices, stop)? };
        if added == 0 {
            added = self.generate(&self.lengths(&prices), &prices, stop)?;
        }
        let is_proven = self.master.time() - self.best.time <= PROVEN * self.master.time();
        if added == 0 || is_proven { self.exact(stop) } else { Ok(Exact::Better) }
    }

    /// Lengths of arcs by row, as the prices of rows make them.
    fn lengths(&self, prices: &Prices) -> Vec<u128> {
        let by_arc: Vec<f64> = prices.rows.iter().zip(&self.capacities).map(|(price, all)| price / all).collect();
        whole(&by_arc)
    }

    fn middle(&self, prices: &Prices) -> Vec<u128> {
        let now = self.lengths(prices);
        now.iter().zip(&self.best.lengths).map(|(now, best)| (now + best).div_ceil(2)).collect()
    }

    /// Prices all commodities, notes the bound, and takes up the units that pay.
    fn generate(&mut self, lengths: &[u128], prices: &Prices, stop: &dyn Stop) -> Result<usize, GroupsError> {
        let priced = self.layout.priced(lengths, stop)?;
        let costs: Vec<u128> = priced.iter().map(|(cost, _)| *cost).collect();
        let paid: f64 = costs.iter().zip(&self.demands).map(|(&cost, demand)| cost as f64 * demand).sum();
        let room: f64 = lengths.iter().zip(&self.capacities).map(|(&length, all)| length as f64 * all).sum();
        let bound = paid / room / self.scale;
        if self.best.lengths.is_empty() || bound > self.best.time {
            self.best = Best { time: bound, lengths: lengths.to_vec(), costs };
        }
        let mut added = 0;
        for (commodity, (_, unit)) in priced.into_iter().enumerate() {
            let loads = self.layout.loads(&unit);
            if column(&self.unit_times, commodity, &loads).reduced(prices) < -PAYS {
                self.add(commodity, unit, loads);
                added += 1;
            }
        }
        Ok(added)
    }

    fn add(&mut self, commodity: usize, unit: Unit, loads: Loads) {
        self.master.add(column(&self.unit_times, commodity, &loads));
        self.uses.push(Use { commodity, unit, loads });
    }

    /// The solution of the basis in fractions, and whether any unit is cheaper than those it has.
    fn exact(&mut self, stop: &dyn Stop) -> Result<Exact, GroupsError> {
        let Some(vertex) = Vertex::of(self.layout, &self.uses, self.master.basis()) else { return Ok(Exact::Unknown) };
        let Some(lengths) = vertex.lengths() else { return Ok(Exact::Unknown) };
        let priced = self.layout.priced(&lengths, stop)?;
        let mut found = 0;
        for (commodity, (cost, unit)) in priced.iter().enumerate() {
            if BigInt::from(*cost) < vertex.worth[commodity] {
                let loads = self.layout.loads(unit);
                self.add(commodity, unit.clone(), loads);
                found += 1;
            }
        }
        if found > 0 {
            return Ok(Exact::Finer);
        }
        let costs = priced.iter().map(|(cost, _)| *cost);
        let Some(bound) = self.layout.bound(&lengths, costs) else { return Ok(Exact::Unknown) };
        let rate = vertex.time.recip();
        Ok(Exact::Found(Box::new(self.optimum(rate, bound, &lengths, &vertex.weights))))
    }

    /// The best units of the floats, and the best bound.
    fn approximate(&self, rounds: u32) -> Result<GroupOptimum, GroupsError> {
        let weights = self.master.weights();
        let mut parts: Vec<BigRational> = weights
            .iter()
            .map(|&weight| {
                BigRational::from_float(if weight < 1e-12 { 0.0 } else { weight }).unwrap_or_else(BigRational::zero)
            })
            .collect();
        let mut sums = vec![BigRational::zero(); self.demands.len()];
        for (part, one) in parts.iter().zip(&self.uses) {
            sums[one.commodity] += part;
        }
        for (part, one) in parts.iter_mut().zip(&self.uses) {
            *part = &*part * &self.layout.demands[one.commodity] / &sums[one.commodity];
        }
        let time = greatest_time(self.layout, &self.uses, &parts);
        let Best { lengths, costs, .. } = &self.best;
        let bound = self.layout.bound(lengths, costs.iter().copied()).ok_or(GroupsError::Stopped)?;
        let optimum = self.optimum(time.recip(), bound, lengths, &parts);
        Ok(GroupOptimum { rounds, ..optimum })
    }

    fn optimum(&self, rate: BigRational, bound: BigRational, rows: &[u128], weights: &[BigRational]) -> GroupOptimum {
        let mut parts: Vec<GroupPart> = self
            .layout
            .commodities
            .iter()
            .map(|one| GroupPart { group: one.group, root: one.root, units: Vec::new() })
            .collect();
        for (weight, one) in weights.iter().zip(&self.uses) {
            if weight.is_positive() {
                parts[one.commodity].units.push((one.unit.clone(), weight.clone()));
            }
        }
        let lengths = self.layout.by_arc(rows);
        let (classes, symmetry) = ((self.capacities.len(), self.demands.len()), self.layout.symmetry.clone());
        GroupOptimum { rate, bound, lengths, parts, classes, rounds: 0, symmetry }
    }
}

/// A unit in the program of floats.
fn column(unit_times: &[Vec<f64>], commodity: usize, loads: &Loads) -> Column {
    let time = |&(row, count): &(u32, u64)| (row, count as f64 * unit_times[commodity][row as usize]);
    Column { commodity, times: loads.iter().map(time).collect() }
}

/// What became of a basis in fractions.
enum Exact {
    Found(Box<GroupOptimum>),
    /// Units that pay were found.
    Better,
    /// Units that pay were found, by fractions alone.
    Finer,
    /// Numbers are too long, or floats too coarse.
    Unknown,
}

/// Whole numbers in the proportion of floats, the greatest about 2^60, none less than 1.
fn whole(numbers: &[f64]) -> Vec<u128> {
    let greatest = numbers.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scale = 2_f64.powi(LENGTH_BITS) / greatest;
    let rounded = |number: &f64| (number * scale).round().to_u128().unwrap_or(0).max(1);
    numbers.iter().map(rounded).collect()
}
