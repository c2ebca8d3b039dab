//! The best balanced part of a graph as a linear program, whose rows are found as they are needed.
//!
//! Floats propose. From a point inside the face of solutions one can tell which rows are tight and which arcs are neither
//! empty nor full; on the face these are equations, which are solved in fractions. What follows is added up in whole
//! numbers, so that nothing depends on whether the guess was right.

use std::ops::{AddAssign, Sub};

use good_lp::{Expression, Variable};
use num_integer::Integer;

use super::even::evenly_kept;
use super::rounded::rounded;
use super::way::Way;
use crate::concurrent::{Program, Solution};
use crate::fraction::Fraction;
use crate::nullspace::Equations;
use crate::stop::{Stop, Stopped};

/// Rounds of looking for rows that a solution violates, at most: some are the rule.
const ROUNDS_MAX: u32 = 40;

/// Rates below `FAR` units are computed once more in a smaller unit, but not in one below `NEARER_LEAST` of this one.
const FAR: f64 = 0.3;
const NEARER_LEAST: f64 = 1e-4;

/// Part of the bound from which on a rate in floats may be the bound.
const ABOUT: f64 = 1.0 - 1e-6;

/// Most numbers in which equations are solved.
const WIDTH_MAX: usize = 1_200;

/// Most rows and arcs of a program: more take many seconds.
const SIZE_MAX: usize = 40_000;

/// Bits of numbers of the proof: those that may be chosen, where there are several, and where all are only rounded.
const CHOSEN_BITS: [i32; 3] = [6, 16, 28];
const ROUNDED_BITS: i32 = 36;

/// Most corners of a face of prices that are tried.
const CORNERS_MAX: usize = 8;

/// Parts of a unit that capacities are tried in, where the equations leave a choice.
const PARTS: [i128; 9] = [1, 2, 3, 4, 6, 12, 64, 1 << 12, 1 << 20];

/// What these arcs keep must be at least the rate times a demand.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) arcs: Vec<u32>,
    pub(super) demand: u64,
}

/// Rows without end, from which those that count are chosen.
pub(super) trait Rows {
    /// Rows that are violated by arcs that keep so much at this rate, for each unit of demand; none only if there are none. What is
    /// kept is in the unit in which the rate for the greatest demand is about 1.
    fn violated(&mut self, kept: &[f64], rate: f64, stop: &dyn Stop) -> Result<Vec<Row>, Stopped>;
}

/// Why no balanced part has a greater rate: times a sum of rows, whatever balance adds or takes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proof {
    /// The least `1/rate`, in reciprocal units of capacity.
    pub(super) inverse_rate: Fraction,
    /// By row, how often it counts.
    pub(super) weights: Vec<u64>,
    /// By node, zero where nothing has to be balanced.
    pub(super) potentials: Vec<i64>,
}

/// `max rate` over all that balanced nodes and rows let arcs keep.
pub(super) struct BalanceProgram {
    ways: Vec<Way>,
    /// By node.
    is_balanced: Vec<bool>,
    rows: Vec<Row>,
    /// A rate that is not far from the greatest, which counts as 1.
    unit: f64,
    bound: f64,
    /// How often data may have to pass an arc.
    most: f64,
    /// The greatest demand, which counts as 1.
    demand: f64,
    /// By arc, in these units.
    capacities: Vec<f64>,
    point: Option<Point>,
}

/// Weights of rows and potentials of nodes.
type Prices = (Vec<i128>, Vec<i128>);

/// A point inside the face of solutions.
struct Point {
    rate: f64,
    kept: Vec<f64>,
    weights: Vec<f64>,
    potentials: Vec<f64>,
}

impl BalanceProgram {
    /// A program with these rows; `bound` is one on the rate and `most` how often data may have to pass an arc.
    pub(super) fn new(ways: Vec<Way>, is_balanced: Vec<bool>, rows: Vec<Row>, bound: f64, most: f64) -> Option<Self> {
        let demand = rows.iter().map(|row| row.demand).max().filter(|&demand| demand > 0)? as f64;
        let is_sound = bound.is_finite() && bound > 0.0 && ways.len() + rows.len() <= SIZE_MAX;
        let mut program =
            Self { ways, is_balanced, rows, unit: bound, bound, most, demand, capacities: Vec::new(), point: None };
        program.scale(bound);
        is_sound.then_some(program)
    }

    /// Counts in units of this rate.
    fn scale(&mut self, unit: f64) {
        self.unit = unit;
        let scaled = |&(.., capacity): &Way| (capacity as f64 / unit / self.demand).min(self.most);
        self.capacities = self.ways.iter().map(scaled).collect();
    }

    /// Takes a point that meets the rows there are at a rate of 1, if there is an even one; says whether there is. Nothing
    /// follows from its prices, which are 0.
    pub(super) fn guess(&mut self) -> bool {
        let mut needs = vec![0.0; self.is_balanced.len()];
        for row in &self.rows {
            let Some(&arc) = row.arcs.first() else { return false };
            needs[self.ways[arc as usize].1 as usize] = row.demand as f64 / self.demand;
        }
        let kept = evenly_kept(&self.ways, &self.capacities, &self.is_balanced, &needs);
        let (weights, potentials) = (vec![0.0; self.rows.len()], vec![0.0; self.is_balanced.len()]);
        self.point = kept.map(|kept| Point { rate: 1.0, kept, weights, potentials });
        self.point.is_some()
    }

    /// Finds rows until a solution violates none; says whether there is one.
    pub(super) fn solve(&mut self, source: &mut dyn Rows, stop: &dyn Stop) -> Result<bool, Stopped> {
        for _ in 0..ROUNDS_MAX {
            self.point = self.solved(stop)?;
            let Some(point) = &self.point else { return Ok(false) };
            if point.rate < FAR {
                // Numbers are as exact as parts of the greatest are.
                let nearer = self.unit * (1.5 * point.rate).max(NEARER_LEAST);
                self.scale(nearer);
                continue;
            }
            let rows = source.violated(&point.kept, point.rate / self.demand, stop)?;
            if rows.is_empty() {
                return Ok(true);
            }
            self.rows.extend(rows);
            if self.ways.len() + self.rows.len() > SIZE_MAX {
                break;
            }
        }
        Ok(self.point.is_some())
    }

    /// Whether the solution is about at the bound.
    pub(super) fn is_about_bound(&self) -> bool {
        self.point.as_ref().is_some_and(|point| point.rate * self.unit > ABOUT * self.bound)
    }

    fn solved(&self, stop: &dyn Stop) -> Result<Option<Point>, Stopped> {
        let mut program = Program::default();
        let rate = program.variable();
        let kept: Vec<Variable> = self.ways.iter().map(|_| program.variable()).collect();
        for row in &self.rows {
            let mut sum = Expression::from(rate) * (row.demand as f64 / self.demand);
            row.arcs.iter().for_each(|&arc| sum.add_mul(-1.0, kept[arc as usize]));
            program.at_most(sum, 0.0);
        }
        for (&kept, &capacity) in kept.iter().zip(&self.capacities) {
            program.at_most(kept.into(), capacity);
        }
        let mut sums: Vec<Expression> = vec![Expression::default(); self.is_balanced.len()];
        for (&(from, to, _), &kept) in self.ways.iter().zip(&kept) {
            sums[to as usize].add_mul(1.0, kept);
            sums[from as usize].add_mul(-1.0, kept);
        }
        let balanced = || (0..self.is_balanced.len()).filter(|&node| self.is_balanced[node]);
        for node in balanced() {
            program.exactly(std::mem::take(&mut sums[node]), 0.0);
        }
        let Some(Solution { values, prices }) = program.maximised(rate.into(), stop)? else { return Ok(None) };
        let mut potentials = vec![0.0; self.is_balanced.len()];
        let of_nodes = prices.iter().skip(self.rows.len() + self.ways.len());
        balanced().zip(of_nodes).for_each(|(node, price)| potentials[node] = -price);
        let weights = prices.into_iter().take(self.rows.len()).collect();
        Ok(Some(Point { rate: values[0], kept: values[1..].to_vec(), weights, potentials }))
    }

    /// By arc, the worth of a unit of its capacity, by these weights and potentials.
    fn worth<N: Copy + Sub<Output = N> + AddAssign>(&self, weights: &[N], potentials: &[N]) -> Vec<N> {
        let rise = |&(from, to, _): &Way| potentials[to as usize] - potentials[from as usize];
        let mut worth: Vec<N> = self.ways.iter().map(rise).collect();
        for (row, &weight) in self.rows.iter().zip(weights) {
            row.arcs.iter().for_each(|&arc| worth[arc as usize] += weight);
        }
        worth
    }

    /// By arc, whether it is neither empty nor full all over the face of solutions.
    fn free_arcs(&self, point: &Point) -> Vec<bool> {
        let worth = self.worth(&point.weights, &point.potentials);
        let room = point.kept.iter().zip(&self.capacities).map(|(&kept, capacity)| kept.min(capacity - kept));
        room.zip(worth).map(|(room, worth)| room > worth.abs()).collect()
    }

    /// By row, whether it is tight all over the face of solutions.
    fn tight_rows(&self, point: &Point) -> Vec<bool> {
        let is_tight = |(row, &weight): (&Row, &f64)| {
            let kept: f64 = row.arcs.iter().map(|&arc| point.kept[arc as usize]).sum();
            weight > kept - point.rate * (row.demand as f64 / self.demand)
        };
        self.rows.iter().zip(&point.weights).map(is_tight).collect()
    }

    /// The best proof that is found near the prices of the solution.
    pub(super) fn proof(&self, stop: &dyn Stop) -> Result<Option<Proof>, Stopped> {
        let Some(point) = &self.point else { return Ok(None) };
        let rounded = |values: &[f64]| values.iter().map(|&value| whole(value, ROUNDED_BITS)).collect::<Vec<i128>>();
        let plain = self.proved(&rounded(&point.weights), &rounded(&point.potentials));
        let better = |one: Option<Proof>, other: Option<Proof>| match (one, other) {
            (Some(one), Some(other)) => Some(if other.inverse_rate >= one.inverse_rate { other } else { one }),
            (one, other) => one.or(other),
        };
        let exact = self.exact_prices(point, stop)?.into_iter();
        Ok(exact.fold(plain, |best, (weights, potentials)| better(best, self.proved(&weights, &potentials))))
    }

    /// Weights and potentials for which no free arc is worth anything.
    fn exact_prices(&self, point: &Point, stop: &dyn Stop) -> Result<Vec<Prices>, Stopped> {
        let (is_tight, is_free) = (self.tight_rows(point), self.free_arcs(point));
        // Rows first, then nodes.
        let rows = self.rows.len();
        let width = rows + self.is_balanced.len();
        let mut equations = Equations::new(width);
        let zeros = (0..rows).filter(|&row| !is_tight[row]);
        let zeros = zeros.chain((rows..width).filter(|&position| !self.is_balanced[position - rows]));
        zeros.for_each(|position| equations.require(vec![(position, 1)]));
        let mut terms: Vec<Vec<(usize, i64)>> = vec![Vec::new(); self.ways.len()];
        for (position, row) in self.rows.iter().enumerate().filter(|&(row, _)| is_tight[row]) {
            row.arcs.iter().for_each(|&arc| terms[arc as usize].push((position, 1)));
        }
        for ((mut terms, &(from, to, _)), _) in terms.into_iter().zip(&self.ways).zip(is_free).filter(|(_, free)| *free)
        {
            terms.extend([(rows + to as usize, 1), (rows + from as usize, -1)]);
            equations.require(terms);
        }
        let Some(solutions) = equations.solved(WIDTH_MAX, stop)? else { return Ok(Vec::new()) };
        let floats: Vec<f64> = solutions
            .free()
            .into_iter()
            .map(|position| if position < rows { point.weights[position] } else { point.potentials[position - rows] })
            .collect();
        let unit = floats.iter().map(|value| value.abs()).fold(0.0, f64::max);
        let bits = if floats.len() == 1 { &CHOSEN_BITS[..1] } else { &CHOSEN_BITS[..] };
        let inside = bits.iter().map(|&bits| floats.iter().map(|value| whole(value / unit, bits)).collect());
        // Demands far apart make rows look tight that are not: then a corner proves more.
        let corners = if floats.len() > CORNERS_MAX { 0 } else { floats.len() };
        let corner = |chosen: usize| {
            let number = |(place, value): (usize, &f64)| if place == chosen { whole(value.signum(), 0) } else { 0 };
            floats.iter().enumerate().map(number).collect()
        };
        let found = inside.chain((0..corners).map(corner)).filter_map(|free: Vec<i128>| {
            let (mut weights, _) = solutions.with(&free)?;
            let potentials = weights.split_off(rows);
            Some((weights, potentials))
        });
        Ok(found.collect())
    }

    /// What these weights and potentials prove: `Σ weight·demand ≤ 1/rate · Σ capacity · max(worth, 0)`.
    fn proved(&self, weights: &[i128], potentials: &[i128]) -> Option<Proof> {
        let divisor = weights.iter().chain(potentials).fold(0_i128, |divisor, number| divisor.gcd(number)).max(1);
        let weights: Vec<u64> =
            weights.iter().map(|&weight| u64::try_from(weight / divisor).ok()).collect::<Option<_>>()?;
        let potentials: Vec<i64> =
            potentials.iter().map(|&potential| i64::try_from(potential / divisor).ok()).collect::<Option<_>>()?;
        let wide = |weight: &u64| i128::from(*weight);
        let worth = self.worth(
            &weights.iter().map(wide).collect::<Vec<_>>(),
            &potentials.iter().copied().map(i128::from).collect::<Vec<_>>(),
        );
        let mut demand = 0_u128;
        for (row, &weight) in self.rows.iter().zip(&weights) {
            demand = demand.checked_add(u128::from(weight) * u128::from(row.demand))?;
        }
        let mut capacity = 0_u128;
        for (&(.., own), worth) in self.ways.iter().zip(worth) {
            capacity = capacity.checked_add(own.checked_mul(u128::try_from(worth.max(0)).ok()?)?)?;
        }
        let inverse_rate = Fraction::new(demand, capacity).filter(|inverse| inverse.numerator > 0)?;
        Some(Proof { inverse_rate, weights, potentials })
    }

    /// Gives balanced parts near the solution, by arc in parts of a unit, and how many parts a unit has, the simplest first, until
    /// one is enough. The caller rates each.
    pub(super) fn parts<E: From<Stopped>>(
        &self,
        stop: &dyn Stop,
        mut is_enough: impl FnMut(Vec<u128>, u128) -> Result<bool, E>,
    ) -> Result<(), E> {
        let Some(point) = &self.point else { return Ok(()) };
        let (is_tight, is_free) = (self.tight_rows(point), self.free_arcs(point));
        // Capacities of full arcs come first: all others follow from them, as far as they do. Then the rate, then all arcs.
        let is_full = |arc: usize| !is_free[arc] && 2.0 * point.kept[arc] > self.capacities[arc];
        let mut full: Vec<u128> =
            (0..self.ways.len()).filter(|&arc| is_full(arc)).map(|arc| self.ways[arc].2).collect();
        full.sort_unstable();
        full.dedup();
        let (rate, arcs) = (full.len(), full.len() + 1);
        let mut equations = Equations::new(arcs + self.ways.len());
        let mut at_nodes: Vec<Vec<(usize, i64)>> = vec![Vec::new(); self.is_balanced.len()];
        for (arc, &(from, to, capacity)) in self.ways.iter().enumerate() {
            let position = arcs + arc;
            match (is_free[arc], full.binary_search(&capacity)) {
                (true, _) => {}
                (false, Ok(place)) if is_full(arc) => equations.require(vec![(place, 1), (position, -1)]),
                _ => equations.require(vec![(position, 1)]),
            }
            at_nodes[to as usize].push((position, 1));
            at_nodes[from as usize].push((position, -1));
        }
        let at_nodes = at_nodes.into_iter().zip(&self.is_balanced).filter(|(_, is_balanced)| **is_balanced);
        at_nodes.for_each(|(terms, _)| equations.require(terms));
        let tight = || self.rows.iter().zip(&is_tight).filter(|(_, is_tight)| **is_tight).map(|(row, _)| row);
        // The rate counts for what most rows ask for, so that they say no more than that arcs are alike.
        let unit = tight().fold(0, |unit, row| unit.gcd(&row.demand)).max(1);
        for row in tight() {
            let Ok(demand) = i64::try_from(row.demand / unit) else { return Ok(()) };
            let terms = row.arcs.iter().map(|&arc| (arcs + arc as usize, 1));
            equations.require(terms.chain([(rate, -demand)]).collect());
        }
        let Some(solutions) = equations.solved(WIDTH_MAX, stop)? else { return Ok(()) };
        let free = solutions.free();
        let with_parts = |&parts: &i128| -> Option<(Vec<u128>, u128)> {
            let chosen = free.iter().map(|&position| match full.get(position) {
                Some(&capacity) => i128::try_from(capacity).ok()?.checked_mul(parts),
                None if position == rate => Some(whole(point.rate * self.unit * unit as f64 * parts as f64, 0)),
                None => Some(whole(point.kept[position - arcs] * self.unit * self.demand * parts as f64, 0)),
            });
            let (sums, common) = solutions.with(&chosen.collect::<Option<Vec<i128>>>()?)?;
            let scale = u128::try_from(common.checked_mul(parts)?).ok()?;
            let kept = |(&(.., capacity), &sum): (&Way, &i128)| {
                let kept = u128::try_from(sum).ok()?;
                capacity.checked_mul(scale).filter(|&most| kept <= most).map(|_| kept)
            };
            let kept: Vec<u128> = self.ways.iter().zip(&sums[arcs..]).map(kept).collect::<Option<_>>()?;
            let divisor = kept.iter().fold(scale, |divisor, kept| divisor.gcd(kept));
            let is_as_stated = full.iter().zip(&sums).all(|(&capacity, &sum)| {
                capacity.checked_mul(scale).and_then(|most| i128::try_from(most).ok()) == Some(sum)
            });
            is_as_stated.then(|| (kept.into_iter().map(|kept| kept / divisor).collect(), scale / divisor))
        };
        let all = if free.iter().all(|&position| position < rate) { &PARTS[..1] } else { &PARTS[..] };
        for (kept, scale) in all.iter().filter_map(with_parts) {
            if is_enough(kept, scale)? {
                break;
            }
        }
        Ok(())
    }
}

/// Parts of a unit that the solution is rounded in.
pub(super) const SCALES: [u128; 12] = [1, 2, 3, 4, 5, 6, 8, 12, 24, 64, 1 << 10, 1 << 20];

/// How many of the last of them are many.
pub(super) const MANY: usize = 2;

impl BalanceProgram {
    /// Whether the solution is made of these parts of a unit, so that rounding leaves what is alike as it is.
    pub(super) fn is_made_of(&self, scale: u128) -> bool {
        let factor = self.unit * self.demand * scale as f64;
        let kept = self.point.iter().flat_map(|point| &point.kept).map(|kept| kept * factor);
        kept.into_iter().all(|kept| (kept - kept.round()).abs() < ALIKE * kept.max(1.0))
    }

    /// The solution in these parts of a unit, rounded so that it stays balanced; by arc.
    pub(super) fn rounded(&self, scale: u128, stop: &dyn Stop) -> Result<Option<Vec<u128>>, Stopped> {
        let Some(point) = &self.point else { return Ok(None) };
        let factor = self.unit * self.demand * scale as f64;
        let kept: Vec<f64> = point.kept.iter().map(|kept| kept * factor).collect();
        if kept.iter().any(|kept| !(0.0..KEPT_MAX).contains(kept)) {
            return Ok(None);
        }
        let kept = rounded(&self.ways, &self.is_balanced, &kept, stop)?;
        Ok(kept.filter(|kept| {
            kept.iter()
                .zip(&self.ways)
                .all(|(&kept, &(.., capacity))| capacity.checked_mul(scale).is_some_and(|most| kept <= most))
        }))
    }
}

impl BalanceProgram {
    /// A little less than the solution, rounded to multiples of a grain so that it stays balanced; by arc, in units. For
    /// capacities with more digits than floats have, or far apart.
    pub(super) fn rounded_coarsely(&self, bits: i32, stop: &dyn Stop) -> Result<Option<Vec<u128>>, Stopped> {
        let Some(point) = &self.point else { return Ok(None) };
        let unit = self.unit * self.demand;
        let grain = u128::try_from(whole(unit, -bits)).unwrap_or(0);
        if grain == 0 {
            return Ok(None);
        }
        let factor = unit / grain as f64 * (1.0 - 4.0 * 2_f64.powi(-bits));
        let least = |(kept, &(.., capacity)): (&f64, &Way)| {
            let kept = kept * factor;
            // Next to the capacity there is no room to round up.
            if kept.ceil() > (capacity / grain) as f64 { ((capacity / grain) as f64).min(kept.floor()) } else { kept }
        };
        let kept: Vec<f64> = point.kept.iter().zip(&self.ways).map(least).collect();
        let kept = rounded(&self.ways, &self.is_balanced, &kept, stop)?;
        let in_units = |(kept, &(.., capacity)): (u128, &Way)| kept.checked_mul(grain).filter(|&kept| kept <= capacity);
        Ok(kept.and_then(|kept| kept.into_iter().zip(&self.ways).map(in_units).collect()))
    }
}

/// As near as this to whole numbers, in parts of them, the solver means these.
const ALIKE: f64 = 1e-6;

/// Numbers are rounded below this: above it floats have no digits left for parts.
const KEPT_MAX: f64 = (1_u64 << 44) as f64;

/// `value · 2^bits` to the nearest whole number; 0 for what is no number.
#[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate")]
fn whole(value: f64, bits: i32) -> i128 {
    (value * 2_f64.powi(bits)).round() as i128
}
