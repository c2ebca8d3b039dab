//! Descriptions of clusters, as [`canopy_import`] puts them together.

use std::fmt::Display;

use canopy_import::{
    Cluster, ClusterModel, Content, Fabric, FileKind, Layout, Machine, MachineOf, Rates, read_content,
};
use canopy_planner::{chain, read_topology};
use canopy_proto::v1;
use canopy_proto::v1::cluster_description::Fabric as Stated;
use canopy_topology::{TopologyLimits, expand_hosts};

use crate::plan_request::topology_input;

/// Most kinds of machines of a cluster.
const KINDS_MAX: usize = 64;

/// Why a description of a cluster is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct ClusterError {
    /// Path of the field at fault, such as `description.hosts[1].file`.
    pub field: String,
    /// What is wrong with it, and what would be accepted.
    pub problem: String,
}

impl ClusterError {
    fn new(field: impl Into<String>, problem: impl Display) -> Self {
        Self { field: field.into(), problem: problem.to_string() }
    }
}

/// Reads the description of a cluster. Whether its machines can be joined is for [`ClusterModel::check`] to say.
///
/// # Errors
/// The first field that is wrong.
///
/// O(bytes of its files).
pub fn cluster_model(
    description: &v1::ClusterDescription,
    limits: &TopologyLimits,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<ClusterModel, ClusterError> {
    let v1::ClusterDescription { fabric, hosts, rates } = description;
    let missing = || ClusterError::new("description.fabric", "is missing; set a file, a layout or a network");
    let fabric = fabric.as_ref().ok_or_else(missing)?;
    if let Stated::Network(source) = fabric {
        for (field, is_stated) in [("hosts", !hosts.is_empty()), ("rates", !rates.is_empty())] {
            if is_stated {
                let problem = "a whole network states all of its machines and rates; leave this out";
                return Err(ClusterError::new(format!("description.{field}"), problem));
            }
        }
        return whole(source, limits, stop);
    }
    if hosts.len() > KINDS_MAX {
        let problem = format!("{} kinds of machines exceed the limit of {KINDS_MAX}", hosts.len());
        return Err(ClusterError::new("description.hosts", problem));
    }
    let rates: Rates = rates.parse().map_err(|error| ClusterError::new("description.rates", chain(&error)))?;
    let read = |(position, kind)| machine_of(position, kind, limits, stop);
    let mut machines = hosts.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    if machines.is_empty() {
        machines.push(MachineOf { machine: None, hosts: None });
    }
    let fabric = match fabric {
        Stated::File(document) => fabric_of(document, limits, stop)?,
        Stated::Layout(layout) => regular(layout, &machines)?,
        Stated::Network(_) => return Err(missing()),
    };
    Ok(ClusterModel::Joined(Cluster { machines, fabric, rates }))
}

/// A network that is whole.
fn whole(
    source: &v1::TopologySource,
    limits: &TopologyLimits,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<ClusterModel, ClusterError> {
    let refused = |problem: String| ClusterError::new("description.network", problem);
    let input = topology_input(Some(source.clone())).map_err(|error| refused(chain(&error)))?;
    let (topology, _) = read_topology(&input, limits, &stop).map_err(|error| refused(chain(&error)))?;
    Ok(ClusterModel::Whole(topology))
}

fn machine_of(
    position: usize,
    kind: &v1::HostKind,
    limits: &TopologyLimits,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<MachineOf, ClusterError> {
    let at = |field: &str| format!("description.hosts[{position}].{field}");
    let machine = match &kind.file {
        None => None,
        Some(file) => match content(file, limits, stop).map_err(|problem| ClusterError::new(at("file"), problem))? {
            (_, Content::Machine(machine)) => Some(machine),
            (kind, _) => return Err(ClusterError::new(at("file"), other_kind(kind, "a machine"))),
        },
    };
    let hosts = match kind.nodes.as_str() {
        "" => None,
        list => Some(expand_hosts(list).map_err(|error| ClusterError::new(at("nodes"), error))?),
    };
    Ok(MachineOf { machine, hosts })
}

fn fabric_of(
    file: &v1::TopologyDocument,
    limits: &TopologyLimits,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Fabric, ClusterError> {
    let refused = |problem: String| ClusterError::new("description.file", problem);
    match content(file, limits, stop).map_err(refused)? {
        (_, Content::Fabric(fabric)) => Ok(fabric),
        (kind, _) => Err(refused(other_kind(kind, "what joins machines"))),
    }
}

fn regular(stated: &v1::FabricLayout, machines: &[MachineOf]) -> Result<Fabric, ClusterError> {
    let at = |field: &str| format!("description.layout.{field}");
    let layout: Layout = stated.layout.parse().map_err(|error| ClusterError::new(at("layout"), error))?;
    let nodes = expand_hosts(&stated.nodes).map_err(|error| ClusterError::new(at("nodes"), error))?;
    let ports = |machine: &MachineOf| machine.machine.as_ref().map_or(1, |machine: &Machine| machine.ports.len());
    let ports = machines.iter().map(ports).max().unwrap_or(1);
    layout.fabric(ports, nodes).map_err(|error| ClusterError::new(at("nodes"), chain(&error)))
}

fn content(
    file: &v1::TopologyDocument,
    limits: &TopologyLimits,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(FileKind, Content), String> {
    if file.format != i32::from(v1::DocumentFormat::Unspecified) {
        return Err("files of clusters are recognised by their content; leave out `format`".to_owned());
    }
    read_content(&file.content, limits, stop).map_err(|error| chain(&error))
}

fn other_kind(kind: FileKind, wanted: &str) -> String {
    format!("this is {}, and does not describe {wanted}", kind.name())
}
