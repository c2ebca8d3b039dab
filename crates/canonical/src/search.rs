//! The search: solve components apart, single out nodes where nothing else tells them apart.

mod branch;

use crate::automorphism::{Automorphism, Verifier};
use crate::budget::{Ended, Meter};
use crate::graph::Graph;
use crate::orbits::Orbits;
use crate::partition::Partition;
use crate::profile::{look_alike, profiles};
use crate::reduce::Part;
use crate::refine::Refiner;

/// Parts within parts, at most: every one takes some 2 KiB of the stack.
const DEPTH_MAX: u32 = 256;

/// What is found out about a part with cells.
pub(crate) struct Solved {
    /// Its nodes, in an order that isomorphic parts share, whatever their numbers.
    pub(crate) order: Vec<u32>,
    /// They make all permutations that keep the part and its cells.
    pub(crate) generators: Vec<Automorphism>,
    /// The number of these permutations is the product.
    pub(crate) factors: Vec<u32>,
}

/// How far a search has come.
#[derive(Clone, Copy)]
struct Progress {
    /// Parts that the one at hand is within.
    depth: u32,
    /// Whether nodes were told apart by what they see from afar, or by singling one out.
    is_profiled: bool,
}

impl Progress {
    /// One part further in.
    const fn inside(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

/// A search on one graph.
pub(crate) struct Search<'a> {
    graph: &'a Graph,
    verifier: Verifier<'a>,
    refiner: Refiner,
    meter: Meter<'a>,
    /// Whether only automorphisms are wanted, and no form.
    forms_nothing: bool,
    /// What was found, as far as it joins orbits.
    found: Vec<Automorphism>,
    orbits: Orbits,
}

impl<'a> Search<'a> {
    pub(crate) fn new(graph: &'a Graph, meter: Meter<'a>) -> Self {
        let (node_count, verifier) = (graph.node_count(), Verifier::new(graph));
        let (refiner, orbits) = (Refiner::new(node_count), Orbits::new(node_count));
        Self { graph, verifier, refiner, meter, forms_nothing: false, found: Vec::new(), orbits }
    }

    /// A search for automorphisms alone: the order that it finds is not canonical.
    pub(crate) fn for_automorphisms(graph: &'a Graph, meter: Meter<'a>) -> Self {
        Self { forms_nothing: true, ..Self::new(graph, meter) }
    }

    /// Solves the whole graph, given cells that cannot be refined.
    pub(crate) fn run(&mut self, partition: &Partition) -> Result<Solved, Ended> {
        let whole = Part::whole(self.graph);
        self.solve(&whole, partition, Progress { depth: 0, is_profiled: false })
    }

    /// What was found on the way, however the search ended: automorphisms, and what they join.
    pub(crate) fn into_found(self) -> (Vec<Automorphism>, Orbits) {
        (self.found, self.orbits)
    }

    /// Solves a part with cells that cannot be refined.
    fn solve(&mut self, part: &Part, partition: &Partition, progress: Progress) -> Result<Solved, Ended> {
        if partition.is_discrete() {
            return Ok(Solved { order: partition.order().to_vec(), generators: Vec::new(), factors: Vec::new() });
        }
        let components = self.components(part, partition, progress.depth)?;
        if let [component] = &components[..] {
            let mut solved = self.solve_connected(component, progress)?;
            to_places(&mut solved.order, component);
            return Ok(solved);
        }
        let (mut generators, mut factors) = (Vec::new(), Vec::new());
        let mut written = Vec::with_capacity(components.len());
        for component in components {
            let order = if component.node_count() == 1 {
                vec![0]
            } else {
                let cells = Partition::of_tags(&component.tags);
                let solved = self.solve(&component, &cells, progress.inside())?;
                generators.extend(solved.generators);
                factors.extend(solved.factors);
                solved.order
            };
            written.push(self.write(component, order)?);
        }
        written.sort_by(|a, b| a.text.cmp(&b.text));
        for alike in written.chunk_by(|a, b| a.text == b.text) {
            for (two, place) in alike.windows(2).zip(2_u32..) {
                let pairs = two[0].names().zip(two[1].names()).flat_map(|(a, b)| [(a, b), (b, a)]);
                generators.push(self.record(pairs)?);
                factors.push(place);
            }
        }
        let order = written.iter().flat_map(|component| component.places()).collect();
        Ok(Solved { order, generators, factors })
    }

    /// One way to write a part down with cells that cannot be refined: that of the nodes which come first wherever one is
    /// singled out. Isomorphic parts often, but not always, read alike.
    ///
    /// Components are told apart once. Within them, nodes are singled out in place until none is left, which looks at every
    /// link a few times only, however many nodes that takes.
    fn walk(&mut self, part: &Part, partition: &Partition, depth: u32) -> Result<Vec<u32>, Ended> {
        let components = self.components(part, partition, depth)?;
        let mut written = Vec::with_capacity(components.len());
        for component in components {
            let mut cells = Partition::of_tags(&component.tags);
            let mut first_open = 0;
            while let Some(cell) = cells.first_open(first_open) {
                first_open = cell;
                let node = cells.members(cell)[0];
                cells.single_out(node);
                let splitter = cells.cell_of(node);
                self.refiner.refine(&component, &mut cells, [splitter], &mut self.meter)?;
            }
            written.push(self.write(component, cells.order().to_vec())?);
        }
        written.sort_by(|a, b| a.text.cmp(&b.text));
        Ok(written.iter().flat_map(|component| component.places()).collect())
    }

    fn components(&mut self, part: &Part, partition: &Partition, depth: u32) -> Result<Vec<Part>, Ended> {
        if depth > DEPTH_MAX {
            return Err(Ended::Spent);
        }
        self.meter.spend(8 * part.node_count() + 3 * part.pair_count())?;
        Ok(part.components(partition, self.graph))
    }

    fn write(&mut self, part: Part, order: Vec<u32>) -> Result<Written, Ended> {
        self.meter.spend(part.node_count() + 2 * part.pair_count())?;
        let text = part.certificate(&order, |node| part.tags[node as usize]);
        Ok(Written { part, order, text })
    }

    /// Solves a part that cannot be reduced.
    fn solve_connected(&mut self, part: &Part, progress: Progress) -> Result<Solved, Ended> {
        let mut partition = Partition::of_tags(&part.tags);
        let needs_none = progress.is_profiled || self.forms_nothing && look_alike(part, &partition, &mut self.meter)?;
        if !needs_none && let Some(profiles) = profiles(part, &partition, &mut self.meter)? {
            let cells = split_by(&mut partition, &profiles);
            if !cells.is_empty() {
                self.refiner.refine(part, &mut partition, cells, &mut self.meter)?;
                return self.solve(part, &partition, Progress { is_profiled: true, ..progress });
            }
        }
        self.branch(part, &partition, progress)
    }

    /// Takes note of a permutation of the graph. It was found by writing parts down alike, so it keeps the graph.
    fn record(&mut self, moves: impl IntoIterator<Item = (u32, u32)>) -> Result<Automorphism, Ended> {
        let automorphism = self.verifier.verified(moves, &mut self.meter)?;
        debug_assert!(automorphism.is_some(), "parts that read alike are alike");
        // A mistake of ours ends the search without a result rather than with a wrong one.
        let automorphism = automorphism.ok_or(Ended::Spent)?;
        let mut joins = false;
        for &(from, to) in automorphism.moves() {
            joins |= self.orbits.join(from, to);
        }
        if joins {
            self.found.push(automorphism.clone());
        }
        Ok(automorphism)
    }
}

/// A component that was written down.
struct Written {
    part: Part,
    order: Vec<u32>,
    text: Vec<u32>,
}

impl Written {
    /// Its nodes, as the graph calls them.
    fn names(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().map(|&node| self.part.names[node as usize])
    }

    /// Its nodes, as the part calls them that it was taken from.
    fn places(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().map(|&node| self.part.places[node as usize])
    }
}

/// An order of a component in the words of the part that it was taken from.
fn to_places(order: &mut [u32], component: &Part) {
    for node in order {
        *node = component.places[*node as usize];
    }
}

/// Splits every cell by a number of each node, and gives the cells that come of it.
fn split_by(partition: &mut Partition, numbers: &[u64]) -> Vec<u32> {
    let mut parts = Vec::new();
    for cell in partition.cells().collect::<Vec<_>>() {
        let mut members: Vec<(u64, u32)> =
            partition.members(cell).iter().map(|&node| (numbers[node as usize], node)).collect();
        members.sort_unstable();
        let mut groups = Vec::with_capacity(members.len());
        for (key, same) in (0_u32..).zip(members.chunk_by(|a, b| a.0 == b.0)) {
            groups.extend(same.iter().map(|&(_, node)| (key, node)));
        }
        if groups.last().is_some_and(|&(key, _)| key > 0) {
            partition.split(cell, &groups, &mut parts);
        }
    }
    parts
}
