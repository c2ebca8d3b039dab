//! All single faults of a network, grouped so that every fault of a group costs as much as the others.

use std::collections::{BTreeMap, BTreeSet};

use canopy_canonical::{Analysis, Budget, Orbits, Stopped, analyse, form_hash, graph_of};
use canopy_topology::{Element, FaultKind, NodeIndex, NodeKind, Topology, TopologyHash};

use crate::remaining::Remaining;
use crate::resolve::{Card, Directory};
use crate::target::{Loss, Target};

/// The kinds that together name every single fault once, in the order of [`singles`].
pub const SINGLE_KINDS: [FaultKind; 5] =
    [FaultKind::Links, FaultKind::Nics, FaultKind::Gpus, FaultKind::Boxes, FaultKind::Switches];

/// The order of lists: all links come before those that are told apart by where they are.
const ORDER: [FaultKind; 7] = [
    FaultKind::Links,
    FaultKind::LinksInside,
    FaultKind::LinksOutside,
    FaultKind::Nics,
    FaultKind::Gpus,
    FaultKind::Boxes,
    FaultKind::Switches,
];

/// Single faults that an automorphism of the network exchanges, so that what is left by each is the same but for names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EquivalentFaults {
    /// Their kind.
    pub kind: FaultKind,
    /// The elements, in the order of the topology, at least one.
    pub targets: Vec<Target>,
}

/// What tells single faults of one kind apart.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Orbits of the links of both directions, sorted.
    Ends(BTreeSet<u32>),
    /// Orbit of the node.
    Node(u32),
    /// Orbit of the node, and those of its links that are on the card, all of which are.
    Card(u32, BTreeSet<u32>),
    /// The shape of what is left.
    Rest(TopologyHash),
    /// Of one element, of which it is not known what it is like.
    Own(u32),
}

/// The single faults of some kinds, by kind, those that are alike together.
///
/// *Boxes* are hosts, or else boxes, if there are at least two. A *NIC* is all links of a rank, or of a switch in a
/// machine, that leave the machine, if that is known. Links inside and outside boxes are part of all links, if these are asked for.
///
/// `roles` tell ranks apart that differ in what is asked of them, as [`graph_of`] takes them. Faults of one group are alike,
/// verified; within the budget of work two groups may be.
///
/// * **Errors.** Stopped. **Cost.** One search for automorphisms, and one for each host.
pub fn singles(
    directory: &Directory<'_>,
    kinds: &[FaultKind],
    roles: &[u32],
    budget: Budget<'_>,
) -> Result<Vec<EquivalentFaults>, Stopped> {
    let topology = directory.topology();
    let Some(graph) = graph_of(topology, roles) else { return Ok(Vec::new()) };
    let analysis = analyse(&graph, budget)?;
    let symmetry = Symmetry { directory, links: analysis.arc_orbits(&graph), nodes: &analysis };
    let mut found = Vec::new();
    let is_part = |kind| matches!(kind, FaultKind::LinksInside | FaultKind::LinksOutside);
    let has_all_links = kinds.contains(&FaultKind::Links);
    for kind in ORDER.into_iter().filter(|kind| kinds.contains(kind) && !(has_all_links && is_part(*kind))) {
        let keyed = match kind {
            FaultKind::Links | FaultKind::LinksInside | FaultKind::LinksOutside => symmetry.links(kind),
            FaultKind::Nics => symmetry.cards(),
            FaultKind::Gpus => symmetry.nodes(|kind| matches!(kind, NodeKind::Compute)),
            FaultKind::Switches => symmetry.nodes(|kind| matches!(kind, NodeKind::Switch { .. })),
            FaultKind::Boxes => symmetry.hosts(roles, budget)?,
        };
        let mut groups: Vec<EquivalentFaults> = Vec::new();
        let mut group_of: BTreeMap<Key, usize> = BTreeMap::new();
        for (key, target) in keyed {
            let group = *group_of.entry(key).or_insert_with(|| {
                groups.push(EquivalentFaults { kind, targets: Vec::new() });
                groups.len() - 1
            });
            groups[group].targets.push(target);
        }
        found.append(&mut groups);
    }
    Ok(found)
}

/// A network and what is alike in it.
struct Symmetry<'a, 't> {
    directory: &'a Directory<'t>,
    /// Orbits of links, by their index.
    links: Orbits,
    nodes: &'a Analysis,
}

impl Symmetry<'_, '_> {
    fn topology(&self) -> &Topology {
        self.directory.topology()
    }

    fn id(&self, node: NodeIndex) -> String {
        self.topology().node(node).id.clone()
    }

    /// The orbit of the first of the parallel links from one node to another, if there are any. An automorphism that moves it
    /// moves the others with it.
    fn orbit(&self, from: NodeIndex, to: NodeIndex) -> Option<u32> {
        let links = self.topology().links();
        let first = links.partition_point(|link| (link.from, link.to) < (from, to));
        let link = links.get(first).filter(|link| (link.from, link.to) == (from, to));
        link.and(u32::try_from(first).ok()).map(|first| self.links.representative(first))
    }

    fn links(&self, kind: FaultKind) -> Vec<(Key, Target)> {
        let mut keyed = Vec::new();
        for element in self.topology().elements(kind) {
            let Element::Link { from, to, both_ways } = element else { continue };
            let orbits: BTreeSet<u32> = [self.orbit(from, to), self.orbit(to, from)].into_iter().flatten().collect();
            let target = Target::Link { from: self.id(from), to: self.id(to), both_ways };
            let target = target.clone().checked().unwrap_or(target);
            keyed.push((Key::Ends(orbits), target));
        }
        keyed
    }

    fn nodes(&self, is_meant: fn(NodeKind) -> bool) -> Vec<(Key, Target)> {
        let nodes = (0_u32..).zip(self.topology().nodes()).filter(|(_, node)| is_meant(node.kind));
        nodes.map(|(index, node)| (Key::Node(self.nodes.orbits.representative(index)), Target::of_node(node))).collect()
    }

    fn cards(&self) -> Vec<(Key, Target)> {
        let mut keyed = Vec::new();
        for Card { node, ports } in self.directory.cards() {
            let orbits = |far_ends: &mut dyn Iterator<Item = NodeIndex>| -> BTreeSet<u32> {
                let around = far_ends.flat_map(|far| [self.orbit(node, far), self.orbit(far, node)]);
                around.flatten().collect()
            };
            let on_card = orbits(&mut ports.iter().copied());
            let inside = orbits(&mut self.directory.neighbours(node).filter(|far| !ports.contains(far)));
            // Whoever moves the node moves its links of these orbits to links of these orbits. Boxes are not theirs to know, so
            // only where all of them are on the card the card is moved to a card.
            let key = match on_card.is_disjoint(&inside) {
                true => Key::Card(self.nodes.orbits.representative(node.number()), on_card),
                false => Key::Own(node.number()),
            };
            keyed.push((key, Target::Nic { device: self.directory.card_device(node), port: None }));
        }
        keyed
    }

    fn hosts(&self, roles: &[u32], budget: Budget<'_>) -> Result<Vec<(Key, Target)>, Stopped> {
        let machines: Vec<(String, NodeIndex)> =
            self.directory.machines().filter_map(|(name, nodes)| Some((name.to_owned(), *nodes.first()?))).collect();
        let mut keyed = Vec::new();
        for (name, first) in machines {
            let target = Target::Host { name };
            let rest = self.rest(&target, roles, budget)?;
            keyed.push((rest.map_or(Key::Own(first.number()), Key::Rest), target));
        }
        Ok(if keyed.len() < 2 { Vec::new() } else { keyed })
    }

    /// The shape of what is left without a machine, where that can be told within the budget.
    fn rest(&self, target: &Target, roles: &[u32], budget: Budget<'_>) -> Result<Option<TopologyHash>, Stopped> {
        let loss = Loss { target: target.clone(), remaining: Remaining::GONE };
        let faults = self.directory.resolve(&[loss]).unwrap_or_default();
        let Ok(puncture) = self.topology().puncture(&faults) else { return Ok(None) };
        let role = |old: &canopy_topology::Rank| roles.get(old.index()).copied().unwrap_or(0);
        let roles: Vec<u32> = puncture.survivors.iter().map(role).collect();
        let Some(graph) = graph_of(&puncture.topology, &roles) else { return Ok(None) };
        let analysis = analyse(&graph, budget)?;
        Ok(analysis.solution().map(|solution| form_hash(&solution.form(&graph))))
    }
}

#[cfg(test)]
mod tests {
    use canopy_canonical::{Comparison, WORK_STANDARD, compare};
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    const BUDGET: Budget<'_> = Budget { work_max: WORK_STANDARD, stop: &|| false };

    fn groups(expression: &str, kinds: &[FaultKind], roles: &[u32]) -> Vec<(String, usize)> {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let directory = Directory::new(&topology);
        let found = singles(&directory, kinds, roles, BUDGET).unwrap();
        for group in &found {
            let rest = |target: &Target| {
                let loss = Loss { target: target.clone(), remaining: Remaining::GONE };
                let faults = directory.resolve(&[loss]).unwrap();
                graph_of(&topology.punctured(&faults).unwrap(), &[]).unwrap()
            };
            let first = rest(&group.targets[0]);
            for target in &group.targets {
                let same = compare(&first, &rest(target), BUDGET).unwrap();
                assert!(
                    matches!(same, Comparison::Same { .. }),
                    "{expression}: {target} is not like {}",
                    group.targets[0]
                );
                assert_eq!(FaultKind::named(target.kind()).map(whole), Some(whole(group.kind)));
            }
        }
        found.iter().map(|group| (group.targets[0].to_string(), group.targets.len())).collect()
    }

    /// All links, for those of some place.
    fn whole(kind: FaultKind) -> FaultKind {
        match kind {
            FaultKind::LinksInside | FaultKind::LinksOutside => FaultKind::Links,
            kind => kind,
        }
    }

    fn named(names: &[(&str, usize)]) -> Vec<(String, usize)> {
        names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn what_is_alike_is_told_together_and_all_is_told() {
        let boxes = groups("dgx-a100:boxes=2", &SINGLE_KINDS, &[]);
        assert_eq!(
            boxes,
            named(&[
                ("link:b0g0=b0nv", 16),
                ("link:b0g0=ib", 16),
                ("nic:b0g0", 16),
                ("gpu:b0g0", 16),
                ("host:b0", 2),
                ("switch:b0nv", 2),
                ("switch:ib", 1),
            ])
        );
        assert_eq!(groups("torus:4x4", &SINGLE_KINDS, &[]), named(&[("link:00=01", 32), ("gpu:00", 16)]));
        assert_eq!(groups("dgx-a100:boxes=2", &[FaultKind::LinksInside], &[]), named(&[("link:b0g0=b0nv", 16)]));
        assert_eq!(groups("dgx-a100:boxes=2", &[FaultKind::LinksOutside], &[]), named(&[("link:b0g0=ib", 16)]));
        let by_place = [FaultKind::LinksOutside, FaultKind::LinksInside];
        assert_eq!(groups("dgx-a100:boxes=2", &by_place, &[]), boxes[..2]);
        assert_eq!(groups("dgx-a100:boxes=2", &FaultKind::ALL, &[]), boxes);
        let total = |groups: &[(String, usize)]| groups.iter().map(|(_, count)| count).sum::<usize>();
        let mi250 = groups("mi250:boxes=2", &[FaultKind::Links], &[]);
        assert_eq!(total(&mi250), 2 * 28 + 32);
        assert_eq!(
            groups("mi250:boxes=2", &[FaultKind::Boxes, FaultKind::Nics], &[]).last().unwrap(),
            &("host:b0".to_owned(), 2)
        );
    }

    #[test]
    fn roles_and_damage_tell_apart() {
        let roots = groups("ring:4", &[FaultKind::Gpus], &[1]);
        assert_eq!(roots, named(&[("gpu:0", 1), ("gpu:1", 2), ("gpu:2", 1)]));
        let damaged = groups("dgx-a100:boxes=2,degrade=b0g3>ib*1/2", &[FaultKind::Nics, FaultKind::Boxes], &[]);
        assert_eq!(
            damaged,
            named(&[("nic:b0g0", 7), ("nic:b0g3", 1), ("nic:b1g0", 8), ("host:b0", 1), ("host:b1", 1)])
        );
        assert_eq!(groups("uniring:n=4,d=1", &[FaultKind::Links], &[]), named(&[("link:0>1", 4)]));
        assert_eq!(groups("dgx-a100", &[FaultKind::Boxes, FaultKind::Nics], &[]), named(&[]));
    }
}
