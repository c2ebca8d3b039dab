//! Networks taken apart, changed and put together again, and a judge of counterparts that shares nothing with what found them.

use std::collections::BTreeSet;

use canopy_canonical::families::{Recognised, Recognition, recognise};
use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_topology::{Attributes, DraftLink, DraftNode, NodeKind, Topology, TopologyDraft, TopologyLimits, generate};

pub(crate) const BUDGET: Budget<'static> = Budget { work_max: WORK_STANDARD, stop: &|| false };

/// Numbers that look random, from a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

pub(crate) fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// The nodes and links of a topology, in its order.
pub(crate) fn draft(topology: &Topology) -> TopologyDraft {
    let id = |node: canopy_topology::NodeIndex| topology.node(node).id.clone();
    let nodes = (0_u32..).zip(topology.nodes()).map(|(index, node)| DraftNode {
        id: node.id.clone(),
        kind: node.kind,
        rank: (index < topology.rank_count()).then_some(index),
        attributes: node.attributes.clone(),
    });
    let links = topology.links().iter().map(|link| DraftLink {
        from: id(link.from),
        to: id(link.to),
        capacity: link.capacity,
        latency: link.latency,
        count: 1,
    });
    TopologyDraft { nodes: nodes.collect(), links: links.collect(), ..TopologyDraft::default() }
}

pub(crate) fn built(draft: TopologyDraft) -> Topology {
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// Nodes under other names and in another order, ranks and links too; without attributes, if so.
pub(crate) fn shuffled(mut draft: TopologyDraft, dice: &mut Dice, keeps_attributes: bool) -> TopologyDraft {
    let mut names: Vec<String> = (0..draft.nodes.len()).map(|number| format!("n{number}")).collect();
    dice.shuffle(&mut names);
    let renamed: std::collections::HashMap<String, String> =
        draft.nodes.iter().map(|node| node.id.clone()).zip(names).collect();
    let mut ranks: Vec<u32> = draft.nodes.iter().filter_map(|node| node.rank).collect();
    dice.shuffle(&mut ranks);
    for node in &mut draft.nodes {
        node.id = renamed[&node.id].clone();
        node.rank = node.rank.map(|_| ranks.pop().unwrap());
        if !keeps_attributes {
            node.attributes = Attributes::default();
        }
    }
    for link in &mut draft.links {
        (link.from, link.to) = (renamed[&link.from].clone(), renamed[&link.to].clone());
    }
    dice.shuffle(&mut draft.nodes);
    dice.shuffle(&mut draft.links);
    draft
}

/// The member that a network is recognised as, once its counterparts were found right: each node of the member is one, of
/// the same kind, and so is each link.
#[track_caller]
pub(crate) fn member(topology: &Topology) -> Option<Recognised> {
    let Recognition::Member(recognised) = recognise(topology, BUDGET).unwrap() else { return None };
    let Recognised { expression, member, counterparts, .. } = &*recognised;
    assert_eq!(*member, self::topology(expression));
    let distinct: BTreeSet<_> = counterparts.iter().collect();
    assert_eq!((distinct.len(), counterparts.len()), (member.nodes().len(), topology.nodes().len()), "{expression}");
    for (node, &counterpart) in topology.nodes().iter().zip(counterparts) {
        assert_eq!(node.kind, member.node(counterpart).kind, "{expression}");
    }
    let moved = topology.links().iter().map(|link| {
        let (from, to) = (counterparts[link.from.index()], counterparts[link.to.index()]);
        (from, to, link.capacity, link.latency)
    });
    let moved: BTreeSet<_> = moved.collect();
    let links: BTreeSet<_> =
        member.links().iter().map(|link| (link.from, link.to, link.capacity, link.latency)).collect();
    assert!(moved == links, "{expression}: the counterparts lose links");
    Some(*recognised)
}

pub(crate) fn is_switch(node: &DraftNode) -> bool {
    matches!(node.kind, NodeKind::Switch { .. })
}
