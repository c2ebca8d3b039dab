//! Networks from outside: samples and approved texts, and what holds for all of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod golden;
mod properties;
mod samples;
mod schema;
