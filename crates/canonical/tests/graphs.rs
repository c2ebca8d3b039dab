//! Symmetries and canonical forms from outside: all permutations of small graphs, plain
//! backtracking on larger ones, networks under other names and by
//! other constructions, and graphs made to be mistaken for each other.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

#[path = "graphs/brute.rs"]
mod brute;
#[path = "graphs/catalogue.rs"]
mod catalogue;
#[path = "graphs/counted.rs"]
mod counted;
#[path = "graphs/hard.rs"]
mod hard;
#[path = "graphs/networks.rs"]
mod networks;
#[path = "graphs/support.rs"]
mod support;
