//! Plans of generated networks, and their messages.

use canopy_schedule::{Collective, CollectiveKind, TransferGraph, check, compile};
use canopy_simulate::{Message, Pieces, Sharing, SimulateOptions, Sync, messages};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Latency, Topology, TopologyLimits, generate};

/// Networks with and without switches, with several routes between two ranks, and with links of unequal rates.
pub(crate) const NETWORKS: [&str; 5] = ["ring:8", "torus:3x3", "dgx-a100:boxes=2", "hypercube:3", "mi250:boxes=2"];

pub(crate) fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// A plan by forest and its messages at a size, in pieces of at most 64 KiB.
pub(crate) fn plan(topology: &Topology, kind: CollectiveKind, size_bytes: u64) -> (TransferGraph, Vec<Message>) {
    let root = kind.has_root().then(|| canopy_topology::Rank::new(1));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let algorithm = match kind {
        CollectiveKind::AllToAll => Algorithm::Direct,
        CollectiveKind::Gather | CollectiveKind::Scatter => Algorithm::Flow,
        _ => Algorithm::Forest,
    };
    let schedule = synthesize(topology, &SynthesisRequest::new(collective, algorithm), &Never, &Silent).unwrap();
    let graph = compile(topology, &schedule).unwrap();
    check(topology, &graph).unwrap();
    let options = SimulateOptions {
        alpha: Latency::default(),
        pieces: Pieces::AtMost { bytes: 64 << 10 },
        sharing: Sharing::Fair,
        sync: Sync::Deps,
        ..SimulateOptions::usual(size_bytes, 10_000_000)
    };
    let messages = messages(topology, &graph, &options).unwrap();
    (graph, messages)
}

/// Bytes that messages put on each link.
pub(crate) fn bytes_by_link(topology: &Topology, graph: &TransferGraph, messages: &[Message]) -> Vec<u64> {
    let mut bytes = vec![0; topology.links().len()];
    for message in messages {
        for link in graph.routes.get(message.route).unwrap() {
            bytes[link.index()] += message.bytes;
        }
    }
    bytes
}
