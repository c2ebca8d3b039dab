//! How near to the fastest a schedule in time is, as JSON and as a line of text.

use canopy_proto::v1::{PhaseTime, Plan};
use serde::Serialize;

/// The `time` member of JSON objects that describe plans. All times count the same ticks: steps, where all links are alike.
#[derive(Debug, Serialize)]
pub(crate) struct TimeProofSummary {
    /// When the schedule ends.
    end: u64,
    /// No schedule of as many chunks ends before.
    bound: u64,
    /// Whether that is said only of schedules on switches unwound in this way.
    one_unwinding: bool,
    /// The phases of an allreduce, each by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phases: Vec<PhaseSummary>,
}

/// One phase of an allreduce.
#[derive(Debug, Serialize)]
struct PhaseSummary {
    end: u64,
    bound: u64,
}

impl TimeProofSummary {
    /// What a server says of a plan; none where nothing is proven of its time, and for plans of older servers.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let proof = plan.time_proof.as_ref()?;
        let phase = |&PhaseTime { end, bound }: &PhaseTime| PhaseSummary { end, bound };
        let (one_unwinding, phases) = (proof.one_unwinding, proof.phases.iter().map(phase).collect());
        Some(Self { end: proof.end, bound: proof.bound, one_unwinding, phases })
    }

    /// The same in words.
    pub(crate) fn words(&self) -> String {
        let Self { end, bound, one_unwinding, phases } = self;
        let mut words = if end <= bound {
            format!("ends at tick {end}; proven: no schedule with this number of chunks ends earlier")
        } else {
            format!("ends at tick {end}; no schedule with this number of chunks ends before tick {bound}")
        };
        if !phases.is_empty() {
            let each: Vec<String> = phases.iter().map(|phase| format!("{} of {}", phase.bound, phase.end)).collect();
            words += &format!("; proven for each phase alone ({})", each.join(" and "));
        }
        if *one_unwinding {
            words += "; for this unwinding of the switches only";
        }
        words
    }
}
