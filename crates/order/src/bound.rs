//! What every order loads at least.

use std::collections::BTreeMap;

use crate::fabric::{Edge, Fabric, WHOLE, ratio};
use crate::job::{Job, Kind, Pattern};
use crate::levels::parts;

/// What the busiest links of all kinds carry at least, whatever the order.
///
/// Wherever its ranks are in the order, a machine sends a flow for each group that reaches beyond it. If all ranks are one
/// group, the same holds for the parts that levels of switches make.
pub(crate) fn least(fabric: &Fabric, job: &Job) -> u128 {
    let machines = fabric.machines().len();
    if machines < 2 {
        return 0;
    }
    let parts = if job.is_whole() { parts(fabric) } else { Vec::new() };
    let of_kind = |kind: &Kind| {
        let mut known: BTreeMap<u32, u128> = BTreeMap::new();
        let single = (0..machines).map(|machine| {
            let count = fabric.rank_counts()[machine];
            let amount = *known.entry(count).or_insert_with(|| least_amount(kind, count, fabric.rank_count()));
            least_out_of(fabric, &[machine], amount, kind)
        });
        let of_machines = single.max().unwrap_or(0);
        // A ring or a tree leaves every part of it at least once.
        let of_parts = parts.iter().map(|part| least_out_of(fabric, part, u128::from(kind.per()), kind));
        of_machines.max(of_parts.max().unwrap_or(0)).saturating_mul(kind.weight.into())
    };
    job.kinds.iter().map(of_kind).fold(0, u128::saturating_add)
}

/// What so many ranks in a row send to others at least, wherever the row begins.
fn least_amount(kind: &Kind, count: u32, ranks: u32) -> u128 {
    let span = kind.size.saturating_mul(kind.stride).max(1);
    // What begins one span later looks alike.
    let starts = u64::from(ranks - count.min(ranks)).min(span - 1);
    (0..=starts).map(|start| amount_out_of(kind, span, start, count)).min().unwrap_or(0)
}

/// What the ranks from the first on send to others.
fn amount_out_of(kind: &Kind, span: u64, first: u64, count: u32) -> u128 {
    let mut inside: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for rank in first..first.saturating_add(count.into()) {
        *inside.entry((rank / span, rank % kind.stride.max(1))).or_default() += 1;
    }
    let of = |&inside: &u64| match kind.pattern {
        _ if inside >= kind.size => 0,
        Pattern::Ring | Pattern::Trees => u128::from(kind.per()),
        Pattern::AllToAll => u128::from(inside) * u128::from(kind.size - inside),
    };
    inside.values().map(of).sum()
}

/// What such an amount loads at least, as it must leave some nodes or reach them.
fn least_out_of(fabric: &Fabric, nodes: &[usize], amount: u128, kind: &Kind) -> u128 {
    let mut is_in = vec![false; fabric.node_count()];
    nodes.iter().for_each(|&node| is_in[node] = true);
    if (0..fabric.machines().len()).all(|machine| is_in[machine]) {
        return 0;
    }
    let sum = |edges: &[Vec<usize>], far: fn(&Edge) -> usize| -> u128 {
        let all = nodes.iter().flat_map(|&node| &edges[node]).map(|&edge| &fabric.edges[edge]);
        all.filter(|edge| !is_in[far(edge)]).map(|edge| u128::from(edge.capacity)).sum()
    };
    let out = sum(&fabric.leaving, |edge| edge.to);
    let least = out.min(sum(&fabric.entering, |edge| edge.from));
    ratio(u128::from(WHOLE) * amount, least.saturating_mul(kind.per().into()))
}
