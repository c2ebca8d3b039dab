//! The client library against servers that break off, fall silent or lie.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test may end it")]

mod download;
mod scripted;
mod stream;
mod tls;
