//! The canopy server: gRPC on the outside, a bounded queue and CPU workers inside, sled underneath.
//!
//! A request is decoded and queued ([`Order`]). A worker reads its topology, looks it up in the store and, if
//! necessary, plans, checks and stores ([`Planner`]). Everything that blocks or computes runs on plain threads; the
//! async runtime only moves messages. Nothing unchecked is stored or sent.
//!
//! Six folders, each of which uses only those before it: `net` (sockets, TLS, peers), `store` (data on disk), `jobs` (the
//! queue and planning), `replan` (leases, faults and replanning), `ops` (settings, figures, audit log and maintenance for
//! operators), `rpc` (the services of `canopy.v1`, and the only place that knows its messages). Modules that all of them
//! need are beside them.

mod access;
mod call;
mod command;
mod credentials;
mod drain;
mod embedded;
mod failure;
mod jobs;
mod metrics;
mod net;
mod ops;
mod process;
mod quota;
mod reading;
mod replan;
mod rpc;
mod server;
mod store;
mod tasks;
mod tenant;
mod trace;
mod uploads;

use canopy_store::clock;
#[cfg(test)]
use canopy_store::random;

pub use access::{AccessError, AccessOptions};
pub use canopy_planner::{Group, JointRequest as JointOrder, JointTask, Making, Request as Order, TopologyInput};
pub use canopy_planner::{PlanKey, RequestKey, ScheduleKey, TopologyKey};
pub use canopy_wire::InlineError;
pub use canopy_wire::RequestError;
pub use canopy_wire::StoredPlan;
pub use command::{CommandError, ServerCommand, run_command};
pub use credentials::CredentialsError;
pub use drain::DrainHandle;
pub use embedded::EmbeddedServer;
pub use failure::{PlanFailure, Shortfall};
pub use jobs::pipeline::Pipeline;
pub use jobs::planner::{Planner, Prepared, PreparedJoint, Produced, Recall, Watch};
pub use jobs::refusals::RefusalOptions;
pub use net::listener::{TlsError, TlsFiles};
pub use ops::audit::{AuditOptions, WhenUnwritable};
pub use ops::config::{
    AdminListen, AuditFolder, ConfigError, DurationError, Lifetime, Options, ServerFlags, ServerRole, Settings, Time,
    WhenAway, parse_duration, print_effective, print_sample,
};
pub use ops::maintenance::{MaintenanceCommand, MaintenanceError, run_maintenance};
pub use ops::statistics::Statistics;
pub use ops::telemetry::{LogFormat, Telemetry, TelemetryError, flush_log};
pub use process::{ServeError, run_server};
pub use quota::OverQuota;
pub use replan::ReplanOptions;
pub use server::{RunError, Server, StartError};
pub use store::{
    ArchiveCounts, ArchiveError, ArchiveKey, ArchiveTrust, ArchiveWriter, JobEnd, Others, Staging, open_shared_store,
    read_archive, receive_archive, write_archive,
};
pub use tenant::IsolatedTenant;
