//! Slurm's `topology.conf` and `topology.yaml`: switches and the machines below them, without rates.
//!
//! Source: SchedMD/slurm `src/plugins/topology`. Slurm plans with the shape alone; its `LinkSpeed` has no unit.

mod conf;
mod shapes;
mod yaml;

pub(crate) use conf::{begins as begins_conf, read as read_conf};
pub(crate) use yaml::{begins as begins_yaml, read as read_yaml};

#[cfg(test)]
mod tests;
