//! What became of the plan of a lease, as it is kept.

use bytes::Bytes;
use canopy_faults::Loss;
use prost_types::{Duration, Timestamp};

use crate::failure::KeptRefusal;

/// An event of a lease. Fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Event {
    /// Its place in the log.
    #[prost(uint64, tag = "1")]
    pub(crate) sequence: u64,
    #[prost(string, tag = "2")]
    pub(crate) resume_token: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) time: Option<Timestamp>,
    /// `leases/…`.
    #[prost(string, tag = "4")]
    pub(crate) lease: String,
    #[prost(string, tag = "5")]
    pub(crate) job: String,
    /// Which of the lease's plans.
    #[prost(uint32, tag = "6")]
    pub(crate) item: u32,
    /// What the plan avoids, see [`Event::losses`].
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub(crate) faults: Vec<Bytes>,
    #[prost(oneof = "Change", tags = "8, 9, 11")]
    pub(crate) change: Option<Change>,
}

impl Event {
    /// What its plan avoids, as far as it is noted.
    pub(crate) fn losses(&self) -> Vec<Loss> {
        self.faults.iter().filter_map(|fault| canopy_wire::loss_read(fault.clone())).collect()
    }
}

/// What happened.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Change {
    /// Another plan is valid.
    #[prost(message, tag = "8")]
    Superseded(Superseded),
    /// No plan is valid any more.
    #[prost(message, tag = "9")]
    Lost(Lost),
    /// The lease has ended.
    #[prost(message, tag = "11")]
    Expired(Expired),
}

/// One plan takes the place of another, both `plans/…`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Superseded {
    #[prost(string, tag = "1")]
    pub(crate) old_plan: String,
    #[prost(string, tag = "2")]
    pub(crate) new_plan: String,
    #[prost(enumeration = "Stage", tag = "3")]
    pub(crate) stage: i32,
    /// Upper bound on algbw in bytes per second, an exact fraction.
    #[prost(string, tag = "4")]
    pub(crate) bound: String,
    /// Algbw of the new plan in bytes per second, an exact fraction.
    #[prost(string, tag = "5")]
    pub(crate) achieved: String,
    /// achieved ÷ bound, an exact fraction.
    #[prost(string, tag = "6")]
    pub(crate) optimality: String,
    /// By rank of the new plan: its number in the request. Empty: all of them.
    #[prost(uint32, repeated, tag = "7")]
    pub(crate) survivors: Vec<u32>,
    /// Since the faults counted.
    #[prost(message, optional, tag = "8")]
    pub(crate) elapsed: Option<Duration>,
    /// Whether no better plan follows for the same faults.
    #[prost(bool, tag = "9")]
    pub(crate) is_final: bool,
}

/// There is no plan in place of the old one.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Lost {
    #[prost(string, tag = "1")]
    pub(crate) old_plan: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) error: Option<KeptRefusal>,
}

/// A lease was not renewed in time.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Expired {
    #[prost(message, optional, tag = "1")]
    pub(crate) time: Option<Timestamp>,
}

/// How a plan for a network with faults came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Stage {
    Unspecified = 0,
    /// It was made beforehand, or for others.
    Precomputed = 1,
    /// The earlier plan with new routes around what is broken.
    Repaired = 2,
    /// A plan that takes next to no time to make.
    StandIn = 3,
    /// The best that the search finds.
    Optimum = 4,
    /// The plan from before the faults, which are gone.
    Restored = 5,
}

impl Stage {
    /// A word for the label of a metric.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Precomputed => "precomputed",
            Self::Repaired => "repaired",
            Self::StandIn => "stand-in",
            Self::Restored => "restored",
            Self::Optimum | Self::Unspecified => "optimum",
        }
    }
}

/// An event of each kind in which no field is left out.
#[cfg(test)]
pub(crate) fn whole_events() -> Vec<Event> {
    use canopy_wire::{loss_written, timestamp};

    let text = str::to_owned;
    let superseded = Superseded {
        old_plan: text("plans/a"),
        new_plan: text("plans/b"),
        stage: Stage::Restored.into(),
        bound: text("7/2"),
        achieved: text("3"),
        optimality: text("6/7"),
        survivors: vec![0, 2],
        elapsed: Some(Duration { seconds: 1, nanos: 5 }),
        is_final: true,
    };
    let lost = Lost { old_plan: text("plans/a"), error: Some((&crate::failure::PlanFailure::Stopped).into()) };
    let expired = Expired { time: Some(timestamp(7)) };
    let changes = [Change::Superseded(superseded), Change::Lost(lost), Change::Expired(expired)];
    let faults: Vec<Bytes> = vec![loss_written(&"nic:g0>ib*1/2".parse().expect("a loss"))];
    let whole = |change| Event {
        sequence: 1,
        resume_token: text("1-1"),
        time: Some(timestamp(1_500)),
        lease: text("leases/1"),
        job: text("job"),
        item: 3,
        faults: faults.clone(),
        change: Some(change),
    };
    changes.map(whole).into()
}
