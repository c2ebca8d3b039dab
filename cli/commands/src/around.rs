//! `--fault`: a network without what is named, whatever a server knows of it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use canopy_client::ErrorClass;
use canopy_faults::{Directory, Loss};
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{Fault, Punctured, TopologySource};
use canopy_topology::{Topology, renumbering};
use canopy_wire::loss_on_the_wire;

use crate::exit::{Failure, words};
use crate::messages::warn;

static LOSSES: OnceLock<Vec<Loss>> = OnceLock::new();

/// Option `--fault`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AroundArgs {
    /// Broken or slow element of T, such as nic:b0g3, nic:gpu01:3*1/2 or link:leaf1=spine; may be given several times
    #[arg(long, value_name = "FAULT", help_heading = "Networks")]
    fault: Vec<Loss>,
}

impl AroundArgs {
    /// Takes it away from T from now on.
    pub(crate) fn apply(&self) {
        LOSSES.get_or_init(|| self.fault.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect());
    }
}

/// Elements that are taken away from T, ascending, each once.
pub(crate) fn losses() -> &'static [Loss] {
    LOSSES.get().map_or(&[], Vec::as_slice)
}

/// Refuses faults beside a plan.
///
/// # Errors
/// There are some.
pub(crate) fn none_of_plan(name: &str) -> Result<(), Failure> {
    if losses().is_empty() {
        return Ok(());
    }
    Err(Failure::input(format!("{name} is a plan, and --fault takes elements away from a network"))
        .help("give the network, with --collective"))
}

/// Refuses faults beside published baselines, which run on whole networks.
///
/// # Errors
/// There are some.
pub(crate) fn none_of_published() -> Result<(), Failure> {
    if losses().is_empty() {
        return Ok(());
    }
    Err(Failure::input("the baselines of --published are for whole networks")
        .help("leave out one of --published and --fault"))
}

/// Topology T without these elements; says on standard error how its ranks are numbered.
///
/// # Errors
/// An element that T does not have; fewer than two ranks are left.
pub(crate) fn left_of(topology: Topology) -> Result<Topology, Failure> {
    let losses = losses();
    if losses.is_empty() {
        return Ok(topology);
    }
    let faults = Directory::new(&topology).resolve(losses).map_err(|error| {
        let named = losses.get(error.position).map(ToString::to_string).unwrap_or_default();
        Failure::input(format!("--fault {named}: {}", words(&error.problem)))
    })?;
    let left = topology.puncture(&faults).map_err(|error| Failure::new(ErrorClass::Infeasible, words(&error)))?;
    if let Some(text) = renumbering(&left.survivors) {
        warn(format_args!("RANKS_RENUMBERED: {text}"));
    }
    Ok(left.topology)
}

/// Topology T without these elements, on the wire.
pub(crate) fn on_the_wire(topology: TopologySource) -> TopologySource {
    let faults: Vec<Fault> = losses().iter().map(loss_on_the_wire).collect();
    if faults.is_empty() {
        return topology;
    }
    let punctured = Punctured { base: Some(Box::new(topology)), faults };
    TopologySource { source: Some(Source::Punctured(Box::new(punctured))) }
}
