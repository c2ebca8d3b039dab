//! The bound as a server finds it: for the network as the faults leave it that the server knows.

use canopy_proto::Exact as _;
use canopy_proto::v1::{self, ComputeBoundResponse, PlanSpec};
use canopy_synth::PlainBounds;
use canopy_topology::Rate;

use super::{BoundArgs, BoundSummary, Bounded, PlainBoundsSummary, readable};
use crate::certificate::CertificateSummary;
use crate::connection::{ServerArgs, ask_about};
use crate::exit::Failure;
use crate::fault_messages;
use crate::known_faults;
use crate::output::{AlgbwSummary, TopologySummary, print_json};
use crate::request;
use crate::stdout::print;

/// Asks for it, and prints it.
pub(super) async fn run(args: &BoundArgs, server: &ServerArgs) -> Result<(), Failure> {
    if args.explain {
        return Err(Failure::input("--explain is worked out here, and a server is named").help(
            "leave --explain out, or write `--server \"\"` for the network without the faults that servers know",
        ));
    }
    let kind = args.collective.kind()?;
    let collective = request::collective_spec(kind, args.collective.root);
    let request = request::plan(request::topology(&args.topology)?, collective, Vec::new());
    let request = PlanSpec { fault_policy: args.faults.policy().into(), ..request };
    let request = args.part.in_request(request, &args.collective)?;
    let reply = ask_about(server, args.deadline, &args.topology, async |connection, left| {
        connection.shared().compute_bound(request.clone().into_bound(), left).await
    });
    let reply = reply.await?;
    known_faults::say_warnings(known_faults::worth_saying(&reply.warnings, false), "bound");
    let root = kind.has_root().then_some(args.collective.root.unwrap_or(0));
    let object = object(kind.name(), root, request.shares, reply)
        .ok_or_else(|| Failure::fault("the server's answer has no bound, certificate or topology"))?;
    if args.json { print_json("bound", &object) } else { print(&readable(args, &object, Vec::new())) }
}

fn object(
    collective: &'static str,
    root: Option<u32>,
    shares: Vec<u64>,
    reply: ComputeBoundResponse,
) -> Option<Bounded> {
    let ComputeBoundResponse {
        bound,
        lower,
        certificate,
        topology,
        puncture,
        without_in_network,
        with_in_network,
        plain_bounds,
        ..
    } = reply;
    let (upper, lower): (Rate, Rate) = (bound.read()?, lower.read()?);
    Some(Bounded {
        topology: TopologySummary::of_server(&topology?)?,
        collective,
        root,
        shares: Some(shares).filter(|shares| !shares.is_empty()),
        faults: puncture.unwrap_or_default().faults.iter().filter_map(fault_messages::text).collect(),
        bound: BoundSummary::new(&upper, &lower),
        without_in_network: AlgbwSummary::stated(without_in_network.exact()),
        with_in_network: AlgbwSummary::stated(with_in_network.exact()),
        certificate: CertificateSummary::of_server(certificate?)?,
        plain_bounds: plain_bounds.and_then(plain),
        family: None,
        explanation: None,
    })
}

fn plain(stated: v1::PlainBounds) -> Option<PlainBoundsSummary> {
    let degree = stated.degree.zip(stated.full_tree.read());
    Some(PlainBoundsSummary::of(&PlainBounds { distances: stated.distances.read()?, degree }))
}
