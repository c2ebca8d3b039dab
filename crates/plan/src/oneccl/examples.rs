//! Small plans written by hand, for unit tests.

use super::parse;
use super::program::Program;

/// All-to-all on a ring of three with links of one direction.
pub(crate) const ALL_TO_ALL: &str = include_str!("../../tests/oneccl_files/all_to_all_ring3.xml");

/// Allreduce of two ranks.
pub(crate) const ALLREDUCE: &str = include_str!("../../tests/oneccl_files/allreduce_pair.xml");

/// Both, read.
pub(crate) fn programs() -> [Program; 2] {
    [ALL_TO_ALL, ALLREDUCE].map(|text| parse(text).unwrap())
}
