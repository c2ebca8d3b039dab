//! Every tree hung up at its centre or where its root is to be, and written as a schedule.

use std::collections::HashMap;

use canopy_optimize::Stop;
use canopy_schedule::{
    Action, Carrier, Collective, CollectiveKind, Forest, Hop, Phase, RouteIndex, RouteTable, Shares, Tree,
};
use canopy_topology::{LinkIndex, Rank};

use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::assembly::position;
use crate::forest::sums::contracted::{Down, contracted};
use crate::forest::sums::glue::{FreeTree, FreeTrees};
use crate::forest::sums::hung::Hung;
use crate::forest::sums::lanes::Lanes;
use crate::forest::sums::lowering::lowered;
use crate::forest::sums::roots::allot;

/// Times that trees are made less deep, at most.
const LOWERINGS_MAX: usize = 2;

/// Trees with their roots.
pub(super) struct Rooted {
    pub(super) tree_count: u64,
    pub(super) trees: Vec<(Hung, FreeTree)>,
    /// As those of [`FreeTrees`].
    pub(super) routes: Vec<[Vec<LinkIndex>; 2]>,
}

/// Gives all trees roots.
///
/// * **In.** Weights of roots by rank; none: each tree at its own centre.
/// * **Errors.** Stopped; for weights as [`allot`]. **Cost.** O(hops).
pub(super) fn root(
    lanes: &Lanes<'_>,
    free: FreeTrees,
    weights: Option<&[u64]>,
    stop: &dyn Stop,
) -> Result<Rooted, SynthesisError> {
    let terminal_count = lanes.terminal_count;
    let (free, roots) = match weights {
        Some(weights) => allot(free, weights, terminal_count, stop)?,
        None => (free, Vec::new()),
    };
    let FreeTrees { tree_count, trees, routes } = free;
    let mut rooted = hang_up(trees, &roots, lanes, stop)?;
    let mut depth = depth_max(&rooted);
    for _ in 0..LOWERINGS_MAX {
        let (trees, roots) = lowered(rooted, terminal_count, stop)?;
        // Trees that exchanged hops may have another centre now, and then hang lower still.
        let roots = if weights.is_some() { roots } else { Vec::new() };
        rooted = hang_up(trees, &roots, lanes, stop)?;
        if depth_max(&rooted) >= depth || weights.is_some() {
            break;
        }
        depth = depth_max(&rooted);
    }
    Ok(Rooted { tree_count, trees: rooted, routes })
}

/// Writes two phases of the same trees: up to the roots and down from them. The share of a rank is what its trees carry.
///
/// * **Out.** Trees of ranks by root. **Errors.** Stopped. **Cost.** O(hops).
pub(super) fn write(rank_count: u32, rooted: Rooted, stop: &dyn Stop) -> Result<(Forest, Shares), SynthesisError> {
    let Rooted { tree_count, trees: mut rooted, routes } = rooted;
    rooted.sort_by_key(|(hung, _)| hung.root);
    let mut weights = vec![0_u64; rank_count as usize];
    rooted.iter().for_each(|(hung, tree)| weights[hung.root as usize] += tree.weight);
    let weight = weights.iter().copied().find(|&weight| weight > 0).unwrap_or(1);
    let rank = weights.iter().position(|&weight| weight > 0).unwrap_or(0);
    let collective = Collective::new(CollectiveKind::Allreduce, None, rank_count);
    let collective = collective.map_err(|error| SynthesisError::Broken { what: error.to_string() })?;
    let shares = Shares::in_proportion(collective, rank_count, weights)?;
    let rank = Rank::new(u32::try_from(rank).expect("ranks are counted in u32"));
    let chunks_per_share = weight / shares.weight(rank).max(1);
    debug_assert_eq!(u128::from(chunks_per_share) * shares.weight_total(rank_count), u128::from(tree_count));

    let (carriers, hops, phases) = Default::default();
    let forest = Forest { chunks_per_share, routes: RouteTable::default(), carriers, hops, phases };
    let mut writer = Writer { forest, known: HashMap::new(), routes };
    for action in [Action::Reduce, Action::Copy] {
        let mut phase = Phase { action, trees: Vec::with_capacity(rooted.len()) };
        for (hung, tree) in &rooted {
            ask(stop)?;
            phase.trees.push(writer.tree(action, hung.root, contracted(hung, tree, rank_count), tree.weight)?);
        }
        writer.forest.phases.push(phase);
    }
    Ok((writer.forest, shares))
}

/// Hops on the longest way from a root.
fn depth_max(rooted: &[(Hung, FreeTree)]) -> u32 {
    rooted.iter().map(|(hung, tree)| hung.depth(tree)).max().unwrap_or_default()
}

/// Hangs trees up at these roots, or at their centres if there are none.
fn hang_up(
    trees: Vec<FreeTree>,
    roots: &[u32],
    lanes: &Lanes<'_>,
    stop: &dyn Stop,
) -> Result<Vec<(Hung, FreeTree)>, SynthesisError> {
    let mut hung = Vec::with_capacity(trees.len());
    for (position, tree) in trees.into_iter().enumerate() {
        ask(stop)?;
        let at_root = match roots.get(position) {
            Some(&root) => Hung::at(&tree, lanes.terminal_count, root),
            None => Hung::at_centre(&tree, (lanes.terminal_count, lanes.rank_count)),
        };
        let broken = || SynthesisError::Broken { what: "the trees of pieces do not make one tree".to_owned() };
        hung.push((at_root.ok_or_else(broken)?, tree));
    }
    Ok(hung)
}

struct Writer {
    forest: Forest,
    routes: Vec<[Vec<LinkIndex>; 2]>,
    /// Routes that are in the table, by what they are put together of and in which direction.
    known: HashMap<Vec<(usize, bool)>, RouteIndex>,
}

impl Writer {
    /// Writes a tree whose hops lead away from the root.
    fn tree(&mut self, action: Action, root: u32, hops: Vec<Down>, weight: u64) -> Result<Tree, SynthesisError> {
        let start = position(self.forest.hops.len())?;
        match action {
            Action::Copy => hops.into_iter().try_for_each(|down| self.hop(down))?,
            Action::Reduce => hops.into_iter().rev().try_for_each(|down| self.hop(down.reversed()))?,
        }
        let hops = start..position(self.forest.hops.len())?;
        Ok(Tree { root: Rank::new(root), multiplicity: weight, hops })
    }

    fn hop(&mut self, Down { from, to, ways }: Down) -> Result<(), SynthesisError> {
        let start = position(self.forest.carriers.len())?;
        for (way, chunk_count) in ways {
            let route = match self.known.get(&way) {
                Some(&route) => route,
                None => {
                    let links = way.iter().flat_map(|&(route, is_back)| &self.routes[route][usize::from(is_back)]);
                    let links: Vec<LinkIndex> = links.copied().collect();
                    let route = self.forest.routes.push(&links);
                    self.known.insert(way, route);
                    route
                }
            };
            self.forest.carriers.push(Carrier { route, chunk_count });
        }
        let carriers = start..position(self.forest.carriers.len())?;
        self.forest.hops.push(Hop { from: Rank::new(from), to: Rank::new(to), carriers });
        Ok(())
    }
}
