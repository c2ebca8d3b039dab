//! What a network says to the lowering of its plans.

use canopy_topology::Topology;

use super::ExecutionLowerOptions;
use crate::mscclpp::profile::ExecutorProfile;
use crate::mscclpp::switches::switch_domains;

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
