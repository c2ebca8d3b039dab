//! Schedules in few steps that use every port of a network: `kautz`, `kautz-m`, `dfc2`, `dfc2-do`, and `multitree`, which alone passes
//! switches.
//!
//! [`canopy_direct::multiport`] says which tree takes which link in which step; here is what travels on them: shares and messages down
//! the trees, sums up the trees of the network turned around, blocks to all that a link leads to. What passes a link in a step is
//! one message, in which shares and blocks stand in the order of their numbers.
//!
//! Source: Pham 2026, chapters 3 and 4.

mod directed;
mod family;
mod parts;
mod write;

use canopy_direct::Digraph;
use canopy_direct::multiport::{Grid, Trees, level_trees, one_at_a_time, require_kautz, rook_trees};
use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Shape};
use canopy_topology::Topology;

use crate::algorithm::{ALL_COLLECTIVES, Networks, Rival, SynthesisRequest, Synthesized, Synthesizer, Task};
use crate::error::MultiportError;
use crate::error::SynthesisError;
use crate::parts::require_room;
use crate::progress::Stage;
use crate::reach::{ask, require_direct, require_reach};
use directed::Directed;
pub use family::family_algorithms;
use parts::{Part, Payload};
use write::Writer;

/// The shortest-path trees of a Kautz network.
pub(crate) static KAUTZ: Synthesizer =
    family("kautz", "trees of a Kautz network, messages combined (Pham 2026, section 3.2.2)", |task| {
        planned(task, Method::Kautz)
    });

/// The same, sent without conflicts.
pub(crate) static KAUTZ_M: Synthesizer = family(
    "kautz-m",
    "trees of a Kautz network, one share or block at a time where trees meet (Pham 2026, section 3.2.3)",
    |task| planned(task, Method::KautzM),
);

/// All dimensions of a grid at once.
pub(crate) static DFC2: Synthesizer = family(
    "dfc2",
    "all dimensions at once on a grid with fully connected lines (Pham 2026, section 4.2.2, MD)",
    |task| planned(task, Method::Dfc2),
);

/// One dimension after the other.
pub(crate) static DFC2_DO: Synthesizer = family(
    "dfc2-do",
    "one dimension after the other on a grid with fully connected lines (Pham 2026, section 4.2.2, DO)",
    |task| planned(task, Method::Dfc2Do),
);

/// Trees that grow together.
pub(crate) static MULTITREE: Synthesizer = Synthesizer {
    rival: Some(Rival { place: 4, plans: Networks::All, ..Rival::LINKS }),
    ..family("multitree", "trees of all ranks, grown together link by link, on any network (Huang et al.)", |task| {
        planned(task, Method::Multitree)
    })
};

/// The row of an algorithm that plans everything on networks of a family.
const fn family(
    name: &'static str,
    help: &'static str,
    plan: fn(&Task<'_>) -> Result<Synthesized, SynthesisError>,
) -> Synthesizer {
    Synthesizer::new(name, help, ALL_COLLECTIVES, plan)
}

/// Whose trees are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Kautz,
    KautzM,
    Dfc2,
    Dfc2Do,
    Multitree,
}

/// Plans a collective on trees of all roots at once.
///
/// * **In.** A network whose ranks are linked with each other: a Kautz network for `kautz` and
///   `kautz-m`, a grid with fully joined lines for `dfc2` and `dfc2-do`; for `multitree` any network, whatever the labels of ranks.
///   Shares of any sizes. **Out.** Steps as the tables 3.1, 4.1 and 4.2
///   of Pham 2026 count them; in every step a link carries one message, in `multitree` one for each time that it is as wide as the narrowest link. An allreduce by `dfc2` adds up in the order of the
///   dimensions and copies in all orders at once.
/// * **Errors.** [`SynthesisError`]: switches, disconnected, another network than the algorithm plans, too many sends, stopped.
/// * **Cost.** O(ranks² · diameter) for trees and sends; `multitree` on other networks O(steps · ranks · links).
fn planned(task: &Task<'_>, method: Method) -> Result<Synthesized, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let &SynthesisRequest { collective, ref shares, .. } = request;
    let name = task.algorithm.name();
    if method != Method::Multitree {
        require_direct(topology, name)?;
    }
    require_reach(topology, collective, shares)?;
    ask(stop)?;
    let asked = Asked { topology, collective, method, name, stop };
    asked.require_room()?;
    progress.report(Stage::Trees, 0, 1);
    let phases = asked.phases()?;
    progress.report(Stage::Trees, 1, 1);
    let mut writer = Writer::new(topology, collective, shares, &phases)?;
    for phase in &phases {
        ask(stop)?;
        writer.add(phase)?;
    }
    progress.report(Stage::Routes, 1, 1);
    Ok(task.planned(Shape::Steps(writer.finish())))
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
    method: Method,
    /// For messages.
    name: &'static str,
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
        let phase = |action, payload, is_backwards, method| {
            let (directed, parts) = match method {
                Method::Multitree => self.multitree(is_backwards)?,
                _ => {
                    let directed = Directed::new(self.topology, is_backwards)?;
                    let parts = self.parts(method, payload, &directed.graph)?;
                    (directed, parts)
                }
            };
            Ok::<_, SynthesisError>(Phase { action, payload, directed, parts })
        };
        let own = self.method;
        Ok(match self.collective.kind() {
            CollectiveKind::Allgather => vec![phase(Action::Copy, Payload::Shares, false, own)?],
            CollectiveKind::Broadcast => vec![phase(Action::Copy, Payload::Message, false, own)?],
            CollectiveKind::ReduceScatter => vec![phase(Action::Reduce, Payload::Shares, true, own)?],
            CollectiveKind::Reduce => vec![phase(Action::Reduce, Payload::Message, true, own)?],
            CollectiveKind::Allreduce => {
                let sums = if own == Method::Dfc2 { Method::Dfc2Do } else { own };
                let sums = phase(Action::Reduce, Payload::Shares, true, sums)?;
                vec![sums, phase(Action::Copy, Payload::Shares, false, own)?]
            }
            CollectiveKind::Scatter => vec![phase(Action::Copy, Payload::Shared, false, own)?],
            CollectiveKind::Gather => vec![phase(Action::Copy, Payload::Shared, true, own)?],
            CollectiveKind::AllToAll => vec![phase(Action::Copy, Payload::Blocks, false, own)?],
        })
    }

    /// The roots of trees.
    fn roots(&self) -> Vec<u32> {
        match self.collective.root() {
            Some(root) => vec![root.number()],
            None => (0..self.topology.rank_count()).collect(),
        }
    }

    /// Trees for parts of what is sent, on the networks of a family.
    fn parts(&self, method: Method, payload: Payload, graph: &Digraph) -> Result<Vec<Part>, SynthesisError> {
        let roots = self.roots();
        let refused = |networks, reason| {
            SynthesisError::Multiport(MultiportError::OtherNetwork { algorithm: self.name, networks, reason })
        };
        if matches!(method, Method::Kautz | Method::KautzM) {
            require_kautz(graph).map_err(|error| refused("a Kautz network", error.to_string()))?;
            let trees = level_trees(graph, &roots);
            // The ports of a single root are its tree's own: nothing has to wait for others.
            let is_divided = method == Method::KautzM && self.collective.root().is_none();
            return Ok(whole(if is_divided { one_at_a_time(graph, &trees) } else { trees }));
        }
        let grids = "a grid whose lines are fully connected";
        let grid = Grid::of(graph).map_err(|error| refused(grids, error.to_string()))?;
        Ok(match method {
            Method::Dfc2 => parts::in_all_orders(&grid, payload, &roots),
            _ => whole(parts::in_one_order(&grid, payload, &roots)),
        })
    }

    /// The best trees known for a network of which no two take the same part of a link in a step.
    fn multitree(&self, is_backwards: bool) -> Result<(Directed, Vec<Part>), SynthesisError> {
        let (topology, roots) = (self.topology, self.roots());
        let is_direct = topology.nodes().len() == topology.rank_count() as usize;
        let mut rates = topology.links().iter().map(|link| link.capacity);
        let is_even = rates.next().is_none_or(|first| rates.all(|rate| rate == first));
        let of_family = if is_direct && is_even { self.of_family(is_backwards, &roots)? } else { None };
        let (directed, trees) = match of_family {
            Some(found) => found,
            None => Directed::grown(topology, is_backwards, &roots, self.stop)?,
        };
        // Without switches the ports are a single tree's own: no link is taken twice.
        let is_alone = is_direct && self.collective.root().is_some();
        let trees = if is_alone { trees.by_depth(&directed.graph) } else { trees };
        Ok((directed, whole(trees)))
    }

    /// The trees of a Kautz network or of a grid of two dimensions; none for other networks.
    fn of_family(&self, is_backwards: bool, roots: &[u32]) -> Result<Option<(Directed, Trees)>, SynthesisError> {
        let directed = Directed::new(self.topology, is_backwards)?;
        let graph = &directed.graph;
        let trees = match require_kautz(graph) {
            Ok(_) => Some(one_at_a_time(graph, &level_trees(graph, roots))),
            Err(_) => Grid::of(graph).ok().and_then(|grid| rook_trees(&grid, roots)),
        };
        Ok(trees.map(|trees| (directed, trees)))
    }
}

/// All of what is sent on the same trees.
fn whole(trees: Trees) -> Vec<Part> {
    vec![Part { weight: 1, trees }]
}
