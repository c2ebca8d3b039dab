//! How the form of an allreduce is shown: as JSON and as a line of text.

use canopy_proto::v1::Plan;
use serde::Serialize;

use crate::protocol_words::stated;

/// The `form` member of JSON objects that describe plans.
#[derive(Debug, Serialize)]
pub(crate) struct FormSummary {
    name: String,
    reason: String,
    /// Bytes per second of two phases, each at its best rate, one after the other, where the plan has trees and it is known.
    /// A plan in two phases may overlap them and be faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    two_phases: Option<String>,
}

impl FormSummary {
    /// What a server says of a plan; none where it says nothing that is known here.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let choice = plan.form.as_ref()?;
        let name = stated(choice.form().as_str_name(), "ALLREDUCE_FORM")?;
        let reason = stated(choice.reason().as_str_name(), "FORM_REASON")?;
        let two_phases = choice.two_phases.as_ref().map(|rate| rate.exact.clone());
        Some(Self { name, reason, two_phases })
    }

    /// The same in words.
    pub(crate) fn words(&self) -> String {
        let Self { name, reason, .. } = self;
        let form = match name.as_str() {
            "trees" => "reduce and broadcast on the same trees",
            _ => "reduce-scatter, then allgather",
        };
        let why = match reason.as_str() {
            "limited" if name == "trees" => "there is no room for a tree of each rank",
            "asked" => "as requested",
            "faster" => "faster than two phases",
            "as-fast" => "no trees are faster",
            "limited" => "its number of trees can be limited",
            "too-many" => "faster trees would be too many",
            _ => "too few links lead both ways for trees",
        };
        format!("form: {form} ({why})")
    }
}
