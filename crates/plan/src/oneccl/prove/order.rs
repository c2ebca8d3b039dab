//! The program ends: what each step waits for can happen before it.
//!
//! A step has a start, when its messages are posted, an end of messages, and an end. Messages end once both their ends
//! are posted, as sends may wait for their receives. If the graph of these waits has no cycle, every order of events
//! reaches the end; if it has one, none does.

use super::matching::Pair;
use super::place::{Findings, Place};
use super::{ByRank, number};
use crate::oneccl::program::Scope;

/// Something that happens in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Its messages are posted.
    Start,
    /// Its messages are complete.
    Complete,
    /// Its local work is done, and everybody waited for has come.
    End,
}

/// Events that every step has, in order.
const EVENTS: [Event; 3] = [Event::Start, Event::Complete, Event::End];

/// An event of a step of a rank.
#[derive(Clone, Copy)]
pub(super) struct Occurrence {
    pub(super) rank: u32,
    pub(super) step: u32,
    pub(super) event: Event,
}

/// An order in which everything can happen.
pub(super) fn check(ranks: &ByRank<'_>, pairs: &[Pair], findings: &mut Findings<'_>) -> Vec<Occurrence> {
    let barriers: Vec<usize> =
        ranks.iter().map(|rank| rank.steps.iter().map(crate::oneccl::program::Step::barriers).sum()).collect();
    let most = barriers.iter().copied().max().unwrap_or(0);
    for (rank, count) in barriers.iter().enumerate().filter(|(_, count)| **count != most) {
        let text = format!("waits for all ranks {count} times, but another rank waits {most} times");
        findings.problem(Place::rank(number(rank)), text);
    }
    if findings.has_problem() {
        return Vec::new();
    }
    let graph = Graph::new(ranks, pairs, most);
    let order = graph.sorted();
    if order.len() == graph.waits.len() {
        return order.into_iter().filter_map(|node| graph.events.get(node).copied()).collect();
    }
    let mut has_happened = vec![false; graph.waits.len()];
    order.iter().for_each(|&node| has_happened[node] = true);
    for (node, &Occurrence { rank, step, event }) in graph.events.iter().enumerate() {
        if event == Event::Complete && !has_happened[node] && has_happened[node - 1] {
            findings.problem(
                Place::step(rank, step),
                "waits forever in a cycle of steps that wait for each other's \
                                                   messages",
            );
        }
        if event == Event::End && !has_happened[node] && has_happened[node - 1] {
            findings.problem(Place::step(rank, step), "waits forever for all ranks");
        }
    }
    Vec::new()
}

struct Graph {
    /// Of the first nodes; the others are barriers.
    events: Vec<Occurrence>,
    /// How many nodes each waits for.
    waits: Vec<u32>,
    /// Edges by their first node: positions in `targets`.
    starts: Vec<usize>,
    targets: Vec<usize>,
}

impl Graph {
    fn new(ranks: &ByRank<'_>, pairs: &[Pair], barriers: usize) -> Self {
        let mut first = Vec::with_capacity(ranks.len());
        let mut events = Vec::new();
        for (rank, own) in ranks.iter().enumerate() {
            first.push(events.len());
            for step in 0..own.steps.len() {
                events.extend(EVENTS.map(|event| Occurrence { rank: number(rank), step: number(step), event }));
            }
        }
        let node = |(rank, step): (u32, u32), event: usize| first[rank as usize] + 3 * step as usize + event;
        let mut edges = Vec::new();
        for (rank, own) in (0..).zip(ranks) {
            let mut barrier = events.len();
            for (position, step) in (0..).zip(&own.steps) {
                let at = |event| node((rank, position), event);
                edges.extend([(at(0), at(1)), (at(1), at(2))]);
                if position > 0 {
                    edges.push((node((rank, position - 1), 2), at(0)));
                }
                let scopes = step.completion.iter().flat_map(|own| [Some(own.scope), own.after]).flatten();
                for _ in scopes.filter(|scope| *scope == Scope::All) {
                    edges.extend([(at(1), barrier), (barrier, at(2))]);
                    barrier += 1;
                }
            }
        }
        for pair in pairs {
            edges.push((node(pair.to, 0), node(pair.from, 1)));
            edges.push((node(pair.from, 0), node(pair.to, 1)));
        }
        // A rank comes to its next wait for all after the one before.
        let count = events.len() + barriers;
        edges.extend((events.len() + 1..count).map(|barrier| (barrier - 1, barrier)));
        let mut waits = vec![0_u32; count];
        let mut starts = vec![0_usize; count + 1];
        for &(from, to) in &edges {
            waits[to] += 1;
            starts[from + 1] += 1;
        }
        for node in 0..count {
            starts[node + 1] += starts[node];
        }
        let mut targets = vec![0; edges.len()];
        let mut next = starts.clone();
        for (from, to) in edges {
            targets[next[from]] = to;
            next[from] += 1;
        }
        Self { events, waits, starts, targets }
    }

    /// Nodes in an order that keeps all waits, as many as can be reached. Kahn's algorithm.
    fn sorted(&self) -> Vec<usize> {
        let mut waits = self.waits.clone();
        let mut order: Vec<usize> = (0..waits.len()).filter(|&node| waits[node] == 0).collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for &target in &self.targets[self.starts[node]..self.starts[node + 1]] {
                waits[target] -= 1;
                if waits[target] == 0 {
                    order.push(target);
                }
            }
        }
        order
    }
}
