//! Waiting and running jobs: the queue, its workers, the journal of both, and the history of ended jobs.

pub(crate) mod answers;
pub(crate) mod computing;
mod elsewhere;
pub(crate) mod job;
pub(crate) mod journal;
pub(crate) mod pipeline;
pub(crate) mod planner;
pub(crate) mod questions;
pub(crate) mod queue;
pub(crate) mod refusals;
pub(crate) mod reproducers;
mod shared;
pub(crate) mod slices;
pub(crate) mod stand_in;
pub(crate) mod table;
mod threads;
pub(crate) mod workers;
