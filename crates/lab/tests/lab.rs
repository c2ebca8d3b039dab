//! Plans in the lab: every collective gives the right words, every connection keeps its pace, every link carries its
//! load, and every node knows its routes.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

#[path = "lab/commands.rs"]
mod commands;
#[path = "lab/loads.rs"]
mod loads;
#[path = "lab/plans.rs"]
mod plans;
#[path = "lab/words.rs"]
mod words;
