//! A request whose form is right.

use canopy_proto::v1;
use canopy_topology::Transit;
use canopy_training::job::Objective;
use canopy_wire as wire;
use canopy_wire::{RequestError, StatedJob, StatedRunning};

use crate::rpc::shared::decode::{self, Method};
use crate::rpc::shared::plan_query::PlanQuery;

/// What is asked for.
pub(super) struct Asked {
    /// The network before faults.
    pub(super) topology: Option<v1::TopologySource>,
    pub(super) fault_policy: i32,
    /// The groups before faults.
    pub(super) stated: StatedJob,
    /// Jobs that run already, in order.
    pub(super) running: Vec<StatedRunning>,
    /// Whether other orders of its dimensions are looked at.
    pub(super) reorders: bool,
    /// Whether groups that can be faster are.
    pub(super) objective: Objective,
    /// Limits of plans that are trees.
    max_chunks: Option<u64>,
    max_depth: Option<u32>,
    /// Files of each plan; none: no plan is made.
    pub(super) outputs: Vec<v1::OutputSpec>,
    pub(super) priority: i32,
    /// Whether it is computed what the groups reach otherwise.
    pub(super) compares: bool,
}

impl Asked {
    /// Reads a request.
    ///
    /// # Errors
    /// The first field that is wrong whatever the network is.
    pub(super) fn read(request: v1::PlanGroupsRequest) -> Result<Self, RequestError> {
        let (stated, running) = (wire::job(&request)?, wire::running_jobs(&request)?);
        let reorders = request.best_order;
        let v1::PlanGroupsRequest { topology, outputs, without_comparison, fault_policy, priority, levels, .. } =
            request;
        let (max_chunks, max_depth) = (request.max_chunks, request.max_depth);
        let objective = if levels { Objective::Levels } else { Objective::Common };
        if topology.is_none() {
            return Err(RequestError::Missing { field: "topology", remedy: "name the network" });
        }
        let compares = !without_comparison;
        let asked = Self {
            topology,
            fault_policy,
            stated,
            running,
            reorders,
            objective,
            max_chunks,
            max_depth,
            outputs,
            priority,
            compares,
        };
        // All that a plan would be refused for, whatever the network is.
        let source = v1::topology_source::Source::Expression(String::new());
        let probe = asked.request(v1::TopologySource { source: Some(source) }, true);
        let collective = Some(v1::CollectiveSpec { kind: v1::Collective::Allgather.into(), root: None });
        let probe = v1::PlanSpec { collective, fault_policy, ..probe };
        decode::decode(PlanQuery { priority, ..probe.into() }, Method::Plan)?;
        Ok(asked)
    }

    /// Whether files are for runtimes, where only members of a group run its plan.
    pub(super) fn is_for_runtimes(&self) -> bool {
        self.outputs.iter().any(|output| output.format != i32::from(v1::OutputFormat::Json))
    }

    /// What ranks do for groups that they are not in.
    pub(super) const fn transit(&self) -> Transit {
        self.stated.transit
    }

    /// The request for a plan on this network, but for its collective; `is_of_trees`: whether its plans are trees.
    pub(super) fn request(&self, network: v1::TopologySource, is_of_trees: bool) -> v1::PlanSpec {
        v1::PlanSpec {
            topology: Some(network),
            outputs: self.outputs.clone(),
            max_chunks: self.max_chunks.filter(|_| is_of_trees),
            max_depth: self.max_depth.filter(|_| is_of_trees),
            ..v1::PlanSpec::default()
        }
    }
}
