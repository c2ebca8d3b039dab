//! Times as whole multiples of a common unit.

use num_bigint::BigUint;
use num_integer::Integer as _;

use super::Clock;
use super::lanes::Lanes;
use crate::check::seconds::Seconds;
use crate::route::RouteIndex;

/// Whole ticks, `unit / denominator` seconds each.
pub(super) struct Ticks {
    /// By route, of one chunk.
    by_route: Vec<u128>,
    unit: BigUint,
    denominator: BigUint,
}

impl Ticks {
    /// The largest unit of which all lanes take whole multiples; `None` if some lane takes 2¹²⁸ or more of it.
    pub(super) fn of(lanes: &Lanes) -> Option<Self> {
        let one = BigUint::from(1_u8);
        let common = lanes.paces.iter().fold(one, |common, pace| common.lcm(&pace.capacity.into()));
        let times: Vec<BigUint> = lanes.paces.iter().map(|pace| &common / pace.capacity * pace.shared).collect();
        let unit = times.iter().fold(BigUint::from(0_u8), |unit, time| unit.gcd(time));
        let ticks: Option<Vec<u128>> = times.iter().map(|time| u128::try_from(time / &unit).ok()).collect();
        let ticks = ticks?;
        let by_route = lanes.pace_of.iter().map(|&pace| ticks.get(pace).copied().unwrap_or(0)).collect();
        Some(Self { by_route, unit, denominator: common })
    }

    /// A time in seconds.
    pub(super) fn seconds(self, count: u32, ticks: u128) -> Seconds {
        Seconds { count, numerator: self.unit * ticks, denominator: self.denominator }
    }
}

impl Clock for Ticks {
    type Time = u128;

    const START: u128 = 0;

    fn later(&self, a: u128, b: u128) -> u128 {
        a.max(b)
    }

    fn after(&mut self, begin: u128, lane: RouteIndex, chunks: u64) -> Option<u128> {
        self.by_route[lane.index()].checked_mul(chunks.into())?.checked_add(begin)
    }
}
