//! Where the networks of calls come from: expressions, texts, stored topologies and parts of clusters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use canopy_planner::PlanKey;
use canopy_proto::v1;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{DocumentFormat, TopologySource};
use canopy_topology::{SiteRates, Topology, TopologyLimits};
use canopy_wire as wire;
use canopy_wire::topology_input;
use prost::Message as _;

use crate::clock;
use crate::failure::{CallFailure, PlanFailure};
use crate::reading::read_deeply;
use crate::replan::{Base, Bases};
use crate::rpc::shared::cluster_parts::ClusterParts;
use crate::store::Store;
use crate::store::clusters::ClusterStore;
use crate::store::topologies::{TopologyStore, TopologyStoreError};

/// Stored topologies and clusters, which sources name. Clones share them.
#[derive(Clone)]
pub(crate) struct StoredNetworks {
    pub(crate) topologies: TopologyStore,
    pub(crate) clusters: ClusterParts,
    /// What the site states of network families.
    pub(crate) rates: Arc<SiteRates>,
}

impl StoredNetworks {
    /// Learns what other servers have changed.
    pub(crate) fn follow(&self) -> Result<(), TopologyStoreError> {
        self.clusters.follow();
        self.topologies.follow()
    }

    /// Those topologies, the clusters of a space of the store, and what the site states.
    pub(crate) fn new(topologies: &TopologyStore, clusters: Arc<dyn Store>, rates: &SiteRates) -> Self {
        let clusters = ClusterParts::new(ClusterStore::new(clusters, clock::unix_ms));
        Self { topologies: topologies.clone(), clusters, rates: Arc::new(rates.clone()) }
    }

    /// Completes the expression of a source with what the site states of its family.
    pub(in crate::rpc) fn complete(&self, source: &mut Option<TopologySource>) {
        if let Some(Source::Expression(text)) = healthy(source)
            && let Some(completed) = self.rates.apply(text)
        {
            *text = completed;
        }
    }
}

/// The healthy network of a source: its base, where it is punctured. How deep they are nested does not matter, as none but
/// the first base is read.
fn healthy(source: &mut Option<TopologySource>) -> Option<&mut Source> {
    match source.as_mut()?.source.as_mut()? {
        Source::Punctured(punctured) => punctured.base.as_mut()?.source.as_mut(),
        source => Some(source),
    }
}

/// Whether nobody waits any more.
pub(in crate::rpc) type Gone<'a> = &'a (dyn Fn() -> bool + Sync);

/// A caller that waits. Dropping it, as a cancelled or late call does, ends the reading of its topology.
#[derive(Debug, Default)]
pub(in crate::rpc) struct Presence(Arc<AtomicBool>);

impl Presence {
    /// Whether nobody waits any more.
    pub(in crate::rpc) fn ended(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let gone = Arc::clone(&self.0);
        move || gone.load(Ordering::Relaxed)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A source that says all it means, whatever becomes of what is stored: [`resolve_parts`], then [`resolve_id`].
pub(in crate::rpc) fn resolve(
    networks: &StoredNetworks,
    source: Option<TopologySource>,
    limits: &TopologyLimits,
    gone: Gone<'_>,
) -> Result<Option<TopologySource>, CallFailure> {
    resolve_id(networks, resolve_parts(networks, source, limits, gone)?)
}

/// The same source with the text of a part of a cluster in place of its machines, and with the rates of the site in its
/// expression; also where it is a base. Faults that are known of its network can be looked up then.
pub(in crate::rpc) fn resolve_parts(
    networks: &StoredNetworks,
    mut source: Option<TopologySource>,
    limits: &TopologyLimits,
    gone: Gone<'_>,
) -> Result<Option<TopologySource>, CallFailure> {
    networks.complete(&mut source);
    if let Some(found) = healthy(&mut source)
        && let Source::Cluster(part) = found
    {
        *found = document(networks.clusters.part(part, limits, gone)?);
    }
    Ok(source)
}

/// The same source with the text of a stored topology in place of its id, also where it is a base.
pub(in crate::rpc) fn resolve_id(
    networks: &StoredNetworks,
    mut source: Option<TopologySource>,
) -> Result<Option<TopologySource>, CallFailure> {
    if let Some(found) = healthy(&mut source)
        && let Source::Name(id) = found
    {
        *found = document(networks.topologies.get(id)?.ok_or_else(|| unknown(id))?.document);
    }
    Ok(source)
}

/// Canopy's own JSON as a source.
fn document(content: Bytes) -> Source {
    Source::Document(v1::TopologyDocument { format: DocumentFormat::Json.into(), content })
}

/// Reads the sound network of leases or faults, whose parts of clusters are resolved, and has it stored: at hand, where it has been read before.
pub(in crate::rpc) fn read_base(
    bases: &Bases,
    source: Option<TopologySource>,
    limits: &TopologyLimits,
) -> Result<(PlanKey, Arc<Base>), CallFailure> {
    if let Some(id) = id_in(source.as_ref()) {
        return bases.named(id)?.ok_or_else(|| unknown(id));
    }
    let key = source.as_ref().map(text_hash);
    if let Some(known) = key.and_then(|key| bases.known(&key)) {
        return Ok(known);
    }
    let input = topology_input(source).map_err(PlanFailure::Request)?;
    let (topology, _) = read_deeply(&input, limits, &|| false)?;
    let found = bases.put(topology)?;
    key.iter().for_each(|key| bases.learn(*key, found.0));
    Ok(found)
}

/// Reads the healthy network of a request, and stores nothing: in memory, where it has been read before.
pub(in crate::rpc) fn see_base(
    bases: &Bases,
    source: Option<&TopologySource>,
    limits: &TopologyLimits,
) -> Result<(PlanKey, Arc<Base>), CallFailure> {
    if let Some(id) = id_in(source) {
        return bases.named(id)?.ok_or_else(|| unknown(id));
    }
    let text = source.map(text_hash);
    if let Some(known) = text.and_then(|text| bases.seen(&text)) {
        return Ok(known);
    }
    let input = topology_input(source.cloned()).map_err(PlanFailure::Request)?;
    let (topology, _) = read_deeply(&input, limits, &|| false)?;
    let found = bases.see(topology);
    text.iter().for_each(|text| bases.learn(*text, found.0));
    Ok(found)
}

/// The id that a source is.
fn id_in(source: Option<&TopologySource>) -> Option<&str> {
    match source?.source.as_ref()? {
        Source::Name(id) => Some(id),
        Source::Expression(_) | Source::Document(_) | Source::Inline(_) | Source::Punctured(_) | Source::Cluster(_) => {
            None
        }
    }
}

/// Tells the text of one source from another.
pub(in crate::rpc) fn text_hash(source: &TopologySource) -> [u8; 32] {
    *blake3::hash(&source.encode_to_vec()).as_bytes()
}

/// Reads a topology, wherever it comes from.
pub(in crate::rpc) fn read(
    networks: &StoredNetworks,
    source: Option<TopologySource>,
    limits: &TopologyLimits,
    gone: Gone<'_>,
) -> Result<(Topology, Vec<v1::Warning>), CallFailure> {
    let input = topology_input(resolve(networks, source, limits, gone)?).map_err(PlanFailure::Request)?;
    let (topology, warnings) = read_deeply(&input, limits, gone)?;
    Ok((topology, wire::warnings(&warnings)))
}

/// There is no topology of the name that the source of a request has.
fn unknown(name: &str) -> CallFailure {
    CallFailure::no_topology("topology.name", name)
}
