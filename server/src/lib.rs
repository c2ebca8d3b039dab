//! The canopy server: gRPC on the outside, a bounded queue and CPU workers inside, sled underneath.
//!
//! A request is decoded and put in line ([`Order`]); a worker reads its topology, looks into the store, and if need be
//! plans, checks and stores ([`Planner`]). Everything that blocks or computes runs on plain threads; the async runtime
//! only moves messages. Nothing unchecked is stored or sent.

mod clock;
mod config;
mod digest;
mod embedded;
mod failure;
mod job;
mod key;
mod order;
mod pipeline;
mod planner;
mod process;
mod queue;
mod server;
mod service;
mod socket;
mod status;
mod store;
mod tasks;
mod telemetry;
mod workers;

pub use config::{
    ConfigError, DurationError, Exposure, Options, ServerFlags, data_dir_default, parse_duration, socket_path,
};
pub use embedded::EmbeddedServer;
pub use failure::{InlineError, PlanFailure, Shortfall};
pub use key::{PlanKey, RequestKey, TopologyKey};
pub use order::{Order, Output, RequestError, TopologyInput};
pub use pipeline::Pipeline;
pub use planner::{Planner, Prepared, Produced, Watch};
pub use process::{ServeError, run_server};
pub use server::{RunError, Server, StartError, Statistics};
pub use socket::SocketPath;
pub use store::{
    DamagedRecord, Lookup, MemoryStore, Opened, Records, SledStore, Store, StoreError, StoredPlan, decode_record,
    encode_record,
};
pub use telemetry::start_logging;
