//! One machine, as the tools on it print it: `nvidia-smi topo -m`, `rocm-smi --showtopo`, `amd-smi topology`
//! and hwloc's `lstopo`.
//!
//! They tell less than a dump of NCCL: what they leave open is assumed, with the rates of NCCL's tables, and said.

mod groups;
mod hwloc;
mod rates;
mod rocm;
mod smi;

pub(crate) use hwloc::{begins as begins_hwloc, read as read_hwloc};
pub(crate) use rocm::{begins as begins_rocm, begins_amd, read as read_rocm, read_amd};
pub(crate) use smi::{begins as begins_smi, read as read_smi};

#[cfg(test)]
mod tests;
