//! A request whose topology has been read.

use std::sync::Arc;

use canopy_schedule::{Collective, Shares};
use canopy_synth::{Composition, JointCollective};
use canopy_topology::{Slot, Topology};

use crate::key::{PlanKey, ScheduleKey, TopologyKey};
use crate::planned::{Puncture, Warning};

/// A request whose topology has been read.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Where the plan is stored.
    pub key: PlanKey,
    /// The network as the participating ranks see it.
    pub topology: Topology,
    /// Its hashes.
    pub topology_key: TopologyKey,
    /// The large network of its expression, without faults and groups, if it is one.
    pub base: Option<Arc<Topology>>,
    /// The device of each rank; `None` if unknown.
    pub rank_map: Option<Vec<Slot>>,
    /// The collective to plan.
    pub collective: Collective,
    /// The sizes of the ranks' shares.
    pub shares: Shares,
    /// What the network is made of, where the algorithm asks.
    pub composition: Option<Composition>,
    /// Rough memory of making the plan, in bytes.
    pub memory_bytes: u64,
    /// Warnings of the reader of the topology.
    pub warnings: Vec<Warning>,
    /// The request on the healthy network, or one with fewer faults, if the plan is a repair of that one's schedule.
    pub sound: Option<Box<Self>>,
    /// The healthy network and its faults; `None` if the request states no faults.
    pub puncture: Option<Arc<Puncture>>,
    /// Its joint collectives; `None` if it is planned alone.
    pub joint: Option<Arc<PreparedJoint>>,
}

/// Joint collectives on a network that has been read.
#[derive(Clone, Debug)]
pub struct PreparedJoint {
    /// The common network.
    pub whole: Topology,
    /// All of them.
    pub collectives: Vec<JointCollective>,
    /// The index of the requested one.
    pub position: usize,
    /// The key of their schedule.
    pub key: ScheduleKey,
}

impl Prepared {
    /// Rough memory of the network itself, in bytes. O(nodes).
    pub fn weight_bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let network = |topology: &Topology| {
            let nodes = topology.nodes().iter().map(|node| {
                let named = &node.attributes;
                let attributes = [&named.host, &named.box_name, &named.rail, &named.label].into_iter().map(text);
                size_of_val(node) + node.id.len() + attributes.sum::<usize>()
            });
            nodes.sum::<usize>() + size_of_val(topology.links())
        };
        let shares = size_of_val(self.shares.weights());
        let slots = self.rank_map.iter().flatten().map(|slot| size_of_val(slot) + slot.node.len());
        let sound = self.sound.as_ref().map_or(0, |sound| sound.weight_bytes());
        let joint = self.joint.as_ref().map_or(0, |joint| {
            let ranks = joint.collectives.iter().map(|each| size_of_val(each) + size_of_val(each.ranks.as_slice()));
            network(&joint.whole) + ranks.sum::<usize>()
        });
        network(&self.topology) + shares + slots.sum::<usize>() + sound + joint
    }
}
