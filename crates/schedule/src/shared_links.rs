//! Which part of each link classes of collectives take that share a network.

use std::collections::BTreeMap;

use canopy_topology::{LinkIndex, NodeIndex, Topology};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{ToPrimitive as _, Zero as _};

use crate::shared_time::{SharedPart, SharedTimeError, Sums, ends};

/// All links from one node to another, as one, while all collectives run at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLink {
    /// Where it begins.
    pub from: NodeIndex,
    /// Where it ends.
    pub to: NodeIndex,
    /// How many parallel links it is.
    pub links: usize,
    /// Bytes per second of all of them.
    pub bytes_per_sec: u128,
    /// By class, billionths of its capacity over the time of all collectives, rounded down: together at most a billion.
    pub billionths: Vec<u32>,
    /// Whether it is busy all the time, exactly.
    pub is_busiest: bool,
}

/// By link of the network, in order of its ends, the part of it that each class takes over the
/// [`shared_time`](crate::shared_time) of all parts.
///
/// * **In.** Parts with their classes, numbers below `classes`, and graphs that [`check`](crate::check) accepted for their
///   networks.
/// * **Errors.** [`SharedTimeError`].
/// * **Cost.** That of [`shared_time`](crate::shared_time), and O(links · classes).
pub fn shared_links(
    network: &Topology,
    parts: &[(usize, SharedPart<'_>)],
    classes: usize,
) -> Result<Vec<SharedLink>, SharedTimeError> {
    let sums = Sums::of(network, parts, classes)?;
    let longest = sums.longest().filter(|longest| !longest.is_zero()).ok_or(SharedTimeError::Nothing)?;
    let mut found: BTreeMap<(NodeIndex, NodeIndex), SharedLink> = BTreeMap::new();
    for (index, link) in (0..).map(LinkIndex::new).zip(network.links()) {
        let shared = found.entry((link.from, link.to)).or_insert_with(|| {
            let room = sums.room.get(&ends(network, index)).map(|room| &longest * room);
            let bytes = sums.bytes.get(&ends(network, index));
            let parts: Vec<BigRational> = match (room, bytes) {
                (Some(room), Some(bytes)) => bytes.iter().map(|bytes| bytes / &room).collect(),
                _ => vec![BigRational::zero(); classes],
            };
            SharedLink {
                from: link.from,
                to: link.to,
                links: 0,
                bytes_per_sec: 0,
                billionths: parts.iter().map(billionths).collect(),
                is_busiest: parts.iter().sum::<BigRational>() == BigRational::from_integer(BigInt::from(1)),
            }
        });
        shared.links += 1;
        shared.bytes_per_sec += u128::from(link.capacity.bytes_per_sec());
    }
    Ok(found.into_values().collect())
}

/// A part of at most one, rounded down.
fn billionths(part: &BigRational) -> u32 {
    (part * BigInt::from(1_000_000_000)).to_integer().to_u32().unwrap_or(1_000_000_000)
}
