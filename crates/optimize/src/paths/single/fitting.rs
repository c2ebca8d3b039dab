//! A local search for one path per pair within a given load.

use crate::digraph::Digraph;
use crate::fraction::Fraction;
use crate::stop::{Stop, Stopped};

/// Moves between two looks at whether to stop.
const ASK_INTERVAL: u64 = 256;

/// One path per pair, and the arcs that it overloads.
pub(in crate::paths) struct Fitting<'a> {
    pairs: &'a [Vec<Vec<u32>>],
    /// By pair, the place of its path.
    choices: Vec<u32>,
    /// By arc: paths that it has room for, paths on it, and the price of each path beyond its room.
    rooms: Vec<u64>,
    loads: Vec<u64>,
    prices: Vec<u64>,
    /// By arc, the pairs whose path it is on.
    users: Vec<Vec<u32>>,
    /// Arcs with more paths than room, and by arc its position among them.
    overloaded: Vec<u32>,
    positions: Vec<Option<usize>>,
    /// By pair, the move that changed its path last.
    changed: Vec<u64>,
}

/// A change of one path, by what it costs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    /// Overload in prices, and among equal ones the sum of loads on the path.
    cost: (i128, i128),
    /// Of equal ones the path that has been kept longest moves.
    changed: u64,
    pair: u32,
    place: u32,
}

impl<'a> Fitting<'a> {
    /// Starts from a choice.
    pub(in crate::paths) fn new(graph: &Digraph, pairs: &'a [Vec<Vec<u32>>], choices: &[u32], limit: Fraction) -> Self {
        let room = |capacity: u64| {
            let room = limit.numerator.saturating_mul(capacity.into()) / limit.denominator;
            u64::try_from(room).unwrap_or(u64::MAX)
        };
        let arcs = graph.arcs.len();
        let mut fitting = Self {
            pairs,
            choices: choices.to_vec(),
            rooms: graph.arcs.iter().map(|arc| room(arc.capacity)).collect(),
            loads: vec![0; arcs],
            prices: vec![1; arcs],
            users: vec![Vec::new(); arcs],
            overloaded: Vec::new(),
            positions: vec![None; arcs],
            changed: vec![0; pairs.len()],
        };
        for (pair, &place) in (0..).zip(choices) {
            fitting.put(pair, place);
        }
        fitting
    }

    /// Changes paths, one a move, until no arc has more than its room; `None` once the moves are spent.
    ///
    /// Each move relieves one overloaded arc: of the paths over it the one whose best alternative costs least takes that. Where
    /// every change costs more than it saves, overloaded arcs get dearer, which leads out of local optima.
    ///
    /// * **Source.** Weights of constraints as in Morris, "The breakout method for escaping from local minima", AAAI 1993.
    /// * **Errors.** Stopped. **Cost.** O(paths of the pairs on an arc · their length) for each move.
    pub(in crate::paths) fn search(mut self, moves_max: u64, stop: &dyn Stop) -> Result<Option<Vec<u32>>, Stopped> {
        for step in 0..moves_max {
            if step.is_multiple_of(ASK_INTERVAL) && stop.is_requested() {
                return Err(Stopped);
            }
            let count = self.overloaded.len() as u64;
            if count == 0 {
                return Ok(Some(self.choices));
            }
            let turn = usize::try_from(step % count).unwrap_or_default();
            let Some(best) = self.relief(self.overloaded[turn]) else { return Ok(None) };
            if best.cost.0 >= 0 {
                for &arc in &self.overloaded {
                    self.prices[arc as usize] += 1;
                }
            }
            self.take(best.pair);
            self.put(best.pair, best.place);
            self.changed[best.pair as usize] = step + 1;
        }
        Ok(None)
    }

    /// The cheapest change that takes a path off an arc; `None` if no pair on it has another path.
    fn relief(&mut self, arc: u32) -> Option<Change> {
        let mut best: Option<Change> = None;
        for position in 0..self.users[arc as usize].len() {
            let pair = self.users[arc as usize][position];
            let paths = &self.pairs[pair as usize];
            let old = &paths[self.choices[pair as usize] as usize];
            old.iter().for_each(|&arc| self.loads[arc as usize] -= 1);
            let (price, load) = self.cost(old);
            for (place, path) in (0..).zip(paths).filter(|(_, path)| !path.contains(&arc)) {
                let cost = self.cost(path);
                let cost = (cost.0 - price, cost.1 - load);
                let change = Change { cost, changed: self.changed[pair as usize], pair, place };
                if best.is_none_or(|best| change < best) {
                    best = Some(change);
                }
            }
            old.iter().for_each(|&arc| self.loads[arc as usize] += 1);
        }
        best
    }

    /// Overload in prices that one more path adds, and the loads that it meets.
    fn cost(&self, path: &[u32]) -> (i128, i128) {
        path.iter().map(|&arc| arc as usize).fold((0, 0), |(price, load), arc| {
            let over = if self.loads[arc] >= self.rooms[arc] { self.prices[arc] } else { 0 };
            (price + i128::from(over), load + i128::from(self.loads[arc]))
        })
    }

    /// Takes the path of a pair away.
    fn take(&mut self, pair: u32) {
        let pairs = self.pairs;
        for &arc in &pairs[pair as usize][self.choices[pair as usize] as usize] {
            let arc = arc as usize;
            self.loads[arc] -= 1;
            self.users[arc].retain(|&user| user != pair);
            if self.loads[arc] == self.rooms[arc]
                && let Some(position) = self.positions[arc].take()
            {
                self.overloaded.swap_remove(position);
                if let Some(&moved) = self.overloaded.get(position) {
                    self.positions[moved as usize] = Some(position);
                }
            }
        }
    }

    /// Gives a pair without a path this one.
    fn put(&mut self, pair: u32, place: u32) {
        let pairs = self.pairs;
        self.choices[pair as usize] = place;
        for &index in &pairs[pair as usize][place as usize] {
            let arc = index as usize;
            self.loads[arc] += 1;
            self.users[arc].push(pair);
            if self.loads[arc] > self.rooms[arc] && self.positions[arc].is_none() {
                self.positions[arc] = Some(self.overloaded.len());
                self.overloaded.push(index);
            }
        }
    }
}
