//! Clusters that are strong enough by themselves, and what is left when each of them is one terminal.
//!
//! A cluster may become one terminal if the lanes inside it alone have trees for the whole rate, and every lane that
//! leaves it starts at a rank: then a tree of the cluster together with any tree of what is around spans both. Nothing
//! is lost, since a partition that keeps the cluster together is one of the network.

use std::collections::HashMap;

use canopy_optimize::{Fraction, Stop};

use crate::error::SynthesisError;
use crate::forest::sums::lanes::Lanes;
use crate::forest::sums::piece::{Piece, PieceLane, Shape};
use crate::forest::sums::{flat, star};
use crate::forest::{RoutedTrees, ask};
use crate::progress::{Progress, Silent, Stage};

/// Takes a network apart: the pieces of clusters, then that of all that is left.
///
/// Candidates are boxes, the terminals of a switch that joins nothing else, level by level, and the parts of the partition
/// that limits the rate.
///
/// * **In.** A rate that all lanes together carry. **Errors.** Stopped.
/// * **Cost.** A test for each different candidate; O(nodes + lanes) for each.
pub(super) fn take_apart<'a>(
    lanes: &Lanes<'a>,
    rate: Fraction,
    parts: &[Vec<u32>],
    stop: &dyn Stop,
) -> Result<Vec<Piece<'a>>, SynthesisError> {
    let mut decomposition = Decomposition {
        lanes,
        rate,
        home: (0..lanes.node_count).collect(),
        neighbours: Vec::new(),
        known: HashMap::new(),
        pieces: Vec::new(),
        stop,
    };
    decomposition.look_around();
    let box_count = lanes.boxes.iter().flatten().max().map_or(0, |&last| last as usize + 1);
    let mut boxes = vec![Vec::new(); box_count];
    for (rank, number) in (0_u32..).zip(&lanes.boxes) {
        if let Some(number) = number {
            boxes[*number as usize].push(rank);
        }
    }
    // From inside out: small pieces first.
    for ranks in &boxes {
        decomposition.try_cluster(ranks)?;
    }
    decomposition.try_all_around_switches()?;
    for ranks in parts {
        decomposition.try_cluster(ranks)?;
    }
    decomposition.try_all_around_switches()?;
    let all: Vec<u32> = (0..lanes.node_count).filter(|&node| decomposition.home[node as usize] == node).collect();
    let rest = decomposition.piece(&all);
    decomposition.pieces.push(rest);
    Ok(decomposition.pieces)
}

struct Decomposition<'l, 'a> {
    lanes: &'l Lanes<'a>,
    rate: Fraction,
    /// By node: the lowest node of its outermost cluster, or itself.
    home: Vec<u32>,
    /// By home: the homes next to it, sorted.
    neighbours: Vec<Vec<u32>>,
    /// Whether pieces of a shape carry the rate.
    known: HashMap<Shape, bool>,
    pieces: Vec<Piece<'a>>,
    stop: &'l dyn Stop,
}

impl<'a> Decomposition<'_, 'a> {
    /// Looks up the neighbours of all homes.
    fn look_around(&mut self) {
        self.neighbours = vec![Vec::new(); self.home.len()];
        for lane in &self.lanes.list {
            let (low, high) = (self.home[lane.low as usize], self.home[lane.high as usize]);
            if low != high {
                self.neighbours[low as usize].push(high);
                self.neighbours[high as usize].push(low);
            }
        }
        for around in &mut self.neighbours {
            around.sort_unstable();
            around.dedup();
        }
    }

    /// Tries, level by level, the terminals of each switch that joins nothing else.
    fn try_all_around_switches(&mut self) -> Result<(), SynthesisError> {
        loop {
            let before = self.pieces.len();
            for switch in self.lanes.terminal_count..self.lanes.node_count {
                let around = &self.neighbours[switch as usize];
                if around.len() > 1 && around.iter().all(|&node| node < self.lanes.terminal_count) {
                    let around = around.clone();
                    self.try_cluster(&around)?;
                }
            }
            if self.pieces.len() == before {
                return Ok(());
            }
        }
    }

    /// Makes a cluster of these ranks and the switches that join nothing else, if it is strong enough.
    fn try_cluster(&mut self, ranks: &[u32]) -> Result<(), SynthesisError> {
        ask(self.stop)?;
        let mut members: Vec<u32> = ranks.iter().map(|&rank| self.home[rank as usize]).collect();
        members.sort_unstable();
        members.dedup();
        let terminal_count = members.len();
        let is_all = || (0..self.lanes.terminal_count).filter(|&rank| self.home[rank as usize] == rank).count();
        if terminal_count < 2 || terminal_count == is_all() {
            return Ok(());
        }
        self.add_private_switches(&mut members);
        let piece = self.piece(&members);
        let carries = match self.known.get(&piece.shape) {
            Some(&carries) => carries,
            None => {
                let carries = piece.shape.carries(self.rate, self.lanes.rank_count, self.stop)?;
                self.known.insert(piece.shape.clone(), carries);
                carries
            }
        };
        if carries {
            let mut is_member = vec![false; self.home.len()];
            members.iter().for_each(|&node| is_member[node as usize] = true);
            let lowest = members[0];
            self.home.iter_mut().filter(|home| is_member[**home as usize]).for_each(|home| *home = lowest);
            self.pieces.push(piece);
            self.look_around();
        }
        Ok(())
    }

    /// Adds all switches whose lanes lead to members, those added included.
    fn add_private_switches(&self, members: &mut Vec<u32>) {
        let mut is_in = vec![false; self.home.len()];
        members.iter().for_each(|&node| is_in[node as usize] = true);
        let mut next = 0;
        let terminal_count = members.len();
        while let Some(&node) = members.get(next) {
            next += 1;
            for &other in &self.neighbours[node as usize] {
                if other >= self.lanes.terminal_count && !is_in[other as usize] {
                    is_in[other as usize] = true;
                    members.push(other);
                }
            }
        }
        let mut suspects: Vec<u32> = members[terminal_count..].to_vec();
        while let Some(switch) = suspects.pop() {
            let around = &self.neighbours[switch as usize];
            if is_in[switch as usize] && around.iter().any(|&node| !is_in[node as usize]) {
                is_in[switch as usize] = false;
                suspects.extend(around.iter().filter(|&&node| node >= self.lanes.terminal_count));
            }
        }
        members.retain(|&node| is_in[node as usize]);
        members[terminal_count..].sort_unstable();
    }

    /// The piece of these homes, terminals first, with all lanes between them.
    fn piece(&self, members: &[u32]) -> Piece<'a> {
        let mut number = vec![u32::MAX; self.home.len()];
        for (&node, position) in members.iter().zip(0_u32..) {
            number[node as usize] = position;
        }
        let terminal_count = members.partition_point(|&node| node < self.lanes.terminal_count);
        let mut found: Vec<(PieceLane, (usize, bool))> = Vec::new();
        for (position, lane) in self.lanes.list.iter().enumerate() {
            let end = |node: u32| number[self.home[node as usize] as usize];
            let (first, second) = (end(lane.low), end(lane.high));
            if first != second && first.max(second) != u32::MAX {
                let (low, high) = (first.min(second), first.max(second));
                let of_piece = PieceLane { low, high, capacity: lane.capacity, latency_ns: lane.latency_ns };
                found.push((of_piece, (position, first > second)));
            }
        }
        found.sort_by_key(|&(lane, (position, _))| (lane.low, lane.high, position));
        let mut cluster_size = vec![0_u32; self.home.len()];
        self.home.iter().for_each(|&home| cluster_size[home as usize] += 1);
        let mut numbers: Vec<u32> = Vec::new();
        let in_box = |&node: &u32| {
            let known = self.lanes.boxes[node as usize].filter(|_| cluster_size[node as usize] == 1)?;
            let position = numbers.iter().position(|&number| number == known).unwrap_or_else(|| {
                numbers.push(known);
                numbers.len() - 1
            });
            u32::try_from(position).ok()
        };
        let boxes = members[..terminal_count].iter().map(in_box).collect();
        let count = |length: usize| u32::try_from(length).expect("no more than nodes");
        Piece {
            shape: Shape {
                terminal_count: count(terminal_count),
                node_count: count(members.len()),
                lanes: found.iter().map(|&(lane, _)| lane).collect(),
                boxes,
            },
            switch_names: members[terminal_count..].iter().map(|&switch| self.lanes.switch_name(switch)).collect(),
            origins: found.into_iter().map(|(_, origin)| origin).collect(),
        }
    }
}

/// Trees for all pieces, equal ones solved once: by piece, the position of its solution.
///
/// Where a number of trees comes with the rate, lanes carry whole ones of them, and so does every piece if it can: the
/// trees of a piece then divide this number.
pub(super) fn solve(
    pieces: &[Piece<'_>],
    (rate, whole): (Fraction, Option<u64>),
    rank_count: u32,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(Vec<usize>, Vec<RoutedTrees>), SynthesisError> {
    let (mut known, mut solution_of, mut solutions) = (HashMap::new(), vec![0; pieces.len()], Vec::new());
    let is_alone = pieces.len() == 1;
    // What is left in the end first: the number of its trees suits those that have a choice.
    let mut tree_count = whole.unwrap_or(1);
    for (done, (position, piece)) in (0..).zip(pieces.iter().enumerate().rev()) {
        if !is_alone {
            progress.report(Stage::Trees, done, pieces.len() as u64);
        }
        let solution = *known.entry(&piece.shape).or_insert(solutions.len());
        if solution == solutions.len() {
            let progress = if is_alone { progress } else { &Silent };
            let fits = |found: &RoutedTrees| whole.is_none_or(|count| count.is_multiple_of(found.trees_per_root));
            let found = match star::solve(&piece.shape, rate, tree_count)?.filter(fits) {
                Some(found) => found,
                None => {
                    let demands = flat::Demands { is_whole: whole.is_some(), is_alone: is_alone && whole.is_none() };
                    flat::solve(piece, rate, demands, rank_count, stop, progress)?
                }
            };
            if done == 0 && whole.is_none() {
                tree_count = found.trees_per_root;
            }
            solutions.push(found);
        }
        solution_of[position] = solution;
    }
    if !is_alone {
        progress.report(Stage::Trees, pieces.len() as u64, pieces.len() as u64);
    }
    Ok((solution_of, solutions))
}
