//! Whether a cached plan is for the caller's devices.

use canopy_proto::v1::{Placement, Plan};
use canopy_topology::Slot;
use canopy_wire as wire;
use canopy_wire::RequestError;

use crate::failure::{CallFailure, PlanFailure};

/// Refuses a plan for other devices than those given, naming the first rank that differs; names of machines may be short
/// on one side. Nothing is asked where nothing is given. O(ranks).
pub(in crate::rpc) fn require(plan: &Plan, given: Option<Placement>) -> Result<(), CallFailure> {
    let slots =
        |stated: &Placement| wire::slots(stated).map_err(|error| CallFailure::Plan(PlanFailure::Request(error)));
    let Some(given) = given.as_ref().map(slots).transpose()? else { return Ok(()) };
    let Some(first) = given.first() else {
        let remedy = "give a slot for each rank, or leave out `placement`";
        return Err(CallFailure::Plan(PlanFailure::Request(RequestError::Missing {
            field: "placement.slots",
            remedy,
        })));
    };
    let Some(has) = plan.rank_map.as_ref().map(slots).transpose()? else {
        return Err(CallFailure::NoRankMap { plan: plan.name.clone(), wanted: first.clone() });
    };
    let is_same = |rank: &usize| match (has.get(*rank), given.get(*rank)) {
        (Some(has), Some(given)) => Slot::is_same_device(has, given),
        _ => false,
    };
    match (0..has.len().max(given.len())).find(|rank| !is_same(rank)) {
        None => Ok(()),
        Some(rank) => {
            let (has, wanted) = (has.get(rank).cloned(), given.get(rank).cloned());
            Err(CallFailure::RankMap { plan: plan.name.clone(), rank, has, wanted })
        }
    }
}

#[cfg(test)]
mod tests {
    use canopy_proto::v1::RankSlot;

    use super::*;

    fn placement(slots: &[(&str, u32)]) -> Placement {
        let slot = |&(node, device): &(&str, u32)| RankSlot { node: node.to_owned(), device, count: None };
        Placement { slots: slots.iter().map(slot).collect() }
    }

    fn differs_at(has: &[(&str, u32)], given: &[(&str, u32)]) -> Option<usize> {
        let plan = Plan { rank_map: Some(placement(has)), ..Plan::default() };
        match require(&plan, Some(placement(given))) {
            Ok(()) => None,
            Err(CallFailure::RankMap { rank, .. }) => Some(rank),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_first_rank_that_differs_is_named() {
        let has = [("a.x", 0), ("a.x", 1), ("b.x", 0)];
        assert_eq!(differs_at(&has, &has), None);
        assert_eq!(differs_at(&has, &[("a", 0), ("a.x", 1), ("b", 0)]), None);
        assert_eq!(differs_at(&has, &[("a", 0), ("b", 0), ("a", 1)]), Some(1));
        assert_eq!(differs_at(&has, &[("a", 0), ("a", 1), ("b", 1)]), Some(2));
        assert_eq!(differs_at(&has, &[("a", 0), ("a", 1)]), Some(2));
        assert_eq!(differs_at(&has, &[("a", 0), ("a", 1), ("b", 0), ("b", 1)]), Some(3));
    }

    #[test]
    fn a_plan_without_a_map_is_for_nobody_who_asks() {
        let plan = Plan::default();
        assert!(require(&plan, None).is_ok());
        assert!(matches!(require(&plan, Some(placement(&[("a", 0)]))), Err(CallFailure::NoRankMap { .. })));
        assert!(matches!(require(&plan, Some(Placement::default())), Err(CallFailure::Plan(_))));
    }
}
