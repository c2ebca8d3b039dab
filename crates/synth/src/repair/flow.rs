//! Paths over what is left: those that are cut take another way, then loads are moved off the busiest links.

use canopy_optimize::Stop;
use canopy_schedule::{Flow, Path};
use canopy_topology::{LinkIndex, NodeIndex, Rank};

use super::balance::{Movable, STEPS_LOG2_AT_FIRST, balance};
use super::finder::{Finder, FreeLinks, Visit};
use super::loads::Loads;
use super::refinement::{common_divisor, factor};
use super::{RepairError, Wanted};
use crate::parts::{FlowParts, weight_between};
use crate::reach::ask;
use crate::routing::{Heading, Network};

/// So many chunks on one path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Routed {
    source: u32,
    destination: u32,
    /// Empty where it is cut.
    links: Vec<LinkIndex>,
    chunk_count: u64,
}

/// The paths between ranks that are left, each as it was or on the least used way.
///
/// * **Errors.** As of [`repaired`](super::repaired). **Cost.** Likewise.
pub(super) fn repaired(of: &Wanted<'_>, flow: &Flow, stop: &dyn Stop) -> Result<Flow, RepairError> {
    let left = of.remainder.left;
    let mut paths = Paths {
        of,
        network: Network::new(left, Heading::Along),
        loads: Loads::none(left),
        finder: Finder::new(left.nodes().len()),
        paths: Vec::with_capacity(flow.paths.len()),
        stop,
    };
    paths.take_over(flow)?;
    let factor = factor(paths.loads.chunks_where_busy(), flow.chunks_per_share, of.chunks_max);
    paths.loads.scale(factor)?;
    paths.paths.iter_mut().for_each(|path| path.chunk_count *= factor);
    paths.join()?;
    let least = paths.least_level();
    balance(&mut paths, least)?;
    let k = flow.chunks_per_share.checked_mul(factor).and_then(|k| k.checked_mul(of.divisor));
    paths.written(k.ok_or(RepairError::TooLarge)?)
}

struct Paths<'a> {
    of: &'a Wanted<'a>,
    network: Network<'a>,
    loads: Loads,
    finder: Finder,
    paths: Vec<Routed>,
    stop: &'a dyn Stop,
}

impl Paths<'_> {
    fn take_over(&mut self, flow: &Flow) -> Result<(), RepairError> {
        let routes = self.of.remainder.routes(&flow.routes);
        for path in &flow.paths {
            ask(self.stop)?;
            let &Path { source, destination, chunk_count, .. } = path;
            let ends = self.of.remainder.rank(source).zip(self.of.remainder.rank(destination));
            let Some((source, destination)) = ends else { continue };
            let mut links = Vec::new();
            for hop in flow.hops_of(path) {
                let hop = routes.get(hop.index()).ok_or(RepairError::Malformed { what: "a path has no route" })?;
                if hop.is_empty() {
                    links.clear();
                    break;
                }
                links.extend_from_slice(hop);
            }
            self.loads.add(&links, chunk_count)?;
            self.paths.push(Routed { source: source.number(), destination: destination.number(), links, chunk_count });
        }
        Ok(())
    }

    /// Finds another way for what is cut: as long as that is possible over links that are then no busier than the busiest
    /// is before; over any, else.
    fn join(&mut self) -> Result<(), RepairError> {
        self.loads.aim_at(self.loads.worst(), STEPS_LOG2_AT_FIRST);
        for at in 0..self.paths.len() {
            if !self.paths[at].links.is_empty() {
                continue;
            }
            ask(self.stop)?;
            self.loads.heed_limits(true);
            let mut way = self.way(at, self.paths[at].chunk_count, i128::MAX);
            self.loads.heed_limits(false);
            if way.is_none() {
                way = self.way(at, self.paths[at].chunk_count, i128::MAX);
            }
            let way =
                way.ok_or(RepairError::Malformed { what: "a pair is not joined though its ranks reach each other" })?;
            self.loads.add(&way, self.paths[at].chunk_count)?;
            self.paths[at].links = way;
        }
        Ok(())
    }

    fn way(&mut self, at: usize, count: u64, most: i128) -> Option<Vec<LinkIndex>> {
        let (source, destination) =
            (Rank::new(self.paths[at].source).node(), Rank::new(self.paths[at].destination).node());
        let visit = |node: NodeIndex| if node == destination { Visit::End } else { Visit::Pass };
        let links = FreeLinks { network: &self.network, loads: &self.loads, count };
        self.finder.find(links, &[(source, 0)], most, visit).map(|way| way.links)
    }

    /// The level that some rank's links have at least, whatever is moved.
    fn least_level(&self) -> u128 {
        let left = self.of.remainder.left;
        let mut ends = vec![[0_u64; 2]; left.rank_count() as usize];
        for path in &self.paths {
            ends[path.source as usize][0] += path.chunk_count;
            ends[path.destination as usize][1] += path.chunk_count;
        }
        let levels = ends.iter().zip(left.degrees()).map(|(&[sent, received], (entering, leaving))| {
            self.loads.level(received, entering).max(self.loads.level(sent, leaving))
        });
        levels.max().unwrap_or(0)
    }

    /// Paths by source and destination, alike ones joined, in chunks as large as possible.
    fn written(mut self, k: u64) -> Result<Flow, RepairError> {
        self.paths.sort();
        self.paths.dedup_by(|next, last| {
            let alike = (next.source, next.destination) == (last.source, last.destination) && next.links == last.links;
            last.chunk_count += if alike { next.chunk_count } else { 0 };
            alike
        });
        let divisor = common_divisor(self.paths.iter().map(|path| path.chunk_count).chain([k]));
        let mut parts = FlowParts::new(self.of.remainder.left, k / divisor);
        for path in &self.paths {
            let (source, destination) = (Rank::new(path.source), Rank::new(path.destination));
            debug_assert!(weight_between(self.of.collective, self.of.shares, (source, destination)) > 0);
            parts
                .add_path(source, destination, path.chunk_count / divisor, &path.links)
                .map_err(|_| RepairError::TooLarge)?;
        }
        Ok(parts.finish())
    }
}

impl Movable for Paths<'_> {
    /// The position of a path.
    type User = usize;

    fn loads(&mut self) -> &mut Loads {
        &mut self.loads
    }

    fn finder(&mut self) -> &mut Finder {
        &mut self.finder
    }

    fn stop(&self) -> &dyn Stop {
        self.stop
    }

    /// O(links of all paths).
    fn users(&mut self, over: &[LinkIndex]) -> Vec<Vec<usize>> {
        self.finder.visits += self.paths.len() as u64;
        let mut position = vec![None; self.of.remainder.left.links().len()];
        over.iter().enumerate().for_each(|(at, link)| position[link.index()] = Some(at));
        let mut users = vec![Vec::new(); over.len()];
        for (path, routed) in self.paths.iter().enumerate() {
            routed.links.iter().filter_map(|link| position[link.index()]).for_each(|at| users[at].push(path));
        }
        users
    }

    fn move_off(&mut self, at: usize, link: LinkIndex, most: u64) -> Result<(), RepairError> {
        let amount = most.min(self.paths[at].chunk_count);
        if amount == 0 || !self.paths[at].links.contains(&link) {
            return Ok(());
        }
        let before = self.loads.potential();
        self.loads.remove(&self.paths[at].links, amount);
        let Some(links) = self.way(at, amount, before - self.loads.potential()) else {
            return self.loads.add(&self.paths[at].links, amount);
        };
        self.loads.add(&links, amount)?;
        if self.loads.potential() >= before {
            self.loads.remove(&links, amount);
            return self.loads.add(&self.paths[at].links, amount);
        }
        if amount == self.paths[at].chunk_count {
            self.paths[at].links = links;
        } else {
            self.paths[at].chunk_count -= amount;
            let moved = Routed { links, chunk_count: amount, ..self.paths[at] };
            self.paths.push(moved);
        }
        Ok(())
    }
}
