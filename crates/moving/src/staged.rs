//! Stages of box matchings, for comparison: balance within boxes, exchange between boxes one to one, distribute within
//! boxes.

use canopy_optimize::Fraction;

use crate::matrix::{Matrix, Sums};
use crate::tiers::Tiers;

/// Most boxes for which stages are made.
pub const STAGED_BOXES_MAX: usize = 128;

/// Why there are no stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum StagedError {
    #[error("the network has {ranks} ranks, and the matrix {matrix}; give it a row and a column for each")]
    Ranks { ranks: usize, matrix: usize },
    #[error("the network has {boxes} boxes; stages are made for {STAGED_BOXES_MAX} at most")]
    Boxes { boxes: usize },
    #[error(
        "box {from} and box {to} have no live NICs at the same place; mend one, or send nothing from one to the other"
    )]
    NoRail { from: usize, to: usize },
}

/// Stages, and how long they take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// All of it in seconds, each stage rounded up to a picosecond.
    pub time: Fraction,
    /// What of that goes by before the first byte leaves a box.
    pub balance: Fraction,
    /// Box matchings.
    pub stages: usize,
}

/// Times of one pair of boxes in picoseconds, if it were alone.
#[derive(Clone, Copy, Debug, Default)]
struct PairTimes {
    exchange: u128,
    distribution: u128,
}

/// Plans an exchange in stages.
///
/// For each pair of boxes, the senders first move bytes within their box until each NIC has its part, as many on all
/// that have a rate. The matrix of boxes, padded to equal sums of rows and columns, is a sum of matchings; in each, a
/// box sends to one other at most, and receives from one, from each NIC to the NIC at the same place, on one fabric as
/// well. What has arrived is then distributed within the box, while the next stage is exchanged. What stays within
/// boxes moves during the first stage. The moves before the first stage and the distribution after the last have
/// nothing beside them. Single links of boxes joined in pairs are not looked at.
///
/// * **Source.** Lei et al., FAST, arXiv 2505.09764, for NICs of one rate. Others get bytes in proportion to the slower
///   of both ends here, dead ones none.
/// * **Errors.** [`StagedError`].
/// * **Cost.** O(ranks²·box size + boxes⁴).
pub fn staged(tiers: &Tiers, matrix: &Matrix) -> Result<Staged, StagedError> {
    let (ranks, boxes) = (tiers.ranks(), tiers.boxes());
    if matrix.ranks() != ranks {
        return Err(StagedError::Ranks { ranks, matrix: matrix.ranks() });
    }
    if boxes > STAGED_BOXES_MAX {
        return Err(StagedError::Boxes { boxes });
    }
    let sums = Sums::new(tiers, matrix);
    let mut balance = Balance::new(tiers);
    let mut pairs = vec![PairTimes::default(); boxes * boxes];
    for (pair, times) in pairs.iter_mut().enumerate().filter(|&(pair, _)| sums.boxes[pair] > 0) {
        *times = balance.pair(matrix, pair / boxes, pair % boxes, sums.boxes[pair])?;
    }
    let rates = tiers.rates();
    let inside = slowest(&sums.inside_out, &rates.inner_out).max(slowest(&sums.inside_in, &rates.inner_in));
    let balancing = slowest(&balance.out, &rates.inner_out).max(slowest(&balance.into, &rates.inner_in));
    let stages = matchings(&sums.boxes, boxes);
    let (mut total, mut beside) = (balancing, inside);
    for stage in &stages {
        let (mut exchange, mut distribution) = (0, 0);
        for &(pair, bytes) in stage {
            let part = |time: u128| (time * u128::from(bytes)).div_ceil(u128::from(sums.boxes[pair]));
            exchange = exchange.max(part(pairs[pair].exchange));
            distribution = distribution.max(part(pairs[pair].distribution));
        }
        total += exchange.max(beside);
        beside = distribution;
    }
    total += beside;
    let seconds = |picoseconds: u128| Fraction::new(picoseconds, 1_000_000_000_000).unwrap_or(Fraction::ZERO);
    Ok(Staged { time: seconds(total), balance: seconds(balancing), stages: stages.len() })
}

/// Picoseconds that a link takes, rounded up.
fn duration(bytes: u64, rate: u64) -> u128 {
    // Below 2^60 bytes times 2^40. Dead links are given nothing.
    (u128::from(bytes) * 1_000_000_000_000).div_ceil(u128::from(rate.max(1)))
}

/// Picoseconds that the slowest of some links takes.
fn slowest(bytes: &[u64], rates: &[u64]) -> u128 {
    bytes.iter().zip(rates).map(|(&bytes, &rate)| duration(bytes, rate)).max().unwrap_or(0)
}

/// Moves within the sending boxes, of all pairs together.
struct Balance<'a> {
    tiers: &'a Tiers,
    /// By rank, bytes that it gives to others, and gets of them.
    out: Vec<u64>,
    into: Vec<u64>,
}

impl<'a> Balance<'a> {
    fn new(tiers: &'a Tiers) -> Self {
        Self { tiers, out: vec![0; tiers.ranks()], into: vec![0; tiers.ranks()] }
    }

    /// Balances the bytes of one pair of boxes, and says how long it then takes.
    fn pair(&mut self, matrix: &Matrix, from: usize, to: usize, total: u64) -> Result<PairTimes, StagedError> {
        let size = self.tiers.box_size();
        let rates = self.tiers.rates();
        let (sender, receiver) = (|place: usize| from * size + place, |place: usize| to * size + place);
        let is_live = |place: &usize| rates.outer_out[sender(*place)] > 0 && rates.outer_in[receiver(*place)] > 0;
        let live: Vec<usize> = (0..size).filter(is_live).collect();
        if live.is_empty() {
            return Err(StagedError::NoRail { from, to });
        }
        let rate = |place: usize| rates.outer_out[sender(place)].min(rates.outer_in[receiver(place)]);
        let all: u128 = live.iter().map(|&place| u128::from(rate(place))).sum();
        let mut room = vec![0_u64; size];
        let (mut rates_before, mut bytes_before) = (0_u128, 0_u64);
        for &place in &live {
            rates_before += u128::from(rate(place));
            let bytes = u64::try_from(u128::from(total) * rates_before / all).unwrap_or(total);
            room[place] = bytes - bytes_before;
            bytes_before = bytes;
        }
        let exchange = live.iter().map(|&place| duration(room[place], rate(place))).max().unwrap_or(0);
        // Bytes that arrive at a place and have to move on, and those that have to come to it.
        let (mut passes, mut arrives) = (vec![0_u64; size], vec![0_u64; size]);
        let mut left: Vec<Vec<u64>> = Vec::with_capacity(size);
        for place in 0..size {
            let mut row = matrix.row(sender(place))[to * size..(to + 1) * size].to_vec();
            // First what is for the place itself, then what is for others.
            for target in std::iter::once(place).chain((0..size).filter(|target| *target != place)) {
                let kept = row[target].min(room[place]);
                row[target] -= kept;
                room[place] -= kept;
                if target != place {
                    passes[place] += kept;
                    arrives[target] += kept;
                }
            }
            left.push(row);
        }
        for (place, row) in left.iter().enumerate() {
            for (target, &bytes) in row.iter().enumerate() {
                let mut bytes = bytes;
                for nic in 0..size {
                    let moved = bytes.min(room[nic]);
                    bytes -= moved;
                    room[nic] -= moved;
                    self.out[sender(place)] += moved;
                    self.into[sender(nic)] += moved;
                    if nic != target {
                        passes[nic] += moved;
                        arrives[target] += moved;
                    }
                }
            }
        }
        let of_box = receiver(0)..receiver(0) + size;
        let distribution =
            slowest(&passes, &rates.inner_out[of_box.clone()]).max(slowest(&arrives, &rates.inner_in[of_box]));
        Ok(PairTimes { exchange, distribution })
    }
}

/// Matchings that make up the matrix of boxes: by matching, pairs of boxes and their bytes.
///
/// Birkhoff: while all rows and columns have the same sum, a matching of all boxes exists; the least entry on it is
/// taken from all of them, so that each matching empties one.
fn matchings(between: &[u64], boxes: usize) -> Vec<Vec<(usize, u64)>> {
    let mut real = between.to_vec();
    let mut padded = padded(between, boxes);
    let mut stages = Vec::new();
    let mut to_of: Vec<Option<usize>> = vec![None; boxes];
    let mut from_of: Vec<Option<usize>> = vec![None; boxes];
    while real.iter().any(|&bytes| bytes > 0) {
        for from in 0..boxes {
            if to_of[from].is_none() {
                let mut seen = vec![false; boxes];
                let is_found = augment(&padded, boxes, from, &mut to_of, &mut from_of, &mut seen);
                assert!(is_found, "equal sums have a matching");
            }
        }
        let pairs: Vec<usize> =
            to_of.iter().enumerate().filter_map(|(from, to)| to.map(|to| from * boxes + to)).collect();
        let bytes = pairs.iter().map(|&pair| padded[pair]).min().unwrap_or(0);
        let mut stage = Vec::new();
        for pair in pairs {
            padded[pair] -= bytes;
            let sent = real[pair].min(bytes);
            real[pair] -= sent;
            if sent > 0 {
                stage.push((pair, sent));
            }
            if padded[pair] == 0 {
                to_of[pair / boxes] = None;
                from_of[pair % boxes] = None;
            }
        }
        if !stage.is_empty() {
            stages.push(stage);
        }
    }
    stages
}

/// The matrix of boxes with more bytes, first from boxes to themselves, so that all rows and columns have the same sum.
fn padded(between: &[u64], boxes: usize) -> Vec<u64> {
    let mut padded = between.to_vec();
    let mut rows: Vec<u64> = between.chunks(boxes).map(|row| row.iter().sum()).collect();
    let mut columns: Vec<u64> = (0..boxes).map(|to| between.iter().skip(to).step_by(boxes).sum()).collect();
    let sum = rows.iter().chain(&columns).copied().max().unwrap_or(0);
    rows.iter_mut().chain(&mut columns).for_each(|total| *total = sum - *total);
    let own = (0..boxes).map(|place| (place, place));
    let all = (0..boxes * boxes).map(|pair| (pair / boxes, pair % boxes));
    for (from, to) in own.chain(all) {
        let added = rows[from].min(columns[to]);
        padded[from * boxes + to] += added;
        rows[from] -= added;
        columns[to] -= added;
    }
    padded
}

/// Gives a box a partner, and others new ones where that takes it (Kuhn). As deep as there are boxes, at most.
fn augment(
    padded: &[u64],
    boxes: usize,
    from: usize,
    to_of: &mut [Option<usize>],
    from_of: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for to in 0..boxes {
        if padded[from * boxes + to] == 0 || std::mem::replace(&mut seen[to], true) {
            continue;
        }
        let is_free = match from_of[to] {
            None => true,
            Some(other) => augment(padded, boxes, other, to_of, from_of, seen),
        };
        if is_free {
            to_of[from] = Some(to);
            from_of[to] = Some(from);
            return true;
        }
    }
    false
}
