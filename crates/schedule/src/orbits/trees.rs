//! The trees that an orbit forest amounts to, written down: for programs that take trees, where there are few ranks.

use std::collections::BTreeMap;

use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};

use super::{Orbits, Template};
use crate::forest::{Action, Carrier, Forest, Hop, Phase, Tree};
use crate::route::RouteInterner;
use crate::stages::{SeatError, Seating};

/// Most generators: as each has an order of 2 or more, there are seats for no more.
const GENERATORS_MAX: usize = 32;
/// Most hops of all trees.
const HOPS_MAX: u64 = 1 << 25;

/// Why an orbit forest is not written as trees.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ExpansionError {
    #[error(transparent)]
    Seats(#[from] SeatError),
    #[error("{hops} hops of trees are more than {HOPS_MAX}, the limit")]
    TooManyHops { hops: u128 },
    #[error("no link leads from node {from} to node {to} of the healthy network")]
    NoLink { from: u32, to: u32 },
    #[error("template {template} and the generators do not make trees; check the schedule first")]
    Broken { template: usize },
}

/// A hop with the nodes that it passes, both ends included.
type Step = Vec<u32>;

/// The hops of one tree, each after the one that brings its sender the chunks, and their chunks.
struct Moved {
    weight: u64,
    steps: Vec<Step>,
}

impl Orbits {
    /// The trees of all ranks: every template, moved by every element of the group, with its patches.
    ///
    /// * **Errors.** [`ExpansionError`]. What the checker refuses may come out as wrong trees, or as
    ///   [`Broken`](ExpansionError::Broken).
    /// * **Cost.** O(N² · templates) time and memory.
    pub fn trees(&self, topology: &Topology) -> Result<Forest, ExpansionError> {
        let seating = self.seating(topology.rank_count())?;
        let each = u128::from(self.seat_count) * self.templates.len() as u128;
        let hops = u128::from(self.seat_count) * each * self.actions.len() as u128;
        if hops > u128::from(HOPS_MAX) || topology.nodes().len() as u128 > u128::from(HOPS_MAX) {
            return Err(ExpansionError::TooManyHops { hops });
        }
        let by_root = Expansion::new(self, topology, &seating)?.all()?;
        let network = Healthy { topology, seating: &seating, seat_count: self.seat_count };
        let mut routes = RouteInterner::default();
        let (mut carriers, mut hops, mut phases) = (Vec::new(), Vec::new(), Vec::new());
        for &action in &self.actions {
            let mut trees: Vec<Tree> = Vec::new();
            for (root, moved) in by_root.iter().flat_map(|(&root, all)| all.iter().map(move |moved| (root, moved))) {
                let start = position(hops.len());
                let mut of_tree = Vec::with_capacity(moved.steps.len());
                for step in &moved.steps {
                    of_tree.push(network.hop(step, action)?);
                }
                if action == Action::Reduce {
                    of_tree.reverse();
                }
                for (from, to, links) in of_tree {
                    let carrier = position(carriers.len());
                    carriers.push(Carrier { route: routes.intern(&links), chunk_count: moved.weight });
                    hops.push(Hop { from, to, carriers: carrier..carrier + 1 });
                }
                let hops = start..position(hops.len());
                trees.push(Tree { root: Rank::new(root), multiplicity: moved.weight, hops });
            }
            phases.push(Phase { action, trees });
        }
        Ok(Forest { chunks_per_share: self.chunks_per_share, routes: routes.finish(), carriers, hops, phases })
    }
}

/// An index in tables that have fewer than 2³² entries, as there are at most 2²⁵ hops.
fn position(index: usize) -> u32 {
    u32::try_from(index).expect("the number of hops was limited")
}

/// Links of the network by nodes of the healthy one.
struct Healthy<'a> {
    topology: &'a Topology,
    seating: &'a Seating,
    seat_count: u32,
}

impl Healthy<'_> {
    fn node(&self, node: u32) -> Option<NodeIndex> {
        let number = match node.checked_sub(self.seat_count) {
            None => self.seating.rank(0, node)?,
            Some(switch) => self.topology.rank_count().checked_add(switch)?,
        };
        (number < u32::try_from(self.topology.nodes().len()).ok()?).then(|| NodeIndex::new(number))
    }

    /// The fastest link, the first among equals.
    fn link(&self, from: u32, to: u32) -> Option<LinkIndex> {
        let (from, to) = (self.node(from)?, self.node(to)?);
        let parallel = self.topology.links_from(from).filter(|&link| self.topology.link(link).to == to);
        parallel.reduce(
            |best, link| {
                if self.topology.link(link).capacity > self.topology.link(best).capacity { link } else { best }
            },
        )
    }

    fn hop(&self, step: &Step, action: Action) -> Result<(Rank, Rank, Vec<LinkIndex>), ExpansionError> {
        let mut nodes = step.clone();
        if action == Action::Reduce {
            nodes.reverse();
        }
        let link =
            |pair: &[u32]| self.link(pair[0], pair[1]).ok_or(ExpansionError::NoLink { from: pair[0], to: pair[1] });
        let links = nodes.windows(2).map(link).collect::<Result<Vec<_>, _>>()?;
        let ends = nodes.first().and_then(|&from| self.node(from)).zip(nodes.last().and_then(|&to| self.node(to)));
        let rank = |node: NodeIndex| self.topology.rank_of(node);
        let ranks = ends.and_then(|(from, to)| rank(from).zip(rank(to)));
        let (from, to) = ranks.ok_or(ExpansionError::NoLink { from: nodes[0], to: nodes[nodes.len() - 1] })?;
        Ok((from, to, links))
    }
}

/// The templates on their way through the group.
struct Expansion<'a> {
    orbits: &'a Orbits,
    seating: &'a Seating,
    images: Vec<Vec<u32>>,
    /// By template, root and child.
    patches: BTreeMap<(usize, u32, u32), u32>,
    /// By rank.
    found: BTreeMap<u32, Vec<Moved>>,
}

impl<'a> Expansion<'a> {
    fn new(orbits: &'a Orbits, topology: &Topology, seating: &'a Seating) -> Result<Self, ExpansionError> {
        let switches = topology.nodes().len() - topology.rank_count() as usize;
        let nodes = orbits.seat_count as usize + switches;
        let broken = ExpansionError::Broken { template: 0 };
        let mut images = Vec::new();
        let mut elements = 1_u64;
        for generator in &orbits.generators {
            elements = elements.saturating_mul(generator.order.into());
            let image = |node| u32::try_from(node).ok().and_then(|node| generator.motion.image(node));
            let of_all: Option<Vec<u32>> =
                (0..nodes).map(|node| image(node).filter(|&image| (image as usize) < nodes)).collect();
            images.push(of_all.ok_or_else(|| broken.clone())?);
        }
        if elements > orbits.seat_count.into() || orbits.generators.len() > GENERATORS_MAX {
            return Err(broken);
        }
        let mut patches = BTreeMap::new();
        for patch in &orbits.patches {
            let template = patch.template as usize;
            patches.extend(patch.roots.iter().map(|&root| ((template, root, patch.child), patch.parent)));
        }
        Ok(Self { orbits, seating, images, patches, found: BTreeMap::new() })
    }

    /// Trees of all ranks, those of a rank in the order of templates.
    fn all(mut self) -> Result<BTreeMap<u32, Vec<Moved>>, ExpansionError> {
        for (number, template) in self.orbits.templates.iter().enumerate() {
            if template.parents.len() != self.orbits.seat_count as usize {
                return Err(ExpansionError::Broken { template: number });
            }
            let nodes = self.images.first().map_or(self.orbits.seat_count as usize, Vec::len);
            let identity = (0..u32::try_from(nodes).unwrap_or(u32::MAX)).collect();
            self.visit(0, identity, number, template)?;
        }
        Ok(self.found)
    }

    /// Moves a template by all elements that the generators from a level on make, after one of the others.
    fn visit(
        &mut self,
        level: usize,
        mut element: Vec<u32>,
        number: usize,
        template: &Template,
    ) -> Result<(), ExpansionError> {
        let Some(generator) = self.orbits.generators.get(level) else {
            return self.place(&element, number, template);
        };
        for _ in 0..generator.order {
            self.visit(level + 1, element.clone(), number, template)?;
            element = element.iter().map(|&node| self.images[level][node as usize]).collect();
        }
        Ok(())
    }

    /// Writes the image of a template.
    fn place(&mut self, element: &[u32], number: usize, template: &Template) -> Result<(), ExpansionError> {
        let broken = || ExpansionError::Broken { template: number };
        let image = |node: u32| element.get(node as usize).copied().ok_or_else(broken);
        let root = image(template.root)?;
        let Some(rank) = self.seating.rank(0, root) else { return Ok(()) };
        let mut into: Vec<Option<Step>> = vec![None; template.parents.len()];
        for (child, &parent) in (0..).zip(&template.parents).filter(|&(child, _)| child != template.root) {
            let child_image = image(child)?;
            let mut step = vec![image(parent)?];
            for &switch in template.over.get(&child).into_iter().flatten() {
                step.push(image(switch)?);
            }
            step.push(child_image);
            if let Some(&parent) = self.patches.get(&(number, root, child_image)) {
                step = vec![parent, child_image];
            }
            *into.get_mut(child_image as usize).ok_or_else(broken)? = Some(step);
        }
        let steps = in_order(root, into, self.seating).ok_or_else(broken)?;
        self.found.entry(rank).or_default().push(Moved { weight: template.weight, steps });
        Ok(())
    }
}

/// Hops from the root on, without those into lost seats. `None` where not every rank is reached.
fn in_order(root: u32, into: Vec<Option<Step>>, seating: &Seating) -> Option<Vec<Step>> {
    let mut below: Vec<Vec<Step>> = vec![Vec::new(); into.len()];
    for step in into.into_iter().flatten() {
        below.get_mut(*step.first()? as usize)?.push(step);
    }
    let (mut steps, mut reached, mut at) = (Vec::new(), vec![root], 0);
    while let Some(&from) = reached.get(at) {
        at += 1;
        for step in below[from as usize].drain(..) {
            let to = *step.last()?;
            if seating.rank(0, to).is_some() {
                reached.push(to);
                steps.push(step);
            }
        }
    }
    (reached.len() == seating.ranks_in(0..1) as usize).then_some(steps)
}
