//! Forest schedules from outside: published rates, the oracle's values, random networks, and refusals.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

mod allreduce;
mod cayley;
mod depth;
mod directed;
mod families;
mod limits;
mod many;
mod oracle;
mod platforms;
mod program;
mod published;
mod random;
mod refusals;
mod slow_links;
mod sums;
mod tolerance;
mod validator;
