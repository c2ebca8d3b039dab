//! Dragonflies of ranks alone: groups that are complete, and one link between every two groups.

use crate::draft::TopologyDraft;
use crate::generate::arguments::{Arguments, value_error};
use crate::generate::catalogue::two_sizes;
use crate::generate::error::ExpressionError;
use crate::generate::size::Size;
use crate::limits::TopologyLimits;
use crate::units::Latency;

/// Rate of a link within a group where nothing is said.
const LOCAL_RATE: u64 = 400_000_000_000;
/// Rate of a link between groups where nothing is said.
const GLOBAL_RATE: u64 = 200_000_000_000;

/// `dragonfly:4x5`: five groups of four ranks, numbered group by group. Those of a group are all linked with `local`, and
/// rank `a` of group `g` with `global` to group `(g + 1 + a)` modulo the number of groups, the last ranks of a group to
/// none where it has more ranks than there are other groups.
///
/// From group `h = g + 1 + a` it is rank `a'` that leads to `g`, with `h + 1 + a' = g` modulo the number of groups `G`: so
/// `a' = G − 2 − a`.
pub(super) fn dragonfly(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let [ranks, groups] = two_sizes(arguments)?;
    if ranks < groups - 1 {
        return Err(value_error(arguments.bare()?, "AxG with at least G-1 ranks in a group, one for each other group"));
    }
    let (wide_ranks, wide_groups) = (u128::from(ranks), u128::from(groups));
    let nodes = wide_ranks.saturating_mul(wide_groups);
    let inside = nodes.saturating_mul(wide_ranks - 1);
    let links = inside.saturating_add(wide_groups.saturating_mul(wide_groups - 1));
    Size { ranks: nodes, switches: 0, links }.check(limits)?;
    let (local, global) = (arguments.rate("local", LOCAL_RATE)?, arguments.rate("global", GLOBAL_RATE)?);
    let id = |group: u64, rank: u64| (group * ranks + rank).to_string();
    let mut draft = TopologyDraft::default();
    for group in 0..groups {
        (0..ranks).for_each(|rank| draft.add_compute(id(group, rank)));
    }
    // In each group a link between every two ranks, and from each rank one to another group, added from the lower group.
    for group in 0..groups {
        for rank in 0..ranks {
            for other in rank + 1..ranks {
                draft.add_both(&id(group, rank), &id(group, other), local, Latency::default());
            }
            let across = (group + 1 + rank) % groups;
            if rank + 1 < groups && group < across {
                draft.add_both(&id(group, rank), &id(across, groups - 2 - rank), global, Latency::default());
            }
        }
    }
    Ok(draft)
}
