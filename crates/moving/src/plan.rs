//! Routes for all bytes of a matrix, within milliseconds.

use crate::cuts::{Scope, least};
use crate::fabric;
use crate::fill::fill;
use crate::matrix::{Matrix, Sums};
use crate::mend::mend;
use crate::plan_error::PlanError;
use crate::prices::{Prices, PricesError};
use crate::proven::{Bound, NEAR, better, by_cuts, tried};
use crate::reroute::{Apart, reroute};
use crate::route::{Part, Route};
use crate::shares::{Weights, shares};
use crate::tiers::{Fabric, Tiers};

/// What the next matrix starts from: how the rails divided the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct State(Weights);

/// Routes, prices that prove how little time is possible, and what the next matrix starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Parts of the traffic with their routes, each byte once.
    pub parts: Vec<Part>,
    /// No routes take less time than [`Prices::least_time`] of these.
    pub prices: Prices,
    /// For the next matrix on this network.
    pub state: State,
}

/// Plans the routes of a matrix so that the busiest link takes as little time as possible.
///
/// First, bytes for another box relay in the boxes of sender and receiver alone, and others stay in their box. On one
/// fabric, both ends of the routes are chosen so that the time of the cuts suffices for that but for rounding, see
/// `cuts`. On rails, the traffic of each pair of boxes is divided among rails so that all NICs meet that time, then
/// each entry takes the rail of its sender or receiver as far as there is room, so that it passes one switch and not
/// two; links that take longer than the cuts demand then give bytes to cheaper rails. Where no cut proves that time,
/// bytes move to any routes that are cheaper, see `reroute`.
///
/// * **In.** `previous`: what the last plan left, for rails with NICs of unequal rates; any other network's is ignored.
/// * **Out.** Parts by sender and receiver, or by boxes before that. A function of all arguments alone.
/// * **Errors.** [`PlanError::Ranks`], [`PlanError::NoWay`].
/// * **Cost.** O(ranks²) for one fabric; O(ranks²·rounds) on rails, and a limited number of looks at a rail to mend
///   links; then a limited number of looks at links where no cut proves the time.
pub fn plan(tiers: &Tiers, matrix: &Matrix, previous: Option<&State>) -> Result<Planned, PlanError> {
    planned(tiers, matrix, previous, Scope::All)
}

/// The same with routes that relay in the boxes of sender and receiver alone, and leave no box for a rank of the same.
/// The prices hold against all routes.
///
/// * **Errors.** As [`plan`]; [`PlanError::NoRail`] and [`PlanError::DeadPair`] where that takes other routes.
/// * **Cost.** As [`plan`].
pub fn plan_at_ends(tiers: &Tiers, matrix: &Matrix, previous: Option<&State>) -> Result<Planned, PlanError> {
    planned(tiers, matrix, previous, Scope::Ends)
}

fn planned(tiers: &Tiers, matrix: &Matrix, previous: Option<&State>, scope: Scope) -> Result<Planned, PlanError> {
    if matrix.ranks() != tiers.ranks() {
        return Err(PlanError::Ranks { ranks: tiers.ranks(), matrix: matrix.ranks() });
    }
    let sums = Sums::new(tiers, matrix);
    let First { mut parts, seconds, weights } = first(tiers, matrix, &sums, previous, scope)?;
    let mut proven = by_cuts(tiers, matrix, &sums, seconds).map_err(no_way)?;
    let least = proven.time.to_float();
    if seconds > least * (1.0 + NEAR) {
        let rerouted = reroute(tiers, matrix, &parts, least);
        let rerouted = rerouted.map_err(|Apart { from, to }| PlanError::NoWay { from, to })?;
        if scope == Scope::All && rerouted.seconds < seconds {
            parts = rerouted.parts;
        }
        for prices in rerouted.prices {
            proven = better(proven, tried(tiers, matrix, prices).map_err(no_way)?);
        }
    }
    let Bound { prices, .. } = proven;
    Ok(Planned { parts, prices, state: State(weights) })
}

fn no_way(error: PricesError) -> PlanError {
    match error {
        PricesError::Unreachable { from, to } => PlanError::NoWay { from, to },
        PricesError::Ranks { ranks, matrix } => PlanError::Ranks { ranks, matrix },
        PricesError::PriceCount { .. } | PricesError::Free => {
            unreachable!("planned prices are those of all links, and one of a live link is not 0")
        }
    }
}

/// Routes that relay in the boxes of sender and receiver.
struct First {
    /// Those of bytes without such a route are relayed over no hops yet.
    parts: Vec<Part>,
    /// The time of the busiest link; infinite if bytes have no such route.
    seconds: f64,
    weights: Weights,
}

fn first(
    tiers: &Tiers,
    matrix: &Matrix,
    sums: &Sums,
    previous: Option<&State>,
    scope: Scope,
) -> Result<First, PlanError> {
    let time = least(tiers, sums);
    let mut parts = Vec::with_capacity(tiers.ranks() * (tiers.ranks() + tiers.box_size()));
    inside(tiers, matrix, &mut parts);
    let (mut seconds, weights) = match tiers.fabric() {
        Fabric::Full => {
            require_nics(tiers, matrix)?;
            fabric::across(tiers, matrix, sums, time, &mut parts);
            (time.to_float(), Weights::none())
        }
        Fabric::Rails => {
            let known = previous.map(|state| &state.0);
            over_rails(tiers, matrix, sums, time.to_float(), known, scope, &mut parts)?
        }
    };
    if !tiers.pairs().is_empty() {
        seconds = seconds.max(over_pairs(tiers, &parts, scope)?);
    }
    Ok(First { parts, seconds, weights })
}

/// Appends routes over rails. Returns the time of the busiest link.
fn over_rails(
    tiers: &Tiers,
    matrix: &Matrix,
    sums: &Sums,
    time: f64,
    known: Option<&Weights>,
    scope: Scope,
    parts: &mut Vec<Part>,
) -> Result<(f64, Weights), PlanError> {
    let mut direct = sums.clone();
    let mut is_apart = false;
    for pair in unjoined(tiers, sums) {
        let (from, to) = (pair / tiers.boxes(), pair % tiers.boxes());
        if scope == Scope::Ends {
            return Err(PlanError::NoRail { from, to });
        }
        direct.boxes[pair] = 0;
        is_apart = true;
        apart(tiers, matrix, from, to, parts);
    }
    let (shares, weights) = shares(tiers, &direct, time, known);
    let mut filled = fill(tiers, matrix, &direct, &shares);
    mend(tiers, time, &mut filled);
    filled.add_to(tiers, parts);
    Ok((if is_apart { f64::INFINITY } else { filled.seconds(tiers) }, weights))
}

/// Pairs of boxes with traffic whose live NICs are on different rails.
fn unjoined(tiers: &Tiers, sums: &Sums) -> Vec<usize> {
    let (size, boxes, rates) = (tiers.box_size(), tiers.boxes(), tiers.rates());
    let is_joined = |pair: usize| {
        let leaves = &rates.outer_out[pair / boxes * size..][..size];
        let enters = &rates.outer_in[pair % boxes * size..][..size];
        leaves.iter().zip(enters).any(|(out, into)| *out > 0 && *into > 0)
    };
    (0..boxes * boxes).filter(|&pair| sums.boxes[pair] > 0 && !is_joined(pair)).collect()
}

/// Appends the traffic of a pair of boxes without routes.
fn apart(tiers: &Tiers, matrix: &Matrix, from: usize, to: usize, parts: &mut Vec<Part>) {
    let size = tiers.box_size();
    let name = |rank: usize| u32::try_from(rank).unwrap_or(u32::MAX);
    for sender in from * size..(from + 1) * size {
        for receiver in to * size..(to + 1) * size {
            let bytes = matrix.row(sender)[receiver];
            if bytes > 0 {
                let route = Route::Relayed(Vec::new());
                parts.push(Part { from: name(sender), to: name(receiver), route, bytes });
            }
        }
    }
}

/// The time of the busiest link between two ranks of a box; infinite for a dead one.
fn over_pairs(tiers: &Tiers, parts: &[Part], scope: Scope) -> Result<f64, PlanError> {
    let size = tiers.box_size();
    let mut loads = vec![0_u64; tiers.pairs().len()];
    let mut load = |from: u32, to: u32, bytes: u64| {
        if from != to {
            loads[from as usize * size + to as usize % size] += bytes;
        }
    };
    for part in parts {
        match part.route {
            Route::Inside => load(part.from, part.to, part.bytes),
            Route::Across { leaves, enters } => {
                load(part.from, leaves, part.bytes);
                load(enters, part.to, part.bytes);
            }
            // These have no hops yet.
            Route::Relayed(_) => {}
        }
    }
    let mut seconds = 0.0_f64;
    for (link, (&load, &rate)) in loads.iter().zip(tiers.pairs()).enumerate().filter(|(_, (load, _))| **load > 0) {
        let from = link / size;
        if rate == 0 && scope == Scope::Ends {
            return Err(PlanError::DeadPair { from, to: from / size * size + link % size });
        }
        seconds = seconds.max(load as f64 / rate as f64);
    }
    Ok(seconds)
}

/// Refuses traffic of boxes none of whose NICs is alive, on one fabric.
fn require_nics(tiers: &Tiers, matrix: &Matrix) -> Result<(), PlanError> {
    let size = tiers.box_size();
    let is_dead = |rates: &[u64]| rates.chunks(size).map(|rates| rates.iter().all(|&rate| rate == 0)).collect();
    let silent: Vec<bool> = is_dead(&tiers.rates().outer_out);
    let deaf: Vec<bool> = is_dead(&tiers.rates().outer_in);
    if !silent.iter().chain(&deaf).any(|is_dead| *is_dead) {
        return Ok(());
    }
    for from in 0..tiers.ranks() {
        let is_apart = |to: usize| to / size != from / size && (silent[from / size] || deaf[to / size]);
        let sent = matrix.row(from).iter().enumerate();
        if let Some((to, _)) = sent.into_iter().find(|&(to, &bytes)| bytes > 0 && is_apart(to)) {
            return Err(PlanError::NoWay { from, to });
        }
    }
    Ok(())
}

/// What stays within boxes.
fn inside(tiers: &Tiers, matrix: &Matrix, parts: &mut Vec<Part>) {
    let size = tiers.box_size();
    for (from, name) in (0..tiers.ranks()).zip(0_u32..) {
        let first = from / size * size;
        let row = matrix.row(from).iter().zip(0_u32..).skip(first).take(size);
        let sent = row.filter(|&(&bytes, to)| bytes > 0 && to != name);
        parts.extend(sent.map(|(&bytes, to)| Part { from: name, to, route: Route::Inside, bytes }));
    }
}

#[cfg(test)]
mod tests;
