//! Faults of machines that no network known here has: they are kept, and count once one has them.

use std::collections::BTreeSet;
use std::sync::Arc;

use canopy_faults::Target;
use canopy_planner::PlanKey;
use canopy_topology::{DocumentFormat, Topology, TopologyLimits, identity_hash, read_document};

use crate::failure::CallFailure;
use crate::replan::{Audience, Base, Network, Replanner, Scope};
use crate::rpc::shared::sources::StoredNetworks;
use crate::store::topologies::id_of;

/// Most bytes of stored topologies that are looked through. If there are more, a fault is taken to match.
const SEARCHED_BYTES_MAX: u64 = 64 << 20;

/// The elements of machines that no lease, stored cluster or stored topology has.
///
/// O(leases + machines of clusters), and the cost of reading the topologies that name one of the machines.
pub(super) fn unmatched(
    replanner: &Replanner,
    networks: &StoredNetworks,
    elements: BTreeSet<(Scope, Target)>,
    limits: &TopologyLimits,
) -> Result<BTreeSet<(Scope, Target)>, CallFailure> {
    let mut open = Open(elements);
    open.strike_leased(replanner)?;
    open.strike_clusters(networks, limits)?;
    open.strike_topologies(networks, limits)?;
    Ok(open.0)
}

/// Elements that no network has so far.
struct Open(BTreeSet<(Scope, Target)>);

impl Open {
    fn strike(&mut self, network: &Network) {
        self.0.retain(|(scope, target)| scope.host().is_some_and(|machine| !network.has_element(machine, target)));
    }

    fn machines(&self) -> BTreeSet<String> {
        self.0.iter().filter_map(|(scope, _)| scope.host()).map(str::to_owned).collect()
    }

    fn strike_leased(&mut self, replanner: &Replanner) -> Result<(), CallFailure> {
        for key in replanner.leases().bases() {
            if self.0.is_empty() {
                break;
            }
            let Some(base) = replanner.bases().get(&key)? else { continue };
            let mut seen: BTreeSet<Option<PlanKey>> = BTreeSet::new();
            for held in replanner.leases().held_on(&key) {
                if seen.insert(held.placed.as_ref().map(|placed| *placed.digest())) {
                    self.strike(&Network::new(key, Arc::clone(&base), held.placed.as_ref(), Audience::Everyone));
                }
            }
        }
        Ok(())
    }

    fn strike_clusters(&mut self, networks: &StoredNetworks, limits: &TopologyLimits) -> Result<(), CallFailure> {
        let machines = self.machines();
        if !machines.is_empty() {
            let parts = networks.clusters.machines(&machines, limits)?;
            parts.into_iter().for_each(|part| self.strike(&network_of(part)));
        }
        Ok(())
    }

    fn strike_topologies(&mut self, networks: &StoredNetworks, limits: &TopologyLimits) -> Result<(), CallFailure> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut stored = Vec::new();
        networks.topologies.for_each(|entry| stored.push((entry.key(), entry.size_bytes)))?;
        if stored.iter().map(|(_, size_bytes)| size_bytes).sum::<u64>() > SEARCHED_BYTES_MAX {
            self.0.clear();
        }
        for (key, _) in stored {
            let Some(kept) = networks.topologies.get(&id_of(&key))? else { continue };
            let text = std::str::from_utf8(&kept.document).unwrap_or_default();
            let is_named = |machine: &String| text.contains(machine.split('.').next().unwrap_or(machine));
            if !self.machines().iter().any(is_named) {
                continue;
            }
            // What cannot be read is told of where it is used.
            if let Ok(read) = read_document(&kept.document, Some(DocumentFormat::Json), limits) {
                self.strike(&network_of(read.topology));
            }
        }
        Ok(())
    }
}

fn network_of(topology: Topology) -> Network {
    let key = PlanKey::from_bytes(*identity_hash(&topology).as_bytes());
    Network::new(key, Arc::new(Base::new(topology)), None, Audience::Everyone)
}
