//! The groups of ranks of a training job, and how they share a network: layouts of parallel dimensions, the greatest
//! common rate of all groups with its proof, what some reach above it, and for each group the network of its own
//! shares, on which it is planned alone.

mod beside;
mod classes;
mod compare;
mod layout;
mod levels;
mod orders;
mod posed;
mod proof;
mod rates;
mod shares;

pub use crate::groups::{Patience, Room};

pub use beside::{BesideError, RunningJob, left_beside};
pub use classes::{Class, Job, JobError, JobGroup, Movement};
pub use compare::{Comparison, comparison};
pub use layout::{Layout, LayoutError};
pub use levels::JobLevel;
pub use orders::{BestOrder, Order, best_order};
pub use posed::RatesError;
pub use rates::{JobRates, Objective, job_rates, job_rates_for};
pub use shares::{Share, ShareError};
