//! Files that cannot be written.

use canopy_plan::{Certainty, OptionError, OptionField, ProfileError, TargetError, TargetReason};

use super::Refusal;

/// The refusal for a file that cannot be written.
pub(super) fn file(output: usize, error: &TargetError) -> Refusal {
    let subject = format!("outputs[{output}]");
    match &error.reason {
        TargetReason::Unsupported | TargetReason::Shares => {
            Refusal::infeasible("FORMAT_UNSUPPORTED_BY_RUNTIME", subject)
        }
        TargetReason::OverLimit(limit) => {
            let refusal = Refusal::infeasible("EXCEEDS_RUNTIME_LIMITS", subject)
                .with("profile", limit.profile)
                .with("limit_name", limit.what)
                .with("limit", limit.limit)
                .with("need", limit.need);
            let refusal = match limit.certainty {
                Some(certainty) => refusal.with("proven", certainty == Certainty::Proven),
                None => refusal,
            };
            match limit.rank {
                Some(rank) => refusal.with("rank", rank),
                None => refusal,
            }
        }
        TargetReason::NoRoom => Refusal::infeasible("EXCEEDS_RUNTIME_LIMITS", subject),
        TargetReason::Layers { needed, limit } => Refusal::infeasible("LAYERS_INFEASIBLE", subject + ".max_layers")
            .with("needed", needed)
            .with("limit", limit),
        TargetReason::Sizes => Refusal::input("SIZE_INVALID", "size_bytes_max"),
        TargetReason::TooLargeToRun => Refusal::infeasible("TOO_LARGE_TO_CHECK", subject),
        TargetReason::Stopped => super::stopped(),
        TargetReason::Rejected => Refusal::fault("VERIFIER_REJECTED").with("check", "file"),
        // The server names the file itself, and lowers checked plans only.
        TargetReason::Broken => Refusal::fault("PLANNER_BROKEN"),
    }
}

/// The reason for an option that the file's format does not have.
pub(super) fn option(error: &OptionError) -> &'static str {
    match (error, error.field()) {
        (OptionError::Profile(ProfileError::Unknown { .. }) | OptionError::ExecutorProfile(_), _) => "PROFILE_UNKNOWN",
        (OptionError::NoInstances, _) => "INSTANCES_INVALID",
        (_, OptionField::Profile) => "PROFILE_NOT_APPLICABLE",
        (_, OptionField::Instances) => "INSTANCES_NOT_APPLICABLE",
        (_, OptionField::PlainChannels | OptionField::LayersMax) => "FIELD_NOT_APPLICABLE",
    }
}
