//! Routes for all bytes of a matrix, within milliseconds.

use crate::cuts::least;
use crate::fabric;
use crate::fill::{Filled, fill};
use crate::matrix::{Matrix, Sums};
use crate::mend::mend;
use crate::plan_error::PlanError;
use crate::route::{Loads, Part, Route};
use crate::shares::{Weights, shares};
use crate::tiers::{Fabric, Tiers};

/// What the next matrix starts from: how the rails divided the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct State(Weights);

/// Routes, and what the next matrix starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Parts of the traffic with their routes, each byte once.
    pub parts: Vec<Part>,
    /// For the next matrix on this network.
    pub state: State,
}

/// Plans the routes of a matrix so that the busiest link takes as little time as possible.
///
/// On one fabric, both ends of the routes are chosen so that the time of the cuts suffices but for rounding, see
/// `cuts`. On rails, the traffic of each pair of boxes is divided among rails so that all NICs meet that time, then
/// each entry takes the rail of its sender or receiver as far as there is room, so that it passes one switch and not
/// two; links that take longer than the cuts demand then give bytes to cheaper rails.
///
/// * **In.** `previous`: what the last plan left, for rails with NICs of unequal rates; any other network's is ignored.
/// * **Out.** Parts by boxes, then by sender and receiver. A function of all arguments alone.
/// * **Errors.** [`PlanError`]. On rails, a route never relays in a third box.
/// * **Cost.** O(ranks²) for one fabric; O(ranks²·rounds) on rails, and a limited number of looks at a rail to mend
///   links.
pub fn plan(tiers: &Tiers, matrix: &Matrix, previous: Option<&State>) -> Result<Planned, PlanError> {
    if matrix.ranks() != tiers.ranks() {
        return Err(PlanError::Ranks { ranks: tiers.ranks(), matrix: matrix.ranks() });
    }
    let sums = Sums::new(tiers, matrix);
    require_nics(tiers, &sums)?;
    let time = least(tiers, &sums);
    let mut parts = Vec::with_capacity(tiers.ranks() * (tiers.ranks() + tiers.box_size()));
    inside(tiers, matrix, &mut parts);
    let weights = match tiers.fabric() {
        Fabric::Full => {
            fabric::across(tiers, matrix, &sums, time, &mut parts);
            Weights::none()
        }
        Fabric::Rails => {
            let known = previous.map(|state| &state.0);
            let (filled, weights) = over_rails(tiers, matrix, &sums, time.to_float(), known)?;
            filled.add_to(tiers, &mut parts);
            weights
        }
    };
    Ok(Planned { parts, state: State(weights) })
}

/// Pieces on rails.
fn over_rails(
    tiers: &Tiers,
    matrix: &Matrix,
    sums: &Sums,
    time: f64,
    known: Option<&Weights>,
) -> Result<(Filled, Weights), PlanError> {
    let (shares, weights) = shares(tiers, sums, time, known)?;
    let mut filled = fill(tiers, matrix, sums, &shares);
    mend(tiers, time, &mut filled);
    Ok((filled, weights))
}

/// What a plan on rails loads; none where there is no plan.
pub(crate) fn rail_loads(tiers: &Tiers, matrix: &Matrix, sums: &Sums) -> Option<Loads> {
    let (filled, _) = over_rails(tiers, matrix, sums, least(tiers, sums).to_float(), None).ok()?;
    Some(filled.loads)
}

/// Refuses traffic of boxes none of whose NICs is alive.
fn require_nics(tiers: &Tiers, sums: &Sums) -> Result<(), PlanError> {
    let (size, boxes) = (tiers.box_size(), tiers.boxes());
    let is_dead = |rates: &[u64]| rates.chunks(size).map(|rates| rates.iter().all(|&rate| rate == 0)).collect();
    let (silent, deaf): (Vec<bool>, Vec<bool>) = (is_dead(&tiers.rates().outer_out), is_dead(&tiers.rates().outer_in));
    for (pair, _) in sums.boxes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
        let (from, to) = (pair / boxes, pair % boxes);
        if silent[from] || deaf[to] {
            return Err(PlanError::NoRail { from, to });
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
