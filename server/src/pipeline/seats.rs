//! Who of a network takes part, and which devices they are.

use canopy_proto::v1;
use canopy_topology::{Rank, Seating, Slot, Topology, Transit, renumbering, seating};

use crate::failure::PlanFailure;
use crate::order::Order;

/// The network as those see it who take part, and where they are.
pub(super) struct Seats {
    pub(super) topology: Topology,
    /// By rank; none: nobody says.
    pub(super) rank_map: Option<Vec<Slot>>,
}

/// Takes out of a network who an order lists or places. Warns where ranks get new numbers, and where nobody says which
/// devices they are.
pub(super) fn take(whole: Topology, order: &Order, warnings: &mut Vec<v1::Warning>) -> Result<Seats, PlanFailure> {
    let mut warn = |code: &str, text: String| warnings.push(v1::Warning { code: code.to_owned(), text });
    let listed = order.group.as_ref().filter(|group| !group.ranks.is_empty());
    let listed: Option<Vec<Rank>> = listed.map(|group| group.ranks.iter().copied().map(Rank::new).collect());
    let Seating { members, slots } = seating(&whole, listed.as_deref(), order.placement.as_deref())?;
    let topology = match members {
        None => whole,
        Some(members) => {
            let transit = order.group.as_ref().map_or(Transit::Unused, |group| group.transit);
            let group = whole.group(&members, transit)?;
            if let Some(text) = renumbering(&members) {
                warn("RANKS_RENUMBERED", text);
            }
            group
        }
    };
    if slots.is_none() {
        let text = "the topology names neither hosts nor boxes, and the request places no ranks: that each rank is on the \
                    device of the topology's node is assumed; give a placement, or hosts to all compute nodes";
        warn("RANK_MAP_ASSUMED", text.to_owned());
    }
    Ok(Seats { topology, rank_map: slots })
}
