//! Expressions that compose a graph of smaller graphs, along which schedules are composed.

use std::fmt;

use canopy_optimize::Stop;

use crate::bases::Bases;
use crate::digraph::Digraph;
use crate::error::{GraphError, PredictError};
use crate::expand::{bidirect, degree, line, power, product};
use crate::families::Family;
use crate::prediction::{Prediction, RuleError};
use crate::reversal::reversal;
use crate::size::Limit;

/// A graph as a composition of members of families. Its text form is the generator expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Construction {
    /// A member of a family.
    Base(Family),
    /// `line:n(…)`: the n-fold line graph.
    Line {
        /// How often, at least 1.
        n: u32,
        /// The graph whose edges become nodes.
        inner: Box<Self>,
    },
    /// `degree:n(…)`: n copies of each node.
    Degree {
        /// Copies, at least 1.
        n: u32,
        /// The graph to copy.
        inner: Box<Self>,
    },
    /// `power:n(…)`: the Cartesian product of n equal factors.
    Power {
        /// Factors, at least 1.
        n: u32,
        /// The factor.
        inner: Box<Self>,
    },
    /// `product(…;…)`: the Cartesian product.
    Product(Vec<Self>),
    /// `bidirect(…)`: with each edge both ways.
    Bidirect(Box<Self>),
}

impl Construction {
    /// The n-fold line graph of this.
    #[must_use]
    pub fn line(self, n: u32) -> Self {
        Self::Line { n, inner: Box::new(self) }
    }

    /// n copies of each node of this.
    #[must_use]
    pub fn degree(self, n: u32) -> Self {
        Self::Degree { n, inner: Box::new(self) }
    }

    /// The Cartesian power of this.
    #[must_use]
    pub fn power(self, n: u32) -> Self {
        Self::Power { n, inner: Box::new(self) }
    }

    /// This with each edge both ways.
    #[must_use]
    pub fn bidirect(self) -> Self {
        Self::Bidirect(Box::new(self))
    }

    /// Its graph, numbered as the operators number theirs. O(size of the graph and of what it is made of).
    ///
    /// # Errors
    /// [`GraphError`]; sizes over the limit before anything that large is built.
    pub fn graph(&self, limit: Limit) -> Result<Digraph, GraphError> {
        match self {
            Self::Base(family) => Ok(family.graph(limit)?),
            Self::Line { n, inner } => {
                let mut graph = inner.graph(limit)?;
                for _ in 0..folds(&graph, *n)? {
                    graph = line(&graph, limit)?;
                }
                Ok(graph)
            }
            Self::Degree { n, inner } => Ok(degree(&inner.graph(limit)?, positive(*n, "degree")?, limit)?),
            Self::Power { n, inner } => Ok(power(&inner.graph(limit)?, positive(*n, "power")?, limit)?),
            Self::Product(factors) => {
                let graphs = factors.iter().map(|factor| factor.graph(limit)).collect::<Result<Vec<_>, _>>()?;
                Ok(product(&graphs.iter().collect::<Vec<_>>(), limit)?)
            }
            Self::Bidirect(inner) => Ok(bidirect(&inner.graph(limit)?, limit)?),
        }
    }

    /// Predicted cost of its composed schedule. No graph is built but those of families not asked about before, and
    /// that of a product of which no rule says what it costs, on which a breadth-first broadcast is then evaluated.
    ///
    /// # Errors
    /// [`PredictError`]: no rule applies, and the graph is too large to look at; stopped.
    pub fn predict(&self, bases: &mut Bases, stop: &dyn Stop) -> Result<Prediction, PredictError> {
        match self {
            Self::Base(family) => bases.predict(family, stop),
            Self::Line { n, inner } => Ok(inner.predict(bases, stop)?.line(*n)?),
            Self::Degree { n, inner } => Ok(inner.predict(bases, stop)?.degree(*n)?),
            Self::Power { n, inner } => Ok(inner.predict(bases, stop)?.power(*n)?),
            Self::Product(factors) => {
                let known = factors.iter().map(|factor| factor.predict(bases, stop)).collect::<Result<Vec<_>, _>>()?;
                match Prediction::product(&known) {
                    Err(RuleError::Factor { .. }) => {
                        let mut found = bases.evaluate(&self.graph(bases.limit())?, stop)?;
                        found.is_reverse_symmetric |= known.iter().all(|factor| factor.is_reverse_symmetric);
                        Ok(found)
                    }
                    known => Ok(known?),
                }
            }
            Self::Bidirect(inner) => Ok(inner.predict(bases, stop)?.bidirect()?),
        }
    }

    /// An isomorphism of its graph and that with all edges turned around, as of [`reversal`]: searched for in families, and
    /// carried along by the operators, all of which keep it. `None` if none is found.
    ///
    /// # Errors
    /// Of [`graph`](Self::graph).
    pub fn reversal(&self, limit: Limit) -> Result<Option<Vec<u32>>, GraphError> {
        match self {
            Self::Base(family) => Ok(reversal(&family.graph(limit)?)),
            Self::Line { n, inner } => {
                let Some(mut map) = inner.reversal(limit)? else { return Ok(None) };
                let mut graph = inner.graph(limit)?;
                for _ in 0..folds(&graph, *n)? {
                    map = turned_edges(&graph, &map);
                    graph = line(&graph, limit)?;
                }
                Ok(Some(map))
            }
            Self::Degree { n, inner } => {
                let copies =
                    |map: Vec<u32>| map.into_iter().flat_map(|node| (0..*n).map(move |j| node * n + j)).collect();
                self.graph(limit)?;
                Ok(inner.reversal(limit)?.map(copies))
            }
            Self::Power { n, inner } => {
                self.graph(limit)?;
                Ok(inner.reversal(limit)?.map(|map| combined(&vec![map; *n as usize])))
            }
            Self::Product(factors) => {
                self.graph(limit)?;
                let maps =
                    factors.iter().map(|factor| factor.reversal(limit)).collect::<Result<Option<Vec<_>>, _>>()?;
                Ok(maps.map(|maps| combined(&maps)))
            }
            Self::Bidirect(_) => Ok(Some((0..self.graph(limit)?.order()).collect())),
        }
    }
}

fn positive(n: u32, operator: &'static str) -> Result<u32, RuleError> {
    if n == 0 { Err(RuleError::Zero { operator }) } else { Ok(n) }
}

/// How often the line graph has to be taken: not at all where one edge leaves each node, for then it is the graph itself,
/// numbers and all.
fn folds(graph: &Digraph, n: u32) -> Result<u32, RuleError> {
    let is_own = (0..graph.order()).all(|node| graph.out(node).len() == 1);
    positive(n, "line").map(|n| if is_own { 0 } else { n })
}

/// By edge `uv`, the number of an edge `g(v)g(u)`, a different one for each of several parallel edges.
///
/// `g` must be a reversal of the graph. O(edges · log degree).
pub(crate) fn turned_edges(graph: &Digraph, g: &[u32]) -> Vec<u32> {
    let by_ends = |edges: &mut Vec<((u32, u32), u32)>| edges.sort_unstable();
    let mut moved: Vec<((u32, u32), u32)> =
        graph.edges().zip(0..).map(|((u, v), edge)| ((g[v as usize], g[u as usize]), edge)).collect();
    let mut kept: Vec<((u32, u32), u32)> = graph.edges().zip(0..).collect();
    by_ends(&mut moved);
    by_ends(&mut kept);
    let mut map = vec![0; kept.len()];
    for (&(from, edge), &(to, image)) in moved.iter().zip(&kept) {
        debug_assert_eq!(from, to, "a reversal carries edges to edges");
        map[edge as usize] = image;
    }
    map
}

/// The map of tuples that maps each coordinate by itself, row-major with the first slowest.
fn combined(maps: &[Vec<u32>]) -> Vec<u32> {
    maps.iter().fold(vec![0], |slow, map| {
        let width = u32::try_from(map.len()).expect("nodes are numbered in 32 bits");
        slow.iter().flat_map(|&node| map.iter().map(move |&own| node * width + own)).collect()
    })
}

impl fmt::Display for Construction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base(family) => family.fmt(f),
            Self::Line { n, inner } => write!(f, "line:{n}({inner})"),
            Self::Degree { n, inner } => write!(f, "degree:{n}({inner})"),
            Self::Power { n, inner } => write!(f, "power:{n}({inner})"),
            Self::Product(factors) => {
                f.write_str("product(")?;
                for (position, factor) in factors.iter().enumerate() {
                    write!(f, "{}{factor}", if position == 0 { "" } else { ";" })?;
                }
                f.write_str(")")
            }
            Self::Bidirect(inner) => write!(f, "bidirect({inner})"),
        }
    }
}
