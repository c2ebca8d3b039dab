//! What all groups reach with the rings of stock runtimes, for comparison.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero as _;

use crate::problem::{Group, GroupKind, GroupProblem, GroupsError};
use crate::ways::{NO_WAY, Passing, Ways};

/// The common rate if each group runs a ring in the order of its members, half of it each way round, over ways of the
/// fewest arcs; one root sends along the ring from member to member; parts for single members go straight to them. All
/// groups at once: the busiest link decides.
///
/// * **Out.** In units of capacity for each unit of size, as that of the optimum.
/// * **Errors.** [`GroupsError::NoWay`].
/// * **Cost.** A search of the network for each member.
pub fn ring_rate(problem: &GroupProblem) -> Result<BigRational, GroupsError> {
    let lengths = vec![1; problem.graph().arcs.len()];
    let mut loads = vec![BigRational::zero(); lengths.len()];
    for (number, group) in problem.groups().iter().enumerate() {
        let passing = Passing::of(problem, &group.members);
        let from: Vec<Ways> = group.members.iter().map(|&member| passing.ways_to_members(member, &lengths)).collect();
        for (sender, receiver, part) in hops(group) {
            let to = group.members[receiver];
            if from[sender].distances[to as usize] == NO_WAY {
                return Err(GroupsError::NoWay { group: number, from: group.members[sender], to });
            }
            for arc in from[sender].way_to(problem, to) {
                loads[arc as usize] += &part;
            }
        }
    }
    let times = loads.into_iter().zip(&problem.graph().arcs).map(|(load, arc)| load / BigInt::from(arc.capacity));
    let time = times.max().unwrap_or_else(BigRational::zero);
    Ok(if time.is_zero() { time } else { time.recip() })
}

/// Who sends how many bytes to whom, by positions among the members.
fn hops(group: &Group) -> Vec<(usize, usize, BigRational)> {
    let count = group.members.len();
    let part = |above: usize, below: usize| {
        BigRational::new(BigInt::from(group.size) * BigInt::from(above), BigInt::from(below))
    };
    let ring = |each: BigRational| -> Vec<(usize, usize, BigRational)> {
        (0..count)
            .flat_map(|at| [(at, (at + 1) % count), ((at + 1) % count, at)].map(|(from, to)| (from, to, each.clone())))
            .collect()
    };
    // From the root on, one way round.
    let chain = |root: u32, inwards: bool| {
        let at = |step: usize| (root as usize + step) % count;
        (1..count)
            .map(|step| {
                let (near, far) = (at(step - 1), at(step));
                if inwards { (far, near, part(1, 1)) } else { (near, far, part(1, 1)) }
            })
            .collect()
    };
    let others = |root: u32| (0..count).filter(move |&other| other != root as usize);
    match group.kind {
        GroupKind::AllReduce => ring(part(count - 1, count)),
        GroupKind::AllGather | GroupKind::ReduceScatter => ring(part(count - 1, 2 * count)),
        GroupKind::Broadcast(root) => chain(root, false),
        GroupKind::Reduce(root) => chain(root, true),
        GroupKind::Scatter(root) => others(root).map(|to| (root as usize, to, part(1, count))).collect(),
        GroupKind::Gather(root) => others(root).map(|from| (from, root as usize, part(1, count))).collect(),
        GroupKind::AllToAll => (0..count)
            .flat_map(|from| (0..count).filter(move |&to| to != from).map(move |to| (from, to)))
            .map(|(from, to)| (from, to, part(1, count)))
            .collect(),
    }
}
