//! Bundles of joint plans for concurrent collectives.
//!
//! Each plan is one that anybody could ask for by itself (`PlanSpec.joint`), so each is kept, found again and fetched like any
//! other. Before they are named together, their files are read back and judged together.

use std::num::NonZeroU64;

use bytes::Bytes;
use canopy_plan::{PlanFile, read_plan};
use canopy_planner::{PlanError, chain};
use canopy_proto::v1;
use canopy_schedule::{Certificate, CutDirection, JointPart, JointTask, check_joint, joint_bound};
use canopy_topology::{NodeIndex, Rank, Topology, TopologyLimits};
use canopy_wire::fraction;
use canopy_wire::{Priority, RequestError, plan_header};

use super::maker::PlanMaker;
use super::read_probe;
use super::request::require_names;
use crate::error::ServiceError;

/// A request whose form is right.
#[derive(Clone, Debug)]
pub(super) struct JointWanted {
    topology: Option<v1::TopologySource>,
    collectives: Vec<v1::JointCollective>,
    outputs: Vec<v1::OutputSpec>,
    fault_policy: i32,
}

impl JointWanted {
    /// Reads a request.
    ///
    /// # Errors
    /// The first field that is wrong whatever the network is.
    pub(super) fn read(request: v1::PlanBundleRequest) -> Result<Self, RequestError> {
        let others = [
            ("communicators", !request.communicators.is_empty()),
            ("collectives", !request.collectives.is_empty()),
            ("size_bytes_min", request.size_bytes_min.is_some()),
            ("size_bytes_max", request.size_bytes_max.is_some()),
            ("output", request.output.is_some()),
            ("in_place", request.in_place.is_some()),
            ("strict", request.strict),
            ("margin", request.margin.is_some()),
            ("alpha_ns", request.alpha_ns.is_some()),
            ("placement", request.placement.is_some()),
        ];
        if let Some((field, _)) = others.into_iter().find(|&(_, is_given)| is_given) {
            return Err(RequestError::NotApplicable { field, method: "a bundle of joint plans" });
        }
        Priority::stated(request.priority)?;
        let v1::PlanBundleRequest { topology, joint, fault_policy, .. } = request;
        let v1::JointBundleSpec { collectives, mut outputs } = joint.unwrap_or_default();
        if collectives.is_empty() {
            let remedy = "list the collectives that run concurrently";
            return Err(RequestError::Missing { field: "joint.collectives", remedy });
        }
        require_names("joint.collectives", collectives.iter().map(|collective| collective.name.as_str()))?;
        if outputs.iter().all(|output| output.format != i32::from(v1::OutputFormat::Json)) {
            outputs.push(v1::OutputSpec { format: v1::OutputFormat::Json.into(), ..v1::OutputSpec::default() });
        }
        let wanted = Self { topology, collectives, outputs, fault_policy };
        // All that a plan would be refused for, whatever the network is.
        let source = v1::topology_source::Source::Expression(String::new());
        let probe = wanted.request(0, Some(v1::TopologySource { source: Some(source) }));
        read_probe(probe).map_err(in_joint)?;
        Ok(wanted)
    }

    /// The request for one of the plans.
    fn request(&self, position: u32, topology: Option<v1::TopologySource>) -> v1::PlanSpec {
        v1::PlanSpec {
            topology,
            outputs: self.outputs.clone(),
            fault_policy: self.fault_policy,
            joint: Some(v1::JointSpec { collectives: self.collectives.clone(), position }),
            ..v1::PlanSpec::default()
        }
    }
}

/// An error of a plan's request, of which the outputs stand elsewhere.
fn in_joint(error: RequestError) -> RequestError {
    let field = error.field();
    let field = if field.starts_with("outputs") { format!("joint.{field}") } else { field };
    RequestError::InBundle { field, error: Box::new(error) }
}

/// Has all plans made and judged together.
///
/// # Errors
/// Those of the first plan that is refused, among others: all are needed.
pub(super) async fn answer<M: PlanMaker>(maker: &M, wanted: JointWanted) -> Result<v1::PlanBundleResponse, M::Failure> {
    // Once for all, so that every plan is of the same network, whatever becomes of a stored one meanwhile.
    let (first, known) = maker.complete(wanted.request(0, wanted.topology.clone())).await?;
    let source = first.topology;
    let (mut items, mut contents, mut assumed) = (Vec::new(), Vec::new(), None);
    for (position, collective) in (0_u32..).zip(&wanted.collectives) {
        let request = wanted.request(position, source.clone());
        let reply = maker.plan(request, maker.left()).await?;
        let v1::PlanResponse { plan, cache, timings, mut warnings, .. } = reply;
        let mut plan = plan.unwrap_or_default();
        contents.extend(content(&plan));
        for artifact in &mut plan.artifacts {
            if let Some(content) = artifact.content.take() {
                maker.keep(&plan.name, Some(artifact), content);
            }
        }
        // The request itself numbers the ranks; what holds for all is said once.
        warnings.retain(|warning| !matches!(warning.code.as_str(), "RANKS_RENUMBERED" | "FAULTS_OUTDATED"));
        assumed = warnings.extract_if(.., |warning| warning.code == "RANK_MAP_ASSUMED").next().or(assumed);
        let plan = Some(plan_header(&plan, 0));
        items.push(v1::JointItem { name: collective.name.clone(), plan, cache, timings, warnings });
    }
    if contents.len() != items.len() {
        return Err(ServiceError::Broken { what: "a joint plan has no plan file".to_owned() }.into());
    }
    let judged = maker.compute(maker.left(), move |work| together(&contents, &|| work.is_over())).await?;
    let times = items.first().and_then(|item| item.plan.as_ref()?.joint.as_ref()?.together.clone());
    let bundle = v1::JointBundle { items, times, ..judged };
    let warnings = assumed.into_iter().chain(known).collect();
    Ok(v1::PlanBundleResponse { joint: Some(bundle), warnings, ..v1::PlanBundleResponse::default() })
}

/// The plan file and the size that it is for.
fn content(plan: &v1::Plan) -> Option<(Bytes, NonZeroU64)> {
    let is_json = |file: &&v1::Artifact| file.format == i32::from(v1::OutputFormat::Json);
    let size = NonZeroU64::new(plan.joint.as_ref()?.size_bytes)?;
    Some((plan.artifacts.iter().find(is_json)?.content.clone()?, size))
}

/// What is to be said of plan files as a whole, once they are read back and nothing is wrong with them.
fn together(
    contents: &[(Bytes, NonZeroU64)],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<v1::JointBundle, ServiceError> {
    let broken = |what: String| ServiceError::Broken { what: format!("the bundle failed its check: {what}") };
    let limits = TopologyLimits { nodes_max: usize::MAX, links_max: usize::MAX, bytes_max: usize::MAX };
    let read = |(content, _): &(Bytes, NonZeroU64)| read_plan(content, &limits).map_err(|error| broken(chain(&error)));
    let plans = contents.iter().map(read).collect::<Result<Vec<PlanFile>, _>>()?;
    // Each network has all nodes and links of the whole one.
    let whole = &plans.first().ok_or_else(|| broken("no plan has a file".to_owned()))?.topology;
    let parts = plans.iter().zip(contents).map(|(plan, &(_, size_bytes))| JointPart {
        topology: &plan.topology,
        schedule: &plan.schedule,
        size_bytes,
    });
    let verdict = check_joint(whole, &parts.collect::<Vec<_>>(), stop);
    if stop() {
        return Err(PlanError::Stopped.into());
    }
    let verdict = verdict.map_err(|error| broken(chain(&error)))?;
    if verdict.shared_links > 0 {
        return Err(broken(format!("{} links are used twice in one step", verdict.shared_links)));
    }
    Ok(bound(whole, &plans, contents, stop))
}

/// What nothing is faster than.
fn bound(
    whole: &Topology,
    plans: &[PlanFile],
    contents: &[(Bytes, NonZeroU64)],
    stop: &dyn Fn() -> bool,
) -> v1::JointBundle {
    // The nodes of one network in the whole one.
    let known = whole.find_nodes(whole.nodes().iter().map(|node| node.id.as_str()));
    let there = |plan: &PlanFile, nodes: &[NodeIndex]| -> Option<Vec<NodeIndex>> {
        nodes.iter().map(|&node| known.get(plan.topology.node(node).id.as_str()).copied()).collect()
    };
    let members = plans.iter().map(|plan| {
        let ranks: Vec<NodeIndex> = plan.topology.ranks().map(Rank::node).collect();
        there(plan, &ranks).unwrap_or_default()
    });
    let members: Vec<Vec<NodeIndex>> = members.collect();
    let tasks = plans.iter().zip(&members).zip(contents).map(|((plan, members), &(_, size_bytes))| JointTask {
        members,
        collective: plan.schedule.collective,
        size_bytes,
    });
    let certificates = plans.iter().filter_map(|plan| match &plan.bound.certificate {
        Certificate::Cut { nodes, .. } => Some(vec![there(plan, nodes)?]),
        Certificate::Partition { sets } => sets.iter().map(|set| there(plan, set)).collect(),
        Certificate::Sum { .. } | Certificate::LpDual { .. } => None,
    });
    let certificates: Vec<Vec<Vec<NodeIndex>>> = certificates.collect();
    let found = joint_bound(whole, &tasks.collect::<Vec<_>>(), &certificates, stop);
    let Some(found) = found else { return v1::JointBundle::default() };
    let direction = match found.direction {
        CutDirection::In => v1::CutDirection::In,
        CutDirection::Out => v1::CutDirection::Out,
    };
    let set = |nodes: &Vec<NodeIndex>| v1::NodeSet {
        nodes: nodes.iter().map(|&node| whole.node(node).id.clone()).collect(),
        ranks: Vec::new(),
    };
    v1::JointBundle {
        seconds_bound: fraction(&found.seconds),
        bound_sets: found.sets.iter().map(set).collect(),
        bound_direction: direction.into(),
        ..v1::JointBundle::default()
    }
}
