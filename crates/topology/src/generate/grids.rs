//! Networks of ranks alone: rings, meshes, tori, hypercubes, complete and complete bipartite graphs.

use crate::generate::arguments::{Arguments, count, value_error};
use crate::generate::error::ExpressionError;
use crate::generate::size::{Size, product, sum};
use crate::limits::TopologyLimits;
use crate::model::TopologyDraft;
use crate::units::{Capacity, Latency};

/// Rate of a link where nothing is said: a 200 Gbps port.
const DEFAULT_RATE: u64 = 25_000_000_000;

/// `ring:8`, `ring:8,dir=uni`: rank i to rank i+1 and, unless unidirectional, back. Two ranks share one link pair.
pub(super) fn ring(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let argument = arguments.bare()?;
    let ranks = count(argument, argument.value)?;
    let one_way = match arguments.find("dir") {
        None => false,
        Some(argument) => match argument.value {
            "uni" => true,
            "bi" => false,
            _ => return Err(value_error(argument, "`uni` or `bi`")),
        },
    };
    let rate = arguments.rate("bw", DEFAULT_RATE)?;
    if !one_way {
        return grid(&[ranks], Ends::Joined, rate, limits);
    }
    Size { ranks: ranks as u128, switches: 0, links: ranks as u128 }.check(limits)?;
    let mut draft = numbered(ranks);
    for from in 0..ranks {
        let to = (from + 1) % ranks;
        draft.add_link(from.to_string(), to.to_string(), rate, Latency::default());
    }
    Ok(draft)
}

/// `mesh:4x4`: a grid of any dimension.
pub(super) fn mesh(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    grid(&extents(arguments)?, Ends::Open, arguments.rate("bw", DEFAULT_RATE)?, limits)
}

/// `torus:4x4x4`: a grid of any dimension whose lines are rings.
pub(super) fn torus(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    grid(&extents(arguments)?, Ends::Joined, arguments.rate("bw", DEFAULT_RATE)?, limits)
}

/// `hypercube:6`: 2⁶ ranks; two are linked when their numbers differ in one bit.
pub(super) fn hypercube(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let argument = arguments.bare()?;
    let dimension = count(argument, argument.value)?;
    let rate = arguments.rate("bw", DEFAULT_RATE)?;
    let shift = u32::try_from(dimension).unwrap_or(u32::MAX);
    let ranks = 1_u128.checked_shl(shift).unwrap_or(u128::MAX);
    Size { ranks, switches: 0, links: ranks.saturating_mul(dimension as u128) }.check(limits)?;
    let ranks = 1_usize << dimension;
    let mut draft = numbered(ranks);
    for a in 0..ranks {
        for bit in 0..dimension {
            let b = a | (1 << bit);
            if a < b {
                draft.add_both(&a.to_string(), &b.to_string(), rate, Latency::default());
            }
        }
    }
    Ok(draft)
}

/// `complete:8`: every rank linked with every other.
pub(super) fn complete(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let argument = arguments.bare()?;
    let ranks = count(argument, argument.value)?;
    let rate = arguments.rate("bw", DEFAULT_RATE)?;
    Size { ranks: ranks as u128, switches: 0, links: product(&[ranks, ranks - 1]) }.check(limits)?;
    let mut draft = numbered(ranks);
    for a in 0..ranks {
        for b in a + 1..ranks {
            draft.add_both(&a.to_string(), &b.to_string(), rate, Latency::default());
        }
    }
    Ok(draft)
}

/// `bipartite:4x4`: every rank of the first part linked with every rank of the second, which is numbered after it.
pub(super) fn bipartite(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let &[left, right] = extents(arguments)?.as_slice() else {
        return Err(value_error(arguments.bare()?, "two sizes such as `4x4`"));
    };
    let rate = arguments.rate("bw", DEFAULT_RATE)?;
    let ranks = sum(&[left as u128, right as u128]);
    Size { ranks, switches: 0, links: product(&[2, left, right]) }.check(limits)?;
    let mut draft = numbered(left + right);
    for a in 0..left {
        for b in left..left + right {
            draft.add_both(&a.to_string(), &b.to_string(), rate, Latency::default());
        }
    }
    Ok(draft)
}

/// The bare value `4x4x4` as numbers ≥ 1.
fn extents(arguments: &Arguments<'_>) -> Result<Vec<usize>, ExpressionError> {
    let argument = arguments.bare()?;
    argument.value.split('x').map(|extent| count(argument, extent)).collect()
}

/// Ranks named by their number.
fn numbered(ranks: usize) -> TopologyDraft {
    let mut draft = TopologyDraft::default();
    (0..ranks).for_each(|rank| draft.add_compute(rank.to_string()));
    draft
}

/// What the lines of a grid do at their ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Open,
    Joined,
}

impl Ends {
    /// Link pairs on a line of so many ranks. Two ranks are linked once, whether the ends are joined or not.
    fn pairs(self, extent: usize) -> usize {
        if self == Self::Joined && extent > 2 { extent } else { extent - 1 }
    }
}

/// A grid of any dimension. Ids are coordinates, ranks row-major with the first dimension slowest.
fn grid(
    extents: &[usize],
    ends: Ends,
    rate: Capacity,
    limits: &TopologyLimits,
) -> Result<TopologyDraft, ExpressionError> {
    let ranks = product(extents);
    let pairs = extents.iter().map(|&extent| (ranks / extent as u128).saturating_mul(ends.pairs(extent) as u128));
    let pairs: Vec<u128> = pairs.collect();
    Size { ranks, switches: 0, links: sum(&pairs).saturating_mul(2) }.check(limits)?;
    let ids = coordinate_ids(extents);
    let mut draft = TopologyDraft::default();
    ids.iter().for_each(|id| draft.add_compute(id.as_str()));
    let mut stride = ids.len();
    for &extent in extents {
        stride /= extent;
        for (rank, id) in ids.iter().enumerate() {
            let coordinate = rank / stride % extent;
            let next = if coordinate + 1 < extent { rank + stride } else { rank - coordinate * stride };
            if coordinate < ends.pairs(extent) {
                draft.add_both(id, &ids[next], rate, Latency::default());
            }
        }
    }
    Ok(draft)
}

/// `120` while every extent is at most ten, else `1.2.0`, in row-major order.
fn coordinate_ids(extents: &[usize]) -> Vec<String> {
    let separator = if extents.iter().all(|&extent| extent <= 10) { "" } else { "." };
    let mut ids = vec![String::new()];
    for (dimension, &extent) in extents.iter().enumerate() {
        let separator = if dimension == 0 { "" } else { separator };
        let longer = |id: String| (0..extent).map(move |coordinate| format!("{id}{separator}{coordinate}"));
        ids = ids.into_iter().flat_map(longer).collect();
    }
    ids
}
