//! Messages over switches only: each is one transfer, in the step of the textbook.

use std::collections::BTreeMap;

use canopy_optimize::Stop;
use canopy_schedule::{Pace, RouteInterner, Steps};
use canopy_topology::{Rank, Topology};

use super::rounds::{Message, Rounds, require_room};
use super::ways::Ways;
use crate::error::SteppedError;
use crate::parts::{Sending, StepsParts};
use crate::routing::{Heading, Passing};

/// All messages, each two ranks' over the same route; none where switches do not join two that talk.
///
/// O(sends), and a search of the network for each sender.
pub(super) fn over_switches(
    topology: &Topology,
    rounds: &Rounds,
    stop: &dyn Stop,
) -> Result<Option<Steps>, SteppedError> {
    let mut ways = Ways::new(topology, (Heading::Along, Passing::Switches), stop);
    let mut known = BTreeMap::<(Rank, Rank), _>::new();
    let (mut steps, mut routes) = (StepsParts::new(rounds.chunks_per_share, Pace::Barriers), RouteInterner::default());
    for message in &rounds.messages {
        let route = match known.get(&message.ends) {
            Some(&route) => route,
            None => {
                let Some(links) = ways.links(message.ends)? else { return Ok(None) };
                let route = routes.intern(&links);
                known.insert(message.ends, route);
                route
            }
        };
        for &chunk in rounds.chunks_of(message) {
            require_room(rounds.row.name, steps.len())?;
            let &Message { step, action, ends: (from, to), .. } = message;
            steps.push(Sending { step, action, from, to, chunks: chunk..chunk + 1, route });
        }
    }
    Ok(Some(steps.finish(routes.finish())))
}
