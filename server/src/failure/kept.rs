//! Why a job of another server has failed, in full: its callers learn here what they would have learned there.

use std::borrow::Cow;
use std::time::Duration;

use canopy_wire::{Code, Detail, Refusal};
use prost::Message as _;

use super::PlanFailure;
use super::refusal::{KeptRefusal, refusal};

/// A failure, written down. Fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeptFailure {
    #[prost(message, required, tag = "1")]
    refusal: KeptRefusal,
    #[prost(message, repeated, tag = "2")]
    metadata: Vec<Named>,
    #[prost(message, required, tag = "3")]
    detail: KeptDetail,
    #[prost(bool, tag = "4")]
    is_cancellation: bool,
    #[prost(bool, tag = "5")]
    may_be_stood_in: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// A detail: what kind it is, and what that kind has.
#[derive(Clone, PartialEq, prost::Message)]
struct KeptDetail {
    #[prost(enumeration = "Kind", tag = "1")]
    kind: i32,
    #[prost(string, tag = "2")]
    subject: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, repeated, tag = "4")]
    components: Vec<String>,
    #[prost(uint64, tag = "5")]
    delay_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
enum Kind {
    None = 0,
    Field = 1,
    Precondition = 2,
    Components = 3,
    Limit = 4,
    Busy = 5,
    Retry = 6,
    Resource = 7,
}

impl KeptDetail {
    fn of(detail: Detail) -> Self {
        let with = |kind: Kind, subject: String| Self { kind: kind.into(), subject, ..Self::default() };
        let delay_ms = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        match detail {
            Detail::None => Self::default(),
            Detail::Field(field) => with(Kind::Field, field),
            Detail::Precondition(subject) => with(Kind::Precondition, subject),
            Detail::Components(subject, components) => Self { components, ..with(Kind::Components, subject) },
            Detail::Limit(subject) => with(Kind::Limit, subject),
            Detail::Busy(subject, delay) => {
                Self { delay_ms: delay_ms(delay), ..with(Kind::Busy, subject.into_owned()) }
            }
            Detail::Retry(delay) => Self { delay_ms: delay_ms(delay), ..with(Kind::Retry, String::new()) },
            Detail::Resource(kind, name) => Self { name, ..with(Kind::Resource, kind.into_owned()) },
        }
    }

    fn detail(&self) -> Detail {
        let (subject, delay) = (self.subject.clone(), Duration::from_millis(self.delay_ms));
        match self.kind() {
            Kind::None => Detail::None,
            Kind::Field => Detail::Field(subject),
            Kind::Precondition => Detail::Precondition(subject),
            Kind::Components => Detail::Components(subject, self.components.clone()),
            Kind::Limit => Detail::Limit(subject),
            Kind::Busy => Detail::Busy(subject.into(), delay),
            Kind::Retry => Detail::Retry(delay),
            Kind::Resource => Detail::Resource(subject.into(), self.name.clone()),
        }
    }
}

impl KeptFailure {
    /// Writes a failure down.
    pub(crate) fn encode(failure: &PlanFailure) -> Vec<u8> {
        if let PlanFailure::Elsewhere(kept) = failure {
            return kept.encode_to_vec();
        }
        let Refusal { metadata, detail, .. } = refusal(failure);
        let named = |(name, value): (Cow<'static, str>, String)| Named { name: name.into_owned(), value };
        Self {
            refusal: failure.into(),
            metadata: metadata.into_iter().map(named).collect(),
            detail: KeptDetail::of(detail),
            is_cancellation: failure.is_cancellation(),
            may_be_stood_in: failure.may_be_stood_in(),
        }
        .encode_to_vec()
    }

    /// Reads what [`KeptFailure::encode`] wrote; a job that is cancelled by the database says nothing.
    pub(crate) fn decode(bytes: &[u8]) -> PlanFailure {
        if bytes.is_empty() {
            return PlanFailure::Stopped;
        }
        <Self as prost::Message>::decode(bytes)
            .map_or(PlanFailure::Unreadable, |kept| PlanFailure::Elsewhere(Box::new(kept)))
    }

    /// What its caller learns.
    pub(super) fn refusal(&self) -> Refusal {
        let metadata = self.metadata.iter().map(|Named { name, value }| (name.clone().into(), value.clone()));
        let code = Code::from_number(self.refusal.code);
        Refusal {
            code,
            reason: self.refusal.reason.clone().into(),
            metadata: metadata.collect(),
            detail: self.detail.detail(),
        }
    }

    pub(super) const fn is_cancellation(&self) -> bool {
        self.is_cancellation
    }

    pub(super) const fn may_be_stood_in(&self) -> bool {
        self.may_be_stood_in
    }

    pub(super) fn words(&self) -> &str {
        &self.refusal.message
    }
}

#[cfg(test)]
mod tests {
    use canopy_planner::{PlanError, chain};
    use canopy_synth::{BoundError, SynthesisError};

    use super::*;

    fn disconnected() -> PlanFailure {
        PlanFailure::Planning(PlanError::Bound(BoundError::Disconnected {
            from: "a".to_owned(),
            from_rank: 0,
            to: "b".to_owned(),
            to_rank: 1,
        }))
    }

    #[test]
    fn callers_learn_elsewhere_what_they_would_have_learned_there() {
        let failures = [
            disconnected(),
            PlanFailure::Planning(PlanError::Synthesis(SynthesisError::NoTrees)),
            PlanFailure::JobMemory { needed: 7, limit: 5 },
            PlanFailure::QueueFull { waiting: 3, limit: 3 },
            PlanFailure::Draining,
            PlanFailure::CancelledByOperator,
            PlanFailure::Abandoned { starts: 3 },
        ];
        for failure in failures {
            let kept = KeptFailure::decode(&KeptFailure::encode(&failure));
            let [there, here] = [&failure, &kept].map(refusal);
            assert_eq!((there.code, &there.reason, &there.metadata), (here.code, &here.reason, &here.metadata));
            assert_eq!(KeptDetail::of(there.detail), KeptDetail::of(here.detail), "{failure}");
            assert_eq!(chain(&kept), chain(&failure));
            assert_eq!(kept.is_cancellation(), failure.is_cancellation(), "{failure}");
            assert_eq!(kept.may_be_stood_in(), failure.may_be_stood_in(), "{failure}");
            assert_eq!(KeptFailure::encode(&kept), KeptFailure::encode(&failure));
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_end_of_the_server() {
        assert!(matches!(KeptFailure::decode(b""), PlanFailure::Stopped));
        assert!(matches!(KeptFailure::decode(b"\xff\xff"), PlanFailure::Unreadable));
    }
}
