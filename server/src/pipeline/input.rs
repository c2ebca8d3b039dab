//! Reads the topology of an order.

use canopy_proto::v1;
use canopy_synth::Stop;
use canopy_topology::{
    Attributes, Capacity, DraftLink, DraftNode, Latency, NodeKind, ReadError, Topology, TopologyDraft, TopologyLimits,
    generate, read_document_until,
};

use crate::failure::{InlineError, PlanFailure};
use crate::order::TopologyInput;

/// The topology and what its reader wants to be known; [`PlanFailure::Stopped`] soon after `stop` is requested.
pub(crate) fn read_topology(
    input: &TopologyInput,
    limits: &TopologyLimits,
    stop: &dyn Stop,
) -> Result<(Topology, Vec<v1::Warning>), PlanFailure> {
    match input {
        TopologyInput::Expression(text) => {
            let topology = generate(text, limits).map_err(PlanFailure::Expression)?;
            Ok((topology, Vec::new()))
        }
        TopologyInput::Document { format, content } => {
            let imported = read_document_until(content, Some(*format), limits, &|| stop.is_requested());
            let imported = imported.map_err(|error| match error {
                ReadError::Stopped => PlanFailure::Stopped,
                error => PlanFailure::Document(error),
            })?;
            let warning = |text| v1::Warning { code: "TOPOLOGY_ASSUMED".to_owned(), text };
            Ok((imported.topology, imported.warnings.into_iter().map(warning).collect()))
        }
        TopologyInput::Inline(topology) => Ok((inline(topology, limits, stop)?, Vec::new())),
    }
}

/// Builds a topology from nodes and links; [`PlanFailure::Stopped`] soon after `stop` is requested.
fn inline(topology: &v1::Topology, limits: &TopologyLimits, stop: &dyn Stop) -> Result<Topology, PlanFailure> {
    // Before anything is copied for it.
    limits.check(topology.nodes.len(), topology.links.len()).map_err(InlineError::from)?;
    let mut draft =
        TopologyDraft { name: Some(topology.name.clone()).filter(|name| !name.is_empty()), ..TopologyDraft::default() };
    for (position, node) in topology.nodes.iter().enumerate() {
        draft.nodes.push(draft_node(position, node)?);
    }
    for (position, link) in topology.links.iter().enumerate() {
        if position.is_multiple_of(LINKS_BETWEEN_STOPS) && stop.is_requested() {
            return Err(PlanFailure::Stopped);
        }
        draft.links.push(DraftLink {
            from: link.from.clone(),
            to: link.to.clone(),
            capacity: Capacity::from_bytes_per_sec(link.bandwidth).ok_or(InlineError::NoBandwidth { position })?,
            latency: Latency::from_nanos(link.latency_ns),
            count: 1,
        });
    }
    let built = draft.build_until(limits, &|| stop.is_requested()).map_err(InlineError::from)?;
    built.ok_or(PlanFailure::Stopped)
}

/// Links that are copied between two questions whether to stop: less than a millisecond's worth.
const LINKS_BETWEEN_STOPS: usize = 4096;

fn draft_node(position: usize, node: &v1::Node) -> Result<DraftNode, InlineError> {
    let kind = match v1::NodeKind::try_from(node.kind) {
        Ok(v1::NodeKind::Switch) if node.forwards => return Err(InlineError::ForwardingSwitch { position }),
        Ok(v1::NodeKind::Switch) => NodeKind::Switch { multicast: node.multicast, aggregate: node.aggregate },
        Ok(v1::NodeKind::Compute) => {
            for (set, capability) in [(node.multicast, "multicast"), (node.aggregate, "aggregate")] {
                if set {
                    return Err(InlineError::CapableCompute { position, capability });
                }
            }
            if node.forwards { NodeKind::Forwarder } else { NodeKind::Compute }
        }
        Ok(v1::NodeKind::Unspecified) => return Err(InlineError::KindMissing { position }),
        Err(_) => return Err(InlineError::KindUnknown { position, number: node.kind }),
    };
    Ok(DraftNode { id: node.id.clone(), kind, rank: node.rank, attributes: Attributes::default() })
}
