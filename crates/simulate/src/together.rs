//! Several collectives at once, each with a graph of its own, on one network.

use std::collections::HashMap;

use canopy_schedule::{Batch, Carrier, RouteIndex, RouteTable, Transfer, TransferGraph};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};
use num_integer::Integer as _;

use crate::options::{SimulateError, SimulateOptions, Stop};
use crate::outcome::{Outcome, Sent};
use crate::run::simulate_spans;
use crate::workload::Span;

/// One of several collectives.
#[derive(Clone, Copy, Debug)]
pub struct TogetherPart<'a> {
    /// What it sends.
    pub graph: &'a TransferGraph,
    /// The network as its ranks see it: some nodes and links of that of all, by the ids of nodes. Rates do not count.
    pub topology: &'a Topology,
    /// *Size* of the collective in bytes.
    pub size_bytes: u64,
}

/// When collectives that begin together have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// Of all of them as one.
    pub outcome: Outcome,
    /// By part, when its last message had left, in picoseconds.
    pub left_ps: Vec<u64>,
}

/// Why collectives cannot be simulated together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TogetherError {
    #[error("there are no collectives")]
    Nothing,
    #[error("part {part} has a rank at {id}, where the network has none")]
    NoRank { part: usize, id: String },
    #[error("part {part} uses a link from {from} to {to} that the network does not have")]
    NoLink { part: usize, from: String, to: String },
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

/// Simulates collectives that begin at the same time: their messages share links, and wait for data of their own only.
///
/// A message counts by its bytes where links are shared fairly, so that collectives whose loads fit the links together
/// end together.
///
/// * **In.** Graphs that [`check`](canopy_schedule::check) accepted for their networks; the size in `options` does not
///   count.
/// * **Errors.** [`TogetherError`]. **Cost.** That of [`simulate`](crate::simulate) for all messages.
pub fn simulate_together(
    topology: &Topology,
    parts: &[TogetherPart<'_>],
    options: &SimulateOptions<'_>,
    stop: Stop<'_>,
) -> Result<Together, TogetherError> {
    let ids: HashMap<&str, NodeIndex> =
        (0_u32..).zip(topology.nodes()).map(|(number, node)| (node.id.as_str(), NodeIndex::new(number))).collect();
    let first = parts.first().ok_or(TogetherError::Nothing)?;
    let mut merged = TransferGraph {
        rank_count: topology.rank_count(),
        routes: RouteTable::default(),
        carriers: Vec::new(),
        dependencies: Vec::new(),
        batches: Vec::new(),
        transfers: Vec::new(),
        steps: Vec::new(),
        ..first.graph.clone()
    };
    let has_steps = parts.iter().any(|part| !part.graph.steps.is_empty());
    let (mut spans, mut ends) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
    for (number, part) in parts.iter().enumerate() {
        let before = merged.batches.len();
        append(&mut merged, topology, &ids, (number, part), has_steps)?;
        spans.push(Span { batches: before..merged.batches.len(), ..Span::of(part.graph, 0..0, part.size_bytes)? });
        ends.push(merged.transfers.len());
    }
    weigh(&mut spans);
    let (outcome, sent) = simulate_spans(topology, &merged, &spans, options, stop)?;
    let mut left_ps = vec![0; parts.len()];
    for Sent { transfer, left_ps: left, .. } in sent {
        let part = ends.partition_point(|&end| end <= transfer as usize);
        if let Some(last) = left_ps.get_mut(part) {
            *last = left.max(*last);
        }
    }
    Ok(Together { outcome, left_ps })
}

/// Adds a graph, in the numbers of the network of all.
fn append(
    merged: &mut TransferGraph,
    topology: &Topology,
    ids: &HashMap<&str, NodeIndex>,
    (number, part): (usize, &TogetherPart<'_>),
    has_steps: bool,
) -> Result<(), TogetherError> {
    let offset = |count: usize| u32::try_from(count).expect("tables of a graph have fewer than 2³² entries");
    let node = |own: NodeIndex| ids.get(part.topology.node(own).id.as_str()).copied();
    let rank = |own: Rank| {
        let own = NodeIndex::new(own.number());
        let found = node(own).and_then(|node| topology.rank_of(node));
        found.ok_or_else(|| TogetherError::NoRank { part: number, id: part.topology.node(own).id.clone() })
    };
    let routes = offset(merged.routes.len());
    for links in part.graph.routes.iter() {
        let own = links.iter().map(|&link| same_link(topology, part.topology, link, node).ok_or(link));
        let own = own.collect::<Result<Vec<LinkIndex>, LinkIndex>>().map_err(|link| {
            let link = part.topology.link(link);
            let [from, to] = [link.from, link.to].map(|node| part.topology.node(node).id.clone());
            TogetherError::NoLink { part: number, from, to }
        })?;
        merged.routes.push(&own);
    }
    let (carriers, dependencies) = (offset(merged.carriers.len()), offset(merged.dependencies.len()));
    let transfers = offset(merged.transfers.len());
    merged.carriers.extend(
        part.graph
            .carriers
            .iter()
            .map(|carrier| Carrier { route: RouteIndex::new(routes + carrier.route.number()), ..*carrier }),
    );
    merged.dependencies.extend(part.graph.dependencies.iter().map(|before| transfers + before));
    for transfer in &part.graph.transfers {
        merged.transfers.push(Transfer {
            from: rank(transfer.from)?,
            to: rank(transfer.to)?,
            carriers: carriers + transfer.carriers.start..carriers + transfer.carriers.end,
            dependencies: dependencies + transfer.dependencies.start..dependencies + transfer.dependencies.end,
        });
    }
    for batch in &part.graph.batches {
        let range = transfers + batch.transfers.start..transfers + batch.transfers.end;
        merged.batches.push(Batch { root: rank(batch.root)?, transfers: range, ..batch.clone() });
    }
    if has_steps {
        let steps = part.graph.steps.iter().copied().chain(std::iter::repeat(0));
        merged.steps.extend(steps.take(part.graph.transfers.len()));
    }
    Ok(())
}

/// The link of the network of all that one of a part is.
fn same_link(
    topology: &Topology,
    own: &Topology,
    link: LinkIndex,
    node: impl Fn(NodeIndex) -> Option<NodeIndex>,
) -> Option<LinkIndex> {
    let own = own.links().get(link.index())?;
    let (from, to) = (node(own.from)?, node(own.to)?);
    let mut leaving = topology.links_from(from).map(|link| (link, topology.link(link)));
    leaving.find(|(_, link)| (link.to, link.latency) == (to, own.latency)).map(|(link, _)| link)
}

/// Has chunks count by their bytes, as far as small whole numbers can say so.
fn weigh(spans: &mut [Span]) {
    let common = spans.iter().try_fold(1_u128, |common, span| {
        let grown = common / common.gcd(&span.total);
        grown.checked_mul(span.total)
    });
    let weight = |span: &Span| match common {
        Some(common) => span.bytes_of_total.checked_mul(common / span.total),
        None => None,
    };
    let weights: Option<Vec<u128>> = spans.iter().map(weight).collect();
    // Where they do not fit, whole bytes of a chunk are near enough.
    let mut weights = weights.unwrap_or_else(|| spans.iter().map(|span| span.bytes_of_total / span.total).collect());
    let divisor = weights.iter().fold(0, |divisor: u128, weight| divisor.gcd(weight)).max(1);
    let greatest = weights.iter().copied().max().unwrap_or(1) / divisor;
    let excess = (128 - greatest.leading_zeros()).saturating_sub(WEIGHT_BITS);
    for (span, weight) in spans.iter_mut().zip(&mut weights) {
        span.chunk_weight = u64::try_from((*weight / divisor) >> excess).unwrap_or(u64::MAX).max(1);
    }
}

/// Bits of the weight of a chunk at most: a message has many chunks.
const WEIGHT_BITS: u32 = 24;
