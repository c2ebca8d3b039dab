//! Times that no routes beat with prices that prove them, and the best of cuts.

use canopy_optimize::Fraction;

use crate::cuts::{Cut, Scope, cuts};
use crate::matrix::{Matrix, Sums};
use crate::prices::{Prices, PricesError};
use crate::tiers::Tiers;

/// A time that no routes beat, and its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Seconds.
    pub time: Fraction,
    /// [`Prices::least_time`] of these is that time.
    pub prices: Prices,
}

/// Cuts whose prices are tried, which may prove more than the cut does.
const CUTS_TRIED: usize = 8;

/// How near to a bound a plan must be for nothing better to be looked for.
pub(crate) const NEAR: f64 = 5e-4;

/// The best that cuts prove; the first that is near enough to the time of a plan.
///
/// O(ranks) if the best cut proves that time, O(ranks²·rails) for each other that is tried.
pub(crate) fn by_cuts(tiers: &Tiers, matrix: &Matrix, sums: &Sums, seconds: f64) -> Result<Bound, PricesError> {
    let is_near = |time: Fraction| seconds <= time.to_float() * (1.0 + NEAR);
    let holding = cuts(tiers, sums, Scope::All);
    let steepest = holding.iter().filter_map(|cut| Some((cut.time()?, cut))).max_by_key(|(time, _)| *time);
    let Some((time, cut)) = steepest.filter(|(time, _)| *time > Fraction::ZERO) else {
        return tried(tiers, matrix, any_prices(tiers));
    };
    if is_near(time) {
        return Ok(Bound { time, prices: cut.prices(tiers) });
    }
    let mut best = tried(tiers, matrix, cut.prices(tiers))?;
    for cut in steepest_first(holding.into_iter().chain(cuts(tiers, sums, Scope::Ends))) {
        if is_near(best.time) {
            break;
        }
        best = better(best, tried(tiers, matrix, cut.prices(tiers))?);
    }
    Ok(best)
}

/// Prices that prove something on every network.
pub(crate) fn any_prices(tiers: &Tiers) -> Prices {
    Prices { inner_out: vec![1; tiers.ranks()], ..Prices::free(tiers) }
}

/// The cuts that demand most time, first the one that does most, as many as are tried.
fn steepest_first(cuts: impl Iterator<Item = Cut>) -> impl Iterator<Item = Cut> {
    let mut cuts: Vec<Cut> = cuts.filter(|cut| cut.rate > 0 && cut.bytes > 0).collect();
    cuts.sort_by_key(|cut| std::cmp::Reverse(cut.time()));
    cuts.into_iter().take(CUTS_TRIED)
}

pub(crate) fn tried(tiers: &Tiers, matrix: &Matrix, prices: Prices) -> Result<Bound, PricesError> {
    Ok(Bound { time: prices.least_time(tiers, matrix)?, prices })
}

pub(crate) fn better(one: Bound, other: Bound) -> Bound {
    if other.time > one.time { other } else { one }
}
