//! Who of a network takes part, and which devices they are.

use canopy_topology::{Participants, Rank, Slot, Topology, Transit, participants, renumbering};

use crate::error::PlanError;
use crate::planned::Warning;
use crate::request::Request;

/// The network as those see it who take part, and where they are.
pub(crate) struct Seats {
    pub(crate) topology: Topology,
    /// By rank; none: nobody says.
    pub(crate) rank_map: Option<Vec<Slot>>,
}

/// Takes out of a network who a request lists or places. Warns where ranks get new numbers, and where nobody says which
/// devices they are.
pub(crate) fn take(whole: Topology, request: &Request, warnings: &mut Vec<Warning>) -> Result<Seats, PlanError> {
    let mut warn = |code, text| warnings.push(Warning::new(code, text));
    let listed = request.group.as_ref().filter(|group| !group.ranks.is_empty());
    let listed: Option<Vec<Rank>> = listed.map(|group| group.ranks.iter().copied().map(Rank::new).collect());
    let Participants { members, slots } = participants(&whole, listed.as_deref(), request.placement.as_deref())?;
    let topology = match members {
        None => whole,
        Some(members) => {
            let transit = request.group.as_ref().map_or(Transit::Unused, |group| group.transit);
            let group = whole.group(&members, transit)?;
            if let Some(text) = renumbering(&members) {
                warn("RANKS_RENUMBERED", text);
            }
            group
        }
    };
    if slots.is_none() {
        let text = "assuming that rank i runs on the i-th device; give a placement to check it";
        warn("RANK_MAP_ASSUMED", text.to_owned());
    }
    Ok(Seats { topology, rank_map: slots })
}
