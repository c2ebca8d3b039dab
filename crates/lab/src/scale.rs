//! How slow the emulated links are beside the real ones.

use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// Emulated bits per second for each GB/s (10⁹ bytes per second) of the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scale(u64);

/// What a plan asks of the machine that emulates its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Capacity of the slowest link that carries anything, in bytes per second.
    pub slowest_bytes_per_sec: u64,
    /// Capacity of the fastest link of the network.
    pub fastest_bytes_per_sec: u64,
    /// Bytes per second over all links while the plan runs at its rate.
    pub traffic_bytes_per_sec: u128,
}

const GIGABYTE: u128 = 1_000_000_000;
/// What all links carry together at the usual scale: about a third of a core.
const TOTAL_USUAL_BITS: u128 = 400_000_000;
/// What one machine is asked to carry at most.
const TOTAL_MAX_BITS: u64 = 1_500_000_000;
/// The slowest link that carries anything: a frame of 9,000 bytes takes 18 ms on it.
const SLOWEST_BITS: u128 = 4_000_000;
/// The fastest link at the usual scale.
const FASTEST_BITS: u128 = 200_000_000;
/// Rates that limits of `tbf` keep to within a percent.
const RATE_BITS: std::ops::RangeInclusive<u64> = 100_000..=4_000_000_000;

impl Scale {
    /// This many bits per second for each GB/s; `None` for 0.
    pub const fn from_bits_per_gigabyte(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Bits per second for each GB/s.
    pub const fn bits_per_gigabyte(self) -> u64 {
        self.0
    }

    /// The emulated rate of a link, in bits per second, rounded down.
    ///
    /// # Errors
    /// A rate that `tbf` cannot keep.
    pub fn link_bits(self, bytes_per_sec: u128) -> Result<u64, LabError> {
        let found = bytes_per_sec.saturating_mul(self.0.into()) / GIGABYTE;
        let rate = u64::try_from(found).ok().filter(|rate| RATE_BITS.contains(rate));
        rate.ok_or(LabError::Rate { found, least: *RATE_BITS.start(), most: *RATE_BITS.end() })
    }

    /// The scale at which one machine emulates a plan well: 400 Mbit/s over all links together, but at least 4 Mbit/s
    /// on the slowest that carries anything; two digits.
    ///
    /// # Errors
    /// Links that differ too much for one machine.
    pub fn usual(demand: &Demand) -> Result<Self, LabError> {
        let per_gigabyte = |bits: u128, bytes: u128| bits * GIGABYTE / bytes.max(1);
        let slowest = u128::from(demand.slowest_bytes_per_sec);
        let wanted = per_gigabyte(TOTAL_USUAL_BITS, demand.traffic_bytes_per_sec)
            .min(per_gigabyte(FASTEST_BITS, demand.fastest_bytes_per_sec.into()));
        let bits = two_digits(wanted).max(two_digits_up(per_gigabyte(SLOWEST_BITS, slowest)));
        let total = demand.traffic_bytes_per_sec.saturating_mul(bits) / GIGABYTE;
        let limit = TOTAL_MAX_BITS;
        if total > limit.into() {
            let clamp = |bits: u128| u64::try_from(bits).unwrap_or(u64::MAX);
            return Err(LabError::TooUneven { slowest: clamp(SLOWEST_BITS), total: clamp(total), limit });
        }
        Ok(Self(u64::try_from(bits).unwrap_or(u64::MAX).max(1)))
    }
}

/// Rounded down to two digits.
fn two_digits(value: u128) -> u128 {
    let unit = 10_u128.pow(value.max(1).ilog10().saturating_sub(1));
    value / unit * unit
}

/// Rounded up to two digits.
fn two_digits_up(value: u128) -> u128 {
    let unit = 10_u128.pow(value.max(1).ilog10().saturating_sub(1));
    value.div_ceil(unit) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    fn usual(slowest: u64, fastest: u64, traffic: u64) -> Result<u64, LabError> {
        let demand = Demand {
            slowest_bytes_per_sec: slowest * GB,
            fastest_bytes_per_sec: fastest * GB,
            traffic_bytes_per_sec: u128::from(traffic * GB),
        };
        Scale::usual(&demand).map(Scale::bits_per_gigabyte)
    }

    #[test]
    fn traffic_decides_and_the_slowest_link_is_not_too_slow() {
        // Twelve links of 25 GB/s, all busy.
        assert_eq!(usual(25, 25, 300), Ok(1_300_000));
        // NICs of 25 GB/s beside much faster links.
        assert_eq!(usual(25, 300, 3_000), Ok(160_000));
        // Few links: not faster than 200 Mbit/s each.
        assert_eq!(usual(1, 1, 1), Ok(200_000_000));
        assert!(matches!(usual(1, 900, 900), Err(LabError::TooUneven { .. })));
    }

    #[test]
    fn rates_are_rounded_down_and_kept_within_what_holds() {
        let scale = Scale::from_bits_per_gigabyte(250_000).unwrap();
        assert_eq!(scale.link_bits(u128::from(25 * GB)), Ok(6_250_000));
        assert!(matches!(scale.link_bits(1_000_000), Err(LabError::Rate { .. })));
        assert!(matches!(scale.link_bits(u128::MAX), Err(LabError::Rate { .. })));
        assert_eq!(Scale::from_bits_per_gigabyte(0), None);
    }
}
