//! Keys that put every rank behind a host of limited rate: `host` and `nicforward`.
//!
//! A rank's links end at its network card, and what the rank sends and receives passes between card and host. A card is
//! two switches, one that links enter and one that they leave, so that a network with hosts is a topology like any other
//! and nothing else has to know of them.

use crate::draft::{DraftLink, DraftNode, TopologyDraft};
use crate::error::TopologyError;
use crate::generate::arguments::Arguments;
use crate::generate::error::ExpressionError;
use crate::limits::TopologyLimits;
use crate::model::{Attributes, NodeKind, Topology};
use crate::units::{Capacity, Latency};

const HOST_KEY: &str = "host";
const FORWARDING_KEY: &str = "nicforward";

/// What passes on at a rank without being for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transit {
    /// Goes up into the host and down again.
    Host,
    /// Stays on the card.
    Card,
}

/// Whether the ranks get hosts.
pub(super) fn are_stated(arguments: &Arguments<'_>) -> bool {
    arguments.find(HOST_KEY).is_some()
}

/// The network with each rank `v` behind switches `v.in` and `v.out`, if `host=` states a rate.
///
/// Links `u → v` become `u.out → v.in` with their capacity and latency; `v.in → v → v.out` have the host's rate and no
/// latency. With `nicforward=true` there is `v.in → v.out` besides, with the capacity of all that enters `v.in`, which is
/// no limit. Ranks keep ids and order; switches are of the box, host and rail of their rank. Ports of a rank that lead back to
/// it are none of the host's.
///
/// * **Source.** Basu 2024 §3.2.2, figure 2.
/// * **Errors.** Values that cannot be read, `nicforward` alone, more nodes or links than the limits, sums beyond 64 bits.
/// * **Cost.** That of building the topology.
pub(super) fn insert(
    topology: Topology,
    arguments: &Arguments<'_>,
    limits: &TopologyLimits,
) -> Result<Topology, ExpressionError> {
    let transit = transit(arguments)?;
    let Some(rate) = arguments.find(HOST_KEY).map(|_| arguments.rate(HOST_KEY, 1)).transpose()? else {
        return Ok(topology);
    };
    let ranks = topology.rank_count() as usize;
    let inner_links = if transit == Transit::Card { 3 } else { 2 };
    limits.check(topology.nodes().len() + 2 * ranks, topology.links().len() + inner_links * ranks)?;
    let mut draft = TopologyDraft::like(&topology);
    let entry = |id: &str| format!("{id}.in");
    let exit = |id: &str| format!("{id}.out");
    let degrees = topology.degrees();
    for (node, &(entering, _)) in topology.nodes().iter().zip(&degrees) {
        let id = &node.id;
        if node.kind != NodeKind::Compute {
            let (id, attributes) = (id.clone(), node.attributes.clone());
            draft.nodes.push(DraftNode { id, kind: node.kind, rank: None, attributes });
            continue;
        }
        draft.add_node(id.as_str(), NodeKind::Compute, Attributes { loops: None, ..node.attributes.clone() });
        for card in [entry(id), exit(id)] {
            let attributes = Attributes { label: None, loops: None, ..node.attributes.clone() };
            draft.add_node(card, NodeKind::PLAIN_SWITCH, attributes);
        }
        draft.add_link(entry(id), id.as_str(), rate, Latency::default());
        draft.add_link(id.as_str(), exit(id), rate, Latency::default());
        if transit == Transit::Card && entering > 0 {
            let all = u64::try_from(entering).ok().and_then(Capacity::from_bytes_per_sec);
            let all = all.ok_or_else(|| TopologyError::CapacityOverflow { from: entry(id), to: exit(id) })?;
            draft.add_link(entry(id), exit(id), all, Latency::default());
        }
    }
    for link in topology.links() {
        let end = |node, of_rank: &dyn Fn(&str) -> String| {
            let id = &topology.node(node).id;
            if topology.rank_of(node).is_some() { of_rank(id) } else { id.clone() }
        };
        let (from, to) = (end(link.from, &exit), end(link.to, &entry));
        draft.links.push(DraftLink { from, to, capacity: link.capacity, latency: link.latency, count: 1 });
    }
    Ok(draft.build(limits)?)
}

fn transit(arguments: &Arguments<'_>) -> Result<Transit, ExpressionError> {
    let Some(argument) = arguments.find(FORWARDING_KEY) else { return Ok(Transit::Host) };
    if !are_stated(arguments) {
        let (key, position) = (FORWARDING_KEY, argument.position);
        return Err(ExpressionError::KeyAlone { key, position, needed: HOST_KEY });
    }
    Ok(if arguments.flag(FORWARDING_KEY)?.is_some() { Transit::Card } else { Transit::Host })
}
