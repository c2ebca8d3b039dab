//! Trees of one rank of a torus, which its symmetries move to all others: optimal wherever shortest paths can be, in a
//! plan of a few numbers for each rank. [`crate::symmetric`] finds the torus and the trees.

use canopy_schedule::{CollectiveKind, Shape, Shares};

use crate::algorithm::{Networks, Rival, SynthesisRequest, Synthesized, Synthesizer, Task};
use crate::error::{OrbitsNetworkError, SynthesisError};
use crate::large::part_reached;
use crate::load::seconds_per_byte_of_orbits;
use crate::progress::Stage;
use crate::reach::{ask, require_reach};
use crate::symmetric::{PlannedOrbits, torus};

/// What is planned so.
const COLLECTIVES: &[CollectiveKind] =
    &[CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce];

/// The trees of a torus.
pub(crate) static ORBITS: Synthesizer = Synthesizer {
    // A look at each link; what is written is a tree for each rank where it is timed.
    rival: Some(Rival { place: 6, plans: Networks::Direct, work: |scale| scale.pairs() / 16, ..Rival::PAIRS }),
    ..Synthesizer::new(
        "orbits",
        "on tori: the trees of one rank, which symmetries move to all others, with other parents beside faults",
        COLLECTIVES,
        planned,
    )
};

/// * **In.** A torus, perhaps without some cables and ranks; equal shares. **Out.** Templates of one rank, and patches.
/// * **Errors.** [`SynthesisError`]. **Cost.** That of [`torus`] and [`crate::symmetric::orbits`].
fn planned(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    Ok(task.planned(Shape::Orbits(found(task)?.orbits)))
}

/// The same if no plan is faster. `None` where that is not known.
pub(crate) fn optimal(task: &Task<'_>) -> Result<Option<Synthesized>, SynthesisError> {
    let PlannedOrbits { orbits, certificate } = found(task)?;
    let Some(time) = seconds_per_byte_of_orbits(task.topology, &orbits) else { return Ok(None) };
    let part = part_reached(task.topology, task.request.collective, &certificate, time);
    Ok(part.is_some_and(|part| part.is_one()).then(|| task.planned(Shape::Orbits(orbits))))
}

fn found(task: &Task<'_>) -> Result<PlannedOrbits, SynthesisError> {
    let &SynthesisRequest { collective, ref shares, .. } = task.request;
    let (topology, kind) = (task.topology, collective.kind());
    if !COLLECTIVES.contains(&kind) {
        return Err(ORBITS.unsupported(kind));
    }
    if *shares != Shares::Equal {
        return Err(OrbitsNetworkError::Shares.into());
    }
    require_reach(topology, collective, shares)?;
    task.progress.report(Stage::Optimum, 0, 1);
    let found = torus(topology).ok_or(OrbitsNetworkError::NoTorus)?;
    ask(task.stop)?;
    let planned = crate::symmetric::orbits(topology, &found, kind).ok_or(OrbitsNetworkError::Faults)?;
    task.progress.report(Stage::Optimum, 1, 1);
    Ok(planned)
}
