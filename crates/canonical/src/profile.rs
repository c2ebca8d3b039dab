//! What a node sees of a part: how many others at each distance, and how they are joined.
//!
//! Refinement sees nothing in a regular graph. Most such graphs have no symmetry at all, and what is seen from afar tells
//! nearly all of their nodes apart, at a fraction of what it costs to single out each of them in turn.

use crate::budget::{Ended, Meter};
use crate::partition::Partition;
use crate::reduce::Part;
use crate::refine::mix;

/// Nodes times pairs, at most: some hundredths of a second.
const WORK_MAX: usize = 1 << 25;

/// By node: a fingerprint of what it sees, which does not depend on the numbers of the nodes. `None` if the part is large.
///
/// O(nodes · pairs).
pub(crate) fn profiles(part: &Part, partition: &Partition, meter: &mut Meter<'_>) -> Result<Option<Vec<u64>>, Ended> {
    let node_count = part.node_count();
    if node_count.saturating_mul(node_count + part.pair_count()) > WORK_MAX {
        return Ok(None);
    }
    let mut profiles = Vec::with_capacity(node_count);
    let mut distance = vec![u32::MAX; node_count];
    let mut queue: Vec<u32> = Vec::with_capacity(node_count);
    for first in (0_u32..).take(node_count) {
        meter.spend(node_count + part.pair_count())?;
        queue.clear();
        queue.push(first);
        distance[first as usize] = 0;
        let mut profile = 0_u64;
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            let here = distance[node as usize];
            let (mut nearer, mut beside) = (0_u64, 0_u64);
            for &(other, _) in part.around(node) {
                let there = &mut distance[other as usize];
                if *there == u32::MAX {
                    *there = here + 1;
                    queue.push(other);
                }
                nearer += u64::from(*there < here);
                beside += u64::from(*there == here);
            }
            let seen = mix(u64::from(here) << 32 | u64::from(partition.cell_of(node)), nearer << 32 | beside);
            profile = profile.wrapping_add(seen);
        }
        queue.iter().for_each(|&node| distance[node as usize] = u32::MAX);
        profiles.push(profile);
    }
    Ok(Some(profiles))
}
