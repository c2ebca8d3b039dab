//! Client library of canopy: asks a server for plans and puts together what it sends.
//!
//! A [`Client`] calls the services at a [`ServerAddress`] and checks every byte of the files that come back; a
//! [`ClientError`] tells whose move it is by its [`ErrorClass`], and [`Retries`] when to call
//! again; a [`RequestId`] sees that what was done is not done again. It knows nothing of topologies, schedules or file
//! formats: those travel through it.

mod address;
mod archive;
mod assembly;
mod calls;
mod class;
mod client;
mod download;
mod error;
mod request_id;
mod retry;
mod tenant;
mod watch;

pub use address::{AddressError, ServerAddress};
pub use archive::ArchiveReceiver;
pub use assembly::ContentError;
pub use class::ErrorClass;
pub use client::{Client, PlanReceiver};
pub use download::{FileName, PartialFile};
pub use error::{ClientError, Refusal};
pub use request_id::RequestId;
pub use retry::{Jitter, Retries, RetryPolicy};
pub use tenant::{NotATenant, Tenant};
pub use watch::ReplanEvents;
