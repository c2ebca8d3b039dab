//! Healthy networks of leases, faults and requests, read once and cached in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use canopy_planner::{PlanError, PlanKey};
use canopy_topology::{DocumentFormat, NodeIndex, Topology, TopologyLimits, identity_hash, read_document};
use parking_lot::Mutex;

use super::placed::Devices;
use crate::failure::CallFailure;
use crate::store::topologies::{Purpose, TopologyStore, id_of};

/// Most links of the networks that are kept at hand, all together; the one that was read first goes first.
const LINKS_MAX: usize = 4_000_000;
/// The same of networks that requests are for and that nobody has stored.
const SEEN_LINKS_MAX: usize = 1_000_000;

/// Most texts whose networks are remembered.
const TEXTS_MAX: usize = 1024;

/// A sound network, and what its nodes are called.
#[derive(Debug)]
pub(crate) struct Base {
    topology: Topology,
    nodes: HashMap<String, NodeIndex>,
    /// Which devices its ranks are by its own word, once somebody has asked.
    devices: OnceLock<Option<Arc<Devices>>>,
}

impl Base {
    pub(crate) fn new(topology: Topology) -> Self {
        let named = topology.nodes().iter().zip(0..);
        let nodes = named.map(|(node, index)| (node.id.clone(), NodeIndex::new(index))).collect();
        Self { topology, nodes, devices: OnceLock::new() }
    }

    pub(crate) const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Which devices its ranks are, where it names their hosts.
    pub(super) fn devices(&self) -> Option<&Arc<Devices>> {
        self.devices.get_or_init(|| Devices::own(&self.topology)).as_ref()
    }

    /// The node of this id.
    pub(crate) fn node(&self, id: &str) -> Option<NodeIndex> {
        self.nodes.get(id).copied()
    }
}

/// Networks by the keys under which they are stored. Clones share them.
#[derive(Clone)]
pub(crate) struct Bases {
    topologies: TopologyStore,
    limits: TopologyLimits,
    at_hand: Arc<Mutex<AtHand>>,
}

#[derive(Default)]
struct AtHand {
    /// Those that are stored.
    stored: Networks,
    /// Those that a request was for. They may be stored or not.
    seen: Networks,
    /// By hashes of texts: which networks they are.
    texts: HashMap<[u8; 32], PlanKey>,
}

/// Networks in memory, of which the first to come is the first to go.
#[derive(Default)]
struct Networks {
    bases: HashMap<PlanKey, Arc<Base>>,
    arrivals: VecDeque<PlanKey>,
    links: usize,
}

impl Networks {
    fn get(&self, key: &PlanKey) -> Option<Arc<Base>> {
        self.bases.get(key).map(Arc::clone)
    }

    fn keep(&mut self, key: PlanKey, base: &Arc<Base>, links_max: usize) {
        if self.bases.insert(key, Arc::clone(base)).is_none() {
            self.arrivals.push_back(key);
            self.links += base.topology.links().len();
        }
        while self.links > links_max && self.arrivals.len() > 1 {
            let Some(first) = self.arrivals.pop_front() else { break };
            if let Some(gone) = self.bases.remove(&first) {
                self.links -= gone.topology.links().len();
            }
        }
    }
}

impl Bases {
    pub(crate) fn new(topologies: TopologyStore, limits: TopologyLimits) -> Self {
        Self { topologies, limits, at_hand: Arc::default() }
    }

    /// What a network may be like.
    pub(crate) const fn limits(&self) -> &TopologyLimits {
        &self.limits
    }

    /// Stores a network for good, and has it at hand.
    pub(crate) fn put(&self, topology: Topology) -> Result<(PlanKey, Arc<Base>), CallFailure> {
        let key = self.topologies.put_for(&topology, Purpose::Held)?.0.key();
        let known = self.at_hand.lock().stored.get(&key);
        Ok((key, known.unwrap_or_else(|| self.keep(key, topology))))
    }

    /// Has a network in memory without storing it: a request for a plan leaves nothing behind.
    pub(crate) fn see(&self, topology: Topology) -> (PlanKey, Arc<Base>) {
        let key = PlanKey::from_bytes(*identity_hash(&topology).as_bytes());
        let mut at_hand = self.at_hand.lock();
        let known = at_hand.stored.get(&key).or_else(|| at_hand.seen.get(&key));
        let base = known.unwrap_or_else(|| {
            let base = Arc::new(Base::new(topology));
            at_hand.seen.keep(key, &base, SEEN_LINKS_MAX);
            base
        });
        (key, base)
    }

    /// The network of this id; `None` as for [`Bases::get`].
    pub(crate) fn named(&self, id: &str) -> Result<Option<(PlanKey, Arc<Base>)>, CallFailure> {
        let known = self
            .at_hand
            .lock()
            .stored
            .bases
            .iter()
            .find(|(key, _)| id_of(key) == id)
            .map(|(key, base)| (*key, Arc::clone(base)));
        if let Some((key, base)) = known {
            // It may have left the disk, which what is on it would not survive.
            return Ok(self.topologies.touch(&key)?.then_some((key, base)));
        }
        let Some(kept) = self.topologies.get(id)? else { return Ok(None) };
        let key = kept.entry.key();
        Ok(self.get(&key)?.map(|base| (key, base)))
    }

    /// The stored network of a text with this hash, if it is at hand.
    pub(crate) fn known(&self, text: &[u8; 32]) -> Option<(PlanKey, Arc<Base>)> {
        let at_hand = self.at_hand.lock();
        let key = at_hand.texts.get(text)?;
        let known = at_hand.stored.get(key).map(|base| (*key, base));
        drop(at_hand);
        // One that has left the disk is put there again by whoever reads the text.
        known.filter(|(key, _)| self.topologies.touch(key).unwrap_or(false))
    }

    /// The network of a text with this hash, stored or not, if it is in memory.
    pub(crate) fn seen(&self, text: &[u8; 32]) -> Option<(PlanKey, Arc<Base>)> {
        let at_hand = self.at_hand.lock();
        let key = at_hand.texts.get(text)?;
        at_hand.stored.get(key).or_else(|| at_hand.seen.get(key)).map(|base| (*key, base))
    }

    /// Remembers which network a text of this hash is.
    pub(crate) fn learn(&self, text: [u8; 32], key: PlanKey) {
        let mut at_hand = self.at_hand.lock();
        if at_hand.texts.len() >= TEXTS_MAX {
            at_hand.texts.clear();
        }
        at_hand.texts.insert(text, key);
    }

    /// The network under this key; `None` if nobody has stored it, or it was deleted.
    pub(crate) fn get(&self, key: &PlanKey) -> Result<Option<Arc<Base>>, CallFailure> {
        if let Some(known) = self.at_hand.lock().stored.get(key) {
            return Ok(Some(known));
        }
        let Some(kept) = self.topologies.get(&id_of(key))? else { return Ok(None) };
        let read = read_document(&kept.document, Some(DocumentFormat::Json), &self.limits);
        let read = read.map_err(|error| CallFailure::Plan(PlanError::Document(error.into()).into()))?;
        Ok(Some(self.keep(*key, read.topology)))
    }

    fn keep(&self, key: PlanKey, topology: Topology) -> Arc<Base> {
        let base = Arc::new(Base::new(topology));
        self.at_hand.lock().stored.keep(key, &base, LINKS_MAX);
        base
    }
}
