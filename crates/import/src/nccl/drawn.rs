//! The graph of a file as a machine.

use canopy_topology::{Attributes, Capacity, DraftLink, DraftNode, Latency, NodeKind, TopologyDraft, count};

use super::graph::{HostGraph, VertexKind};
use crate::machine::{Machine, Port};

impl From<HostGraph> for Machine {
    fn from(graph: HostGraph) -> Self {
        let HostGraph { vertices, links, ports, mut report } = graph;
        let of_kind = |kind| vertices.iter().filter(|vertex| vertex.kind == kind).count();
        let (gpus, cpus) = (count(of_kind(VertexKind::Gpu), "GPU"), count(of_kind(VertexKind::Cpu), "CPU"));
        report.understood.push(format!("{gpus}, {cpus} and {} of NICs", count(ports.len(), "port")));
        let id = |vertex: usize| vertices[vertex].id.clone();
        let links = links.iter().map(|link| DraftLink {
            from: id(link.from),
            to: id(link.to),
            capacity: Capacity::from_bytes_per_sec(link.bytes_per_sec).expect("links that carry nothing are not added"),
            latency: Latency::default(),
            count: 1,
        });
        let links = links.collect();
        let ports = ports.into_iter().map(|(nic, port)| Port { node: id(nic), ..port }).collect();
        let cpus = vertices.iter().filter(|vertex| vertex.kind == VertexKind::Cpu);
        let cpus = cpus.map(|cpu| cpu.id.clone()).collect();
        let nodes = vertices.into_iter().map(|vertex| DraftNode {
            id: vertex.id,
            kind: if vertex.kind == VertexKind::Gpu { NodeKind::Compute } else { NodeKind::PLAIN_SWITCH },
            rank: vertex.rank.and_then(|rank| u32::try_from(rank).ok()),
            attributes: Attributes { label: vertex.label, ..Attributes::default() },
        });
        let draft = TopologyDraft { nodes: nodes.collect(), links, ..TopologyDraft::default() };
        Self { draft, ports, cpus, report }
    }
}
