//! Exchanges between boxes in stages: few peers for each rank, at the rate that a cut around a box
//! allows.
//!
//! [`crate::symmetric`] finds boxes, digits and pieces; here it is chosen between the boxes that a network may be made
//! of. Source: design of plans for tens of thousands of ranks,
//! section 2.

mod inside;

use std::borrow::Cow;
use std::iter;
use std::num::NonZeroU64;

use canopy_optimize::Fraction;
use canopy_schedule::{CollectiveKind, Shape, Shares, Stages};
use canopy_topology::Ratio;

use crate::algorithm::{HeededLimits, Networks, Rival, SynthesisRequest, Synthesized, Synthesizer, Task};
use crate::error::{StagesNetworkError, SynthesisError};
use crate::found::Found;
use crate::large::{are_listed, part_reached};
use crate::load::seconds_per_byte_of_stages;
use crate::progress::Stage;
use crate::reach::{ask, require_reach};
use crate::symmetric::{Planned, boxes};
use inside::spread_along_trees;

/// What is planned in stages.
const COLLECTIVES: &[CollectiveKind] =
    &[CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce];

/// The exchange between boxes.
pub(crate) static STAGES: Synthesizer = Synthesizer {
    limits: HeededLimits::StatedChunks,
    // A way from box to box, and one inside, for each pair of ranks: no program is solved.
    rival: Some(Rival { place: 5, plans: Networks::Switched, work: |scale| scale.pairs() / 16, ..Rival::PAIRS }),
    ..Synthesizer::new(
        "stages",
        "boxes exchange all they hold, digit by digit of their numbers: few peers for each rank",
        COLLECTIVES,
        planned,
    )
};

/// * **In.** A network of boxes that switches join; equal shares. **Out.** A rule with `chunks` for each share, or one.
/// * **Errors.** [`SynthesisError`]. **Cost.** For each of the few sets of boxes that a network may be made of, that of
///   [`crate::symmetric::stages`] and of counting loads, twice where boxes are slow; up to the first that reaches the
///   bound, or 31/32 of it where trees for all ranks are too many.
fn planned(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    fastest(task).map(|(stages, _)| task.planned(Shape::Stages(stages)))
}

/// The same if no plan is faster. `None` where that is not known.
pub(crate) fn optimal(task: &Task<'_>) -> Result<Option<Synthesized>, SynthesisError> {
    let (stages, part) = fastest(task)?;
    Ok(part.is_some_and(|part| part.is_one()).then(|| task.planned(Shape::Stages(stages))))
}

/// The fastest exchange that was found, and which part of its bound it reaches.
fn fastest(task: &Task<'_>) -> Result<(Stages, Option<Ratio>), SynthesisError> {
    let &SynthesisRequest { collective, ref shares, limits, .. } = task.request;
    let (topology, kind) = (task.topology, collective.kind());
    if !COLLECTIVES.contains(&kind) {
        return Err(STAGES.unsupported(kind));
    }
    if *shares != Shares::Equal {
        return Err(StagesNetworkError::Shares.into());
    }
    require_reach(topology, collective, shares)?;
    let (rank_count, chunks) = (topology.rank_count(), limits.chunks.map_or(1, NonZeroU64::get));
    let max = CHUNKS_MAX / u64::from(rank_count).pow(2).max(1);
    if chunks > max {
        return Err(StagesNetworkError::Chunks { chunks, rank_count, max }.into());
    }
    task.progress.report(Stage::Optimum, 0, 1);
    // Among many ranks, each look at all of them counts.
    let enough = |(part, whole): (u32, u32)| {
        if are_listed(kind, rank_count) { Ratio::new(1_u32, 1_u32) } else { Ratio::new(part, whole) }
    };
    let [enough, enough_of_boxes] = [ENOUGH, ENOUGH_OF_BOXES].map(enough);
    let mut fastest: Option<(Fraction, Stages, Option<Ratio>)> = None;
    // The part of the bound that is reached.
    let mut see = |mut found: Planned| -> Result<Option<Ratio>, SynthesisError> {
        ask(task.stop)?;
        spread_along_trees(topology, &mut found.stages, &found.odd, task.stop)?;
        // Where there is none, its boxes are none that exchange everything.
        let Some(time) = seconds_per_byte_of_stages(topology, &found.stages) else { return Ok(None) };
        let part = part_reached(topology, collective, &found.certificate, time);
        if fastest.as_ref().is_none_or(|(least, ..)| time < *least) {
            fastest = Some((time, found.stages, part.clone()));
        }
        Ok(part)
    };
    let known = match task.known {
        Some(Found::Boxes(known)) => known.as_slice(),
        _ => &[],
    };
    // Others are looked for when they are needed.
    let others = iter::once_with(|| boxes(topology).skip(known.len())).flatten().map(Cow::Owned);
    for network in known.iter().map(Cow::Borrowed).chain(others) {
        ask(task.stop)?;
        let network = &*network;
        let Some(found) = crate::symmetric::stages(topology, network, kind, chunks) else { continue };
        let mut reached = see(found)?;
        let stated = limits.chunks.map(NonZeroU64::get);
        if reached < enough
            && let Some(found) = crate::symmetric::stages_inside_first(topology, network, kind, stated)
        {
            reached = reached.max(see(found)?);
        }
        if reached >= enough_of_boxes {
            break;
        }
    }
    task.progress.report(Stage::Optimum, 1, 1);
    let (_, stages, part) = fastest.ok_or(StagesNetworkError::NoBoxes)?;
    Ok((stages, part))
}

/// Most chunks over one link.
const CHUNKS_MAX: u64 = u64::MAX / 4;

/// The part of a bound from which on no other plan for the same boxes is tried where trees could not be written down.
const ENOUGH: (u32, u32) = (63, 64);

/// The part from which on no other boxes are, either.
const ENOUGH_OF_BOXES: (u32, u32) = (31, 32);
