//! The client library against servers that break off, fall silent or lie.

mod download;
mod stream;
