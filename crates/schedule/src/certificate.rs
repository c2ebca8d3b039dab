//! Upper bounds on algbw, re-derived from a certificate alone by adding up capacities.
//!
//! It runs no flow and no solver, and knows nothing of how certificates are found. Throughout, `N` is the number of all
//! ranks, `M` the size as *algbw* counts it, and `B⁺(S)` the total capacity of the links that leave a set `S` of nodes.

mod lp_dual;
mod sum;

use canopy_topology::{Link, NodeIndex, Rank, Rate, Topology};
use num_bigint::BigUint;

use crate::bound::{Certificate, CutDirection};
use crate::collective::{Collective, CollectiveKind};
use crate::shares::{ChunkLayout, Shares};
use crate::weights_error::SharesError;

pub use lp_dual::{LpDualSums, lp_dual_sums};
pub use sum::sum_parts;

/// Why a certificate proves nothing about this collective on this topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum CertificateError {
    #[error("a {kind} proves no bound on {collective}; {}", accepted(*collective))]
    NotApplicable { kind: &'static str, collective: CollectiveKind },
    #[error("{place} names node {node}, but there are {node_count} nodes")]
    UnknownNode { place: String, node: u32, node_count: usize },
    #[error("{place} lists node {next} after node {node}; list each node once, in increasing order")]
    Unsorted { place: String, node: u32, next: u32 },
    #[error("root {root} is not a rank; there are {rank_count}")]
    UnknownRoot { root: u32, rank_count: u32 },
    #[error(
        "the cut counts links that lead {} the side of rank {root}, the root of this {collective}; \
         count those the other way",
        from_or_to(*collective)
    )]
    WrongWay { collective: CollectiveKind, root: u32 },
    #[error("the cut holds no rank, so no data has to pass it")]
    NoRankInside,
    #[error("the cut holds every rank, so no data has to pass it")]
    NoRankOutside,
    #[error("a partition has at least two sets, found {found}")]
    TooFewSets { found: usize },
    #[error("sets[{set}] holds no rank; put at least one rank into every set")]
    NoRankInSet { set: usize },
    #[error("node {node} is in sets[{first}] and in sets[{second}]; list each node in one set")]
    Overlap { node: u32, first: usize, second: usize },
    #[error("rank {rank} is in no set; put every rank into a set")]
    RankMissing { rank: u32 },
    #[error("node `{id}` can replicate or add up what passes it, but is in no set; put it into a set")]
    CapableMissing { id: String },
    #[error("the sum counts nothing; give a term a weight above 0")]
    EmptySum,
    #[error("the sum has {found} {what}; leave out those that prove least, until there are {limit}")]
    TooManyTerms { found: usize, limit: usize, what: &'static str },
    #[error("the sum holds a {kind}; use cuts, or partitions for an allreduce")]
    NotSummable { kind: &'static str },
    #[error(
        "node {node} has a potential, but it is no switch that only passes on what enters it; give such switches potentials"
    )]
    PotentialMisplaced { node: u32 },
    #[error("all shares that would pass the cut are empty, so no data has to pass it")]
    NoShare,
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error("found {found} lengths for {expected} links; give one for each, in the order of links")]
    LengthCount { found: usize, expected: usize },
    #[error("rank {to} cannot be reached from rank {from}, so there is no all-to-all to bound")]
    Unreachable { from: u32, to: u32 },
    #[error("all ranks that exchange data have distance 0, which proves nothing; give longer lengths")]
    NoDistance,
}

/// What would be accepted for a collective, in words.
fn accepted(collective: CollectiveKind) -> &'static str {
    match collective {
        CollectiveKind::Allreduce => "use a cut, a partition, or a sum of them",
        CollectiveKind::AllToAll => "use an lp-dual",
        _ => "use a cut or a sum of cuts",
    }
}

/// Which way links lead from the side of a root that data does not take.
const fn from_or_to(collective: CollectiveKind) -> &'static str {
    match collective {
        CollectiveKind::Broadcast | CollectiveKind::Scatter => "to",
        _ => "from",
    }
}

/// Upper bound on algbw that a certificate proves, in bytes per second.
///
/// The links of a cut lead from the nodes of one side `A` to those of the other, `B`: out of the set that is stated, or
/// into it. `a` and `b` are the ranks of the sides, at least one each, and `C` the capacity of these links. Each argument
/// counts bytes that must pass them whatever the schedule does:
///
/// | collective | root | bytes that must pass | algbw ≤ |
/// |---|---|---|---|
/// | allgather | | the shares of `A`, once: `a·M/N` | `N·C/a` |
/// | reduce-scatter | | what `A` adds to the results of `B`: `b·M/N` | `N·C/b` |
/// | broadcast, reduce | in `A`, in `B` | the message: `M` | `C` |
/// | scatter | in `A` | the shares of `B`: `b·M/N` | `N·C/b` |
/// | gather | in `B` | the shares of `A`: `a·M/N` | `N·C/a` |
/// | allreduce | | what one side adds to the other's result: `M` | `C` |
///
/// Each counts a piece of data once although many may want it, so the cuts hold for switches that multicast or
/// aggregate too. For allreduce there is also the partition into `p ≥ 2` disjoint sets: take one element and see each
/// set as one unit. Until some unit knows the sum, `p − 1` of them must have sent what they know; after that, the
/// `p − 1` others must be told, and what a plain switch delivers to one unit left another one for it alone. So
/// `2(p−1)·M ≤ T·Σ B⁺(S_i)`, hence `algbw ≤ Σ B⁺(S_i) / (2(p−1))`. A switch that multicasts or aggregates saves such
/// messages, and compute devices that only forward could do so too, so each of them must be in a set, as part of that
/// unit: what it replicates or adds up then stays inside, or leaves a unit as any message does.
///
/// All-to-all has an `lp-dual`, a length `ℓ ≥ 0` for each link: the block from `s` to `t`, of `M/N` bytes, takes a path
/// of length `dist_ℓ(s, t)` or more, so `Σ over pairs of M/N · dist_ℓ(s, t)` bytes × length must pass links that offer
/// `T·Σ c·ℓ`: `algbw ≤ N·Σ c·ℓ / Σ_{s≠t} dist_ℓ(s, t)`. Lengths are integers, so nothing is rounded.
///
/// A `sum` counts several of these at once, the term `i` as often as its weight `w(i)` says, where term `i` says that the
/// links `L(i)` must pass `d(i)` units. What schedules pass over the links, less what is dropped on the way, enters a plain
/// switch as often as it leaves it; so potentials `π` of such switches add nothing:
/// `Σ w(i)·d(i) ≤ T·Σ c(e)·max(0, Σ w(i) of the terms that count e + π(to) − π(from))`.
///
/// With weighted shares `a` and `b` are the weights of the sides and `N` the total weight. Cuts count the same bytes then.
///
/// With weighted blocks, of `w(s, t)` out of `W = Σ w` over all pairs, the diagonal included, all ranks together have
/// `N·M` bytes, as `M` is the mean of what they have: the block from `s` to `t` has `N·M·w(s, t)/W`. So
/// `N·M/W · Σ w(s, t)·dist_ℓ(s, t) ≤ T·Σ c·ℓ`, and `algbw ≤ (W/N)·Σ c·ℓ / Σ w(s, t)·dist_ℓ(s, t)`, which with `w = 1` is
/// the bound above. One row alone is a scatter and one column a gather, with `N·M` as their size; one block alone makes it
/// the capacity of a cut between two ranks, over N.
///
/// * **Source.** Zhao 2026 §4.4, inequality (⋆), for allgather; the other rows by the same count. The partition is the
///   bound of Nash-Williams and Tutte on spanning trees, `Σ λ(S_i) / (2(p−1))`, for directed links. The lp-dual is weak
///   duality of the maximum concurrent flow program, Basu 2024 §3.1, equations (1)–(5). The sum is weak duality of the program of
///   the best part of a network that is balanced at its switches.
/// * **In.** Any directed capacities, Eulerian or not; sets may hold switches. **Out.** Reduced; zero if nothing passes.
/// * **Errors.** A certificate that is malformed or whose argument does not apply.
/// * **Cost.** O(nodes + links), of a sum and the links of the nodes that its terms list; for an `lp-dual` that of [`lp_dual_sums`].
pub fn certified_bound(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    certificate: &Certificate,
) -> Result<Rate, CertificateError> {
    // One chunk for each unit of weight: whether the weights fit the collective, and can be added up.
    ChunkLayout::new(collective, topology.rank_count(), 1, shares)?;
    let unit = unit(topology, collective.kind(), shares);
    let mut set_of = vec![None; topology.nodes().len()];
    let capacity_of = |counts: &dyn Fn(&Link) -> bool| -> u128 {
        let counted = topology.links().iter().filter(|link| counts(link));
        // At most 100 bits by the invariant of `Topology`, and 32 more for the number of ranks.
        counted.map(|link| u128::from(link.capacity.bytes_per_sec())).sum()
    };
    match certificate {
        Certificate::Cut { direction, nodes } => {
            let demand = cut_demand(topology, collective, (shares, unit), (*direction, nodes), &mut set_of)?;
            Ok(rate(capacity_of(&|link| crosses(&set_of, *direction, link)), unit, demand))
        }
        Certificate::Partition { sets } => {
            let demand = partition_demand(topology, collective.kind(), sets, &mut set_of)?;
            Ok(rate(capacity_of(&|link| leaves(&set_of, link)), unit, demand))
        }
        Certificate::Sum { terms, potentials } => {
            let (capacity, data) = sum_parts(topology, collective, shares, terms, potentials)?;
            let (numerator, denominator) = data.parts();
            Ok(Rate::new(capacity * denominator, numerator.clone()).expect("a sum that counts nothing was refused"))
        }
        Certificate::LpDual { lengths } => lp_dual::lp_dual_bound(topology, collective.kind(), shares, lengths),
    }
}

/// Whether cuts count the shares that must pass them, and not messages.
const fn counts_shares(kind: CollectiveKind) -> bool {
    matches!(
        kind,
        CollectiveKind::Allgather | CollectiveKind::Gather | CollectiveKind::ReduceScatter | CollectiveKind::Scatter
    )
}

/// How many of what cuts count a message is: the shares of all ranks, or one. O(ranks).
fn unit(topology: &Topology, kind: CollectiveKind, shares: &Shares) -> u128 {
    match counts_shares(kind) {
        true => topology.ranks().map(|rank| u128::from(shares.weight(rank))).sum(),
        false => 1,
    }
}

/// Whether a link leads across the boundary of the nodes that are in a set, this way.
fn crosses(set_of: &[Option<usize>], direction: CutDirection, link: &Link) -> bool {
    let sends = |node: NodeIndex| set_of[node.index()].is_some() == (direction == CutDirection::Out);
    sends(link.from) && !sends(link.to)
}

/// Whether a link leaves one of the sets.
fn leaves(set_of: &[Option<usize>], link: &Link) -> bool {
    set_of[link.from.index()].is_some() && set_of[link.from.index()] != set_of[link.to.index()]
}

/// Shares or messages that must pass the links of a cut, of so many in a message. Marks its nodes as set 0. O(nodes listed).
fn cut_demand(
    topology: &Topology,
    collective: Collective,
    (shares, unit): (&Shares, u128),
    (direction, nodes): (CutDirection, &[NodeIndex]),
    set_of: &mut [Option<usize>],
) -> Result<u128, CertificateError> {
    let kind = collective.kind();
    if kind == CollectiveKind::AllToAll {
        return Err(CertificateError::NotApplicable { kind: "cut", collective: kind });
    }
    claim_nodes(set_of, 0, nodes, || "the cut".to_owned())?;
    if let Some(root) = collective.root() {
        require_root(topology, root)?;
        let has_all = matches!(kind, CollectiveKind::Broadcast | CollectiveKind::Scatter);
        // Whether the root is on the side from which the counted links lead.
        let sends = set_of[root.index()].is_some() == (direction == CutDirection::Out);
        if sends != has_all {
            return Err(CertificateError::WrongWay { collective: kind, root: root.number() });
        }
    }
    let ranks_inside = || nodes.iter().filter_map(|&node| topology.rank_of(node));
    match ranks_inside().count() {
        0 => return Err(CertificateError::NoRankInside),
        count if count == topology.rank_count() as usize => return Err(CertificateError::NoRankOutside),
        _ => {}
    }
    if !counts_shares(kind) {
        // A message must pass as a whole.
        return Ok(1);
    }
    let inside: u128 = ranks_inside().map(|rank| u128::from(shares.weight(rank))).sum();
    let outside = unit - inside;
    let is_sent = matches!(kind, CollectiveKind::Allgather | CollectiveKind::Gather);
    match if is_sent == (direction == CutDirection::Out) { inside } else { outside } {
        0 => Err(CertificateError::NoShare),
        passing => Ok(passing),
    }
}

/// How many messages must pass the links that leave the sets of a partition. Marks their nodes. O(nodes).
fn partition_demand(
    topology: &Topology,
    kind: CollectiveKind,
    sets: &[Vec<NodeIndex>],
    set_of: &mut [Option<usize>],
) -> Result<u128, CertificateError> {
    if kind != CollectiveKind::Allreduce {
        return Err(CertificateError::NotApplicable { kind: "partition", collective: kind });
    }
    if sets.len() < 2 {
        return Err(CertificateError::TooFewSets { found: sets.len() });
    }
    for (set, nodes) in sets.iter().enumerate() {
        claim_nodes(set_of, set, nodes, || format!("sets[{set}]"))?;
        if !nodes.iter().any(|&node| topology.rank_of(node).is_some()) {
            return Err(CertificateError::NoRankInSet { set });
        }
    }
    if let Some(rank) = topology.ranks().find(|rank| set_of[rank.index()].is_none()) {
        return Err(CertificateError::RankMissing { rank: rank.number() });
    }
    if let Some(node) = topology.capable_nodes().find(|node| set_of[node.index()].is_none()) {
        return Err(CertificateError::CapableMissing { id: topology.node(node).id.clone() });
    }
    // Every set holds a rank of its own, so there are fewer than 2³² of them.
    Ok(2 * (sets.len() as u128 - 1))
}

/// Marks the nodes of one set with its number; refuses nodes that do not exist, lists out of order, and overlaps.
fn claim_nodes(
    set_of: &mut [Option<usize>],
    set: usize,
    nodes: &[NodeIndex],
    place: impl Fn() -> String,
) -> Result<(), CertificateError> {
    let node_count = set_of.len();
    let mut before: Option<NodeIndex> = None;
    for &node in nodes {
        if let Some(before) = before.filter(|&before| before >= node) {
            return Err(CertificateError::Unsorted { place: place(), node: before.number(), next: node.number() });
        }
        before = Some(node);
        let Some(slot) = set_of.get_mut(node.index()) else {
            return Err(CertificateError::UnknownNode { place: place(), node: node.number(), node_count });
        };
        if let Some(first) = slot.replace(set) {
            return Err(CertificateError::Overlap { node: node.number(), first, second: set });
        }
    }
    Ok(())
}

fn require_root(topology: &Topology, root: Rank) -> Result<(), CertificateError> {
    let rank_count = topology.rank_count();
    match root.number() < rank_count {
        true => Ok(()),
        false => Err(CertificateError::UnknownRoot { root: root.number(), rank_count }),
    }
}

/// `capacity · factor / divisor`; the divisor is a positive count.
fn rate(capacity: u128, factor: u128, divisor: u128) -> Rate {
    Rate::new(BigUint::from(capacity) * BigUint::from(factor), divisor).expect("divisors are counts of at least one")
}
