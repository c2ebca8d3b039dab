//! Makes a route plan of a flow whose paths have layers.

use canopy_schedule::{ChunkLayout, CollectiveKind, Flow, Path, Schedule, Shape, Shares, SharesError};
use canopy_topology::{LinkIndex, NodeIndex, NodeKind, Rank, Rate, Topology};

use super::parse::LAYERS_MAX;
use super::program::{Node, Port, Program, QueuePair, RankProgram, Role};
use crate::oneccl::{RANKS_MAX, is_label};
use crate::proof::Stop;

/// How to lower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// Label of the plan: 1 to 63 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// Whether input and output share memory, which nothing can be promised for.
    pub in_place: bool,
    /// Smallest message in bytes, inclusive.
    pub bytes_min: u64,
    /// Largest message in bytes, inclusive.
    pub bytes_max: u64,
    /// What the flow reaches, in bytes per second, as its checker says.
    pub algbw: Rate,
}

/// Why a flow cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LowerError {
    #[error("a route plan cannot work in place: arriving chunks would overwrite unsent ones; plan it out of place")]
    InPlace,
    #[error("route plans cannot express blocks of unequal size; choose json")]
    Blocks,
    #[error("`{name}` is not a valid name for a route plan; use 1 to 63 letters, digits, `_`, `-` and `.`")]
    Name { name: String },
    #[error(
        "the route plan needs {need} {what}, over the limit of {limit}; plan for fewer ranks, or with fewer chunks"
    )]
    OverLimit { what: &'static str, need: u64, limit: u64 },
    #[error("no message is from {min} to {max} bytes; lower the first, and use at most 2⁶³−1 bytes")]
    Sizes { min: u64, max: u64 },
    #[error("the chunks of its shares cannot be counted")]
    Shares(#[from] SharesError),
    #[error("path {path} of the flow {what}; check the plan first")]
    Malformed { path: usize, what: &'static str },
    #[error("the shape {shape} has no paths; check the plan first")]
    NotAFlow { shape: &'static str },
    #[error("stopped as requested; ask again for the routes")]
    Stopped,
}

/// Paths between two questions whether to stop.
const PATHS_PER_LOOK: usize = 1 << 12;

/// Lowers a checked flow.
///
/// * `layers`: of each path the layer that it is in.
///
/// Ports are links that leave a node, by the index of the node at the other end, then by latency: link for link the
/// order of the topology. Queue pairs of a rank are numbered by destination, then in the order of the flow's paths.
///
/// * **Errors.** An option that is unusable, more than a file can say, or `stop`, asked every few thousand paths, returned
///   true. A flow that [`check_flow`](canopy_schedule::check_flow) refuses may be refused here too, or give a program that
///   [`prove`](super::prove()) refuses.
/// * **Cost.** O(links of all paths).
pub fn lower(
    topology: &Topology,
    schedule: &Schedule,
    layers: &[u32],
    options: &LowerOptions,
    stop: Stop<'_>,
) -> Result<Program, LowerError> {
    let Shape::Flow(flow) = &schedule.shape else {
        return Err(LowerError::NotAFlow { shape: schedule.shape.name() });
    };
    check_options(topology, options)?;
    if matches!(schedule.shares, Shares::Blocks(_)) {
        return Err(LowerError::Blocks);
    }
    let layout = ChunkLayout::new(schedule.collective, topology.rank_count(), flow.chunks_per_share, &schedule.shares)?;
    let layer_count = layers.iter().max().map_or(1, |layer| u64::from(*layer) + 1);
    let same_pair =
        |first: &Path, second: &Path| (first.source, first.destination) == (second.source, second.destination);
    let routes_max = flow.paths.chunk_by(same_pair).map(<[Path]>::len).max().unwrap_or(0);
    let mut program = Program {
        name: options.name.clone(),
        collective: schedule.collective,
        rank_count: topology.rank_count(),
        block_chunks: narrow("chunks of a block", flow.chunks_per_share)?,
        layer_count: within("layers", layer_count, LAYERS_MAX)?,
        routes_max: narrow("routes to a rank", routes_max as u64)?,
        algbw: options.algbw.clone(),
        bytes_min: options.bytes_min,
        bytes_max: options.bytes_max,
        nodes: nodes(topology),
        ranks: Vec::new(),
    };
    for rank in topology.ranks() {
        let (input, output) = chunks_of(&layout, schedule.collective.kind(), schedule.collective.root(), rank);
        program.ranks.push(RankProgram {
            rank: rank.number(),
            input_chunks: narrow("chunks of a buffer", input)?,
            output_chunks: narrow("chunks of a buffer", output)?,
            queue_pairs: Vec::new(),
            ports: Vec::new(),
        });
    }
    let lowering = Lowering { topology, flow, kind: schedule.collective.kind(), layout };
    let mut pair_first = 0_u64;
    for (index, path) in flow.paths.iter().enumerate() {
        if index.is_multiple_of(PATHS_PER_LOOK) && stop() {
            return Err(LowerError::Stopped);
        }
        let malformed = |what| LowerError::Malformed { path: index, what };
        let layer = *layers.get(index).ok_or(malformed("has no layer"))?;
        if index == 0 || !same_pair(&flow.paths[index - 1], path) {
            pair_first = 0;
        }
        let rank = program.ranks.get_mut(path.source.index()).ok_or(malformed("does not start at a rank"))?;
        rank.add(&lowering, path, layer, pair_first, malformed)?;
        pair_first = pair_first.checked_add(path.chunk_count).ok_or(malformed("has too many chunks"))?;
    }
    Ok(program)
}

fn check_options(topology: &Topology, options: &LowerOptions) -> Result<(), LowerError> {
    let LowerOptions { name, in_place, bytes_min: min, bytes_max: max, .. } = options;
    if *in_place {
        return Err(LowerError::InPlace);
    }
    if !is_label(name) {
        return Err(LowerError::Name { name: name.clone() });
    }
    if min > max || i64::try_from(*max).is_err() {
        return Err(LowerError::Sizes { min: *min, max: *max });
    }
    within("ranks", topology.rank_count().into(), RANKS_MAX).map(drop)
}

struct Lowering<'a> {
    topology: &'a Topology,
    flow: &'a Flow,
    kind: CollectiveKind,
    layout: ChunkLayout,
}

impl RankProgram {
    /// Adds the queue pair of a path, whose chunks begin so far into what its source has for its destination.
    fn add(
        &mut self,
        of: &Lowering<'_>,
        path: &Path,
        layer: u32,
        pair_first: u64,
        malformed: impl Fn(&'static str) -> LowerError,
    ) -> Result<(), LowerError> {
        let (source, destination) = (path.source, path.destination);
        if destination.number() >= of.topology.rank_count() {
            return Err(malformed("does not end at a rank"));
        }
        let start = narrow("ports of a rank's routes", self.ports.len() as u64)?;
        for &hop in of.flow.hops_of(path) {
            for &link in of.flow.routes.get(hop).ok_or(malformed("has a hop over no route"))? {
                self.ports.push(port(of.topology, link).ok_or(malformed("passes a link that does not exist"))?);
            }
        }
        let end = narrow("ports of a rank's routes", self.ports.len() as u64)?;
        let (input, output) = match of.kind {
            CollectiveKind::Gather => (0, of.layout.chunks_of(source).start),
            CollectiveKind::Scatter => (of.layout.chunks_of(destination).start, 0),
            _ => {
                let first = of.layout.chunks_between(source, destination).start - of.layout.chunks_of(source).start;
                (first, u64::from(source.number()) * of.flow.chunks_per_share)
            }
        };
        self.queue_pairs.push(QueuePair {
            id: narrow("queue pairs of a rank", self.queue_pairs.len() as u64)?,
            destination: destination.number(),
            layer,
            ports: start..end,
            input_first: narrow("chunks of a buffer", input.saturating_add(pair_first))?,
            output_first: narrow("chunks of a buffer", output.saturating_add(pair_first))?,
            chunk_count: narrow("chunks of a queue pair", path.chunk_count)?,
        });
        Ok(())
    }
}

/// Which of the links that leave its node a link is.
fn port(topology: &Topology, link: LinkIndex) -> Option<u32> {
    let from = topology.links().get(link.index())?.from;
    let first = topology.links_from(from).next()?;
    link.number().checked_sub(first.number())
}

/// Chunks of a rank's input and output.
fn chunks_of(layout: &ChunkLayout, kind: CollectiveKind, root: Option<Rank>, rank: Rank) -> (u64, u64) {
    let share = layout.chunks_of(rank);
    let share = share.end - share.start;
    let of_root = if root == Some(rank) { layout.total() } else { 0 };
    match kind {
        CollectiveKind::Gather => (share, of_root),
        CollectiveKind::Scatter => (of_root, share),
        _ => (share, share),
    }
}

/// All nodes with their ports, by index.
fn nodes(topology: &Topology) -> Vec<Node> {
    let of_node = |(id, node): (u32, &canopy_topology::Node)| {
        let mut ports: Vec<Port> = Vec::new();
        for (port, link) in (0..).zip(topology.links_from(NodeIndex::new(id))) {
            let link = topology.link(link);
            let to = link.to.number();
            let parallel = ports.last().filter(|last| last.to == to).map_or(0, |last| last.parallel + 1);
            ports.push(Port { id: port, to, parallel, rate: link.capacity.bytes_per_sec() });
        }
        let role = match node.kind {
            NodeKind::Compute => Role::Rank,
            NodeKind::Forwarder => Role::Forwarder,
            NodeKind::Switch { .. } => Role::Switch,
        };
        Node { id, name: node.id.clone(), role, ports }
    };
    (0..).zip(topology.nodes().iter().map(AsRef::as_ref)).map(of_node).collect()
}

fn narrow(what: &'static str, need: u64) -> Result<u32, LowerError> {
    within(what, need, u32::MAX)
}

fn within(what: &'static str, need: u64, limit: u32) -> Result<u32, LowerError> {
    let fits = u32::try_from(need).ok().filter(|need| *need <= limit);
    fits.ok_or(LowerError::OverLimit { what, need, limit: limit.into() })
}
