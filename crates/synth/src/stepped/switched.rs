//! Messages over switches only: each is one transfer, in the step of the textbook.

use std::collections::BTreeMap;

use canopy_optimize::Stop;
use canopy_schedule::Steps;
use canopy_topology::{Rank, Topology};

use super::rounds::{Rounds, require_room};
use super::ways::Ways;
use super::writer::Writer;
use crate::error::SteppedError;
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
    let mut writer = Writer::new(rounds.chunks_per_share);
    for message in &rounds.messages {
        let route = match known.get(&message.ends) {
            Some(&route) => route,
            None => {
                let Some(links) = ways.links(message.ends)? else { return Ok(None) };
                let route = writer.routes.intern(&links);
                known.insert(message.ends, route);
                route
            }
        };
        for &chunk in rounds.chunks_of(message) {
            require_room(rounds.name, writer.len())?;
            writer.push((message.step, message.action), message.ends, route, chunk);
        }
    }
    Ok(Some(writer.finish()))
}
