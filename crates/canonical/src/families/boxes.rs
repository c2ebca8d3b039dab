//! Boxes of GPUs joined by a fabric: which DGX, MI and rail-optimised clusters would have such counts.

use canopy_topology::Capacity;

use crate::families::summary::{Rates, Summary};

/// 10⁹ bytes per second.
const GB: u64 = 1_000_000_000;

/// `dgx-a100:boxes=2,gpus=8`.
pub(crate) fn dgx_a100(summary: &Summary<'_>) -> Vec<String> {
    dgx(summary, 300 * GB, 25 * GB)
}

/// `dgx-h100:boxes=2,gpus=8`.
pub(crate) fn dgx_h100(summary: &Summary<'_>) -> Vec<String> {
    dgx(summary, 450 * GB, 50 * GB)
}

/// `dgx-b200:boxes=2,gpus=8`, and racks of 72.
pub(crate) fn dgx_b200(summary: &Summary<'_>) -> Vec<String> {
    dgx(summary, 900 * GB, 50 * GB)
}

/// `dgx-b300:boxes=2,gpus=8`, and racks of 72.
pub(crate) fn dgx_b300(summary: &Summary<'_>) -> Vec<String> {
    dgx(summary, 900 * GB, 100 * GB)
}

/// `mi300x:boxes=2,gpus=8`.
pub(crate) fn mi300x(summary: &Summary<'_>) -> Vec<String> {
    meshes(summary, 64 * GB, 50 * GB)
}

/// `mi355x:boxes=2,gpus=8`.
pub(crate) fn mi355x(summary: &Summary<'_>) -> Vec<String> {
    meshes(summary, 76_800_000_000, 50 * GB)
}

/// Boxes of GPUs each joined with every other; one box alone is a complete graph.
fn meshes(summary: &Summary<'_>, inside: u64, outside: u64) -> Vec<String> {
    let among: usize = summary.among_ranks.values().sum();
    let gpus = 1 + among / summary.ranks.max(1);
    let fits = summary.switches == 1
        && summary.ranks.is_multiple_of(gpus)
        && summary.among_switches.is_empty()
        && has_each(&summary.among_ranks, &[inside], summary.ranks * (gpus - 1))
        && has_each(&summary.to_switches, &[outside], summary.ranks);
    if fits { vec![format!("boxes={},gpus={gpus}", summary.ranks / gpus)] } else { Vec::new() }
}

/// One switch is a box by itself; of several, one is the fabric.
fn dgx(summary: &Summary<'_>, inside: u64, outside: u64) -> Vec<String> {
    let boxes = summary.switches.saturating_sub(1).max(1);
    let rates: &[u64] = if summary.switches == 1 { &[inside] } else { &[inside, outside] };
    let fits = summary.among_ranks.is_empty()
        && summary.among_switches.is_empty()
        && summary.ranks.is_multiple_of(boxes)
        && has_each(&summary.to_switches, rates, summary.ranks);
    if fits { vec![format!("boxes={boxes},gpus={}", summary.ranks / boxes)] } else { Vec::new() }
}

/// Whether there are so many links of each of these rates, and no others.
fn has_each(found: &Rates, rates: &[u64], count: usize) -> bool {
    let is_one = |(rate, &links): (&Capacity, &usize)| rates.contains(&rate.bytes_per_sec()) && links == count;
    found.len() == rates.len() && found.iter().all(is_one)
}

/// `mi250:boxes=2,gpus=16` and `gpus=8`. Which links join the GPUs of a box is left to the generator.
pub(crate) fn mi250(summary: &Summary<'_>) -> Vec<String> {
    let sizes = [16, 8].into_iter().filter(|&gpus| summary.ranks.is_multiple_of(gpus));
    let rates: Vec<u64> = summary.among_ranks.keys().map(|rate| rate.bytes_per_sec()).collect();
    let sizes = sizes.filter(|_| rates == [50 * GB, 100 * GB, 200 * GB] && summary.among_switches.is_empty());
    let boxes = sizes.map(|gpus| (summary.ranks / gpus, gpus));
    let fitting = boxes.filter(|&(boxes, _)| match (boxes, summary.switches) {
        (1, 0) => true,
        (2.., 1) => has_each(&summary.to_switches, &[16 * GB], summary.ranks),
        _ => false,
    });
    fitting.map(|(boxes, gpus)| format!("boxes={boxes},gpus={gpus}")).collect()
}

/// `rail:boxes=4,gpus=8,nv=450GB/s,nic=50GB/s`, with `spine=` where rails are joined.
///
/// Without a spine, rails and boxes cannot be told apart but by their rates: the faster links are those within boxes. Where
/// all are alike there are at least as many boxes as rails. One box has no rails, so that other rates are none of its.
pub(crate) fn rail(summary: &Summary<'_>) -> Vec<String> {
    let (ranks, switches) = (summary.ranks, summary.switches);
    let rates: Vec<Capacity> = summary.to_switches.keys().copied().collect();
    let (&[slow, fast] | &[slow @ fast]) = rates.as_slice() else { return Vec::new() };
    if !summary.among_ranks.is_empty() {
        return Vec::new();
    }
    let links: usize = summary.to_switches.values().sum();
    match (switches, summary.among_switches.first_key_value()) {
        (1, None) if links == ranks => vec![format!("boxes=1,gpus={ranks},nv={fast}")],
        (_, None) if links == 2 * ranks => {
            let sides = summary.sides_of_switches();
            let of_rate = |rate| sides.iter().filter(|side| side.to_ranks == Some((rate, rate))).count();
            let orientations = match slow == fast {
                true => pairs(ranks, switches).into_iter().map(|sizes| (sizes, fast, slow)).collect(),
                false => {
                    let (faster, slower) = (of_rate(fast), of_rate(slow));
                    vec![((faster, slower), fast, slow), ((slower, faster), slow, fast)]
                }
            };
            let fitting = orientations.into_iter().filter(|&((boxes, gpus), ..)| boxes > 1 && boxes * gpus == ranks);
            let named = |((boxes, gpus), nv, nic)| format!("boxes={boxes},gpus={gpus},nv={nv},nic={nic}");
            fitting.map(named).collect()
        }
        (_, Some((&spine, &count))) if links == 2 * ranks && summary.among_switches.len() == 1 => {
            // Rails are the switches that have links to ranks and to the spine.
            let rails = count / 2;
            let sides = summary.sides_of_switches();
            let nic = sides.iter().filter(|side| side.has_switches).find_map(|side| side.to_ranks);
            let Some((nic, _)) = nic else { return Vec::new() };
            let nv = if nic == slow { fast } else { slow };
            let boxes = switches.saturating_sub(rails + 1);
            let fits = boxes > 1 && boxes * rails == ranks;
            if fits { vec![format!("boxes={boxes},gpus={rails},nv={nv},nic={nic},spine={spine}")] } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

/// The two numbers, greater first, that have this product and this sum.
fn pairs(product: usize, sum: usize) -> Option<(usize, usize)> {
    let smaller =
        (1..=product.isqrt()).rev().find(|smaller| smaller.saturating_mul(sum.saturating_sub(*smaller)) == product);
    smaller.map(|smaller| (sum - smaller, smaller))
}
