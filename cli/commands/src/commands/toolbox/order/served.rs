//! The order as a server finds it: of machines of a cluster that it keeps, too.

use canopy_order::{Group, Pattern};
use canopy_proto::v1::{GroupPattern, OrderMachinesRequest, OrderMachinesResponse, OrderTimes, RankGroups};

use super::{MachineSummary, OrderArgs, OrderSummary};
use crate::commands::order_gain::TimesSummary;
use crate::connection::{ServerArgs, ask_about};
use crate::exit::Failure;
use crate::known_faults;
use crate::output::TopologySummary;
use crate::request;

/// Asks for it.
pub(super) async fn found(
    args: &OrderArgs,
    nodes: Option<Vec<String>>,
    server: &ServerArgs,
) -> Result<OrderSummary, Failure> {
    let request = OrderMachinesRequest {
        topology: Some(request::topology(&args.topology)?),
        nodes: nodes.unwrap_or_default(),
        groups: args.groups.iter().map(group).collect(),
    };
    let deadline = Some(args.deadline);
    let reply = ask_about(server, deadline, &args.topology, async |connection, left| {
        connection.shared().order_machines(request.clone(), left).await
    });
    let reply = reply.await?;
    known_faults::say_warnings(known_faults::worth_saying(&reply.warnings, false), "order");
    summary(args, reply).ok_or_else(|| Failure::fault("the server's answer has no times or topology"))
}

fn group(group: &Group) -> RankGroups {
    let pattern = match group.pattern {
        Pattern::Ring => GroupPattern::Ring,
        Pattern::Trees => GroupPattern::Trees,
        Pattern::AllToAll => GroupPattern::AllToAll,
    };
    let Group { name, size, weight, .. } = group;
    RankGroups { name: name.clone(), size: *size, pattern: pattern.into(), weight: Some(*weight) }
}

fn summary(args: &OrderArgs, reply: OrderMachinesResponse) -> Option<OrderSummary> {
    let OrderMachinesResponse { machines, given, by_name, by_number, found, best, topology, .. } = reply;
    let times = |times: OrderTimes| {
        let OrderTimes { time, group_times, fair_share, hashed, hops } = times;
        TimesSummary { time, group_times, fair_share, hashed, hops }
    };
    let machine = |(node_rank, machine): (usize, canopy_proto::v1::OrderedMachine)| MachineSummary {
        host: machine.name,
        node_rank,
        ranks: machine.ranks,
        given: machine.given as usize,
    };
    let given = times(given?);
    Some(OrderSummary {
        topology: TopologySummary::of_server(&topology?)?,
        machines: machines.into_iter().enumerate().map(machine).collect(),
        groups: super::groups(&args.groups, given.group_times.len()),
        given,
        by_name: times(by_name?),
        by_number: by_number.map(times),
        found: times(found?),
        best,
        files: Vec::new(),
    })
}
