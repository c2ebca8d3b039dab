//! What all groups reach with the rings of stock runtimes, for comparison.

use std::collections::BTreeMap;

use canopy_optimize::Stop;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero as _;

use crate::groups::patience::Asking;
use crate::groups::problem::{Group, GroupKind, GroupProblem, GroupsError};
use crate::groups::ways::{NO_WAY, Passing};

/// The common rate if each group runs a ring in the order of its members, half of it each way round, over ways of the
/// fewest arcs; one root sends along the ring from member to member; parts for single members go straight to them. All
/// groups at once: the busiest link decides.
///
/// * **Out.** In units of capacity for each unit of size, as that of the optimum.
/// * **Errors.** [`GroupsError::NoWay`], stopped.
/// * **Cost.** A search of the network for each member.
pub fn ring_rate(problem: &GroupProblem, stop: &dyn Stop) -> Result<BigRational, GroupsError> {
    let mut asking = Asking::of(stop);
    let lengths = vec![1; problem.graph().arcs.len()];
    let mut loads = vec![BigRational::zero(); lengths.len()];
    for (number, group) in problem.groups().iter().enumerate() {
        let passing = Passing::of(problem, &group.members, stop);
        // All that members send each other has one size.
        let mut uses: BTreeMap<u32, u64> = BTreeMap::new();
        for (sender, &from) in group.members.iter().enumerate() {
            let receivers = receivers(group, sender);
            if receivers.is_empty() {
                continue;
            }
            let ways = passing.ways_to_members(from, &lengths)?;
            for receiver in receivers {
                let to = group.members[receiver];
                if ways.distances[to as usize] == NO_WAY {
                    return Err(GroupsError::NoWay { group: number, from, to });
                }
                let way = ways.way_to(problem, to);
                asking.before(16 * way.len())?;
                way.into_iter().for_each(|arc| *uses.entry(arc).or_default() += 1);
            }
        }
        let part = part(group);
        for (arc, count) in uses {
            asking.before(64)?;
            loads[arc as usize] += &part * BigInt::from(count);
        }
    }
    let times = loads.into_iter().zip(&problem.graph().arcs).map(|(load, arc)| load / BigInt::from(arc.capacity));
    let time = times.max().unwrap_or_else(BigRational::zero);
    Ok(if time.is_zero() { time } else { time.recip() })
}

/// The bytes that a member sends to another at once.
fn part(group: &Group) -> BigRational {
    let count = group.members.len();
    let of_size = |above: usize, below: usize| {
        BigRational::new(BigInt::from(group.size) * BigInt::from(above), BigInt::from(below))
    };
    match group.kind {
        GroupKind::AllReduce => of_size(count - 1, count),
        GroupKind::AllGather | GroupKind::ReduceScatter => of_size(count - 1, 2 * count),
        GroupKind::Broadcast(_) | GroupKind::Reduce(_) => of_size(1, 1),
        GroupKind::Scatter(_) | GroupKind::Gather(_) | GroupKind::AllToAll => of_size(1, count),
    }
}

/// To whom a member sends, by positions among the members.
fn receivers(group: &Group, sender: usize) -> Vec<usize> {
    let count = group.members.len();
    let next = (sender + 1) % count;
    let before = (sender + count - 1) % count;
    // From the root on, one way round.
    let is = |root: u32| root as usize == sender;
    match group.kind {
        GroupKind::AllReduce | GroupKind::AllGather | GroupKind::ReduceScatter => vec![next, before],
        GroupKind::Broadcast(root) if root as usize == next => Vec::new(),
        GroupKind::Broadcast(_) => vec![next],
        GroupKind::Reduce(root) if is(root) => Vec::new(),
        GroupKind::Reduce(_) => vec![before],
        GroupKind::Scatter(root) if !is(root) => Vec::new(),
        GroupKind::Gather(root) if is(root) => Vec::new(),
        GroupKind::Gather(root) => vec![root as usize],
        GroupKind::Scatter(_) | GroupKind::AllToAll => (0..count).filter(|&other| other != sender).collect(),
    }
}
