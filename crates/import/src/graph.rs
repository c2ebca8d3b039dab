//! Whole networks as lists of links.

mod csv;

pub(crate) use csv::{begins as begins_csv, read as read_csv};

#[cfg(test)]
mod tests;
