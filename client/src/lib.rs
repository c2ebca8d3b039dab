//! Client library of canopy: asks a server for plans and puts together what it sends.
//!
//! A [`Client`] calls the services at a [`ServerAddress`] and checks every byte of the files that come back; a
//! [`ClientError`] tells whose move it is by its [`ErrorClass`], and [`Retries`] when to call again. It knows nothing of topologies, schedules or file
//! formats: those travel through it.

mod address;
mod assembly;
mod calls;
mod class;
mod client;
mod download;
mod error;
mod retry;

pub use address::{AddressError, ServerAddress};
pub use assembly::ContentError;
pub use class::ErrorClass;
pub use client::{Client, PlanReceiver};
pub use download::FileName;
pub use error::{ClientError, Refusal};
pub use retry::{Jitter, Retries, RetryPolicy};
