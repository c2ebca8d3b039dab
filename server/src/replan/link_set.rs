//! Which links of a network a plan uses, and which of them faults affect.

use bytes::Bytes;
use canopy_faults::{Directory, Loss};
use canopy_planner::chain;
use canopy_topology::{Fault, Link, NodeIndex, Topology};

use super::bases::Base;

/// A set of directed links of a base topology, by their index there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkSet {
    /// Link i is bit i % 8 of byte i / 8, the lowest first.
    bits: Box<[u8]>,
}

impl LinkSet {
    /// No link: of what is healthy.
    pub(crate) fn none(base: &Base) -> Self {
        Self { bits: vec![0; base.topology().links().len().div_ceil(8)].into() }
    }

    /// Every link: of plans of which nothing is known.
    pub(crate) fn all(base: &Base) -> Self {
        Self { bits: vec![0xff; base.topology().links().len().div_ceil(8)].into() }
    }

    /// For [`LinkSet::meets_bytes`] of another set.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bits.into_vec().into()
    }

    /// The links of the base that a plan on `part` of it is on, by `links_used` of the plan. Nodes are the same where their ids
    /// are. Links of a part that the base does not have are none that it can lose. O(links log links).
    pub(crate) fn projected(base: &Base, part: &Topology, links_used: &[u8]) -> Self {
        if links_used.len() != part.links().len().div_ceil(8) {
            return Self::all(base);
        }
        let mut set = Self::none(base);
        let of_base: Vec<Option<NodeIndex>> = part.nodes().iter().map(|node| base.node(&node.id)).collect();
        for (position, link) in part.links().iter().enumerate() {
            let is_used = links_used.get(position / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1);
            let ends =
                of_base.get(link.from.index()).copied().flatten().zip(of_base.get(link.to.index()).copied().flatten());
            if let Some((from, to)) = ends.filter(|_| is_used) {
                set.insert_between(base, from, to, |candidate| candidate.latency == link.latency);
            }
        }
        set
    }

    /// The links that faults take away, slow down or lead to a switch that has lost something.
    pub(crate) fn touched(base: &Base, faults: &[Fault]) -> Self {
        let mut set = Self::none(base);
        for fault in faults {
            match fault {
                Fault::Link { from, to, both_ways } | Fault::Degrade { from, to, both_ways, .. } => {
                    let Some((from, to)) = base.node(from).zip(base.node(to)) else { continue };
                    set.insert_between(base, from, to, |_| true);
                    if *both_ways {
                        set.insert_between(base, to, from, |_| true);
                    }
                }
                Fault::Node { id } | Fault::Feature { switch: id, .. } => {
                    let Some(node) = base.node(id) else { continue };
                    for (position, link) in base.topology().links().iter().enumerate() {
                        if link.from == node || link.to == node {
                            set.insert(position);
                        }
                    }
                }
            }
        }
        set
    }

    /// Whether some link is in both sets.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.meets_bytes(&other.bits)
    }

    /// The same of what [`LinkSet::into_bytes`] gave for another set. What is not of this base may be any links.
    pub(crate) fn meets_bytes(&self, other: &[u8]) -> bool {
        other.len() != self.bits.len() || self.bits.iter().zip(other).any(|(ours, theirs)| ours & theirs != 0)
    }

    fn insert_between(&mut self, base: &Base, from: NodeIndex, to: NodeIndex, fits: impl Fn(&Link) -> bool) {
        let links = base.topology().links();
        let first = links.partition_point(|link| (link.from, link.to) < (from, to));
        let between = links.iter().enumerate().skip(first).take_while(|(_, link)| (link.from, link.to) == (from, to));
        between.filter(|(_, link)| fits(link)).for_each(|(position, _)| self.insert(position));
    }

    fn insert(&mut self, position: usize) {
        if let Some(byte) = self.bits.get_mut(position / 8) {
            *byte |= 1 << (position % 8);
        }
    }
}

/// The links that losses touch. All of them are known to mean something on this topology.
pub(super) fn touched(base: &Base, losses: &[Loss]) -> LinkSet {
    if losses.is_empty() {
        return LinkSet::none(base);
    }
    match Directory::new(base.topology()).resolve(losses) {
        Ok(faults) => LinkSet::touched(base, &faults),
        Err(error) => {
            tracing::error!(error = chain(&error), "a known fault names no element of its topology");
            LinkSet::all(base)
        }
    }
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Rank, TopologyLimits, Transit, generate};

    use super::*;

    fn base(expression: &str) -> Base {
        Base::new(generate(expression, &TopologyLimits::STANDARD).unwrap())
    }

    fn link(from: &str, to: &str, both_ways: bool) -> Fault {
        Fault::Link { from: from.to_owned(), to: to.to_owned(), both_ways }
    }

    #[test]
    fn faults_touch_their_links_alone() {
        let base = base("ring:4");
        let count = |set: &LinkSet| set.bits.iter().map(|byte| byte.count_ones()).sum::<u32>();
        assert_eq!(count(&LinkSet::touched(&base, &[link("0", "1", false)])), 1);
        assert_eq!(count(&LinkSet::touched(&base, &[link("0", "1", true), link("1", "0", false)])), 2);
        assert_eq!(count(&LinkSet::touched(&base, &[Fault::Node { id: "2".to_owned() }])), 4);
        let (one, other) = (link("0", "1", true), link("2", "3", true));
        let touched = |fault: &Fault| LinkSet::touched(&base, std::slice::from_ref(fault));
        assert!(touched(&one).meets(&touched(&one)) && !touched(&one).meets(&touched(&other)));
        assert!(LinkSet::all(&base).meets(&touched(&other)));
    }

    #[test]
    fn plans_of_groups_are_on_links_of_the_whole() {
        let base = base("dgx-a100:boxes=2");
        let box_one: Vec<Rank> = (8..16).map(Rank::new).collect();
        let part = base.topology().group(&box_one, Transit::Unused).unwrap();
        let everything = vec![0xff; part.links().len().div_ceil(8)];
        let plan = LinkSet::projected(&base, &part, &everything);
        let hits = |fault: Fault| plan.meets(&LinkSet::touched(&base, &[fault]));
        assert!(hits(link("b1g3", "ib", true)) && hits(Fault::Node { id: "b1g0".to_owned() }));
        assert!(!hits(link("b0g3", "ib", true)) && !hits(Fault::Node { id: "b0nv".to_owned() }));
        let nothing = vec![0; part.links().len().div_ceil(8)];
        assert!(!LinkSet::projected(&base, &part, &nothing).meets(&LinkSet::all(&base)));
        assert_eq!(LinkSet::projected(&base, &part, &[]), LinkSet::all(&base), "nothing is known of it");
        assert!(plan.meets_bytes(&plan.clone().into_bytes()) && plan.meets_bytes(&[]));
    }
}
