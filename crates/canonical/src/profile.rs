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

/// Nodes of a cell that are looked at to see whether all look alike.
const SAMPLE: usize = 4;

/// By node: a fingerprint of what it sees, which does not depend on the numbers of the nodes. `None` if the part is large.
///
/// O(nodes · pairs).
pub(crate) fn profiles(part: &Part, partition: &Partition, meter: &mut Meter<'_>) -> Result<Option<Vec<u64>>, Ended> {
    if is_large(part) {
        return Ok(None);
    }
    let mut view = View::of(part, partition);
    let nodes = (0_u32..).take(part.node_count());
    nodes.map(|node| view.profile(node, meter)).collect::<Result<_, _>>().map(Some)
}

/// Whether some nodes of the largest cell see the same, so that profiles of all are hardly worth their cost. O(pairs).
pub(crate) fn look_alike(part: &Part, partition: &Partition, meter: &mut Meter<'_>) -> Result<bool, Ended> {
    let Some(cell) = partition.cells().max_by_key(|&cell| partition.size_of(cell)) else { return Ok(true) };
    let members = partition.members(cell);
    let mut view = View::of(part, partition);
    let sample = members.iter().step_by(members.len().div_ceil(SAMPLE).max(1));
    let profiles = sample.map(|&node| view.profile(node, meter)).collect::<Result<Vec<u64>, _>>()?;
    Ok(profiles.windows(2).all(|two| two[0] == two[1]))
}

fn is_large(part: &Part) -> bool {
    part.node_count().saturating_mul(part.node_count() + part.pair_count()) > WORK_MAX
}

/// A part as one node after the other sees it.
struct View<'a> {
    part: &'a Part,
    partition: &'a Partition,
    /// By node, between two looks: none.
    distance: Vec<u32>,
    queue: Vec<u32>,
}

impl<'a> View<'a> {
    fn of(part: &'a Part, partition: &'a Partition) -> Self {
        let count = part.node_count();
        Self { part, partition, distance: vec![u32::MAX; count], queue: Vec::with_capacity(count) }
    }

    fn profile(&mut self, first: u32, meter: &mut Meter<'_>) -> Result<u64, Ended> {
        let Self { part, partition, distance, queue } = self;
        meter.spend(part.node_count() + part.pair_count())?;
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
        Ok(profile)
    }
}
