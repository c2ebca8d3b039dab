//! Optima of collectives with a root: one node sends to all, or all send to one.

use crate::digraph::{Digraph, MergedGraph};
use crate::error::OptimumError;
use crate::flow::{FlowNetwork, FlowUnit};
use crate::fraction::Fraction;
use crate::optimum::complement;
use crate::stop::{Meter, Stop, Stopped};

/// Greatest rate at which `root` can send the same data to all terminals: `min F(root, v)` over the terminals `v`, in
/// units of capacity, with the membership of a set S that holds the root, lacks a terminal and has `B⁺(S)` of that rate.
///
/// In an Eulerian graph, and in one where every node is a terminal, trees reach it (Edmonds). Each terminal that can
/// pull the least flow found so far joins the root, since no cut around it is smaller; so flows stay local.
///
/// * **In.** Any directed capacities; `terminals` per node, the root's own entry meaning nothing.
/// * **Errors.** [`OptimumError`]: disconnected, nothing to move (no terminal but the root), malformed, stopped.
/// * **Cost.** One flow per terminal, most of them local.
pub fn broadcast_optimum(
    graph: &Digraph,
    terminals: &[bool],
    root: u32,
    stop: &dyn Stop,
) -> Result<(u128, Vec<bool>), OptimumError> {
    check_shape(graph, terminals.len(), root)?;
    let mut meter = Meter::new(stop);
    let merged = MergedGraph::new(graph, &mut meter)?;
    let mut order = merged.breadth_first_order(&mut meter)?;
    order.retain(|&node| terminals[node as usize] && node != root);
    if order.is_empty() {
        return Err(OptimumError::NothingToMove);
    }
    let (least, entered) = least_cut(&merged, root, &order, stop)?;
    let cut = complement(&entered);
    if least == 0 { Err(OptimumError::Disconnected { cut }) } else { Ok((least * merged.unit, cut)) }
}

/// The least capacity, in units, that enters a set with a node of `order` and without `root`; and that set.
fn least_cut(
    graph: &MergedGraph,
    root: u32,
    order: &[u32],
    stop: &dyn Stop,
) -> Result<(u128, Vec<bool>), OptimumError> {
    let mut meter = Meter::new(stop);
    if let Some(network) = graph.network_without_limits::<i64>(1, &mut meter)? {
        return Ok(least_flow(network, order, root, stop)?);
    }
    match graph.network_without_limits::<i128>(1, &mut meter)? {
        Some(network) => Ok(least_flow(network, order, root, stop)?),
        None => Err(OptimumError::TooLarge { weight: 1 }),
    }
}

/// The least flow from `root` into any node of `order`, with the sink side of its cut.
fn least_flow<C: FlowUnit>(
    mut network: FlowNetwork<C>,
    order: &[u32],
    root: u32,
    stop: &dyn Stop,
) -> Result<(u128, Vec<bool>), Stopped> {
    let mut least = C::MAX;
    let mut entered = Vec::new();
    network.set_supply(root, C::MAX);
    for &terminal in order {
        let flow = network.pull(terminal, least, stop)?;
        if flow < least {
            least = flow;
            entered = network.min_cut_sink_side();
        }
        network.set_supply(terminal, C::MAX);
    }
    Ok((least.to_u128(), entered))
}

/// Best rate at which `root` sends every node its own data, as time per unit of weight: the maximum of `w(V∖S)/B⁺(S)`
/// over the sets S that hold the root, with a set that attains it.
///
/// A flow, not a packing of trees: always reachable, Eulerian or not.
///
/// * **Source.** Max-flow min-cut, with Newton's method on the ratio. **In.** Weights per node, the root's own meaning
///   nothing.
/// * **Out.** Exact fraction in reciprocal units of capacity. **Errors.** [`OptimumError`].
/// * **Cost.** One flow per Newton step, few in practice.
pub fn scatter_optimum(
    graph: &Digraph,
    weights: &[u64],
    root: u32,
    stop: &dyn Stop,
) -> Result<(Fraction, Vec<bool>), OptimumError> {
    check_shape(graph, weights.len(), root)?;
    collect(&MergedGraph::new(graph, &mut Meter::new(stop))?.transposed(), weights, root, stop)
}

/// Best rate at which every node sends its own data to `root`, as time per unit of weight: the maximum of
/// `w(V∖S)/B⁻(S)` over the sets S that hold the root, with a set that attains it.
///
/// [`scatter_optimum`] on the graph with every arc turned around.
///
/// # Errors
/// [`OptimumError`].
pub fn gather_optimum(
    graph: &Digraph,
    weights: &[u64],
    root: u32,
    stop: &dyn Stop,
) -> Result<(Fraction, Vec<bool>), OptimumError> {
    check_shape(graph, weights.len(), root)?;
    collect(&MergedGraph::new(graph, &mut Meter::new(stop))?, weights, root, stop)
}

fn check_shape(graph: &Digraph, found: usize, root: u32) -> Result<(), OptimumError> {
    let node_count = graph.node_count;
    if found != node_count as usize {
        return Err(OptimumError::WrongLength { found, node_count });
    }
    if root >= node_count {
        return Err(OptimumError::NoSuchRoot { root, node_count });
    }
    Ok(())
}

/// Newton's method on `w(V∖S)/in(S)`, from the cut around the root alone.
fn collect(
    graph: &MergedGraph,
    weights: &[u64],
    root: u32,
    stop: &dyn Stop,
) -> Result<(Fraction, Vec<bool>), OptimumError> {
    let mut weights: Vec<u128> = weights.iter().map(|&weight| u128::from(weight)).collect();
    weights[root as usize] = 0;
    let weight_total: u128 = weights.iter().sum();
    if weight_total == 0 {
        return Err(OptimumError::NothingToMove);
    }
    let ratio_of = |set: &[bool]| {
        let inside: u128 = weights.iter().zip(set).filter(|&(_, &inside)| inside).map(|(&weight, _)| weight).sum();
        Fraction::new(weight_total - inside, graph.entering(set))
            .ok_or_else(|| OptimumError::Disconnected { cut: set.to_vec() })
    };
    let mut set: Vec<bool> = (0..graph.node_count).map(|node| node == root).collect();
    let mut ratio = ratio_of(&set)?;
    loop {
        let narrow = shortfall::<i64>(graph, &weights, weight_total, root, ratio, stop)?;
        let wide = || shortfall::<i128>(graph, &weights, weight_total, root, ratio, stop);
        let answer = if narrow == Shortfall::DoesNotFit { wide()? } else { narrow };
        match answer {
            Shortfall::DoesNotFit => return Err(OptimumError::TooLarge { weight: weight_total }),
            Shortfall::None => {
                let inverse_rate = Fraction::new(ratio.numerator, ratio.denominator * graph.unit);
                return Ok((inverse_rate.expect("no factor is zero"), set));
            }
            Shortfall::Around(tighter) => {
                let larger = ratio_of(&tighter)?;
                assert!(larger > ratio, "a violated set has a larger ratio, so the method ends");
                (ratio, set) = (larger, tighter);
            }
        }
    }
}

/// Whether the root can collect everything at an assumed rate.
#[derive(PartialEq, Eq)]
enum Shortfall {
    /// The numbers do not fit the integers tried.
    DoesNotFit,
    /// It can.
    None,
    /// It can not: this set is entered by too little capacity.
    Around(Vec<bool>),
}

fn shortfall<C: FlowUnit>(
    graph: &MergedGraph,
    weights: &[u128],
    weight_total: u128,
    root: u32,
    ratio: Fraction,
    stop: &dyn Stop,
) -> Result<Shortfall, Stopped> {
    let scaled = |weight: u128| weight.checked_mul(ratio.denominator).and_then(C::try_from_u128);
    let network = graph.network::<C>(ratio.numerator, &mut Meter::new(stop))?;
    let (Some(wanted), Some(mut network)) = (scaled(weight_total), network) else {
        return Ok(Shortfall::DoesNotFit);
    };
    for (node, &weight) in (0_u32..).zip(weights) {
        network.set_supply(node, scaled(weight).expect("no weight exceeds their sum"));
    }
    let pulled = network.pull(root, wanted, stop)?;
    Ok(if pulled < wanted { Shortfall::Around(network.min_cut_sink_side()) } else { Shortfall::None })
}
