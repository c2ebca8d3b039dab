//! Whole networks as lists of links.

mod astra;
mod csv;

pub(crate) use astra::{begins as begins_astra, read as read_astra};
pub(crate) use csv::{begins as begins_csv, read as read_csv};

#[cfg(test)]
mod tests;
