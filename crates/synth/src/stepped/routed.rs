//! Messages over anything: ranks on the way store and forward.
//!
//! A message takes a shortest route, the least used among equals, one step for each hop; the next step of the textbook begins when all have
//! arrived. What a rank has it is not sent again: a chunk that passed it, or was meant for it, goes on from there. What is added up
//! is copied backwards: along the same ways in the network turned around, so that ranks on the way add what is theirs.

use std::collections::{HashMap, HashSet};

use canopy_optimize::Stop;
use canopy_schedule::{Action, Pace, RouteInterner, Steps};
use canopy_topology::{LinkIndex, Rank, Topology};

use super::rounds::{Rounds, require_room};
use super::ways::Ways;
use crate::error::SteppedError;
use crate::parts::{Sending, StepsParts};
use crate::routing::{Heading, Passing};

/// A chunk on its way from one rank to the next.
struct Hop {
    step: u32,
    ends: (Rank, Rank),
    links: Vec<LinkIndex>,
    chunk: u64,
}

/// What is copied and then added up backwards, and what is copied after that, over anything.
///
/// O(sends · hops), and a search of the network for each sender.
pub(super) fn over_ranks(
    topology: &Topology,
    (sums, copies): (Option<&Rounds>, Option<&Rounds>),
    stop: &dyn Stop,
) -> Result<Steps, SteppedError> {
    let chunks_per_share = sums.or(copies).map_or(1, |rounds| rounds.chunks_per_share);
    let (mut written, mut routes) = (StepsParts::new(chunks_per_share, Pace::Barriers), RouteInterner::default());
    let mut done = 0;
    if let Some(rounds) = sums {
        let (found, steps) = copied(topology, rounds, Heading::Against, stop)?;
        for Hop { step, ends: (to, from), mut links, chunk } in found.into_iter().rev() {
            links.reverse();
            let (step, route) = (steps - 1 - step, routes.intern(&links));
            written.push(Sending { step, action: Action::Reduce, from, to, chunks: chunk..chunk + 1, route });
        }
        done = steps;
    }
    if let Some(rounds) = copies {
        let (found, _) = copied(topology, rounds, Heading::Along, stop)?;
        for Hop { step, ends: (from, to), links, chunk } in found {
            require_room(rounds.row.name, written.len())?;
            let (step, route) = (done + step, routes.intern(&links));
            written.push(Sending { step, action: Action::Copy, from, to, chunks: chunk..chunk + 1, route });
        }
    }
    Ok(written.finish(routes.finish()))
}

/// All hops by rising step, and how many steps they take.
fn copied(
    topology: &Topology,
    rounds: &Rounds,
    heading: Heading,
    stop: &dyn Stop,
) -> Result<(Vec<Hop>, u32), SteppedError> {
    let mut ways = Ways::new(topology, (heading, Passing::Anyone), stop);
    let mut all: Vec<Hop> = Vec::new();
    let mut senders: HashSet<u64> = HashSet::new();
    // By rank and chunk that it has or is sent, the first step in which it can send it on.
    let mut ready: HashMap<(Rank, u64), u32> = HashMap::new();
    for message in &rounds.messages {
        // Whoever is the first to send a chunk has it.
        for &chunk in rounds.chunks_of(message) {
            if senders.insert(chunk) {
                ready.insert((message.ends.0, chunk), 0);
            }
        }
    }
    let (mut begin, mut end) = (0, 0);
    for round in rounds.messages.chunk_by(|a, b| a.step == b.step) {
        for message in round {
            let (from, to) = message.ends;
            let links = ways.links((from, to))?.ok_or_else(|| unreachable(topology, rounds.row.name, (from, to)))?;
            let way = legs(topology, heading, &links, to);
            for &chunk in rounds.chunks_of(message) {
                let since = |rank| ready.get(&(rank, chunk)).copied();
                // The last on the way that has it, or is being sent it.
                let nearest =
                    way.iter().enumerate().rev().find_map(|(place, &(rank, _))| Some((place + 1, rank, since(rank)?)));
                let (done, mut at, since) = nearest.unwrap_or((0, from, since(from).unwrap_or(0)));
                for ((next, leg), step) in way[done..].iter().copied().zip(since.max(begin)..) {
                    require_room(rounds.row.name, all.len())?;
                    all.push(Hop { step, ends: (at, next), links: leg.to_vec(), chunk });
                    ready.insert((next, chunk), step + 1);
                    end = end.max(step + 1);
                    at = next;
                }
            }
        }
        begin = end;
    }
    all.sort_by_key(|hop| hop.step);
    Ok((all, end))
}

/// A route cut at the ranks it passes, each part with the rank at its end.
fn legs<'a>(topology: &Topology, heading: Heading, links: &'a [LinkIndex], to: Rank) -> Vec<(Rank, &'a [LinkIndex])> {
    let end = |link: LinkIndex| match heading {
        Heading::Along => topology.link(link).to,
        Heading::Against => topology.link(link).from,
    };
    let rank_at_end = |link: LinkIndex| topology.rank_of(end(link));
    let parts = links.split_inclusive(|&link| rank_at_end(link).is_some());
    parts.map(|leg| (leg.last().and_then(|&link| rank_at_end(link)).unwrap_or(to), leg)).collect()
}

fn unreachable(topology: &Topology, name: &'static str, (from, to): (Rank, Rank)) -> SteppedError {
    let id = |rank: Rank| topology.node(rank.node()).id.clone();
    SteppedError::Unreachable { name, from: id(from), from_rank: from.number(), to: id(to), to_rank: to.number() }
}
