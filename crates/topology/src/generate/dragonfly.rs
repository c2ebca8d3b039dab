//! Dragonflies of ranks alone: groups that are complete, and links between every two groups.

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
/// `dragonfly:3x4,h=2`: each rank has two global links, and every two groups share `A·h/(G − 1)` of them, for `A` ranks
/// in each of `G` groups. With `h = G − 1` rank `a` of each group is linked with rank `a` of all others: a grid with
/// fully joined lines. Port `p` of a group, which is one of rank `⌊p/h⌋`, leads to group `g + 1 + o`, where `o` is `p`
/// modulo `G − 1`. From there the way back is `G − 2 − o`, by the port as many rounds of `G − 1` on.
///
/// Source: Kim, Dally, Scott, Abts, ISCA 2008, §3.1, with routers as ranks; Pham 2026, figures 2.4 and 2.5.
pub(super) fn dragonfly(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let [ranks, groups] = two_sizes(arguments)?;
    let (wide_ranks, wide_groups) = (u128::from(ranks), u128::from(groups));
    let global = Global::of(arguments, ranks, groups)?;
    let nodes = wide_ranks.saturating_mul(wide_groups);
    let inside = nodes.saturating_mul(wide_ranks - 1);
    let across = wide_groups.saturating_mul(wide_groups - 1).saturating_mul(global.rounds.into());
    Size { ranks: nodes, switches: 0, links: inside.saturating_add(across) }.check(limits)?;
    let (local, rate) = (arguments.rate("local", LOCAL_RATE)?, arguments.rate("global", GLOBAL_RATE)?);
    let id = |group: u64, rank: u64| (group * ranks + rank).to_string();
    let mut draft = TopologyDraft::default();
    for group in 0..groups {
        (0..ranks).for_each(|rank| draft.add_compute(id(group, rank)));
    }
    // In each group a link between every two ranks, and from each port one to another group, added from the lower
    // group.
    for group in 0..groups {
        for rank in 0..ranks {
            for other in rank + 1..ranks {
                draft.add_both(&id(group, rank), &id(group, other), local, Latency::default());
            }
        }
        for (round, offset) in (0..global.rounds).flat_map(|round| (0..groups - 1).map(move |offset| (round, offset))) {
            let across = (group + 1 + offset) % groups;
            if group < across {
                let rank_of = |offset: u64| (round * (groups - 1) + offset) / global.ports;
                let (here, there) = (rank_of(offset), rank_of(groups - 2 - offset));
                draft.add_both(&id(group, here), &id(across, there), rate, Latency::default());
            }
        }
    }
    Ok(draft)
}

/// Links between groups.
struct Global {
    /// Of each rank that has any.
    ports: u64,
    /// Of every two groups.
    rounds: u64,
}

impl Global {
    fn of(arguments: &Arguments<'_>, ranks: u64, groups: u64) -> Result<Self, ExpressionError> {
        let others = groups - 1;
        let Some(argument) = arguments.find("h") else {
            let expected = "AxG with at least G-1 ranks in a group, one for each other group; or state `h`";
            let is_enough = ranks >= others;
            return if is_enough {
                Ok(Self { ports: 1, rounds: 1 })
            } else {
                Err(value_error(arguments.bare()?, expected))
            };
        };
        let ports = arguments.number("h", None)?;
        let all = u128::from(ranks) * u128::from(ports);
        // Where they are whole, as many as ranks at most.
        let rounds =
            (others > 0 && ports <= others && all.is_multiple_of(others.into())).then(|| all / u128::from(others));
        match rounds.and_then(|rounds| u64::try_from(rounds).ok()) {
            Some(rounds) => Ok(Self { ports, rounds }),
            None => Err(value_error(argument, "whole numbers up to G-1 for which G-1 divides A·h")),
        }
    }
}
