//! Client library of canopy: asks a server for plans and puts together what it sends.
//!
//! A [`Client`] calls the planner at a [`ServerAddress`] and checks every byte of the files that come back; a
//! [`ClientError`] tells whose move it is by its [`ErrorClass`]. It knows nothing of topologies, schedules or file
//! formats: those travel through it.

mod address;
mod assembly;
mod class;
mod client;
mod error;

pub use address::{AddressError, ServerAddress};
pub use assembly::ContentError;
pub use class::ErrorClass;
pub use client::{Client, PlanReceiver};
pub use error::{ClientError, Refusal};
