//! Runs canopy's plans under the collectives of MPI, by point-to-point messages of the MPI library underneath.
//!
//! Programs stay as they are: a library that is preloaded or linked overrides `MPI_Allreduce` and its kin
//! ([`export!`]), and calls that no plan serves go on to the MPI library (`PMPI_…`). What each module knows:
//!
//! | module | what it does |
//! |---|---|
//! | `abi` | what differs between Open MPI and MPICH |
//! | `symbols`, `functions`, `mpi` | finds the MPI library in the process and calls it |
//! | `settings` | reads the environment |
//! | `folder` | reads plans, and proves them before they run |
//! | `choice` | chooses a plan by what all ranks know alike |
//! | `script` | what a rank does for a plan and a size; pure |
//! | `staging` | where the memory of a plan is: the caller's buffers, or copies |
//! | `execute` | posts messages and combines elements |
//! | `communicator`, `library` | what is kept for a communicator and for the process |
//! | `collectives`, `entries`, `export` | the overridden functions |
//! | `report`, `reason` | counts of calls |
//!
//! All ranks of a communicator take the same decisions: they compare the digest of their plans once, and a call is
//! judged by collective, root, operator and bytes alone. No MPI header or library is needed to build.

mod abi;
mod choice;
mod collectives;
mod communicator;
#[doc(hidden)]
pub mod entries;
mod execute;
mod export;
mod folder;
mod functions;
mod library;
mod mpi;
mod operators;
mod reason;
mod report;
mod script;
mod settings;
mod staging;
mod symbols;

pub use abi::{Abi, Mpich, OpenMpi};
pub use library::Library;
pub use operators::{Class, Operator};
