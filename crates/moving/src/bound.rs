//! The least time that any routes take, with prices that prove it.

use canopy_optimize::Fraction;

use crate::ascent::ascend;
use crate::check::Checked;
use crate::cuts::{Cut, cuts};
use crate::matrix::{Matrix, Sums};
use crate::plan::rail_loads;
use crate::prices::{Prices, PricesError};
use crate::route::Loads;
use crate::tiers::{Fabric, Tiers};

/// A time that no routes beat, and its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Seconds.
    pub time: Fraction,
    /// [`Prices::least_time`] of these is that time.
    pub prices: Prices,
}

/// Cuts whose prices are tried on rails, where they may prove more than the cut does.
const CUTS_TRIED: usize = 8;

/// How near to a bound a plan must be for nothing better to be looked for.
const NEAR: f64 = 5e-4;

/// The least time of any routes: on one fabric the optimum of fluid traffic, on rails a bound on it.
///
/// On rails, the best cut is the optimum if a plan takes that time. Where no plan does, prices are looked for that
/// prove more, see `ascent`.
///
/// * **Errors.** [`PricesError::Ranks`]; [`PricesError::Unreachable`] for bytes that have no way;
///   [`PricesError::Free`] never.
/// * **Cost.** O(ranks²), and O(ranks²·rails) for each cut that is tried on rails; some hundred times that where no
///   plan takes the time of a cut.
pub fn bound(tiers: &Tiers, matrix: &Matrix) -> Result<Bound, PricesError> {
    // This finds bytes without a way.
    let mut best = tried(tiers, matrix, any_prices(tiers))?;
    let sums = Sums::new(tiers, matrix);
    for cut in steepest(tiers, &sums) {
        best = better(best, tried(tiers, matrix, cut.prices(tiers.ranks()))?);
    }
    let least = best.time.to_float();
    if tiers.fabric() == Fabric::Rails && least > 0.0 {
        let loads = rail_loads(tiers, matrix, &sums);
        if loads.as_ref().is_none_or(|loads| greatest(tiers, loads) > least * (1.0 + NEAR)) {
            let start = loads.as_ref().map(Loads::links);
            if let Some(prices) = ascend(tiers, matrix, &sums, least, start) {
                best = better(best, tried(tiers, matrix, prices)?);
            }
        }
    }
    Ok(best)
}

/// The same for traffic that has a plan, which saves time: the first proof is taken that is as near to the plan's time
/// as a plan must be for nothing better to be looked for.
///
/// * **Errors.** As [`bound`].
/// * **Cost.** As [`bound`]; O(ranks²·rails) where the best cut proves the plan's time.
pub fn bound_beside(tiers: &Tiers, matrix: &Matrix, plan: &Checked) -> Result<Bound, PricesError> {
    let sums = Sums::new(tiers, matrix);
    let time = plan.time.to_float();
    let mut best: Option<Bound> = None;
    for cut in steepest(tiers, &sums) {
        let next = tried(tiers, matrix, cut.prices(tiers.ranks()))?;
        let found = match best.take() {
            Some(best) => better(best, next),
            None => next,
        };
        if time <= found.time.to_float() * (1.0 + NEAR) {
            return Ok(found);
        }
        best = Some(found);
    }
    // No cut: nothing is sent, or all of it to the ranks that send it.
    let Some(best) = best else { return tried(tiers, matrix, any_prices(tiers)) };
    let least = best.time.to_float();
    if tiers.fabric() == Fabric::Rails
        && least > 0.0
        && let Some(prices) = ascend(tiers, matrix, &sums, least, Some(plan.loads.links()))
    {
        return Ok(better(best, tried(tiers, matrix, prices)?));
    }
    Ok(best)
}

/// Prices that prove something on every network.
fn any_prices(tiers: &Tiers) -> Prices {
    let ranks = tiers.ranks();
    Prices { inner_out: vec![1; ranks], ..Prices::free(ranks) }
}

/// The cuts that demand most time, first the one that does most, as many as are tried.
fn steepest(tiers: &Tiers, sums: &Sums) -> impl Iterator<Item = Cut> + use<> {
    let mut cuts = cuts(tiers, sums);
    cuts.sort_by_key(|cut| std::cmp::Reverse(cut.time()));
    let count = match tiers.fabric() {
        Fabric::Full => 1,
        Fabric::Rails => CUTS_TRIED,
    };
    cuts.into_iter().filter(|cut| cut.rate > 0 && cut.bytes > 0).take(count)
}

fn tried(tiers: &Tiers, matrix: &Matrix, prices: Prices) -> Result<Bound, PricesError> {
    Ok(Bound { time: prices.least_time(tiers, matrix)?, prices })
}

fn better(one: Bound, other: Bound) -> Bound {
    if other.time > one.time { other } else { one }
}

/// The time of the busiest link in seconds, about.
fn greatest(tiers: &Tiers, loads: &Loads) -> f64 {
    let rates = tiers.rates();
    let classes = [
        (&loads.inner_out, &rates.inner_out),
        (&loads.inner_in, &rates.inner_in),
        (&loads.outer_out, &rates.outer_out),
        (&loads.outer_in, &rates.outer_in),
    ];
    let times = classes.into_iter().flat_map(|(loads, rates)| loads.iter().zip(rates));
    // Dead links carry nothing.
    times.map(|(&load, &rate)| load as f64 / rate.max(1) as f64).fold(0.0, f64::max)
}
