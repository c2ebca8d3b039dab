//! Records that several servers share, in PostgreSQL.
//!
//! A record has a key, a summary, and the number of the change that made it; the numbers of all changes are in the order in
//! which they came to be. Every server has a copy of what is small ([`SharedSpace`]), changes records only if they are still
//! as its copy says, and follows the changes of the others. Whoever decides something by what it reads therefore either
//! decides by the latest there is, or is told that it has been overtaken, catches up and decides again.
//!
//! Keys and bytes are all this knows; which spaces there are is said by its user. Calls block, and are made from threads
//! that may wait.

mod address;
mod body;
mod change;
mod clock;
mod copies;
mod database;
mod error;
mod feed;
mod jobs;
mod migrate;
mod mirror;
mod news;
mod operations;
mod present;
mod quotas;
mod role;
mod servers;
mod space;
mod tls;
mod who;

pub use address::{Address, AddressError};
pub use change::{Change, Write};
pub use copies::SpaceNumber;
pub use database::{Database, Options, State};
pub use error::DatabaseError;
pub use jobs::{Claimed, End, JobNow, JobState, Jobs, NewJob, Right, SILENCE, Submitted, Wanted};
pub use migrate::{Migrated, SchemaError};
pub use mirror::{Entry, RecordFacts};
pub use news::JobNews;
pub use operations::OperationNow;
pub use quotas::{QuotaNow, QuotaUse};
pub use role::Role;
pub use servers::{Heard, ServerNow};
pub use space::{SharedRecords, SharedSpace};
pub use who::Who;

/// What a record is kept under.
pub type Key = [u8; 32];
