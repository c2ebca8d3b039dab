//! Arrivals at all nodes together, where hosts limit what each node sends and receives in a step.
//!
//! Node u receives fixed amounts in step t, so its host adds a lower bound. The host of a sender couples the receivers:
//! what they take from it together must fit. Each share still comes over one link of its receiver, and each link leaves
//! one host, so the step is a flow from shares over links and hosts, and the least load is the largest ratio `amount(P)
//! / width(P)` over sets P of links and hosts. It is found by flows (Dinkelbach), and whole chunks by the same flows,
//! which are integral.
//!
//! Source: Zhao 2026, linear program (3.1), with the limit of hosts of section 3.8.5; the flow is derived here and
//! tested against the program.

use super::arrivals::{Arrivals, Class};
use super::assign::{ClassAssignment, Piece, assign_classes};
use super::load::{Carriers, first_guess, least_chunk_load, least_load, whole};
use super::{BfbError, BfbGraph, ratio};
use crate::fraction::Fraction;
use crate::stop::{Stop, Stopped};

/// What arrives at all nodes, by step.
#[derive(Debug)]
pub struct JointArrivals {
    graph: BfbGraph,
    steps: Vec<Step>,
}

/// What arrives in one step.
#[derive(Debug)]
struct Step {
    /// Receivers of the classes.
    nodes: Vec<u32>,
    /// Shares that one node can receive over the same links, whose positions are those in the graph's list of all.
    classes: Vec<Class>,
    /// A load that no division is below: what passes the host of a receiver, and what its links would carry if all
    /// senders were idle otherwise.
    floor: Fraction,
}

impl JointArrivals {
    /// Finds what arrives at every node in each step.
    ///
    /// # Errors
    /// As [`Arrivals::visit`]. O(nodes · (nodes + links) · in-degree / 64) time, 4 bytes for each pair of nodes.
    pub fn new(graph: BfbGraph, stop: &dyn Stop) -> Result<Self, BfbError> {
        let mut steps: Vec<Step> = Vec::new();
        let mut arrivals = Arrivals::new(&graph);
        for node in 0..graph.node_count() {
            arrivals.visit(node, stop)?;
            let widths = arrivals.widths();
            for step in 1..=arrivals.step_count() {
                let classes = arrivals.classes(step);
                if classes.is_empty() {
                    continue;
                }
                let index = step as usize - 1;
                steps.resize_with(steps.len().max(index + 1), Step::empty);
                steps[index].add(&graph, node, first_guess(&classes, &widths), classes);
            }
        }
        Ok(Self { graph, steps })
    }

    /// The graph.
    pub const fn graph(&self) -> &BfbGraph {
        &self.graph
    }

    /// Steps until everything has arrived everywhere.
    pub fn step_count(&self) -> u32 {
        u32::try_from(self.steps.len()).expect("fewer steps than nodes")
    }

    /// Least load of the busiest link or host anywhere in a step: amounts per width. Zero beyond the last step.
    ///
    /// * **Errors.** Stopped.
    /// * **Cost.** A few flows, with an arc for each set of in-links that shares come over, and each link in it.
    pub fn load(&self, step: u32, stop: &dyn Stop) -> Result<Fraction, Stopped> {
        match self.step(step) {
            Some(&Step { ref classes, floor, .. }) => least_load(classes, &self.carriers(), floor, stop),
            None => Ok(Fraction::ZERO),
        }
    }

    /// Least load of the busiest link or host in a step in whole chunks, `chunks` for each unit of an amount: chunks
    /// per width. `undivided` is [`load`](Self::load), from which the search starts.
    ///
    /// * **Errors.** Stopped.
    /// * **Cost.** As [`load`](Self::load).
    /// * **Panics.** All amounts, once for each node, times `chunks` exceed 2⁶³.
    pub fn chunk_load(
        &self,
        step: u32,
        chunks: u64,
        undivided: Fraction,
        stop: &dyn Stop,
    ) -> Result<Fraction, Stopped> {
        self.graph.require_countable(chunks);
        let Some(Step { classes, .. }) = self.step(step) else { return Ok(Fraction::ZERO) };
        let floor = ratio(undivided.numerator * u128::from(chunks), undivided.denominator);
        least_chunk_load(classes, chunks, &self.carriers(), floor, stop)
    }

    /// Divides the shares that arrive in a step among links so that no link or host carries more than `load` chunks per
    /// width, `chunks` chunks for each unit of a share's amount. By receiver, as in [`Arrivals::assign`].
    ///
    /// * **None.** The load is less than [`chunk_load`](Self::chunk_load).
    /// * **Errors.** Stopped.
    /// * **Cost.** One flow as in [`load`](Self::load).
    /// * **Panics.** All amounts, once for each node, times `chunks` exceed 2⁶³.
    pub fn assign(
        &self,
        step: u32,
        chunks: u64,
        load: Fraction,
        stop: &dyn Stop,
    ) -> Result<Option<Vec<(u32, Piece)>>, Stopped> {
        self.graph.require_countable(chunks);
        let Some(Step { nodes, classes, floor }) = self.step(step) else { return Ok(Some(Vec::new())) };
        if ratio(floor.numerator * u128::from(chunks), floor.denominator) > load {
            return Ok(None);
        }
        let Carriers { widths, hosts } = self.carriers();
        let room: Vec<u128> = widths.into_iter().map(|width| whole(load, width)).collect();
        let ClassAssignment::All(flows) = assign_classes(classes, chunks.into(), &room, &hosts, stop)? else {
            return Ok(None);
        };
        let mut assigned = Vec::new();
        let mut pieces = Vec::new();
        for ((&node, class), flows) in nodes.iter().zip(classes).zip(flows) {
            self.graph.lay(class, chunks, &flows, &mut pieces);
            let first = self.graph.starts[node as usize];
            assigned.extend(pieces.drain(..).map(|piece| (node, Piece { link: piece.link - first, ..piece })));
        }
        Ok(Some(assigned))
    }

    fn step(&self, step: u32) -> Option<&Step> {
        self.steps.get((step as usize).checked_sub(1)?)
    }

    /// All links, and the hosts of their tails.
    fn carriers(&self) -> Carriers {
        let links = &self.graph.links;
        let mut carriers = Carriers::links(links.iter().map(|link| link.width.into()).collect());
        let Some(hosts) = &self.graph.hosts else { return carriers };
        let mut positions = Vec::with_capacity(hosts.send.len());
        for &width in &hosts.send {
            let position = u32::try_from(carriers.widths.len()).expect("fewer links and hosts than 2^32");
            positions.push((width > 0).then_some(position));
            carriers.widths.extend((width > 0).then_some(u128::from(width)));
        }
        carriers.hosts = links.iter().map(|link| positions[link.from as usize]).collect();
        carriers
    }
}

impl Step {
    const fn empty() -> Self {
        Self { nodes: Vec::new(), classes: Vec::new(), floor: Fraction::ZERO }
    }

    /// Adds what one node receives; its links alone need the load `alone` or more.
    fn add(&mut self, graph: &BfbGraph, node: u32, alone: Fraction, classes: Vec<Class>) {
        self.floor = self.floor.max(alone);
        let amount = classes.iter().map(|class| class.amount).sum();
        if let Some(&width) = graph.hosts.as_ref().and_then(|hosts| hosts.receive.get(node as usize))
            && width > 0
        {
            self.floor = self.floor.max(ratio(amount, width.into()));
        }
        let first = graph.starts[node as usize] as usize;
        let in_all = |class: Class| Class { links: class.links.iter().map(|link| first + link).collect(), ..class };
        self.nodes.extend(classes.iter().map(|_| node));
        self.classes.extend(classes.into_iter().map(in_all));
    }
}
