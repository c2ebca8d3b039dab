//! How good a choice of one path for each pair is among its own paths, as JSON and as a line of text.

use canopy_proto::Exact as _;
use canopy_proto::v1::Plan;
use canopy_topology::{Rate, Ratio};
use serde::Serialize;

use crate::output::gigabytes_per_sec;

/// The `search` member of JSON objects that describe plans.
#[derive(Debug, Serialize)]
pub(crate) struct PathChoiceSummary {
    /// algbw of the choice, in bytes per second.
    reached: String,
    /// What no choice among the same paths exceeds.
    bound: String,
    /// The part of the bound that is missing.
    gap: String,
    #[serde(skip)]
    words: String,
}

impl PathChoiceSummary {
    /// What a server says of a plan; none where no path was chosen by an integer program, and for plans of older servers.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let bound: Rate = plan.path_choice.as_ref()?.bound.read()?;
        let reached: Rate = plan.quality.as_ref()?.achieved.read()?;
        let gap = reached.ratio_to(&bound)?.missing_of(&Ratio::new(1_u32, 1_u32)?);
        let words = if reached == bound {
            "proven: no other choice of one path per pair is faster".to_owned()
        } else {
            let (percent, limit) = (gap.to_f64() * 100.0, gigabytes_per_sec(&bound));
            format!("{percent:.2} % below {limit} GB/s, the bound for one path per pair")
        };
        Some(Self { reached: reached.to_string(), bound: bound.to_string(), gap: gap.to_string(), words })
    }

    /// The same in words.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }
}
