//! oneCCL plans: made of real schedules, damaged in thousands of ways, and made up by chance.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

mod mutations;
mod plans;
mod properties;
