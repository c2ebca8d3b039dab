//! Whole chunks in the times of steps, by negotiated congestion.

use super::program::StepTimes;
use super::{SteppedOptions, Trajectory, is_transit};
use crate::concurrent::exact::as_float;
use crate::concurrent::{ConcurrentError, ConcurrentProblem};
use crate::fraction::Fraction;
use crate::stop::Stop;

/// Rounds in which chunks look for another way, at most.
const ROUNDS_MAX: u32 = 1000;

/// Rounds without an improvement, at most.
const IDLE_ROUNDS_MAX: u32 = 300;

/// What a hop costs, and what one costs on top where all are of one price.
const HOP_COST: u64 = 1 << 6;
const PRICE_COST: u64 = 1 << 10;

/// Parts of a unit of time, the least in which the widest link carries a chunk, that are noise.
const NOISE: f64 = 1e-5;

/// Loss that is noise of the times.
pub(super) const LOSS_NOISE: f64 = 1e-7;

/// Trajectories for all chunks.
pub(super) struct Fit {
    /// Of a unit of demand.
    pub(super) chunks: u64,
    /// What they take longer than divided ones, in parts.
    pub(super) loss: f64,
    pub(super) time: Option<Fraction>,
    pub(super) routes: Vec<Vec<Vec<Trajectory>>>,
}

/// The best of some tries with so many chunks for each unit of demand; `None` where all lose as much as `loss_known`.
///
/// # Errors
/// Stopped.
pub(super) fn fitted(
    problem: &ConcurrentProblem<'_>,
    options: &SteppedOptions<'_>,
    times: &StepTimes,
    chunks: u64,
    loss_known: Option<f64>,
    stop: &dyn Stop,
) -> Result<Option<Fit>, ConcurrentError> {
    let room = Room::new(problem, options.transit, times);
    let units = times.total() * as_float(chunks) * as_float(room.widest);
    let least = whole_up(units - NOISE);
    let most = least.max(whole_down(units * (1.0 + options.loss_max)));
    let mut tries: Vec<Vec<u64>> = Vec::new();
    let mut loss = loss_known.unwrap_or(f64::INFINITY);
    for total in [least, least + (most - least) / 2, most] {
        if as_float(total) / units - 1.0 >= loss {
            continue;
        }
        for rounded in [divided(times, total, 0.5), divided(times, total, 1.0 - NOISE)] {
            if !tries.contains(&rounded) {
                tries.push(rounded);
            }
        }
    }
    let mut best: Option<(f64, Search<'_>)> = None;
    for parts in tries {
        let mut search = Search::new(problem, &room, &parts, chunks);
        let found = search.run(stop, times.total() * as_float(chunks))?;
        if found < loss {
            loss = found;
            best = Some((found, search));
        }
        if loss <= options.loss_max + LOSS_NOISE {
            break;
        }
    }
    Ok(best.map(|(loss, search)| Fit { chunks, loss, time: search.time(chunks), routes: search.routes() }))
}

/// What fits a step, and which ways lead through it.
struct Room<'a> {
    /// By node, whether things only pass it.
    transit: &'a [bool],
    /// The greatest capacity of an arc.
    widest: u64,
    /// By step and arc, what a hop costs where there is room.
    costs: Vec<Vec<u64>>,
}

impl<'a> Room<'a> {
    fn new(problem: &ConcurrentProblem<'_>, transit: &'a [bool], times: &StepTimes) -> Self {
        let widest = problem.graph().arcs.iter().map(|arc| arc.capacity).max().unwrap_or(1).max(1);
        let all = || times.prices.iter().flatten();
        let paid = all().filter(|price| **price > 0.0).count();
        let mean = (all().sum::<f64>() / as_float(paid.max(1) as u64)).max(f64::MIN_POSITIVE);
        let cost = |price: &f64| HOP_COST + whole_down((price / mean * as_float(PRICE_COST)).min(as_float(1 << 20)));
        let costs = times.prices.iter().map(|prices| prices.iter().map(cost).collect()).collect();
        Self { transit, widest, costs }
    }
}

/// `total` units of time for all steps, in proportion to what each takes; `up` of a unit is rounded up.
fn divided(times: &StepTimes, total: u64, up: f64) -> Vec<u64> {
    let unit = as_float(total) / times.total();
    let (mut sum, mut before) = (0.0, 0);
    let last = times.times.len() - 1;
    let part = |(step, time): (usize, &f64)| {
        sum += time;
        let end = if step == last { total } else { whole_down(sum * unit + up).clamp(before, total) };
        end - std::mem::replace(&mut before, end)
    };
    times.times.iter().enumerate().map(part).collect()
}

/// A chunk and its way.
struct Chunk {
    commodity: usize,
    sink: usize,
    hops: Vec<(u32, u32)>,
}

/// One try.
struct Search<'a> {
    problem: &'a ConcurrentProblem<'a>,
    room: &'a Room<'a>,
    /// By step and arc, how many chunks there is room for.
    places: Vec<Vec<u64>>,
    /// By step and arc, how many there are.
    used: Vec<Vec<u64>>,
    /// By step and arc, what fullness in earlier rounds has added to the cost.
    history: Vec<Vec<u64>>,
    chunks: Vec<Chunk>,
    /// The best ways so far.
    best: Vec<Vec<(u32, u32)>>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a ConcurrentProblem<'a>, room: &'a Room<'a>, parts: &[u64], chunks: u64) -> Self {
        let place = |part: u64, capacity: u64| {
            let product = u128::from(part) * u128::from(capacity) / u128::from(room.widest);
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        let arcs = &problem.graph().arcs;
        let places: Vec<Vec<u64>> =
            parts.iter().map(|&part| arcs.iter().map(|arc| place(part, arc.capacity)).collect()).collect();
        let nothing: Vec<Vec<u64>> = places.iter().map(|places| vec![0; places.len()]).collect();
        let mut all = Vec::new();
        for (commodity, of) in problem.commodities().iter().enumerate() {
            for (sink, &(_, demand)) in of.sinks.iter().enumerate() {
                (0..demand * chunks).for_each(|_| all.push(Chunk { commodity, sink, hops: Vec::new() }));
            }
        }
        Self { problem, room, places, used: nothing.clone(), history: nothing, chunks: all, best: Vec::new() }
    }

    /// Looks for ways until all fit, or it gets no better; the loss against so much time for all chunks.
    fn run(&mut self, stop: &dyn Stop, divided: f64) -> Result<f64, ConcurrentError> {
        let mut least = f64::INFINITY;
        let mut idle = 0;
        for round in 0..ROUNDS_MAX {
            // Gently at first; then history alone goes on growing, or it would not count.
            let pressure = PRICE_COST / 2 * u64::from(round + 1).min(4);
            for number in 0..self.chunks.len() {
                if number % 64 == 0 && stop.is_requested() {
                    return Err(ConcurrentError::Stopped);
                }
                if round == 0 || self.is_crowded(number) {
                    self.count(number, false);
                    self.chunks[number].hops = self.cheapest(number, pressure);
                    self.count(number, true);
                }
            }
            let loss = self.total() / divided - 1.0;
            idle += 1;
            if loss < least - 1e-9 {
                (least, idle) = (loss, 0);
                self.best = self.chunks.iter().map(|chunk| chunk.hops.clone()).collect();
            }
            let mut is_full = false;
            for ((history, used), places) in self.history.iter_mut().zip(&self.used).zip(&self.places) {
                for ((history, &used), &places) in history.iter_mut().zip(used).zip(places) {
                    is_full |= used > places;
                    *history += used.saturating_sub(places).min(4) * PRICE_COST / 4;
                }
            }
            if !is_full || idle > IDLE_ROUNDS_MAX {
                break;
            }
        }
        Ok(least)
    }

    /// Whether a chunk passes where there are too many.
    fn is_crowded(&self, number: usize) -> bool {
        let of = |all: &[Vec<u64>], (arc, step): (u32, u32)| all[step as usize][arc as usize];
        self.chunks[number].hops.iter().any(|&hop| of(&self.used, hop) > of(&self.places, hop))
    }

    /// Puts a chunk where its way leads, or takes it away.
    fn count(&mut self, number: usize, is_there: bool) {
        for &(arc, step) in &self.chunks[number].hops {
            let used = &mut self.used[step as usize][arc as usize];
            *used = if is_there { *used + 1 } else { *used - 1 };
        }
    }

    /// The cheapest way in time for a chunk: step by step, and in each as far as nodes of transit lead; staying costs nothing.
    fn cheapest(&self, number: usize, pressure: u64) -> Vec<(u32, u32)> {
        let Chunk { commodity, sink, .. } = self.chunks[number];
        let of = &self.problem.commodities()[commodity];
        let arcs = &self.problem.graph().arcs;
        let mut costs: Vec<u64> = vec![u64::MAX; self.problem.graph().node_count as usize];
        costs[of.source as usize] = 0;
        // By step, the arc on which each node was reached more cheaply than before.
        let mut into: Vec<Vec<Option<u32>>> = Vec::with_capacity(self.places.len());
        // Bellman-Ford step by step: O(steps · arcs), and up to as many times as there are nodes where nodes pass on at once.
        for step in 0..self.places.len() {
            let before = costs.clone();
            let mut reached = vec![None; costs.len()];
            for (cost, _) in costs.iter_mut().zip(self.room.transit).filter(|(_, is_transit)| **is_transit) {
                *cost = u64::MAX;
            }
            // Once where nothing is passed; else until nothing is reached more cheaply, as every hop costs something.
            let mut has_passed = true;
            while std::mem::take(&mut has_passed) {
                for turn in 0..arcs.len() {
                    // Chunks prefer different ones of equal ways.
                    let number = (turn + number) % arcs.len();
                    let arc = arcs[number];
                    let known = if self.is_passed(arc.from) { &costs } else { &before };
                    let cost = known[arc.from as usize];
                    if cost == u64::MAX || arc.capacity == 0 || cost >= costs[arc.to as usize] {
                        continue;
                    }
                    let over = (self.used[step][number] + 1).saturating_sub(self.places[step][number]);
                    let through = cost
                        + self.room.costs[step][number]
                        + self.history[step][number]
                        + over.min(1 << 20) * pressure;
                    if through < costs[arc.to as usize] {
                        costs[arc.to as usize] = through;
                        reached[arc.to as usize] = Some(number);
                        has_passed |= self.is_passed(arc.to);
                    }
                }
            }
            into.push(reached.into_iter().map(|arc| arc.and_then(|arc| u32::try_from(arc).ok())).collect());
        }
        let mut hops = Vec::new();
        let mut at = of.sinks[sink].0;
        for (step, into) in into.iter().enumerate().rev() {
            let step = u32::try_from(step).expect("steps are counted so");
            while let Some(arc) = into[at as usize] {
                hops.push((arc, step));
                at = arcs[arc as usize].from;
                if !self.is_passed(at) {
                    break;
                }
            }
        }
        hops.reverse();
        hops
    }

    /// Whether things only pass a node.
    fn is_passed(&self, node: u32) -> bool {
        is_transit(self.room.transit, node)
    }

    /// How long all steps take, for chunks and units of capacity.
    fn total(&self) -> f64 {
        let busiest = |used: &Vec<u64>| {
            let times = used.iter().zip(&self.problem.graph().arcs).filter(|(used, _)| **used > 0);
            times.map(|(&used, arc)| as_float(used) / as_float(arc.capacity)).fold(0.0, f64::max)
        };
        self.used.iter().map(busiest).sum()
    }

    /// How long the best ways take, for units of demand.
    fn time(&self, chunks: u64) -> Option<Fraction> {
        let mut used: Vec<Vec<u64>> = self.used.iter().map(|used| vec![0; used.len()]).collect();
        for &(arc, step) in self.best.iter().flatten() {
            used[step as usize][arc as usize] += 1;
        }
        used.iter().try_fold(Fraction::ZERO, |sum, used| {
            let times = used.iter().zip(&self.problem.graph().arcs).filter(|(used, _)| **used > 0);
            let times =
                times.map(|(&used, arc)| Fraction::new(used.into(), u128::from(arc.capacity) * u128::from(chunks)));
            sum.checked_add(times.flatten().max().unwrap_or(Fraction::ZERO))
        })
    }

    /// The best ways, by commodity and sink, in order; chunks of one way together.
    fn routes(self) -> Vec<Vec<Vec<Trajectory>>> {
        let commodities = self.problem.commodities();
        let mut routes: Vec<Vec<Vec<Trajectory>>> =
            commodities.iter().map(|commodity| vec![Vec::new(); commodity.sinks.len()]).collect();
        for (chunk, hops) in self.chunks.iter().zip(self.best) {
            routes[chunk.commodity][chunk.sink].push(Trajectory { hops, chunk_count: 1 });
        }
        for trajectories in routes.iter_mut().flatten() {
            trajectories.sort();
            trajectories.dedup_by(|next, kept| {
                let same = next.hops == kept.hops;
                kept.chunk_count += if same { next.chunk_count } else { 0 };
                same
            });
        }
        routes
    }
}

/// Up to the next whole number; nothing negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; programs are scaled")]
fn whole_up(number: f64) -> u64 {
    number.max(0.0).ceil() as u64
}

/// Down to the next whole number; nothing negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; programs are scaled")]
fn whole_down(number: f64) -> u64 {
    number.max(0.0).floor() as u64
}
