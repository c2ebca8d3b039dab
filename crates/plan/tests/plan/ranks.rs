//! Files of single ranks, put together: what all ranks do, each by its own file, is the collective.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod altered;
mod execution;
mod messages;
mod rules;
mod steps;
