//! Sends in steps over what is left: by another route between the same ranks, or not at all.

use std::collections::HashMap;

use canopy_schedule::{Carrier, RouteIndex, RouteInterner, Send, Steps};
use canopy_topology::{NodeIndex, Rank};

use super::balance::STEPS_LOG2_AT_FIRST;
use super::finder::{Finder, FreeLinks, Visit};
use super::loads::Loads;
use super::{RepairError, Wanted};
use crate::routing::{Heading, Network};

/// The sends of a network in which no rank is gone, each by its route or by the least used one that is left.
///
/// * **Errors.** A rank that is gone; two ranks between which no route is left. **Cost.** O(carriers), and a search for
///   each route that is gone.
pub(super) fn repaired(of: &Wanted<'_>, steps: &Steps) -> Result<Steps, RepairError> {
    let (base, left) = (of.remainder.base, of.remainder.left);
    if let Some(gone) = base.ranks().find(|&rank| of.remainder.rank(rank).is_none()) {
        return Err(RepairError::RankGone { gone: of.remainder.id(gone) });
    }
    let now = of.remainder.routes(&steps.routes);
    let mut loads = Loads::none(left);
    for carrier in &steps.carriers {
        loads.add(links_of(&now, carrier.route)?, carrier.chunk_count)?;
    }
    loads.aim_at(loads.worst(), STEPS_LOG2_AT_FIRST);
    loads.heed_limits(false);
    let (network, mut finder) = (Network::new(left, Heading::Along), Finder::new(left.nodes().len()));
    let mut routes = RouteInterner::default();
    let mut found: HashMap<RouteIndex, RouteIndex> = HashMap::new();
    let (mut carriers, mut sends) = (Vec::with_capacity(steps.carriers.len()), Vec::with_capacity(steps.sends.len()));
    let position = |length: usize| u32::try_from(length).map_err(|_| RepairError::TooLarge);
    for send in &steps.sends {
        let start = position(carriers.len())?;
        for &Carrier { route, chunk_count } in steps.carriers_of(send) {
            let links = links_of(&now, route)?;
            let route = match found.get(&route) {
                Some(&known) => known,
                None if links.is_empty() => {
                    let another = another_route(
                        FreeLinks { network: &network, loads: &loads, count: chunk_count },
                        &mut finder,
                        send,
                    );
                    let another = another.ok_or_else(|| RepairError::NoRoute {
                        step: send.step,
                        from: of.remainder.id(send.from),
                        to: of.remainder.id(send.to),
                    })?;
                    loads.add(&another, chunk_count)?;
                    *found.entry(route).or_insert(routes.intern(&another))
                }
                None => *found.entry(route).or_insert(routes.intern(links)),
            };
            carriers.push(Carrier { route, chunk_count });
        }
        sends.push(Send { carriers: start..position(carriers.len())?, ..send.clone() });
    }
    Ok(Steps { routes: routes.finish(), carriers, sends, ..*steps })
}

fn links_of(
    now: &[Vec<canopy_topology::LinkIndex>],
    route: RouteIndex,
) -> Result<&[canopy_topology::LinkIndex], RepairError> {
    now.get(route.index()).map(Vec::as_slice).ok_or(RepairError::Malformed { what: "a carrier has no route" })
}

/// The least used route between the ranks of a send.
fn another_route(
    links: FreeLinks<'_, '_>,
    finder: &mut Finder,
    send: &Send,
) -> Option<Vec<canopy_topology::LinkIndex>> {
    let node = |rank: Rank| rank.node();
    let visit = |at: NodeIndex| match at {
        at if at == node(send.to) => Visit::End,
        at if links.network.is_rank(at) => Visit::Avoid,
        _ => Visit::Pass,
    };
    finder.find(links, &[(node(send.from), 0)], i128::MAX, visit).map(|way| way.links)
}
