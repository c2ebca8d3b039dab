//! Client library of canopy: requests plans from a server and assembles the files that it sends.
//!
//! A [`Client`] calls the services at a [`ServerAddress`] and checks every byte of the files it receives. A
//! [`ClientError`] names who has to act by its [`ErrorClass`], [`Retries`] say when to call again, and a [`RequestId`]
//! makes a retry safe. The library passes topologies, schedules and files through without reading them.

mod address;
mod archive;
mod assembly;
mod calls;
mod class;
mod client;
mod credentials;
mod download;
mod error;
mod groups;
mod moving;
mod request_id;
mod retry;
mod tenant;
mod watch;
mod weigh;

pub use address::{AddressError, ServerAddress};
pub use archive::ArchiveReceiver;
pub use assembly::ContentError;
pub use class::ErrorClass;
pub use client::{Client, PlanReceiver};
pub use credentials::{Credentials, NotAToken, Token};
pub use download::{FileName, PartialFile};
pub use error::{ClientError, Refusal};
pub use groups::{GroupsRound, GroupsStream, PlannedGroups};
pub use moving::{MovingEvents, MovingMatrices};
pub use request_id::RequestId;
pub use retry::{Jitter, Retries, RetryPolicy};
pub use tenant::{NotATenant, Tenant};
pub use watch::ReplanEvents;
