//! Trees of shortest paths that load the directions of a torus in proportion to their rates.

use std::collections::BTreeMap;

use super::transport::{Supply, transport};
use crate::symmetric::torus::Grid;

/// Most trees per rank.
const TREES_MAX: u64 = 12;

/// A time per share: of two numbers, shares by bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    pub(super) shares: u128,
    pub(super) rate: u128,
}

impl Time {
    pub(super) const fn is_more_than(self, other: Self) -> bool {
        self.shares * other.rate > other.shares * self.rate
    }

    /// Chunks over a link of this rate in this time, for so many chunks per share.
    pub(super) fn chunks(self, rate: u64, chunks_per_share: u64) -> u64 {
        let chunks = self.shares * u128::from(chunks_per_share) * u128::from(rate) / self.rate.max(1);
        u64::try_from(chunks).unwrap_or(u64::MAX)
    }
}

/// Trees from seat 0: one for each chunk of a share.
pub(super) struct Templates {
    /// By tree, by seat: the direction of the hop into it.
    pub(super) into: Vec<Vec<u8>>,
    /// Chunks over a link, by direction.
    pub(super) loads: Vec<u64>,
    /// When all have arrived.
    pub(super) time: Time,
}

impl Templates {
    /// The fewest trees, of up to 12, whose slowest link is as fast as shortest paths allow, or comes nearest to it.
    ///
    /// The seats to which shortest paths come from some of the directions are a class. Of each set of directions, the
    /// links must take what only they can: the slowest such set is the bound, and there is a whole transport wherever
    /// each set has room, by the theorem of Hall.
    pub(super) fn new(grid: &Grid, rates: &[u64]) -> Option<Self> {
        let mut classes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let distances = grid.distances();
        for seat in 1..grid.seat_count() {
            classes.entry(directions(grid, &distances, seat)).or_default().push(seat);
        }
        // Neighbours take turns between directions: then few of them are children of each other, and each may take
        // the place of another's parent if a link is lost.
        for (&places, seats) in &mut classes {
            seats.sort_by_key(|&seat| distances[seat as usize] % places.count_ones().max(1));
        }
        let supplies: Vec<Supply> =
            classes.iter().map(|(&places, seats)| Supply { places, count: seats.len() as u64 }).collect();
        let mut best: Option<(u64, Time)> = None;
        for trees in 1..=TREES_MAX {
            let time = least(&supplies, rates, trees)?;
            if best.is_none_or(|(_, best)| best.is_more_than(time)) {
                best = Some((trees, time));
            }
        }
        let (trees, time) = best?;
        let room = rates.iter().map(|&rate| time.chunks(rate, trees)).collect();
        let all: Vec<Supply> =
            supplies.iter().map(|supply| Supply { count: supply.count * trees, ..*supply }).collect();
        let sent = transport(&all, room)?;
        let count = usize::try_from(trees).ok()?;
        let mut into = vec![vec![0_u8; grid.seat_count() as usize]; count];
        for (seats, of_class) in classes.values().zip(&sent) {
            // Trees take turns, so that each has its part of each direction.
            let directions = (0_u8..).zip(of_class).flat_map(|(direction, &chunks)| {
                std::iter::repeat_n(direction, usize::try_from(chunks).unwrap_or(usize::MAX))
            });
            for (at, direction) in directions.enumerate() {
                into[at % count][seats[at / count] as usize] = direction;
            }
        }
        let load = |direction| sent.iter().map(|of_class| of_class[direction]).sum();
        Some(Self { into, loads: (0..rates.len()).map(load).collect(), time })
    }

    /// The parent of a seat other than the root.
    pub(super) fn parent(&self, grid: &Grid, tree: usize, seat: u32) -> u32 {
        grid.before(seat, self.into[tree][seat as usize].into())
    }
}

/// The directions, as bits, from which shortest paths lead to a seat.
fn directions(grid: &Grid, distances: &[u32], seat: u32) -> u32 {
    let is_nearer = |&heading: &usize| distances[grid.before(seat, heading) as usize] < distances[seat as usize];
    (0..grid.headings.len()).filter(is_nearer).map(|heading| 1 << heading).sum()
}

/// The least time in which all sets of directions carry what only they can, in whole chunks.
fn least(supplies: &[Supply], rates: &[u64], trees: u64) -> Option<Time> {
    let sets: Vec<(u32, u64)> = (1..1_u32 << rates.len())
        .map(|set| (set, supplies.iter().filter(|one| one.places & !set == 0).map(|one| one.count).sum()))
        .collect();
    let of_set = |set: u32| (0..rates.len()).filter(move |place| set >> place & 1 == 1);
    let mut time: Option<Time> = None;
    for &(set, shares) in &sets {
        let rate: u128 = of_set(set).map(|place| u128::from(rates[place])).sum();
        let of_this = Time { shares: shares.into(), rate };
        if time.is_none_or(|longest| of_this.is_more_than(longest)) {
            time = Some(of_this);
        }
    }
    let mut time = time?;
    // Each round gives one link a chunk more, and each has too few by less than one at first.
    for _ in 0..=rates.len() * rates.len() {
        let chunks: Vec<u64> = rates.iter().map(|&rate| time.chunks(rate, trees)).collect();
        let lacks =
            |&&(set, shares): &&(u32, u64)| of_set(set).map(|place| chunks[place]).sum::<u64>() < shares * trees;
        let Some(&(set, _)) = sets.iter().find(lacks) else { return Some(time) };
        let later = |place: usize| Time {
            shares: u128::from(chunks[place]) + 1,
            rate: u128::from(rates[place]) * u128::from(trees),
        };
        let next = of_set(set).map(later).reduce(|least, other| if least.is_more_than(other) { other } else { least });
        time = next?;
    }
    None
}
