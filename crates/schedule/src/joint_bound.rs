//! What several collectives at once take at least, whoever plans them: what must pass into, or out of, sets of nodes.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use canopy_topology::{NodeIndex, NodeKind, Ratio, Topology};
use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::Zero as _;

use crate::bound::CutDirection;
use crate::collective::{Collective, CollectiveKind};

/// One of several collectives with equal shares.
#[derive(Clone, Copy, Debug)]
pub struct JointTask<'a> {
    /// By rank, its node in the network of all.
    pub members: &'a [NodeIndex],
    /// What they do, the root by its number among the members.
    pub collective: Collective,
    /// *Size* of the collective, as [`check`](crate::check) defines it.
    pub size_bytes: NonZeroU64,
}

/// A time that nothing stays below, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointBound {
    /// The time in seconds.
    pub seconds: Ratio,
    /// Disjoint sets of nodes, each rising.
    pub sets: Vec<Vec<NodeIndex>>,
    /// Which of the links on their boundaries count.
    pub direction: CutDirection,
}

/// The best lower bound on the time of collectives that run at the same time, among those by single nodes with or without a rank, boxes, the
/// members of each collective, and `more` families of disjoint sets, such as those of certificates.
///
/// What passes into a set A of nodes is, for an allgather, the share of the data that members outside have, if any is inside; and so on for other
/// kinds. An allreduce, whose members are in p of some disjoint sets that hold all compute nodes, has 2(p − 1) messages of its size
/// pass from one of them to another; where switches copy or sum, or nodes are in no set, each set that divides its members takes in one.
/// The sum over all collectives, divided by the capacity of the links that enter the sets, is the time. Likewise for what leaves them.
///
/// * **Source.** The summed cut and partition bounds for several groups in one network; of one group they are those of
///   [`certified_bound`](crate::certified_bound).
/// * **None.** Stopped, or nothing must pass anywhere.
/// * **Cost.** O(families · (nodes + links + members)).
pub fn joint_bound(
    topology: &Topology,
    tasks: &[JointTask<'_>],
    more: &[Vec<Vec<NodeIndex>>],
    stop: &dyn Fn() -> bool,
) -> Option<JointBound> {
    let mut best: Option<(BigRational, JointBound)> = None;
    for sets in families(topology, tasks).iter().chain(more) {
        if stop() {
            return None;
        }
        let Some(places) = places(topology, sets) else { continue };
        for direction in [CutDirection::In, CutDirection::Out] {
            let capacity = capacity(topology, &places, direction);
            let load = load(topology, tasks, (sets.len(), &places), direction);
            if capacity.is_zero() || load.is_zero() {
                continue;
            }
            let time = load / BigRational::from_integer(BigInt::from(capacity));
            if best.as_ref().is_none_or(|(found, _)| time > *found) {
                let seconds = Ratio::new(time.numer().magnitude().clone(), time.denom().magnitude().clone())?;
                best = Some((time, JointBound { seconds, sets: sets.clone(), direction }));
            }
        }
    }
    best.map(|(_, bound)| bound)
}

/// Families of disjoint sets that may well be what limits.
fn families(topology: &Topology, tasks: &[JointTask<'_>]) -> Vec<Vec<Vec<NodeIndex>>> {
    let nodes = || topology.nodes().iter().zip((0..).map(NodeIndex::new));
    let singles = nodes().filter(|(node, _)| !matches!(node.kind, NodeKind::Switch { .. }));
    let singles: Vec<Vec<NodeIndex>> = singles.map(|(_, index)| vec![index]).collect();
    let mut boxes: BTreeMap<&str, Vec<NodeIndex>> = BTreeMap::new();
    for (node, index) in nodes() {
        if let Some(name) = &node.attributes.box_name {
            boxes.entry(name).or_default().push(index);
        }
    }
    let boxes: Vec<Vec<NodeIndex>> = boxes.into_values().collect();
    let members = tasks.iter().map(|task| {
        let mut members = task.members.to_vec();
        members.sort_unstable();
        vec![members]
    });
    let each = singles.iter().chain(&boxes).map(|set| vec![set.clone()]);
    let mut families: Vec<Vec<Vec<NodeIndex>>> = each.chain(members).collect();
    families.extend([singles, boxes].into_iter().filter(|sets| sets.len() > 1));
    families
}

/// By node, the set that it is in; none where a set names what is not there, or two name the same.
fn places(topology: &Topology, sets: &[Vec<NodeIndex>]) -> Option<Vec<Option<usize>>> {
    let mut places = vec![None; topology.nodes().len()];
    for (number, set) in sets.iter().enumerate() {
        for node in set {
            if places.get_mut(node.index())?.replace(number).is_some() {
                return None;
            }
        }
    }
    Some(places)
}

/// Capacity of the links that enter, or leave, the sets, in bytes per second.
fn capacity(topology: &Topology, places: &[Option<usize>], direction: CutDirection) -> BigUint {
    let crosses = |from: NodeIndex, to: NodeIndex| {
        let (from, to) = (places[from.index()], places[to.index()]);
        from != to && if direction == CutDirection::In { to.is_some() } else { from.is_some() }
    };
    let crossing = topology.links().iter().filter(|link| crosses(link.from, link.to));
    crossing.map(|link| BigUint::from(link.capacity.bytes_per_sec())).sum()
}

/// Bytes of all collectives that enter, or leave, the sets.
fn load(
    topology: &Topology,
    tasks: &[JointTask<'_>],
    (set_count, places): (usize, &[Option<usize>]),
    direction: CutDirection,
) -> BigRational {
    let is_covered = topology.nodes().iter().zip(places).all(|(node, place)| match node.kind {
        NodeKind::Switch { multicast, aggregate } => !multicast && !aggregate,
        NodeKind::Compute | NodeKind::Forwarder => place.is_some(),
    });
    let mut load = BigRational::zero();
    for task in tasks {
        let mut inside = vec![0_u64; set_count];
        for member in task.members {
            if let Some(place) = places.get(member.index()).copied().flatten() {
                inside[place] += 1;
            }
        }
        let count = task.members.len() as u64;
        let root = task.collective.root().and_then(|root| task.members.get(root.index()));
        let root_in = root.and_then(|root| places.get(root.index()).copied().flatten());
        let is_split = |&members: &u64| 0 < members && members < count;
        // Parts of the size, in as many parts as there are members.
        let parts: u64 = match task.collective.kind() {
            CollectiveKind::Allreduce if is_covered => {
                let met = inside.iter().filter(|&&members| members > 0).count() as u64;
                2 * count * met.saturating_sub(1)
            }
            kind => (0..)
                .zip(&inside)
                .filter(|(_, members)| is_split(members))
                .map(|(set, &members)| {
                    let (here, there) = (members, count - members);
                    let (here, there, root_here) = match direction {
                        CutDirection::In => (here, there, root_in == Some(set)),
                        CutDirection::Out => (there, here, root_in != Some(set)),
                    };
                    entering(kind, (here, there), root_here)
                })
                .sum(),
        };
        load += BigRational::new(BigInt::from(task.size_bytes.get()) * parts, BigInt::from(count.max(1)));
    }
    load
}

/// What enters a side with so many of the members, as so many parts of the size as there are members.
const fn entering(kind: CollectiveKind, (here, there): (u64, u64), root_here: bool) -> u64 {
    match (kind, root_here) {
        (CollectiveKind::Allgather, _) | (CollectiveKind::Gather, true) => there,
        (CollectiveKind::ReduceScatter, _) | (CollectiveKind::Scatter, false) => here,
        (CollectiveKind::AllToAll, _) => here.saturating_mul(there),
        (CollectiveKind::Allreduce, _) | (CollectiveKind::Broadcast, false) | (CollectiveKind::Reduce, true) => {
            here + there
        }
        (CollectiveKind::Gather | CollectiveKind::Reduce, false)
        | (CollectiveKind::Scatter | CollectiveKind::Broadcast, true) => 0,
    }
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Rank, TopologyLimits, generate};

    use super::*;

    const SIZE: u64 = 1 << 20;

    /// The bound for groups of ranks of a generated network.
    fn bound(expression: &str, groups: &[(CollectiveKind, Option<u32>, &[u32])]) -> JointBound {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let members: Vec<Vec<NodeIndex>> =
            groups.iter().map(|(.., ranks)| ranks.iter().map(|&rank| NodeIndex::new(rank)).collect()).collect();
        let task = |((kind, root, ranks), members): (&(CollectiveKind, Option<u32>, &[u32]), _)| JointTask {
            members,
            collective: Collective::new(*kind, root.map(Rank::new), u32::try_from(ranks.len()).unwrap()).unwrap(),
            size_bytes: NonZeroU64::new(SIZE).unwrap(),
        };
        let tasks: Vec<JointTask<'_>> = groups.iter().zip(members.iter().map(Vec::as_slice)).map(task).collect();
        joint_bound(&topology, &tasks, &[], &|| false).unwrap()
    }

    /// So many messages over a link of 1 GB/s.
    fn messages(above: u64, below: u64) -> Ratio {
        Ratio::new(SIZE * above, 1_000_000_000 * below).unwrap()
    }

    /// One group alone has the bounds that are known of it.
    #[test]
    fn a_single_group_has_its_own_bounds() {
        let all: &[u32] = &[0, 1, 2, 3];
        for (kind, root, above, below) in [
            (CollectiveKind::Allgather, None, 3, 8),
            (CollectiveKind::ReduceScatter, None, 3, 8),
            (CollectiveKind::Allreduce, None, 3, 4),
            (CollectiveKind::Broadcast, Some(2), 1, 2),
            (CollectiveKind::Reduce, Some(2), 1, 2),
            (CollectiveKind::Gather, Some(1), 3, 8),
            (CollectiveKind::Scatter, Some(1), 3, 8),
            (CollectiveKind::AllToAll, None, 3, 8),
        ] {
            assert_eq!(bound("ring:4,bw=1GB/s", &[(kind, root, all)]).seconds, messages(above, below), "{kind}");
        }
    }

    /// Two broadcasts from different ranks leave by different links, and enter by the same.
    #[test]
    fn groups_that_share_members_add_up() {
        let all: &[u32] = &[0, 1, 2, 3];
        let both = bound(
            "ring:4,bw=1GB/s",
            &[(CollectiveKind::Broadcast, Some(0), all), (CollectiveKind::Broadcast, Some(1), all)],
        );
        assert_eq!((both.seconds, both.direction), (messages(2, 2), CutDirection::In));
        let apart = bound(
            "ring:4,bw=1GB/s",
            &[(CollectiveKind::Broadcast, Some(0), &[0, 1]), (CollectiveKind::Broadcast, Some(0), &[2, 3])],
        );
        assert_eq!(apart.seconds, messages(1, 2));
    }

    /// Eight groups, each with a rank in each of 64 boxes, of which ten lack a network card: 8 · 2 · 63 messages over 502 cards.
    #[test]
    fn allreduces_across_boxes_are_limited_by_what_leaves_these() {
        let ranks: Vec<Vec<u32>> = (0..8).map(|lane| (0..64).map(|machine| 8 * machine + lane).collect()).collect();
        let groups: Vec<_> = ranks.iter().map(|ranks| (CollectiveKind::Allreduce, None, ranks.as_slice())).collect();
        let found = bound("rail:boxes=64,gpus=8,nv=300GB/s,nic=25GB/s,faults=nics:10+seed:1", &groups);
        assert_eq!(found.seconds, messages(8 * 2 * 63, 25 * 502));
        assert_eq!(found.sets.len(), 64);
    }

    #[test]
    fn who_is_stopped_says_nothing() {
        let topology = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
        assert_eq!(joint_bound(&topology, &[], &[], &|| true), None);
        assert_eq!(joint_bound(&topology, &[], &[vec![vec![NodeIndex::new(9)]]], &|| false), None);
    }
}
