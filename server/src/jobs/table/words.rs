//! What servers say of jobs to each other. In all layouts fields are only ever added.

use std::sync::Arc;

use canopy_planner::{PlanKey, Puncture, RequestKey, TenantName, Warning};
use canopy_schedule::CollectiveKind;
use canopy_topology::Rank;
use canopy_wire::{loss_read, loss_written};
use prost::Message as _;
use prost::bytes::Bytes;

use crate::jobs::job::{Cache, Delivery, Job, Status, Timings};

/// What is to be known of an operation beside its job.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Facts {
    #[prost(bytes = "vec", tag = "1")]
    request: Vec<u8>,
    #[prost(string, tag = "2")]
    kind: String,
    #[prost(uint32, optional, tag = "3")]
    pub(crate) root: Option<u32>,
    /// Whose it is alone; empty: everybody's.
    #[prost(string, tag = "4")]
    tenant: String,
    /// In milliseconds since 1970 UTC.
    #[prost(uint64, tag = "5")]
    pub(crate) created_ms: u64,
    /// Those of the reading of its topology.
    #[prost(message, repeated, tag = "6")]
    warnings: Vec<KeptWarning>,
    #[prost(message, optional, tag = "7")]
    puncture: Option<KeptPuncture>,
    /// Whose call began it; empty for none.
    #[prost(string, tag = "8")]
    pub(crate) caller: String,
    /// Whether there was a caller.
    #[prost(bool, tag = "9")]
    pub(crate) has_caller: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeptWarning {
    #[prost(string, tag = "1")]
    code: String,
    #[prost(string, tag = "2")]
    text: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeptPuncture {
    #[prost(string, tag = "1")]
    base: String,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    faults: Vec<Bytes>,
    #[prost(uint32, repeated, tag = "3")]
    survivors: Vec<u32>,
}

impl Facts {
    /// What is to be known of a job, with what was read of its topology.
    pub(super) fn of(job: &Job, warnings: &[Warning], puncture: Option<&Puncture>) -> Self {
        let warning = |Warning { code, text }: &Warning| KeptWarning { code: code.to_string(), text: text.clone() };
        let puncture = puncture.map(|puncture| KeptPuncture {
            base: puncture.base.clone(),
            faults: puncture.faults.iter().map(loss_written).collect(),
            survivors: puncture.survivor_numbers(),
        });
        Self {
            request: job.key.as_bytes().to_vec(),
            kind: job.order.kind.name().to_owned(),
            root: job.order.root,
            tenant: job.order.tenant.as_ref().map_or("", TenantName::as_str).to_owned(),
            created_ms: job.arrived_unix_ms,
            warnings: warnings.iter().map(warning).collect(),
            puncture,
            caller: job.bill.as_ref().map_or("", |bill| bill.tenant()).to_owned(),
            has_caller: job.bill.is_some(),
        }
    }

    /// Reads what [`Facts::of`] encodes to. None: it is damaged, or this build does not know it.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let facts = Self::decode(bytes).ok()?;
        let is_known = facts.kind.parse::<CollectiveKind>().is_ok() && facts.request.len() == 32;
        is_known.then_some(facts)
    }

    pub(crate) fn request(&self) -> RequestKey {
        RequestKey::from_bytes(self.request.as_slice().try_into().unwrap_or([0; 32]))
    }

    pub(crate) fn kind(&self) -> Option<CollectiveKind> {
        self.kind.parse().ok()
    }

    pub(crate) fn tenant(&self) -> Option<TenantName> {
        self.tenant.parse().ok()
    }

    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let warning =
            |KeptWarning { code, text }: &KeptWarning| Warning { code: code.clone().into(), text: text.clone() };
        self.warnings.iter().map(warning).collect()
    }

    pub(crate) fn puncture(&self) -> Option<Arc<Puncture>> {
        let KeptPuncture { base, faults, survivors } = self.puncture.clone()?;
        let faults = faults.into_iter().map(loss_read).collect::<Option<_>>()?;
        let survivors = survivors.into_iter().map(Rank::new).collect();
        Some(Arc::new(Puncture { base, faults, survivors }))
    }
}

/// How far a job is.
#[derive(Clone, PartialEq, prost::Message)]
struct Report {
    #[prost(string, tag = "1")]
    stage: String,
    #[prost(uint64, tag = "2")]
    done: u64,
    #[prost(uint64, tag = "3")]
    total: u64,
    #[prost(string, tag = "4")]
    bound: String,
    #[prost(string, tag = "5")]
    incumbent: String,
}

/// Writes down how far a job is.
pub(super) fn encode_report(status: &Status) -> Vec<u8> {
    let Status { stage, done, total, bound, incumbent } = status.clone();
    Report { stage: stage.into_owned(), done, total, bound, incumbent }.encode_to_vec()
}

/// Reads what [`encode_report`] wrote; what cannot be read says nothing.
pub(crate) fn decode_report(bytes: &[u8]) -> Status {
    let Report { stage, done, total, bound, incumbent } = Report::decode(bytes).unwrap_or_default();
    Status { stage: stage.into(), done, total, bound, incumbent }
}

/// What came of a job that has a plan.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Success {
    #[prost(bytes = "vec", tag = "1")]
    plan: Vec<u8>,
    /// Whether it was searched for.
    #[prost(bool, tag = "2")]
    is_searched: bool,
    #[prost(double, tag = "3")]
    queue_ms: f64,
    #[prost(double, tag = "4")]
    canonical_ms: f64,
    #[prost(double, tag = "5")]
    bound_ms: f64,
    #[prost(double, tag = "6")]
    synthesis_ms: f64,
    #[prost(double, tag = "7")]
    check_ms: f64,
    #[prost(double, tag = "8")]
    lower_ms: f64,
}

impl Success {
    pub(super) fn of(delivery: &Delivery) -> Self {
        let Timings { queue_ms, canonical_ms, planned } = delivery.timings;
        let plan = PlanKey::from_digits(&delivery.plan.plan.content_key);
        Self {
            plan: plan.map(|plan| plan.as_bytes().to_vec()).unwrap_or_default(),
            is_searched: delivery.cache != Cache::Hit,
            queue_ms,
            canonical_ms,
            bound_ms: planned.bound_ms,
            synthesis_ms: planned.synthesis_ms,
            check_ms: planned.check_ms,
            lower_ms: planned.lower_ms,
        }
    }

    /// Reads what this encodes to.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        Self::decode(bytes).unwrap_or_default()
    }

    /// The plan, if it is said.
    pub(crate) fn plan(&self) -> Option<PlanKey> {
        self.plan.as_slice().try_into().ok().map(PlanKey::from_bytes)
    }

    /// Where the plan comes from, for who was first to want it and for others.
    pub(crate) const fn cache(&self, is_first: bool) -> Cache {
        match (self.is_searched, is_first) {
            (false, _) => Cache::Hit,
            (true, true) => Cache::Miss,
            (true, false) => Cache::Joined,
        }
    }

    pub(crate) const fn timings(&self) -> Timings {
        let Self { queue_ms, canonical_ms, bound_ms, synthesis_ms, check_ms, lower_ms, .. } = *self;
        let planned = canopy_planner::Timings { bound_ms, synthesis_ms, check_ms, lower_ms };
        Timings { queue_ms, canonical_ms, planned }
    }
}
