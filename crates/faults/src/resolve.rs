//! Resolves targets on a network: nodes that are gone, links that are slower, features that are lost.
//!
//! Reports of one cause overlap: the NIC, the port and the link of a GPU may each be reported at half rate, and the
//! link then runs at half rate. So if several targets affect one link, the worst counts.

mod cards;
mod directory;
mod near;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::{Fault, NodeIndex};

pub(crate) use self::cards::Card;
pub use self::directory::Directory;
use crate::event::Event;
use crate::remaining::Remaining;
use crate::target::{Device, Loss, Target, TargetError};

/// Errors of resolving a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MeaningError {
    #[error("the topology has no node `{id}`{near}")]
    UnknownNode { id: String, near: String },
    #[error("the topology has no link {from} -> {to}; name two linked nodes, or the other direction")]
    UnknownLink { from: String, to: String },
    #[error("the topology has no host or box `{name}`{near}")]
    UnknownHost { name: String, near: String },
    #[error("`{name}` may mean {first} or {second}; write the whole name")]
    AmbiguousHost { name: String, first: String, second: String },
    #[error("{host} has no device {index}; it has {devices}, counted from 0")]
    NoSuchDevice { host: String, index: u32, devices: usize },
    #[error("`{id}` is a switch; write switch:{id}, or the id of a compute node")]
    NotADevice { id: String },
    #[error("`{id}` is not a switch; write gpu:{id}, or the id of a switch")]
    NotASwitch { id: String },
    #[error("`{id}` reaches no NIC of its machine in this network; name a NIC, a link or the node")]
    NoCard { id: String },
    #[error("{host} has no NIC `{name}`{near}")]
    UnknownNic { host: String, name: String, near: String },
    #[error("`{name}` may mean {first} or {second}; write nic: and the id")]
    AmbiguousNic { name: String, first: String, second: String },
    #[error("the NIC of `{id}` has no port to `{port}`{near}")]
    NoPort { id: String, port: String, near: String },
    #[error("the topology has no plane or switch `{name}`{near}")]
    UnknownPlane { name: String, near: String },
    #[error("{remaining} of a feature of switch {switch} cannot remain; use 0/1, or degrade the switch")]
    PartOfFeature { switch: String, remaining: Remaining },
    #[error(transparent)]
    Name(#[from] TargetError),
}

/// A loss that cannot be resolved, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fault {position}: {problem}")]
pub struct ResolveError {
    /// Position in the list, from 0.
    pub position: usize,
    /// The reason.
    pub problem: MeaningError,
}

/// What losses add up to. Ordered by node, so that what is made of it is the same whatever their order.
#[derive(Default)]
struct Damage {
    gone: BTreeSet<NodeIndex>,
    /// By switch: whether it loses multicast, and aggregation.
    features: BTreeMap<NodeIndex, (bool, bool)>,
    /// By ends of directed links: what is left, never the whole.
    links: BTreeMap<(NodeIndex, NodeIndex), Remaining>,
}

/// What a target is on a network.
#[derive(Clone, Debug)]
enum Meaning<'a> {
    /// The links between these ends, in these directions, as far as there are any.
    Links(Vec<(NodeIndex, NodeIndex)>),
    Nodes(Cow<'a, [NodeIndex]>),
    Feature {
        switch: NodeIndex,
        multicast: bool,
        aggregate: bool,
    },
}

impl Directory<'_> {
    /// The faults of nodes, links and features that losses add up to: each node, switch and direction at most once, in the
    /// order of the topology whatever the order of the losses. A puncture with them can only fail for too few ranks.
    ///
    /// # Errors
    /// The first loss that means nothing here.
    ///
    /// O(losses · (log nodes + ports of the card) + links touched by different targets · log links): of one target that is said
    /// many times the worst is added up.
    pub fn resolve(&self, losses: &[Loss]) -> Result<Vec<Fault>, ResolveError> {
        let mut worst: BTreeMap<Target, (Meaning<'_>, Remaining)> = BTreeMap::new();
        for (position, Loss { target, remaining }) in losses.iter().enumerate() {
            let meaning = |target: &Target| self.meaning(target, *remaining);
            let meant =
                target.clone().checked().map_err(MeaningError::from).and_then(|target| Ok((meaning(&target)?, target)));
            let (meaning, target) = meant.map_err(|problem| ResolveError { position, problem })?;
            let known = worst.entry(target).or_insert((meaning, *remaining));
            known.1 = known.1.min(*remaining);
        }
        let mut damage = Damage::default();
        worst.values().for_each(|(meaning, remaining)| self.assess(meaning, *remaining, &mut damage));
        let Damage { gone, features, links } = damage;
        let id = |node: NodeIndex| self.topology().node(node).id.clone();
        let mut faults: Vec<Fault> = gone.iter().map(|&node| Fault::Node { id: id(node) }).collect();
        let features = features.into_iter().filter(|(switch, _)| !gone.contains(switch));
        faults.extend(features.map(|(switch, (multicast, aggregate))| Fault::Feature {
            switch: id(switch),
            multicast,
            aggregate,
        }));
        let links = links.into_iter().filter(|((from, to), _)| !gone.contains(from) && !gone.contains(to));
        faults.extend(links.map(|((from, to), left)| {
            let (from, to, both_ways) = (id(from), id(to), false);
            let (numerator, denominator) = (left.numerator(), left.denominator());
            match left.is_gone() {
                true => Fault::Link { from, to, both_ways },
                false => Fault::Degrade { from, to, both_ways, numerator, denominator },
            }
        }));
        Ok(faults)
    }

    /// The canonical name of an element: a device by the id of its node, a node by its kind, a machine by its whole
    /// name.
    ///
    /// # Errors
    /// The target means nothing here.
    pub fn canonical(&self, target: &Target) -> Result<Target, MeaningError> {
        let loss = Loss { target: target.clone(), remaining: Remaining::GONE };
        self.canonical_loss(&loss).map(|loss| loss.target)
    }

    /// The loss with the canonical name of its target.
    ///
    /// # Errors
    /// The loss means nothing here.
    pub fn canonical_loss(&self, loss: &Loss) -> Result<Loss, MeaningError> {
        let target = loss.target.clone().checked()?;
        self.meaning(&target, loss.remaining)?;
        let id = |node: NodeIndex| self.topology().node(node).id.clone();
        let device = |device: &Device| self.device(device).map(|node| Device::Node { id: id(node) });
        let target = match target {
            Target::Gpu { device: of } => Target::Gpu { device: device(&of)? },
            Target::Nic { device, port } => {
                let card = self.card(&device)?;
                Target::Nic { device: self.card_device(card.node), port: port.filter(|_| card.ports.len() > 1) }
            }
            Target::Host { name } => Target::Host { name: self.machine(&name)?.0.to_owned() },
            Target::Node { id } => Target::of_node(self.topology().node(self.node(&id)?)),
            Target::Plane { name } if !self.has_plane(&name) => Target::Switch { id: name },
            target @ (Target::Link { .. } | Target::Switch { .. } | Target::Feature { .. } | Target::Plane { .. }) => {
                target
            }
        };
        Ok(Loss { target, remaining: loss.remaining })
    }

    /// An event with the canonical name of its target. The remaining fraction is ignored if the event is a clear.
    ///
    /// # Errors
    /// The event means nothing here.
    pub fn canonical_event(&self, event: Event) -> Result<Event, MeaningError> {
        let remaining = if event.cleared { Remaining::GONE } else { event.remaining };
        let Loss { target, .. } = self.canonical_loss(&Loss { target: event.target.clone(), remaining })?;
        Ok(Event { target, ..event })
    }

    /// The canonical names of everything on a machine: the machine, its nodes, and its NICs.
    ///
    /// # Errors
    /// The machine does not exist.
    pub fn parts(&self, machine: &str) -> Result<Vec<Target>, MeaningError> {
        let (name, nodes) = self.machine(machine)?;
        let mut parts = vec![Target::Host { name: name.to_owned() }];
        parts.extend(nodes.iter().map(|&node| Target::of_node(self.topology().node(node))));
        let cards = nodes.iter().filter_map(|&node| self.card_at(node));
        parts.extend(cards.map(|card| Target::Nic { device: self.card_device(card.node), port: None }));
        Ok(parts)
    }

    /// What so much less of a target is here.
    fn meaning(&self, target: &Target, remaining: Remaining) -> Result<Meaning<'_>, MeaningError> {
        Ok(match target {
            Target::Link { from, to, both_ways } => {
                let (from, to) = (self.node(from)?, self.node(to)?);
                let ends: Vec<_> = [Some((from, to)), both_ways.then_some((to, from))].into_iter().flatten().collect();
                ends.iter().try_for_each(|&ends| self.require_link(ends))?;
                Meaning::Links(ends)
            }
            Target::Nic { device, port } => {
                let Card { node, ports } = self.card(device)?;
                let far_ends = match port {
                    None => ports,
                    Some(port) => vec![self.port(node, &ports, port)?],
                };
                Meaning::Links(far_ends.into_iter().flat_map(|far| [(node, far), (far, node)]).collect())
            }
            Target::Gpu { device } => Meaning::Nodes(Cow::Owned(vec![self.device(device)?])),
            Target::Host { name } => Meaning::Nodes(Cow::Borrowed(self.machine(name)?.1)),
            Target::Node { id } => Meaning::Nodes(Cow::Owned(vec![self.node(id)?])),
            Target::Switch { id } => Meaning::Nodes(Cow::Owned(vec![self.switch(id)?])),
            Target::Plane { name } => Meaning::Nodes(self.plane(name)?),
            Target::Feature { switch, multicast, aggregate } => {
                let node = self.switch(switch)?;
                if !remaining.is_gone() && !remaining.is_whole() {
                    return Err(MeaningError::PartOfFeature { switch: switch.clone(), remaining });
                }
                Meaning::Feature { switch: node, multicast: *multicast, aggregate: *aggregate }
            }
        })
    }

    /// Adds what so much less of it does.
    fn assess(&self, meaning: &Meaning<'_>, remaining: Remaining, damage: &mut Damage) {
        if remaining.is_whole() {
            return;
        }
        match meaning {
            Meaning::Links(links) => links.iter().for_each(|&ends| self.limit(ends, remaining, damage)),
            Meaning::Nodes(nodes) if remaining.is_gone() => damage.gone.extend(nodes.iter()),
            Meaning::Nodes(nodes) => {
                for &node in nodes.iter() {
                    for far_end in self.neighbours(node) {
                        self.limit((node, far_end), remaining, damage);
                        self.limit((far_end, node), remaining, damage);
                    }
                }
            }
            Meaning::Feature { switch, multicast, aggregate } => {
                let lost = damage.features.entry(*switch).or_default();
                *lost = (lost.0 || *multicast, lost.1 || *aggregate);
            }
        }
    }

    /// What is left of links of one direction, if there are any.
    fn limit(&self, ends: (NodeIndex, NodeIndex), remaining: Remaining, damage: &mut Damage) {
        if self.topology().has_link(ends.0, ends.1) {
            let left = damage.links.entry(ends).or_insert(remaining);
            *left = remaining.min(*left);
        }
    }
}

#[cfg(test)]
mod tests;
