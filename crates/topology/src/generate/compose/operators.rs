//! What each operator makes of graphs, ids and wires. Numbers of nodes and edges are those of `canopy-direct`.

use std::collections::{HashMap, HashSet};

use canopy_direct::Limit;

use crate::generate::catalogue::{ID_BYTES_MAX, too_large};
use crate::generate::error::ExpressionError;
use crate::generate::network::{Network, Wire};

/// Where an operator stands, and how large what it makes may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) what: &'static str,
    pub(super) position: usize,
    pub(super) limit: Limit,
}

impl Site {
    fn refused(self, problem: &'static str) -> ExpressionError {
        ExpressionError::Composition { what: self.what, position: self.position, problem }
    }

    /// Refuses ids that are too long for a node.
    fn check_ids(self, found: usize) -> Result<(), ExpressionError> {
        if found <= ID_BYTES_MAX {
            return Ok(());
        }
        let Self { what: operator, position, .. } = self;
        Err(ExpressionError::LongIds { operator, position, found, limit: ID_BYTES_MAX })
    }
}

/// Bytes of the longest id.
fn longest(ids: &[String]) -> usize {
    ids.iter().map(String::len).max().unwrap_or(0)
}

/// The line graph, `times` over. A node is a walk, called by its nodes joined by `~`; `#k` follows a node that is reached
/// by the k-th parallel edge, but the first.
pub(super) fn line(inner: &Network, times: u64, site: Site) -> Result<Network, ExpressionError> {
    let Some(&wire) = inner.wires.first() else {
        return Err(site.refused("needs a network with links"));
    };
    if inner.wires.iter().any(|other| *other != wire) {
        return Err(site.refused("needs links of one rate and one latency; give it `bw` and `lat` of its own"));
    }
    let mut graph = inner.graph.clone();
    // What each node is called, and the end of that: what it adds to the name of a walk that leads to it.
    let (mut ids, mut ends) = (inner.ids.clone(), inner.ids.clone());
    for round in 0..times {
        let next = canopy_direct::line(&graph, site.limit).map_err(too_large)?;
        let (mut walks, mut steps) = (Vec::with_capacity(ids.len()), Vec::with_capacity(ids.len()));
        let (mut counts, mut used) = (HashMap::new(), HashSet::new());
        for (tail, head) in graph.edges() {
            let (tail_id, end) = (&ids[tail as usize], &ends[head as usize]);
            site.check_ids(tail_id.len() + 1 + end.len())?;
            let count: &mut u64 = counts.entry((tail, head)).or_default();
            *count += 1;
            let numbered = |count: u64| if count == 1 { end.clone() } else { format!("{end}#{count}") };
            let mut step = numbered(*count);
            // Only the first round meets parallel edges, or names that look like those of parallel ones.
            while round == 0 && !used.insert(format!("{tail_id}~{step}")) {
                *count += 1;
                step = numbered(*count);
            }
            walks.push(format!("{tail_id}~{step}"));
            steps.push(step);
        }
        (graph, ids, ends) = (next, walks, steps);
    }
    site.check_ids(longest(&ids))?;
    Ok(Network::uniform(ids, graph, wire))
}

/// `copies` of each node, called `v.j`.
pub(super) fn degree(inner: &Network, copies: u64, site: Site) -> Result<Network, ExpressionError> {
    if inner.graph.edges().any(|(tail, head)| tail == head) {
        return Err(site.refused(
            "is not defined for networks with links from a node to itself, such as some genkautz and debruijn",
        ));
    }
    // Larger ones are over any limit.
    let copies = u32::try_from(copies).unwrap_or(u32::MAX);
    let graph = canopy_direct::degree(&inner.graph, copies, site.limit).map_err(too_large)?;
    site.check_ids(longest(&inner.ids) + 1 + (copies - 1).to_string().len())?;
    let ids = inner.ids.iter().flat_map(|id| (0..copies).map(move |copy| format!("{id}.{copy}"))).collect();
    let mut wires = Vec::with_capacity(graph.edge_count() as usize);
    for node in 0..graph.order() {
        for wire in inner.wires_of(node / copies) {
            wires.extend(std::iter::repeat_n(*wire, copies as usize));
        }
    }
    Ok(Network { ids, graph, wires })
}

/// The product of equal factors.
pub(super) fn power(inner: &Network, factors: u64, site: Site) -> Result<Network, ExpressionError> {
    let long = usize::try_from(factors).unwrap_or(usize::MAX).saturating_mul(longest(&inner.ids) + 1) - 1;
    site.check_ids(long)?;
    product(&vec![inner; usize::try_from(factors).expect("ids that are not too long have few parts")], site)
}

/// Tuples, called by their parts joined by `.`.
pub(super) fn product(factors: &[&Network], site: Site) -> Result<Network, ExpressionError> {
    let graphs: Vec<_> = factors.iter().map(|factor| &factor.graph).collect();
    let graph = canopy_direct::product(&graphs, site.limit).map_err(too_large)?;
    site.check_ids(factors.iter().map(|factor| longest(&factor.ids) + 1).sum::<usize>() - 1)?;
    let mut tuples: Vec<(String, Vec<Wire>)> = vec![(String::new(), Vec::new())];
    for (position, factor) in factors.iter().enumerate() {
        let separator = if position == 0 { "" } else { "." };
        let longer = |(id, wires): (String, Vec<Wire>)| {
            (0..).zip(&factor.ids).map(move |(node, own)| {
                (format!("{id}{separator}{own}"), [wires.as_slice(), factor.wires_of(node)].concat())
            })
        };
        tuples = tuples.into_iter().flat_map(longer).collect();
    }
    let (ids, wires): (Vec<String>, Vec<Vec<Wire>>) = tuples.into_iter().unzip();
    Ok(Network { ids, graph, wires: wires.concat() })
}

/// Each edge and its reverse.
pub(super) fn bidirect(inner: &Network, site: Site) -> Result<Network, ExpressionError> {
    let graph = canopy_direct::bidirect(&inner.graph, site.limit).map_err(too_large)?;
    let (transpose, edges) = (inner.graph.transpose(), inner.graph.transposed_edges());
    let mut wires = Vec::with_capacity(graph.edge_count() as usize);
    for node in 0..graph.order() {
        wires.extend(inner.wires_of(node));
        wires.extend(transpose.out_edges(node).map(|edge| inner.wires[edges[edge as usize] as usize]));
    }
    Ok(Network { ids: inner.ids.clone(), graph, wires })
}
