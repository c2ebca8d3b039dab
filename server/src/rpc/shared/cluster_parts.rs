//! Stored clusters as they are read, and networks of parts of them.
//!
//! A cluster is kept as its description was sent, and read when it is first used. A part that was composed lately is at hand
//! as the text of its network.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use canopy_import::{ClusterModel, Report};
use canopy_planner::PlanKey;
use canopy_proto::v1;
use canopy_topology::{
    HOST_FILE_BYTES_MAX, HostsError, Topology, TopologyLimits, expand_hosts, same_host, shorten, to_json,
};
use canopy_wire::{ClusterError, cluster_model};
use parking_lot::Mutex;
use prost::Message as _;

use crate::failure::ClusterFailure;
use crate::reading::on_a_deep_stack;
use crate::store::clusters::{ClusterName, ClusterStore, FOLDER, KeptCluster, PutCluster};

/// Most clusters that are at hand as they were read, and most bytes of the text of parts.
const MODELS_MAX: usize = 16;
const PARTS_BYTES_MAX: usize = 64 << 20;
/// Machines whose network is composed at once, so that no limit is met.
const MACHINES_AT_ONCE: usize = 64;

/// Stored clusters and their parts. Clones share them. Every call may block on the disk.
#[derive(Clone)]
pub(crate) struct ClusterParts {
    store: ClusterStore,
    at_hand: Arc<Mutex<AtHand>>,
}

/// Clusters and parts in memory, of which the first to come is the first to go.
#[derive(Default)]
struct AtHand {
    models: VecDeque<Model>,
    parts: HashMap<[u8; 32], Bytes>,
    arrivals: VecDeque<[u8; 32]>,
    bytes: usize,
}

/// A cluster as it was read.
#[derive(Clone)]
struct Model {
    key: PlanKey,
    /// Of its description.
    digest: Bytes,
    cluster: Arc<ClusterModel>,
}

impl ClusterParts {
    /// Learns what other servers have changed.
    pub(crate) fn follow(&self) {
        self.store.follow();
    }

    pub(crate) fn new(store: ClusterStore) -> Self {
        Self { store, at_hand: Arc::default() }
    }

    /// The clusters as they are kept.
    pub(in crate::rpc) const fn store(&self) -> &ClusterStore {
        &self.store
    }

    /// Keeps a cluster once every machine of it can be joined; returns once that survives a crash.
    pub(in crate::rpc) fn put(
        &self,
        name: &str,
        description: &v1::ClusterDescription,
        limits: &TopologyLimits,
        gone: &(dyn Fn() -> bool + Sync),
    ) -> Result<(PutCluster, Report), ClusterFailure> {
        let name = read_name(name)?;
        let model = on_a_deep_stack(|| cluster_model(description, limits, gone))?;
        let (counts, report) = model.check().map_err(ClusterFailure::Machines)?;
        let put = self.store.put(&name, counts, description.encode_to_vec().into())?;
        Ok((put, report))
    }

    /// The cluster of this name, with its description and the names of its machines.
    pub(in crate::rpc) fn get(
        &self,
        name: &str,
        limits: &TopologyLimits,
    ) -> Result<(KeptCluster, v1::ClusterDescription, Vec<String>), ClusterFailure> {
        let read = read_name(name)?;
        let cluster = self.store.get(&read)?.ok_or_else(|| unknown(name))?;
        let description = described(&cluster)?;
        let nodes = self.model(&read, limits, &|| false)?.cluster.nodes().map_err(ClusterFailure::Machines)?;
        Ok((cluster, description, nodes))
    }

    /// Removes the cluster of this name; returns the bytes of its record.
    pub(in crate::rpc) fn remove(&self, name: &str) -> Result<u64, ClusterFailure> {
        let read = read_name(name)?;
        let freed = self.store.remove(&read)?.ok_or_else(|| unknown(name))?;
        self.at_hand.lock().models.retain(|model| model.key != *read.key());
        Ok(freed)
    }

    /// The network among some machines of a cluster, in canopy's JSON; all of them if none is named.
    pub(crate) fn part(
        &self,
        wanted: &v1::ClusterNodes,
        limits: &TopologyLimits,
        gone: &(dyn Fn() -> bool + Sync),
    ) -> Result<Bytes, ClusterFailure> {
        let name = read_name(&wanted.cluster)?;
        let Model { digest, cluster, .. } = self.model(&name, limits, gone)?;
        let mut hasher = blake3::Hasher::new_derive_key("canopy part of a cluster 1");
        let part = *hasher.update(&digest).update(&wanted.encode_to_vec()).finalize().as_bytes();
        if let Some(text) = self.at_hand.lock().parts.get(&part) {
            return Ok(text.clone());
        }
        let nodes = match wanted.nodes.is_empty() {
            true => cluster.nodes().map_err(ClusterFailure::Part)?,
            false => expanded(&wanted.nodes).map_err(ClusterFailure::Hosts)?,
        };
        let composed = cluster.part(&nodes, limits, &|| gone()).map_err(ClusterFailure::Part)?;
        let unfit = |_| ClusterFailure::Name { name: shorten(&wanted.cluster) };
        let text = Bytes::from(to_json(&composed.in_cluster(name.inner()).map_err(unfit)?));
        self.at_hand.lock().keep(part, &text);
        Ok(text)
    }

    /// Networks of stored clusters with these machines, as far as they have them. What cannot be read is told of where it is used.
    pub(in crate::rpc) fn machines(
        &self,
        wanted: &BTreeSet<String>,
        limits: &TopologyLimits,
    ) -> Result<Vec<Topology>, ClusterFailure> {
        let mut names = Vec::new();
        self.store.for_each(|cluster| names.push(cluster.name))?;
        let mut found = Vec::new();
        for name in names {
            let Ok(Model { cluster, .. }) = read_name(&name).and_then(|name| self.model(&name, limits, &|| false))
            else {
                continue;
            };
            let Ok(nodes) = cluster.nodes() else { continue };
            let is_wanted = |node: &String| wanted.iter().any(|machine| same_host(machine, node));
            let (meant, others): (Vec<String>, Vec<String>) = nodes.into_iter().partition(is_wanted);
            for meant in meant.chunks(MACHINES_AT_ONCE) {
                // Two machines are a network, whatever each of them is.
                let joined: Vec<String> = meant.iter().chain(others.first()).cloned().collect();
                found.extend(cluster.part(&joined, limits, &|| false).ok());
            }
        }
        Ok(found)
    }

    /// The cluster as it was read, at hand or read again.
    fn model(
        &self,
        name: &ClusterName,
        limits: &TopologyLimits,
        gone: &(dyn Fn() -> bool + Sync),
    ) -> Result<Model, ClusterFailure> {
        let missing = || unknown(&format!("{FOLDER}{}", name.inner()));
        let known = self.store.summary(name)?.ok_or_else(missing)?;
        let is_it = |model: &&Model| model.key == *name.key() && model.digest == known.digest;
        if let Some(model) = self.at_hand.lock().models.iter().find(is_it) {
            return Ok(model.clone());
        }
        let kept = self.store.get(name)?.ok_or_else(missing)?;
        let description = described(&kept)?;
        let cluster = Arc::new(on_a_deep_stack(|| cluster_model(&description, limits, gone))?);
        let model = Model { key: *name.key(), digest: kept.digest, cluster };
        self.at_hand.lock().learn(model.clone());
        Ok(model)
    }
}

impl AtHand {
    fn learn(&mut self, model: Model) {
        self.models.retain(|known| known.key != model.key);
        if self.models.len() >= MODELS_MAX {
            self.models.pop_front();
        }
        self.models.push_back(model);
    }

    fn keep(&mut self, part: [u8; 32], text: &Bytes) {
        if self.parts.insert(part, text.clone()).is_none() {
            self.arrivals.push_back(part);
            self.bytes += text.len();
        }
        while self.bytes > PARTS_BYTES_MAX {
            let Some(first) = self.arrivals.pop_front() else { break };
            self.bytes -= self.parts.remove(&first).map_or(0, |text| text.len());
        }
    }
}

fn read_name(name: &str) -> Result<ClusterName, ClusterFailure> {
    ClusterName::read(name).ok_or_else(|| ClusterFailure::Name { name: shorten(name) })
}

fn unknown(name: &str) -> ClusterFailure {
    ClusterFailure::Unknown { name: shorten(name) }
}

fn described(kept: &KeptCluster) -> Result<v1::ClusterDescription, ClusterFailure> {
    v1::ClusterDescription::decode(kept.description.clone()).map_err(|error| {
        let (field, problem) = ("description".to_owned(), format!("{error}; store the cluster again"));
        ClusterFailure::Description(ClusterError { field, problem })
    })
}

/// Machines of several hostlists, each once.
pub(in crate::rpc) fn expanded(lists: &[String]) -> Result<Vec<String>, HostsError> {
    let bytes: usize = lists.iter().map(|list| list.len() + 1).sum();
    if bytes > HOST_FILE_BYTES_MAX {
        return Err(HostsError::TooMany);
    }
    expand_hosts(&lists.join(","))
}

#[cfg(test)]
mod tests;
