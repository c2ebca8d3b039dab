//! What a network says to the lowering of its plans.

use canopy_topology::Topology;

use super::ExecutionLowerOptions;
use crate::mscclpp::profile::ExecutorProfile;
use crate::mscclpp::program::{ExecutionRank, RankChannels};
use crate::mscclpp::switches::switch_domains;

/// Two ranks of different boxes that the runtime takes for one box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mistaken {
    pub(super) rank: u32,
    pub(super) peer: u32,
    /// Ranks in the box of one of them.
    pub(super) of_box: u32,
}

/// Finds ranks that write to each other through proxies, which the runtime would let do so over NVLink. It divides ranks by those
/// of its own box and compares: so boxes must have consecutive ranks, and equally many. O(channels).
pub(super) fn mistaken(ranks: &[ExecutionRank], boxes: &[u32]) -> Option<Mistaken> {
    let size = |rank: u32| {
        let own = boxes.get(rank as usize)?;
        u32::try_from(boxes.iter().filter(|number| *number == own).count()).ok()
    };
    let of_rank = |rank: &ExecutionRank| {
        let of_box = size(rank.id)?.max(1);
        let ports = rank.channels.iter().filter_map(|entry| match entry {
            RankChannels::Peers { is_port: true, peers } => Some(peers),
            _ => None,
        });
        let peer = *ports.flatten().find(|&&peer| peer / of_box == rank.id / of_box)?;
        Some(Mistaken { rank: rank.id, peer, of_box })
    };
    ranks.iter().find_map(of_rank)
}

impl ExecutionLowerOptions {
    /// Options for plans on a network: ranks of one box reach each other's memory, and are written to
    /// at once by their switches that multicast. O(ranks²) at worst.
    pub fn on(topology: &Topology, profile: ExecutorProfile, name: String, in_place: bool, bytes_max: u64) -> Self {
        let boxes = boxes(topology);
        let switches = switch_domains(topology, &boxes);
        Self { in_place, bytes_max, profile, name, boxes, switches }
    }
}

/// The box of each rank by number. Ranks without one are alone, but where no rank has one all are together.
fn boxes(topology: &Topology) -> Vec<u32> {
    let ranks = topology.nodes().iter().take(topology.rank_count() as usize);
    let names: Vec<Option<&str>> = ranks.map(|node| node.attributes.box_name.as_deref()).collect();
    if names.iter().all(Option::is_none) {
        return Vec::new();
    }
    let number = |(position, name): (u32, &Option<&str>)| {
        let same = |&other: &u32| name.is_some() && names.get(other as usize) == Some(name);
        (0..position).find(same).unwrap_or(position)
    };
    (0_u32..).zip(&names).map(number).collect()
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    #[test]
    fn ranks_are_in_their_boxes_and_together_where_there_are_none() {
        let boxes = |text: &str| boxes(&generate(text, &TopologyLimits::STANDARD).unwrap());
        assert_eq!(boxes("ring:4"), Vec::<u32>::new());
        assert_eq!(boxes("dgx-a100:boxes=2"), [vec![0; 8], vec![8; 8]].concat());
    }
}
