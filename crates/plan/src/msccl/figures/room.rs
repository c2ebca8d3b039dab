//! How many instances of its plan a file has room for.

use super::{Figure, ProgramFigures};
use crate::msccl::profile::Profile;

/// How many instances of its plan a file could hold, and what stops more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceRoom {
    /// Most instances that keep every limit and whose thread blocks are resident at once; at least those of the file.
    pub instances_max: u32,
    /// The limit that one more would exceed, and what that would need.
    pub stopped_by: Figure,
}

impl ProgramFigures {
    /// Room for instances, from what those of this file need each.
    ///
    /// All instances need the same blocks, steps and channels, so what a file with another number of them needs is known,
    /// as long as its blocks are arranged alike; waits for scratch of other instances may add a few steps. Lowering with
    /// [`Instances::Auto`](crate::Instances::Auto) tries the files themselves, and all arrangements.
    ///
    /// * **In.** The instances of the file, ≥ 1, and the figures of it for the same profile.
    /// * **Cost.** O(1).
    pub fn room(&self, instances: u32, rank_count: u32, profile: Profile) -> InstanceRoom {
        let limits = profile.limits();
        let instances = instances.max(1);
        let blocks = match limits.blocks_resident < limits.blocks_per_rank {
            true => {
                Figure { name: "thread blocks resident at once", limit: limits.blocks_resident.into(), ..self.blocks }
            }
            false => self.blocks,
        };
        // What grows with each instance, counted from what does not: offsets and ids from −1, nodes from the ranks.
        let growing = [
            (self.nodes, 1 + i128::from(rank_count)),
            (self.offset, -1),
            (blocks, 0),
            (self.awaited_block, if self.awaited_block.need == 0 { 0 } else { -1 }),
            (self.channels, 0),
        ];
        let needed = |(figure, fixed): (Figure, i128), count: u32| {
            let all = (i128::from(figure.need) - fixed).max(0);
            u64::try_from(fixed + (all * i128::from(count)).div_euclid(instances.into())).unwrap_or(u64::MAX)
        };
        let most = |growth: (Figure, i128)| {
            let (figure, fixed) = growth;
            let all = (i128::from(figure.need) - fixed).max(0);
            let room = i128::from(figure.limit) + 1 - fixed;
            // The greatest count with ⌊all · count ÷ instances⌋ < room.
            let most = if all == 0 { i128::from(u32::MAX) } else { (room * i128::from(instances) - 1).div_euclid(all) };
            u32::try_from(most.clamp(0, i128::from(u32::MAX) - 1)).unwrap_or(u32::MAX - 1)
        };
        let tightest = growing.into_iter().min_by_key(|&growth| most(growth)).unwrap_or((self.channels, 0));
        let instances_max = most(tightest).max(instances);
        let stopped_by = Figure { need: needed(tightest, instances_max.saturating_add(1)), ..tightest.0 };
        InstanceRoom { instances_max, stopped_by }
    }
}
