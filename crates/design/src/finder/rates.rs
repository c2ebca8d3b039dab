//! Rates of all-to-alls by linear programs: the optimum of concurrent flows, or a limit that lengths of links prove.

use std::collections::BTreeMap;

use canopy_direct::{Construction, Digraph, Family, Limit, RateError, line};
use canopy_optimize::{
    Arc, Chunking, Commodity, ConcurrentError, ConcurrentOptimum, ConcurrentProblem, Fraction, SolverOptions, Stop,
    Stopped, concurrent_optimum, length_bound,
};

use crate::finder::known::{AllToAll, RateProof};

/// Graphs are built to be measured, never larger than what is looked for.
const LIMIT: Limit = Limit { order_max: 1 << 14, edges_max: 1 << 18 };

/// Arcs times sources up to which a linear program is solved to the end, and up to which iterations come near.
const SOLVED_MAX: u64 = 40_000;
const ITERATED_MAX: u64 = 1 << 18;
/// The same where lengths of a smaller graph come near already.
const COMPOSED_MAX: u64 = 1 << 17;
/// Nodes times links of graphs on which lengths are added up.
const ADDED_UP_MAX: u64 = 1 << 23;

/// Part of the rate that may be lacking where iterations end.
const TOLERANCE: f64 = 1e-6;
/// Arcs times sources times iterations for one graph, and for all graphs of a query: some seconds.
const ITERATIONS_WORK: u64 = 150_000_000;
const WORK_MAX: u64 = 1 << 30;
/// Work of a program that is solved to the end, and of adding up lengths, for each variable.
const SOLVED_WORK: u64 = 1_000;
const ADDED_UP_WORK: u64 = 16;
/// Most chunks in which a flow is tried to reach the limit.
const CHUNKS_MAX: u64 = 256;

/// Rates that are computed for one query, within its work.
pub(crate) struct Rates<'a> {
    stop: &'a dyn Stop,
    work_left: u64,
}

/// Lengths of the links of a graph, and what they prove.
struct Measured {
    graph: Digraph,
    /// By edge; 0 for loops.
    lengths: Vec<u64>,
    /// No all-to-all has a greater rate.
    limit: Fraction,
    /// Whether a flow in whole chunks has this rate.
    is_reached: bool,
}

impl<'a> Rates<'a> {
    pub(crate) fn new(stop: &'a dyn Stop) -> Self {
        Self { stop, work_left: WORK_MAX }
    }

    /// The rate of a network, at least as well known as before: exact, or a lower limit; unchanged once the work is spent.
    ///
    /// Small networks by their linear program. For a line graph, each link gets the length of the link of the inner graph that
    /// it leaves: a route over links e, f, …, z of the inner graph is as long as e, f, … there together, so good lengths for the
    /// inner graph are good lengths for it. Products by their factors.
    ///
    /// * **Source.** The program: Basu 2024, equations (6)–(9). Lengths of line graphs are our own; with lengths of 1 they give the
    ///   limit by distances.
    /// * **Errors.** Stopped. **Cost.** Up to some seconds for all calls together, counted in work and not in time.
    pub(crate) fn refined(&mut self, construction: &Construction, known: AllToAll) -> Result<AllToAll, Stopped> {
        if known.proof.is_exact() {
            return Ok(known);
        }
        let found = match factors(construction) {
            Some(factors) => self.of_factors(&factors)?,
            None => self.measured(construction)?.map(|measured| measured.rate()),
        };
        let is_better =
            |found: &AllToAll| found.rate < known.rate || found.rate == known.rate && found.proof.is_exact();
        Ok(found.filter(is_better).unwrap_or(known))
    }

    /// The least of the factors' rates, each for its part of the nodes.
    fn of_factors(&mut self, factors: &[(&Construction, u32)]) -> Result<Option<AllToAll>, Stopped> {
        let (mut order, mut least, mut is_exact) = (1_u128, None, true);
        for &(factor, copies) in factors {
            let Some((own, rate)) = self.of_factor(factor)? else { return Ok(None) };
            let Some(part) = Fraction::new(own, 1).and_then(|own| own.checked_mul(rate.rate)) else { return Ok(None) };
            let Some(product) = own.checked_pow(copies).and_then(|own| own.checked_mul(order)) else { return Ok(None) };
            order = product;
            least = Some(least.map_or(part, |least: Fraction| least.min(part)));
            is_exact &= rate.proof.is_exact();
        }
        let rate = least.zip(Fraction::new(1, order)).and_then(|(least, part)| least.checked_mul(part));
        let proof = if is_exact { RateProof::Factors } else { RateProof::Bound };
        Ok(rate.map(|rate| AllToAll { rate, proof }))
    }

    /// Nodes of a factor and its rate.
    fn of_factor(&mut self, factor: &Construction) -> Result<Option<(u128, AllToAll)>, Stopped> {
        let Ok(graph) = factor.graph(LIMIT) else { return Ok(None) };
        let simple = match factor.all_to_all_rate(LIMIT, self.stop) {
            Ok(simple) => simple,
            Err(RateError::Stopped(stopped)) => return Err(stopped),
            Err(_) => return Ok(None),
        };
        let proof = if simple.is_reached { RateProof::LoadedAlike } else { RateProof::Bound };
        let rate = self.refined(factor, AllToAll { rate: simple.rate, proof })?;
        Ok(Some((graph.order().into(), rate)))
    }

    /// Lengths for a network; `None` if it is too large, or the work is spent.
    fn measured(&mut self, construction: &Construction) -> Result<Option<Measured>, Stopped> {
        let Some(graph) = construction.graph(LIMIT).ok().filter(|graph| graph.order() > 1) else { return Ok(None) };
        let symmetry = Symmetry::of(construction, &graph);
        let variables = symmetry.sources.len() as u64 * u64::from(graph.edge_count());
        if variables <= SOLVED_MAX {
            return if self.spend(variables * SOLVED_WORK) { self.solved(graph, &symmetry) } else { Ok(None) };
        }
        let size = u64::from(graph.order()) * u64::from(graph.edge_count());
        let composed = match (inner_of(construction), factors(construction).as_deref()) {
            _ if size > ADDED_UP_MAX => None,
            (Some(inner), _) => self.measured(&inner)?.and_then(of_line),
            (None, Some(&[(factor, _)])) => self.measured(factor)?.map(|inner| of_power(&inner, &graph)),
            (None, _) => None,
        };
        let composed = match composed {
            Some((graph, lengths)) if self.spend(size * ADDED_UP_WORK) => self.added_up(graph, lengths)?,
            _ => None,
        };
        let iterated_max = if composed.is_some() { COMPOSED_MAX } else { ITERATED_MAX };
        let is_iterated = variables <= iterated_max && self.spend(ITERATIONS_WORK);
        let iterated = if is_iterated { self.solved(graph, &symmetry)? } else { None };
        Ok(composed.into_iter().chain(iterated).min_by_key(|measured| measured.limit))
    }

    /// Takes work off the budget; false if less is left.
    fn spend(&mut self, work: u64) -> bool {
        let left = self.work_left.checked_sub(work);
        self.work_left = left.unwrap_or(self.work_left);
        left.is_some()
    }

    /// The limit that these lengths prove.
    fn added_up(&self, graph: Digraph, lengths: Vec<u64>) -> Result<Option<Measured>, Stopped> {
        let arcs = arcs_of(&graph);
        let all = Symmetry::none(&graph).commodities(graph.order());
        let limit =
            ConcurrentProblem::new(&arcs, &all, &[]).and_then(|problem| length_bound(&problem, &lengths, self.stop));
        let limit = answered(limit)?.flatten();
        Ok(limit.map(|limit| Measured { graph, lengths, limit, is_reached: false }))
    }

    /// Solves the linear program, and tries to reach its limit in whole chunks where it is solved to the end.
    fn solved(&self, graph: Digraph, symmetry: &Symmetry) -> Result<Option<Measured>, Stopped> {
        let arcs = arcs_of(&graph);
        let all = symmetry.commodities(graph.order());
        let solve = || -> Result<Option<(ConcurrentOptimum, Fraction, bool)>, ConcurrentError> {
            let problem = ConcurrentProblem::new(&arcs, &all, &symmetry.orbits)?;
            let options = SolverOptions { tolerance: TOLERANCE, work_max: ITERATIONS_WORK };
            let optimum = concurrent_optimum(&problem, &options, self.stop)?;
            let Some(limit) = length_bound(&problem, &optimum.lengths, self.stop)? else { return Ok(None) };
            let chunking = Chunking { problem: &problem, optimum: &optimum, limit, tolerance: TOLERANCE };
            let whole = match problem.variables() <= SOLVED_MAX {
                true => chunking.reaching(CHUNKS_MAX, self.stop)?,
                false => None,
            };
            let is_reached = whole.is_some_and(|whole| whole.rate() == Some(limit));
            Ok(Some((optimum, limit, is_reached)))
        };
        let found = answered(solve())?.flatten();
        Ok(found.map(|(optimum, limit, is_reached)| Measured { graph, lengths: optimum.lengths, limit, is_reached }))
    }
}

impl Measured {
    fn rate(&self) -> AllToAll {
        AllToAll { rate: self.limit, proof: if self.is_reached { RateProof::Flow } else { RateProof::Bound } }
    }
}

/// The line graph, and the length of the inner link that each of its links leaves. `None` if it is too large.
fn of_line(inner: Measured) -> Option<(Digraph, Vec<u64>)> {
    let graph = line(&inner.graph, LIMIT).ok()?;
    let length = |(tail, head): (u32, u32)| if tail == head { 0 } else { inner.lengths[tail as usize] };
    let lengths = graph.edges().map(length).collect();
    Some((graph, lengths))
}

/// The lengths of its factor's links, in each dimension.
fn of_power(inner: &Measured, graph: &Digraph) -> (Digraph, Vec<u64>) {
    let by_ends: BTreeMap<(u32, u32), u64> = inner.graph.edges().zip(inner.lengths.iter().copied()).collect();
    let order = inner.graph.order();
    let length = |(mut tail, mut head): (u32, u32)| {
        // The ends of a link differ in one digit.
        while tail != head && tail % order == head % order {
            (tail, head) = (tail / order, head / order);
        }
        by_ends.get(&(tail % order, head % order)).copied().unwrap_or_default()
    };
    let lengths = graph.edges().map(length).collect();
    (graph.clone(), lengths)
}

/// `None` for what a solver cannot do: then what is known stays.
fn answered<T>(result: Result<T, ConcurrentError>) -> Result<Option<T>, Stopped> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(ConcurrentError::Stopped) => Err(Stopped),
        Err(_) => Ok(None),
    }
}

/// The graph whose line graph this is, up to the names of nodes.
///
/// Generalized Kautz graphs of d·n nodes are line graphs of those of n nodes: node x of `x → −d·x − a` has the links that
/// `−d·x − a`, modulo d·n, numbers (Imase and Itoh 1983).
fn inner_of(construction: &Construction) -> Option<Construction> {
    match construction {
        Construction::Line { n: 0 | 1, inner } => Some((**inner).clone()),
        Construction::Line { n, inner } => Some((**inner).clone().line(n - 1)),
        Construction::Base(Family::GenKautz { n, d }) if n.is_multiple_of(*d) && n / d > *d => {
            Some(Construction::Base(Family::GenKautz { n: n / d, d: *d }))
        }
        Construction::Base(Family::Kautz { d, n }) if *n > 1 => {
            Some(Construction::Base(Family::Kautz { d: *d, n: n - 1 }))
        }
        _ => None,
    }
}

/// Factors of a product, each with the number of its copies.
fn factors(construction: &Construction) -> Option<Vec<(&Construction, u32)>> {
    match construction {
        Construction::Power { n, inner } if *n >= 1 => Some(vec![(inner, *n)]),
        Construction::Product(factors) if !factors.is_empty() => {
            Some(factors.iter().map(|factor| (factor, 1)).collect())
        }
        _ => None,
    }
}

fn arcs_of(graph: &Digraph) -> canopy_optimize::Digraph {
    let arc = |(from, to)| Arc { from, to, capacity: u64::from(from != to) };
    canopy_optimize::Digraph { node_count: graph.order(), arcs: graph.edges().map(arc).collect() }
}

/// Nodes that stand for all, and edges that symmetries exchange.
struct Symmetry {
    /// Nodes, each with the number of nodes like it.
    sources: Vec<(u32, u64)>,
    /// By edge, its orbit; empty where each edge is alone.
    orbits: Vec<u32>,
}

impl Symmetry {
    /// Symmetries that lead from any node to any other, or exchange copies of a node in a degree expansion.
    fn of(construction: &Construction, graph: &Digraph) -> Self {
        let order = graph.order();
        match *construction {
            _ if looks_alike(graph) => {
                let slots = |node: u32| 0..u32::try_from(graph.out(node).len()).expect("fewer than 2³² edges");
                Self { sources: vec![(0, order.into())], orbits: (0..order).flat_map(slots).collect() }
            }
            Construction::Degree { n, .. } if n > 0 => {
                // From a copy to itself is no link; to another copy of the same node it is one.
                let key = |(tail, head): (u32, u32)| (tail / n, if tail == head { order } else { head / n });
                let sources = (0..order / n).map(|node| (node * n, n.into())).collect();
                Self { sources, orbits: numbered(graph.edges().map(key)) }
            }
            _ => Self::none(graph),
        }
    }

    fn none(graph: &Digraph) -> Self {
        Self { sources: (0..graph.order()).map(|node| (node, 1)).collect(), orbits: Vec::new() }
    }

    /// One unit from each source to each other node.
    fn commodities(&self, order: u32) -> Vec<Commodity> {
        let others = |source: u32| (0..order).filter(|&node| node != source).map(|node| (node, 1)).collect();
        self.sources.iter().map(|&(source, copies)| Commodity { source, sinks: others(source), copies }).collect()
    }
}

/// Whether a symmetry that keeps the position of each edge at its tail leads from node 0 to any other, as in circulants and tori.
///
/// It is enough that one leads to each node next to it. Where node 0 goes decides where all others go, as all are reached from
/// it. O(edges · degree).
fn looks_alike(graph: &Digraph) -> bool {
    let degree = graph.out(0).len();
    let moves_to = |image: u32| {
        let mut to = vec![u32::MAX; graph.order() as usize];
        to[0] = image;
        let mut reached = vec![0];
        while let Some(node) = reached.pop() {
            let (own, moved) = (graph.out(node), graph.out(to[node as usize]));
            for (&head, &image) in own.iter().zip(moved) {
                match &mut to[head as usize] {
                    unknown if *unknown == u32::MAX => {
                        *unknown = image;
                        reached.push(head);
                    }
                    known if *known == image => {}
                    _ => return false,
                }
            }
        }
        to.iter().all(|&image| image != u32::MAX)
    };
    (0..graph.order()).all(|node| graph.out(node).len() == degree) && graph.out(0).iter().all(|&head| moves_to(head))
}

/// A number for each different key, by first appearance.
fn numbered(keys: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut numbers = BTreeMap::new();
    keys.map(|key| {
        let next = u32::try_from(numbers.len()).expect("fewer than 2³² edges");
        *numbers.entry(key).or_insert(next)
    })
    .collect()
}

#[cfg(test)]
mod tests;
