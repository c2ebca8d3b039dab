//! `tacos-published`: schedules in time by the published greedy method.

use canopy_synth::{Algorithm, HeededLimits, Kept, Rival, SPREADING, Scale, Synthesizer, plan_by};

use crate::requests::best_by_requests;

/// As published.
pub const TACOS_PUBLISHED: Algorithm = Algorithm::of(&TACOS_PUBLISHED_ROW);
static TACOS_PUBLISHED_ROW: Synthesizer = Synthesizer {
    has_seed: true,
    rival: Some(Rival { place: 23, work: Scale::chunks_in_time, ..Rival::PAIRS }),
    limits: HeededLimits::Chunks,
    kept: Kept::InOwnLabels,
    ..Synthesizer::new(
        "tacos-published",
        "chunk by chunk in time, in random order, as published (Won et al., section 4)",
        SPREADING,
        |task| plan_by(task, best_by_requests),
    )
};
