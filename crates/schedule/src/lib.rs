//! What a schedule is, and the judge that decides whether it is right.
//!
//! Holds the shapes synthesizers produce, the transfer graph every back end reads, bounds with their certificates,
//! and an exact checker that calls no synthesizer. It knows nothing of how schedules are found or written.

mod bound;
mod certificate;
mod check;
mod collective;
mod compile;
mod route;
mod schedule;
mod transfer;

pub use bound::{Bound, Certificate, CutDirection};
pub use certificate::{CertificateError, certified_bound};
pub use check::{CheckError, LoadError, MeaningError, RouteFault, StructureError, TransferFault, Verdict, check};
pub use collective::{Collective, CollectiveKind, RootError, UnknownCollective};
pub use compile::{CompileError, HopFault, TreePlace, compile};
pub use route::{RouteIndex, RouteInterner, RouteTable};
pub use schedule::{Action, Carrier, Forest, Hop, Phase, Schedule, Shape, Tree};
pub use transfer::{Batch, Transfer, TransferGraph};
