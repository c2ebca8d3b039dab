//! Column generation: from the cheapest units for the prices of now to the units of an optimum.

use canopy_optimize::Stop;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed as _, ToPrimitive as _, Zero as _};

use crate::groups::commodity::{Commodity, Unit, Width};
use crate::groups::found::{GroupOptimum, GroupOptions, GroupPart};
use crate::groups::layout::{Layout, Loads, Use, greatest_time};
use crate::groups::master::{Master, Pivots, Prices, Start, Variable};
use crate::groups::patience::{Asking, Patience, Taken};
use crate::groups::problem::GroupsError;
use crate::groups::program::{Aim, Program};
use crate::groups::scale::{Scale, as_float, busiest, taken};
use crate::groups::smooth::Smooth;
use crate::groups::vertex::Vertex;

/// Largest length in pricing by floats, as a power of two.
const LENGTH_BITS: i32 = 60;
/// How near the limit is to the time of floats that may be the same in fractions.
const PROVEN: f64 = 1e-13;
/// By how much less than those of the program a unit must cost to be taken up.
const PAYS: f64 = 1e-10;
/// Rounds after which many units are made at once, and by what part of the time the best bound is below it then.
const ROUNDS_FIRST: u32 = 6;
const GAP_FIRST: f64 = 0.01;
/// Rounds in which units are made for smoothed prices, and moves of each commodity between them.
const SMOOTH_ROUNDS: u32 = 20;
const SMOOTH_PASSES: u32 = 20;
/// What part of the gap the prices of rows differ by a factor of e for, and the gap that is near enough, by the time.
const SMOOTH_PART: f64 = 4.0;
const SMOOTH_GAP: f64 = 1e-4;
/// How often units that pay by fractions alone are tried before floats are thought too coarse.
const FINER_MAX: u32 = 20;
/// Bytes of a unit for each row that it uses: in its loads, in the program, and where prices are smoothed.
const LOAD_BYTES: u64 = 48;
/// Least bytes that are taken at once for more units.
const GROWTH_BYTES: u64 = 1 << 20;

/// What is known at one time.
pub(crate) struct Search<'a> {
    layout: &'a Layout<'a>,
    uses: Vec<Use>,
    program: Program,
    scale: Scale,
    master: Master,
    best: Best,
    /// Which units were looked at for the best: it is a limit of these alone.
    width: Width,
    /// By row, its capacity as a float.
    capacities: Vec<f64>,
    /// By commodity class, what the program has of it, as floats.
    moves: Vec<f64>,
    fixed: Vec<f64>,
    /// The rate at which the first units meet all demands that are not frozen.
    usual_rate: f64,
    /// Rounds of all programs.
    pub(crate) rounds: u32,
    /// The memory that all of it takes, and what of it units may take.
    memory: Taken<'a>,
    bytes_left: u64,
}

/// The greatest limit of what is minimised that was found.
#[derive(Default)]
struct Best {
    time: f64,
    /// Lengths of rows that prove it.
    lengths: Vec<u128>,
    /// By commodity class, what the cheapest unit costs.
    costs: Vec<u128>,
}

/// An optimum of a program, in fractions.
pub(crate) struct Solved {
    /// What is minimised.
    pub(crate) value: BigRational,
    /// What it is at least, by the lengths.
    pub(crate) limit: BigRational,
    /// By row.
    pub(crate) lengths: Vec<u128>,
    /// By commodity class, what the cheapest unit costs.
    pub(crate) costs: Vec<u128>,
    /// By unit, what is sent of it.
    pub(crate) weights: Vec<BigRational>,
}

/// How a program ends.
pub(crate) enum End {
    Proven(Solved),
    /// Numbers are too long, rounds or time are over.
    Unproven,
    /// What is minimised is zero by floats, and cannot be less.
    Zero,
}

impl<'a> Search<'a> {
    /// Begins with the least time of all demands.
    pub(crate) fn new(layout: &'a Layout<'a>, patience: Patience<'a>) -> Result<Self, GroupsError> {
        let stop = patience.stop;
        let memory = Taken::of(patience.room, layout.search_bytes())?;
        let capacities: Vec<f64> = layout.capacities.iter().map(as_float).collect();
        let demands: Vec<f64> = layout.demands.iter().map(as_float).collect();
        let even: Vec<f64> =
            capacities.iter().zip(&layout.rows.count).map(|(all, &count)| count as f64 / all).collect();
        let width = layout.least_width();
        let first = layout.priced(&whole(&even), width, stop)?;
        let mut asking = Asking::of(stop);
        let mut uses = Vec::with_capacity(first.len());
        for (commodity, (_, unit)) in first.into_iter().enumerate() {
            asking.before(unit.arc_count())?;
            uses.push(Use { commodity, loads: layout.loads(&unit), unit });
        }
        // Times are parts of those that the first units take.
        let unit = busiest(&capacities, uses.iter().zip(demands.iter().copied()));
        let asked = uses.iter().zip(demands.iter().copied()).filter(|(one, _)| layout.frozen[one.commodity].is_none());
        let usual_rate = busiest(&capacities, asked).recip();
        let scale = Scale::of_time(&capacities, demands.clone(), unit);
        let columns = uses.iter().map(|one| scale.column(one.commodity, &one.loads)).collect();
        let master = Master::new(capacities.len(), columns, stop)?;
        let program = Program::time(layout);
        let moves = vec![0.0; demands.len()];
        Ok(Self {
            layout,
            uses,
            program,
            scale,
            master,
            best: Best::default(),
            width,
            capacities,
            moves,
            fixed: demands,
            usual_rate,
            rounds: 0,
            memory,
            bytes_left: 0,
        })
    }

    /// Goes over to the room that frozen rates find, before any other unit is known. Says whether it could.
    pub(crate) fn turn_to_missing(
        &mut self,
        frozen: &[Option<BigRational>],
        stop: &dyn Stop,
    ) -> Result<bool, GroupsError> {
        let Some(first) = frozen.iter().position(Option::is_some) else { return Ok(false) };
        let (row_count, commodity_count) = (self.capacities.len(), self.moves.len());
        let mut basis: Vec<Variable> = (0..row_count).map(Variable::Slack).collect();
        let weight = |commodity| if commodity == first { Variable::Time } else { Variable::Weight(commodity) };
        basis.extend((0..commodity_count).map(weight));
        let value = |variable: &Variable| if matches!(variable, Variable::Weight(_)) { 0.0 } else { 1.0 };
        let start = Start { values: basis.iter().map(value).collect(), basis };
        let program = Program::missing(frozen);
        let scale = Scale::of_rate(self.layout, &program, &self.capacities, 0.0, self.usual_rate);
        self.turn(program, scale, start, stop)
    }

    /// Goes over to the greatest rate beside what is frozen, from the basis that was reached. Says whether it could.
    ///
    /// `sent`: by unit, what is sent of it there; `rate`: what is reached already.
    pub(crate) fn turn_to_rate(
        &mut self,
        frozen: &[Option<BigRational>],
        sent: &[f64],
        rate: f64,
        stop: &dyn Stop,
    ) -> Result<bool, GroupsError> {
        let mut basis = self.master.basis().to_vec();
        if let Some(place) = basis.iter().position(|&variable| variable == Variable::Time) {
            // Without what was minimised, the full row of the greatest price keeps all others in their place.
            let prices = self.master.prices().rows;
            let dearest = (0..prices.len()).max_by(|&a, &b| prices[a].total_cmp(&prices[b]));
            basis[place] = Variable::Slack(dearest.unwrap_or(0));
        }
        let program = Program::rate(self.layout, frozen);
        let unit = if rate > 0.0 { rate } else { self.usual_rate };
        let scale = Scale::of_rate(self.layout, &program, &self.capacities, rate, unit);
        let taken = taken(&self.capacities, self.uses.iter().zip(sent.iter().copied()));
        let value = |variable: &Variable| match *variable {
            Variable::Slack(row) => 1.0 - taken[row],
            Variable::Weight(column) => sent[column] / scale.sent(self.uses[column].commodity),
            Variable::Time => 0.0,
        };
        let start = Start { values: basis.iter().map(value).collect(), basis };
        self.turn(program, scale, start, stop)
    }

    fn turn(&mut self, program: Program, scale: Scale, start: Start, stop: &dyn Stop) -> Result<bool, GroupsError> {
        let columns = self.uses.iter().map(|one| scale.column(one.commodity, &one.loads)).collect();
        let (row_count, (of_row, _)) = (self.capacities.len(), program.of_row());
        let mut moves = vec![f64::from(of_row); row_count];
        moves.extend(program.moves.iter().map(|moves| if moves.is_positive() { 1.0 } else { 0.0 }));
        let Some(master) = Master::at(row_count, columns, moves, start, program.aim == Aim::Missing, stop)? else {
            return Ok(false);
        };
        self.moves = program.moves.iter().map(as_float).collect();
        self.fixed = program.fixed.iter().map(as_float).collect();
        (self.program, self.scale, self.master, self.best) = (program, scale, master, Best::default());
        self.width = Width::Pairs;
        Ok(true)
    }

    /// Goes on until the optimum is proven, nothing better is found, or the best so far is enough.
    pub(crate) fn run(&mut self, options: GroupOptions, patience: Patience<'_>) -> Result<End, GroupsError> {
        let ends = || patience.is_over();
        let mut finer = 0;
        for round in 0..options.rounds_max {
            self.rounds += 1;
            let smoothed = if round == ROUNDS_FIRST { self.smooth(&ends) } else { Ok(()) };
            match smoothed.and_then(|()| self.round(round == 0, &ends, patience.stop)) {
                Ok(Exact::Found(solved)) => return Ok(End::Proven(*solved)),
                Ok(Exact::Zero) => return Ok(End::Zero),
                Ok(Exact::Better) => {}
                Ok(Exact::Finer) if finer < FINER_MAX => finer += 1,
                Ok(Exact::Finer | Exact::Unknown) => break,
                Err(GroupsError::Stopped) if !patience.stop.is_requested() => {
                    if self.best.lengths.is_empty() {
                        // The prices of any basis prove something.
                        let prices = self.master.prices();
                        self.generate(&self.lengths(&prices), &prices, patience.stop)?;
                    }
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if std::mem::replace(&mut self.width, Width::Pairs) != Width::Pairs {
            let lengths = std::mem::take(&mut self.best.lengths);
            let priced = self.layout.priced(&lengths, self.width, patience.stop)?;
            self.best = self.limited(lengths, &priced);
        }
        Ok(End::Unproven)
    }

    /// What these lengths prove, given the cheapest units.
    fn limited(&self, lengths: Vec<u128>, priced: &[(u128, Unit)]) -> Best {
        let costs: Vec<u128> = priced.iter().map(|(cost, _)| *cost).collect();
        let time = self.scale.float(self.limit_by_floats(&lengths, &costs));
        Best { time, lengths, costs }
    }

    /// `ends`: whether the best so far is enough; `stop`: whether there is no use in it.
    fn round(&mut self, is_first: bool, ends: &dyn Stop, stop: &dyn Stop) -> Result<Exact, GroupsError> {
        match self.master.solve(ends) {
            Pivots::Done => {}
            Pivots::Zero => return Ok(Exact::Zero),
            Pivots::Stopped => {
                let prices = self.master.prices();
                self.generate(&self.lengths(&prices), &prices, stop)?;
                return Err(GroupsError::Stopped);
            }
        }
        let prices = self.master.prices();
        // Between the prices of now and those of the best bound: they lead to and fro less.
        let mut added = if is_first { 0 } else { self.generate(&self.middle(&prices), &prices, ends)? };
        if added == 0 {
            added = self.generate(&self.lengths(&prices), &prices, ends)?;
        }
        let time = self.master.time();
        let about = if self.program.aim == Aim::Time { time } else { 1.0 + time.abs() };
        let is_proven = time - self.best.time <= PROVEN * about;
        if added == 0 || is_proven { self.exact(ends) } else { Ok(Exact::Better) }
    }

    /// Makes units for prices that all rows of much time share, if the time is far from proven: where rows are many,
    /// those of a basis are zero for most of them, and lead to units one after the other.
    fn smooth(&mut self, stop: &dyn Stop) -> Result<(), GroupsError> {
        let time = self.master.time();
        if self.program.aim != Aim::Time || time - self.best.time <= GAP_FIRST * time {
            return Ok(());
        }
        let columns = self.uses.iter().map(|one| self.scale.column(one.commodity, &one.loads));
        let mut smooth = Smooth::new(self.capacities.len(), self.moves.len(), columns);
        for _ in 0..SMOOTH_ROUNDS {
            let gap = smooth.time() - self.best.time;
            if gap <= SMOOTH_GAP * smooth.time() {
                break;
            }
            smooth.settle(gap / SMOOTH_PART, SMOOTH_PASSES, stop)?;
            let prices = smooth.prices();
            let known = self.uses.len();
            self.generate(&self.lengths(&prices), &prices, stop)?;
            for one in &self.uses[known..] {
                smooth.add(self.scale.column(one.commodity, &one.loads));
            }
        }
        Ok(())
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
        let priced = self.layout.priced(lengths, self.width, stop)?;
        let limited = self.limited(lengths.to_vec(), &priced);
        if self.best.lengths.is_empty() || limited.time > self.best.time {
            self.best = limited;
        }
        let mut added = 0;
        let mut asking = Asking::of(stop);
        for (commodity, (_, unit)) in priced.into_iter().enumerate() {
            asking.before(unit.arc_count())?;
            let loads = self.layout.loads(&unit);
            if self.program.counts(commodity) && self.scale.column(commodity, &loads).reduced(prices) < -PAYS {
                self.add(commodity, unit, loads)?;
                added += 1;
            }
        }
        Ok(added)
    }

    /// As [`Program::limit`].
    fn limit_by_floats(&self, lengths: &[u128], costs: &[u128]) -> f64 {
        let paid = |parts: &[f64]| -> f64 { costs.iter().zip(parts).map(|(&cost, part)| cost as f64 * part).sum() };
        let room: f64 = lengths.iter().zip(&self.capacities).map(|(&length, all)| length as f64 * all).sum();
        let (of_z, right) = self.program.of_row();
        (paid(&self.fixed) - room * f64::from(right)) / (paid(&self.moves) - room * f64::from(of_z))
    }

    fn add(&mut self, commodity: usize, unit: Unit, loads: Loads) -> Result<(), GroupsError> {
        let bytes = unit.bytes() + loads.len() as u64 * LOAD_BYTES;
        if bytes > self.bytes_left {
            self.memory.grow(bytes.max(GROWTH_BYTES))?;
            self.bytes_left += bytes.max(GROWTH_BYTES);
        }
        self.bytes_left -= bytes;
        self.master.add(self.scale.column(commodity, &loads));
        self.uses.push(Use { commodity, unit, loads });
        Ok(())
    }

    /// The solution of the basis in fractions, and whether any unit is cheaper than those it has.
    fn exact(&mut self, stop: &dyn Stop) -> Result<Exact, GroupsError> {
        let Some(vertex) = self.vertex(stop)? else { return Ok(Exact::Unknown) };
        let Some(lengths) = vertex.lengths() else { return Ok(Exact::Unknown) };
        // Trees used both ways are mostly enough, and soon found; whether they are, pairs of any trees say.
        let priced = self.layout.priced(&lengths, Width::Pairs, stop)?;
        let mut found = 0;
        for (commodity, (cost, unit)) in priced.iter().enumerate() {
            if self.program.counts(commodity) && BigInt::from(*cost) < vertex.worth[commodity] {
                let loads = self.layout.loads(unit);
                self.add(commodity, unit.clone(), loads)?;
                found += 1;
            }
        }
        if found > 0 && std::mem::replace(&mut self.width, Width::Pairs) != Width::Pairs {
            self.best = self.limited(lengths, &priced);
            return Ok(Exact::Better);
        }
        if found > 0 {
            return Ok(Exact::Finer);
        }
        let costs: Vec<u128> = priced.iter().map(|(cost, _)| *cost).collect();
        let Some(limit) = self.program.limit(self.layout, &lengths, &costs) else { return Ok(Exact::Unknown) };
        let Vertex { value, weights, .. } = vertex;
        Ok(Exact::Found(Box::new(Solved { value, limit, lengths, costs, weights })))
    }

    /// The basis in fractions; `None` where it does not fit the capacities, or its numbers are too long.
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn vertex(&self, stop: &dyn Stop) -> Result<Option<Vertex>, GroupsError> {
        Vertex::of(self.layout, &self.program, &self.uses, self.master.basis(), stop)
    }

    /// By unit, what is sent of it, by floats.
    pub(crate) fn sent(&self) -> Vec<f64> {
        let weights = self.master.weights().into_iter().zip(&self.uses);
        weights.map(|(weight, one)| weight * self.scale.sent(one.commodity)).collect()
    }

    /// The best limit so far, and the lengths of rows that prove it.
    pub(crate) fn limit(&self) -> Option<(BigRational, &[u128])> {
        let Best { lengths, costs, .. } = &self.best;
        Some((self.program.limit(self.layout, lengths, costs)?, lengths))
    }

    /// What is minimised.
    pub(crate) const fn aim(&self) -> Aim {
        self.program.aim
    }

    /// The least time by the best units of the floats, and the best bound.
    pub(crate) fn approximate(&self, stop: &dyn Stop) -> Result<Solved, GroupsError> {
        let weights = self.master.weights();
        let mut parts: Vec<BigRational> = weights
            .iter()
            .map(|&weight| {
                BigRational::from_float(if weight < 1e-12 { 0.0 } else { weight }).unwrap_or_else(BigRational::zero)
            })
            .collect();
        let mut sums = vec![BigRational::zero(); self.fixed.len()];
        for (part, one) in parts.iter().zip(&self.uses) {
            sums[one.commodity] += part;
        }
        for (part, one) in parts.iter_mut().zip(&self.uses) {
            *part = &*part * &self.layout.demands[one.commodity] / &sums[one.commodity];
        }
        let time = greatest_time(self.layout, &self.uses, &parts, stop)?;
        let (limit, _) = self.limit().ok_or(GroupsError::Stopped)?;
        let Best { lengths, costs, .. } = &self.best;
        Ok(Solved { value: time, limit, lengths: lengths.clone(), costs: costs.clone(), weights: parts })
    }

    /// The least time that was found, as the greatest rate.
    pub(crate) fn optimum(&self, solved: &Solved) -> GroupOptimum {
        GroupOptimum {
            rate: solved.value.recip(),
            bound: solved.limit.recip(),
            lengths: self.layout.by_arc(&solved.lengths),
            parts: self.parts(&solved.weights),
            classes: (self.capacities.len(), self.moves.len()),
            rounds: self.rounds,
            symmetry: self.layout.symmetry.clone(),
        }
    }

    /// What is sent, by commodity class.
    pub(crate) fn parts(&self, weights: &[BigRational]) -> Vec<GroupPart> {
        let part = |one: &Commodity| GroupPart { group: one.group, root: one.root, units: Vec::new() };
        let mut parts: Vec<GroupPart> = self.layout.commodities.iter().map(part).collect();
        for (weight, one) in weights.iter().zip(&self.uses) {
            if weight.is_positive() {
                parts[one.commodity].units.push((one.unit.clone(), weight.clone()));
            }
        }
        parts
    }
}

/// What became of a basis in fractions.
enum Exact {
    Found(Box<Solved>),
    /// Units that pay were found.
    Better,
    /// Units that pay were found, by fractions alone.
    Finer,
    /// Numbers are too long, or floats too coarse.
    Unknown,
    /// What is minimised left the basis at zero.
    Zero,
}

/// Whole numbers in the proportion of floats, the greatest about 2^60, none less than 1.
fn whole(numbers: &[f64]) -> Vec<u128> {
    let greatest = numbers.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scale = 2_f64.powi(LENGTH_BITS) / greatest;
    let rounded = |number: &f64| (number * scale).round().to_u128().unwrap_or(0).max(1);
    numbers.iter().map(rounded).collect()
}
