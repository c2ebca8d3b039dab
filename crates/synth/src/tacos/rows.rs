//! The rows of algorithms that plan chunk by chunk in time.

use canopy_schedule::CollectiveKind;

use super::{Method, plan, proven};
use crate::algorithm::{ALL_COLLECTIVES, HeededLimits, Kept, Rival, Scale, Synthesized, Synthesizer, Task};
use crate::error::SynthesisError;

/// Our own method.
pub(crate) static TACOS: Synthesizer = Synthesizer {
    has_seed: true,
    rival: Some(Rival { place: 5, work: Scale::chunks_in_time, ..Rival::PAIRS }),
    ..in_time("tacos", "chunk by chunk in time, where each is needed most (Won et al.)", ALL_COLLECTIVES, |task| {
        plan(task, Method::Own)
    })
};

/// The same with a proof.
pub(crate) static TACOS_ILP: Synthesizer = Synthesizer {
    claim: Some("time proof"),
    rival: Some(Rival { place: 11, work: Scale::integer_programs, ..Rival::PAIRS }),
    ..in_time(
        "tacos-ilp",
        "chunk by chunk in time, proven fastest by integer programs on small networks (Won et al., section 3)",
        ALL_COLLECTIVES,
        proven::planned,
    )
};

/// The row of an algorithm that plans chunk by chunk in time.
const fn in_time(
    name: &'static str,
    help: &'static str,
    collectives: &'static [CollectiveKind],
    plan: fn(&Task<'_>) -> Result<Synthesized, SynthesisError>,
) -> Synthesizer {
    let row = Synthesizer::new(name, help, collectives, plan);
    Synthesizer { limits: HeededLimits::Chunks, kept: Kept::InOwnLabels, ..row }
}
