//! Schedules in few steps that use every port of a network without switches: `kautz`, `kautz-m`, `dfc2`, `dfc2-do`, `multitree`.
//!
//! [`canopy_multiport`] says which tree takes which link in which step; here is what travels on them: shares and messages down
//! the trees, sums up the trees of the network turned around, blocks to all that a link leads to. What passes a link in a step is
//! one message, in which shares and blocks stand in the order of their numbers.
//!
//! Source: Pham 2026, chapters 3 and 4.

mod directed;
mod family;
mod parts;
mod write;

use canopy_direct::Digraph;
use canopy_multiport::{Grid, Trees, greedy_trees, level_trees, one_at_a_time, require_kautz, rook_trees};
use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Shape, Shares};
use canopy_topology::Topology;

use crate::algorithm::Algorithm;
use crate::error::MultiportError;
use crate::error::SynthesisError;
use crate::parts::require_room;
use crate::progress::{Progress, Stage};
use crate::reach::{ask, require_direct, require_reach};
use directed::Directed;
pub use family::family_algorithms;
use parts::{Part, Payload};
use write::Writer;

/// Plans a collective on trees of all roots at once.
///
/// * **In.** A network whose ranks are linked with each other: a Kautz network for [`Algorithm::Kautz`] and
///   [`Algorithm::KautzM`], a grid with fully joined lines for [`Algorithm::Dfc2`] and [`Algorithm::Dfc2Do`], any for
///   [`Algorithm::Multitree`], whatever the labels of ranks. Shares of any sizes. **Out.** Steps as the tables 3.1, 4.1 and 4.2
///   of Pham 2026 count them; in every step a link carries one message. An allreduce by `dfc2` adds up in the order of the
///   dimensions and copies in all orders at once.
/// * **Errors.** [`SynthesisError`]: switches, disconnected, another network than the algorithm plans, too many sends, stopped.
/// * **Cost.** O(ranks² · diameter) for trees and sends; `multitree` on other networks O(steps · ranks · links).
pub(crate) fn plan(
    topology: &Topology,
    (collective, shares): (Collective, &Shares),
    algorithm: Algorithm,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Shape, SynthesisError> {
    require_direct(topology, algorithm)?;
    require_reach(topology, collective, shares)?;
    ask(stop)?;
    let asked = Asked { topology, collective, algorithm, stop };
    asked.require_room()?;
    progress.report(Stage::Trees, 0, 1);
    let phases = asked.phases()?;
    progress.report(Stage::Trees, 1, 1);
    let mut writer = Writer::new(topology, (collective, shares), &phases)?;
    for phase in &phases {
        ask(stop)?;
        writer.add(phase)?;
    }
    progress.report(Stage::Routes, 1, 1);
    Ok(Shape::Steps(writer.finish()))
}

/// What one phase of a collective sends on which trees.
struct Phase {
    action: Action,
    payload: Payload,
    directed: Directed,
    parts: Vec<Part>,
}

/// What is asked for.
struct Asked<'a> {
    topology: &'a Topology,
    collective: Collective,
    algorithm: Algorithm,
    stop: &'a dyn Stop,
}

impl Asked<'_> {
    /// Refuses more sends than there is room for, by what all blocks or shares take at least.
    fn require_room(&self) -> Result<(), SynthesisError> {
        let ranks = u64::from(self.topology.rank_count());
        let roots = if self.collective.root().is_some() { 1 } else { ranks };
        require_room(roots.saturating_mul(ranks.saturating_sub(1)))
    }

    fn phases(&self) -> Result<Vec<Phase>, SynthesisError> {
        let phase = |action, payload, is_backwards, algorithm| {
            let directed = Directed::new(self.topology, is_backwards)?;
            let parts = self.parts(algorithm, payload, &directed.graph)?;
            Ok::<_, SynthesisError>(Phase { action, payload, directed, parts })
        };
        let own = self.algorithm;
        Ok(match self.collective.kind() {
            CollectiveKind::Allgather => vec![phase(Action::Copy, Payload::Shares, false, own)?],
            CollectiveKind::Broadcast => vec![phase(Action::Copy, Payload::Message, false, own)?],
            CollectiveKind::ReduceScatter => vec![phase(Action::Reduce, Payload::Shares, true, own)?],
            CollectiveKind::Reduce => vec![phase(Action::Reduce, Payload::Message, true, own)?],
            CollectiveKind::Allreduce => {
                let sums = if own == Algorithm::Dfc2 { Algorithm::Dfc2Do } else { own };
                let sums = phase(Action::Reduce, Payload::Shares, true, sums)?;
                vec![sums, phase(Action::Copy, Payload::Shares, false, own)?]
            }
            CollectiveKind::Scatter => vec![phase(Action::Copy, Payload::Shared, false, own)?],
            CollectiveKind::Gather => vec![phase(Action::Copy, Payload::Shared, true, own)?],
            CollectiveKind::AllToAll => vec![phase(Action::Copy, Payload::Blocks, false, own)?],
        })
    }

    /// Trees for parts of what is sent.
    fn parts(&self, algorithm: Algorithm, payload: Payload, graph: &Digraph) -> Result<Vec<Part>, SynthesisError> {
        let roots: Vec<u32> = match self.collective.root() {
            Some(root) => vec![root.number()],
            None => (0..self.topology.rank_count()).collect(),
        };
        let whole = |trees: Trees| vec![Part { weight: 1, trees }];
        // An allreduce by one of them adds up by another.
        let asked = self.algorithm;
        let refused = |reason| SynthesisError::Multiport(MultiportError::OtherNetwork { algorithm: asked, reason });
        let parts = match algorithm {
            Algorithm::Kautz | Algorithm::KautzM => {
                require_kautz(graph).map_err(|error| refused(error.to_string()))?;
                let trees = level_trees(graph, &roots);
                let is_divided = algorithm == Algorithm::KautzM;
                whole(if is_divided { one_at_a_time(graph, &trees) } else { trees })
            }
            Algorithm::Dfc2 | Algorithm::Dfc2Do => {
                let grid = Grid::of(graph).map_err(|error| refused(error.to_string()))?;
                match algorithm {
                    Algorithm::Dfc2 => parts::in_all_orders(&grid, payload, &roots),
                    _ => whole(parts::in_one_order(&grid, payload, &roots)),
                }
            }
            _ => whole(self.trees_of_any(graph, &roots)?),
        };
        Ok(match self.collective.root() {
            // The ports are this tree's own: nothing has to wait for others.
            Some(_) if matches!(algorithm, Algorithm::KautzM | Algorithm::Multitree) => {
                let by_depth = |part: Part| Part { trees: part.trees.by_depth(graph), ..part };
                parts.into_iter().map(by_depth).collect()
            }
            _ => parts,
        })
    }

    /// The best trees known for a network of which no two take a link in a step.
    fn trees_of_any(&self, graph: &Digraph, roots: &[u32]) -> Result<Trees, SynthesisError> {
        if require_kautz(graph).is_ok() {
            return Ok(one_at_a_time(graph, &level_trees(graph, roots)));
        }
        if let Some(trees) = Grid::of(graph).ok().and_then(|grid| rook_trees(&grid, roots)) {
            return Ok(trees);
        }
        greedy_trees(graph, roots, self.stop).map_err(|error| match error {
            canopy_multiport::GreedyError::Stopped => SynthesisError::Stopped,
            // That ranks reach each other is known.
            error => SynthesisError::Broken { what: format!("multitree: {error}") },
        })
    }
}
