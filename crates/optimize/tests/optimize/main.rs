//! The crate's optima from outside: against definitions by brute force, published values, and each other.

mod balance;
mod division;
mod properties;
mod published;
mod small;
mod stopping;
mod support;
mod whole_sums;
mod whole_trees;
