//! Finds the networks of N nodes with d ports each that are best for collectives.
//!
//! Bottom-up: networks of a catalogue, and line graphs, degree expansions, powers and products of what was found for
//! fewer nodes, each with its exact costs by the theorems of the expansions. No network is built but for a few small
//! ones whose distances are counted, and no schedule at all.

mod hall;
mod imase_itoh;

pub use self::imase_itoh::{ImaseItoh, imase_itoh};
