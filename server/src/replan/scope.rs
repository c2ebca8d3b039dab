//! Whose element a fault is of: a machine's, a placed network's or a topology's.
//!
//! Devices are machines' own: a fault of one concerns whatever runs there, whichever topology says so. What lies between machines has names
//! in the cluster that a topology is a part of, else in that topology alone; where its ranks are placed on machines that it does not name,
//! the names hold for that placement, and for no other.

use canopy_faults::{Device, Target};
use canopy_planner::PlanKey;
use prost::Message;

/// Where an element has its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
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
}

impl Scope {
    /// The topology whose names it has; none of a machine or a cluster.
    pub(crate) const fn base(&self) -> Option<&PlanKey> {
        match self {
            Self::Topology(base) | Self::Placement { base, .. } => Some(base),
            Self::Cluster(_) | Self::Host(_) => None,
        }
    }

    /// Tells scopes apart, and those of elements within them.
    pub(crate) fn key_of(&self, element: &str) -> PlanKey {
        let mut hasher = match self {
            Self::Topology(_) => blake3::Hasher::new_derive_key("canopy fault 1"),
            Self::Placement { .. } => blake3::Hasher::new_derive_key("canopy fault of a placement 1"),
            Self::Cluster(_) => blake3::Hasher::new_derive_key("canopy fault of a cluster 1"),
            Self::Host(_) => blake3::Hasher::new_derive_key("canopy fault of a host 1"),
        };
        match self {
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
        if let Self::Host(name) = self {
            match &mut target {
                Target::Gpu { device: Device::Slot { host, .. } }
                | Target::Nic { device: Device::Slot { host, .. }, .. }
                | Target::Host { name: host } => host.clone_from(name),
                _ => {}
            }
        }
        target
    }

    /// As it is kept: bytes of a topology's key, and what there is beside it.
    pub(super) fn kept(&self) -> (Vec<u8>, Option<KeptScope>) {
        match self {
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
        match beside {
            None => key(base).map(Self::Topology),
            Some(KeptScope { host, .. }) if !host.is_empty() => Some(Self::Host(host)),
            Some(KeptScope { cluster, .. }) if !cluster.is_empty() => Some(Self::Cluster(cluster)),
            Some(KeptScope { placement, machines, .. }) => {
                Some(Self::Placement { base: key(base)?, placement: key(&placement)?, machines })
            }
        }
    }
}
