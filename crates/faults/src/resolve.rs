//! What targets mean on a network: which of its nodes are gone, which links are slower, which features are lost.
//!
//! Reports of one cause overlap: the card, the port and the link of a GPU may each be said to run at half rate, and then
//! they run at half rate. So where several targets speak of one link, the worst counts.

mod directory;
mod near;

use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::{Fault, NodeIndex, NodeKind};

pub use self::directory::Directory;
use crate::remaining::Remaining;
use crate::target::{Device, Loss, Target, TargetError};

/// Why a target means nothing on a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MeaningError {
    #[error("the topology has no node `{id}`{near}")]
    UnknownNode { id: String, near: String },
    #[error("the topology has no link {from} -> {to}; name two linked nodes, or the one direction there is")]
    UnknownLink { from: String, to: String },
    #[error("the topology has no host or box `{name}`{near}")]
    UnknownHost { name: String, near: String },
    #[error("`{name}` may be {first} or {second} of the topology; write the whole name")]
    AmbiguousHost { name: String, first: String, second: String },
    #[error("{host} has {devices} devices, counted from 0; there is no device {index}")]
    NoSuchDevice { host: String, index: u32, devices: usize },
    #[error("`{id}` is a switch; write switch:{id}, or the id of a compute node")]
    NotADevice { id: String },
    #[error("`{id}` is no switch; write gpu:{id}, or the id of a switch")]
    NotASwitch { id: String },
    #[error("no link of `{id}` leaves its machine, so it has no network card; name a link or the node")]
    NoCard { id: String },
    #[error("the network card of `{id}` has no port to `{port}`{near}")]
    NoPort { id: String, port: String, near: String },
    #[error("the topology has no plane and no switch `{name}`{near}")]
    UnknownPlane { name: String, near: String },
    #[error("{remaining} of a feature of switch {switch} cannot be left; leave 0/1 of it, or degrade the switch")]
    PartOfFeature { switch: String, remaining: Remaining },
    #[error(transparent)]
    Name(#[from] TargetError),
}

/// Which of several losses means nothing, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fault {position}: {problem}")]
pub struct ResolveError {
    /// Position in the list, from 0.
    pub position: usize,
    /// What is wrong with it.
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

impl Damage {
    fn limit(&mut self, ends: (NodeIndex, NodeIndex), remaining: Remaining) {
        let left = self.links.entry(ends).or_insert(remaining);
        *left = remaining.min(*left);
    }
}

impl Directory<'_> {
    /// The faults of nodes, links and features that losses add up to: each node, switch and direction at most once, in the
    /// order of the topology whatever the order of the losses. A puncture with them can only fail for too few ranks.
    ///
    /// # Errors
    /// The first loss that means nothing here.
    ///
    /// O(losses · log nodes + links touched · log links).
    pub fn resolve(&self, losses: &[Loss]) -> Result<Vec<Fault>, ResolveError> {
        let mut damage = Damage::default();
        for (position, loss) in losses.iter().enumerate() {
            self.assess(loss, &mut damage).map_err(|problem| ResolveError { position, problem })?;
        }
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

    /// The one name by which an element of this network is known, of the many that mean it: a device by the id of its
    /// node, a node by what it is, a machine by its whole name.
    ///
    /// # Errors
    /// The target means nothing here.
    pub fn canonical(&self, target: &Target) -> Result<Target, MeaningError> {
        self.assess(&Loss { target: target.clone(), remaining: Remaining::GONE }, &mut Damage::default())?;
        let id = |node: NodeIndex| self.topology().node(node).id.clone();
        let device = |device: &Device| self.device(device).map(|node| Device::Node { id: id(node) });
        Ok(match target.clone().checked()? {
            Target::Gpu { device: of } => Target::Gpu { device: device(&of)? },
            Target::Nic { device: of, port } => {
                let is_only = self.ports(self.device(&of)?)?.len() == 1;
                Target::Nic { device: device(&of)?, port: port.filter(|_| !is_only) }
            }
            Target::Host { name } => Target::Host { name: self.machine(&name)?.0.to_owned() },
            Target::Node { id } => match self.topology().node(self.node(&id)?).kind {
                NodeKind::Switch { .. } => Target::Switch { id },
                NodeKind::Compute | NodeKind::Forwarder => Target::Gpu { device: Device::Node { id } },
            },
            Target::Plane { name } if !self.has_plane(&name) => Target::Switch { id: name },
            target @ (Target::Link { .. } | Target::Switch { .. } | Target::Feature { .. } | Target::Plane { .. }) => {
                target
            }
        })
    }

    /// Adds what one loss does.
    fn assess(&self, loss: &Loss, damage: &mut Damage) -> Result<(), MeaningError> {
        let remaining = loss.remaining;
        match loss.target.clone().checked()? {
            Target::Link { from, to, both_ways } => {
                let (from, to) = (self.node(&from)?, self.node(&to)?);
                let opposite = both_ways.then_some((to, from));
                for ends in [Some((from, to)), opposite].into_iter().flatten() {
                    self.require_link(ends)?;
                    self.limit(ends, remaining, damage);
                }
            }
            Target::Nic { device, port } => {
                let node = self.device(&device)?;
                let ports = self.ports(node)?;
                let far_ends = match port {
                    None => ports,
                    Some(port) => vec![self.port(node, &ports, &port)?],
                };
                for far_end in far_ends {
                    self.limit((node, far_end), remaining, damage);
                    self.limit((far_end, node), remaining, damage);
                }
            }
            Target::Gpu { device } => self.lose(&[self.device(&device)?], remaining, damage),
            Target::Host { name } => self.lose(self.machine(&name)?.1, remaining, damage),
            Target::Node { id } => self.lose(&[self.node(&id)?], remaining, damage),
            Target::Switch { id } => self.lose(&[self.switch(&id)?], remaining, damage),
            Target::Plane { name } => self.lose(&self.plane(&name)?, remaining, damage),
            Target::Feature { switch, multicast, aggregate } => {
                let node = self.switch(&switch)?;
                if !remaining.is_gone() && !remaining.is_whole() {
                    return Err(MeaningError::PartOfFeature { switch, remaining });
                }
                if remaining.is_gone() {
                    let lost = damage.features.entry(node).or_default();
                    *lost = (lost.0 || multicast, lost.1 || aggregate);
                }
            }
        }
        Ok(())
    }

    /// Nodes are gone, or all their links are slower.
    fn lose(&self, nodes: &[NodeIndex], remaining: Remaining, damage: &mut Damage) {
        if remaining.is_gone() {
            damage.gone.extend(nodes);
            return;
        }
        for &node in nodes {
            for far_end in self.neighbours(node) {
                self.limit((node, far_end), remaining, damage);
                self.limit((far_end, node), remaining, damage);
            }
        }
    }

    /// What is left of links of one direction, if there are any and something is missing.
    fn limit(&self, ends: (NodeIndex, NodeIndex), remaining: Remaining, damage: &mut Damage) {
        if !remaining.is_whole() && self.has_link(ends) {
            damage.limit(ends, remaining);
        }
    }
}

#[cfg(test)]
mod tests;
