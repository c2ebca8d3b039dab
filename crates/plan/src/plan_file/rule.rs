//! The rule of a plan file, without its network: enough for what one rank does.

use canopy_schedule::{Collective, CollectiveKind, Seats, Stages};
use serde::Deserialize;

use super::PlanFileError;
use super::read::{KindName, known_version};
use super::stages::StagesDocument;

/// An exchange in stages, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRule {
    /// The collective.
    pub collective: Collective,
    /// Its ranks.
    pub rank_count: u32,
    /// The rule.
    pub stages: Stages,
}

/// Most seats of a rule that no network is at hand for: some millions of ranks.
const SEATS_MAX: u32 = 1 << 22;

/// Reads the rule of a plan file; the network is passed over.
///
/// The result is well-formed, not right: the checker of the whole plan says whether it is. Ranks are as many as have
/// seats.
///
/// * **Errors.** Whatever is wrong with the text; a plan that is no exchange in stages.
/// * **Cost.** O(bytes); milliseconds where the network is stated by its expression.
pub fn read_rule(bytes: &[u8]) -> Result<PlanRule, PlanFileError> {
    let Document { collective, schedule, chunks_per_share, .. } =
        serde_json::from_slice(bytes).map_err(PlanFileError::Json)?;
    let kind: CollectiveKind = collective.parse().map_err(PlanFileError::Collective)?;
    let stages = schedule.stages.ok_or(PlanFileError::NoRule { shape: schedule.shape.chars().take(80).collect() })?;
    let stages = stages.into_stages(chunks_per_share)?;
    let seats = stages.grid.box_count().and_then(|boxes| boxes.checked_mul(stages.grid.places));
    let seats = seats.filter(|&seats| seats <= SEATS_MAX).ok_or(PlanFileError::Seats { limit: SEATS_MAX })?;
    let rank_count = match &stages.grid.seats {
        Seats::InOrder { empty } | Seats::Turned { empty, .. } => {
            seats.saturating_sub(u32::try_from(empty.len()).unwrap_or(u32::MAX))
        }
        Seats::Listed(listed) => u32::try_from(listed.len()).unwrap_or(u32::MAX),
    };
    let collective = Collective::new(kind, None, rank_count).map_err(PlanFileError::Root)?;
    Ok(PlanRule { collective, rank_count, stages })
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "canopy", deserialize_with = "known_version")]
    _canopy: (),
    #[serde(rename = "kind")]
    _kind: KindName,
    collective: String,
    chunks_per_share: u64,
    schedule: ScheduleDocument,
}

#[derive(Deserialize)]
struct ScheduleDocument {
    shape: String,
    stages: Option<StagesDocument>,
}
