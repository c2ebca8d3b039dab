//! Ways over links between pairs of ranks, each once.

use std::collections::BTreeMap;

use canopy_schedule::Flow;
use canopy_topology::Topology;

use super::LayersError;

/// By way, its layer and its links instead of those it had.
pub(super) type Detours = BTreeMap<usize, (u32, Vec<u32>)>;

/// Ways of all pairs, by source, then by destination.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// Source, destination, chunks.
    heads: Vec<(u32, u32, u64)>,
    links: Vec<u32>,
    /// Where the links of each way end.
    ends: Vec<usize>,
}

impl Ways {
    /// The paths of a flow as ways: without round trips, and those of a pair over the same links as one.
    ///
    /// O(links of all paths), and for each pair the square of its number of ways.
    pub(super) fn of(topology: &Topology, flow: &Flow) -> Result<Self, LayersError> {
        let mut ways = Self::default();
        let mut walk = Walk::new(topology);
        let mut pair_start = 0;
        for path in &flow.paths {
            let (source, destination) = (path.source.number(), path.destination.number());
            walk.begin(source);
            for &hop in flow.hops_of(path) {
                let links = flow.routes.get(hop).ok_or(LayersError::Malformed)?;
                links.iter().try_for_each(|&link| walk.go(link.number()).ok_or(LayersError::Malformed))?;
            }
            if walk.at != destination || walk.links.is_empty() {
                return Err(LayersError::Malformed);
            }
            if ways.heads.get(pair_start).is_none_or(|&(from, to, _)| (from, to) != (source, destination)) {
                pair_start = ways.len();
            }
            ways.add(pair_start, (source, destination), path.chunk_count, &walk.links);
        }
        Ok(ways)
    }

    /// Adds chunks to the way of a pair over these links, whose ways begin at `pair_start` and are the last ones.
    fn add(&mut self, pair_start: usize, (source, destination): (u32, u32), chunks: u64, links: &[u32]) {
        match (pair_start..self.len()).find(|&way| self.links(way) == links) {
            Some(way) => self.heads[way].2 += chunks,
            None => {
                self.heads.push((source, destination, chunks));
                self.links.extend_from_slice(links);
                self.ends.push(self.links.len());
            }
        }
    }

    /// These ways, and for some of them another one that takes its chunks.
    ///
    /// The layer of each way goes with it; ways of a pair over the same links and in the same layer become one.
    pub(super) fn with_detours(&self, layers: &[Option<u32>], mut detours: Detours) -> (Self, Vec<u32>) {
        let mut ways = Self::default();
        let mut new_layers: Vec<u32> = Vec::new();
        let mut pair_start = 0;
        for (way, &layer) in layers.iter().enumerate() {
            let (source, destination, chunks) = self.heads[way];
            if ways.heads.get(pair_start).is_none_or(|&(from, to, _)| (from, to) != (source, destination)) {
                pair_start = ways.len();
            }
            let (layer, links) = detours
                .remove(&way)
                .unwrap_or_else(|| (layer.expect("what was not placed has a detour"), self.links(way).to_vec()));
            ways.add(pair_start, (source, destination), chunks, &links);
            // Where it became part of another way, it has the layer of that.
            if new_layers.len() < ways.len() {
                new_layers.push(layer);
            }
        }
        (ways, new_layers)
    }

    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Source and destination.
    pub(super) fn ends(&self, way: usize) -> (u32, u32) {
        let (source, destination, _) = self.heads[way];
        (source, destination)
    }

    pub(super) fn chunks(&self, way: usize) -> u64 {
        self.heads[way].2
    }

    /// Numbers of its links, in order.
    pub(super) fn links(&self, way: usize) -> &[u32] {
        let start = way.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.links[start..self.ends[way]]
    }
}

/// A walk from node to node that forgets its round trips.
struct Walk<'a> {
    topology: &'a Topology,
    at: u32,
    links: Vec<u32>,
    /// By node: how many links of the walk lead there, if it is on the walk.
    reached: Vec<Option<usize>>,
    source: u32,
}

impl<'a> Walk<'a> {
    fn new(topology: &'a Topology) -> Self {
        Self { topology, at: 0, links: Vec::new(), reached: vec![None; topology.nodes().len()], source: 0 }
    }

    fn begin(&mut self, source: u32) {
        self.forget_from(0);
        (self.source, self.at) = (source, source);
    }

    /// Goes over a link; `None` if it does not start here.
    fn go(&mut self, link: u32) -> Option<()> {
        let ends = self.topology.links().get(link as usize)?;
        if ends.from.number() != self.at {
            return None;
        }
        self.at = ends.to.number();
        let again = if self.at == self.source { Some(0) } else { self.reached[self.at as usize] };
        match again {
            Some(length) => self.forget_from(length),
            None => {
                self.links.push(link);
                self.reached[self.at as usize] = Some(self.links.len());
            }
        }
        Some(())
    }

    /// Forgets all links but the first few.
    fn forget_from(&mut self, length: usize) {
        for link in self.links.drain(length..) {
            self.reached[self.topology.links()[link as usize].to.index()] = None;
        }
    }
}
