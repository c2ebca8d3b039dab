//! Published values of networks and of their costs.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test may end it")]

mod cost;
mod finder;
