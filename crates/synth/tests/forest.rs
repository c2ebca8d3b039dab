//! Forest schedules from outside: published rates, the oracle's values, random networks, and refusals.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

#[path = "forest/allreduce.rs"]
mod allreduce;
#[path = "forest/cayley.rs"]
mod cayley;
#[path = "forest/depth.rs"]
mod depth;
#[path = "forest/directed.rs"]
mod directed;
#[path = "forest/families.rs"]
mod families;
#[path = "forest/limits.rs"]
mod limits;
#[path = "forest/many.rs"]
mod many;
#[path = "forest/oracle.rs"]
mod oracle;
#[path = "forest/program.rs"]
mod program;
#[path = "forest/published.rs"]
mod published;
#[path = "forest/random.rs"]
mod random;
#[path = "forest/refusals.rs"]
mod refusals;
#[path = "forest/sums.rs"]
mod sums;
#[path = "forest/tolerance.rs"]
mod tolerance;
#[path = "forest/validator.rs"]
mod validator;
