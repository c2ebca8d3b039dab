//! Checks every record and summary of a space, and repairs what it can.

use bytes::Bytes;
use canopy_planner::PlanKey;

use super::records::decode_plan;
use super::{DamagedRecord, Durability, PlanSummary, Space, Store, StoreError, decode_record};

/// What is done about faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing is changed.
    Report,
    /// Damaged records go into quarantine; summaries of plans are made again, those of anything else are emptied, and
    /// those without a record are removed.
    Fix,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Records that are in order.
    pub intact: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Records that are damaged, with what is wrong.
    pub damaged: Vec<(PlanKey, DamagedRecord)>,
    /// Intact records whose summary is missing, unreadable or, of a plan, that of another record.
    pub without_summary: Vec<PlanKey>,
    /// Summaries without a record.
    pub without_record: Vec<PlanKey>,
    /// Records that are in quarantine, those of this check included.
    pub quarantined: usize,
}

impl CheckReport {
    /// Whether nothing was wrong.
    pub const fn is_clean(&self) -> bool {
        self.damaged.is_empty() && self.without_summary.is_empty() && self.without_record.is_empty()
    }
}

/// Reads and verifies every record and every summary of a space that is in use meanwhile, and changes nothing. What was
/// written or removed while it was looked at is looked at again. O(bytes stored).
///
/// # Errors
/// The engine failed.
pub(crate) fn check_store_in_use(space: Space, store: &dyn Store) -> Result<CheckReport, StoreError> {
    let mut report = check_store(space, store, Repair::Report, 0)?;
    for _ in 0..LOOKS_MAX {
        if report.is_clean() {
            break;
        }
        let mut again = CheckReport::default();
        let damaged = report.damaged.iter().map(|(key, _)| key);
        for key in damaged.chain(&report.without_summary) {
            check_record(space, store, key, Repair::Report, 0, &mut again)?;
        }
        for key in &report.without_record {
            let is_there = store.keys(predecessor(key).as_ref(), 1)?.first() == Some(key);
            if !is_there && store.summary(key)?.is_some() {
                again.without_record.push(*key);
            }
        }
        let put_right = report.damaged.len() - again.damaged.len().min(report.damaged.len());
        again.intact = report.intact + put_right;
        (again.bytes, again.quarantined) = (report.bytes, store.quarantined_count()?);
        report = again;
    }
    Ok(report)
}

/// How often what seems wrong is looked at again.
const LOOKS_MAX: usize = 2;

/// Reads and verifies every record and every summary of a space: plans down to their payload, anything else as far as
/// its envelope. O(bytes stored).
///
/// # Errors
/// The engine failed.
pub fn check_store(space: Space, store: &dyn Store, repair: Repair, now_ms: u64) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    for key in store.all_keys() {
        check_record(space, store, &key?, repair, now_ms, &mut report)?;
    }
    for entry in store.all_summaries() {
        let (key, _) = entry?;
        if store.keys(predecessor(&key).as_ref(), 1)?.first() != Some(&key) {
            report.without_record.push(key);
        }
    }
    if repair == Repair::Fix {
        // Those of records that went into quarantine are gone with them.
        store.remove(&report.without_record)?;
    }
    report.quarantined = store.quarantined_count()?;
    Ok(report)
}

fn check_record(
    space: Space,
    store: &dyn Store,
    key: &PlanKey,
    repair: Repair,
    now_ms: u64,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    let Some(record) = store.get(key)? else { return Ok(()) };
    let size_bytes = record.len() as u64;
    let stored = store.summary(key)?;
    let mended = match space {
        Space::Plans => decode_plan(key, Bytes::from(record)).map(|stored_plan| {
            let fresh = PlanSummary::of(*key, &stored_plan, size_bytes, now_ms);
            let stored = stored.and_then(|bytes| PlanSummary::decode(key, &bytes).ok());
            let fits = stored.as_ref().is_some_and(|stored| stored.describes_same_as(&fresh));
            (!fits).then(|| stored.map_or_else(|| fresh.clone(), |stored| fresh.with_history_of(&stored)).encode())
        }),
        // Of anything else the payload is its owner's business.
        _ => decode_record(&record).map(|_| {
            let fits = stored.is_some_and(|bytes| bytes.is_empty() || decode_record(&bytes).is_ok());
            (!fits).then(Vec::new)
        }),
    };
    let mended = match mended {
        Ok(mended) => mended,
        Err(damage) => {
            report.damaged.push((*key, damage));
            return if repair == Repair::Fix { store.quarantine(key) } else { Ok(()) };
        }
    };
    report.intact += 1;
    report.bytes += size_bytes;
    let Some(mended) = mended else { return Ok(()) };
    report.without_summary.push(*key);
    match repair {
        Repair::Fix => store.set_summaries(&[(*key, mended)], Durability::Synced),
        Repair::Report => Ok(()),
    }
}

/// The greatest key below this one.
fn predecessor(key: &PlanKey) -> Option<PlanKey> {
    let mut bytes = *key.as_bytes();
    for byte in bytes.iter_mut().rev() {
        let (lower, borrowed) = byte.overflowing_sub(1);
        *byte = lower;
        if !borrowed {
            return Some(PlanKey::from_bytes(bytes));
        }
    }
    None
}
