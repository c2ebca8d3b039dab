//! What runtimes do without plans: [`nccl`] models what NCCL and RCCL take for a call, and [`advice`] writes the tables by
//! which they and MPI libraries choose better among their own algorithms.

pub mod advice;
pub mod nccl;
