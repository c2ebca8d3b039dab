//! Schedules in time: which chunk passes which link when, on links of any latencies and rates.
//!
//! Graphs and numbers in, sends out. Times are whole ticks, whatever a tick is. It knows nothing of switches, bytes,
//! collectives or files: callers name what there is to be copied, and turn sums into copies on the network turned around.
//!
//! Source of the problem: Won et al., *TACOS*; the methods are our own where a module does not say otherwise.

mod attempts;
mod bits;
mod bound;
mod calendar;
mod chance;
mod copies;
mod earliest;
mod ilp;
mod joint;
mod judge;
mod levels;
mod mend;
mod network;
mod sends;
mod symmetry;
mod task;
mod transposition;
mod unicast;

pub use attempts::{Attempt, Attempts, best_of};
pub use bound::lower_bound;
pub use chance::Chance;
pub use copies::{CopyError, Preference, copy_all};
pub use ilp::{IlpEffort, Proven, TimeProof, prove_copies, prove_deliveries};
pub use joint::{Claim, Joint, JointError, JointOptions, Tenant, TenantError, Work, joint_schedule};
pub use judge::{Fault, judge};
pub use mend::{Mended, mend, mend_delivery};
pub use network::{NetworkError, TimedLink, TimedNetwork};
pub use sends::{Sends, Sent};
pub use symmetry::FreeGroup;
pub use task::{CopyTask, TaskError};
pub use transposition::Transposition;
pub use unicast::{Demand, Ways, deliver, deliver_best, delivery_bound, judge_delivery};
