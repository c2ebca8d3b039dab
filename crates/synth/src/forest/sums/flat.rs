//! Trees of one piece as a whole, by the stages of broadcast trees.

use canopy_optimize::{FlowUnit, Fraction, Orientation, Stop, orientation};
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::condition::Condition;
use crate::forest::logical::LogicalGraph;
use crate::forest::network::Network;
use crate::forest::pattern::Spread;
use crate::forest::sums::piece::{Piece, Shape};
use crate::forest::sums::{packing, refusal};
use crate::forest::switches::remove_switches;
use crate::forest::{RoutedTrees, assembly};
use crate::progress::Progress;

/// Rounds of looking for the middle of a network.
const SWEEPS: usize = 16;

/// Numbers of trees that are tried in place of the one that makes all lanes whole.
const FEWER_TRIED: u64 = 12;

/// Kinds of lanes of which one more tree is tried, and the part of the rate that may be lost by that.
const KINDS_TRIED: usize = 8;
const LOST_MOST: f64 = 1.0 / 256.0;

/// Terminals from which on a network with switches that is one piece has few trees, at hardly less than the rate.
const LARGE_FROM: u32 = 512;

/// Demands on the trees of a piece besides its rate.
#[derive(Clone, Copy)]
pub(super) struct Demands {
    /// Whether lanes carry whole trees of the rate.
    pub(super) is_whole: bool,
    /// Whether the piece is the whole network.
    pub(super) is_alone: bool,
}

/// Directs the lanes so that all trees can be rooted at the terminal in the middle, removes the switches and packs.
///
/// * **In.** A rate that the piece carries. **Out.** Trees on links numbered as by [`Shape::links`]; `trees_per_root` of
///   them stand for the rate. **Errors.** Stopped, too many trees or neighbours.
/// * **Cost.** That of a broadcast forest.
pub(super) fn solve(
    piece: &Piece<'_>,
    rate: Fraction,
    Demands { is_whole, is_alone }: Demands,
    rank_count: u32,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<RoutedTrees, SynthesisError> {
    let shape = &piece.shape;
    let root = middle(shape);
    let mut few = if is_whole { None } else { few_trees(shape, rate, root, rank_count, stop)? };
    // Other pieces would have to carry the lower rate, too.
    let is_large = shape.terminal_count >= LARGE_FROM && shape.node_count > shape.terminal_count;
    if few.is_none() && is_alone && is_large {
        few = near_trees(shape, rate, root, rank_count, stop)?;
    }
    let directed = match few {
        Some(directed) => directed,
        None => {
            let found = orientation(&shape.graph(), &shape.terminals(), rate, root, stop);
            let found = found.map_err(|error| refusal(error, rank_count))?;
            let found = found.ok_or_else(|| SynthesisError::Broken { what: "a piece is too weak".to_owned() })?;
            let too_many = || SynthesisError::TooManyTrees { trees_per_rank: found.tree_count, rank_count };
            Directed::divide(shape, &found, rate).ok_or_else(too_many)?
        }
    };
    let sum = directed.capacities.iter().try_fold(u128::from(directed.tree_count), |sum, &part| sum.checked_add(part));
    let fits = |most: u128| sum.is_some_and(|sum| sum < most / 4);
    if fits(i64::MAX.unsigned_abs().into()) {
        pack::<i64>(piece, &directed, root, stop, progress)
    } else if fits(i128::MAX.unsigned_abs()) {
        pack::<i128>(piece, &directed, root, stop, progress)
    } else {
        Err(SynthesisError::TooManyTrees { trees_per_rank: directed.tree_count.into(), rank_count })
    }
}

/// What each link carries, in whole trees.
struct Directed {
    tree_count: u64,
    /// By link of [`Shape::links`].
    capacities: Vec<u128>,
}

impl Directed {
    /// Divides what each pair of nodes has between the lanes there, the first ones up and the last ones down. `None` if
    /// trees exceed 64 bits.
    fn divide(shape: &Shape, found: &Orientation, rate: Fraction) -> Option<Self> {
        // A lane has capacity·trees/rate of them, which need not be whole where several make a pair.
        let mut factor = 1_u128;
        for lane in &shape.lanes {
            let room = found.tree_count.checked_mul(rate.denominator)?.checked_mul(lane.capacity.into())?;
            let missing = rate.numerator / rate.numerator.gcd(&room);
            factor = factor.checked_mul(missing / missing.gcd(&factor))?;
        }
        let tree_count = found.tree_count.checked_mul(factor)?;
        let room = |capacity: u64| Some(tree_count * rate.denominator * u128::from(capacity) / rate.numerator);
        tree_count.checked_mul(rate.denominator)?.checked_mul(u64::MAX.into())?;
        let rooms: Vec<u128> = shape.lanes.iter().map(|lane| room(lane.capacity)).collect::<Option<_>>()?;
        Self::fill(shape, found, factor, &rooms, u64::try_from(tree_count).ok()?)
    }

    fn fill(shape: &Shape, found: &Orientation, factor: u128, rooms: &[u128], tree_count: u64) -> Option<Self> {
        let mut ups = vec![0; rooms.len()];
        let mut pairs = found.pairs.iter().peekable();
        let mut left = 0;
        let mut ends = None;
        for ((lane, &room), up) in shape.lanes.iter().zip(rooms).zip(&mut ups) {
            if ends != Some((lane.low, lane.high)) {
                ends = Some((lane.low, lane.high));
                // Both are sorted by ends; pairs without capacity are none.
                let pair = pairs.next_if(|pair| (pair.low, pair.high) == (lane.low, lane.high));
                left = pair.map_or(Some(0), |pair| pair.up.checked_mul(factor))?;
            }
            *up = room.min(left);
            left -= *up;
        }
        let links = shape.links();
        let capacity = |&(_, lane, is_up): &(_, usize, bool)| if is_up { ups[lane] } else { rooms[lane] - ups[lane] };
        Some(Self { tree_count, capacities: links.iter().map(capacity).collect() })
    }
}

/// The least number of trees, of a few, whose whole parts of all lanes lose nothing.
fn few_trees(
    shape: &Shape,
    rate: Fraction,
    root: u32,
    rank_count: u32,
    stop: &dyn Stop,
) -> Result<Option<Directed>, SynthesisError> {
    let common = shape.lanes.iter().fold(rate.numerator, |common, lane| common.gcd(&lane.capacity.into()));
    for trees in (1..=FEWER_TRIED).take_while(|&trees| u128::from(trees) < rate.numerator / common) {
        if let Some(directed) = whole_trees(shape, (rate, trees), root, rank_count, stop)? {
            return Ok(Some(directed));
        }
    }
    Ok(None)
}

/// So many trees on the whole parts of all lanes; `None` where these are too little.
fn whole_trees(
    shape: &Shape,
    (rate, trees): (Fraction, u64),
    root: u32,
    rank_count: u32,
    stop: &dyn Stop,
) -> Result<Option<Directed>, SynthesisError> {
    let mut graph = shape.graph();
    let Some(factor) = rate.denominator.checked_mul(trees.into()) else { return Ok(None) };
    for (arc, lane) in graph.arcs.iter_mut().zip(&shape.lanes) {
        let Some(product) = factor.checked_mul(lane.capacity.into()) else { return Ok(None) };
        let Ok(room) = u64::try_from(product / rate.numerator) else { return Ok(None) };
        arc.capacity = room;
    }
    // Every terminal alone is a part that trees must be led into.
    let ends = shape.lanes.iter().zip(&graph.arcs);
    let ends = ends.map(|(lane, arc)| u128::from(arc.capacity) * if lane.high < shape.terminal_count { 2 } else { 1 });
    if ends.sum::<u128>() < 2 * u128::from(trees) * (u128::from(shape.terminal_count) - 1) {
        return Ok(None);
    }
    let wanted = Fraction::new(trees.into(), 1).expect("one is not zero");
    let found =
        orientation(&graph, &shape.terminals(), wanted, root, stop).map_err(|error| refusal(error, rank_count))?;
    let Some(found) = found else { return Ok(None) };
    let factor = found.tree_count.div_ceil(trees.into());
    let rooms: Vec<u128> = graph.arcs.iter().map(|arc| u128::from(arc.capacity) * factor).collect();
    if found.tree_count != factor * u128::from(trees) {
        return Ok(None);
    }
    Ok(Directed::fill(shape, &found, 1, &rooms, trees * u64::try_from(factor).unwrap_or(1)))
}

/// A few trees at a rate that is lower by less than [`LOST_MOST`]; `None` if there are none.
///
/// Removing hundreds of switches between a thousand terminals takes half a minute where a lane carries part of a tree.
/// **Cost.** A test for each few trees and each kind of lane.
fn near_trees(
    shape: &Shape,
    rate: Fraction,
    root: u32,
    rank_count: u32,
    stop: &dyn Stop,
) -> Result<Option<Directed>, SynthesisError> {
    let mut capacities: Vec<u64> =
        shape.lanes.iter().map(|lane| lane.capacity).filter(|&capacity| capacity > 0).collect();
    capacities.sort_unstable();
    capacities.dedup();
    // Of a lower rate, a kind of lanes carries one more tree.
    let lower = |&(trees, capacity): &(u64, u64)| {
        let room = u128::from(capacity).checked_mul(trees.into())?;
        let carried = room.checked_mul(rate.denominator)?.div_ceil(rate.numerator);
        Some((Fraction::new(room, carried)?, trees))
    };
    let pairs =
        (1..=FEWER_TRIED).flat_map(|trees| capacities.iter().take(KINDS_TRIED).map(move |&capacity| (trees, capacity)));
    let mut rates: Vec<(Fraction, u64)> = pairs.filter_map(|pair| lower(&pair)).collect();
    rates.retain(|(lower, _)| lower.to_float() >= rate.to_float() * (1.0 - LOST_MOST));
    rates.sort_unstable_by_key(|&(rate, trees)| (std::cmp::Reverse(rate), trees));
    rates.dedup();
    for (lower, trees) in rates {
        if let Some(directed) = whole_trees(shape, (lower, trees), root, rank_count, stop)? {
            return Ok(Some(directed));
        }
    }
    Ok(None)
}

fn pack<C: FlowUnit>(
    piece: &Piece<'_>,
    directed: &Directed,
    root: u32,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<RoutedTrees, SynthesisError> {
    let shape = &piece.shape;
    let network = Network {
        terminal_count: shape.terminal_count,
        node_count: shape.node_count,
        outside: None,
        links: shape.links().into_iter().map(|(way, ..)| way).collect(),
        boxes: shape.boxes.clone(),
        switch_names: piece.switch_names.clone(),
    };
    let convert = |value: u128| C::try_from_u128(value).expect("the sum of all numbers was found to fit");
    let capacities: Vec<C> = directed.capacities.iter().map(|&capacity| convert(capacity)).collect();
    let mut demands = vec![C::ZERO; shape.node_count as usize];
    demands[root as usize] = convert(directed.tree_count.into());
    let mut graph = LogicalGraph::new(&network, &capacities, stop)?;
    remove_switches(&network, &mut graph, &demands, Spread::All, stop, progress)?;
    demands.truncate(shape.terminal_count as usize);
    let condition = Condition::new(graph.edges(), demands, shape.terminal_count, stop)?;
    let (grower, trees) = packing::pack(&condition, root, shape.terminal_count, stop, progress)?;
    assembly::lay(&grower, graph.into_strands(stop)?, trees, directed.tree_count, stop, progress)
}

/// A terminal with the least distance to the one farthest from it, in hops between terminals: the lowest of those found.
///
/// Every terminal farthest from a guess rules others out; a guess that is as good as what is left is the middle.
/// O([`SWEEPS`] · lanes).
pub(super) fn middle(shape: &Shape) -> u32 {
    let mut neighbours = vec![Vec::new(); shape.node_count as usize];
    for lane in &shape.lanes {
        neighbours[lane.low as usize].push(lane.high);
        neighbours[lane.high as usize].push(lane.low);
    }
    let mut least = vec![0_u32; shape.terminal_count as usize];
    let (mut best, mut best_radius) = (0, u32::MAX);
    for _ in 0..SWEEPS {
        let guess = (0_u32..).zip(&least).min_by_key(|&(_, &least)| least).map_or(0, |(terminal, _)| terminal);
        let (distances, farthest) = distances(&neighbours, shape.terminal_count, guess);
        let radius = distances[farthest as usize];
        if radius < best_radius {
            (best, best_radius) = (guess, radius);
        }
        if radius <= least[guess as usize] {
            break;
        }
        let (from_there, _) = self::distances(&neighbours, shape.terminal_count, farthest);
        for (least, distance) in least.iter_mut().zip(from_there) {
            *least = (*least).max(distance);
        }
    }
    best
}

/// Hops between terminals to each terminal, and one that is farthest.
fn distances(neighbours: &[Vec<u32>], terminal_count: u32, from: u32) -> (Vec<u32>, u32) {
    let mut distances = vec![None; neighbours.len()];
    distances[from as usize] = Some(0_u32);
    let mut queue = std::collections::VecDeque::from([from]);
    let mut is_done = vec![false; neighbours.len()];
    let mut farthest = from;
    while let Some(node) = queue.pop_front() {
        if std::mem::replace(&mut is_done[node as usize], true) {
            continue;
        }
        let here = distances[node as usize].unwrap_or_default();
        if node < terminal_count {
            farthest = node;
        }
        for &other in &neighbours[node as usize] {
            // A switch is on the way, a terminal one hop on.
            let there = here + u32::from(other < terminal_count);
            if distances[other as usize].is_none_or(|known| there < known) {
                distances[other as usize] = Some(there);
                if other < terminal_count { queue.push_back(other) } else { queue.push_front(other) }
            }
        }
    }
    let of_terminals = distances.into_iter().take(terminal_count as usize);
    (of_terminals.map(Option::unwrap_or_default).collect(), farthest)
}
