//! Symmetries of a network that keep its groups, and what they make alike.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use canopy_canonical::{Automorphism, Budget, Graph, Stopped, automorphisms};
use canopy_optimize::Stop;

use crate::groups::commodity::Commodity;
use crate::groups::joined::{Classes, Joined};
use crate::groups::patience::Asking;
use crate::groups::problem::{GroupKind, GroupProblem, GroupsError};

/// Nodes of the network, then one for each group: verified permutations keep who is a member of what.
#[derive(Clone, Debug)]
pub(crate) struct Symmetry {
    generators: Vec<Automorphism>,
    node_count: usize,
    /// By node and group, the generators that move it.
    movers: Vec<Vec<u32>>,
}

/// Weights of the arcs between a member and its group: a member, and the root.
const MEMBER: [u64; 2] = [0, 1];
const ROOT: [u64; 2] = [0, 2];
/// Work of looking up where a generator brings something.
const STEP_WORK: usize = 16;

impl Symmetry {
    /// The symmetries that are found with some work.
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn of(problem: &GroupProblem, budget: Budget<'_>) -> Result<Self, Stopped> {
        let Some(graph) = graph_with_groups(problem) else { return Ok(Self::none(problem)) };
        Ok(Self::new(problem, automorphisms(&graph, budget)?))
    }

    /// None at all.
    pub(crate) fn none(problem: &GroupProblem) -> Self {
        Self::new(problem, Vec::new())
    }

    fn new(problem: &GroupProblem, generators: Vec<Automorphism>) -> Self {
        let node_count = problem.graph().node_count as usize;
        let mut movers = vec![Vec::new(); node_count + problem.groups().len()];
        for (number, generator) in (0_u32..).zip(&generators) {
            generator.moves().iter().for_each(|&(node, _)| movers[node as usize].push(number));
        }
        Self { generators, node_count, movers }
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
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn arcs(
        &self,
        problem: &GroupProblem,
        with_reverse: bool,
        stop: &dyn Stop,
    ) -> Result<Classes, GroupsError> {
        let mut asking = Asking::of(stop);
        let arcs = &problem.graph().arcs;
        let table = ArcTable::of(problem);
        let mut around: Vec<Vec<u32>> = vec![Vec::new(); self.node_count];
        for (number, arc) in (0_u32..).zip(arcs) {
            around[arc.from as usize].push(number);
            around[arc.to as usize].push(number);
        }
        let mut joined = Joined::new(arcs.len());
        for generator in &self.generators {
            let moved = generator.moves().iter().take_while(|&&(node, _)| (node as usize) < self.node_count);
            for &number in moved.flat_map(|&(node, _)| &around[node as usize]) {
                asking.before(STEP_WORK)?;
                let image = table.between(table.ends(number).map(|node| generator.image(node)));
                joined.join(number as usize, image.expect("a verified symmetry keeps arcs") as usize);
            }
        }
        if with_reverse {
            for number in (0_u32..).take(arcs.len()) {
                if let Some(reverse) = problem.reverse(number) {
                    joined.join(number as usize, reverse as usize);
                }
            }
        }
        Ok(joined.classes())
    }

    /// Commodities that are exchanged.
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn commodities(
        &self,
        problem: &GroupProblem,
        all: &[Commodity],
        stop: &dyn Stop,
    ) -> Result<Classes, GroupsError> {
        let mut asking = Asking::of(stop);
        let place: HashMap<Commodity, usize> = all.iter().enumerate().map(|(place, &one)| (one, place)).collect();
        let positions: Vec<HashMap<u32, u32>> =
            problem.groups().iter().map(|group| group.members.iter().copied().zip(0_u32..).collect()).collect();
        let mut joined = Joined::new(all.len());
        for generator in &self.generators {
            for (number, commodity) in all.iter().enumerate() {
                asking.before(STEP_WORK)?;
                let group = self.image_of_group(generator, commodity.group);
                let root = commodity.root.map(|root| {
                    let node = generator.image(problem.groups()[commodity.group].members[root as usize]);
                    positions[group][&node]
                });
                joined.join(number, place[&Commodity { group, root }]);
            }
        }
        Ok(joined.classes())
    }

    /// Positions of members of a group of which the symmetries that keep it make others out of: one for each class of
    /// its members. O(members of all groups that are like it · generators).
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn roots(&self, problem: &GroupProblem, group: usize, stop: &dyn Stop) -> Result<Vec<u32>, GroupsError> {
        let members = &problem.groups()[group].members;
        let mut seen = HashSet::new();
        let mut roots = Vec::new();
        for (position, &member) in (0_u32..).zip(members) {
            if !seen.contains(&member) {
                let image = |node, image: &dyn Fn(u32) -> u32| Some(image(node));
                let orbit = self.orbit((group, member), |&node| [node; 2], image, |_| None, stop)?;
                seen.extend(orbit.into_iter().filter(|(other, _)| *other == group).map(|(_, node)| node));
                roots.push(position);
            }
        }
        Ok(roots)
    }

    /// All that symmetries make of an arc of a group: groups with their arcs; those of opposite directions are taken
    /// together on request. The pairs of one group are what the symmetries that keep it make of the arc.
    ///
    /// O(pairs · generators that move them).
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn arcs_of_groups(
        &self,
        arcs: &ArcTable<'_>,
        first: (usize, u32),
        with_reverse: bool,
        stop: &dyn Stop,
    ) -> Result<Vec<(usize, u32)>, GroupsError> {
        let ends = |&arc: &u32| arcs.ends(arc);
        let moved = |arc, image: &dyn Fn(u32) -> u32| arcs.between(arcs.ends(arc).map(image));
        self.orbit(first, ends, moved, |arc| arcs.reverse(arc).filter(|_| with_reverse), stop)
    }

    /// All that symmetries make of a group and one of its things.
    ///
    /// `nodes`: those that the thing stands on; `moved`: what a permutation of nodes makes of it; `same`: one that is
    /// taken together with it.
    fn orbit<T: Copy + Eq + Hash>(
        &self,
        first: (usize, T),
        nodes: impl Fn(&T) -> [u32; 2],
        moved: impl Fn(T, &dyn Fn(u32) -> u32) -> Option<T>,
        same: impl Fn(T) -> Option<T>,
        stop: &dyn Stop,
    ) -> Result<Vec<(usize, T)>, GroupsError> {
        let mut asking = Asking::of(stop);
        let mut seen = HashSet::from([first]);
        let mut orbit = vec![first];
        let mut next = 0;
        while let Some(&(group, thing)) = orbit.get(next) {
            next += 1;
            let mut add = |one| {
                if seen.insert(one) {
                    orbit.push(one);
                }
            };
            if let Some(thing) = same(thing) {
                add((group, thing));
            }
            let [from, to] = nodes(&thing);
            for &number in [self.node_of(group), from, to].iter().flat_map(|&node| &self.movers[node as usize]) {
                asking.before(STEP_WORK)?;
                let generator = &self.generators[number as usize];
                let image = moved(thing, &|node| generator.image(node));
                add((self.image_of_group(generator, group), image.expect("a verified symmetry keeps arcs")));
            }
        }
        Ok(orbit)
    }
}

/// The arcs of a network by their ends.
pub(crate) struct ArcTable<'a> {
    problem: &'a GroupProblem,
    between: HashMap<[u32; 2], u32>,
}

impl<'a> ArcTable<'a> {
    pub(crate) fn of(problem: &'a GroupProblem) -> Self {
        let arcs = (0_u32..).zip(&problem.graph().arcs);
        Self { problem, between: arcs.map(|(number, arc)| ([arc.from, arc.to], number)).collect() }
    }

    fn ends(&self, arc: u32) -> [u32; 2] {
        let arc = self.problem.graph().arcs[arc as usize];
        [arc.from, arc.to]
    }

    fn between(&self, ends: [u32; 2]) -> Option<u32> {
        self.between.get(&ends).copied()
    }

    fn reverse(&self, arc: u32) -> Option<u32> {
        self.problem.reverse(arc)
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
    /// Bytes of the images of so many groups, with the tables that they are made by.
    pub(crate) fn images_bytes(&self, group_count: usize) -> u64 {
        let tables = (self.generators.len() + group_count) as u64;
        tables.saturating_mul((self.node_count + group_count) as u64).saturating_mul(4)
    }

    /// O(groups · nodes · generators).
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn images(&self, group_count: usize, stop: &dyn Stop) -> Result<Images, GroupsError> {
        let mut asking = Asking::of(stop);
        let mut images = Images { of: vec![usize::MAX; group_count], tables: vec![Vec::new(); group_count] };
        let mut tables: Vec<Vec<u32>> = Vec::with_capacity(self.generators.len());
        for generator in &self.generators {
            asking.before(self.node_count + group_count)?;
            tables.push(generator.to_table(self.node_count + group_count));
        }
        for first in 0..group_count {
            if images.of[first] != usize::MAX {
                continue;
            }
            images.of[first] = first;
            images.tables[first] = (0_u32..).take(self.node_count).collect();
            let mut open = vec![first];
            while let Some(group) = open.pop() {
                for table in &tables {
                    asking.before(1)?;
                    let next = table[self.node_of(group) as usize] as usize - self.node_count;
                    if images.of[next] == usize::MAX {
                        asking.before(self.node_count)?;
                        images.of[next] = first;
                        images.tables[next] = images.tables[group].iter().map(|&node| table[node as usize]).collect();
                        open.push(next);
                    }
                }
            }
        }
        Ok(images)
    }
}

/// The network with a node for each group, joined with its members.
fn graph_with_groups(problem: &GroupProblem) -> Option<Graph> {
    let node_count = problem.graph().node_count;
    let kinds = kinds(problem);
    let relays = problem.relays().iter().map(|&relays| u64::from(relays));
    let groups = kinds.into_iter().map(|kind| 2 + kind);
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
