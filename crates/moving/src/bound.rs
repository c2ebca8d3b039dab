//! The least time that any routes take, with prices that prove it.

use crate::matrix::Matrix;
use crate::plan::plan;
use crate::plan_error::PlanError;
use crate::prices::PricesError;
use crate::proven::{Bound, any_prices, tried};
use crate::tiers::Tiers;

/// A time that no routes beat, wherever they relay: that of the prices which a plan comes with.
///
/// * **Errors.** [`PricesError::Ranks`]; [`PricesError::Unreachable`] for bytes that have no way.
/// * **Cost.** As [`plan`].
pub fn bound(tiers: &Tiers, matrix: &Matrix) -> Result<Bound, PricesError> {
    // This finds bytes without a way.
    tried(tiers, matrix, any_prices(tiers))?;
    let prices = match plan(tiers, matrix, None) {
        Ok(planned) => planned.prices,
        Err(PlanError::Ranks { ranks, matrix }) => return Err(PricesError::Ranks { ranks, matrix }),
        Err(_) => any_prices(tiers),
    };
    tried(tiers, matrix, prices)
}
