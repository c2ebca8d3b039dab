//! Route plans from end to end: planned, put into layers, lowered, written, read back and proved.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mutations;
mod networks;
mod text;
