//! Checks every record and summary of a space, and repairs what it can.

use std::mem;

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

/// What one look at a key found.
enum Finding {
    /// No record: it was removed meanwhile.
    Absent,
    Damaged(DamagedRecord),
    Intact {
        bytes: u64,
        /// The summary that it should have, if it has another one or none.
        mended: Option<Vec<u8>>,
    },
}

impl CheckReport {
    fn note(&mut self, key: PlanKey, finding: Finding) {
        match finding {
            Finding::Absent => {}
            Finding::Damaged(damage) => self.damaged.push((key, damage)),
            Finding::Intact { bytes, mended } => {
                self.intact += 1;
                self.bytes += bytes;
                if mended.is_some() {
                    self.without_summary.push(key);
                }
            }
        }
    }
}

/// How often what seems wrong is looked at while the space is in use.
const LOOKS: usize = 3;

/// Reads and verifies every record and every summary of a space that is in use meanwhile, and changes nothing. What was
/// written or removed while it was looked at is looked at again. O(bytes stored).
///
/// # Errors
/// The engine failed.
pub fn check_store_in_use(space: Space, store: &dyn Store) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    let orphans = summaries_without_record(store)?;
    let mut suspects = store.all_keys().collect::<Result<Vec<_>, _>>()?;
    for look_number in 1..=LOOKS {
        for key in mem::take(&mut suspects) {
            match look(space, store, &key, 0)? {
                Finding::Damaged(_) | Finding::Intact { mended: Some(_), .. } if look_number < LOOKS => {
                    suspects.push(key)
                }
                finding => report.note(key, finding),
            }
        }
    }
    for key in orphans {
        if !has_record(store, &key)? && store.summary(&key)?.is_some() {
            report.without_record.push(key);
        }
    }
    report.quarantined = store.quarantined_count()?;
    Ok(report)
}

/// Reads and verifies every record and every summary of a space: plans down to their payload, anything else as far as
/// its envelope. O(bytes stored).
///
/// # Errors
/// The engine failed.
pub fn check_store(space: Space, store: &dyn Store, repair: Repair, now_ms: u64) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    for key in store.all_keys() {
        let key = key?;
        let finding = look(space, store, &key, now_ms)?;
        if repair == Repair::Fix {
            mend(store, &key, &finding)?;
        }
        report.note(key, finding);
    }
    report.without_record = summaries_without_record(store)?;
    if repair == Repair::Fix {
        // Those of records that went into quarantine are gone with them.
        store.remove(&report.without_record)?;
    }
    report.quarantined = store.quarantined_count()?;
    Ok(report)
}

fn mend(store: &dyn Store, key: &PlanKey, finding: &Finding) -> Result<(), StoreError> {
    match finding {
        Finding::Damaged(_) => store.quarantine(key),
        Finding::Intact { mended: Some(summary), .. } => {
            store.set_summaries(&[(*key, summary.clone())], Durability::Synced)
        }
        Finding::Absent | Finding::Intact { mended: None, .. } => Ok(()),
    }
}

fn look(space: Space, store: &dyn Store, key: &PlanKey, now_ms: u64) -> Result<Finding, StoreError> {
    let Some(record) = store.get(key)? else { return Ok(Finding::Absent) };
    let bytes = record.len() as u64;
    let stored = store.summary(key)?;
    let mended = match space {
        Space::Plans => decode_plan(key, Bytes::from(record)).map(|stored_plan| {
            let fresh = PlanSummary::of(*key, &stored_plan, bytes, now_ms);
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
    Ok(match mended {
        Ok(mended) => Finding::Intact { bytes, mended },
        Err(damage) => Finding::Damaged(damage),
    })
}

fn summaries_without_record(store: &dyn Store) -> Result<Vec<PlanKey>, StoreError> {
    let mut found = Vec::new();
    for entry in store.all_summaries() {
        let (key, _) = entry?;
        if !has_record(store, &key)? {
            found.push(key);
        }
    }
    Ok(found)
}

fn has_record(store: &dyn Store, key: &PlanKey) -> Result<bool, StoreError> {
    Ok(store.keys(predecessor(key).as_ref(), 1)?.first() == Some(key))
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
