//! Wrappers around planner and store that count, time and trace what these do.

mod memory;
mod planner;
mod store;

pub(crate) use planner::ObservedPlanner;
pub(crate) use store::ObservedStore;
