//! `Analysis.OrderMachines`: in which order to number the machines of a job.

use canopy_order::{Group, OrderError, Pattern, Report, Times, report};
use canopy_planner::TopologyKey;
use canopy_proto::v1::{
    GroupPattern, OrderMachinesRequest, OrderMachinesResponse, OrderTimes, OrderedMachine, RankGroups, Warning,
};
use canopy_topology::{Topology, shorten};
use canopy_wire::{RequestError, topology_summary};
use tonic::{Request, Status};

use crate::failure::{CallFailure, PlanFailure};
use crate::rpc::shared::admission::Admission;
use crate::rpc::shared::cluster_parts::expanded;
use crate::rpc::shared::sources;

/// Bytes that the search takes for each link and each pair of machines, roughly.
const LINK_BYTES: u64 = 512;
const PAIR_BYTES: u64 = 32;

/// Answers the call.
pub(super) async fn order_machines(
    admission: &Admission,
    request: Request<OrderMachinesRequest>,
) -> Result<OrderMachinesResponse, Status> {
    let (headers, _, request) = request.into_parts();
    let (networks, limits) = (admission.resolver.networks.clone(), admission.resolver.limits.searched());
    let found = admission.pool.compute("OrderMachines", &headers, move |_, seat| {
        let gone = || seat.is_over();
        let groups = request.groups.iter().enumerate().map(group).collect::<Result<Vec<Group>, _>>()?;
        let machines = Some(&request.nodes).filter(|nodes| !nodes.is_empty());
        let machines = machines.map(|nodes| expanded(nodes)).transpose().map_err(OrderError::Hosts)?;
        let (topology, warnings) = sources::read(&networks, request.topology, &limits, &gone)?;
        let links = (topology.links().len() as u64).saturating_mul(LINK_BYTES);
        let machines_max = machines.as_ref().map_or(topology.nodes().len(), Vec::len) as u64;
        seat.take_memory(links.saturating_add(machines_max.saturating_mul(machines_max).saturating_mul(PAIR_BYTES)))?;
        let report = report(&topology, machines.as_deref(), &groups, &gone)?;
        Ok(on_the_wire(&topology, &report, warnings))
    });
    found.await
}

fn group((number, group): (usize, &RankGroups)) -> Result<Group, CallFailure> {
    let pattern = match GroupPattern::try_from(group.pattern) {
        Ok(GroupPattern::Unspecified | GroupPattern::Ring) => Pattern::Ring,
        Ok(GroupPattern::Trees) => Pattern::Trees,
        Ok(GroupPattern::AllToAll) => Pattern::AllToAll,
        Err(_) => {
            let field = format!("groups[{number}].pattern");
            let known = "GROUP_PATTERN_RING, GROUP_PATTERN_TREES or GROUP_PATTERN_ALL_TO_ALL";
            let number = group.pattern;
            return Err(PlanFailure::Request(RequestError::UnknownValue { field, number, known }).into());
        }
    };
    let name = if group.name.is_empty() { format!("groups[{number}]") } else { shorten(&group.name) };
    if group.weight == Some(0) {
        let field = format!("groups[{number}].weight");
        let error = Box::new(RequestError::Zero { field: "weight" });
        return Err(PlanFailure::Request(RequestError::InBundle { field, error }).into());
    }
    Ok(Group { name, size: group.size, pattern, weight: group.weight.unwrap_or(1) })
}

fn on_the_wire(topology: &Topology, report: &Report, warnings: Vec<Warning>) -> OrderMachinesResponse {
    let machine = |(given, name, ranks): (usize, &str, u32)| OrderedMachine {
        name: name.to_owned(),
        ranks,
        given: u32::try_from(given).unwrap_or(u32::MAX),
    };
    let of = |times: &Times| {
        let Times { total, by_kind, fair_share, hashed, hops } = times.clone();
        OrderTimes { time: total, group_times: by_kind, fair_share, hashed, hops }
    };
    let [given, by_name, found] = report.times.each_ref().map(|times| Some(of(times)));
    OrderMachinesResponse {
        machines: report.machines().map(machine).collect(),
        given,
        by_name,
        by_number: report.by_number.as_ref().map(of),
        found,
        best: report.found.is_best,
        topology: Some(topology_summary(topology, &TopologyKey::of(topology))),
        warnings,
    }
}
