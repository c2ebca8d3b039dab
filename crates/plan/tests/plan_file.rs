//! The plan file: its exact text, its schema, the way there and back, and what it does with files from strangers.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

#[path = "plan_file/hostile.rs"]
mod hostile;
#[path = "plan_file/round_trip.rs"]
mod round_trip;
#[path = "plan_file/samples.rs"]
mod samples;
#[path = "plan_file/schema.rs"]
mod schema;
