//! The canopy server: gRPC on the outside, a bounded queue and CPU workers inside, sled underneath.
//!
//! A request is decoded and put in line ([`Order`]); a worker reads its topology, looks into the store, and if need be
//! plans, checks and stores ([`Planner`]). Everything that blocks or computes runs on plain threads; the async runtime
//! only moves messages. Nothing unchecked is stored or sent.

mod admin;
mod answered;
mod answers;
mod around;
mod asked;
mod call;
mod clock;
mod config;
mod deadline;
mod drain;
mod embedded;
mod failure;
mod finds;
mod front;
mod job;
mod journal;
mod judge;
mod key;
mod listener;
mod maintenance;
mod malformed;
mod metrics;
mod notify;
mod observed;
mod order;
mod peer;
mod pipeline;
mod planner;
mod process;
mod queue;
mod reading;
mod receipts;
mod refusals;
mod reload;
mod replan;
mod rpc;
mod schedules;
mod server;
mod service;
mod socket;
mod stand_in;
mod statistics;
mod status;
mod store;
mod tasks;
mod telemetry;
mod tenant;
mod timeout;
mod topologies;
mod trace;
mod workers;

pub use canopy_wire::InlineError;
pub use config::{
    AdminListen, ConfigError, DurationError, Exposure, Options, ServerFlags, Settings, Tenure, Time, data_dir_default,
    parse_duration, print_effective, print_sample, socket_path,
};
pub use drain::DrainHandle;
pub use embedded::EmbeddedServer;
pub use failure::{PlanFailure, Shortfall};
pub use key::{PlanKey, RequestKey, ScheduleKey, TopologyKey};
pub use maintenance::{MaintenanceCommand, MaintenanceError, run_maintenance};
pub use order::{Group, JointOrder, JointTask, Making, Order, RequestError, TopologyInput};
pub use pipeline::Pipeline;
pub use planner::{Planner, Prepared, PreparedJoint, Produced, Recall, Watch};
pub use process::{ServeError, run_server};
pub use refusals::RefusalOptions;
pub use replan::ReplanOptions;
pub use server::{RunError, Server, StartError};
pub use socket::SocketPath;
pub use statistics::Statistics;
pub use store::{
    ArchiveCounts, ArchiveError, ArchiveWriter, ArchivedRecord, CheckReport, DamagedRecord, Durability, Eviction,
    Lookup, MemoryStore, Migration, Opened, Pending, PlanSummary, RecordOptions, Records, Recovery, Repair, Space,
    Staging, Store, StoreEngine, StoreError, StoredPlan, Upkeep, Usage, check_store, decode_record, encode_record,
    open_store, pending_migration, read_archive, receive_archive, write_archive,
};
pub use telemetry::{LogFormat, Telemetry, TelemetryError, flush_log};
pub use tenant::IsolatedTenant;
