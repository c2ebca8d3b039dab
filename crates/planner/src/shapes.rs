//! Shapes of networks: their canonical forms, cached.

use std::sync::Arc;

use canopy_canonical::families::{Boxed, with_boxes};
use canopy_canonical::{Budget, Normal, Stopped, WORK_SERVED, analyse, form_hash, graph_of, normalised};
use canopy_synth::{Never, Stop};
use canopy_topology::{Topology, TopologyHash, TopologyLimits, content_hash};
use parking_lot::Mutex;

use crate::key::{RolesKey, TopologyKey};
use crate::recent::Recent;

/// Bytes of cached hashes: some hundred thousand networks.
const HASHES_BYTES_MAX: u64 = 32 << 20;
/// Rough size of one of them.
const HASH_BYTES: u64 = 160;
/// Bytes of cached networks in canonical order.
const NORMALS_BYTES_MAX: u64 = 64 << 20;

/// Whether a canonical form is looked for: of more nodes it takes more work than is given, whatever they are.
fn is_searched(topology: &Topology) -> bool {
    topology.nodes().len() <= TopologyLimits::SEARCHED.nodes_max
}

/// Finds canonical forms, each once.
///
/// What is remembered is under hashes of everything that it depends on, so it never has to be forgotten for being wrong.
#[derive(Debug)]
pub(crate) struct Shapes {
    /// By content: the canonical hash, or none where the budget does not suffice for one.
    hashes: Mutex<Recent<TopologyHash, Option<TopologyHash>>>,
    /// By content, boxes and roles.
    normals: Mutex<Recent<RolesKey, Option<Arc<Normal>>>>,
    /// By content, of networks without boxes: the same with those of their family.
    boxed: Mutex<Recent<TopologyHash, Option<Arc<Boxed>>>>,
}

impl Shapes {
    pub(crate) fn new() -> Self {
        Self {
            hashes: Mutex::new(Recent::new(HASHES_BYTES_MAX)),
            normals: Mutex::new(Recent::new(NORMALS_BYTES_MAX)),
            boxed: Mutex::new(Recent::new(NORMALS_BYTES_MAX)),
        }
    }

    /// What a topology is known by: the hash of its canonical form, or of its content where the form takes too much work.
    ///
    /// * **Errors.** Stopped. **Cost.** O(nodes + links) for a network that is remembered, else that of [`analyse`].
    pub(crate) fn key_of(&self, topology: &Topology, stop: &dyn Stop) -> Result<TopologyKey, Stopped> {
        let content = content_hash(topology);
        if !is_searched(topology) {
            return Ok(TopologyKey::known(topology, content, None));
        }
        let remembered = self.hashes.lock().get(&content);
        let canonical = match remembered {
            Some(canonical) => canonical,
            None => {
                // Without boxes to tell apart, the network in canonical order has the same hash, and will be needed.
                let canonical = match has_boxes(topology) {
                    true => canonical_hash(topology, stop)?,
                    false => self.normal_of(topology, &[], stop)?.map(|normal| normal.hash),
                };
                self.hashes.lock().keep(content, canonical, HASH_BYTES);
                canonical
            }
        };
        Ok(TopologyKey::known(topology, content, canonical))
    }

    /// The topology in canonical order; none where that takes too much work to find.
    ///
    /// * **In.** `roles`: as for [`graph_of`]. **Errors.** Stopped. **Cost.** As [`Shapes::key_of`].
    pub(crate) fn normal_of(
        &self,
        topology: &Topology,
        roles: &[u32],
        stop: &dyn Stop,
    ) -> Result<Option<Arc<Normal>>, Stopped> {
        if !is_searched(topology) {
            return Ok(None);
        }
        let key = RolesKey::of(topology, roles);
        if let Some(normal) = self.normals.lock().get(&key) {
            return Ok(normal);
        }
        let normal = normalised(topology, roles, budget(&|| stop.is_requested()))?.map(Arc::new);
        self.normals.lock().keep(key, normal.clone(), weight(topology));
        Ok(normal)
    }

    /// A network without boxes with those of its family, if it is recognised as a member of one: a hint for what searches,
    /// which sees the same nodes and links. What judges a plan does not get to see it.
    ///
    /// * **Errors.** Stopped. **Cost.** O(nodes + links) for a network that is remembered, else that of [`with_boxes`].
    pub(crate) fn boxed(&self, topology: &Topology, stop: &dyn Stop) -> Result<Option<Arc<Boxed>>, Stopped> {
        if has_boxes(topology) || !is_searched(topology) {
            return Ok(None);
        }
        let key = content_hash(topology);
        if let Some(boxed) = self.boxed.lock().get(&key) {
            return Ok(boxed);
        }
        let boxed = with_boxes(topology, budget(&|| stop.is_requested()))?.map(Arc::new);
        self.boxed.lock().keep(key, boxed.clone(), boxed.as_ref().map_or(HASH_BYTES, |_| weight(topology)));
        Ok(boxed)
    }
}

impl TopologyKey {
    /// Finds the canonical form of a topology, or hashes it as it stands where that takes too much work: a quarter of a second.
    pub fn of(topology: &Topology) -> Self {
        let canonical = is_searched(topology).then(|| canonical_hash(topology, &Never));
        let canonical = canonical.and_then(|found| found.expect("it is never asked to stop"));
        Self::known(topology, content_hash(topology), canonical)
    }
}

fn has_boxes(topology: &Topology) -> bool {
    topology.nodes().iter().any(|node| node.attributes.box_name.is_some())
}

/// Bytes that a topology takes in memory, roughly. Names of nodes are short; a node has about as much on the heap as in itself.
fn weight(topology: &Topology) -> u64 {
    (256 + 200 * topology.nodes().len() + 48 * topology.links().len()) as u64
}

/// Hash of the canonical form; none where the budget does not suffice to find it.
fn canonical_hash(topology: &Topology, stop: &dyn Stop) -> Result<Option<TopologyHash>, Stopped> {
    let Some(graph) = graph_of(topology, &[]) else { return Ok(None) };
    let analysis = analyse(&graph, budget(&|| stop.is_requested()))?;
    Ok(analysis.solution().map(|solution| form_hash(&solution.form(&graph))))
}

const fn budget(stop: &dyn Fn() -> bool) -> Budget<'_> {
    Budget { work_max: WORK_SERVED, stop }
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;
    use crate::key::HashKind;

    #[test]
    fn a_network_has_the_same_key_each_time_and_whatever_it_is_called() {
        let shapes = Shapes::new();
        let topology = generate("torus:3x4", &TopologyLimits::STANDARD).unwrap();
        let key = shapes.key_of(&topology, &Never).unwrap();
        assert_eq!(key.shape_kind, HashKind::Canonical);
        assert_eq!(shapes.key_of(&topology, &Never).unwrap(), key);
        let turned = generate("torus:4x3", &TopologyLimits::STANDARD).unwrap();
        let other = shapes.key_of(&turned, &Never).unwrap();
        assert_eq!((other.shape, other.shape_kind), (key.shape, key.shape_kind));
        assert_ne!(other.identity, key.identity);
    }

    #[test]
    fn a_network_in_canonical_order_is_found_once() {
        let shapes = Shapes::new();
        let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
        let normal = shapes.normal_of(&topology, &[], &Never).unwrap().unwrap();
        assert!(Arc::ptr_eq(&normal, &shapes.normal_of(&topology, &[], &Never).unwrap().unwrap()));
        let rooted = shapes.normal_of(&topology, &[0, 0, 1], &Never).unwrap().unwrap();
        assert_ne!(normal.hash, rooted.hash);
    }

    #[test]
    fn who_is_asked_to_stop_remembers_nothing() {
        struct Now;
        impl Stop for Now {
            fn is_requested(&self) -> bool {
                true
            }
        }
        let shapes = Shapes::new();
        let topology = generate("torus:3x3", &TopologyLimits::STANDARD).unwrap();
        assert_eq!(shapes.key_of(&topology, &Now), Err(Stopped));
        assert_eq!(shapes.normal_of(&topology, &[], &Now), Err(Stopped));
        assert_eq!(shapes.key_of(&topology, &Never).unwrap().shape_kind, HashKind::Canonical);
    }
}
