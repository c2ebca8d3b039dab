//! Pieces that differ in nothing but the order of their nodes, put into the same order, so that one solution serves all.
//!
//! Boxes of a network are alike, but unless a generator numbered their nodes, each comes in an order of its own.

use std::collections::{BTreeMap, HashMap, HashSet};

use canopy_canonical::{Arc, Budget, Graph, analyse};
use canopy_optimize::{FlowUnit, Stop};

use super::{Home, Piece, Signature, Terminal};
use crate::error::SynthesisError;

/// Work for one piece, of some nanoseconds each. What takes more has no symmetry that is worth it.
const WORK_MAX: u64 = 1 << 22;

/// Nodes by number, then links by (capacity, latency): what pieces alike have in common, whatever their order.
type Shape = (u32, u32, Vec<u128>, Vec<(u128, u64)>);

/// Numbers the nodes of pieces alike in the order of their canonical forms; leaves those alone that have their like in the
/// same order, or none.
///
/// **Errors.** Stopped. **Cost.** That of a canonical form for each piece that is not equal to all of its shape.
pub(super) fn put_in_order<C: FlowUnit>(
    pieces: &mut [Piece<'_, C>],
    homes: &mut [Home],
    stop: &dyn Stop,
) -> Result<(), SynthesisError> {
    let mut by_shape: HashMap<Shape, Vec<usize>> = HashMap::new();
    for (position, piece) in pieces.iter().enumerate() {
        by_shape.entry(piece.shape()).or_default().push(position);
    }
    let mut groups: Vec<Vec<usize>> = by_shape.into_values().filter(|group| group.len() > 1).collect();
    groups.sort_unstable();
    for group in groups {
        let signatures: HashSet<Signature> = group.iter().map(|&position| pieces[position].signature()).collect();
        if signatures.len() < 2 {
            continue;
        }
        for position in group {
            let Some(places) = places(&pieces[position], stop)? else { continue };
            pieces[position].renumber(&places);
            for (&terminal, number) in pieces[position].terminals.clone().iter().zip(0..) {
                match terminal {
                    Terminal::Rank(rank) => homes[rank as usize] = (position, number),
                    Terminal::Piece(inner) => pieces[inner].around = Some((position, number)),
                }
            }
        }
    }
    Ok(())
}

/// By node: its number in the canonical form, terminals first, z the last of them; `None` if that is not found soon.
fn places<C: FlowUnit>(piece: &Piece<'_, C>, stop: &dyn Stop) -> Result<Option<Vec<u32>>, SynthesisError> {
    let network = &piece.network;
    let kind = |node: u32| match node < network.terminal_count {
        true => (u8::from(network.outside == Some(node)), piece.demands[node as usize].to_u128()),
        false => (2, 0),
    };
    let kinds: Vec<(u8, u128)> = (0..network.node_count).map(kind).collect();
    let weights: Vec<(u128, u64)> = piece.rates().collect();
    let (colour_of, weight_of) = (numbered(&kinds), numbered(&weights));
    let arc =
        |(way, weight): (&super::Way, &(u128, u64))| Arc { from: way.from, to: way.to, weight: [weight_of[weight], 0] };
    let arcs = network.links.iter().zip(&weights).map(arc).collect();
    let Ok(graph) = Graph::new(kinds.iter().map(|kind| colour_of[kind]).collect(), arcs) else { return Ok(None) };
    let budget = Budget { work_max: WORK_MAX, stop: &|| stop.is_requested() };
    let analysis = analyse(&graph, budget).map_err(|_| SynthesisError::Stopped)?;
    Ok(analysis.solution().map(|solution| solution.places.clone()))
}

/// What there is, in ascending order, with numbers.
fn numbered<T: Copy + Ord>(values: &[T]) -> BTreeMap<T, u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.into_iter().zip(0..).collect()
}

impl<C: FlowUnit> Piece<'_, C> {
    /// By link: capacity and latency.
    fn rates(&self) -> impl Iterator<Item = (u128, u64)> {
        self.capacities.iter().zip(&self.network.links).map(|(capacity, way)| (capacity.to_u128(), way.latency_ns))
    }

    fn shape(&self) -> Shape {
        let mut demands: Vec<u128> = self.demands.iter().map(|demand| demand.to_u128()).collect();
        let mut rates: Vec<(u128, u64)> = self.rates().collect();
        demands.sort_unstable();
        rates.sort_unstable();
        (self.network.terminal_count, self.network.node_count, demands, rates)
    }

    /// Node v becomes `places[v]`.
    fn renumber(&mut self, places: &[u32]) {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_unstable_by_key(|&node| places[node]);
        let first_switch = self.network.terminal_count as usize;
        let inner = self.terminals.len();
        self.demands = order.iter().map(|&node| self.demands[node]).collect();
        self.terminals = order[..inner].iter().map(|&node| self.terminals[node]).collect();
        let boxes = order[..first_switch].iter().map(|&node| self.network.boxes[node]).collect();
        self.network.boxes = super::in_order_of_first(boxes);
        self.network.switch_names =
            order[first_switch..].iter().map(|&node| self.network.switch_names[node - first_switch]).collect();
        let place = |node: u32| places[node as usize];
        let mut links: Vec<usize> = (0..self.links.len()).collect();
        links.sort_by_key(|&link| {
            let way = self.network.links[link];
            (place(way.from), place(way.to), self.capacities[link].to_u128(), way.latency_ns)
        });
        let moved = |way: super::Way| super::Way { from: place(way.from), to: place(way.to), ..way };
        self.network.links = links.iter().map(|&link| moved(self.network.links[link])).collect();
        self.capacities = links.iter().map(|&link| self.capacities[link]).collect();
        self.links = links.iter().map(|&link| self.links[link]).collect();
    }
}
