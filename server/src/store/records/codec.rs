//! Plans as the payload of records, and keys as ids of plans.

use std::ops::RangeInclusive;

use bytes::Bytes;
use canopy_proto::v1::PlanReply;
use prost::Message as _;

use super::StoredPlan;
use crate::key::PlanKey;
use crate::store::{DamagedRecord, decode_message, decode_record, encode_record};

/// The keys that an id in this folder can stand for: those that begin with its 32 digits.
pub(crate) fn keys_of_id(folder: &str, id: &str) -> Option<RangeInclusive<PlanKey>> {
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

/// What stands in a record behind the reply, whose readers pass over it. Fields are only ever added, from 1,000 on.
#[derive(Clone, PartialEq, prost::Message)]
struct Beside {
    /// What the plan was asked for by; whoever stores the plan says what these bytes mean.
    #[prost(bytes = "vec", tag = "1000")]
    request: Vec<u8>,
}

/// The record of a plan that was asked for by this request.
pub(in crate::store) fn encode_plan(plan: &StoredPlan, request: Vec<u8>) -> Vec<u8> {
    // A reply is a plan and its warnings; what belongs to one request is left out.
    let StoredPlan { plan, warnings, .. } = plan.clone();
    let warnings = canopy_wire::warnings(&warnings);
    let payload = PlanReply { plan: Some(plan), warnings, ..PlanReply::default() };
    let mut payload = payload.encode_to_vec();
    payload.extend(Beside { request }.encode_to_vec());
    encode_record(&payload)
}

/// The request in a record, empty where none was kept.
pub(in crate::store) fn request_of(record: &[u8]) -> Result<Vec<u8>, DamagedRecord> {
    decode_message(record).map(|Beside { request }| request)
}

/// Reads a record that must hold the plan of this key.
pub(in crate::store) fn decode_plan(key: &PlanKey, record: Bytes) -> Result<StoredPlan, DamagedRecord> {
    let payload = record.slice_ref(decode_record(&record)?);
    let PlanReply { plan, warnings, .. } = PlanReply::decode(payload).map_err(|_| DamagedRecord::Payload)?;
    let plan = plan.ok_or(DamagedRecord::Payload)?;
    // An intact record under the wrong key would be a wrong answer.
    let complete = plan.artifacts.iter().all(|artifact| artifact.content.is_some());
    if plan.content_key == key.to_string() && complete {
        Ok(StoredPlan::new(plan, canopy_wire::warnings_read(warnings)))
    } else {
        Err(DamagedRecord::Payload)
    }
}
