//! Whole networks as lists of links.

mod astra;
mod csv;
mod graphml;
mod simgrid;

pub(crate) use astra::{begins as begins_astra, read as read_astra};
pub(crate) use csv::{begins as begins_csv, read as read_csv};
pub(crate) use graphml::{begins as begins_graphml, read as read_graphml};
pub(crate) use simgrid::{begins as begins_simgrid, read as read_simgrid};

#[cfg(test)]
mod tests;
