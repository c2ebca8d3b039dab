//! Faults as a server weighs them: its workers share the work, with those of other servers if it has any.

use canopy_proto::Exact as _;
use canopy_proto::v1::{PlanSpec, WeighFaultsRequest, WeighedFault};
use canopy_wire::{fault_kind_on_the_wire, left_of_wire, loss};

use super::{Answer, Weighed, WhatIfArgs, kinds};
use crate::connection::{ServerArgs, ask_about};
use crate::exit::Failure;
use crate::known_faults;
use crate::output::TopologySummary;
use crate::progress::ProgressLine;
use crate::request;

/// Has them weighed.
pub(super) async fn weighed(args: &WhatIfArgs, server: &ServerArgs) -> Result<Answer, Failure> {
    let collective = request::collective_spec(args.collective.kind()?, args.collective.root);
    let inner = request::plan(request::topology(&args.topology)?, collective, Vec::new());
    let remaining = (!args.remaining.is_gone())
        .then(|| canopy_wire::fraction_of(args.remaining.numerator(), args.remaining.denominator()));
    let asked = WeighFaultsRequest {
        kinds: kinds(args).iter().map(|kind| fault_kind_on_the_wire(*kind).into()).collect(),
        remaining,
        ..PlanSpec { fault_policy: args.faults.policy().into(), ..inner }.into_weigh_faults()
    };
    let line = ProgressLine::start();
    let reply = ask_about(server, args.deadline, &args.topology, async |connection, left| {
        let said = |done: &canopy_proto::v1::WeighFaultsProgress| {
            line.working(format!("{} of {} faults that differ", done.weighed, done.groups));
        };
        connection.shared().weigh_faults(asked.clone(), left, said).await
    });
    let reply = reply.await;
    drop(line);
    let (started, groups) = reply?;
    known_faults::say_warnings(known_faults::worth_saying(&started.warnings, false), "ranking");
    let summary = started.topology.as_ref().and_then(TopologySummary::of_server);
    let answer = summary.zip(started.bound.read()).and_then(|(topology, sound)| {
        let weighed = groups.iter().map(weighed_of).collect::<Option<_>>()?;
        let is_healthy = started.warnings.iter().all(|warning| warning.code != "FAULTS_APPLIED");
        Some(Answer { topology, sound, is_healthy, weighed })
    });
    answer.ok_or_else(|| Failure::fault("the server's answer has no bound, topology or faults"))
}

fn weighed_of(group: &WeighedFault) -> Option<Weighed> {
    let faults = group.faults.iter().map(|fault| loss(fault).ok()).collect::<Option<_>>()?;
    Some(Weighed { faults, alike: group.alike as usize, left: left_of_wire(group)? })
}
