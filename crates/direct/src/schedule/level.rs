//! One level of a composition: a graph, and how its transfers come from those of the level within.

use num_integer::Integer;

use canopy_optimize::Stop;

use super::Heading;
use super::base::{Base, breadth_first};
use super::error::ScheduleError;
use super::oriented::Oriented;
use crate::construction::{Construction, turned_edges};
use crate::digraph::Digraph;
use crate::given::given;
use crate::prediction::RuleError;
use crate::size::Limit;
use crate::transfer::Transfer;

/// A graph with a schedule of which nothing is written out but the innermost.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) graph: Oriented,
    pub(super) chunks: u64,
    pub(super) steps: u32,
    pub(super) transfers_max: u128,
    origin: Origin,
}

/// Where transfers come from.
#[derive(Debug)]
enum Origin {
    Given(Vec<Transfer>),
    Line(Box<Level>),
    Degree(Box<Level>, u32),
    Power(Box<Level>, u32),
    /// With each edge's image under the reversal, and each edge's position among those that enter its head.
    Bidirect {
        inner: Box<Level>,
        nodes: Vec<u32>,
        edges: Vec<u32>,
        positions: Vec<u32>,
    },
}

impl Level {
    pub(super) fn new(
        construction: &Construction,
        heading: Heading,
        limit: Limit,
        stop: &dyn Stop,
    ) -> Result<Self, ScheduleError> {
        match construction {
            Construction::Base(_) | Construction::Product(_) => {
                Self::of_graph(&construction.graph(limit)?, heading, stop)
            }
            Construction::Line { n, inner } => {
                if *n == 0 {
                    return Err(RuleError::Zero { operator: "line" }.into());
                }
                let mut level = Self::new(inner, heading, limit, stop)?;
                let mut graph = inner.graph(limit)?;
                if level.graph.degree() == 1 {
                    // The graph is its own line graph, numbers and all.
                    return Ok(level);
                }
                for _ in 0..*n {
                    graph = crate::expand::line(&graph, limit).map_err(crate::error::GraphError::from)?;
                    level = Self::line(&graph, level)?;
                }
                Ok(level)
            }
            Construction::Degree { n, inner } | Construction::Power { n, inner } if *n == 1 => {
                Self::new(inner, heading, limit, stop)
            }
            Construction::Degree { n, inner } => {
                let graph = construction.graph(limit)?;
                Self::degree(&graph, Self::new(inner, heading, limit, stop)?, *n)
            }
            Construction::Power { n, inner } => {
                let graph = construction.graph(limit)?;
                Self::power(&graph, Self::new(inner, heading, limit, stop)?, *n)
            }
            Construction::Bidirect(inner) => {
                let graph = construction.graph(limit)?;
                let nodes = inner.reversal(limit)?.ok_or(RuleError::NotReverseSymmetric)?;
                let edges = turned_edges(&inner.graph(limit)?, &nodes);
                Self::bidirect(&graph, Self::new(inner, heading, limit, stop)?, nodes, edges)
            }
        }
    }

    /// By a stored schedule, or else the breadth-first broadcast.
    pub(super) fn of_graph(graph: &Digraph, heading: Heading, stop: &dyn Stop) -> Result<Self, ScheduleError> {
        let oriented = Oriented::new(graph, heading)?;
        let stored = match heading {
            Heading::Along => given(graph),
            Heading::Against => given(&graph.transpose()).map(|mut stored| {
                let numbers = graph.transposed_edges();
                stored.transfers.iter_mut().for_each(|transfer| transfer.edge = numbers[transfer.edge as usize]);
                stored
            }),
        };
        let Base { chunks, steps, transfers } = match stored {
            Some(stored) => Base { chunks: stored.chunks, steps: stored.cost.steps, transfers: stored.transfers },
            None => breadth_first(graph, heading, stop)?,
        };
        let transfers_max = transfers.len() as u128;
        Ok(Self { graph: oriented, chunks, steps, transfers_max, origin: Origin::Given(transfers) })
    }

    pub(super) fn line(graph: &Digraph, inner: Self) -> Result<Self, ScheduleError> {
        let graph = Oriented::new(graph, inner.graph.heading())?;
        let degree = u128::from(inner.graph.degree());
        let first = degree * inner.graph.edge_count() as u128;
        Ok(Self {
            graph,
            chunks: inner.chunks,
            steps: inner.steps.checked_add(1).ok_or(ScheduleError::TooManySteps)?,
            transfers_max: inner.transfers_max.saturating_mul(degree * degree).saturating_add(first),
            origin: Origin::Line(Box::new(inner)),
        })
    }

    pub(super) fn degree(graph: &Digraph, inner: Self, n: u32) -> Result<Self, ScheduleError> {
        let own = &inner.graph;
        if (0..own.order()).any(|node| own.leaving(node).any(|edge| own.to(edge) == node)) {
            return Err(RuleError::Loops.into());
        }
        let (copies, ways) = (u128::from(n), u128::from(own.degree()) * u128::from(n));
        let last = u128::from(own.order()) * copies * ways * (copies - 1);
        let pieces = u64::try_from(ways).map_err(|_| ScheduleError::TooManyChunks)?;
        Ok(Self {
            graph: Oriented::new(graph, own.heading())?,
            chunks: limited(u128::from(inner.chunks.gcd(&pieces)), u128::from(inner.chunks) * ways)?,
            steps: inner.steps.checked_add(1).ok_or(ScheduleError::TooManySteps)?,
            transfers_max: inner.transfers_max.saturating_mul(copies * copies).saturating_add(last),
            origin: Origin::Degree(Box::new(inner), n),
        })
    }

    pub(super) fn power(graph: &Digraph, inner: Self, n: u32) -> Result<Self, ScheduleError> {
        let order = u128::from(inner.graph.order());
        let lines = order.saturating_pow(n - 1);
        let sources = (0..n).fold(0_u128, |sum, phase| sum.saturating_add(order.saturating_pow(phase)));
        let transfers = inner.transfers_max.saturating_mul(lines).saturating_mul(sources);
        Ok(Self {
            graph: Oriented::new(graph, inner.graph.heading())?,
            chunks: limited(1, u128::from(inner.chunks) * u128::from(n))?,
            steps: inner.steps.checked_mul(n).ok_or(ScheduleError::TooManySteps)?,
            transfers_max: transfers.saturating_mul(n.into()),
            origin: Origin::Power(Box::new(inner), n),
        })
    }

    pub(super) fn bidirect(
        graph: &Digraph,
        inner: Self,
        nodes: Vec<u32>,
        edges: Vec<u32>,
    ) -> Result<Self, ScheduleError> {
        Ok(Self {
            graph: Oriented::new(graph, inner.graph.heading())?,
            chunks: limited(1, u128::from(inner.chunks) * 2)?,
            steps: inner.steps,
            transfers_max: inner.transfers_max.saturating_mul(2),
            origin: Origin::Bidirect {
                positions: inner.graph.positions_at_head(),
                inner: Box::new(inner),
                nodes,
                edges,
            },
        })
    }

    /// Hands out all transfers.
    pub(super) fn each(&self, take: &mut dyn FnMut(Transfer)) {
        match &self.origin {
            Origin::Given(transfers) => transfers.iter().cloned().for_each(take),
            Origin::Line(inner) => self.each_of_line(inner, take),
            Origin::Degree(inner, n) => self.each_of_degree(inner, *n, take),
            Origin::Power(inner, n) => each_of_power(inner, *n, take),
            Origin::Bidirect { inner, nodes, edges, positions } => {
                let own = &inner.graph;
                inner.each(&mut |transfer| {
                    let edge = transfer.edge;
                    let kept = own.tail(edge) * 2 * own.degree() + own.slot(edge);
                    // The image of an edge enters its head in the graph; turned around it leaves it, after the others.
                    let image = edges[edge as usize];
                    let head = if own.heading() == Heading::Along { own.to(image) } else { own.from(image) };
                    let turned = head * 2 * own.degree() + own.degree() + positions[image as usize];
                    take(Transfer { edge: kept, ..transfer.clone() });
                    take(Transfer {
                        source: nodes[transfer.source as usize],
                        edge: turned,
                        chunks: transfer.chunks.start + inner.chunks..transfer.chunks.end + inner.chunks,
                        ..transfer
                    });
                });
            }
        }
    }

    /// First every share to the neighbours; then each transfer from `u` to `w` of the share of `v` becomes one of the shares
    /// of all edges that reach `v`, from the edge `uw` to all that leave `w`.
    fn each_of_line(&self, inner: &Self, take: &mut dyn FnMut(Transfer)) {
        let own = &inner.graph;
        // The edge between two edges of which the second begins where the first ends.
        let link = |first: u32, second: u32| match own.heading() {
            Heading::Along => first * own.degree() + own.slot(second),
            Heading::Against => second * own.degree() + own.slot(first),
        };
        // Every pair of edges of which one enters a node and the other leaves it: nodes · degree² transfers.
        for node in 0..own.order() {
            for first in own.reaching(node) {
                for second in own.leaving(node).filter(|&second| second != first) {
                    take(Transfer { step: 0, source: first, edge: link(first, second), chunks: 0..self.chunks });
                }
            }
        }
        inner.each(&mut |transfer| {
            // An edge that reaches `v` has its share in place of `v`, and the edges that leave `w` get it in place of `w`.
            // degree² transfers for each of the level within.
            for source in own.reaching(transfer.source) {
                for to in own.leaving(own.to(transfer.edge)).filter(|&to| to != source) {
                    let edge = link(transfer.edge, to);
                    take(Transfer { step: transfer.step + 1, source, edge, chunks: transfer.chunks.clone() });
                }
            }
        });
    }

    /// Each share travels among the copies with its source's number and leaves for all copies on its last link; then copies of
    /// one node get each other's shares, a piece from each neighbour.
    fn each_of_degree(&self, inner: &Self, n: u32, take: &mut dyn FnMut(Transfer)) {
        let own = &inner.graph;
        // From copy `j` of where an edge carries data from, to copy `i` of where to.
        let link = |edge: u32, j: u32, i: u32| {
            let (tail, head) = if own.heading() == Heading::Along { (j, i) } else { (i, j) };
            (own.tail(edge) * n + tail) * own.degree() * n + own.slot(edge) * n + head
        };
        let scale = self.chunks / inner.chunks;
        inner.each(&mut |transfer| {
            let chunks = transfer.chunks.start * scale..transfer.chunks.end * scale;
            // Copy `j` of a node sends what began at copies `j`. It goes to all copies `i` of the receiver, of which
            // copy `j` alone sends it on.
            // n² transfers for each of the level within.
            for j in 0..n {
                let source = transfer.source * n + j;
                for i in 0..n {
                    take(Transfer {
                        step: transfer.step,
                        source,
                        edge: link(transfer.edge, j, i),
                        chunks: chunks.clone(),
                    });
                }
            }
        });
        let piece = self.chunks / (u64::from(own.degree()) * u64::from(n));
        // What copy `i` of a node lacks is the shares of its other copies `j`. It comes in as many pieces as there are
        // edges from neighbours' copies `k`, a piece over each.
        // nodes · n² · (n − 1) · degree transfers, each of one piece.
        for node in 0..own.order() {
            for (edge, position) in own.reaching(node).zip(0_u64..) {
                for k in 0..n {
                    let start = (position * u64::from(n) + u64::from(k)) * piece;
                    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| i != j) {
                        let (source, edge) = (node * n + j, link(edge, k, i));
                        take(Transfer { step: inner.steps, source, edge, chunks: start..start + piece });
                    }
                }
            }
        }
    }
}

/// One factor's schedule after the other: in each phase along one dimension, with everything gathered along those before;
/// the parts of a share begin in different dimensions, and so never meet on a link.
fn each_of_power(inner: &Level, n: u32, take: &mut dyn FnMut(Transfer)) {
    let own = &inner.graph;
    let order = own.order();
    let strides: Vec<u32> = (0..n).map(|dimension| order.pow(n - 1 - dimension)).collect();
    // A node, or what is left of one, of coordinates in these dimensions, from its number with the first slowest.
    let place = |number: u32, dimensions: &[u32]| {
        let digits = dimensions.iter().rev().scan(number, |left, &dimension| {
            let digit = *left % order;
            *left /= order;
            Some(digit * strides[dimension as usize])
        });
        digits.sum::<u32>()
    };
    inner.each(&mut |transfer| {
        let (tail, slot) = (own.tail(transfer.edge), own.slot(transfer.edge));
        // n parts in n phases; in each phase order^(n − 1) lines, where a holder has gathered order^phase shares.
        for part in 0..n {
            let dimensions: Vec<u32> = (0..n).map(|phase| (part + phase) % n).collect();
            let shift = u64::from(part) * inner.chunks;
            let chunks = transfer.chunks.start + shift..transfer.chunks.end + shift;
            for phase in 0..n {
                let own_dimension = dimensions[phase as usize];
                let stride = strides[own_dimension as usize];
                let (before, after) = (&dimensions[..phase as usize], &dimensions[phase as usize + 1..]);
                let step = transfer.step + phase * inner.steps;
                // A transfer takes place in every line of this dimension: one for each choice of all other coordinates.
                // Those of dimensions that come later are the source's own still; those of dimensions before have been
                // gathered, so that whoever sends (`holder`) has the shares of all that differ from it there (`origin`).
                for later in 0..order.pow(n - 1 - phase) {
                    let later = place(later, after);
                    for holder in 0..order.pow(phase) {
                        let node = place(holder, before) + tail * stride + later;
                        let edge = node * own.degree() * n + own_dimension * own.degree() + slot;
                        for origin in 0..order.pow(phase) {
                            let source = place(origin, before) + transfer.source * stride + later;
                            take(Transfer { step, source, edge, chunks: chunks.clone() });
                        }
                    }
                }
            }
        }
    });
}

/// `product / common` chunks, if 32 bits count them.
fn limited(common: u128, product: u128) -> Result<u64, ScheduleError> {
    u32::try_from(product / common).map(u64::from).map_err(|_| ScheduleError::TooManyChunks)
}
