//! Plans collectives: from a description of a network to a plan with proven throughput, and its files.
//!
//! Schedules are searched for on the network in canonical order and stored in those labels: a later request for a
//! network of the same shape gets the same schedule in its own labels. A plan is released only if every judge agrees
//! under the caller's labels: the certificate proves the bound, the checker finds the transfers correct and their rate
//! within the bound, and each file, read back, equals what was written and passes the checks of its format.
//!
//! Nothing here reads a clock, a file or a socket: the caller's [`Context`] provides what is needed.
//!
//! ```
//! use canopy_planner::{Context, Planner, Request, SchedulesInMemory};
//! use canopy_schedule::CollectiveKind;
//! use canopy_topology::TopologyLimits;
//!
//! let planner = Planner::new(TopologyLimits::STANDARD);
//! let schedules = SchedulesInMemory::new(64 << 20);
//! let request = Request::on("dgx-a100:boxes=2", CollectiveKind::Allgather);
//! let plan = planner.plan(&request, Context::new(&schedules))?;
//! assert_eq!(plan.optimality.to_string(), "1/1");
//! assert_eq!(*plan.achieved(), plan.bound().upper);
//! # Ok::<(), canopy_planner::PlanError>(())
//! ```

mod bounded;
mod context;
mod error;
mod files;
mod key;
mod memory;
mod network;
mod planned;
mod planner;
mod prepared;
mod recent;
mod request;
mod rules;
mod schedules;
mod search;
mod shapes;
mod simulation;
mod tenant;
mod what_if;

pub use bounded::{Bounds, bound_with_nvls, bounded, proven_bound};
pub use canopy_plan::chain;
pub use context::{Clock, Context, Note, Watch};
pub use error::{Parts, PlanError};
pub use files::layered;
pub use key::{HashKind, PLANNER_CLASS, PlanKey, RequestKey, ScheduleKey, TopologyKey};
pub use network::{assumptions, read_reported, read_topology, seen_by};
pub use planned::{File, Files, JointSummary, Planned, Proofs, Puncture, Rejection, Timings, Warning};
pub use planner::{Planner, Recalled};
pub use prepared::{Prepared, PreparedJoint};
pub use recent::{MemoryUsage, Recent};
pub use request::{Group, JointRequest, JointTask, Making, Request, TopologyInput};
pub use schedules::{NoSchedules, Schedules, SchedulesInMemory};
pub use simulation::{
    Activity, SIMULATED_FILE_BYTES_MAX, SIMULATED_SIZES_MAX, Simulation, SimulationError, SimulationQuestion,
    SizeField, Timeline, simulate_file,
};
pub use tenant::{NotATenant, TenantName};
pub use what_if::{Left, WhatIf};
