//! Trees over what is left: branches that were cut off are hung up again, then loads are moved off the busiest links.

mod balance;
mod branches;
mod written;

use std::collections::HashMap;

use canopy_optimize::Stop;
use canopy_schedule::{Action, Forest, Hop, RouteIndex};
use canopy_topology::{LinkIndex, Rank};

use super::finder::Finder;
use super::loads::Loads;
use super::refinement::factor;
use super::tree::{LOST, Tree, Up, Ways};
use super::{RepairError, Wanted};
use crate::reach::ask;
use crate::routing::{Heading, Network};

/// The trees whose roots are left, whole again and balanced.
///
/// * **Errors.** As of [`repaired`](super::repaired). **Cost.** Likewise.
pub(super) fn repaired(of: &Wanted<'_>, forest: &Forest, stop: &dyn Stop) -> Result<Forest, RepairError> {
    use canopy_schedule::CollectiveKind::{Gather, Scatter};
    if matches!(of.collective.kind(), Gather | Scatter) {
        // Their trees need not reach all ranks.
        return Err(RepairError::Unsupported { collective: of.collective.kind(), shape: "forest" });
    }
    let mut trees = Trees::of(of, forest, stop)?;
    trees.join()?;
    trees.balance()?;
    trees.written()
}

/// All trees under repair.
struct Trees<'a> {
    of: &'a Wanted<'a>,
    forest: &'a Forest,
    stop: &'a dyn Stop,
    /// By route: first those of the base, without links where they are gone.
    routes: Vec<Vec<LinkIndex>>,
    added: HashMap<Vec<LinkIndex>, RouteIndex>,
    /// By link: one that leads back.
    opposites: Vec<Option<LinkIndex>>,
    loads: Loads,
    finder: Finder,
    /// Chunks that one of the base has become.
    factor: u64,
    phases: Vec<Phase<'a>>,
}

/// The trees of one phase.
struct Phase<'a> {
    action: Action,
    /// The network as a search from a branch to the rest of its tree sees it.
    network: Network<'a>,
    entries: Vec<Entry>,
}

/// One tree, or so many equal ones.
struct Entry {
    root: u32,
    /// Which of the base it is, or was.
    base: usize,
    /// What it has become; none where it is as it was.
    changed: Option<Tree>,
}

impl<'a> Trees<'a> {
    /// Takes over what has a root, cut at what is gone.
    fn of(of: &'a Wanted<'a>, forest: &'a Forest, stop: &'a dyn Stop) -> Result<Self, RepairError> {
        let left = of.remainder.left;
        let mut trees = Self {
            of,
            forest,
            stop,
            routes: of.remainder.routes(&forest.routes),
            added: HashMap::new(),
            opposites: opposites(left),
            loads: Loads::none(left),
            finder: Finder::new(left.nodes().len()),
            factor: 1,
            phases: Vec::with_capacity(forest.phases.len()),
        };
        let mut chunks = vec![0_u64; trees.routes.len()];
        let mut cut: Vec<(usize, usize)> = Vec::new();
        for (at, phase) in forest.phases.iter().enumerate() {
            let heading = if phase.action == Action::Copy { Heading::Against } else { Heading::Along };
            let mut entries = Vec::with_capacity(phase.trees.len());
            for (base, tree) in phase.trees.iter().enumerate() {
                ask(stop)?;
                let Some(root) = of.remainder.rank(tree.root) else { continue };
                if trees.is_whole(forest.hops_of(tree))? {
                    for carrier in forest.hops_of(tree).iter().flat_map(|hop| forest.carriers_of(hop)) {
                        let sum = &mut chunks[carrier.route.index()];
                        *sum = sum.checked_add(carrier.chunk_count).ok_or(RepairError::TooLarge)?;
                    }
                } else {
                    cut.push((at, entries.len()));
                }
                entries.push(Entry { root: root.number(), base, changed: None });
            }
            trees.phases.push(Phase { action: phase.action, network: Network::new(left, heading), entries });
        }
        for (route, &chunks) in trees.routes.iter().zip(&chunks) {
            trees.loads.add(route, chunks)?;
        }
        trees.cut_up(&cut)?;
        let factor = factor(trees.loads.chunks_where_busy(), forest.chunks_per_share, of.chunks_max);
        trees.refine(factor)?;
        Ok(trees)
    }

    /// Whether nothing of a tree is gone.
    fn is_whole(&self, hops: &[Hop]) -> Result<bool, RepairError> {
        let is_there = |rank: Rank| self.of.remainder.rank(rank).is_some();
        for hop in hops {
            if !is_there(hop.from) || !is_there(hop.to) {
                return Ok(false);
            }
            for carrier in self.forest.carriers_of(hop) {
                let route = self.routes.get(carrier.route.index());
                if route.ok_or(RepairError::Malformed { what: "a carrier has no route" })?.is_empty() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Opens the trees of which something is gone, and divides them so that each hop is there or not.
    fn cut_up(&mut self, cut: &[(usize, usize)]) -> Result<(), RepairError> {
        for &(at, entry) in cut {
            let (root, base) = (self.phases[at].entries[entry].root, self.phases[at].entries[entry].base);
            let mut pieces = vec![self.opened(at, base)?];
            let mut next = 0;
            while let Some(tree) = pieces.get_mut(next) {
                ask(self.stop)?;
                match half_lost(tree) {
                    Some((rank, amount)) => {
                        let lost = tree.divide(amount, rank, |route| route == LOST);
                        pieces.push(lost);
                    }
                    None => next += 1,
                }
            }
            for (position, mut tree) in pieces.into_iter().enumerate() {
                for up in &mut tree.ups {
                    if up.as_ref().is_some_and(|up| up.ways == Ways::One(LOST)) {
                        *up = None;
                    }
                }
                for up in tree.ups.iter().flatten() {
                    for (route, count) in up.ways.parts(tree.weight) {
                        self.loads.add(&self.routes[route.index()], count)?;
                    }
                }
                let entries = &mut self.phases[at].entries;
                match position {
                    0 => entries[entry].changed = Some(tree),
                    _ => entries.push(Entry { root, base, changed: Some(tree) }),
                }
            }
        }
        Ok(())
    }

    /// Divides every chunk.
    fn refine(&mut self, factor: u64) -> Result<(), RepairError> {
        self.factor = factor;
        self.loads.scale(factor)?;
        for tree in
            self.phases.iter_mut().flat_map(|phase| &mut phase.entries).filter_map(|entry| entry.changed.as_mut())
        {
            tree.weight *= factor;
            for up in tree.ups.iter_mut().flatten() {
                if let Ways::Several(parts) = &mut up.ways {
                    parts.iter_mut().for_each(|(_, count)| *count *= factor);
                }
            }
        }
        Ok(())
    }

    /// A tree of the base in the names and chunks of what is left.
    fn opened(&self, phase: usize, base: usize) -> Result<Tree, RepairError> {
        let (remainder, phase) = (self.of.remainder, &self.forest.phases[phase]);
        let tree = &phase.trees[base];
        let scaled = |count: u64| count.checked_mul(self.factor).ok_or(RepairError::TooLarge);
        let root = remainder.rank(tree.root).ok_or(RepairError::Malformed { what: "a tree has no root" })?;
        let mut ups = vec![None; remainder.left.rank_count() as usize];
        for hop in self.forest.hops_of(tree) {
            let (parent, child) = if phase.action == Action::Copy { (hop.from, hop.to) } else { (hop.to, hop.from) };
            let (Some(parent), Some(child)) = (remainder.rank(parent), remainder.rank(child)) else { continue };
            let mut parts = Vec::new();
            for carrier in self.forest.carriers_of(hop) {
                let is_lost = self.routes.get(carrier.route.index()).is_none_or(Vec::is_empty);
                parts.push((if is_lost { LOST } else { carrier.route }, scaled(carrier.chunk_count)?));
            }
            let place: &mut Option<Up> = &mut ups[child.index()];
            if place.is_some() || child == root || parts.is_empty() {
                return Err(RepairError::Malformed { what: "a rank is in a tree twice, or on no route" });
            }
            *place = Some(Up { parent: parent.number(), ways: Ways::of(parts) });
        }
        Ok(Tree { root: root.number(), weight: scaled(tree.multiplicity)?, ups })
    }

    /// The number of a route.
    fn route(&mut self, links: Vec<LinkIndex>) -> RouteIndex {
        let next = RouteIndex::new(u32::try_from(self.routes.len()).expect("there are fewer routes than hops"));
        *self.added.entry(links).or_insert_with_key(|links| {
            self.routes.push(links.clone());
            next
        })
    }
}

/// A hop of which a part is lost, and how much.
fn half_lost(tree: &Tree) -> Option<(u32, u64)> {
    let lost = |up: &Up| up.ways.count(tree.weight, |route| route == LOST);
    let mut ranks = (0_u32..).zip(&tree.ups).filter_map(|(rank, up)| Some((rank, lost(up.as_ref()?))));
    ranks.find(|&(_, lost)| lost > 0 && lost < tree.weight)
}

/// By link: the widest that leads back, if one does. O(links · log links).
fn opposites(topology: &canopy_topology::Topology) -> Vec<Option<LinkIndex>> {
    let back = |link: &canopy_topology::Link| {
        let links = topology.links_from(link.to).filter(|&other| topology.link(other).to == link.from);
        links.max_by_key(|&other| (topology.link(other).capacity, std::cmp::Reverse(other)))
    };
    topology.links().iter().map(back).collect()
}
