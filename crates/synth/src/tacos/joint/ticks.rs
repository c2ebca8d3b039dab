//! How long chunks of several sizes take on links, in whole ticks.

use std::num::NonZeroU64;

use canopy_schedule::ChunkSize;
use canopy_topology::{LinkIndex, Topology};
use num_integer::Integer as _;

/// Longest time of a link that is exact: with a longer common unit, times are rounded up.
const EXACT_TICKS_MAX: u128 = 1 << 32;
/// Ticks of the longest time where times are rounded up.
const ROUNDED_TICKS: u128 = 1 << 24;
/// Bits of the parts of times that are compared exactly.
const EXACT_MAX: u128 = 1 << 100;

/// How long chunks take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lasts {
    /// By collective and link, ticks of a chunk.
    ticks: Vec<Vec<u64>>,
    /// Nanoseconds of a tick, as a fraction; its denominator is not 0.
    tick: (u128, u128),
}

impl Lasts {
    /// Times of chunks, of which so many make so many bytes, on all links of a network; with the latency of each, if that counts.
    ///
    /// A tick is such that all times are whole numbers of them without a common factor, or nearly so.
    pub(super) fn of(
        topology: &Topology,
        sizes: impl Iterator<Item = (ChunkSize, NonZeroU64)>,
        with_latency: bool,
    ) -> Self {
        let times: Vec<Vec<(u128, u128)>> = sizes
            .map(|size| {
                topology
                    .links()
                    .iter()
                    .map(|link| {
                        let latency = if with_latency { link.latency.nanos() } else { 0 };
                        time(size, link.capacity.bytes_per_sec(), latency)
                    })
                    .collect()
            })
            .collect();
        exact(&times).unwrap_or_else(|| rounded(&times))
    }

    /// Nanoseconds of a tick, as a fraction whose denominator is not 0: exactly, or rounded up with all times.
    pub(super) const fn tick_nanos(&self) -> (u128, u128) {
        self.tick
    }

    /// Ticks of a chunk of a collective on a link.
    pub(super) fn ticks(&self, collective: usize, link: LinkIndex) -> u64 {
        self.ticks[collective][link.index()]
    }
}

/// Nanoseconds of a chunk on a link, as a fraction in lowest terms.
fn time((size, bytes): (ChunkSize, NonZeroU64), capacity: u64, latency_ns: u64) -> (u128, u128) {
    // A chunk is bytes · divisor / chunks: below 2¹²⁶ with the nanoseconds of a second.
    let nanos = 1_000_000_000_u128;
    let (bytes, chunks) = reduced(u128::from(bytes.get()) * u128::from(size.divisor), size.chunks.into());
    let (nanos, capacity) = reduced(nanos, capacity.into());
    let (above, below) = (bytes.saturating_mul(nanos), chunks.saturating_mul(capacity));
    let (above, below) = reduced(above, below);
    reduced(above.saturating_add(below.saturating_mul(latency_ns.into())), below)
}

fn reduced(above: u128, below: u128) -> (u128, u128) {
    let common = above.gcd(&below).max(1);
    (above / common, below / common)
}

/// Times in the greatest unit of which all are whole numbers, if these are small.
fn exact(times: &[Vec<(u128, u128)>]) -> Option<Lasts> {
    let mut common = 1_u128;
    for &(_, below) in times.iter().flatten() {
        common = common.checked_mul(below / below.gcd(&common)).filter(|&common| common <= EXACT_MAX)?;
    }
    let whole = |&(above, below): &(u128, u128)| above.checked_mul(common / below);
    let whole: Vec<Vec<u128>> = times.iter().map(|each| each.iter().map(whole).collect()).collect::<Option<_>>()?;
    let unit = whole.iter().flatten().fold(0_u128, |unit, time| unit.gcd(time)).max(1);
    let ticks = |&time: &u128| (time / unit <= EXACT_TICKS_MAX).then(|| u64::try_from(time / unit).unwrap_or(1).max(1));
    let ticks = whole.iter().map(|each| each.iter().map(ticks).collect()).collect::<Option<_>>()?;
    Some(Lasts { ticks, tick: reduced(unit, common) })
}

/// Times in parts of the longest, rounded up.
fn rounded(times: &[Vec<(u128, u128)>]) -> Lasts {
    let up = |(above, below): (u128, u128)| above.div_ceil(below.max(1)).max(1);
    let longest = times.iter().flatten().copied().map(up).max().unwrap_or(1);
    let ticks = |&(above, below): &(u128, u128)| {
        let parts = up((above.saturating_mul(ROUNDED_TICKS), below.saturating_mul(longest)));
        u64::try_from(parts.min(EXACT_TICKS_MAX)).unwrap_or(1)
    };
    let ticks = times.iter().map(|each| each.iter().map(ticks).collect()).collect();
    Lasts { ticks, tick: reduced(longest, ROUNDED_TICKS) }
}
