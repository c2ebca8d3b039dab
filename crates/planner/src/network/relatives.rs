//! Networks planned for lately of which another may be the rest: a repaired plan of one is there before the search for the
//! other's own has ended, though nobody said that anything had failed.
//!
//! What is found here stands in and nothing else: no plan that was asked for depends on it.

use std::collections::HashSet;
use std::sync::Arc;

use canopy_schedule::CollectiveKind;
use canopy_synth::is_remainder;
use canopy_topology::{Slot, Topology, TopologyHash, identity_hash};
use parking_lot::Mutex;

use crate::recent::Recent;

/// Bytes of networks that are remembered.
const BYTES_MAX: u64 = 64 << 20;
/// Networks looked at for one that has all nodes, the latest first.
const LOOKED_AT_MAX: usize = 256;
/// Of those that have, the ones compared link by link, the nearest first.
const COMPARED_MAX: usize = 4;

/// A network that a schedule is kept for, as those see it who take part.
#[derive(Debug)]
pub(crate) struct Relative {
    pub(crate) topology: Topology,
    pub(crate) rank_map: Option<Vec<Slot>>,
    ids: HashSet<Box<str>>,
}

/// Those that were planned for since the planner was made.
#[derive(Debug)]
pub(crate) struct Relatives {
    recent: Mutex<Recent<(TopologyHash, CollectiveKind), Arc<Relative>>>,
}

impl Relatives {
    pub(crate) fn new() -> Self {
        Self { recent: Mutex::new(Recent::new(BYTES_MAX)) }
    }

    /// Remembers a network with a schedule for a collective. O(nodes + links).
    pub(crate) fn note(&self, topology: &Topology, rank_map: Option<&[Slot]>, kind: CollectiveKind) {
        let key = (identity_hash(topology), kind);
        let mut recent = self.recent.lock();
        if recent.get(&key).is_some() {
            return;
        }
        let ids: HashSet<Box<str>> = topology.nodes().iter().map(|node| node.id.as_str().into()).collect();
        let names: usize = ids.iter().map(|id| 2 * id.len()).sum();
        // A node with its name is some 300 bytes, a link 48.
        let bytes = 512 + names + 300 * topology.nodes().len() + 48 * topology.links().len();
        let relative = Relative { topology: topology.clone(), rank_map: rank_map.map(<[Slot]>::to_vec), ids };
        recent.keep(key, Arc::new(relative), bytes as u64);
    }

    /// The network with fewest parts that this one lacks, of those that have all of its parts, and more or wider ones.
    ///
    /// * **Cost.** O(nodes + links · log links) for each of the few that are compared, less for the others.
    pub(crate) fn of(&self, topology: &Topology, kind: CollectiveKind) -> Option<Arc<Relative>> {
        let has_all = |relative: &Relative| topology.nodes().iter().all(|node| relative.ids.contains(node.id.as_str()));
        let mut found: Vec<Arc<Relative>> = {
            let recent = self.recent.lock();
            let latest = recent.latest().filter(|((_, known), _)| *known == kind).take(LOOKED_AT_MAX);
            latest.map(|(_, relative)| Arc::clone(relative)).collect()
        };
        found.retain(|relative| has_all(relative));
        found.sort_by_key(|relative| (relative.topology.nodes().len(), relative.topology.links().len()));
        let mut near = found.into_iter().take(COMPARED_MAX);
        near.find(|relative| relative.topology != *topology && is_remainder(&relative.topology, topology))
    }
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Fault, TopologyLimits, generate};

    use super::*;

    fn network(expression: &str) -> Topology {
        generate(expression, &TopologyLimits::STANDARD).unwrap()
    }

    #[test]
    fn the_nearest_network_that_has_all_parts_is_found() {
        use CollectiveKind::{Allgather, Allreduce};
        let (whole, relatives) = (network("torus:3x4"), Relatives::new());
        let down = |id: &str| Fault::Node { id: id.to_owned() };
        let nearer = whole.punctured(&[down("23")]).unwrap();
        let left = whole.punctured(&[down("23"), down("00")]).unwrap();
        assert!(relatives.of(&left, Allgather).is_none());
        for known in [&whole, &nearer, &network("torus:2x3")] {
            relatives.note(known, None, Allgather);
        }
        assert_eq!(relatives.of(&left, Allgather).unwrap().topology, nearer);
        assert!(relatives.of(&left, Allreduce).is_none());
        assert_eq!(relatives.of(&nearer, Allgather).unwrap().topology, whole);
        assert!(relatives.of(&whole, Allgather).is_none(), "it lacks nothing");
        // The same names, but wider links: not what is left of it.
        assert!(relatives.of(&network("torus:3x4,bw=900GB/s"), Allgather).is_none());
    }
}
