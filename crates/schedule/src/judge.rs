//! Judges schedules of any shape where the transfer graph is not needed.

mod joint;

use canopy_topology::Topology;

use crate::check::{
    CheckError, Verdict, check_flow_until, check_orbits_until, check_stages_until, check_steps_until, check_until,
};
use crate::compile::{CompileError, compile_until};
use crate::schedule::{Schedule, Shape};

pub use joint::{JointCheckError, JointPart, JointVerdict, check_joint};

/// Why a schedule was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// It has no transfer graph.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The checker refused it.
    #[error(transparent)]
    Check(#[from] CheckError),
}

impl JudgeError {
    /// Name of the check that failed, as [`Verdict::checks`] names it; `stopped` if none did.
    pub const fn check(&self) -> &'static str {
        match self {
            Self::Compile(CompileError::Stopped) => "stopped",
            Self::Compile(_) => "structure",
            Self::Check(error) => error.check(),
        }
    }
}

/// Judges a schedule: a flow by its paths, as [`check_flow`](crate::check_flow) does, steps by their sends where
/// [`check_steps_until`] can, stages and orbits by their rule, anything else by its transfer graph.
///
/// # Errors
/// Those of the compiler and the checker, or [`Stopped`](CheckError::Stopped) soon after `stop` says so.
pub fn judge_until(
    topology: &Topology,
    schedule: &Schedule,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Verdict, JudgeError> {
    match &schedule.shape {
        Shape::Flow(_) => Ok(check_flow_until(topology, schedule, stop)?),
        Shape::Stages(stages) => Ok(check_stages_until(topology, schedule.collective, &schedule.shares, stages, stop)?),
        Shape::Orbits(orbits) => Ok(check_orbits_until(topology, schedule.collective, &schedule.shares, orbits, stop)?),
        Shape::Forest(_) | Shape::Steps(_) => {
            if let Some(verdict) = check_steps_until(topology, schedule, stop)? {
                return Ok(verdict);
            }
            let graph = compile_until(topology, schedule, stop)?;
            Ok(check_until(topology, &graph, stop)?)
        }
    }
}
