//! What is written for other simulators, read back: the plan's messages, on the plan's links, in an order that can be kept.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

#[path = "export/astra.rs"]
mod astra;
#[path = "export/chakra.rs"]
mod chakra;
#[path = "export/plans.rs"]
mod plans;
#[path = "export/simgrid.rs"]
mod simgrid;
