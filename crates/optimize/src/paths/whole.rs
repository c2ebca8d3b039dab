//! Divides pairs into whole chunks on given paths, and moves chunks off the busiest arcs.

use std::cmp::Ordering;

use crate::digraph::Digraph;
use crate::fraction::Fraction;
use crate::stop::{Stop, Stopped};

/// Moves of chunks between two looks at whether to stop.
const ASK_INTERVAL: u64 = 256;

/// Most moves: as many as pairs and paths for which there is room ever need while their demands are small. What is left to
/// gain of demands of many digits after them is next to nothing.
const MOVES_MAX: u64 = 1 << 20;

/// Whole chunks for each of some pairs of nodes, on paths given for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholePaths {
    /// Chunks for each unit of demand.
    pub chunks: u64,
    /// By pair, by path: chunks that take it; those of a pair add up to `chunks` times its demand.
    pub counts: Vec<Vec<u64>>,
    /// The greatest `chunks on an arc / (chunks · capacity)`: time of the busiest arc for the demands of all pairs.
    pub load: Fraction,
}

/// Divides pairs into whole chunks near given weights, and moves chunks off the busiest arcs as long as that helps.
///
/// Weights are rounded down; what is left of a pair goes, chunk by chunk, where arcs were given least of what was due so far. Then
/// a chunk on a busiest arc takes another path of its pair whose arcs all remain less busy, until there is none: loads
/// only ever fall in the order of the busiest first, so that ends.
///
/// * **Source.** Basu 2024 §4.2 asks for whole chunks; how they are rounded is left open there.
/// * **In.** For each pair at least one path of arcs with capacity, a demand, and as many weights as paths that add up to about
///   1. At least one chunk. All demands times the chunks add up to less than 2⁶⁴.
/// * **Out.** Counts that add up exactly. **Errors.** Stopped. **Cost.** O(length of all paths), and O(arcs) for each move.
pub fn whole_paths(
    graph: &Digraph,
    pairs: &[Vec<Vec<u32>>],
    demands: &[u64],
    weights: &[Vec<f64>],
    chunks: u64,
    stop: &dyn Stop,
) -> Result<WholePaths, Stopped> {
    let mut loads = PathLoads::new(graph, pairs);
    loads.round(demands, weights, chunks);
    loads.relieve(stop)?;
    Ok(WholePaths { chunks, load: loads.load(chunks), counts: loads.counts })
}

/// Chunks on paths and what they add up to on arcs.
pub(super) struct PathLoads<'a> {
    pairs: &'a [Vec<Vec<u32>>],
    capacities: Vec<u64>,
    pub(super) counts: Vec<Vec<u64>>,
    loads: Vec<u64>,
    /// By arc: paths over it, by pair and place in its list.
    users: Vec<Vec<(u32, u32)>>,
}

/// A chunk of a pair changes its path, from one of the pair's to another by their places.
#[derive(Clone, Copy)]
struct Move {
    pair: usize,
    from: usize,
    to: usize,
}

/// Compares two quotients of load and capacity.
fn compare((load, capacity): (u64, u64), (other, its_capacity): (u64, u64)) -> Ordering {
    (u128::from(load) * u128::from(its_capacity)).cmp(&(u128::from(other) * u128::from(capacity)))
}

impl<'a> PathLoads<'a> {
    /// Without any chunks.
    pub(super) fn new(graph: &Digraph, pairs: &'a [Vec<Vec<u32>>]) -> Self {
        let mut users = vec![Vec::new(); graph.arcs.len()];
        for (paths, pair) in pairs.iter().zip(0..) {
            for (path, place) in paths.iter().zip(0..) {
                path.iter().for_each(|&arc| users[arc as usize].push((pair, place)));
            }
        }
        Self {
            pairs,
            capacities: graph.arcs.iter().map(|arc| arc.capacity.max(1)).collect(),
            counts: pairs.iter().map(|paths| vec![0; paths.len()]).collect(),
            loads: vec![0; graph.arcs.len()],
            users,
        }
    }

    /// Puts chunks on a path.
    pub(super) fn add(&mut self, pair: usize, place: usize, chunks: u64) {
        self.counts[pair][place] += chunks;
        self.pairs[pair][place].iter().for_each(|&arc| self.loads[arc as usize] += chunks);
    }

    /// Takes chunks off a path that has them.
    pub(super) fn remove(&mut self, pair: usize, place: usize, chunks: u64) {
        self.counts[pair][place] -= chunks;
        self.pairs[pair][place].iter().for_each(|&arc| self.loads[arc as usize] -= chunks);
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "floats only steer what is rounded up; what is given adds up exactly"
    )]
    fn round(&mut self, demands: &[u64], weights: &[Vec<f64>], chunks: u64) {
        let mut due = vec![0.0; self.loads.len()];
        for (pair, (weights, demand)) in weights.iter().zip(demands).enumerate() {
            let chunks = chunks * demand;
            let mut left = chunks;
            let mut open: Vec<(usize, f64)> = Vec::with_capacity(weights.len());
            for (place, weight) in weights.iter().enumerate() {
                let wanted = (weight * chunks as f64).max(0.0);
                let whole = (wanted as u64).min(left);
                self.pairs[pair][place].iter().for_each(|&arc| due[arc as usize] += wanted);
                self.add(pair, place, whole);
                left -= whole;
                open.push((place, wanted - whole as f64));
            }
            // What a solver leaves of nothing is no reason to use a path.
            open.retain(|&(_, rest)| rest > 1e-6);
            while left > 0 {
                let excess = |place: usize| {
                    let over = |arc: usize| (self.loads[arc] as f64 - due[arc]) / self.capacities[arc] as f64;
                    self.pairs[pair][place].iter().map(|&arc| over(arc as usize)).fold(f64::NEG_INFINITY, f64::max)
                };
                let best = open.iter().enumerate().min_by(|(_, one), (_, other)| {
                    excess(one.0).total_cmp(&excess(other.0)).then(other.1.total_cmp(&one.1))
                });
                match best.map(|(position, &(place, _))| (position, place)) {
                    Some((position, place)) => {
                        open.swap_remove(position);
                        self.add(pair, place, 1);
                        left -= 1;
                    }
                    // Weights that add up to less than 1.
                    None => {
                        let heaviest =
                            (0..weights.len()).max_by(|&one, &other| weights[one].total_cmp(&weights[other]));
                        self.add(pair, heaviest.unwrap_or_default(), left);
                        left = 0;
                    }
                }
            }
        }
    }

    /// The path of a pair on which one more chunk adds least to Σ load²/capacity; of equal ones the first or the last.
    pub(super) fn least_growth(&self, pair: usize, prefers_last: bool) -> usize {
        let growth = |path: &Vec<u32>| -> u128 {
            let of = |&arc: &u32| {
                let (load, capacity) = (self.loads[arc as usize], self.capacities[arc as usize]);
                ((2 * u128::from(load) + 1) << 48) / u128::from(capacity)
            };
            path.iter().map(of).fold(0, u128::saturating_add)
        };
        let places = self.pairs[pair].iter().map(growth).enumerate();
        let least = match prefers_last {
            true => places.rev().min_by_key(|&(_, growth)| growth),
            false => places.into_iter().min_by_key(|&(_, growth)| growth),
        };
        least.map_or(0, |(place, _)| place)
    }

    /// The greatest load for its capacity, as the two.
    pub(super) fn worst(&self) -> (u64, u64) {
        let loads = self.loads.iter().copied().zip(self.capacities.iter().copied());
        loads.max_by(|&one, &other| compare(one, other)).unwrap_or((0, 1))
    }

    /// Time of the busiest arc, if so many chunks are one unit.
    pub(super) fn load(&self, chunks: u64) -> Fraction {
        let (load, capacity) = self.worst();
        Fraction::new(load.into(), u128::from(chunks) * u128::from(capacity)).unwrap_or(Fraction::ZERO)
    }

    /// Moves chunks off the busiest arcs until one of these cannot be relieved.
    pub(super) fn relieve(&mut self, stop: &dyn Stop) -> Result<(), Stopped> {
        for moves in 0..MOVES_MAX {
            if moves.is_multiple_of(ASK_INTERVAL) && stop.is_requested() {
                return Err(Stopped);
            }
            let worst = self.worst();
            let of = |arc: usize| (self.loads[arc], self.capacities[arc]);
            let mut busiest = (0..self.loads.len()).filter(|&arc| compare(of(arc), worst).is_eq());
            let relief = busiest.find_map(|arc| self.way_around(arc, worst));
            let Some(Move { pair, from, to }) = relief else { break };
            self.remove(pair, from, 1);
            self.add(pair, to, 1);
        }
        Ok(())
    }

    /// A chunk on an arc, by pair and path, and another path of its pair on which it leaves every arc below the worst: of all
    /// the one on which the busiest arc is busy least.
    fn way_around(&self, arc: usize, worst: (u64, u64)) -> Option<Move> {
        let mut best: Option<((u64, u64), Move)> = None;
        for &(pair, from) in &self.users[arc] {
            let (pair, from) = (pair as usize, from as usize);
            if self.counts[pair][from] == 0 {
                continue;
            }
            let old = &self.pairs[pair][from];
            for (to, path) in self.pairs[pair].iter().enumerate().filter(|&(to, _)| to != from) {
                let fresh = path.iter().filter(|arc| !old.contains(arc)).map(|&arc| arc as usize);
                let after = fresh.map(|arc| (self.loads[arc] + 1, self.capacities[arc]));
                let after = after.max_by(|&one, &other| compare(one, other)).unwrap_or((0, 1));
                let is_off = !path.iter().any(|&other| other as usize == arc);
                let is_better = best.is_none_or(|(least, _)| compare(after, least).is_lt());
                if is_off && compare(after, worst).is_lt() && is_better {
                    best = Some((after, Move { pair, from, to }));
                }
            }
        }
        best.map(|(_, found)| found)
    }
}
