//! Files of runtimes that cannot be written.

use canopy_plan::{ExecutionLowerError, LowerError, oneccl};
use tonic::Code;

use super::{Detail, Refusal};
use canopy_wire::ONECCL_PROFILE;

pub(super) fn lower(output: usize, error: &LowerError) -> Refusal {
    let subject = format!("outputs[{output}]");
    match error {
        LowerError::Unsupported { .. }
        | LowerError::Root { .. }
        | LowerError::Shares { .. }
        | LowerError::Forwarder { .. } => Refusal::infeasible("FORMAT_UNSUPPORTED_BY_RUNTIME", subject),
        LowerError::OverLimit { profile, what, limit, need, rank, is_proven, .. } => {
            let refusal = Refusal::infeasible("EXCEEDS_RUNTIME_LIMITS", subject)
                .with("profile", profile)
                .with("limit_name", what)
                .with("limit", limit)
                .with("need", need)
                .with("proven", is_proven);
            match rank {
                Some(rank) => refusal.with("rank", rank),
                None => refusal,
            }
        }
        LowerError::BytesMax { .. } => Refusal::input("SIZE_INVALID", "size_bytes_max"),
        LowerError::BytesMin { .. } => Refusal::infeasible("EXCEEDS_RUNTIME_LIMITS", subject),
        LowerError::Stopped => Refusal::new(Code::Cancelled, "JOB_STOPPED", Detail::None),
        // The server names the file itself, and lowers checked plans only.
        LowerError::Name { .. }
        | LowerError::TooFewRanks { .. }
        | LowerError::NoChunks
        | LowerError::Malformed { .. }
        | LowerError::NotHeld { .. }
        | LowerError::NotSent { .. } => Refusal::fault("PLANNER_BROKEN"),
    }
}

pub(super) fn lower_oneccl(output: usize, error: &oneccl::LowerError) -> Refusal {
    let subject = format!("outputs[{output}]");
    match error {
        oneccl::LowerError::Shares | oneccl::LowerError::Ranks { .. } | oneccl::LowerError::Forwarder { .. } => {
            Refusal::infeasible("FORMAT_UNSUPPORTED_BY_RUNTIME", subject)
        }
        oneccl::LowerError::OverLimit { what, need, limit } => Refusal::infeasible("EXCEEDS_RUNTIME_LIMITS", subject)
            .with("profile", ONECCL_PROFILE)
            .with("limit_name", what)
            .with("limit", limit)
            .with("need", need),
        oneccl::LowerError::BytesMax { .. } => Refusal::input("SIZE_INVALID", "size_bytes_max"),
        oneccl::LowerError::Stopped => Refusal::new(Code::Cancelled, "JOB_STOPPED", Detail::None),
        // The server names the file itself, and lowers checked plans only.
        oneccl::LowerError::Name { .. }
        | oneccl::LowerError::Instances { .. }
        | oneccl::LowerError::NoChunks
        | oneccl::LowerError::Malformed { .. } => Refusal::fault("PLANNER_BROKEN"),
    }
}

pub(super) fn lower_execution(output: usize, error: &ExecutionLowerError) -> Refusal {
    let subject = format!("outputs[{output}]");
    match error {
        ExecutionLowerError::Shares { .. }
        | ExecutionLowerError::Forwarder { .. }
        | ExecutionLowerError::Measure { .. } => Refusal::infeasible("FORMAT_UNSUPPORTED_BY_RUNTIME", subject),
        ExecutionLowerError::BytesMin { .. } => Refusal::infeasible("EXCEEDS_RUNTIME_LIMITS", subject),
        ExecutionLowerError::OverLimit { profile, what, limit, need, rank, .. } => {
            let refusal = Refusal::infeasible("EXCEEDS_RUNTIME_LIMITS", subject)
                .with("profile", profile)
                .with("limit_name", what)
                .with("limit", limit)
                .with("need", need)
                .with("proven", false);
            match rank {
                Some(rank) => refusal.with("rank", rank),
                None => refusal,
            }
        }
        ExecutionLowerError::Stopped => Refusal::new(Code::Cancelled, "JOB_STOPPED", Detail::None),
        // The server lowers checked plans only.
        ExecutionLowerError::Boxes { .. }
        | ExecutionLowerError::TooFewRanks { .. }
        | ExecutionLowerError::NoChunks
        | ExecutionLowerError::Malformed { .. }
        | ExecutionLowerError::NotHeld { .. } => Refusal::fault("PLANNER_BROKEN"),
    }
}
