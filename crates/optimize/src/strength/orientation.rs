//! Links given directions so that spanning trees of one root fit: the step from the strength of a network to trees.

use num_integer::Integer;

use super::{Picking, Round, fit};
use crate::digraph::{Digraph, MergedGraph};
use crate::error::OptimumError;
use crate::flow::{ArcId, FlowNetwork, FlowUnit};
use crate::fraction::Fraction;
use crate::stop::{Meter, Stop};

/// Directions found by [`orientation`], in whole trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orientation {
    /// Trees that can be packed, all of them with the root that was asked for.
    pub tree_count: u128,
    /// How its capacity is divided between the two directions of each link: in trees, all links between two nodes
    /// together, by their ends.
    pub pairs: Vec<OrientedPair>,
}

/// The links between two nodes, `low < high`, in an [`Orientation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrientedPair {
    /// One end.
    pub low: u32,
    /// The other one.
    pub high: u32,
    /// Trees that may pass from `low` to `high`.
    pub up: u128,
    /// Trees that may pass from `high` to `low`.
    pub down: u128,
}

/// Divides the capacity of each link between its two directions so that out-trees of total weight `rate` from `root` to
/// all terminals fit: every set of nodes with a terminal and without the root is entered by at least `rate`, and as much
/// enters every other node than terminals as leaves it. `None` if `rate` is more than the [`strength`](super::strength).
///
/// Values `y_v` are picked as there, by a flow φ of at most half of each link's capacity with `inflow(v) ≥ y_v`; where
/// `y(X) ≤ ½λ(X) − rate` for all sets and `y(V) = −rate`, a link that keeps `b/2 − φ` lets `½d(S) − inflow(S)` into a set
/// S, which is at least `rate − x(S)` for the surplus `x = inflow − y`. So trees fit with weight `x_v` at v; and a
/// further flow, in what is left, brings all surplus to the root.
///
/// * **Source.** Our own, from the proof that the strength of a network with nodes that are no terminals can be reached:
///   Gale 1957 for the flow, Bang-Jensen, Frank and Jackson 1995 for the trees. Flows are even where a link counts even
///   and odd where it counts odd, so trees come whole; only where an odd number of odd links meet at a node that is no
///   terminal, they come in halves, and everything is doubled.
/// * **In.** Each arc is a link that can be passed either way with its capacity, or shared between both; parallel and
///   opposite arcs add up. `root` is a terminal, `rate` is positive.
/// * **Out.** The least whole number of trees that makes all capacities whole.
/// * **Errors.** [`OptimumError`]: fewer than two terminals are *nothing to move*; a root that is no terminal;
///   malformed, too large, stopped.
/// * **Cost.** That of one round of [`strength`](super::strength), and one more flow.
pub fn orientation(
    graph: &Digraph,
    terminals: &[bool],
    rate: Fraction,
    root: u32,
    stop: &dyn Stop,
) -> Result<Option<Orientation>, OptimumError> {
    if terminals.len() != graph.node_count as usize {
        return Err(OptimumError::WrongLength { found: terminals.len(), node_count: graph.node_count });
    }
    if terminals.get(root as usize) != Some(&true) {
        return Err(OptimumError::NoSuchRoot { root, node_count: graph.node_count });
    }
    let mut meter = Meter::new(stop);
    let links = MergedGraph::new(graph, &mut meter)?.undirected();
    let mut order = links.breadth_first_order(&mut meter)?;
    order.retain(|&node| terminals[node as usize]);
    if order.len() < 2 {
        return Err(OptimumError::NothingToMove);
    }
    let too_large = || OptimumError::TooLarge { weight: rate.denominator };
    let scaled = rate.denominator.checked_mul(links.unit).and_then(|unit| Fraction::new(rate.numerator, unit));
    let mut rate = scaled.filter(|rate| rate.numerator > 0).ok_or_else(too_large)?;
    let Some(parities) = Parities::of(&links, rate.denominator, terminals) else { return Err(too_large()) };
    let ups = parities.ups();
    if ups.is_none() {
        let double = |part: u128| part.checked_mul(2).ok_or_else(too_large);
        rate = Fraction { numerator: double(rate.numerator)?, denominator: double(rate.denominator)? };
    }
    let degrees = links.entering_each();
    let round = Round { graph: &links, degrees: &degrees, order: &order, rate };
    match orient::<i64>(&round, &ups.unwrap_or_default(), root, stop)? {
        Some(answer) => Ok(answer),
        None => match orient::<i128>(&round, &parities.ups().unwrap_or_default(), root, stop)? {
            Some(answer) => Ok(answer),
            None => Err(too_large()),
        },
    }
}

/// `None` where numbers do not fit `C`; for `ups` see [`Parities::ups`].
fn orient<C: FlowUnit>(
    round: &Round<'_>,
    ups: &[i8],
    root: u32,
    stop: &dyn Stop,
) -> Result<Option<Option<Orientation>>, OptimumError> {
    let Fraction { numerator, denominator } = round.rate;
    let count = round.order.len() as u128;
    let twice_all = numerator.checked_mul(2 * count);
    let largest = round.degrees.iter().sum::<u128>().checked_mul(8 * denominator);
    let largest = largest.and_then(|sum| sum.checked_add(twice_all?)).and_then(|sum| sum.checked_mul(2));
    if largest.and_then(C::try_from_u128).is_none() {
        return Ok(None);
    }
    // In units of half a tree, a link may keep up to all of its capacity in one direction.
    let mut network = FlowNetwork::<C>::new(round.graph.node_count);
    let mut arcs: Vec<(u32, u32, ArcId)> = Vec::new();
    let mut meter = Meter::new(stop);
    for (position, (low, high, capacity)) in round.graph.links().enumerate() {
        meter.spend(1)?;
        let half: C = fit(capacity * denominator);
        let one: C = fit(1);
        let (up, down) = match ups.get(position) {
            Some(1) => (half + one, half - one),
            Some(-1) => (half - one, half + one),
            _ => (half, half),
        };
        arcs.push((low, high, network.add_pair(low, high, up, down)));
    }
    network.breadth_first_order_until(&mut meter)?;
    let mut picking = Picking::new(round, network);
    let Some(targets) = targets(round) else { return Ok(Some(None)) };
    if !picking.pick_targets(&targets, stop)? {
        picking.raise_to_the_limit(stop)?;
    }
    // Some may be negative where the rate is too much.
    let sure = round.order.iter().fold(C::ZERO, |sum, &node| sum + picking.inflow_sure[node as usize]);
    let wanted: C = fit(2 * numerator * (count - 1));
    assert!(sure <= wanted, "no more can be asked of all terminals than they can give each other");
    if sure < wanted {
        return Ok(Some(None));
    }
    let mut network = picking.network;
    let surplus: C = fit(2 * numerator);
    let pulled = network.pull(root, surplus, stop)?;
    assert!(pulled == surplus, "every set without the root lets the trees of all roots outside enter");
    network.commit();
    let pair = |&(low, high, arc): &(u32, u32, ArcId)| OrientedPair {
        low,
        high,
        up: network.capacity(arc).to_u128() / 2,
        down: network.reverse_capacity(arc).to_u128() / 2,
    };
    let pairs: Vec<OrientedPair> = arcs.iter().map(pair).collect();
    let common = pairs.iter().fold(numerator, |common, pair| common.gcd(&pair.up).gcd(&pair.down));
    let parts = |pair: OrientedPair| OrientedPair { up: pair.up / common, down: pair.down / common, ..pair };
    let pairs = pairs.into_iter().map(parts).collect();
    Ok(Some(Some(Orientation { tree_count: numerator / common, pairs })))
}

/// As [`Round::targets`], each of the parity of the terminal's degree; `None` if the degrees are too small.
fn targets(round: &Round<'_>) -> Option<Vec<u128>> {
    let Fraction { numerator, denominator } = round.rate;
    let limits: Vec<u128> = round.order.iter().map(|&node| round.degrees[node as usize] * denominator).collect();
    let mut by_limit: Vec<usize> = (0..limits.len()).collect();
    by_limit.sort_by_key(|&position| limits[position]);
    let odd: u128 = limits.iter().map(|limit| limit % 2).sum();
    let mut targets = vec![0; limits.len()];
    // There are fewer odd ones than trees to be spread over two terminals or more; and as many, up to a multiple of two.
    let mut left = (2 * numerator * (limits.len() as u128 - 1)).checked_sub(odd)? / 2;
    for (done, &position) in by_limit.iter().enumerate() {
        let pairs = left.div_ceil((limits.len() - done) as u128).min(limits[position] / 2);
        targets[position] = 2 * pairs + limits[position] % 2;
        left -= pairs;
    }
    (left == 0).then_some(targets)
}

/// Links of odd capacity, as they meet at nodes that are no terminals.
struct Parities<'a> {
    links: Vec<(u32, u32)>,
    is_odd: Vec<bool>,
    /// By node: odd links there.
    odd_at: Vec<Vec<usize>>,
    terminals: &'a [bool],
}

impl<'a> Parities<'a> {
    /// `None` on overflow. O(links).
    fn of(graph: &MergedGraph, factor: u128, terminals: &'a [bool]) -> Option<Self> {
        let (mut links, mut is_odd, mut odd_at) = (Vec::new(), Vec::new(), vec![Vec::new(); terminals.len()]);
        for (position, (low, high, capacity)) in graph.links().enumerate() {
            let odd = capacity.checked_mul(factor)? % 2 == 1;
            if odd {
                odd_at[low as usize].push(position);
                odd_at[high as usize].push(position);
            }
            links.push((low, high));
            is_odd.push(odd);
        }
        Some(Self { links, is_odd, odd_at, terminals })
    }

    /// A direction for each odd link, 1 from the lower end to the higher one and −1 back, such that as many enter as
    /// leave every node that is no terminal; 0 for the others. `None` if an odd number meets at one.
    ///
    /// Trails from terminal to terminal, then closed ones, each link once: O(links).
    fn ups(&self) -> Option<Vec<i8>> {
        let is_even = |(node, odd): (usize, &Vec<usize>)| self.terminals[node] || odd.len().is_multiple_of(2);
        if !self.odd_at.iter().enumerate().all(is_even) {
            return None;
        }
        let mut ups = vec![0_i8; self.links.len()];
        let mut next = vec![0_usize; self.odd_at.len()];
        for only_terminals in [true, false] {
            for start in (0..self.odd_at.len()).filter(|&node| !only_terminals || self.terminals[node]) {
                while let Some(mut node) = self.step(start, &mut next, &mut ups) {
                    while !self.terminals[node] {
                        let Some(other) = self.step(node, &mut next, &mut ups) else { break };
                        node = other;
                    }
                }
            }
        }
        Some(ups)
    }

    /// Passes one more odd link from here, if there is one left; returns where it leads.
    fn step(&self, node: usize, next: &mut [usize], ups: &mut [i8]) -> Option<usize> {
        loop {
            let &link = self.odd_at[node].get(next[node])?;
            next[node] += 1;
            if self.is_odd[link] && ups[link] == 0 {
                let (low, high) = self.links[link];
                let is_up = low as usize == node;
                ups[link] = if is_up { 1 } else { -1 };
                return Some(if is_up { high } else { low } as usize);
            }
        }
    }
}
