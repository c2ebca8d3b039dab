//! Families of commands. Each of their commands can be called without the family's name, too, as releases up to 0.1 had them.

use clap::Subcommand;

#[cfg(feature = "embedded")]
use super::hosting;
use super::{cluster, job, leases, operate, render, topology};
use crate::exit::Failure;
use crate::running::interruptible;

/// Networks: show, generate and convert them; keep them and clusters at a server
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  canopy network show dgx-h100:boxes=2
  canopy network generate torus:4x4,bw=50GB/s -o torus.yaml
  canopy network same torus:4x4 hypercube:4
  canopy network convert topo.xml --to yaml -o topo.yaml
  canopy network compose --host topo.xml --fabric topology.conf --nodes 'gpu[001-016]' -o job.yaml
  canopy network replicate topo.xml --boxes 4 --fabric rail -o cluster.yaml
  canopy network schema -o topology.schema.json
  canopy network cost dfc2:32x32,terminals=16
  canopy network put topo.yaml --server 127.0.0.1:7423
  canopy network cluster put prod --host topo.xml --fabric topology.conf
  canopy plan topologies/0123abcd… --collective allgather --server 127.0.0.1:7423 -o plan.json")]
pub(super) enum NetworkCommand {
    #[command(flatten)]
    Topology(topology::TopologyCommand),
    #[command(flatten)]
    Clusters(Clusters),
}

/// Clusters that a server keeps.
#[derive(Debug, Subcommand)]
pub(super) enum Clusters {
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
}

/// A job's plans: what its scheduler calls before, at and after it, and its leases
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  canopy job prefetch 'clusters/prod:gpu[001-016]' --collective allreduce,allgather
  canopy job fetch 'clusters/prod:gpu[001-016]' --collective allreduce --runtime msccl --lease 1h
  eval \"$(canopy job env)\"
  canopy job leases show --job 17")]
pub(super) enum JobCommand {
    Prefetch(job::prefetch::PrefetchArgs),
    Fetch(job::fetch::FetchArgs),
    Env(job::env::EnvArgs),
    Release(job::release::ReleaseArgs),
    #[command(subcommand)]
    Leases(leases::LeasesCommand),
    Render(render::RenderArgs),
}

/// Servers: run one, look at what it has, and manage it
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  canopy server serve --data-dir /var/lib/canopy
  canopy server stats --server planner.example:7423
  canopy server plans list --filter 'collective=allgather AND ranks>=16'
  canopy server backup backup.canopy
  canopy server drain")]
pub(super) enum ServerCommand {
    #[cfg(feature = "embedded")]
    #[command(flatten)]
    Hosting(hosting::Hosting),
    #[command(subcommand)]
    Plans(operate::plans::PlansCommand),
    #[command(subcommand)]
    Jobs(operate::jobs::JobsCommand),
    Stats(operate::stats::StatsArgs),
    Quota(operate::quota::QuotaArgs),
    Backup(operate::archive::BackupArgs),
    Fsck(operate::fsck::FsckArgs),
    Config(operate::config::ConfigArgs),
    LogFilter(operate::log_filter::LogFilterArgs),
    Reload(operate::reload::ReloadArgs),
    Drain(operate::drain::DrainArgs),
}

impl NetworkCommand {
    /// Runs the command to its end, or until the user interrupts it.
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Topology(command) => interruptible(topology::run(command)),
            Self::Clusters(command) => command.run(),
        }
    }
}

impl Clusters {
    /// Runs the command to its end, or until the user interrupts it.
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self::Cluster(command) = self;
        interruptible(cluster::run(command))
    }
}

impl JobCommand {
    /// Runs the command to its end; a hook ends by its deadline.
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Prefetch(args) => job::prefetch::run(args),
            Self::Fetch(args) => job::fetch::run(args),
            Self::Env(args) => job::env::run(args),
            Self::Release(args) => job::release::run(args),
            Self::Leases(command) => interruptible(leases::run(command)),
            Self::Render(args) => interruptible(render::run(args)),
        }
    }
}

impl ServerCommand {
    /// Runs the command to its end, or until the user interrupts it; a server ends in order then.
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            #[cfg(feature = "embedded")]
            Self::Hosting(command) => command.run(),
            Self::Plans(command) => interruptible(operate::plans::run(command)),
            Self::Jobs(command) => interruptible(operate::jobs::run(command)),
            Self::Stats(args) => interruptible(operate::stats::run(args)),
            Self::Quota(args) => interruptible(operate::quota::run(args)),
            Self::Backup(args) => interruptible(operate::archive::backup(args)),
            Self::Fsck(args) => interruptible(operate::fsck::run(args)),
            Self::Config(args) => interruptible(operate::config::run(args)),
            Self::LogFilter(args) => interruptible(operate::log_filter::run(args)),
            Self::Reload(args) => interruptible(operate::reload::run(args)),
            Self::Drain(args) => interruptible(operate::drain::run(args)),
        }
    }
}
