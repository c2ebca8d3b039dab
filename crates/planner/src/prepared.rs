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
    /// The network, as those see it who take part.
    pub topology: Topology,
    /// Its hashes.
    pub topology_key: TopologyKey,
    /// By rank: which device it is; none: nobody says.
    pub rank_map: Option<Vec<Slot>>,
    /// What to plan on it.
    pub collective: Collective,
    /// How large the ranks' shares are.
    pub shares: Shares,
    /// What the network is made of, where the algorithm asks.
    pub composition: Option<Composition>,
    /// Bytes of memory that making the plan will take, roughly.
    pub memory_bytes: u64,
    /// What the reader of the topology wants to be known.
    pub warnings: Vec<Warning>,
    /// The same request on the sound network, or one that this is the rest of, where its plan is made of that one's schedule.
    pub sound: Option<Box<Self>>,
    /// What the network is the rest of; none: it is sound, as far as the request says.
    pub puncture: Option<Arc<Puncture>>,
    /// What the plan is made in common with; none: it is made alone.
    pub joint: Option<Arc<PreparedJoint>>,
}

/// Collectives that are planned in common, on a network that has been read.
#[derive(Clone, Debug)]
pub struct PreparedJoint {
    /// The network of all.
    pub whole: Topology,
    /// All of them.
    pub collectives: Vec<JointCollective>,
    /// Which of them is asked for.
    pub position: usize,
    /// What their schedule is known by.
    pub key: ScheduleKey,
}

impl Prepared {
    /// Bytes of memory that the network itself takes, roughly. O(nodes).
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
