//! What lengths of links prove of several collectives at once: added up again from the lengths alone, without any
//! solver.

mod tree;

use canopy_topology::{Link, NodeIndex, NodeKind, Rank, Ratio, Topology, Transit};
use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::Zero as _;
use rayon::prelude::*;

use crate::collective::CollectiveKind;
use crate::joint_bound::JointTask;

use tree::{Distances, Lengths, cheapest_tree, prim};

/// Bits of a length at most, so that sums over any way fit 128.
const LENGTH_BITS_MAX: u32 = 100;

/// The time in seconds that the collectives take together at least, by a length for each link.
///
/// A message that passes a link takes its length; every schedule takes of all links together at least what the cheapest
/// schedule of each collective does. So the time is at least Σ size · cheapest ÷ Σ capacity · length. The cheapest one
/// is, in the distances between members: for an allreduce twice a spanning tree where lengths are the same both ways,
/// else the best pair of trees with a common root; for an allgather or a broadcast the best tree from each root; ways
/// for everything else.
///
/// * **Source.** The dual of the program over trees of all groups. Schedules of pairs of trees only are meant where an
///   allreduce has lengths that differ by direction; in all other cases every schedule without coding, in which nodes
///   that are no members do not copy or sum.
/// * **In.** `lengths`: by link. `transit`: what compute nodes do for groups that they are not in.
/// * **None.** A switch copies or sums; lengths do not belong to the network, are too long, or prove nothing; two
///   members are not connected; stopped.
/// * **Cost.** A search of the network for each member, and O(members³) at worst for a tree of one direction.
pub fn length_bound(
    topology: &Topology,
    tasks: &[JointTask<'_>],
    lengths: &[u128],
    transit: Transit,
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<Ratio> {
    let is_plain =
        |kind: &NodeKind| !matches!(kind, NodeKind::Switch { multicast, aggregate } if *multicast || *aggregate);
    let fits = lengths.iter().all(|length| length.checked_ilog2().is_none_or(|bits| bits < LENGTH_BITS_MAX));
    if lengths.len() != topology.links().len() || !fits || !topology.nodes().iter().all(|node| is_plain(&node.kind)) {
        return None;
    }
    let lengths = Lengths::new(topology, lengths, transit, stop);
    let room: BigUint = topology
        .links()
        .iter()
        .zip(lengths.of_links())
        .map(|(link, &length)| BigUint::from(link.capacity.bytes_per_sec()) * length)
        .sum();
    let costs: Option<Vec<BigRational>> =
        tasks.par_iter().map(|task| if stop() { None } else { cost(&lengths, task) }).collect();
    let cost: BigRational = costs?.into_iter().sum();
    if cost.is_zero() || room.is_zero() {
        return None;
    }
    let time = cost / BigRational::from_integer(BigInt::from(room));
    Ratio::new(time.numer().magnitude().clone(), time.denom().magnitude().clone())
}

/// Bytes times lengths that a collective takes at least.
fn cost(lengths: &Lengths<'_>, task: &JointTask<'_>) -> Option<BigRational> {
    let members = task.members;
    let count = members.len();
    let is_member = |member: &NodeIndex| member.index() < lengths.node_count();
    if count < 2 || !members.iter().all(is_member) {
        return None;
    }
    let root = task.collective.root().map(Rank::index);
    let closure = || lengths.between(members);
    let tree = |distances: &Distances, root, inwards| cheapest_tree(lengths, distances, root, inwards);
    let over_roots = |inwards: bool| {
        let distances = closure()?;
        (0..count).map(|root| tree(&distances, root, inwards)).sum::<Option<BigUint>>()
    };
    // Parts of the size, in as many parts as there are members.
    let (parts, cost) = match task.collective.kind() {
        CollectiveKind::Allreduce if lengths.are_symmetric() => (1, prim(lengths, members)? * 2_u32),
        CollectiveKind::Allreduce => {
            let distances = closure()?;
            let pair = |root| Some(tree(&distances, root, true)? + tree(&distances, root, false)?);
            (1, (0..count).map(pair).collect::<Option<Vec<BigUint>>>()?.into_iter().min()?)
        }
        CollectiveKind::Broadcast => (1, tree(&closure()?, root?, false)?),
        CollectiveKind::Reduce => (1, tree(&closure()?, root?, true)?),
        CollectiveKind::Allgather => (count, over_roots(false)?),
        CollectiveKind::ReduceScatter => (count, over_roots(true)?),
        kind => {
            let counts = |from: usize, to: usize| match kind {
                CollectiveKind::Scatter => Some(from) == root,
                CollectiveKind::Gather => Some(to) == root,
                _ => true,
            };
            let distances = closure()?;
            let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
            let wanted = pairs.filter(|&(from, to)| from != to && counts(from, to));
            (count, wanted.map(|(from, to)| distances[from][to].map(BigUint::from)).sum::<Option<BigUint>>()?)
        }
    };
    let size = BigInt::from(task.size_bytes.get()) * BigInt::from(cost);
    Some(BigRational::new(size, BigInt::from(parts)))
}

impl Lengths<'_> {
    /// Whether each link is as long as one of the opposite direction.
    fn are_symmetric(&self) -> bool {
        let topology = self.topology();
        let has_twin = |(link, length): (&Link, &u128)| {
            let mut back = topology.links_from(link.to).filter(|&back| topology.link(back).to == link.from);
            back.any(|back| self.of_links()[back.index()] == *length)
        };
        topology.links().iter().zip(self.of_links()).all(has_twin)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use canopy_topology::{TopologyLimits, generate};

    use super::*;
    use crate::collective::Collective;

    /// The time by equal lengths of all links, for collectives of 1 GB on links of 1 GB/s.
    fn time(expression: &str, kind: CollectiveKind, groups: &[&[u32]]) -> Option<Ratio> {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let lengths = vec![7; topology.links().len()];
        let members: Vec<Vec<NodeIndex>> =
            groups.iter().map(|ranks| ranks.iter().map(|&rank| NodeIndex::new(rank)).collect()).collect();
        let tasks: Vec<JointTask<'_>> = members
            .iter()
            .map(|nodes| JointTask {
                members: nodes,
                collective: Collective::new(
                    kind,
                    kind.has_root().then(|| Rank::new(0)),
                    u32::try_from(nodes.len()).unwrap(),
                )
                .unwrap(),
                size_bytes: NonZeroU64::new(1_000_000_000).unwrap(),
            })
            .collect();
        length_bound(&topology, &tasks, &lengths, Transit::Forward, &|| false)
    }

    #[test]
    fn equal_lengths_prove_what_is_known_of_rings() {
        let ratio = |above: u32, below: u32| Ratio::new(above, below);
        let all: &[u32] = &[0, 1, 2, 3];
        // 8 links; a spanning tree has 3, both ways 6; a tree from each of 4 roots 3, of a quarter each.
        assert_eq!(time("ring:4,bw=1GB/s", CollectiveKind::Allreduce, &[all]), ratio(6, 8));
        assert_eq!(time("ring:4,bw=1GB/s", CollectiveKind::Allgather, &[all]), ratio(3, 8));
        assert_eq!(time("ring:4,bw=1GB/s", CollectiveKind::ReduceScatter, &[all]), ratio(3, 8));
        assert_eq!(time("ring:4,bw=1GB/s", CollectiveKind::Broadcast, &[all]), ratio(3, 8));
        // Each of 4 to others at 1, 2 and 1, a quarter each.
        assert_eq!(time("ring:4,bw=1GB/s", CollectiveKind::AllToAll, &[all]), ratio(4, 8));
        assert_eq!(time("ring:4,bw=1GB/s", CollectiveKind::Scatter, &[all]), ratio(1, 8));
        // Two pairs that cross each other.
        assert_eq!(time("ring:4,bw=1GB/s", CollectiveKind::Allreduce, &[&[0, 2], &[1, 3]]), ratio(8, 8));
    }

    #[test]
    fn who_has_no_way_or_other_lengths_proves_nothing() {
        let topology = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
        assert_eq!(length_bound(&topology, &[], &[1, 2], Transit::Forward, &|| false), None);
        assert_eq!(time("ring:4", CollectiveKind::Allreduce, &[]), None);
    }
}
