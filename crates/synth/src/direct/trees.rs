//! Shortest routes between many pairs of ranks, as one tree for each source.

use canopy_optimize::Stop;
use canopy_schedule::{PathTrees, PathTreesError, Shape};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};

use crate::error::SynthesisError;
use crate::parts::require_room;
use crate::progress::{Progress, Stage};
use crate::reach::ask;
use crate::routing::{Loads, Network, RouteTrees, is_less};

/// How often every tree is chosen as a whole: the first ones know nothing of what comes after them.
const ROUNDS: u64 = 4;

/// How often branches are hung elsewhere after that. They are small where trees are chosen in large pieces: on a torus of
/// 10 × 10 × 10 the worst link carries 1,374 chunks before, and 1,282 and 1,258 then, of 1,250 at least.
const ROUNDS_REHUNG: u64 = 2;

/// Sources looked at between two looks at whether to stop, before there are trees.
const ASK_INTERVAL: usize = 64;

/// A path for each pair, along the tree of its source.
///
/// * **Source.** Our own. **In.** Pairs by source, then by destination: those of a weight above 0.
/// * **Errors.** Too many hops, stopped. **Cost.** O(nodes + links · links of a route) for each source.
pub(super) fn flow(
    topology: &Topology,
    network: &Network<'_>,
    pairs: &[(Rank, Rank)],
    weight: impl Fn(Rank, Rank) -> u64,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Shape, SynthesisError> {
    let weights = || pairs.iter().map(|&(source, destination)| weight(source, destination));
    let weight_total = weights().map(u128::from).sum();
    let batches: Vec<u64> = weights().map(|weight| Loads::batch_of(weight, weight_total)).collect();
    let mut sources: Vec<Source<'_>> = Vec::new();
    for pairs in pairs.chunk_by(|first, second| first.0 == second.0) {
        let done = sources.last().map_or(0, |source: &Source<'_>| source.end);
        let end = done + pairs.len();
        sources.push(Source { pairs, batches: &batches[done..end], end });
    }
    let mut trees = RouteTrees::new(network, sources.iter().map(|source| source.rank().node()).collect());
    let mut links = 0;
    for (number, source) in sources.iter().enumerate() {
        if number % ASK_INTERVAL == 0 {
            ask(stop)?;
            trees.find_reaches(number..sources.len().min(number + ASK_INTERVAL));
        }
        links += trees.length(number, source.targets());
        require_room(links)?;
    }
    choose(&mut trees, &sources, stop, progress)?;
    written(topology, &trees, &sources, weight, stop)
}

/// What one rank has for others.
#[derive(Clone, Copy)]
struct Source<'a> {
    pairs: &'a [(Rank, Rank)],
    /// What each pair has, rounded as loads are.
    batches: &'a [u64],
    /// How many pairs there are up to its last.
    end: usize,
}

impl<'a> Source<'a> {
    fn rank(&self) -> Rank {
        self.pairs[0].0
    }

    /// Where it goes, with the chunks for each.
    fn targets(self) -> impl Iterator<Item = (NodeIndex, u64)> + Clone + use<'a> {
        self.pairs.iter().zip(self.batches).map(|(pair, &batch)| (pair.1.node(), batch))
    }
}

/// Chooses all trees, then hangs branches elsewhere; leaves those trees of which the worst link is used least.
fn choose(
    trees: &mut RouteTrees<'_>,
    sources: &[Source<'_>],
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(), SynthesisError> {
    let (rounds, count) = (ROUNDS + ROUNDS_REHUNG, sources.len() as u64);
    let mut best: Option<((u64, u64), Vec<LinkIndex>)> = None;
    for round in 0..rounds {
        let mut has_moved = round < ROUNDS;
        for (number, source) in sources.iter().enumerate() {
            ask(stop)?;
            if round < ROUNDS {
                trees.choose(number, source.targets(), round * count + number as u64);
            } else {
                has_moved |= trees.rehang(number, source.targets());
            }
            progress.report(Stage::Routes, round * count + number as u64 + 1, rounds * count);
        }
        if !has_moved || !trees.has_choice() {
            break;
        }
        if round + 1 >= ROUNDS {
            let worst = trees.worst();
            if best.as_ref().is_none_or(|(least, _)| is_less(worst, *least)) {
                best = Some((worst, trees.trees()));
            }
        }
    }
    if let Some((_, best)) = best {
        trees.restore(best);
    }
    Ok(())
}

/// Writes down the paths of all pairs.
fn written(
    topology: &Topology,
    trees: &RouteTrees<'_>,
    sources: &[Source<'_>],
    weight: impl Fn(Rank, Rank) -> u64,
    stop: &dyn Stop,
) -> Result<Shape, SynthesisError> {
    let mut paths = PathTrees::new(topology);
    let nodes = (0..).map(NodeIndex::new).zip(topology.nodes());
    for (number, source) in sources.iter().enumerate() {
        for (node, _) in nodes.clone() {
            if let Some(link) = trees.last_link(number, node) {
                paths.set(source.rank(), node, link);
            }
        }
    }
    let flow = paths.flow(topology, 1, weight, &|| stop.is_requested());
    flow.map(Shape::Flow).map_err(|error| match error {
        PathTreesError::Stopped => SynthesisError::Stopped,
        error => SynthesisError::Broken { what: error.to_string() },
    })
}
