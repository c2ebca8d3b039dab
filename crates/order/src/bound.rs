//! What every order loads at least.

use std::collections::BTreeMap;

use crate::fabric::{Edge, Fabric, WHOLE, ratio};
use crate::job::{Job, Kind, Pattern};
use crate::levels::parts;
use crate::walk::{Cut, Walk};

/// What the busiest links of all kinds carry at least, whatever the order; 0 if some machines do not reach each other.
///
/// Wherever its machines are in the order, one side of a cut sends what leaves at least for so many machines. Looked at are
/// single machines, the parts that levels of switches make, and both sides of each link that alone joins them: on a tree,
/// these are all cuts of one link.
pub(crate) fn least(fabric: &Fabric, job: &Job) -> u128 {
    let machines = fabric.machines().len();
    if machines < 2 || !fabric.is_joined() {
        return 0;
    }
    let singles = (0..machines).map(|machine| cut(fabric, &[machine]));
    let parts = parts(fabric);
    let cuts = singles.chain(parts.iter().map(|part| cut(fabric, part))).chain(Walk::of(fabric).cuts);
    let cuts: Vec<Cut> = cuts.filter(|cut| cut.machines < machines && cut.capacity > 0).collect();
    let of_kind = |kind: &Kind| {
        let placed = Placed { kind, fabric, clusters: clusters(kind, fabric) };
        let mut known: BTreeMap<(usize, u64), u128> = BTreeMap::new();
        let least = cuts.iter().map(|cut| {
            let amount = *known.entry((cut.machines, cut.ranks)).or_insert_with(|| placed.least_out_of(cut));
            ratio(u128::from(WHOLE) * amount, cut.capacity.saturating_mul(kind.per().into()))
        });
        least.max().unwrap_or(0).saturating_mul(kind.weight.into())
    };
    job.kinds.iter().map(of_kind).fold(0, u128::saturating_add)
}

/// Some nodes, cut from all others.
fn cut(fabric: &Fabric, nodes: &[usize]) -> Cut {
    let mut is_in = vec![false; fabric.node_count()];
    nodes.iter().for_each(|&node| is_in[node] = true);
    let sum = |edges: &[Vec<usize>], far: fn(&Edge) -> usize| -> u128 {
        let all = nodes.iter().flat_map(|&node| &edges[node]).map(|&edge| &fabric.edges[edge]);
        all.filter(|edge| !is_in[far(edge)]).map(|edge| u128::from(edge.capacity)).sum()
    };
    let counts = nodes.iter().filter_map(|&node| fabric.rank_counts().get(node));
    let out = sum(&fabric.leaving, |edge| edge.to);
    Cut {
        machines: counts.clone().count(),
        ranks: counts.map(|&count| u64::from(count)).sum(),
        capacity: out.min(sum(&fabric.entering, |edge| edge.from)),
    }
}

/// Machines that exchange data in groups of a kind with each other and with no others, as many in each cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clusters {
    /// Machines of each.
    machines: u64,
    /// Groups of each, all on all of its machines.
    groups: u64,
    /// Ranks of a group on each machine.
    ranks: u64,
}

/// The clusters of a kind; `None` if machines are unequal, or groups begin within them.
fn clusters(kind: &Kind, fabric: &Fabric) -> Option<Clusters> {
    let counts = fabric.rank_counts();
    let each = u64::from(*counts.first()?).max(1);
    if counts.iter().any(|&count| u64::from(count) != each) {
        return None;
    }
    let span = kind.size.saturating_mul(kind.stride);
    if kind.stride.is_multiple_of(each) {
        Some(Clusters { machines: kind.size, groups: each, ranks: 1 })
    } else if each.is_multiple_of(span) {
        Some(Clusters { machines: 1, groups: each / kind.size, ranks: kind.size })
    } else if each.is_multiple_of(kind.stride) && span.is_multiple_of(each) {
        Some(Clusters { machines: span / each, groups: kind.stride, ranks: each / kind.stride })
    } else {
        None
    }
}

/// A kind of groups on the machines of a fabric, in whatever order.
struct Placed<'a> {
    kind: &'a Kind,
    fabric: &'a Fabric,
    clusters: Option<Clusters>,
}

impl Placed<'_> {
    /// What leaves one side of a cut at least, in parts of [`Kind::per`].
    ///
    /// Of clusters, all but one can be on one side: what is sent by a part of one is concave in the number of its machines
    /// there, so dividing two never sends less.
    fn least_out_of(&self, cut: &Cut) -> u128 {
        let kind = self.kind;
        let ranks = u64::from(self.fabric.rank_count());
        match self.clusters {
            Some(Clusters { machines, groups, ranks }) => {
                let inside = cut.machines as u64 % machines;
                u128::from(groups) * leaving(kind, inside * ranks, machines * ranks)
            }
            None if kind.size == ranks => leaving(kind, cut.ranks, ranks),
            None if cut.machines == 1 => in_a_row(kind, cut.ranks, ranks),
            None => 0,
        }
    }
}

/// What a group sends away from so many of its ranks.
fn leaving(kind: &Kind, inside: u64, all: u64) -> u128 {
    match kind.pattern {
        _ if inside == 0 || inside >= all => 0,
        Pattern::Ring | Pattern::Trees => u128::from(kind.per()),
        Pattern::AllToAll => u128::from(inside) * u128::from(all - inside),
    }
}

/// What so many ranks in a row send to others at least, wherever the row begins.
fn in_a_row(kind: &Kind, count: u64, ranks: u64) -> u128 {
    let span = kind.size.saturating_mul(kind.stride).max(1);
    // What begins one span later looks alike.
    let starts = (ranks - count.min(ranks)).min(span - 1);
    (0..=starts).map(|start| from_row(kind, span, start, count)).min().unwrap_or(0)
}

/// What the ranks from the first on send to others.
fn from_row(kind: &Kind, span: u64, first: u64, count: u64) -> u128 {
    let mut inside: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for rank in first..first.saturating_add(count) {
        *inside.entry((rank / span, rank % kind.stride.max(1))).or_default() += 1;
    }
    inside.values().map(|&inside| leaving(kind, inside, kind.size)).sum()
}
