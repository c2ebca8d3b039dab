//! Links beyond those of a pattern, where switches have ports that lead one way.
//!
//! A pattern joins each rank to some that follow it. Where a fabric takes from some of its ranks only, or leads to some only, a rank
//! may so lose its way to another that the network has. Then more links are made, until each rank reaches all that it reaches in the network.

use canopy_optimize::Stop;
use canopy_topology::{LinkIndex, Rank, Topology};

use super::LINKS_MAX;
use crate::error::SynthesisError;
use crate::reach::ask;
use crate::routing::{Chooser, Levels, Loads, Network, Passing};

/// A link between two ranks, over these.
type End = (Rank, Rank, Vec<LinkIndex>);

/// Adds links through switches from ranks to those that they would not reach otherwise; none where every rank reaches all.
///
/// What a rank reaches in the network it reaches from rank to rank, each over switches alone: a link for every such passage that leads to a
/// rank not reached yet keeps the way.
///
/// # Errors
/// Stopped; too many links. O(links made) where all are reached, else O(ranks · (links + links made)).
pub(super) fn join(
    topology: &Topology,
    network: &Network<'_>,
    (chooser, loads): (&mut Chooser, &mut Loads),
    ends: &mut Vec<End>,
    stop: &dyn Stop,
) -> Result<(), SynthesisError> {
    let ranks = topology.rank_count() as usize;
    let mut following: Vec<Vec<Rank>> = vec![Vec::new(); ranks];
    let mut leading: Vec<Vec<Rank>> = vec![Vec::new(); ranks];
    for &(from, to, _) in &*ends {
        following[from.index()].push(to);
        leading[to.index()].push(from);
    }
    let reaches_all = |next: &[Vec<Rank>]| reached(next, Rank::new(0)).iter().all(|&is_reached| is_reached);
    if ranks == 0 || reaches_all(&following) && reaches_all(&leading) {
        return Ok(());
    }
    for from in topology.ranks() {
        ask(stop)?;
        let mut is_reached = reached(&following, from);
        if is_reached.iter().all(|&is_reached| is_reached) {
            continue;
        }
        let levels = Levels::new(network, from.node(), Passing::Switches);
        for to in topology.ranks() {
            if is_reached[to.index()] || levels.distance(to.node()).is_none() {
                continue;
            }
            let route = chooser.choose(network, &levels, loads, to.node(), |node| node == from.node());
            let Some(route) = route else { continue };
            if ends.len() == LINKS_MAX {
                return Err(SynthesisError::TooManyHops { needed: ends.len() as u64 + 1, limit: LINKS_MAX as u64 });
            }
            loads.add(&route);
            ends.push((from, to, route));
            following[from.index()].push(to);
            spread(&following, to, &mut is_reached);
        }
    }
    Ok(())
}

/// By rank, whether links lead there from one of them, itself included.
fn reached(following: &[Vec<Rank>], from: Rank) -> Vec<bool> {
    let mut is_reached = vec![false; following.len()];
    spread(following, from, &mut is_reached);
    is_reached
}

/// Marks a rank and what is reached from there.
fn spread(following: &[Vec<Rank>], from: Rank, is_reached: &mut [bool]) {
    is_reached[from.index()] = true;
    let mut near = vec![from];
    while let Some(rank) = near.pop() {
        for &next in &following[rank.index()] {
            if !std::mem::replace(&mut is_reached[next.index()], true) {
                near.push(next);
            }
        }
    }
}
