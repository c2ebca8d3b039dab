//! A link that is taken down for real, and the repaired plan on what is left.

use canopy_faults::{Directory, Loss};
use canopy_lab::Network;
use canopy_schedule::{Bound, LinkLoads, Schedule, certified_bound, check, compile};
use canopy_synth::{RepairOptions, bound, repaired};
use canopy_topology::Topology;

use super::LabArgs;
use super::case::Case;
use super::measure::{Measured, measure};
use super::session::Session;
use crate::exit::{Failure, words};
use crate::material::Material;
use crate::messages::say;
use crate::running::on_a_thread;

/// Refuses faults that are not about links alone.
pub(super) fn require(topology: &Topology, losses: &[Loss]) -> Result<(), Failure> {
    left(topology, losses).map(|_| ())
}

/// The topology without what was lost, with all of its nodes.
fn left(topology: &Topology, losses: &[Loss]) -> Result<Topology, Failure> {
    let faults = Directory::new(topology).resolve(losses).map_err(|error| Failure::input(words(&error)))?;
    let left = topology.punctured(&faults).map_err(|error| Failure::input(words(&error)))?;
    let ids = |topology: &Topology| topology.nodes().iter().map(|node| node.id.clone()).collect::<Vec<_>>();
    if ids(&left) != ids(topology) {
        return Err(Failure::input("--fail takes links down, and this fault takes nodes with it")
            .help("name links, such as `--fail link:A=B`"));
    }
    Ok(left)
}

/// Takes links down or slows them, repairs the plan, and runs it on what is left.
pub(super) async fn run(
    session: &mut Session,
    network: &mut Network,
    case: &Case,
    losses: &[Loss],
    args: &LabArgs,
) -> Result<Option<(Case, String, Measured)>, Failure> {
    let rest = left(&case.material.topology, losses)?;
    let said = losses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let changes = network.changes(&rest, case.scale).map_err(|error| Failure::input(words(&error)))?;
    say(&format!("{said}: {} links change", changes.len()));
    session.commands(network.apply(&changes)).await?;
    let (base, schedule) = (case.material.topology.clone(), case.material.schedule.clone());
    let (scale, wishes) = (case.scale, args.wishes());
    let route_first = u32::try_from(case.compiled.routes.len()).unwrap_or(u32::MAX);
    // Behind those of every other plan that ran before.
    let route_first = route_first.saturating_mul(u32::try_from(args.algorithms.len().max(1)).unwrap_or(1)).max(1 << 12);
    let name = format!("{} repaired", case.name);
    let after =
        on_a_thread(move || Case::new(name, repair(&base, &schedule, &rest)?, scale, &wishes, route_first)).await?;
    let measured = measure(session, network, &after, args.runs).await?;
    Ok(Some((after, said, measured)))
}

/// The plan on what is left, judged like every other.
fn repair(base: &Topology, schedule: &Schedule, left: &Topology) -> Result<Material, Failure> {
    let refused =
        |error: &dyn std::error::Error| Failure::input(format!("the plan cannot be repaired: {}", words(error)));
    let options = RepairOptions { chunks_max: None, size_bytes: None, is_in_time: false };
    let schedule = repaired(base, schedule, left, options, &|| false).map_err(|error| refused(&error))?;
    let graph = compile(left, &schedule).map_err(|error| refused(&error))?;
    let verdict = check(left, &graph).map_err(|error| refused(&error))?;
    let (collective, shares) = (schedule.collective, &schedule.shares);
    let found = bound(left, collective, shares, &|| false).map_err(|error| refused(&error))?;
    let upper = certified_bound(left, collective, shares, &found.certificate).map_err(|error| refused(&error))?;
    let loads = LinkLoads::of(left, &graph).map_err(|error| refused(&error))?;
    Ok(Material { topology: left.clone(), schedule, bound: Bound { upper, ..found }, graph, verdict, loads })
}
