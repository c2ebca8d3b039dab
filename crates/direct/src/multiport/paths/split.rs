//! Divides a message among given paths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One as _, Zero as _};

/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;

/// A link on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// α, in nanoseconds.
    pub latency_ns: u64,
    /// 1/β, in bytes per second; 0 counts as 1.
    pub bytes_per_sec: u64,
}

/// When a node forwards received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Once it has all of it: every link costs α + mβ.
    Whole,
    /// As it comes in: every link costs α, and the slowest one mβ.
    Through,
}

/// Time of a path for m bytes: `start + m · per_byte`, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The latencies of its links.
    pub start: BigRational,
    /// Time per byte, above zero.
    pub per_byte: BigRational,
}

impl Line {
    /// The line of a path of these links, of which there is at least one.
    ///
    /// * **Source.** Pham 2026, equation (3.1), for links that are not alike.
    pub fn new(hops: impl IntoIterator<Item = Hop>, forwarding: Forwarding) -> Self {
        let mut line = Self { start: BigRational::zero(), per_byte: BigRational::zero() };
        for Hop { latency_ns, bytes_per_sec } in hops {
            line.start += whole(latency_ns);
            let own = BigRational::new(NANOS.into(), bytes_per_sec.max(1).into());
            match forwarding {
                Forwarding::Whole => line.per_byte += own,
                Forwarding::Through => line.per_byte = line.per_byte.max(own),
            }
        }
        line
    }

    /// Time for a number of bytes.
    pub fn time(&self, bytes: &BigRational) -> BigRational {
        &self.start + &self.per_byte * bytes
    }
}

/// A message divided among paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The parts that all end at the same time, as fractions of a byte; 0 on a path that has not even begun by then.
    pub shares: Vec<BigRational>,
    /// That time: no division of the message is faster.
    pub time_ns: BigRational,
    /// Parts in whole bytes.
    pub bytes: Vec<u64>,
    /// The time of these: no division into whole bytes is faster.
    pub whole_time_ns: BigRational,
}

/// Divides a message among paths so that the last part arrives as early as can be.
///
/// Paths are taken in the order of their latencies, as long as the next one would begin before the others are done; then all in use
/// end at `T = (M + Σ αᵢ/βᵢ) / Σ 1/βᵢ`. Whole bytes are these parts rounded down, and each byte that is left goes where it
/// arrives first.
///
/// * **In.** At least one line. **None.** There is none. **Cost.** O(lines log lines) operations on fractions.
pub fn split(lines: &[Line], size_bytes: u64) -> Option<Split> {
    let mut order: Vec<&Line> = lines.iter().collect();
    order.sort_by(|one, other| one.start.cmp(&other.start));
    let (mut top, mut bottom) = (whole(size_bytes), BigRational::zero());
    let mut time_ns: Option<BigRational> = None;
    for line in order {
        if time_ns.as_ref().is_some_and(|time| line.start >= *time) {
            break;
        }
        let rate = line.per_byte.recip();
        top += &line.start * &rate;
        bottom += rate;
        time_ns = Some(&top / &bottom);
    }
    let time_ns = time_ns?;
    let share = |line: &Line| ((&time_ns - &line.start) / &line.per_byte).max(BigRational::zero());
    let shares: Vec<BigRational> = lines.iter().map(share).collect();
    let mut bytes: Vec<u64> = shares.iter().map(floor).collect();
    let mut left = size_bytes.saturating_sub(bytes.iter().sum());
    let after = |line: &Line, bytes: u64| line.time(&(whole(bytes) + BigRational::one()));
    let next = lines.iter().zip(&bytes).enumerate().map(|(place, (line, &bytes))| Reverse((after(line, bytes), place)));
    let mut next: BinaryHeap<_> = next.collect();
    while left > 0 {
        let Reverse((_, place)) = next.pop()?;
        bytes[place] += 1;
        next.push(Reverse((after(&lines[place], bytes[place]), place)));
        left -= 1;
    }
    let whole_time_ns = slowest(lines.iter().zip(bytes.iter().map(|&bytes| whole(bytes))))?;
    Some(Split { shares, time_ns, bytes, whole_time_ns })
}

/// What the message takes if each path has an equal part, in fractions of a byte; `None` without paths.
pub fn even_time(lines: &[Line], size_bytes: u64) -> Option<BigRational> {
    let count = u64::try_from(lines.len()).ok().filter(|count| *count > 0)?;
    let part = BigRational::new(size_bytes.into(), count.into());
    slowest(lines.iter().map(|line| (line, part.clone())))
}

/// When the last part arrives, of those that are anything.
fn slowest<'a>(parts: impl Iterator<Item = (&'a Line, BigRational)>) -> Option<BigRational> {
    parts.filter(|(_, part)| !part.is_zero()).map(|(line, part)| line.time(&part)).max()
}

/// The whole part of what is not negative and at most 2⁶⁴ − 1.
fn floor(share: &BigRational) -> u64 {
    u64::try_from(share.floor().to_integer()).unwrap_or(0)
}

fn whole(number: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(number))
}
