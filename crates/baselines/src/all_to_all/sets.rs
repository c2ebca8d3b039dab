//! The paths that each pair of ranks may choose among, as a problem of numbers.

use std::ops::ControlFlow;

use canopy_optimize::{Digraph, PATHS_MAX, PathGraph};
use canopy_schedule::{Flow, Shares};
use canopy_synth::components::{FlowParts, ask, digraph, require_room};
use canopy_synth::{AllToAllError, SynthesisError, Task};
use canopy_topology::{LinkIndex, Rank, Topology};

/// Which paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// As many as there are without a link in common, the shortest such set.
    Disjoint,
    /// All of the fewest links.
    Shortest,
}

/// Paths by pair.
pub(super) struct Sets {
    /// Arc `i` is link `i`.
    pub(super) graph: Digraph,
    /// By source, then by destination.
    pub(super) pairs: Vec<(Rank, Rank)>,
    /// By pair, the weight of its block.
    pub(super) demands: Vec<u64>,
    /// By pair, its paths.
    pub(super) paths: Vec<Vec<Vec<u32>>>,
}

impl Sets {
    /// Lists the paths of all pairs.
    ///
    /// * **Source.** Basu 2024 §3.1.4. **Errors.** More paths than a program of them is solved for, stopped.
    /// * **Cost.** Shortest: O(N · links + length of all paths). Disjoint: a search for each path.
    pub(super) fn of(task: &Task<'_>, choice: Choice) -> Result<Self, SynthesisError> {
        let &Task { topology, request, stop, .. } = task;
        let (algorithm, shares) = (task.algorithm.name(), &request.shares);
        let ranks = u64::from(topology.rank_count());
        let mut needed = match shares {
            Shares::Blocks(blocks) => blocks.moving().count() as u64,
            Shares::Equal | Shares::Weighted(_) => ranks * (ranks - 1),
        };
        let refused = |needed| Err(AllToAllError::TooManyPaths { algorithm, needed, limit: PATHS_MAX }.into());
        if needed > PATHS_MAX {
            return refused(needed);
        }
        let graph = digraph(topology);
        let searched = PathGraph::new(&graph);
        let (mut pairs, mut demands, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        needed = 0;
        for source in topology.ranks() {
            ask(stop)?;
            let shortest = searched.shortest_from(source.number());
            for destination in topology.ranks().filter(|&rank| rank != source) {
                let demand = shares.block(source, destination);
                if demand == 0 {
                    continue;
                }
                let own = match choice {
                    Choice::Disjoint => searched.disjoint(source.number(), destination.number(), stop)?,
                    Choice::Shortest => {
                        let count = u64::try_from(shortest.count(destination.number())).unwrap_or(u64::MAX);
                        if needed.saturating_add(count) > PATHS_MAX {
                            return refused(needed.saturating_add(count));
                        }
                        let mut own = Vec::new();
                        shortest.each(destination.number(), &mut |path| {
                            own.push(path.to_vec());
                            ControlFlow::Continue(())
                        });
                        own
                    }
                };
                needed += own.len() as u64;
                if needed > PATHS_MAX {
                    return refused(needed);
                }
                pairs.push((source, destination));
                demands.push(demand);
                paths.push(own);
            }
        }
        Ok(Self { graph, pairs, demands, paths })
    }

    /// By pair, the place of this path of it; `None` if one is missing. O(length of all paths).
    pub(super) fn places(&self, paths: &[Vec<u32>]) -> Option<Vec<u32>> {
        let place = |(own, path): (&Vec<Vec<u32>>, &Vec<u32>)| own.iter().position(|known| known == path);
        self.paths.iter().zip(paths).map(|pair| u32::try_from(place(pair)?).ok()).collect()
    }

    /// Adds a path for each pair where it is missing; returns by pair its place. O(length of all paths).
    pub(super) fn include(&mut self, paths: &[Vec<u32>]) -> Vec<u32> {
        for (own, path) in self.paths.iter_mut().zip(paths) {
            if !own.contains(path) {
                own.push(path.clone());
            }
        }
        self.places(paths).expect("every path is there")
    }

    /// So many chunks of each unit of a block, and so many of each block on each path.
    pub(super) fn flow(&self, topology: &Topology, chunks: u64, counts: &[Vec<u64>]) -> Result<Flow, SynthesisError> {
        let mut parts = FlowParts::new(topology, chunks);
        let mut hops = 0;
        for ((&(source, destination), paths), counts) in self.pairs.iter().zip(&self.paths).zip(counts) {
            for (path, &count) in paths.iter().zip(counts).filter(|&(_, &count)| count > 0) {
                hops += path.len() as u64;
                require_room(hops)?;
                let links: Vec<LinkIndex> = path.iter().map(|&arc| LinkIndex::new(arc)).collect();
                parts.add_path(source, destination, count, &links)?;
            }
        }
        Ok(parts.finish())
    }
}
