//! Records of older schema versions, one at a time.

use bytes::Bytes;
use canopy_migrations::Version;

use super::PlanSummary;
use super::records::decode_plan;
use crate::key::PlanKey;

/// A record and its summary as the current version has them.
pub(super) struct Upgraded {
    pub(super) record: Vec<u8>,
    pub(super) summary: PlanSummary,
}

/// Leads a record through `steps`, none for one of the current version. A summary that is not there, or does not
/// survive, is made from the record. None: the record is damaged.
pub(super) fn upgrade(
    steps: &[Version],
    key: &PlanKey,
    record: Vec<u8>,
    summary: Option<Vec<u8>>,
    now_ms: u64,
) -> Option<Upgraded> {
    let lead = |bytes: Vec<u8>| steps.iter().try_fold(bytes, |bytes, step| step.apply(&bytes)).ok();
    let record = lead(record)?;
    let plan = decode_plan(key, Bytes::copy_from_slice(&record)).ok()?.plan;
    let fresh = PlanSummary::of(*key, &plan, record.len() as u64, now_ms);
    let kept = summary.and_then(lead).and_then(|bytes| PlanSummary::decode(key, &bytes).ok());
    // The record may have another length now, but its pin and its uses stay.
    let summary = kept.map_or_else(|| fresh.clone(), |kept| PlanSummary { size_bytes: fresh.size_bytes, ..kept });
    Some(Upgraded { record, summary })
}
