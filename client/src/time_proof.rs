//! How near to the fastest a schedule in time is, as JSON and as a line of text.

use canopy_proto::v1::Plan;
use serde::Serialize;

/// The `time` member of JSON objects that describe plans. Both count the same ticks: steps, where all links are alike.
#[derive(Debug, Serialize)]
pub(crate) struct TimeProofSummary {
    /// When the schedule ends.
    end: u64,
    /// No schedule of as many chunks ends before.
    bound: u64,
}

impl TimeProofSummary {
    /// What a server says of a plan; none where nothing is proven of its time, and for plans of older servers.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        plan.time_proof.map(|proof| Self { end: proof.end, bound: proof.bound })
    }

    /// The same in words.
    pub(crate) fn words(&self) -> String {
        let Self { end, bound } = self;
        if end <= bound {
            format!("ends at tick {end}, and no schedule of as many chunks ends before, proven")
        } else {
            format!("ends at tick {end}; no schedule of as many chunks ends before tick {bound}")
        }
    }
}
