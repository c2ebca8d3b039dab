//! Whole ticks for what links take.

use std::num::NonZeroU64;

use canopy_schedule::ChunkSize;
use canopy_tacos::{TimedLink, TimedNetwork};

use super::broken;
use super::unwound::{Unwound, UnwoundLink};
use crate::error::SynthesisError;

/// Ticks of a second where latencies count: picoseconds.
const PICOSECONDS: u128 = 1_000_000_000_000;
/// Longest time of a link that is exact: with a longer common unit, times are rounded up.
const EXACT_TICKS_MAX: u128 = 1 << 32;
/// Ticks of the fastest link where times are rounded up.
const ROUNDED_TICKS: u128 = 1 << 16;
/// Longest time of a link at all.
const TICKS_MAX: u128 = 1 << 40;

/// What a tick is, for chunks of a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// A chunk takes `scale · parts / capacity` ticks on a link that has so many parts of a capacity.
    scale: u128,
    /// Ticks of a nanosecond.
    latency: u128,
    /// Seconds of a message of one byte, or of the stated size, are ticks · `numerator` / `denominator`.
    numerator: u128,
    denominator: u128,
}

impl Clock {
    /// A clock for the links of a network, and chunks of which so many make a message.
    ///
    /// Latencies count where the size of the message is known and some link has one. Else a tick is such that all links take whole
    /// numbers of them, without a common factor, or nearly so.
    pub fn for_chunks(unwound: &Unwound, size: ChunkSize, size_bytes: Option<NonZeroU64>) -> Self {
        let has_latency = unwound.links.iter().any(|link| link.latency_ns > 0);
        // A chunk is so many bytes of a message of one.
        let (chunks, divisor) = (u128::from(size.chunks), u128::from(size.divisor));
        if let Some(size_bytes) = size_bytes.filter(|_| has_latency) {
            let bytes = u128::from(size_bytes.get()) * divisor;
            let scale = PICOSECONDS.saturating_mul(bytes).div_ceil(chunks.max(1));
            return Self { scale, latency: 1000, numerator: 1, denominator: 1 };
        }
        let scale = exact_scale(&unwound.links).unwrap_or_else(|| {
            let fastest = unwound.links.iter().map(|link| link.capacity / link.parts).max();
            ROUNDED_TICKS * u128::from(fastest.unwrap_or(1).max(1))
        });
        Self { scale, latency: 0, numerator: divisor, denominator: scale.saturating_mul(chunks.max(1)) }
    }

    /// What so many chunks take on a link, without its latency.
    pub(super) fn ticks(&self, chunks: u128, capacity: u64) -> u128 {
        self.scale.saturating_mul(chunks).div_ceil(capacity.into())
    }

    /// Links that take ticks.
    pub fn network(&self, unwound: &Unwound) -> Result<TimedNetwork, SynthesisError> {
        let links = unwound.links.iter().map(|link| {
            let occupancy = self.ticks(link.parts.into(), link.capacity);
            let latency = occupancy.saturating_add(self.latency * u128::from(link.latency_ns));
            let ticks = |time: u128| u64::try_from(time.clamp(1, TICKS_MAX)).expect("not beyond the greatest");
            TimedLink {
                from: link.from.number(),
                to: link.to.number(),
                latency: ticks(latency),
                occupancy: ticks(occupancy),
            }
        });
        TimedNetwork::new(unwound.rank_count, links.collect()).map_err(broken)
    }

    /// A time by this clock in picoseconds, of a message of so many bytes: those that the clock was made for, where it was.
    pub fn picoseconds(&self, ticks: u64, size_bytes: NonZeroU64) -> u64 {
        let ticks = u128::from(ticks);
        let time = match self.latency {
            0 => {
                let scaled = ticks.saturating_mul(PICOSECONDS).saturating_mul(size_bytes.get().into());
                scaled.saturating_mul(self.numerator).div_ceil(self.denominator)
            }
            _ => ticks,
        };
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// A time by this clock and one by another in units that are the same for both.
    pub(super) fn compared(&self, ticks: u128, (other, others): (&Self, u128)) -> (u128, u128) {
        let cross = |ticks: u128, own: &Self, other: &Self| {
            ticks.saturating_mul(own.numerator).saturating_mul(other.denominator)
        };
        (cross(ticks, self, other), cross(others, other, self))
    }
}

/// The least scale with which all links take whole numbers of ticks, if these are small.
fn exact_scale(links: &[UnwoundLink]) -> Option<u128> {
    use num_integer::Integer as _;
    // In lowest terms, capacity over parts: the scale is a multiple of the first.
    let mut common = 1_u128;
    for link in links {
        let (capacity, parts) = (u128::from(link.capacity), u128::from(link.parts));
        let capacity = capacity / capacity.gcd(&parts);
        common = common.checked_mul(capacity / capacity.gcd(&common))?;
    }
    let time =
        |link: &UnwoundLink| common.checked_mul(link.parts.into()).map(|ticks| ticks / u128::from(link.capacity));
    let mut divisor = 0;
    for link in links {
        divisor = time(link).filter(|&ticks| ticks <= EXACT_TICKS_MAX << 32)?.gcd(&divisor);
    }
    let divisor = divisor.max(1);
    let longest = links.iter().filter_map(time).max()?;
    // The common multiple of capacities has every common factor of the times.
    (longest / divisor <= EXACT_TICKS_MAX && common.is_multiple_of(divisor)).then(|| common / divisor)
}
