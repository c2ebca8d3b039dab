//! A network with its construction, and Pareto sets of networks.

use std::cmp::{Ordering, Reverse};
use std::sync::OnceLock;

use canopy_direct::{Construction, Digraph, Family, GraphError, Limit, facts};
use canopy_optimize::Stop;

use crate::finder::histogram::Histogram;
use crate::finder::known::{AllToAll, Known};

/// A found network.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its construction, printed as the expression that generates it.
    pub construction: Construction,
    /// Its properties and costs.
    pub known: Known,
    /// Distances from the heads of links back to their tails, when somebody asked.
    returns: OnceLock<Histogram>,
}

/// Graphs are built to count distances in, never larger than what is looked for.
const LIMIT: Limit = Limit { order_max: 1 << 16, edges_max: 1 << 22 };

impl Candidate {
    /// A network of which all is known but how links lead back.
    pub(crate) fn new(construction: Construction, known: Known) -> Self {
        Self { construction, known, returns: OnceLock::new() }
    }

    /// A network of which that is known too.
    pub(crate) fn with_returns(construction: Construction, known: Known, returns: Histogram) -> Self {
        Self { construction, known, returns: returns.into() }
    }

    /// The same network by another expression.
    pub(crate) fn made_by(&self, construction: Construction) -> Self {
        Self { construction, ..self.clone() }
    }

    /// Distances from the heads of links back to their tails. Counted on the graph the first time: O(links) for each node
    /// that the construction does not show to be like another. `None` when stopped, or if the graph is too large.
    pub(crate) fn returns(&self, stop: &dyn Stop) -> Option<&Histogram> {
        if let Some(known) = self.returns.get() {
            return Some(known);
        }
        let counted = counted_returns(&self.construction, stop)?;
        Some(self.returns.get_or_init(|| counted))
    }

    /// The union with the same network with its links turned round, if the two are known to be alike: the same costs, and
    /// twice the ports. Its distances are counted: O(nodes · links).
    pub(crate) fn bidirect(&self) -> Option<Self> {
        let prediction = self.known.prediction.bidirect().ok()?;
        let construction = self.construction.clone().bidirect();
        let graph = construction.graph(LIMIT).ok()?;
        let facts = facts(&graph);
        let distances = facts.distances?;
        let links = u64::from(graph.edge_count());
        let loops = u64::from(facts.self_loops);
        let mut returns = Histogram::of(1, links - loops);
        returns.add(0, loops);
        let mut cycles = Histogram::of(2, u64::from(graph.order()));
        if loops > 0 {
            cycles = Histogram::default();
            for node in 0..graph.order() {
                cycles.add(if graph.out(node).contains(&node) { 1 } else { 2 }, 1);
            }
        }
        let known = Known {
            prediction,
            diameter: distances.max,
            distance_sum: distances.sum,
            cycles,
            loop_count: loops,
            all_to_all: AllToAll::by_distances(links - loops, distances.sum, false),
            is_bidirectional: true,
        };
        Some(Self::with_returns(construction, known, returns))
    }

    /// Which of two that cost the same to show: proven rates, then graphs with more symmetry, then shorter expressions.
    fn preference(&self, other: &Self) -> Ordering {
        let key = |own: &Self| {
            let prediction = &own.known.prediction;
            let kept = prediction.allgather.exactness;
            (kept, own.known.all_to_all.proof, !prediction.is_reverse_symmetric, !own.known.is_bidirectional)
        };
        let written = |own: &Self| {
            let text = own.construction.to_string();
            (text.len(), text)
        };
        key(self).cmp(&key(other)).then_with(|| written(self).cmp(&written(other)))
    }
}

/// Candidates none of which is at least as good as another in every respect.
#[derive(Clone, Debug)]
pub(crate) struct Frontier {
    candidates: Vec<Candidate>,
    keep: Keep,
}

/// Which candidates keep their places beside better ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Those that some operator takes, and not the better one: for more to be made of them.
    Inputs,
    /// Those that may yet turn out better, as the better one's rate of an all-to-all is only a bound.
    Contenders,
    /// None: to be shown.
    BestOnly,
}

impl Keep {
    /// Whether a candidate makes another one superfluous.
    fn stands_for(self, one: &Known, other: &Known) -> bool {
        one.is_no_worse_than(other)
            && match self {
                Self::Inputs => one.can_stand_for(other),
                Self::Contenders => one.all_to_all.proof.is_exact(),
                Self::BestOnly => true,
            }
    }
}

impl Frontier {
    pub(crate) fn new(keep: Keep) -> Self {
        Self { candidates: Vec::new(), keep }
    }

    /// Whether a network of these costs would have a place. Those of equal costs have one for the sake of being compared.
    pub(crate) fn has_place_for(&self, known: &Known) -> bool {
        !self
            .candidates
            .iter()
            .any(|old| self.keep.stands_for(&old.known, known) && !known.is_no_worse_than(&old.known))
    }

    /// Takes a candidate in, unless one is there that is as good; drops those that it is as good as. O(candidates).
    pub(crate) fn insert(&mut self, candidate: Candidate) {
        let keep = self.keep;
        for old in &self.candidates {
            let back = keep.stands_for(&candidate.known, &old.known);
            let is_preferred = !back || old.preference(&candidate) != Ordering::Greater;
            if keep.stands_for(&old.known, &candidate.known) && is_preferred {
                return;
            }
        }
        self.candidates.retain(|old| !keep.stands_for(&candidate.known, &old.known));
        self.candidates.push(candidate);
    }

    /// By falling rate of an all-to-all: the most promising first.
    pub(crate) fn into_promising(self) -> Vec<Candidate> {
        let mut candidates = self.into_sorted();
        candidates.sort_by_key(|candidate| Reverse(candidate.known.all_to_all.rate));
        candidates
    }

    /// In ascending order of steps, then of bandwidth.
    pub(crate) fn into_sorted(self) -> Vec<Candidate> {
        let mut candidates = self.candidates;
        let key = |candidate: &Candidate| {
            let prediction = &candidate.known.prediction;
            let (gather, scatter) = (prediction.allgather.cost, prediction.reduce_scatter.cost);
            (gather.steps, gather.bandwidth, scatter.bandwidth, Reverse(candidate.known.all_to_all.rate))
        };
        candidates.sort_by(|one, two| key(one).cmp(&key(two)).then_with(|| one.preference(two)));
        candidates
    }
}

fn counted_returns(construction: &Construction, stop: &dyn Stop) -> Option<Histogram> {
    let graph = construction.graph(LIMIT).ok()?;
    let back = graph.transpose();
    let mut returns = Histogram::default();
    let mut distances = Vec::new();
    for (node, copies) in alike(construction, &graph).ok()? {
        if stop.is_requested() {
            return None;
        }
        distances_along(&back, node, &mut distances);
        for &head in graph.out(node) {
            returns.add(distances[head as usize], copies);
        }
    }
    Some(returns)
}

/// Distances from a node along the links, into a buffer that is kept.
fn distances_along(graph: &Digraph, source: u32, distances: &mut Vec<u32>) {
    distances.clear();
    distances.resize(graph.order() as usize, u32::MAX);
    distances[source as usize] = 0;
    let mut queue = vec![source];
    let mut next = 0;
    while let Some(&node) = queue.get(next) {
        next += 1;
        let farther = distances[node as usize] + 1;
        for &head in graph.out(node) {
            if distances[head as usize] == u32::MAX {
                distances[head as usize] = farther;
                queue.push(head);
            }
        }
    }
}

/// Nodes one of which is like every node, with the number of nodes like each, by what the construction shows.
///
/// Some families look the same from every node. A line graph has a link of each such node, whatever the symmetry of links;
/// the other operators carry symmetries of their factors along.
fn alike(construction: &Construction, graph: &Digraph) -> Result<Vec<(u32, u64)>, GraphError> {
    let times =
        |many: u32, few: &[(u32, u64)]| few.iter().map(|&(node, like)| (node * many, like * u64::from(many))).collect();
    Ok(match construction {
        Construction::Base(family) if is_transitive(family) => vec![(0, graph.order().into())],
        Construction::Line { n, inner } => {
            let inner = if *n == 1 { (**inner).clone() } else { (**inner).clone().line(n - 1) };
            let graph = inner.graph(LIMIT)?;
            let links = |(node, like): (u32, u64)| graph.out_edges(node).map(move |link| (link, like));
            alike(&inner, &graph)?.into_iter().flat_map(links).collect()
        }
        Construction::Degree { n, inner } => times(*n, &alike(inner, &inner.graph(LIMIT)?)?),
        Construction::Power { n, inner } => {
            let graph = inner.graph(LIMIT)?;
            let one = (alike(inner, &graph)?, graph.order());
            pairs(&vec![one; *n as usize])
        }
        Construction::Product(factors) => {
            let mut all = Vec::with_capacity(factors.len());
            for factor in factors {
                let graph = factor.graph(LIMIT)?;
                all.push((alike(factor, &graph)?, graph.order()));
            }
            pairs(&all)
        }
        Construction::Base(_) | Construction::Bidirect(_) => (0..graph.order()).map(|node| (node, 1)).collect(),
    })
}

/// One node for each tuple of nodes of the factors, numbered with the first factor slowest.
fn pairs(factors: &[(Vec<(u32, u64)>, u32)]) -> Vec<(u32, u64)> {
    factors.iter().fold(vec![(0, 1)], |all, (few, order)| {
        let with =
            |&(slow, times): &(u32, u64)| few.iter().map(move |&(node, like)| (slow * order + node, times * like));
        all.iter().flat_map(with).collect()
    })
}

/// Whether adding a constant to all numbers, or coordinates, or exchanging names of nodes leads from any node to any other.
fn is_transitive(family: &Family) -> bool {
    match family {
        Family::Torus { .. }
        | Family::Hypercube { .. }
        | Family::Hamming { .. }
        | Family::TwistedTorus { .. }
        | Family::Complete { .. }
        | Family::UniRing { .. }
        | Family::BiRing { .. }
        | Family::Circulant { .. }
        | Family::DirectedCirculant { .. } => true,
        Family::Bipartite { left, right } => left == right,
        _ => false,
    }
}
