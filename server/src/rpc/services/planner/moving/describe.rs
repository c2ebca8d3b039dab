//! What is sent of a stream's network and of a plan.

use canopy_moving::{Fabric, Hop, Network, Part, Route};
use canopy_planner::TopologyKey;
use canopy_proto::v1::plan_moving_event::Event;
use canopy_proto::v1::{MovingPlan, MovingRelay, MovingTiers, PlanMovingEvent};
use canopy_wire as wire;
use canopy_wire::fraction;

use crate::rpc::shared::known_faults::AppliedFaults;
use crate::rpc::shared::parts::Parts;

/// An event, encoded where it is made: a large plan takes some milliseconds.
pub(super) fn event(event: Event) -> Parts {
    Parts::of(&PlanMovingEvent { event: Some(event) })
}

/// What was found of a network.
pub(super) fn tiers(network: &Network, applied: &AppliedFaults) -> MovingTiers {
    let Network { tiers, topology, lost, dead_nics } = network;
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    MovingTiers {
        topology: Some(wire::topology_summary(topology, &TopologyKey::of(topology))),
        ranks: number(tiers.ranks()),
        box_size: number(tiers.box_size()),
        rails: tiers.fabric() == Fabric::Rails,
        lost_ranks: lost.clone(),
        dead_nics: dead_nics.clone(),
        warnings: applied.warnings().collect(),
    }
}

/// A plan with its time and what no plan beats.
pub(super) fn plan(
    (number, skipped): (u64, u64),
    parts: &[Part],
    (seconds, least): (impl std::fmt::Display, impl std::fmt::Display),
) -> MovingPlan {
    let list = |of: fn(&Part) -> u32| parts.iter().map(of).collect();
    MovingPlan {
        number,
        from: list(|part| part.from),
        to: list(|part| part.to),
        leaves: list(|part| match part.route {
            Route::Inside | Route::Relayed(_) => part.from,
            Route::Across { leaves, .. } => leaves,
        }),
        enters: list(|part| match part.route {
            Route::Inside | Route::Relayed(_) => part.to,
            Route::Across { enters, .. } => enters,
        }),
        bytes: parts.iter().map(|part| part.bytes).collect(),
        seconds: fraction(&seconds),
        seconds_bound: fraction(&least),
        skipped,
        relayed: (0..).zip(parts).filter_map(relayed).collect(),
    }
}

/// The hops of a part that relays otherwise than in the boxes of its ends.
fn relayed((number, part): (u32, &Part)) -> Option<MovingRelay> {
    let Route::Relayed(hops) = &part.route else { return None };
    let rank = |hop: &Hop| match *hop {
        Hop::Inside(rank) | Hop::Across(rank) => rank,
    };
    Some(MovingRelay {
        part: number,
        ranks: hops.iter().map(rank).collect(),
        by_nic: hops.iter().map(|hop| matches!(hop, Hop::Across(_))).collect(),
    })
}
