//! What the workers ask of a planner, so that tests can put another one in its place.

use std::sync::Arc;

use canopy_proto::v1;
use canopy_schedule::{Collective, Shares};
use canopy_synth::{Composition, JointCollective, Stop};
use canopy_topology::{Rate, Slot, Topology};

use crate::failure::PlanFailure;
use crate::key::{PlanKey, ScheduleKey, TopologyKey};
use crate::order::Order;
use crate::store::{StoreError, StoredPlan};

/// Makes plans. Called from worker threads; a panic in it fails the job alone.
pub trait Planner: Send + Sync + 'static {
    /// Reads and hashes the topology: all that is needed to know whether the plan is there already.
    ///
    /// # Errors
    /// What is wrong with the request; [`PlanFailure::Stopped`] soon after `stop` is requested.
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure>;

    /// Makes the plan from what is known of the network's shape, without a search: takes milliseconds.
    ///
    /// # Errors
    /// As [`Planner::produce`].
    fn recall(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Recall, PlanFailure> {
        let _knows_no_shapes = (order, prepared, stop, watch);
        Ok(Recall::Unknown(None))
    }

    /// Whether what is kept under this key would do for [`Planner::recall`].
    fn is_known(&self, schedule: &ScheduleKey) -> bool {
        let _knows_no_shapes = schedule;
        false
    }

    /// Number of schedules that are kept, and their bytes.
    ///
    /// # Errors
    /// The store failed.
    fn kept(&self) -> Result<(usize, u64), StoreError> {
        Ok((0, 0))
    }

    /// Drops what is kept under these keys: whoever wants it next has it searched for.
    fn forget(&self, schedules: &[ScheduleKey]) {
        let _keeps_none = schedules;
    }

    /// Makes the plan, checked, with the content of all its artifacts.
    ///
    /// # Errors
    /// Why there is none; [`PlanFailure::Stopped`] soon after `stop` is requested.
    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure>;
}

/// An order whose topology has been read.
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
    /// Bytes of memory that [`Planner::produce`] will take, roughly.
    pub memory_bytes: u64,
    /// What the reader of the topology wants to be known.
    pub warnings: Vec<v1::Warning>,
    /// The same order on the sound network, or one that this is the rest of, where its plan is made of that one's schedule.
    pub sound: Option<Box<Self>>,
    /// What the network is the rest of; none: it is sound, as far as the order says.
    pub puncture: Option<Arc<v1::Puncture>>,
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
    /// Which of them is ordered.
    pub position: usize,
    /// What their schedule is known by.
    pub key: ScheduleKey,
}

impl Prepared {
    /// Bytes of memory that the network itself takes, roughly. O(nodes).
    pub(crate) fn weight_bytes(&self) -> usize {
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

/// A finished plan.
#[derive(Clone, Debug)]
pub struct Produced {
    /// The plan as it is kept.
    pub plan: StoredPlan,
    /// How long its stages took; those outside [`Planner::produce`] are zero.
    pub timings: v1::Timings,
    /// Whether it was made from what was known, without a search.
    pub is_recalled: bool,
}

/// What is known of a shape.
#[derive(Clone, Debug)]
pub enum Recall {
    /// All that the plan needs.
    Made(Box<Produced>),
    /// Not enough; where what is found will be kept, if anywhere.
    Unknown(Option<ScheduleKey>),
}

/// Is told how far a job is. Called often: answers quickly.
pub trait Watch: Sync {
    /// `done` of `total` steps of a stage are done; `total` is 0 while not known.
    fn stage(&self, stage: &'static str, done: u64, total: u64);

    /// The bound is known.
    fn bound(&self, algbw: &Rate);

    /// A plan has been found and checked.
    fn incumbent(&self, algbw: &Rate);

    /// A plan that others were compared with was left out by a fault of the planner's own: what found it, and the check that refused it,
    /// or `broken`. Both are words of this program.
    fn rejected(&self, algorithm: &'static str, reason: &'static str) {
        let _nobody_counts = (algorithm, reason);
    }
}
