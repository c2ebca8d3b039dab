//! Route files that cannot be made, as refusals.

use canopy_plan::routes::LowerError;
use canopy_synth::LayersError;
use tonic::Code;

use super::{Detail, Refusal};
use canopy_wire::ROUTES_PROFILE;

pub(super) fn layers(output: usize, error: &LayersError) -> Refusal {
    let subject = format!("outputs[{output}]");
    match error {
        LayersError::NotAFlow { .. } => Refusal::infeasible("FORMAT_UNSUPPORTED_BY_RUNTIME", subject),
        LayersError::TooMany { needed, limit } => Refusal::infeasible("LAYERS_INFEASIBLE", subject + ".max_layers")
            .with("needed", needed)
            .with("limit", limit),
        LayersError::TooManyHops => Refusal::infeasible("EXCEEDS_RUNTIME_LIMITS", subject),
        LayersError::Stopped => Refusal::new(Code::Cancelled, "JOB_STOPPED", Detail::None),
        LayersError::Malformed => Refusal::fault("PLANNER_BROKEN"),
    }
}

pub(super) fn lower(output: usize, error: &LowerError) -> Refusal {
    let subject = format!("outputs[{output}]");
    match error {
        LowerError::OverLimit { what, need, limit } => Refusal::infeasible("EXCEEDS_RUNTIME_LIMITS", subject)
            .with("profile", ROUTES_PROFILE)
            .with("limit_name", what)
            .with("limit", limit)
            .with("need", need),
        LowerError::InPlace | LowerError::Blocks => Refusal::infeasible("FORMAT_UNSUPPORTED_BY_RUNTIME", subject),
        LowerError::Sizes { .. } => Refusal::input("SIZE_INVALID", "size_bytes_max"),
        LowerError::Stopped => Refusal::new(Code::Cancelled, "JOB_STOPPED", Detail::None),
        // The server names the file itself, and lowers checked flows only.
        LowerError::Name { .. }
        | LowerError::Shares(_)
        | LowerError::NotAFlow { .. }
        | LowerError::Malformed { .. } => Refusal::fault("PLANNER_BROKEN"),
    }
}
