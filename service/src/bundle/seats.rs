//! Which ranks of the network a job's communicators have, and on which devices they are.

use std::sync::Arc;

use canopy_plan::oneccl::device_list;
use canopy_planner::PlanError;
use canopy_proto::v1;
use canopy_topology::{GroupError, Participants, Rank, Slot, Topology, participants};
use canopy_wire::slots_on_the_wire;

/// The ranks of a communicator.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seat {
    /// In the topology, in the order of its own ranks; empty: all of them.
    pub(super) members: Vec<u32>,
    /// Where they are; `None`: the request has no placement.
    pub(super) places: Option<Places>,
}

/// Some of the devices of a placement. Communicators share the placement, which may name over a hundred thousand.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Places {
    slots: Arc<[Slot]>,
    /// By rank: the position of its slot.
    positions: Arc<[u32]>,
}

impl Places {
    /// Equal for two communicators of a job exactly if all their ranks are on the same devices.
    pub(super) fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// The devices of some of the ranks.
    pub(super) fn of(&self, ranks: &[Rank]) -> Self {
        let positions = ranks.iter().filter_map(|rank| self.positions.get(rank.index()).copied());
        Self { slots: Arc::clone(&self.slots), positions: positions.collect() }
    }

    /// The devices by rank. O(ranks).
    fn slots(&self) -> Vec<Slot> {
        self.positions.iter().filter_map(|&position| self.slots.get(position as usize).cloned()).collect()
    }

    pub(super) fn on_the_wire(&self) -> v1::Placement {
        slots_on_the_wire(&self.slots())
    }

    /// As files state them.
    pub(super) fn text(&self) -> String {
        device_list(&self.slots())
    }
}

/// The ranks of communicators, which are numbers of ranks of the topology, or of those that are placed.
///
/// # Errors
/// A placement that is not one of this topology; a communicator with a rank that is not placed.
///
/// O(nodes + slots log slots + ranks).
pub(super) fn seats(
    topology: &Topology,
    communicators: &[v1::BundleCommunicator],
    placed: Option<&[Slot]>,
) -> Result<Vec<Seat>, PlanError> {
    let Some(placed) = placed else {
        let seat = |one: &v1::BundleCommunicator| Seat { members: one.ranks.clone(), places: None };
        return Ok(communicators.iter().map(seat).collect());
    };
    let Participants { members: chosen, slots } = participants(topology, None, Some(placed))?;
    let slots: Arc<[Slot]> = slots.unwrap_or_default().into();
    let count = u32::try_from(slots.len()).unwrap_or(u32::MAX);
    let all: Arc<[u32]> = (0..count).collect();
    // Without a choice of ranks, each has the number of its slot.
    let member = |rank: u32| match &chosen {
        None => rank,
        Some(chosen) => chosen.get(rank as usize).map_or(u32::MAX, |member| member.number()),
    };
    let seat = |one: &v1::BundleCommunicator| {
        if one.ranks.is_empty() {
            let members = if chosen.is_some() { all.iter().copied().map(member).collect() } else { Vec::new() };
            let places = Places { slots: Arc::clone(&slots), positions: Arc::clone(&all) };
            return Ok(Seat { members, places: Some(places) });
        }
        if let Some((position, &rank)) = one.ranks.iter().enumerate().find(|&(_, &rank)| rank >= count) {
            return Err(PlanError::Group(GroupError::NoSuchRank { position, rank, rank_count: count.max(1) }));
        }
        let places = Places { slots: Arc::clone(&slots), positions: one.ranks.as_slice().into() };
        Ok(Seat { members: one.ranks.iter().copied().map(member).collect(), places: Some(places) })
    };
    communicators.iter().map(seat).collect()
}

#[cfg(test)]
mod tests {
    use canopy_topology::{PlacementError, TopologyLimits, generate};

    use super::*;

    fn slots(on: &[(&str, u32)]) -> Vec<Slot> {
        on.iter().map(|&(node, device)| Slot { node: node.to_owned(), device }).collect()
    }

    fn found(expression: &str, ranks: &[&[u32]], placed: &[(&str, u32)]) -> Result<Vec<(Vec<u32>, String)>, PlanError> {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let one = |ranks: &&[u32]| v1::BundleCommunicator { name: String::new(), ranks: ranks.to_vec() };
        let communicators: Vec<v1::BundleCommunicator> = ranks.iter().map(one).collect();
        let seats = seats(&topology, &communicators, Some(&slots(placed)))?;
        Ok(seats.into_iter().map(|seat| (seat.members, seat.places.unwrap().text())).collect())
    }

    #[test]
    fn communicators_have_the_devices_of_their_ranks() {
        let placed = [("a", 0), ("a", 1), ("b", 0), ("b", 1)];
        let own = found("ring:4", &[&[], &[3, 0]], &placed).unwrap();
        assert_eq!(own, [(vec![], "a:0,a:1,b:0,b:1".to_owned()), (vec![3, 0], "b:1,a:0".to_owned())]);
    }

    /// Boxes that the slots name: ranks of communicators are those that are placed.
    #[test]
    fn a_placement_that_chooses_ranks_numbers_them() {
        let placed = [("b1", 0), ("b1", 1), ("b0", 2)];
        let chosen = found("dgx-a100:boxes=2", &[&[], &[2, 0]], &placed).unwrap();
        assert_eq!(chosen[0], (vec![8, 9, 2], "b1:0,b1:1,b0:2".to_owned()));
        assert_eq!(chosen[1], (vec![2, 8], "b0:2,b1:0".to_owned()));
    }

    #[test]
    fn ranks_that_are_not_placed_are_refused() {
        let placed = [("b1", 0), ("b1", 1)];
        let error = found("dgx-a100:boxes=2", &[&[], &[0, 2]], &placed).unwrap_err();
        assert!(
            matches!(error, PlanError::Group(GroupError::NoSuchRank { position: 1, rank: 2, rank_count: 2 })),
            "{error}"
        );
        let few = found("ring:4", &[&[]], &placed).unwrap_err();
        assert!(matches!(few, PlanError::Placement(PlacementError::Count { found: 2, expected: 4 })), "{few}");
    }

    #[test]
    fn survivors_keep_their_devices() {
        let topology = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
        let placed = slots(&[("a", 0), ("a", 1), ("b", 0), ("b", 1)]);
        let pair = v1::BundleCommunicator { name: String::new(), ranks: vec![3, 0, 1] };
        let seats = seats(&topology, &[pair], Some(&placed)).unwrap();
        let places = seats[0].places.as_ref().unwrap().of(&[Rank::new(0), Rank::new(2)]);
        assert_eq!((places.text().as_str(), places.positions()), ("b:1,a:1", &[3, 1][..]));
        let on_the_wire = |node: &str| v1::RankSlot { node: node.to_owned(), device: 1, count: Some(1) };
        assert_eq!(places.on_the_wire().slots, [on_the_wire("b"), on_the_wire("a")]);
    }
}
