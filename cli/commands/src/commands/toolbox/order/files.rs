//! Files and variables that say the order of machines.

use super::MachineSummary;
use crate::exit::Failure;
use crate::input;

/// What stands before the machines in a ConfigMap.
const CONFIGMAP_HEAD: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: canopy-order
# By machine (spec.nodeName of a pod): its node rank. That of 0 is MASTER_ADDR.
data:
";

/// Files that say the order of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum HostFile {
    /// A line with its machine for each rank, for SLURM_HOSTFILE
    Slurm,
    /// `host slots=8`, for `mpirun --hostfile`
    Openmpi,
    /// `host:8`, for `mpiexec -f`; also of Intel MPI
    Mpich,
    /// A line for each machine
    Nodes,
    /// A Kubernetes ConfigMap from machine to node rank
    Configmap,
}

impl HostFile {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::Openmpi => "openmpi",
            Self::Mpich => "mpich",
            Self::Nodes => "nodes",
            Self::Configmap => "configmap",
        }
    }

    /// A line or several for each machine, in this order.
    pub(super) fn text(self, machines: &[MachineSummary]) -> String {
        let line = |MachineSummary { host, node_rank, ranks, .. }: &MachineSummary| match self {
            Self::Slurm => format!("{host}\n").repeat(*ranks as usize),
            Self::Openmpi => format!("{host} slots={ranks}\n"),
            Self::Mpich => format!("{host}:{ranks}\n"),
            Self::Nodes => format!("{host}\n"),
            Self::Configmap => format!("  {host:?}: \"{node_rank}\"\n"),
        };
        let lines: String = machines.iter().map(line).collect();
        let head = if self == Self::Configmap { CONFIGMAP_HEAD } else { "" };
        format!("{head}{lines}")
    }
}

/// What torchrun is told on a machine.
pub(super) fn torchrun(machines: &[MachineSummary], host: &str) -> Result<String, Failure> {
    let names: Vec<&String> = machines.iter().map(|machine| &machine.host).collect();
    // A machine may know itself by a longer name or a shorter one.
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let exact = names.iter().position(|name| *name == host);
    let alike: Vec<usize> = (0..names.len()).filter(|&place| short(names[place]) == short(host)).collect();
    let rank = exact.or_else(|| alike.first().copied().filter(|_| alike.len() == 1)).ok_or_else(|| {
        Failure::input(format!("`{}` is no machine of the network", input::shortened(host)))
            .help("`canopy tools order T --to nodes -o -` lists them")
    })?;
    let master = names.first().map_or("", |name| name.as_str());
    Ok(format!("NODE_RANK={rank}\nMASTER_ADDR={master}\nNNODES={}", names.len()))
}
