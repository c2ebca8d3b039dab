//! oneCCL plans: made of real schedules, damaged in thousands of ways, and made up by chance.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

#[path = "support/graphs.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod graphs;
#[path = "oneccl/mutations.rs"]
mod mutations;
#[path = "oneccl/plans.rs"]
mod plans;
#[path = "oneccl/properties.rs"]
mod properties;
