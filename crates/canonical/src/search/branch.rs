//! Singling out one node of a cell, for each of them, up to symmetry.

use std::collections::HashMap;

use super::{Progress, Search, Solved};
use crate::automorphism::Automorphism;
use crate::budget::Ended;
use crate::orbits::Orbits;
use crate::partition::Partition;
use crate::reduce::Part;

/// A way to write a part down.
struct Text {
    order: Vec<u32>,
    words: Vec<u32>,
}

/// A node that was singled out.
struct Tried {
    node: u32,
    /// Fingerprint of the refinement that followed.
    trace: u64,
    /// The least way to write the part down then; `None` if its trace was not the least.
    least: Option<Text>,
    /// Any way to write it down, once one was needed.
    any: Option<Text>,
}

/// The state of one branching: what was tried, and what is known to be alike.
struct Branching {
    tried: Vec<Tried>,
    /// Of the part's nodes, under permutations that keep the part and its cells.
    orbits: Orbits,
    /// By name in the graph: what the part calls a node. Made when it is needed.
    nodes: Option<HashMap<u32, u32>>,
    /// Permutations that joined orbits, other than those that came from below the best node.
    joining: Vec<Automorphism>,
    best: Option<Best>,
}

/// The node that gave the least text so far.
struct Best {
    /// Its place among those tried.
    position: usize,
    trace: u64,
    /// What keeps it and joined nothing; with what did, all that keeps it.
    generators: Vec<Automorphism>,
    factors: Vec<u32>,
}

impl Search<'_> {
    /// Solves a part whose cells cannot be refined and that cannot be reduced: the least of the results for each node of a
    /// smallest cell. Nodes known to be alike are tried once, and those whose refinement went otherwise than the best are
    /// not followed.
    pub(super) fn branch(&mut self, part: &Part, partition: &Partition, progress: Progress) -> Result<Solved, Ended> {
        let below = Progress { is_profiled: true, ..progress.inside() };
        let mut state = Branching {
            tried: Vec::new(),
            orbits: Orbits::new(part.node_count()),
            nodes: None,
            joining: Vec::new(),
            best: None,
        };
        let members = partition.members(target(partition)).to_vec();
        for node in members {
            self.meter.spend(state.tried.len())?;
            if state
                .tried
                .iter()
                .any(|tried| state.orbits.representative(tried.node) == state.orbits.representative(node))
            {
                continue;
            }
            let (cells, trace) = self.singled_out(part, partition, node)?;
            let mut tried = Tried { node, trace, least: None, any: None };
            if state.best.as_ref().is_none_or(|best| trace <= best.trace)
                && !self.looks_like_one_before(part, partition, &cells, below.depth, &mut tried, &mut state)?
            {
                let solved = self.solve(part, &cells, below)?;
                self.compare(part, &cells, solved, &mut tried, &mut state)?;
            }
            state.tried.push(tried);
        }
        let best = state.best.expect("a cell has nodes, and the first is followed");
        let Tried { node, least, .. } = state.tried.swap_remove(best.position);
        let order = least.expect("the best node was followed").order;
        let mut generators = best.generators;
        generators.extend(state.joining);
        let mut factors = best.factors;
        factors.push(state.orbits.size_of(node));
        Ok(Solved { order, generators, factors })
    }

    fn singled_out(&mut self, part: &Part, partition: &Partition, node: u32) -> Result<(Partition, u64), Ended> {
        self.meter.spend(4 * part.node_count())?;
        let mut cells = partition.clone();
        cells.single_out(node);
        let splitter = cells.cell_of(node);
        let trace = self.refiner.refine(part, &mut cells, [splitter], &mut self.meter)?;
        Ok((cells, trace))
    }

    fn text(&mut self, part: &Part, cells: &Partition, order: Vec<u32>) -> Result<Text, Ended> {
        self.meter.spend(part.node_count() + 2 * part.pair_count())?;
        let words = part.certificate(&order, |node| cells.cell_of(node));
        Ok(Text { order, words })
    }

    /// Whether one way of writing the part down reads as one of a node tried before: then they are alike, which costs much
    /// less to find out than the least way.
    fn looks_like_one_before(
        &mut self,
        part: &Part,
        partition: &Partition,
        cells: &Partition,
        depth: u32,
        tried: &mut Tried,
        state: &mut Branching,
    ) -> Result<bool, Ended> {
        if state.tried.iter().all(|before| before.trace != tried.trace) {
            return Ok(false);
        }
        let order = self.walk(part, cells, depth)?;
        let text = self.text(part, cells, order)?;
        for position in 0..state.tried.len() {
            let before = &state.tried[position];
            if before.trace != tried.trace || before.least.is_none() {
                continue;
            }
            if before.any.is_none() {
                let (cells, _) = self.singled_out(part, partition, before.node)?;
                let order = self.walk(part, &cells, depth)?;
                state.tried[position].any = Some(self.text(part, &cells, order)?);
            }
            let before = state.tried[position].any.as_ref().expect("made where it was missing");
            if before.words == text.words {
                let found = self.record(pairs(part, &before.order, &text.order))?;
                state.join(part, found);
                return Ok(true);
            }
        }
        tried.any = Some(text);
        Ok(false)
    }

    /// Compares the least text of a node with those of all others.
    fn compare(
        &mut self,
        part: &Part,
        cells: &Partition,
        solved: Solved,
        tried: &mut Tried,
        state: &mut Branching,
    ) -> Result<(), Ended> {
        let text = self.text(part, cells, solved.order)?;
        let rest: Vec<Automorphism> =
            solved.generators.into_iter().filter_map(|generator| state.join(part, generator)).collect();
        let mut twin = None;
        for before in state.tried.iter().filter(|before| before.trace == tried.trace) {
            twin = twin.or(before.least.as_ref().filter(|least| least.words == text.words));
        }
        if let Some(twin) = twin {
            let found = self.record(pairs(part, &twin.order, &text.order))?;
            state.join(part, found);
        } else if state.is_less(tried.trace, &text) {
            let position = state.tried.len();
            state.best = Some(Best { position, trace: tried.trace, generators: rest, factors: solved.factors });
        }
        tried.least = Some(text);
        Ok(())
    }
}

impl Branching {
    /// Joins what a permutation moves. Keeps it if that tells anything, else gives it back.
    fn join(&mut self, part: &Part, automorphism: Automorphism) -> Option<Automorphism> {
        let nodes = self.nodes.get_or_insert_with(|| part.names.iter().copied().zip(0_u32..).collect());
        let mut joins = false;
        for (from, to) in automorphism.moves() {
            if let (Some(&from), Some(&to)) = (nodes.get(from), nodes.get(to)) {
                joins |= self.orbits.join(from, to);
            }
        }
        if joins {
            self.joining.push(automorphism);
            None
        } else {
            Some(automorphism)
        }
    }

    fn is_less(&self, trace: u64, text: &Text) -> bool {
        self.best.as_ref().is_none_or(|best| {
            let least = self.tried[best.position].least.as_ref();
            (trace, Some(&text.words)) < (best.trace, least.map(|least| &least.words))
        })
    }
}

/// Where one order has a node, and the other.
fn pairs(part: &Part, from: &[u32], to: &[u32]) -> Vec<(u32, u32)> {
    let name = |node: u32| part.names[node as usize];
    from.iter().zip(to).map(|(&from, &to)| (name(from), name(to))).collect()
}

/// The first of the smallest cells of more than one node.
fn target(partition: &Partition) -> u32 {
    let open = partition.cells().filter(|&cell| partition.size_of(cell) > 1);
    open.min_by_key(|&cell| partition.size_of(cell)).expect("a part that is not solved has a cell of several nodes")
}
