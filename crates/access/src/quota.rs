//! How much each tenant and each caller may use.

use std::collections::BTreeMap;
use std::fmt;

use crate::short::short;

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Quota {
    /// Calls that begin in a second.
    RequestsPerSecond,
    /// Calls inside at once; those that stay open to watch included.
    Calls,
    /// Bytes of long requests that arrive or are worked on.
    RequestBytes,
    /// Jobs that wait or run.
    Jobs,
    /// Seconds of planning workers in an hour.
    PlanningSecondsPerHour,
    /// Topologies that were not stored before, in an hour.
    TopologiesPerHour,
    /// Bytes of new plans and topologies that are stored, in an hour.
    StoredBytesPerHour,
    /// Networks and machines that had no faults before, in an hour.
    FaultScopesPerHour,
    /// Leases held; only of tenants.
    Leases,
}

/// How use counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// What is there at once.
    AtOnce,
    /// What was taken within this number of seconds.
    PerSeconds(u32),
}

/// A row for each quota: its key in the rules, and how use counts.
const QUOTAS: [(Quota, &str, Measure); Quota::COUNT] = [
    (Quota::RequestsPerSecond, "requests_per_second", Measure::PerSeconds(1)),
    (Quota::Calls, "calls", Measure::AtOnce),
    (Quota::RequestBytes, "request_bytes", Measure::AtOnce),
    (Quota::Jobs, "jobs", Measure::AtOnce),
    (Quota::PlanningSecondsPerHour, "planning_seconds_per_hour", Measure::PerSeconds(HOUR)),
    (Quota::TopologiesPerHour, "topologies_per_hour", Measure::PerSeconds(HOUR)),
    (Quota::StoredBytesPerHour, "stored_bytes_per_hour", Measure::PerSeconds(HOUR)),
    (Quota::FaultScopesPerHour, "fault_scopes_per_hour", Measure::PerSeconds(HOUR)),
    (Quota::Leases, "leases", Measure::AtOnce),
];
const HOUR: u32 = 3600;
/// Key of the share of planning workers.
const WEIGHT: &str = "weight";
/// Largest weight: beside it others still get a thousandth.
const WEIGHT_MAX: u64 = 1000;
/// Largest limit of anything.
const LIMIT_MAX: u64 = 1_000_000_000_000;

impl Quota {
    /// Number of quotas.
    pub const COUNT: usize = 9;

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        QUOTAS.iter().map(|(quota, ..)| *quota)
    }

    /// Its key in the rules.
    pub fn name(self) -> &'static str {
        QUOTAS[self.index()].1
    }

    /// How use counts.
    pub fn measure(self) -> Measure {
        QUOTAS[self.index()].2
    }

    /// Its place among all of them.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why quotas cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum QuotaError {
    #[error("quota of {}: `{}` is not a quota; there are {WEIGHT}, {}", short(of), short(key), names())]
    Unknown { of: String, key: String },
    #[error("quota of {}: `{}` is {found}; use 1 to {limit}", short(of), short(key))]
    Range { of: String, key: String, found: u64, limit: u64 },
    #[error(
        "quota of identity {}: `{}` counts for tenants alone; state it under `quotas.tenants`",
        short(name),
        short(key)
    )]
    TenantsAlone { name: String, key: String },
}

fn names() -> String {
    Quota::all().map(Quota::name).collect::<Vec<_>>().join(", ")
}

/// Limits of a tenant or a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    limits: [Option<u64>; Quota::COUNT],
    weight: Option<u64>,
}

impl Limits {
    fn read(of: &str, text: &BTreeMap<String, u64>) -> Result<Self, QuotaError> {
        let mut all = Self::default();
        for (key, &found) in text {
            let quota = Quota::all().find(|quota| quota.name() == key);
            let (place, limit) = match quota {
                Some(quota) => (&mut all.limits[quota.index()], LIMIT_MAX),
                None if key == WEIGHT => (&mut all.weight, WEIGHT_MAX),
                None => return Err(QuotaError::Unknown { of: of.to_owned(), key: key.clone() }),
            };
            if !(1..=limit).contains(&found) {
                return Err(QuotaError::Range { of: of.to_owned(), key: key.clone(), found, limit });
            }
            *place = Some(found);
        }
        Ok(all)
    }

    /// These, and where they say nothing, others.
    fn over(self, below: Self) -> Self {
        let limits = std::array::from_fn(|at| self.limits[at].or(below.limits[at]));
        Self { limits, weight: self.weight.or(below.weight) }
    }

    /// The limit of a quota; `None` if use is unlimited.
    pub const fn of(&self, quota: Quota) -> Option<u64> {
        self.limits[quota.index()]
    }

    /// The share of planning workers, compared with those of others.
    pub fn weight(&self) -> u64 {
        self.weight.unwrap_or(1)
    }
}

/// The quotas of a server, as they stand in its rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    default: Limits,
    tenants: BTreeMap<String, Limits>,
    identities: BTreeMap<String, Limits>,
}

/// As quotas are written: keys and numbers.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct QuotasText {
    default: BTreeMap<String, u64>,
    tenants: BTreeMap<String, BTreeMap<String, u64>>,
    identities: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Quotas {
    /// # Errors
    /// A key is unknown, or a number too small or too large.
    pub(crate) fn read(text: &QuotasText) -> Result<Self, QuotaError> {
        let default = Limits::read("`default`", &text.default)?;
        let named = |kind: &str, all: &BTreeMap<String, BTreeMap<String, u64>>| {
            let limits =
                |(name, text): (&String, &_)| Ok((name.clone(), Limits::read(&format!("{kind} {name}"), text)?));
            all.iter().map(limits).collect::<Result<BTreeMap<_, _>, QuotaError>>()
        };
        let (tenants, identities) = (named("tenant", &text.tenants)?, named("identity", &text.identities)?);
        for (name, limits) in &identities {
            let key = if limits.weight.is_some() { WEIGHT } else { Quota::Leases.name() };
            if limits.weight.is_some() || limits.of(Quota::Leases).is_some() {
                return Err(QuotaError::TenantsAlone { name: name.clone(), key: key.to_owned() });
            }
        }
        Ok(Self { default, tenants, identities })
    }

    /// The limits of a tenant; the empty name is for callers without one.
    pub fn of_tenant(&self, name: &str) -> Limits {
        self.tenants.get(name).map_or(self.default, |limits| limits.over(self.default))
    }

    /// The limits of a caller, beside those of its tenant.
    pub fn of_identity(&self, name: &str) -> Limits {
        self.identities.get(name).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Quotas, String> {
        let text: QuotasText = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        Quotas::read(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_stand_where_their_quotas_say() {
        assert!(Quota::all().enumerate().all(|(at, quota)| quota.index() == at));
    }

    #[test]
    fn tenants_have_what_is_theirs_over_the_default() {
        let quotas = read(
            "default = { jobs = 8, leases = 3 }\n\
             [tenants.red]\njobs = 64\nweight = 4\n\
             [identities.\"cn:slurm\"]\nrequests_per_second = 5\n",
        )
        .unwrap();
        let (red, blue, slurm) = (quotas.of_tenant("red"), quotas.of_tenant("blue"), quotas.of_identity("cn:slurm"));
        assert_eq!((red.of(Quota::Jobs), red.of(Quota::Leases), red.weight()), (Some(64), Some(3), 4));
        assert_eq!((blue.of(Quota::Jobs), blue.of(Quota::Calls), blue.weight()), (Some(8), None, 1));
        assert_eq!((slurm.of(Quota::RequestsPerSecond), slurm.of(Quota::Jobs)), (Some(5), None));
        assert_eq!(quotas.of_identity("other"), Limits::default());
    }

    #[test]
    fn what_is_no_quota_is_refused_by_name() {
        for (text, words) in [
            ("default = { cores = 8 }", "`default`: `cores` is not a quota; there are weight, requests_per_second"),
            ("[tenants.red]\njobs = 0", "tenant red: `jobs` is 0; use 1 to 1000000000000"),
            ("[tenants.red]\nweight = 1001", "tenant red: `weight` is 1001; use 1 to 1000"),
            ("[identities.ann]\nweight = 2", "identity ann: `weight` counts for tenants alone"),
            ("[identities.ann]\nleases = 2", "identity ann: `leases` counts for tenants alone"),
            ("[users.ann]\njobs = 2", "unknown field `users`"),
            ("default = { jobs = -1 }", "invalid value"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }
}
