//! Which faults may affect a plan, decided without its links.

use std::collections::HashSet;

use canopy_planner::PlanKey;

use super::bases::Base;
use super::placed::Placed;
use super::scope::Scope;

/// Whose faults may matter: machines by the first part of their names, clusters, topologies and placements.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    pub(super) machines: HashSet<String>,
    placements: HashSet<PlanKey>,
    topologies: HashSet<PlanKey>,
    pub(super) clusters: HashSet<String>,
}

impl Suspects {
    /// Those of some scopes.
    pub(super) fn of<'a>(scopes: impl IntoIterator<Item = &'a Scope>) -> Self {
        let mut suspects = Self::default();
        for scope in scopes {
            match scope.place() {
                Scope::Topology(base) => {
                    suspects.topologies.insert(*base);
                }
                Scope::Placement { placement, .. } => {
                    suspects.placements.insert(*placement);
                }
                Scope::Cluster(name) => {
                    suspects.clusters.insert(name.clone());
                }
                Scope::Host(name) => {
                    suspects.machines.insert(short(name).to_owned());
                }
                // A place is by no one.
                Scope::Of { .. } => {}
            }
        }
        suspects
    }

    /// Whether they may matter to a plan; false: they do not. O(machines).
    pub(super) fn may_concern(&self, key: &PlanKey, base: &Base, placed: Option<&Placed>) -> bool {
        let is_suspect = |name: &str| self.machines.contains(short(name));
        self.topologies.contains(key)
            || base.topology().cluster().is_some_and(|name| self.clusters.contains(name))
            || base.devices().is_some_and(|devices| devices.machines().any(is_suspect))
            || placed
                .is_some_and(|placed| self.placements.contains(placed.digest()) || placed.machines().any(is_suspect))
    }
}

/// The part of a name that all names of the machine have.
fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}
