//! Converts requests between the wire and the planner's types.

use canopy_proto::v1;
use canopy_schedule::AllreduceForm;
use canopy_synth::RootPolicy;
use canopy_topology::{Attributes, Capacity, DraftLink, DraftNode, Latency, NodeKind, Slot, TopologyDraft};

use crate::refused::{InlineError, RequestError};

/// Converts a caller's nodes and links to a draft of a topology.
///
/// # Errors
/// A node has no kind or a capability that its kind cannot have, or a link has no bandwidth.
pub fn draft(topology: v1::Topology) -> Result<TopologyDraft, InlineError> {
    let nodes = topology.nodes.into_iter().enumerate().map(|(position, node)| draft_node(position, node));
    let links = topology.links.into_iter().enumerate().map(|(position, link)| {
        let capacity = Capacity::from_bytes_per_sec(link.bandwidth).ok_or(InlineError::NoBandwidth { position })?;
        let latency = Latency::from_nanos(link.latency_ns);
        Ok(DraftLink { from: link.from, to: link.to, capacity, latency, count: 1 })
    });
    Ok(TopologyDraft {
        name: Some(topology.display_name).filter(|name| !name.is_empty()),
        cluster: None,
        nodes: nodes.collect::<Result<_, _>>()?,
        links: links.collect::<Result<_, _>>()?,
    })
}

fn draft_node(position: usize, node: v1::Node) -> Result<DraftNode, InlineError> {
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
    Ok(DraftNode { id: node.id, kind, rank: node.rank, attributes: Attributes::default() })
}

/// What [`draft`] was given, but for the order of its fields.
pub fn draft_on_the_wire(draft: &TopologyDraft) -> v1::Topology {
    let node = |node: &DraftNode| {
        let (kind, multicast, aggregate) = match node.kind {
            NodeKind::Switch { multicast, aggregate } => (v1::NodeKind::Switch, multicast, aggregate),
            NodeKind::Compute | NodeKind::Forwarder => (v1::NodeKind::Compute, false, false),
        };
        let forwards = node.kind == NodeKind::Forwarder;
        v1::Node { id: node.id.clone(), kind: kind.into(), rank: node.rank, multicast, aggregate, forwards }
    };
    let link = |link: &DraftLink| v1::Link {
        from: link.from.clone(),
        to: link.to.clone(),
        bandwidth: link.capacity.bytes_per_sec(),
        latency_ns: link.latency.nanos(),
    };
    v1::Topology {
        display_name: draft.name.clone().unwrap_or_default(),
        nodes: draft.nodes.iter().map(node).collect(),
        links: draft.links.iter().map(link).collect(),
    }
}

/// Most ranks that a caller may place: a few bytes can stand for many ranks.
const SLOTS_MAX: u64 = 1 << 17;

/// The caller's slots, one for each rank.
pub fn slots(stated: &v1::Placement) -> Result<Vec<Slot>, RequestError> {
    let found = stated.slots.iter().map(|slot| u64::from(slot.count.unwrap_or(1))).sum();
    if found > SLOTS_MAX {
        return Err(RequestError::TooManySlots { found, limit: SLOTS_MAX });
    }
    let mut slots = Vec::new();
    for (position, v1::RankSlot { node, device, count }) in stated.slots.iter().enumerate() {
        let others = count.unwrap_or(1).checked_sub(1).ok_or(RequestError::SlotDevices { position })?;
        let last = device.checked_add(others).ok_or(RequestError::SlotDevices { position })?;
        slots.extend((*device..=last).map(|device| Slot { node: node.clone(), device }));
    }
    Ok(slots)
}

/// Slots on the wire; consecutive devices are joined.
pub fn slots_on_the_wire(slots: &[Slot]) -> v1::Placement {
    let mut joined: Vec<(v1::RankSlot, u32)> = Vec::new();
    for Slot { node, device } in slots {
        match joined.last_mut() {
            Some((last, count)) if last.node == *node && last.device.checked_add(*count) == Some(*device) => {
                *count += 1
            }
            _ => joined.push((v1::RankSlot { node: node.clone(), device: *device, count: None }, 1)),
        }
    }
    let counted = joined.into_iter().map(|(slot, count)| v1::RankSlot { count: Some(count), ..slot });
    v1::Placement { slots: counted.collect() }
}

/// The requested form of an allreduce, where unspecified is the planner's choice; `None` for an unknown number.
pub fn form(number: i32) -> Option<Option<AllreduceForm>> {
    match v1::AllreduceForm::try_from(number).ok()? {
        v1::AllreduceForm::Unspecified => Some(None),
        v1::AllreduceForm::TwoPhase => Some(Some(AllreduceForm::TwoPhases)),
        v1::AllreduceForm::Trees => Some(Some(AllreduceForm::Trees)),
    }
}

/// A form on the wire.
pub const fn form_on_the_wire(form: AllreduceForm) -> v1::AllreduceForm {
    match form {
        AllreduceForm::TwoPhases => v1::AllreduceForm::TwoPhase,
        AllreduceForm::Trees => v1::AllreduceForm::Trees,
    }
}

/// The requested root policy of an allreduce; `None` for an unknown number.
pub fn roots(number: i32) -> Option<RootPolicy> {
    match v1::RootPolicy::try_from(number).ok()? {
        v1::RootPolicy::Unspecified | v1::RootPolicy::Centre => Some(RootPolicy::Centre),
        v1::RootPolicy::Spread => Some(RootPolicy::Spread),
    }
}

/// A policy on the wire.
pub const fn roots_on_the_wire(roots: RootPolicy) -> v1::RootPolicy {
    match roots {
        RootPolicy::Centre => v1::RootPolicy::Centre,
        RootPolicy::Spread => v1::RootPolicy::Spread,
    }
}
