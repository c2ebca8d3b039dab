//! Symmetries of a network that keep its groups, and what they make alike.

use std::collections::HashMap;

use canopy_canonical::{Analysis, Automorphism, Budget, Graph, Stopped, analyse};

use crate::commodity::Commodity;
use crate::joined::{Classes, Joined};
use crate::problem::{GroupKind, GroupProblem};

/// Nodes of the network, then one for each group: verified permutations keep who is a member of what.
#[derive(Clone, Debug)]
pub(crate) struct Symmetry {
    generators: Vec<Automorphism>,
    node_count: usize,
}

/// Weights of the arcs between a member and its group: a member, and the root.
const MEMBER: [u64; 2] = [0, 1];
const ROOT: [u64; 2] = [0, 2];

impl Symmetry {
    /// The symmetries that are found with some work; those that keep a group in its place, if one is named.
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn of(problem: &GroupProblem, kept: Option<usize>, budget: Budget<'_>) -> Result<Self, Stopped> {
        let Some(graph) = graph_with_groups(problem, kept) else { return Ok(Self::none(problem)) };
        let Analysis { generators, .. } = analyse(&graph, budget)?;
        Ok(Self { generators, node_count: problem.graph().node_count as usize })
    }

    /// None at all.
    pub(crate) fn none(problem: &GroupProblem) -> Self {
        Self { generators: Vec::new(), node_count: problem.graph().node_count as usize }
    }

    /// Whether nothing is exchanged.
    pub(crate) const fn is_none(&self) -> bool {
        self.generators.is_empty()
    }

    /// The node that stands for a group.
    pub(crate) fn node_of(&self, group: usize) -> u32 {
        u32::try_from(self.node_count + group).expect("nodes and groups are counted in u32")
    }

    /// Where a generator brings a group.
    pub(crate) fn image_of_group(&self, generator: &Automorphism, group: usize) -> usize {
        generator.image(self.node_of(group)) as usize - self.node_count
    }

    /// Arcs that are exchanged; those of opposite directions are taken together on request.
    pub(crate) fn arcs(&self, problem: &GroupProblem, with_reverse: bool) -> Classes {
        let arcs = &problem.graph().arcs;
        let between: HashMap<(u32, u32), u32> =
            (0_u32..).zip(arcs).map(|(number, arc)| ((arc.from, arc.to), number)).collect();
        let mut around: Vec<Vec<u32>> = vec![Vec::new(); self.node_count];
        for (number, arc) in (0_u32..).zip(arcs) {
            around[arc.from as usize].push(number);
            around[arc.to as usize].push(number);
        }
        let mut joined = Joined::new(arcs.len());
        for generator in &self.generators {
            let moved = generator.moves().iter().take_while(|&&(node, _)| (node as usize) < self.node_count);
            for &number in moved.flat_map(|&(node, _)| &around[node as usize]) {
                let arc = arcs[number as usize];
                let image = between.get(&(generator.image(arc.from), generator.image(arc.to)));
                joined.join(number as usize, *image.expect("a verified symmetry keeps arcs") as usize);
            }
        }
        if with_reverse {
            for number in (0_u32..).take(arcs.len()) {
                if let Some(reverse) = problem.reverse(number) {
                    joined.join(number as usize, reverse as usize);
                }
            }
        }
        joined.classes()
    }

    /// Commodities that are exchanged.
    pub(crate) fn commodities(&self, problem: &GroupProblem, all: &[Commodity]) -> Classes {
        let place: HashMap<Commodity, usize> = all.iter().enumerate().map(|(place, &one)| (one, place)).collect();
        let positions: Vec<HashMap<u32, u32>> =
            problem.groups().iter().map(|group| group.members.iter().copied().zip(0_u32..).collect()).collect();
        let mut joined = Joined::new(all.len());
        for generator in &self.generators {
            for (number, commodity) in all.iter().enumerate() {
                let group = self.image_of_group(generator, commodity.group);
                let root = commodity.root.map(|root| {
                    let node = generator.image(problem.groups()[commodity.group].members[root as usize]);
                    positions[group][&node]
                });
                joined.join(number, place[&Commodity { group, root }]);
            }
        }
        joined.classes()
    }

    /// Positions of members of a group of which the symmetries that keep it make others out of: one for each class of
    /// its members.
    pub(crate) fn roots(problem: &GroupProblem, group: usize, budget: Budget<'_>) -> Vec<u32> {
        let kept = Self::of(problem, Some(group), budget).unwrap_or_else(|_stopped| Self::none(problem));
        let mut joined = Joined::new(kept.node_count);
        for generator in &kept.generators {
            for &(from, to) in generator.moves().iter().filter(|&&(node, _)| (node as usize) < kept.node_count) {
                joined.join(from as usize, to as usize);
            }
        }
        let members = &problem.groups()[group].members;
        let mut seen = Vec::new();
        let mut roots = Vec::new();
        for (position, &member) in (0_u32..).zip(members) {
            let class = joined.of(member as usize);
            if !seen.contains(&class) {
                seen.push(class);
                roots.push(position);
            }
        }
        roots
    }
}

/// For each group, the first one that symmetries make it of, and how they bring the nodes of that one to it.
pub(crate) struct Images {
    /// By group, the group it is an image of.
    pub(crate) of: Vec<usize>,
    /// By group, where each node of the network goes.
    pub(crate) tables: Vec<Vec<u32>>,
}

impl Symmetry {
    /// O(groups · nodes · generators).
    pub(crate) fn images(&self, group_count: usize) -> Images {
        let mut images = Images { of: vec![usize::MAX; group_count], tables: vec![Vec::new(); group_count] };
        let tables: Vec<Vec<u32>> =
            self.generators.iter().map(|generator| generator.to_table(self.node_count + group_count)).collect();
        for first in 0..group_count {
            if images.of[first] != usize::MAX {
                continue;
            }
            images.of[first] = first;
            images.tables[first] = (0_u32..).take(self.node_count).collect();
            let mut open = vec![first];
            while let Some(group) = open.pop() {
                for table in &tables {
                    let next = table[self.node_of(group) as usize] as usize - self.node_count;
                    if images.of[next] == usize::MAX {
                        images.of[next] = first;
                        images.tables[next] = images.tables[group].iter().map(|&node| table[node as usize]).collect();
                        open.push(next);
                    }
                }
            }
        }
        images
    }
}

/// The network with a node for each group, joined with its members.
fn graph_with_groups(problem: &GroupProblem, kept: Option<usize>) -> Option<Graph> {
    let node_count = problem.graph().node_count;
    let kinds = kinds(problem);
    let relays = problem.relays().iter().map(|&relays| u64::from(relays));
    let groups = (0..problem.groups().len()).map(|group| if kept == Some(group) { 2 } else { 3 + kinds[group] });
    let colours = relays.chain(groups).collect();
    let links = problem.graph().arcs.iter();
    // Capacities are at least 1, so that no link is taken for a membership.
    let mut arcs: Vec<canopy_canonical::Arc> =
        links.map(|arc| canopy_canonical::Arc { from: arc.from, to: arc.to, weight: [arc.capacity, 0] }).collect();
    for (number, group) in (0_u32..).zip(problem.groups()) {
        for (position, &member) in (0_u32..).zip(&group.members) {
            let weight = if group.kind.root() == Some(position) { ROOT } else { MEMBER };
            arcs.push(canopy_canonical::Arc { from: member, to: node_count.checked_add(number)?, weight });
        }
    }
    Graph::new(colours, arcs).ok()
}

/// By group, a number for what it does, how much, and the rate at which it is frozen.
fn kinds(problem: &GroupProblem) -> Vec<u64> {
    let plain = |kind: GroupKind| match kind {
        GroupKind::Broadcast(_) => GroupKind::Broadcast(0),
        GroupKind::Reduce(_) => GroupKind::Reduce(0),
        GroupKind::Scatter(_) => GroupKind::Scatter(0),
        GroupKind::Gather(_) => GroupKind::Gather(0),
        other => other,
    };
    let mut known = HashMap::new();
    let mut kinds = Vec::with_capacity(problem.groups().len());
    for (group, frozen) in problem.groups().iter().zip(problem.frozen()) {
        let next = known.len() as u64;
        kinds.push(*known.entry((plain(group.kind), group.size, frozen)).or_insert(next));
    }
    kinds
}
