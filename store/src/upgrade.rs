//! Records of older schema versions, one at a time.

use bytes::Bytes;
use canopy_migrations::Version;
use canopy_planner::PlanKey;

use super::records::decode_plan;
use super::{PlanSummary, Space, decode_record};

/// A record and its summary as the current version has them.
pub struct Upgraded {
    /// The record.
    pub record: Vec<u8>,
    /// Its summary.
    pub summary: Vec<u8>,
}

/// Leads a record of a space through `steps`, none for one of the current version. The summary of a plan that is not
/// there, or does not survive, is made from the record; that of anything else is empty then. None: the record is
/// damaged.
pub fn upgrade(
    steps: &[Version],
    space: Space,
    key: &PlanKey,
    record: Vec<u8>,
    summary: Option<Vec<u8>>,
    now_ms: u64,
) -> Option<Upgraded> {
    let lead = |bytes: Vec<u8>| steps.iter().try_fold(bytes, |bytes, step| step.apply(&bytes)).ok();
    let record = lead(record)?;
    let summary = summary.and_then(lead);
    let summary = match space {
        Space::Plans => {
            let plan = decode_plan(key, Bytes::copy_from_slice(&record)).ok()?;
            let fresh = PlanSummary::of(*key, &plan, record.len() as u64, now_ms);
            let kept = summary.and_then(|bytes| PlanSummary::decode(key, &bytes).ok());
            // The record may have another length now, but its pin and its uses stay.
            let size_bytes = fresh.size_bytes;
            kept.map_or(fresh, |kept| PlanSummary { size_bytes, ..kept }).encode()
        }
        // Of anything else the payload is its owner's business.
        _ => {
            decode_record(&record).ok()?;
            summary.filter(|bytes| decode_record(bytes).is_ok()).unwrap_or_default()
        }
    };
    Some(Upgraded { record, summary })
}
