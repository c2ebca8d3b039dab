//! Plans as the payload of records, and keys as ids of plans.

use std::ops::RangeInclusive;

use bytes::Bytes;
use canopy_planner::PlanKey;
use canopy_wire::StoredPlan;

use crate::{DamagedRecord, decode_record, encode_record};

/// The keys that an id in this folder can stand for: those that begin with its 32 digits.
pub fn keys_of_id(folder: &str, id: &str) -> Option<RangeInclusive<PlanKey>> {
    let digits = id.strip_prefix(folder)?;
    let canonical = digits.len() == 32 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let prefix = u128::from_str_radix(digits, 16).ok().filter(|_| canonical)?.to_be_bytes();
    let filled = |filler| {
        let mut key = [filler; 32];
        key[..16].copy_from_slice(&prefix);
        PlanKey::from_bytes(key)
    };
    Some(filled(0)..=filled(0xff))
}

/// The record of a plan that was asked for by this request.
pub(super) fn encode_plan(plan: &StoredPlan, request: Vec<u8>) -> Vec<u8> {
    encode_record(&plan.encode(request))
}

/// The request in a record, empty where none was kept.
pub fn request_of(record: &[u8]) -> Result<Vec<u8>, DamagedRecord> {
    StoredPlan::request_in(decode_record(record)?).ok_or(DamagedRecord::Payload)
}

/// Reads a record that must hold the plan of this key.
pub fn decode_plan(key: &PlanKey, record: Bytes) -> Result<StoredPlan, DamagedRecord> {
    let payload = record.slice_ref(decode_record(&record)?);
    // An intact record under the wrong key would be a wrong answer.
    StoredPlan::decode(payload)
        .filter(|stored| stored.plan.content_key == key.to_string())
        .ok_or(DamagedRecord::Payload)
}
