//! Whose element a fault is of: a machine's, a placed network's or a topology's.
//!
//! Devices are machines' own: a fault of one concerns whatever runs there, whichever topology says so. What lies between machines has names
//! in the cluster that a topology is a part of, else in that topology alone; where its ranks are placed on machines that it does not name,
//! the names hold for that placement, and for no other.
//!
//! A tenant's reporters speak for that tenant alone: what they report is in scopes of its own, and counts for nobody else's plans.

use canopy_faults::{Device, Target};
use canopy_planner::PlanKey;
use prost::Message;

use crate::call;

/// Where an element has its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// In one of the others, as the reporters of a tenant say. Must come first.
    Of {
        /// The tenant, for whose plans alone it counts.
        tenant: String,
        /// One of the others.
        scope: Box<Scope>,
    },
    /// In a topology that names its hosts, or whose ranks are nowhere in particular.
    Topology(PlanKey),
    /// In a topology as a request places it.
    Placement {
        /// Key of the topology.
        base: PlanKey,
        /// Tells this placement from others.
        placement: PlanKey,
        /// Its machines in short, for people.
        machines: String,
    },
    /// In a cluster, for all of its parts.
    Cluster(String),
    /// On a machine. Must come last: machines are looked up by the names that begin alike.
    Host(String),
}

/// A scope as it is kept with each record; fields are only ever added.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeptScope {
    #[prost(bytes = "vec", tag = "1")]
    placement: Vec<u8>,
    #[prost(string, tag = "2")]
    machines: String,
    #[prost(string, tag = "3")]
    host: String,
    #[prost(string, tag = "4")]
    cluster: String,
    #[prost(string, tag = "5")]
    tenant: String,
}

/// Whose reports count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Audience {
    /// Those that are for all, and those of this tenant's reporters; empty: no tenant's.
    Tenant(String),
    /// All reports, to find whatever may matter to anyone.
    Everyone,
}

impl Audience {
    /// The tenant of the present call, where callers are told apart.
    pub(crate) fn of_call() -> Self {
        Self::Tenant(call::tenant())
    }

    /// Whether what is reported in a scope counts.
    pub(crate) fn hears(&self, scope: &Scope) -> bool {
        match self {
            Self::Everyone => true,
            Self::Tenant(name) => scope.tenant().is_none_or(|tenant| tenant == name),
        }
    }
}

impl Scope {
    /// The same as the reporters of a tenant speak of it; an empty name: those of no tenant.
    pub(crate) fn by(self, tenant: &str) -> Self {
        match tenant {
            "" => self,
            tenant => Self::Of { tenant: tenant.to_owned(), scope: Box::new(self) },
        }
    }

    /// The tenant for whose plans alone it counts.
    pub(crate) fn tenant(&self) -> Option<&str> {
        match self {
            Self::Of { tenant, .. } => Some(tenant),
            _ => None,
        }
    }

    /// The same whoever reports it.
    pub(crate) fn place(&self) -> &Self {
        match self {
            Self::Of { scope, .. } => scope,
            place => place,
        }
    }

    /// The machine that it is.
    pub(crate) fn host(&self) -> Option<&str> {
        match self.place() {
            Self::Host(name) => Some(name),
            _ => None,
        }
    }

    /// The topology whose names it has; none of a machine or a cluster.
    pub(crate) fn base(&self) -> Option<&PlanKey> {
        match self.place() {
            Self::Topology(base) | Self::Placement { base, .. } => Some(base),
            _ => None,
        }
    }

    /// Tells scopes apart, and those of elements within them.
    pub(crate) fn key_of(&self, element: &str) -> PlanKey {
        let mut hasher = match self {
            Self::Of { .. } => blake3::Hasher::new_derive_key("canopy fault by a tenant 1"),
            Self::Topology(_) => blake3::Hasher::new_derive_key("canopy fault 1"),
            Self::Placement { .. } => blake3::Hasher::new_derive_key("canopy fault of a placement 1"),
            Self::Cluster(_) => blake3::Hasher::new_derive_key("canopy fault of a cluster 1"),
            Self::Host(_) => blake3::Hasher::new_derive_key("canopy fault of a host 1"),
        };
        match self {
            Self::Of { tenant, scope } => {
                hasher.update(&(tenant.len() as u64).to_le_bytes()).update(tenant.as_bytes());
                hasher.update(scope.key_of("").as_bytes())
            }
            Self::Topology(base) => hasher.update(base.as_bytes()),
            Self::Placement { base, placement, .. } => hasher.update(base.as_bytes()).update(placement.as_bytes()),
            Self::Cluster(name) | Self::Host(name) => {
                hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes())
            }
        };
        PlanKey::from_bytes(*hasher.update(element.as_bytes()).finalize().as_bytes())
    }

    /// The same target by the name that this scope's machine has.
    pub(super) fn rehosted(&self, mut target: Target) -> Target {
        if let Some(name) = self.host() {
            match &mut target {
                Target::Gpu { device: Device::Slot { host, .. } }
                | Target::Nic { device: Device::Slot { host, .. } | Device::Nic { host, .. }, .. }
                | Target::Host { name: host } => name.clone_into(host),
                _ => {}
            }
        }
        target
    }

    /// As it is kept: bytes of a topology's key, and what there is beside it.
    pub(super) fn kept(&self) -> (Vec<u8>, Option<KeptScope>) {
        match self {
            Self::Of { tenant, scope } => {
                let (base, beside) = scope.kept();
                (base, Some(KeptScope { tenant: tenant.clone(), ..beside.unwrap_or_default() }))
            }
            Self::Topology(base) => (base.as_bytes().to_vec(), None),
            Self::Placement { base, placement, machines } => {
                let (placement, machines) = (placement.as_bytes().to_vec(), machines.clone());
                (base.as_bytes().to_vec(), Some(KeptScope { placement, machines, ..KeptScope::default() }))
            }
            Self::Cluster(name) => (Vec::new(), Some(KeptScope { cluster: name.clone(), ..KeptScope::default() })),
            Self::Host(name) => (Vec::new(), Some(KeptScope { host: name.clone(), ..KeptScope::default() })),
        }
    }

    /// What was kept. None: it is no scope.
    pub(super) fn from_kept(base: &[u8], beside: Option<KeptScope>) -> Option<Self> {
        let key = |bytes: &[u8]| bytes.try_into().ok().map(PlanKey::from_bytes);
        let KeptScope { placement, machines, host, cluster, tenant } = beside.unwrap_or_default();
        let place = if !host.is_empty() {
            Self::Host(host)
        } else if !cluster.is_empty() {
            Self::Cluster(cluster)
        } else if placement.is_empty() {
            Self::Topology(key(base)?)
        } else {
            Self::Placement { base: key(base)?, placement: key(&placement)?, machines }
        };
        Some(place.by(&tenant))
    }
}
