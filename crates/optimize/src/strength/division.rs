//! Links divided between trees that collect and trees that spread: the step from a strength to trees where links are not
//! alike in both directions.

mod program;
mod rounding;

use num_integer::Integer;

use super::{Picking, Round, fit};
use crate::digraph::{Digraph, MergedGraph};
use crate::error::OptimumError;
use crate::flow::{FlowNetwork, FlowUnit};
use crate::fraction::Fraction;
use crate::stop::{Meter, Stop, Stopped};

/// Terminals above which a network is large: a part of the rate is given up for a plan within seconds.
const LARGE_FROM: usize = 65;

/// The capacity of each link for trees that collect and trees that spread, with their common roots.
///
/// Every set of nodes with a terminal is entered by at least `tree_count` less its roots over what is left for spreading,
/// and left by as much over what is left for collecting; as much of either enters every other node than terminals as
/// leaves it. So as many trees of either kind can be packed, `roots[v]` of them with root v (Bang-Jensen, Frank and
/// Jackson).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// Trees of either kind.
    pub tree_count: u128,
    /// By node: trees of either kind rooted there, none where there is no terminal.
    pub roots: Vec<u128>,
    /// By arc: trees away from their root that may pass.
    pub spread: Vec<u128>,
    /// By arc: trees towards their root that may pass.
    pub collect: Vec<u128>,
}

impl Division {
    /// Rate of all trees together, in units of capacity: where every link has the time that the busiest one needs.
    /// `None` on overflow, or where an arc without capacity carries trees. O(arcs).
    pub fn rate(&self, graph: &Digraph) -> Option<Fraction> {
        let mut rate: Option<Fraction> = None;
        for ((arc, &spread), &collect) in graph.arcs.iter().zip(&self.spread).zip(&self.collect) {
            let trees = spread.checked_add(collect)?;
            if trees > 0 {
                let capacity = u128::from(arc.capacity);
                let most = Fraction::new(self.tree_count.checked_mul(capacity)?, trees).filter(|_| capacity > 0)?;
                rate = Some(rate.map_or(most, |rate| rate.min(most)));
            }
        }
        rate
    }
}

/// Divides the links of a network in which as much enters every node as leaves it so that trees of total weight `rate`
/// fit, up trees and down as many others, over half of each link more or less. `None` where that is not found.
///
/// Take each two nodes as joined by `u = ½·(b_uv + b_vu)` either way, and values `y_v` with `y(X) ≤ ½λ(X) − rate` there
/// and `y(V) = −rate`, as for an [`orientation`](super::orientation()). If a flow φ of at most `½·min(b_uv, b_vu)` has
/// `inflow(v) ≥ y_v`, the trees that spread get `½·b − φ` of each link and those that collect get the rest; then
/// `½·in(S) − inflow(S)` enters a set S over the former and leaves it over the latter, which is at least `rate − x(S)`
/// for the surplus `x = inflow − y`: the roots. Unlike there, such a flow need not exist, and the rate need not be
/// possible: a test, not a method.
///
/// * **Source.** Our own, after the proof for links that are alike both ways.
/// * **In.** `rate` is positive, in units of capacity; [`strength`](super::strength) is the most there can be.
/// * **Out.** Of several arcs between the same nodes the first ones spread and the last ones collect.
/// * **Errors.** [`OptimumError`]: fewer than two terminals are *nothing to move*; more of one than of the other at some
///   node is *unbalanced*; malformed, too large, stopped.
/// * **Cost.** That of one round of [`strength`](super::strength), and one more flow per terminal.
pub fn halved(
    graph: &Digraph,
    terminals: &[bool],
    rate: Fraction,
    stop: &dyn Stop,
) -> Result<Option<Division>, OptimumError> {
    if terminals.len() != graph.node_count as usize {
        return Err(OptimumError::WrongLength { found: terminals.len(), node_count: graph.node_count });
    }
    let mut meter = Meter::new(stop);
    let merged = MergedGraph::new(graph, &mut meter)?;
    let entering = merged.entering_each();
    let leaving = merged.clone().transposed().entering_each();
    if let Some((node, (&entering, &leaving))) =
        (0_u32..).zip(entering.iter().zip(&leaving)).find(|(_, (entering, leaving))| entering != leaving)
    {
        return Err(OptimumError::Unbalanced { node, entering, leaving });
    }
    // In units of half a unit of capacity a pair of nodes is joined by b_uv + b_vu.
    let doubled = merged.clone().undirected();
    let mut order = doubled.breadth_first_order(&mut meter)?;
    order.retain(|&node| terminals[node as usize]);
    if order.len() < 2 {
        return Err(OptimumError::NothingToMove);
    }
    let too_large = || OptimumError::TooLarge { weight: rate.denominator };
    let per_unit = rate.denominator.checked_mul(merged.unit).ok_or_else(too_large)?;
    let twice = rate.numerator.checked_mul(2).and_then(|numerator| Fraction::new(numerator, per_unit));
    let twice = twice.filter(|twice| twice.numerator > 0).ok_or_else(too_large)?;
    let degrees = doubled.entering_each();
    let round = Round { graph: &doubled, degrees: &degrees, order: &order, rate: twice };
    let found = match divide::<i64>(&merged, &round, stop)? {
        Answer::DoesNotFit => divide::<i128>(&merged, &round, stop)?,
        found => found,
    };
    match found {
        Answer::DoesNotFit => Err(too_large()),
        Answer::NotFound => Ok(None),
        Answer::Found(pairs) => by_arcs(graph, &pairs, merged.unit).map(Some).ok_or_else(too_large),
    }
}

/// Divides the links of any network so that trees of close to the greatest total weight fit, up trees and down others.
/// `None` where terminals do not all reach each other, or nothing is found.
///
/// A linear program says how in fractions, with rows for violated sets only (`program`); they are rounded to whole trees,
/// as few as lose nothing where some hundred do, else a thousandth at most where that is found, or half a hundredth of
/// more than 64 terminals (`rounding`), where switches cost some hundredths more. What is returned was tested exactly, and
/// its rate is that of [`Division::rate`]; how close to the optimum it is the program can not prove.
///
/// * **Source.** Zhao 2026, appendix B.7, in a form without a flow for each terminal.
/// * **In.** Any capacities, also where more enters a node than leaves it.
/// * **Errors.** [`OptimumError`]: fewer than two terminals are *nothing to move*; malformed, stopped.
/// * **Cost.** 64 terminals take some hundredths of a second, 256 some tenths up to a second. The program is solved
///   without a look at `stop` until it gets a row: with 512 terminals and 2,000 arcs a second or two.
pub fn divided(graph: &Digraph, terminals: &[bool], stop: &dyn Stop) -> Result<Option<Division>, OptimumError> {
    if terminals.len() != graph.node_count as usize {
        return Err(OptimumError::WrongLength { found: terminals.len(), node_count: graph.node_count });
    }
    MergedGraph::new(graph, &mut Meter::new(stop))?;
    if terminals.iter().filter(|&&is_terminal| is_terminal).count() < 2 {
        return Err(OptimumError::NothingToMove);
    }
    match program::solve(graph, terminals, stop)? {
        Some(fractional) => Ok(rounding::round(graph, terminals, &fractional, stop)?),
        None => Ok(None),
    }
}

/// Whether time counts more than the last part of the rate.
fn is_large(terminals: &[bool]) -> bool {
    terminals.iter().filter(|&&is_terminal| is_terminal).count() >= LARGE_FROM
}

enum Answer {
    DoesNotFit,
    NotFound,
    Found(Pairs),
}

/// A [`Division`] by pairs of nodes.
struct Pairs {
    tree_count: u128,
    roots: Vec<u128>,
    /// Trees that a unit of capacity carries.
    trees_per_unit: u128,
    /// Lower end, higher end, and the trees that spread, from the lower to the higher end and back.
    spread: Vec<(u32, u32, [u128; 2])>,
}

fn divide<C: FlowUnit>(merged: &MergedGraph, round: &Round<'_>, stop: &dyn Stop) -> Result<Answer, Stopped> {
    let Fraction { numerator, denominator } = round.rate;
    let count = round.order.len() as u128;
    let largest = round.degrees.iter().sum::<u128>().checked_mul(8 * denominator);
    let largest = largest.and_then(|sum| sum.checked_add(numerator.checked_mul(4 * count)?));
    let mut meter = Meter::new(stop);
    let network = doubled_network::<C>(round, &mut meter)?;
    let Some(network) = network.filter(|_| largest.and_then(C::try_from_u128).is_some()) else {
        return Ok(Answer::DoesNotFit);
    };
    let mut picking = Picking::new(round, network);
    if !picking.pick_targets(&round.targets(), stop)? {
        picking.raise_to_the_limit(stop)?;
    }
    let inflows: Vec<u128> = picking.inflow_sure.iter().map(|&inflow| inflow.to_u128()).collect();
    let wanted = round.order.iter().map(|&node| inflows[node as usize]).sum::<u128>();
    if wanted < 2 * numerator * (count - 1) {
        return Ok(Answer::NotFound);
    }
    // A link keeps half of its capacity, give or take what can be shifted to the one back: in quarters of `denominator`.
    let mut network = FlowNetwork::<C>::new(round.graph.node_count);
    let mut arcs = Vec::new();
    for (low, high, [up, down]) in merged.pairs() {
        meter.spend(1)?;
        let limit = 2 * denominator * up.min(down);
        arcs.push((network.add_pair(low, high, fit(limit), fit(limit)), limit));
    }
    network.breadth_first_order_until(&mut meter)?;
    let twice_rate = 2 * numerator;
    for &terminal in round.order {
        network.set_supply(terminal, fit(twice_rate.saturating_sub(inflows[terminal as usize])));
    }
    for &terminal in round.order {
        let missing: C = fit(inflows[terminal as usize].saturating_sub(twice_rate));
        if missing > C::ZERO {
            if network.pull(terminal, missing, stop)? < missing {
                return Ok(Answer::NotFound);
            }
            network.commit();
        }
    }
    let mut roots = vec![0; round.graph.node_count as usize];
    for &terminal in round.order {
        roots[terminal as usize] = network.supply(terminal).to_u128();
    }
    let spread = merged.pairs().zip(&arcs).map(|((low, high, [up, down]), &(arc, limit))| {
        let (there, back) = (network.capacity(arc).to_u128(), network.reverse_capacity(arc).to_u128());
        (low, high, [2 * denominator * up - limit + there, 2 * denominator * down - limit + back])
    });
    let spread = spread.collect();
    Ok(Answer::Found(Pairs { tree_count: twice_rate, roots, trees_per_unit: 4 * denominator, spread }))
}

fn doubled_network<C: FlowUnit>(round: &Round<'_>, meter: &mut Meter<'_>) -> Result<Option<FlowNetwork<C>>, Stopped> {
    round.graph.network_without_limits::<C>(round.rate.denominator, meter)
}

/// Gives every arc its part of what its pair of nodes has, in the least numbers that make all parts whole. `None` on
/// overflow.
fn by_arcs(graph: &Digraph, pairs: &Pairs, unit: u128) -> Option<Division> {
    // An arc between the same nodes as another one may have a broken number of trees.
    let mut factor = 1_u128;
    for arc in graph.arcs.iter().filter(|arc| arc.from != arc.to) {
        let trees = pairs.trees_per_unit.checked_mul(arc.capacity.into())?;
        let missing = unit / unit.gcd(&trees);
        factor = factor.checked_mul(missing / missing.gcd(&factor))?;
    }
    let mut left = Vec::with_capacity(pairs.spread.len());
    for (.., spread) in &pairs.spread {
        left.push([spread[0].checked_mul(factor)?, spread[1].checked_mul(factor)?]);
    }
    let mut division = Division {
        tree_count: pairs.tree_count.checked_mul(factor)?,
        roots: pairs.roots.iter().map(|&roots| roots.checked_mul(factor)).collect::<Option<_>>()?,
        spread: Vec::with_capacity(graph.arcs.len()),
        collect: Vec::with_capacity(graph.arcs.len()),
    };
    for arc in &graph.arcs {
        let ends = (arc.from.min(arc.to), arc.from.max(arc.to));
        let pair = pairs.spread.binary_search_by_key(&ends, |&(low, high, _)| (low, high)).ok();
        let room = pairs.trees_per_unit.checked_mul(arc.capacity.into())?.checked_mul(factor)? / unit;
        let spread = pair.map_or(0, |pair| {
            let left = &mut left[pair][usize::from(arc.from > arc.to)];
            let spread = room.min(*left);
            *left -= spread;
            spread
        });
        division.spread.push(spread);
        division.collect.push(if pair.is_some() { room - spread } else { 0 });
    }
    let numbers = division.spread.iter().chain(&division.collect).chain(&division.roots);
    let common = numbers.fold(division.tree_count, |common, number| common.gcd(number)).max(1);
    let all = [&mut division.spread, &mut division.collect, &mut division.roots];
    all.into_iter().flatten().for_each(|number| *number /= common);
    division.tree_count /= common;
    Some(division)
}
