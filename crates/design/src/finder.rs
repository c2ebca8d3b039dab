//! Finds the networks of N nodes with d ports each that are best for collectives.
//!
//! Bottom-up: networks of a catalogue, and line graphs, degree expansions, powers and products of what was found for
//! fewer nodes, each with its exact costs by the theorems of the expansions. No network is built but for a few small
//! ones whose distances are counted, and no schedule at all.

mod answers;
mod bounds;
mod candidate;
mod catalogue;
mod choice;
mod circulants;
mod hall;
mod histogram;
mod imase_itoh;
mod known;
mod lacking;
mod offsets;
mod query;
mod rates;
mod search;

pub use self::answers::{Finder, Found, VERSION};
pub use self::bounds::Bounds;
pub use self::candidate::Candidate;
pub use self::choice::{Choice, Line, choices};
pub use self::histogram::Histogram;
pub use self::imase_itoh::{ImaseItoh, imase_itoh};
pub use self::known::{AllToAll, Known, RateProof};
pub use self::lacking::Lacking;
pub use self::query::{DEGREE_MAX, FindError, NODES_MAX, Query};
pub use self::search::Links;
