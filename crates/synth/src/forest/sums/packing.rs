//! Packing of trees that all have one root, where a root is only a place to begin.

mod tested;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_optimize::{FlowUnit, Stop};

use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::condition::{Condition, EdgeIndex, Step};
use crate::forest::packing::require_room;
use crate::forest::trees::{EdgePreference, Grower, PackedTree, Residual};
use crate::progress::{Progress, Silent, Stage};

/// Trees grown for one place in the packing before one is tested while it grows.
const TRIES_MAX: usize = 24;

/// Scarce sets remembered, the latest ones.
const SETS_MAX: usize = 512;

/// Ways to grow a tree: along edges of which most is left, with more or less of a leaning towards flat trees.
const PREFERENCES: [EdgePreference; 3] = [
    EdgePreference { fullness: 1000, flatness: 1, residual: Residual::Capacity },
    EdgePreference { fullness: 64, flatness: 1, residual: Residual::Capacity },
    EdgePreference { fullness: 8, flatness: 1, residual: Residual::Capacity },
];

/// Flows times edges that may have been spent on one packing if another is to be tried: about 20 ms.
const WORK_MAX: u64 = 1_000_000;

/// Packs trees for the demand of `root`, the only one there is. Of some packings the flattest, where they are cheap.
///
/// A tree takes the greatest weight that the condition allows, which violated sets tell. A set that allowed less than
/// half of what its edges have room for is remembered: it is about to be tight, and trees grown from then on enter it
/// again only for as much as it can spare. Where that leads nowhere, a tree is tested while it grows (`tested`).
///
/// * **Source.** Lovász 1976 for growing trees around tight sets; to find these as they are met is our own.
/// * **In.** A network without switches that meets the condition. **Out.** Trees by the order found.
/// * **Errors.** Stopped, or broken if the input does not meet the condition.
/// * **Cost.** A few tests per tree.
pub(super) fn pack<C: FlowUnit>(
    condition: &Condition<'_, C>,
    root: u32,
    rank_count: u32,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(Grower<C>, Vec<PackedTree<C>>), SynthesisError> {
    let grower = Grower::new(condition, rank_count);
    let places = places(&grower, root);
    let mut best: Option<(u64, Vec<PackedTree<C>>)> = None;
    for preference in PREFERENCES {
        // Only the first packing is reported: what is done never shrinks.
        let progress = if best.is_none() { progress } else { &Silent };
        let mut packing = Packing {
            condition: condition.clone(),
            grower: &grower,
            root,
            preference,
            places: &places,
            scarce: Vec::new(),
            stop,
        };
        let trees = packing.run(progress)?;
        let score = score(&grower, &trees);
        if best.as_ref().is_none_or(|&(known, _)| score < known) {
            best = Some((score, trees));
        }
        let flows = packing.condition.flows() - condition.flows();
        if flows.saturating_mul(condition.edge_count() as u64) > WORK_MAX {
            break;
        }
    }
    let (_, trees) = best.expect("there is a first preference");
    Ok((grower, trees))
}

/// By rank: its place in the order breadth first from the root.
fn places<C: FlowUnit>(grower: &Grower<C>, root: u32) -> Vec<u32> {
    let mut places = vec![u32::MAX; grower.rank_count()];
    let mut order = vec![root];
    places[root as usize] = 0;
    let mut next = 0;
    while let Some(&rank) = order.get(next) {
        next += 1;
        for &edge in grower.leaving(rank) {
            let to = grower.ends(edge).1;
            if places[to as usize] == u32::MAX {
                places[to as usize] = u32::try_from(order.len()).expect("ranks are counted in u32");
                order.push(to);
            }
        }
    }
    places
}

/// What counts against a packing: its greatest depth and the number of its trees.
fn score<C: FlowUnit>(grower: &Grower<C>, trees: &[PackedTree<C>]) -> u64 {
    let depth_max = trees.iter().map(|tree| grower.depth_max(tree)).max().unwrap_or_default();
    4 * u64::from(depth_max) + 3 * trees.len() as u64
}

struct Packing<'a, 'c, C> {
    condition: Condition<'c, C>,
    grower: &'a Grower<C>,
    root: u32,
    preference: EdgePreference,
    /// By rank: where it comes when ranks are looked at from the root on, near ones first.
    places: &'a [u32],
    /// Sets without the root that have been found scarce.
    scarce: Vec<Vec<bool>>,
    stop: &'a dyn Stop,
}

impl<C: FlowUnit> Packing<'_, '_, C> {
    fn run(&mut self, progress: &dyn Progress) -> Result<Vec<PackedTree<C>>, SynthesisError> {
        let count = |amount: C| u64::try_from(amount.to_u128()).unwrap_or(u64::MAX);
        let all = count(self.condition.demand(self.root));
        let mut trees: Vec<PackedTree<C>> = Vec::new();
        loop {
            let left = self.condition.demand(self.root);
            progress.report(Stage::Trees, all - count(left), all);
            if left == C::ZERO {
                return Ok(trees);
            }
            require_room(trees.len() + 1, self.grower.rank_count())?;
            trees.push(match self.tree(left)? {
                Some(tree) => tree,
                None => tested::tree(self, left)?,
            });
        }
    }

    /// Takes a tree out of the network: the first that keeps half of its weight, else the heaviest found.
    fn tree(&mut self, left: C) -> Result<Option<PackedTree<C>>, SynthesisError> {
        let mut best: Option<PackedTree<C>> = None;
        for _ in 0..TRIES_MAX {
            let Some(mut tree) = self.grow(left)? else { break };
            let grown = tree.weight;
            tree.apply(&mut self.condition, grown);
            while tree.weight > C::ZERO
                && let Some(violation) = self.condition.violation()?
            {
                let cost = u128::from(tree.cost(&self.condition, &violation.set));
                let deficit = violation.deficit.to_u128();
                let excess = deficit.checked_div(cost).map(|_| deficit.div_ceil(cost)).and_then(C::try_from_u128);
                let excess = excess.filter(|&excess| C::ZERO < excess && excess <= tree.weight).ok_or_else(|| {
                    SynthesisError::Broken { what: "the trees left do not fit the network left".to_owned() }
                })?;
                tree.undo(&mut self.condition, excess);
                tree.weight -= excess;
                self.remember(violation.set);
            }
            if tree.weight > C::ZERO && tree.weight >= grown - tree.weight {
                return Ok(Some(tree));
            }
            tree.undo(&mut self.condition, tree.weight);
            if tree.weight > best.as_ref().map_or(C::ZERO, |best| best.weight) {
                best = Some(tree);
            }
        }
        if let Some(tree) = &best {
            tree.apply(&mut self.condition, tree.weight);
        }
        Ok(best)
    }

    /// Notes a scarce set, in place of the oldest one if there are many.
    fn remember(&mut self, set: Vec<bool>) {
        if !self.scarce.contains(&set) {
            if self.scarce.len() == SETS_MAX {
                self.scarce.remove(0);
            }
            self.scarce.push(set);
        }
    }

    /// Grows a tree edge by edge as Prim's algorithm, as heavy as the edges met and the scarce sets allow. `None` where
    /// nothing leads on. O(edges · (log edges + sets)).
    fn grow(&self, wanted: C) -> Result<Option<PackedTree<C>>, SynthesisError> {
        let rank_count = self.grower.rank_count();
        let mut growth = Growth {
            packing: self,
            spare: self.scarce.iter().map(|set| self.spare(set, wanted)).collect(),
            entries: vec![0; self.scarce.len()],
            depths: vec![None; rank_count],
            weight: wanted,
            ready: BinaryHeap::new(),
            thin: BinaryHeap::new(),
        };
        growth.join(self.root, 0);
        let mut edges = Vec::with_capacity(rank_count - 1);
        while edges.len() + 1 < rank_count {
            ask(self.stop)?;
            let Some(edge) = growth.next_edge() else { return Ok(None) };
            growth.enter(edge);
            edges.push(edge);
        }
        Ok(Some(PackedTree { root: self.root, weight: growth.weight, edges }))
    }

    /// What can enter a set without the root beyond the trees that have to.
    fn spare(&self, set: &[bool], trees: C) -> C {
        let enters = |&edge: &EdgeIndex| {
            let (from, to) = self.condition.ends(edge);
            !set[from as usize] && set[to as usize]
        };
        let entering = (0..self.condition.edge_count()).filter(enters);
        entering.fold(C::ZERO, |sum, edge| sum + self.condition.capacity(edge)) - trees
    }
}

/// A tree on its way.
struct Growth<'a, 'c, 'p, C> {
    packing: &'p Packing<'a, 'c, C>,
    /// By scarce set: what it can spare, and how often the tree has entered it.
    spare: Vec<C>,
    entries: Vec<u64>,
    depths: Vec<Option<i64>>,
    weight: C,
    /// Edges that were seen to carry the weight, best score first.
    ready: BinaryHeap<(i64, Reverse<EdgeIndex>)>,
    /// Others, those that carry most first.
    thin: BinaryHeap<(C, i64, Reverse<EdgeIndex>)>,
}

impl<C: FlowUnit> Growth<'_, '_, '_, C> {
    /// How many copies of the tree may take an edge.
    fn most(&self, edge: EdgeIndex) -> C {
        let (from, to) = self.packing.condition.ends(edge);
        let mut most = self.packing.condition.capacity(edge);
        for ((set, &spare), &entries) in self.packing.scarce.iter().zip(&self.spare).zip(&self.entries) {
            if entries > 0 && set[to as usize] && !set[from as usize] {
                let each = spare.to_u128() / u128::from(entries);
                most = most.min(C::try_from_u128(each).unwrap_or(most));
            }
        }
        most
    }

    /// Adds a rank and offers the edges that leave it.
    fn join(&mut self, rank: u32, depth: i64) {
        self.depths[rank as usize] = Some(depth);
        for &edge in self.packing.grower.leaving(rank) {
            let capacity = self.packing.condition.capacity(edge);
            if capacity > C::ZERO && self.depths[self.packing.grower.ends(edge).1 as usize].is_none() {
                let score = self.packing.grower.score(edge, capacity, depth, self.packing.preference);
                self.thin.push((capacity, score, Reverse(edge)));
            }
        }
    }

    fn enter(&mut self, edge: EdgeIndex) {
        let (from, to) = self.packing.grower.ends(edge);
        for (set, entries) in self.packing.scarce.iter().zip(&mut self.entries) {
            *entries += u64::from(set[to as usize] && !set[from as usize]);
        }
        let depth = self.depths[from as usize].unwrap_or_default();
        self.join(to, depth + 1);
    }

    /// The best edge that leads out of the tree and carries its weight, else the one that carries most, lowering the
    /// weight.
    fn next_edge(&mut self) -> Option<EdgeIndex> {
        loop {
            while let Some(&(_, score, edge)) = self.thin.peek().filter(|&&(most, ..)| most >= self.weight) {
                self.ready.push((score, edge));
                self.thin.pop();
            }
            let (score, edge, promised) = match self.ready.pop() {
                Some((score, Reverse(edge))) => (score, edge, self.weight),
                None => self.thin.pop().map(|(most, score, Reverse(edge))| (score, edge, most))?,
            };
            if self.depths[self.packing.grower.ends(edge).1 as usize].is_some() {
                continue;
            }
            let most = self.most(edge);
            if most >= promised {
                self.weight = promised;
                return Some(edge);
            }
            if most > C::ZERO {
                self.thin.push((most, score, Reverse(edge)));
            }
        }
    }
}
