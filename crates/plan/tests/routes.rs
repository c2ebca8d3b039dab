//! Route plans from end to end: planned, put into layers, lowered, written, read back and proved.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/approved.rs"]
mod approved;
#[path = "routes/mutations.rs"]
mod mutations;
#[path = "routes/networks.rs"]
mod networks;
#[path = "routes/text.rs"]
mod text;
