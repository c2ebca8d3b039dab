//! A plan as it is stored and as it is sent: encoded on first use, and then shared.

use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;
use canopy_planner::Warning;
use canopy_proto::v1::{Plan, PlanResponse};
use prost::Message as _;

use crate::digest::sha256_hex;
use crate::former;
use crate::plan::{plan_header, warnings, warnings_read};

/// Greatest number of bytes that a decoded plan takes for each that it has on the wire, without its files, and those of
/// the two ways in which it is sent.
const MEMORY_PER_BYTE: usize = 8 + 2;

/// A stored plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredPlan {
    /// The plan, with the content of all its artifacts.
    pub plan: Plan,
    /// Warnings for everyone who gets it.
    pub warnings: Vec<Warning>,
    /// Its encoded replies.
    sent: Sent,
}

/// What stands behind the reply in the bytes of a plan, whose readers pass over it. Fields are only ever added, from 1,000 on.
#[derive(Clone, PartialEq, prost::Message)]
struct Beside {
    /// What the plan was asked for by; whoever stores the plan says what these bytes mean.
    #[prost(bytes = "vec", tag = "1000")]
    request: Vec<u8>,
}

/// What is sent of a plan. Follows from the plan: all are equal, and a copy has yet to be made.
#[derive(Default)]
struct Sent {
    /// Without content.
    header: OnceLock<Bytes>,
    /// With the content of small files.
    inline: OnceLock<Bytes>,
    /// By file and piece, SHA-256.
    digests: OnceLock<Vec<Vec<String>>>,
}

impl StoredPlan {
    /// A plan that has not been encoded yet.
    pub fn new(plan: Plan, warnings: Vec<Warning>) -> Self {
        Self { plan, warnings, sent: Sent::default() }
    }

    /// Encodes a plan made for this request. The bytes are those of a reply, without what belongs to one call alone.
    pub fn encode(&self, request: Vec<u8>) -> Vec<u8> {
        let (plan, warnings) = (Some(self.plan.clone()), warnings(&self.warnings));
        let mut bytes = PlanResponse { plan, warnings, ..PlanResponse::default() }.encode_to_vec();
        bytes.extend(Beside { request }.encode_to_vec());
        bytes
    }

    /// Reads what [`StoredPlan::encode`] wrote; `None` for anything else, and for a plan with a file without content.
    pub fn decode(bytes: Bytes) -> Option<Self> {
        let PlanResponse { plan, warnings, .. } = PlanResponse::decode(bytes.clone()).ok()?;
        let mut plan = plan.filter(|plan| plan.artifacts.iter().all(|artifact| artifact.content.is_some()))?;
        if former::is_former(&plan) {
            former::add(bytes, &mut plan)?;
        }
        Some(Self::new(plan, warnings_read(warnings)))
    }

    /// The request in the bytes of a plan, empty if none was stored; `None` for anything else.
    pub fn request_in(bytes: &[u8]) -> Option<Vec<u8>> {
        Beside::decode(bytes).ok().map(|Beside { request }| request)
    }

    /// The plan without the content of its files, as it is sent.
    pub fn header_sent(&self) -> Bytes {
        self.sent.header.get_or_init(|| plan_header(&self.plan, 0).encode_to_vec().into()).clone()
    }

    /// The plan as it is sent with the content of files of at most so many bytes, always as many.
    pub fn inline_sent(&self, inline_bytes_max: usize) -> Bytes {
        let is_inline = |content: &Bytes| inline_bytes_max > 0 && content.len() <= inline_bytes_max;
        if !self.plan.artifacts.iter().filter_map(|file| file.content.as_ref()).any(is_inline) {
            return self.header_sent();
        }
        self.sent.inline.get_or_init(|| plan_header(&self.plan, inline_bytes_max).encode_to_vec().into()).clone()
    }

    /// The digests of the pieces of a file, each of so many bytes, always as many.
    pub fn piece_digests(&self, file: usize, piece_bytes: usize) -> &[String] {
        let of_file = |content: &Bytes| content.chunks(piece_bytes.max(1)).map(sha256_hex).collect();
        let digests = self.sent.digests.get_or_init(|| {
            let contents = self.plan.artifacts.iter().map(|file| file.content.clone().unwrap_or_default());
            contents.map(|content| of_file(&content)).collect()
        });
        digests.get(file).map_or(&[], Vec::as_slice)
    }

    /// Bytes of memory that it takes beside its files: what is decoded, and what is sent of it.
    pub fn memory_bytes(&self) -> usize {
        let files: usize = self.plan.artifacts.iter().filter_map(|file| file.content.as_ref()).map(Bytes::len).sum();
        self.plan.encoded_len().saturating_sub(files).saturating_mul(MEMORY_PER_BYTE)
    }
}

impl Clone for Sent {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Sent {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sent").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use canopy_proto::v1::Artifact;

    use super::*;

    #[test]
    fn a_plan_is_encoded_once_for_all_who_ask() {
        let file = |bytes: usize| Artifact { content: Some(vec![7; bytes].into()), ..Artifact::default() };
        let plan = StoredPlan::new(Plan { artifacts: vec![file(10), file(1000)], ..Plan::default() }, Vec::new());
        assert_eq!(plan.header_sent(), plan_header(&plan.plan, 0).encode_to_vec());
        assert_eq!(plan.inline_sent(100), plan_header(&plan.plan, 100).encode_to_vec());
        assert_eq!(plan.header_sent().as_ptr(), plan.header_sent().as_ptr());
        assert_eq!(plan.inline_sent(100).as_ptr(), plan.inline_sent(100).as_ptr());
        assert_eq!(plan.piece_digests(1, 400).len(), 3);
        assert_eq!(plan.piece_digests(0, 400), [sha256_hex(&[7; 10])]);
        assert!(plan.piece_digests(2, 400).is_empty());
        let large = StoredPlan::new(Plan { artifacts: vec![file(1000)], ..Plan::default() }, Vec::new());
        assert_eq!(large.inline_sent(100).as_ptr(), large.header_sent().as_ptr(), "both ways are one");
        let mut changed = plan.clone();
        changed.plan.name = "plans/x".to_owned();
        assert_ne!(changed.header_sent(), plan.header_sent(), "a copy is encoded anew");
        assert!(plan.memory_bytes() < 1000, "files are counted elsewhere");
    }
}
