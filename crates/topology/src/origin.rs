//! What a network was made of: an expression, and what was taken away since. A few hundred bytes instead of every link.

use std::borrow::Cow;
use std::sync::Arc;

use crate::fault::{Fault, FaultError};
use crate::generate::{ExpressionError, generate};
use crate::index::NodeIndex;
use crate::limits::TopologyLimits;
use crate::model::{Link, Node, NodeKind, Topology};

/// A network as the one of an expression without some of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its name, a generator expression.
    pub expression: String,
    /// What it has no more.
    pub faults: Vec<Fault>,
}

/// Why no network follows from what is stated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum OriginError {
    #[error("expression")]
    Expression(#[source] ExpressionError),
    #[error("without")]
    Faults(#[source] FaultError),
}

/// Most faults that are told apart; what differs by more is another network.
const FAULTS_MAX: usize = 4096;

impl Origin {
    /// Finds what the name of a network and faults say of it. `None`: its name is no expression, or others differ from
    /// it by more than faults.
    ///
    /// * **In.** The network of the expression without faults, if it is at hand: what [`generate`] has made.
    /// * **Out.** What [`Origin::topology`] makes an equal network of.
    /// * **Cost.** That of [`generate`] without a network at hand, O(nodes + links), and that of [`Topology::puncture`].
    pub fn of(topology: &Topology, base: Option<&Topology>) -> Option<Self> {
        let (expression, nodes, links) = (topology.name()?, topology.nodes().len(), topology.links().len());
        let limits = TopologyLimits {
            nodes_max: nodes.saturating_add(FAULTS_MAX),
            links_max: links.saturating_mul(2).saturating_add(FAULTS_MAX),
            bytes_max: TopologyLimits::STANDARD.bytes_max,
        };
        let made = match at_hand(base, expression) {
            Some(base) => Cow::Borrowed(base),
            None => Cow::Owned(generate(expression, &limits).ok()?),
        };
        let mut origin = Self { expression: expression.to_owned(), faults: Vec::new() };
        if *made == *topology {
            return Some(origin);
        }
        origin.faults = differences(&made, topology)?;
        (made.punctured(&origin.faults).ok()? == *topology).then_some(origin)
    }

    /// The network.
    ///
    /// * **In.** `base`: as for [`Origin::of`].
    /// * **Errors.** [`OriginError`]. **Cost.** That of [`generate`], and of [`Topology::puncture`].
    pub fn topology(&self, limits: &TopologyLimits, base: Option<&Topology>) -> Result<Topology, OriginError> {
        let made = match at_hand(base, &self.expression) {
            Some(base) => Cow::Borrowed(base),
            None => Cow::Owned(generate(&self.expression, limits).map_err(OriginError::Expression)?),
        };
        if self.faults.is_empty() {
            return Ok(made.into_owned());
        }
        made.punctured(&self.faults).map_err(OriginError::Faults)
    }
}

/// The network at hand, if it is that of the expression.
fn at_hand<'a>(base: Option<&'a Topology>, expression: &str) -> Option<&'a Topology> {
    base.filter(|base| base.name() == Some(expression))
}

/// The faults that make the first network look like the second, as far as there are such.
fn differences(made: &Topology, left: &Topology) -> Option<Vec<Fault>> {
    // Nodes that are left keep their order.
    let mut nodes_left = (0..).map(NodeIndex::new).zip(left.nodes()).peekable();
    let mut faults = Vec::new();
    // By node that was made: where it is now.
    let mut images = Vec::with_capacity(made.nodes().len());
    for node in made.nodes() {
        let image =
            nodes_left.next_if(|(_, left)| Arc::ptr_eq(left, node) || left.id == node.id).map(|(index, _)| index);
        images.push(image);
        match image {
            None => faults.push(Fault::Node { id: node.id.clone() }),
            Some(image) => faults.extend(features_lost(node, left.node(image))),
        }
        if faults.len() > FAULTS_MAX {
            return None;
        }
    }
    let id = |node: NodeIndex| made.node(node).id.clone();
    let mut links = left.links();
    for link in made.links() {
        let Some((from, to)) = images.get(link.from.index()).copied().flatten().zip(images[link.to.index()]) else {
            continue;
        };
        // Links keep theirs, too.
        let is_there = |found: &&Link| (found.from, found.to, found.latency) == (from, to, link.latency);
        let Some(found) = links.first().filter(is_there) else {
            faults.push(Fault::Link { from: id(link.from), to: id(link.to), both_ways: false });
            continue;
        };
        links = &links[1..];
        if found.capacity != link.capacity {
            let [numerator, denominator] = [found, link].map(|link| link.capacity.bytes_per_sec());
            let (from, to) = (id(link.from), id(link.to));
            faults.push(Fault::Degrade { from, to, both_ways: false, numerator, denominator });
        }
        if faults.len() > FAULTS_MAX {
            return None;
        }
    }
    links.is_empty().then_some(faults)
}

/// What a switch can do no more.
fn features_lost(made: &Node, left: &Node) -> Option<Fault> {
    match (made.kind, left.kind) {
        (
            NodeKind::Switch { multicast: sent, aggregate: reduced },
            NodeKind::Switch { multicast: sends, aggregate: reduces },
        ) if (sent, reduced) != (sends, reduces) => {
            Some(Fault::Feature { switch: made.id.clone(), multicast: sent && !sends, aggregate: reduced && !reduces })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated(expression: &str) -> Topology {
        generate(expression, &TopologyLimits::STANDARD).unwrap()
    }

    fn slow(numerator: u64, denominator: u64) -> Fault {
        let (from, to) = ("b0g3".to_owned(), "ib".to_owned());
        Fault::Degrade { from, to, both_ways: true, numerator, denominator }
    }

    #[test]
    fn what_is_left_of_an_expression_is_told_by_what_is_gone() {
        let sound = generated("dgx-h100:boxes=3");
        assert_eq!(Origin::of(&sound, None).unwrap().faults, []);
        let node = Fault::Node { id: "b1g4".to_owned() };
        let link = Fault::Link { from: "b2g0".to_owned(), to: "ib".to_owned(), both_ways: false };
        for faults in [vec![node.clone()], vec![link.clone()], vec![slow(1, 3)], vec![node, link, slow(2, 7)]] {
            let left = sound.punctured(&faults).unwrap();
            let origin = Origin::of(&left, None).unwrap();
            assert!((1..=4).contains(&origin.faults.len()), "{origin:?}");
            // Whether or not the sound network is at hand, nor another one.
            let other = generated("dgx-h100:boxes=4");
            for base in [None, Some(&sound), Some(&other)] {
                assert_eq!(Origin::of(&left, base).as_ref(), Some(&origin));
                assert_eq!(origin.topology(&TopologyLimits::STANDARD, base).as_ref(), Ok(&left));
            }
        }
    }

    #[test]
    fn features_of_switches_are_told_too() {
        let sound = generated("dgx-h100:boxes=2,nvls=true");
        let switch = sound.nodes().iter().find(|node| matches!(node.kind, NodeKind::Switch { multicast: true, .. }));
        let switch = switch.unwrap().id.clone();
        let left = sound.punctured(&[Fault::Feature { switch, multicast: true, aggregate: false }]).unwrap();
        assert_eq!(Origin::of(&left, None).unwrap().topology(&TopologyLimits::STANDARD, None), Ok(left));
    }

    #[test]
    fn another_network_has_no_such_origin() {
        let ring = generated("ring:5");
        assert_eq!(Origin::of(&ring.clone().with_name(Some("a cluster".to_owned())), None), None);
        assert_eq!(Origin::of(&ring.clone().with_name(None), None), None);
        assert_eq!(Origin::of(&ring.with_name(Some("dgx-h100:boxes=2".to_owned())), None), None);
        // More links than the expression has, and links that are faster.
        let mesh = generated("torus:3x3").with_name(Some("mesh:3x3".to_owned()));
        assert_eq!(Origin::of(&mesh, None), None);
        let fast = generated("ring:4,bw=2GB/s").with_name(Some("ring:4,bw=1GB/s".to_owned()));
        assert_eq!(Origin::of(&fast, None), None);
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let origin = |expression: &str, faults| Origin { expression: expression.to_owned(), faults };
        let refused = origin("rings:4", Vec::new()).topology(&TopologyLimits::STANDARD, None);
        assert!(matches!(refused, Err(OriginError::Expression(_))));
        let refused =
            origin("ring:4", vec![Fault::Node { id: "9".to_owned() }]).topology(&TopologyLimits::STANDARD, None);
        assert!(matches!(refused, Err(OriginError::Faults(_))));
    }
}
