//! The keyed spaces of a data directory: each a store of its own in one engine and under one lock.

/// What is kept under 32-byte keys of its own, apart from all else.
///
/// Every space works alike: records in the envelope of [`encode_record`](super::encode_record), summaries beside
/// them, a quarantine. What the payloads mean is the business of whoever owns the space. An empty summary says that
/// there is none, and that whoever needs one makes it from the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Finished plans, under their plan keys.
    Plans,
    /// Topologies kept by name.
    Topologies,
    /// Jobs that have not ended.
    Jobs,
    /// Answers to requests that state an id of their own.
    Requests,
    /// Schedules in canonical labels, which plans are made of.
    Schedules,
    /// Networks that were found for numbers of nodes and ports.
    Finds,
    /// What is known of elements that are broken or slow.
    Faults,
    /// Which jobs run on which plans.
    Leases,
    /// What became of leases.
    Replans,
    /// Clusters, parts of which requests name.
    Clusters,
}

impl Space {
    /// Every space, in the order in which they are checked and migrated.
    pub const ALL: [Self; 10] = [
        Self::Plans,
        Self::Topologies,
        Self::Jobs,
        Self::Requests,
        Self::Schedules,
        Self::Finds,
        Self::Faults,
        Self::Leases,
        Self::Replans,
        Self::Clusters,
    ];

    /// What one of its records is called, in the plural.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plans => "plans",
            Self::Topologies => "topologies",
            Self::Jobs => "jobs",
            Self::Requests => "requests",
            Self::Schedules => "schedules",
            Self::Finds => "finds",
            Self::Faults => "faults",
            Self::Leases => "leases",
            Self::Replans => "replans",
            Self::Clusters => "clusters",
        }
    }

    /// Whether its records are files of their own. They may be large, are overwritten, and must not be lost with others;
    /// all others are many and small.
    pub const fn is_filed(self) -> bool {
        matches!(self, Self::Plans | Self::Topologies | Self::Schedules | Self::Leases | Self::Clusters)
    }

    /// Whether all of it is kept in two files: it is small, and must not be lost with an engine.
    pub(super) const fn is_doubled(self) -> bool {
        matches!(self, Self::Faults | Self::Replans)
    }

    /// Names of its records, summaries and quarantine in an engine. Those of plans are older than the other spaces.
    pub(super) const fn trees(self) -> [&'static str; 3] {
        match self {
            Self::Plans => ["records", "summaries", "quarantine"],
            Self::Topologies => ["topologies.records", "topologies.summaries", "topologies.quarantine"],
            Self::Jobs => ["jobs.records", "jobs.summaries", "jobs.quarantine"],
            Self::Requests => ["requests.records", "requests.summaries", "requests.quarantine"],
            Self::Schedules => ["schedules.records", "schedules.summaries", "schedules.quarantine"],
            Self::Finds => ["finds.records", "finds.summaries", "finds.quarantine"],
            Self::Faults => ["faults.records", "faults.summaries", "faults.quarantine"],
            Self::Leases => ["leases.records", "leases.summaries", "leases.quarantine"],
            Self::Replans => ["replans.records", "replans.summaries", "replans.quarantine"],
            Self::Clusters => ["clusters.records", "clusters.summaries", "clusters.quarantine"],
        }
    }
}
