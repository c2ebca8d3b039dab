//! The plan file: its exact text, its schema, the way there and back, and what it does with files from strangers.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

mod hostile;
mod orbits;
mod round_trip;
mod samples;
mod schema;
mod stages;
