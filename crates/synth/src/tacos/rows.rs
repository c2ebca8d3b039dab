//! The rows of algorithms that plan chunk by chunk in time.

use canopy_schedule::CollectiveKind;

use super::{Method, plan, proven};
use crate::algorithm::{ALL_COLLECTIVES, HeededLimits, Kept, Rival, SPREADING, Synthesized, Synthesizer, Task};
use crate::error::SynthesisError;

/// Our own method.
pub(crate) static TACOS: Synthesizer = Synthesizer {
    has_seed: true,
    rival: Some(Rival {
        place: 5,
        is_direct: false,
        ranks_max: 128,
        all_to_all_ranks_max: 64,
        steps_min: Rival::one_step,
    }),
    ..in_time("tacos", "chunk by chunk in time, each where it is lacked most (Won et al.)", ALL_COLLECTIVES, |task| {
        plan(task, Method::Own)
    })
};

/// The same with a proof.
pub(crate) static TACOS_ILP: Synthesizer = Synthesizer {
    claim: Some("time proof"),
    ..in_time(
        "tacos-ilp",
        "the same, proven to be fastest by integer programs on small networks (Won et al., section 3)",
        ALL_COLLECTIVES,
        proven::planned,
    )
};

/// As published.
pub(crate) static TACOS_PUBLISHED: Synthesizer = Synthesizer {
    has_seed: true,
    ..in_time(
        "tacos-published",
        "the same by requests in random order, as published (Won et al., section 4), to compare with",
        SPREADING,
        |task| plan(task, Method::Published),
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
