//! Trees of a network with translations: those of rank 0, moved to every other.
//!
//! All translations of a tree load an arc as often as the tree has arcs of its orbit. So only the trees of one root
//! have to be found, such that no orbit is used more than its arcs can carry. Every rank may choose its parent among
//! the neighbours nearer to the root, whatever the others choose: a transport problem of ranks and orbits.

use std::collections::{BTreeSet, HashMap};

use canopy_optimize::{FlowNetwork, FlowUnit, Stop};

use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::condition::EdgeIndex;
use crate::forest::trees::{Grower, PackedTree, Remainder};
use crate::symmetry::{Translations, translations};

/// Different trees per root, at most.
const TREES_MAX: usize = 64;

/// Trees for equal demands, as shallow as any: no rank is deeper in one than its distance from the root. `None` if the
/// network has no translations, or its shortest paths do not load it evenly enough.
///
/// * **In.** `boxes`: of each rank, where known. **Source.** Our own. **Errors.** Stopped.
/// * **Cost.** That of [`translations`], a flow of `ranks · degree` arcs, and what the result takes.
pub(super) fn translated_trees<C: FlowUnit>(
    grower: &Grower<C>,
    left: &Remainder<C>,
    boxes: &[Option<u32>],
    stop: &dyn Stop,
) -> Result<Option<Vec<PackedTree<C>>>, SynthesisError> {
    let Some((&demand, others)) = left.demands.split_first() else { return Ok(None) };
    if demand == C::ZERO || others.iter().any(|&other| other != demand) {
        return Ok(None);
    }
    let arcs = left.capacities.iter().enumerate().map(|(edge, capacity)| {
        let (from, to) = grower.ends(edge);
        (from, to, capacity.to_u128())
    });
    let Some(translations) = translations(grower.rank_count(), arcs, boxes, stop)? else { return Ok(None) };
    let orbits = Orbits::new(grower, left, &translations, stop)?;
    let Some(trees) = orbits.trees_of_first_rank(demand, stop)? else { return Ok(None) };
    let mut packed = Vec::with_capacity(trees.len() * translations.image.len());
    for (root, image) in (0_u32..).zip(&translations.image) {
        for (weight, arcs) in &trees {
            ask(stop)?;
            let edges = arcs.iter().map(|&(from, _, orbit)| orbits.edges[image[from as usize] as usize][orbit]);
            packed.push(PackedTree { root, weight: *weight, edges: edges.collect() });
        }
    }
    Ok(Some(packed))
}

/// Equal trees: how many, and their arcs with the orbits of these, nearest to the root first.
type OrbitTree<C> = (C, Vec<(u32, u32, usize)>);

/// The edges that leave each rank, by orbit: that of the edge of rank 0 that a translation moves onto them.
struct Orbits<C> {
    /// By orbit.
    capacities: Vec<C>,
    /// By rank and orbit: the edge and its head.
    edges: Vec<Vec<EdgeIndex>>,
    heads: Vec<Vec<u32>>,
}

impl<C: FlowUnit> Orbits<C> {
    fn new(
        grower: &Grower<C>,
        left: &Remainder<C>,
        translations: &Translations,
        stop: &dyn Stop,
    ) -> Result<Self, SynthesisError> {
        let leaving = |rank: u32| {
            let edges = grower.leaving(rank).iter().copied().filter(|&edge| left.capacities[edge] > C::ZERO);
            edges.map(|edge| (grower.ends(edge).1, edge))
        };
        let first: Vec<(u32, EdgeIndex)> = leaving(0).collect();
        let (mut edges, mut heads) = (Vec::new(), Vec::new());
        for (rank, image) in (0_u32..).zip(&translations.image) {
            ask(stop)?;
            let here: Vec<u32> = first.iter().map(|&(to, _)| image[to as usize]).collect();
            let by_head: HashMap<u32, EdgeIndex> = leaving(rank).collect();
            let moved: Option<Vec<EdgeIndex>> = here.iter().map(|head| by_head.get(head).copied()).collect();
            edges.push(moved.ok_or_else(|| SynthesisError::Broken { what: "a translation loses a link".to_owned() })?);
            heads.push(here);
        }
        Ok(Self { capacities: first.iter().map(|&(_, edge)| left.capacities[edge]).collect(), edges, heads })
    }

    /// Trees of rank 0 for this demand whose translations fit the capacities together.
    fn trees_of_first_rank(&self, demand: C, stop: &dyn Stop) -> Result<Option<Vec<OrbitTree<C>>>, SynthesisError> {
        let rank_count = self.heads.len();
        let (order, arcs) = self.arcs_outwards();
        // Ranks, then orbits, then a sink.
        let node = |position: usize| u32::try_from(position).expect("ranks and degrees are counted in u32");
        let (first_orbit, sink) = (rank_count, node(rank_count + self.capacities.len()));
        let mut network = FlowNetwork::new(sink + 1);
        let mut total = C::ZERO;
        let choices: Vec<_> =
            arcs.iter().map(|&(_, to, orbit)| network.add_arc(to, node(first_orbit + orbit), demand)).collect();
        for (orbit, &capacity) in self.capacities.iter().enumerate() {
            network.add_arc(node(first_orbit + orbit), sink, capacity);
        }
        for &rank in &order[1..] {
            network.set_supply(rank, demand);
            total += demand;
        }
        if order.len() < rank_count || network.pull(sink, total, stop)? < total {
            return Ok(None);
        }
        // Each rank lays its parents side by side; between two borders the choice of every rank is one tree.
        let mut spans: Vec<Vec<(C, usize)>> = vec![Vec::new(); rank_count];
        let mut borders = BTreeSet::new();
        for (position, (&(_, to, _), &choice)) in arcs.iter().zip(&choices).enumerate() {
            let span = &mut spans[to as usize];
            let start = span.last().map_or(C::ZERO, |&(end, _)| end);
            if network.flow(choice) > C::ZERO {
                span.push((start + network.flow(choice), position));
                borders.insert(start + network.flow(choice));
            }
        }
        if borders.len() > TREES_MAX {
            return Ok(None);
        }
        let mut start = C::ZERO;
        let mut trees = Vec::new();
        for end in borders {
            let parent = |&rank: &u32| spans[rank as usize].iter().find(|span| span.0 >= end).map(|span| arcs[span.1]);
            trees.push((end - start, order[1..].iter().filter_map(parent).collect()));
            start = end;
        }
        Ok(Some(trees))
    }

    /// Ranks by distance from rank 0, and all arcs that lead one hop further, with their orbits.
    fn arcs_outwards(&self) -> (Vec<u32>, Vec<(u32, u32, usize)>) {
        let mut distances = vec![None; self.heads.len()];
        distances[0] = Some(0_u32);
        let mut order = vec![0_u32];
        let mut arcs = Vec::new();
        let mut next = 0;
        while let Some(&rank) = order.get(next) {
            next += 1;
            let further = distances[rank as usize].map(|distance| distance + 1);
            for (orbit, &head) in self.heads[rank as usize].iter().enumerate() {
                if distances[head as usize].is_none() {
                    distances[head as usize] = further;
                    order.push(head);
                }
                if distances[head as usize] == further {
                    arcs.push((rank, head, orbit));
                }
            }
        }
        (order, arcs)
    }
}
