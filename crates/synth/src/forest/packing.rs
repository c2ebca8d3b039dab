//! Packing of all trees into a network of ranks.
//!
//! Cheap attempts first: stars, trees whose ranks choose their parents one by one (`parents`), and greedy packings. Such
//! trees need no proof, they serve every demand or they do not. Where none does, greedy trees are tested in bulk against the
//! condition, and where none of those may be taken, a tree is grown with one exact test per edge, which always succeeds.

use canopy_optimize::{FlowUnit, Stop, Stopped};

use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::completion::completed;
use crate::forest::condition::{Condition, Step};
use crate::forest::exact::exact_tree;
use crate::forest::parents::{Chosen, chosen_trees};
use crate::forest::rehang::rehang;
use crate::forest::trees::{EdgePreference, Grower, PackedTree, Remainder, Residual};
use crate::parts;
use crate::progress::{Progress, Silent, Stage};

/// Preferences tried for a complete greedy packing, flat trees first.
const PREFERENCES: [EdgePreference; 5] = [
    EdgePreference { fullness: 1, flatness: 1000, residual: Residual::Capacity },
    EdgePreference { fullness: 1, flatness: 1, residual: Residual::Capacity },
    EdgePreference { fullness: 8, flatness: 1, residual: Residual::Capacity },
    EdgePreference { fullness: 64, flatness: 1, residual: Residual::Capacity },
    EdgePreference { fullness: 1000, flatness: 1, residual: Residual::Capacity },
];

/// Refuses more trees than there is room for, before memory is spent on them.
pub(super) fn require_room(tree_count: usize, rank_count: usize) -> Result<(), SynthesisError> {
    parts::require_room((tree_count as u64).saturating_mul(rank_count.saturating_sub(1) as u64))
}

/// Into how many parts a root's demand is divided, at least: fewer make fewer different trees, more make flatter ones.
/// With it the preference of edges of the trees that are tested, by position in [`PREFERENCES`].
const DIVISIONS: [(u64, usize); 5] = [(1, 0), (2, 0), (4, 0), (1, 2), (2, 2)];

/// Which packing is taken, by how much time may go into others that are tried for the sake of better trees alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackingChoice {
    /// None: the first packing is taken.
    First,
    /// Some: others are tried as long as one takes no more than some 20 ms.
    Best,
}

/// Flows times edges that may have been spent on one division if another is to be tried: about 20 ms.
const WORK_MAX: u64 = 1_000_000;

/// The same for a division that is only tried for the sake of better trees: it is given up beyond.
const ATTEMPT_MAX: u64 = 8 * WORK_MAX;

/// Ranks from which on trees are completed before they are tested one by one. Below, tests are cheap, and trees flatter.
const COMPLETED_FROM: u32 = 48;

/// Preferences of edges for trees that are completed.
const COMPLETED: [EdgePreference; 2] = [PREFERENCES[4], PREFERENCES[1]];

/// A tree is thin that serves a smaller part of the demand left at its root.
const THIN: u128 = 16;

/// Different trees per root up to which those of chosen parents are taken without looking for others.
const CHOSEN_PER_ROOT: usize = 2;

/// Packs trees for all demands: those found at once if they are stars, or few, else the best of some packings of different
/// grain where they are cheap, or the first.
///
/// Three levels of depth count as much as four more trees per root (a level costs a latency on every message, a tree only
/// a few more steps of a file), and a packing of finer grain must be better by a tenth.
///
/// * **In.** A network without switches that meets the condition, and what [`at_once`] found for it. **Out.** Trees by the
///   order found, within its capacities, as many for each root as its demand.
/// * **Errors.** Stopped, or broken if the input does not meet the condition.
pub(super) fn pack<C: FlowUnit>(
    condition: &Condition<'_, C>,
    grower: &Grower<C>,
    at_once: Option<Found<C>>,
    choice: PackingChoice,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Vec<PackedTree<C>>, SynthesisError> {
    ask(stop)?;
    let rank_count = u32::try_from(grower.rank_count()).expect("ranks are counted in u32");
    let demand_max = (0..rank_count).map(|rank| condition.demand(rank)).max().unwrap_or(C::ZERO).to_u128();
    let mut best: Option<(u64, Vec<PackedTree<C>>)> = None;
    let mut divisions = DIVISIONS.as_slice();
    if let Some(Found { trees, way }) = at_once {
        let depth = depth_max(grower, &trees, stop)?;
        let root_count = (0..rank_count).filter(|&rank| condition.demand(rank) > C::ZERO).count();
        let is_good = match way {
            // Finer parts would only make more trees of stars.
            AtOnce::Greedily => depth <= 1,
            AtOnce::ByChoice => trees.len() <= CHOSEN_PER_ROOT * root_count,
        };
        if is_good || choice == PackingChoice::First {
            return Ok(trees);
        }
        best = Some((score(depth, rank_count, trees.len()), trees));
        divisions = if way == AtOnce::Greedily { &DIVISIONS[1..] } else { divisions };
    }
    let mut any_tested = false;
    for (parts, preference) in
        divisions.iter().copied().filter(|&(parts, _)| parts == 1 || u128::from(parts) < 2 * demand_max)
    {
        // Where nothing had to be tested, the preference of edges makes no difference.
        if preference > 0 && !any_tested {
            break;
        }
        let weight_max = C::try_from_u128(demand_max.div_ceil(parts.into())).expect("a part is no more than the whole");
        ask(stop)?;
        // Only the first packing is reported: what is done never shrinks.
        let progress = if best.is_none() { progress } else { &Silent };
        let mut packing = Packing::new(condition.clone(), grower, weight_max, PREFERENCES[preference], stop, progress);
        if best.is_some() {
            packing.work_max = ATTEMPT_MAX;
        }
        if !packing.run()? {
            break;
        }
        let Packing { condition: after, mut trees, mut work, .. } = packing;
        any_tested |= after.flows() > condition.flows();
        let mut left = Remainder::of(&after, rank_count);
        rehang(grower, &mut left, &mut trees, stop)?;
        let depth = depth_max(grower, &trees, stop)?;
        let score = score(depth, rank_count, trees.len());
        if best.as_ref().is_none_or(|&(known, _)| score.saturating_mul(10) <= known.saturating_mul(9)) {
            best = Some((score, trees));
        }
        work = work.saturating_add((after.flows() - condition.flows()).saturating_mul(after.edge_count() as u64));
        if choice == PackingChoice::First || work > WORK_MAX {
            break;
        }
    }
    let (_, trees) = best.expect("the first division is always tried");
    Ok(trees)
}

/// What speaks against a packing.
fn score(depth: u32, rank_count: u32, tree_count: usize) -> u64 {
    4 * u64::from(depth) * u64::from(rank_count) + 3 * tree_count as u64
}

/// How trees came about that needed no test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtOnce {
    Greedily,
    ByChoice,
}

/// Trees that needed no test.
pub(super) struct Found<C> {
    trees: Vec<PackedTree<C>>,
    way: AtOnce,
}

/// Trees for all demands found without any test, as flat as exchanges make them: the flattest greedy ones where a rank has
/// edges to all others, else those whose ranks choose their parents.
pub(super) fn at_once<C: FlowUnit>(
    condition: &Condition<'_, C>,
    grower: &Grower<C>,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Option<Found<C>>, SynthesisError> {
    let rank_count = u32::try_from(grower.rank_count()).expect("ranks are counted in u32");
    let mut left = Remainder::of(condition, rank_count);
    let mut found = None;
    if (0..rank_count).any(|rank| grower.leaving(rank).len() + 1 == grower.rank_count()) {
        let mut packing = Packing::new(condition.clone(), grower, C::MAX, PREFERENCES[0], stop, progress);
        if packing.finish_greedily(PREFERENCES[0], Start::InTurn)?
            || packing.finish_greedily(PREFERENCES[0], Start::Stars)?
        {
            let is_flat = depth_max(grower, &packing.trees, stop)? <= 1;
            found = Some((packing.trees, is_flat, AtOnce::Greedily));
        }
    }
    if found.is_none()
        && let Some(Chosen { trees, is_nearest }) = chosen_trees(grower, &left, stop)?
    {
        require_room(trees.len(), grower.rank_count())?;
        found = Some((trees, is_nearest, AtOnce::ByChoice));
        let total = left.demands.iter().map(|demand| demand.to_u128()).sum::<u128>();
        let total = u64::try_from(total).expect("the number of all trees was checked");
        progress.report(Stage::Trees, total, total);
    }
    let Some((mut trees, is_flat, way)) = found else { return Ok(None) };
    if !is_flat {
        trees.iter().for_each(|tree| left.take(tree));
        rehang(grower, &mut left, &mut trees, stop)?;
    }
    Ok(Some(Found { trees, way }))
}

fn depth_max<C: FlowUnit>(grower: &Grower<C>, trees: &[PackedTree<C>], stop: &dyn Stop) -> Result<u32, SynthesisError> {
    let mut most = 0;
    for tree in trees {
        ask(stop)?;
        most = most.max(grower.depth_max(tree));
    }
    Ok(most)
}

/// What a greedy packing begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    InTurn,
    /// Trees without any branching but at the root, for most of the demand of each root. A root with few trees of its
    /// own has capacity to spare, which others need: but if they come first, they do not leave it what its own need.
    Stars,
}

/// One packing on its way.
///
/// Each tree takes the greatest weight its shape and `weight_max` allow: with it ends a demand, fills an edge, or makes a
/// set tight, so that the number of different trees does not grow with the demands.
///
/// Source: Zhao 2026, algorithm 4 and theorem 32 for the exact trees; the invariant is that of [`Condition`]. Departure:
/// one tree grows at a time, and when its weight must fall, the copies cut off go back to their root with their
/// capacity. That keeps every other tree a bare root, and its flow network small.
struct Packing<'a, 'c, C> {
    condition: Condition<'c, C>,
    grower: &'a Grower<C>,
    weight_max: C,
    /// Of trees that are tested.
    preference: EdgePreference,
    stop: &'a dyn Stop,
    progress: &'a dyn Progress,
    trees: Vec<PackedTree<C>>,
    total: u64,
    done: u64,
    /// Of completing, as flows times edges.
    work: u64,
    /// Of tests, as flows times edges: beyond, the packing is given up.
    work_max: u64,
}

impl<'a, 'c, C: FlowUnit> Packing<'a, 'c, C> {
    fn new(
        condition: Condition<'c, C>,
        grower: &'a Grower<C>,
        weight_max: C,
        preference: EdgePreference,
        stop: &'a dyn Stop,
        progress: &'a dyn Progress,
    ) -> Self {
        let trees = Vec::new();
        let (total, done, work, work_max) = (0, 0, 0, u64::MAX);
        let mut packing =
            Self { condition, grower, weight_max, preference, stop, progress, trees, total, done, work, work_max };
        packing.total = packing.demand_left();
        packing
    }

    /// Packs all trees. Says whether it did, or gave up.
    fn run(&mut self) -> Result<bool, SynthesisError> {
        for preference in PREFERENCES {
            for start in [Start::InTurn, Start::Stars] {
                if self.finish_greedily(preference, start)? {
                    return Ok(true);
                }
            }
        }
        if self.rank_count() >= COMPLETED_FROM {
            for preference in COMPLETED {
                if self.complete(preference)? {
                    return Ok(true);
                }
            }
        }
        self.pack_tested()
    }

    fn rank_count(&self) -> u32 {
        u32::try_from(self.grower.rank_count()).expect("ranks are counted in u32")
    }

    fn demand_left(&self) -> u64 {
        let left = (0..self.rank_count()).map(|rank| self.condition.demand(rank).to_u128()).sum::<u128>();
        u64::try_from(left).expect("the number of all trees was checked")
    }

    /// The next greedy tree, beside `count` others.
    fn grow(
        &self,
        left: &Remainder<C>,
        root: u32,
        preference: EdgePreference,
        count: usize,
    ) -> Result<Option<PackedTree<C>>, SynthesisError> {
        require_room(count + 1, self.grower.rank_count())?;
        Ok(self.grower.grow(left, root, self.weight_max, preference, self.stop)?)
    }

    /// Takes trees as they come, round by round over the roots, as long as they are not thin, and completes them; keeps them
    /// only if that goes well.
    fn complete(&mut self, preference: EdgePreference) -> Result<bool, SynthesisError> {
        let mut left = Remainder::of(&self.condition, self.rank_count());
        let capacities = left.capacities.clone();
        let mut trees = Vec::new();
        let mut wanting: Vec<u32> = (0..self.rank_count()).collect();
        while !wanting.is_empty() {
            let mut going_on = Vec::new();
            for root in wanting {
                let demand = left.demands[root as usize].to_u128();
                if demand == 0 {
                    continue;
                }
                let tree = self.grow(&left, root, preference, trees.len())?;
                if let Some(tree) = tree.filter(|tree| tree.weight.to_u128().saturating_mul(THIN) >= demand) {
                    left.take(&tree);
                    trees.push(tree);
                    going_on.push(root);
                }
            }
            wanting = going_on;
        }
        self.work = self.work.saturating_add((trees.len() as u64).saturating_mul(self.grower.edge_count() as u64));
        let Some(trees) = completed(self.grower, &capacities, trees, left, self.stop)? else { return Ok(false) };
        require_room(trees.len(), self.grower.rank_count())?;
        self.keep_all(trees)?;
        Ok(true)
    }

    /// Takes trees as they come, round by round over the roots; keeps them only if they serve all demands.
    fn finish_greedily(&mut self, preference: EdgePreference, start: Start) -> Result<bool, SynthesisError> {
        let mut left = Remainder::of(&self.condition, self.rank_count());
        let mut trees = Vec::new();
        if start == Start::Stars {
            for root in 0..self.rank_count() {
                ask(self.stop)?;
                while left.demands[root as usize] > C::ZERO
                    && let Some(star) = self.grower.thick_star(&left, root, self.weight_max)
                {
                    left.take(&star);
                    trees.push(star);
                }
            }
            if trees.is_empty() {
                return Ok(false);
            }
        }
        while left.demands.iter().any(|&demand| demand > C::ZERO) {
            for root in 0..self.rank_count() {
                if left.demands[root as usize] == C::ZERO {
                    continue;
                }
                let residual = if start == Start::Stars { Residual::Spare } else { Residual::Capacity };
                let preference = EdgePreference { residual, ..preference };
                let Some(tree) = self.grow(&left, root, preference, trees.len())? else {
                    return Ok(false);
                };
                left.take(&tree);
                trees.push(tree);
            }
        }
        self.keep_all(trees)?;
        Ok(true)
    }

    /// Takes trees out of what is left, and records them.
    fn keep_all(&mut self, trees: Vec<PackedTree<C>>) -> Result<(), Stopped> {
        for tree in trees {
            ask(self.stop)?;
            tree.apply(&mut self.condition, tree.weight);
            self.keep(tree);
        }
        Ok(())
    }

    /// Greedy trees, tested in bulks that double while they pass and restart small when one fails.
    fn pack_tested(&mut self) -> Result<bool, SynthesisError> {
        let before = self.condition.flows();
        let mut next_root = 0;
        let mut size = self.grower.rank_count();
        while self.demand_left() > 0 {
            if (self.condition.flows() - before).saturating_mul(self.condition.edge_count() as u64) > self.work_max {
                return Ok(false);
            }
            let first_root = self.next_with_demand(next_root);
            let mut proposals = self.propose(first_root, size)?;
            let (whole, part) = self.condition.apply_longest_prefix(&proposals)?;
            let all_passed = whole == proposals.len();
            proposals.truncate(whole + 1);
            if !all_passed {
                proposals[whole].weight = part;
            }
            proposals.retain(|tree| tree.weight > C::ZERO);
            if proposals.is_empty() {
                require_room(self.trees.len() + 1, self.grower.rank_count())?;
                proposals.push(exact_tree(&mut self.condition, self.grower, first_root, self.weight_max)?);
            }
            for tree in proposals {
                next_root = (tree.root + 1) % self.rank_count();
                self.keep(tree);
            }
            size = if all_passed { size * 2 } else { (whole * 2).max(1) };
        }
        Ok(true)
    }

    fn next_with_demand(&self, from: u32) -> u32 {
        let all = (0..self.rank_count()).map(|step| (from + step) % self.rank_count());
        let mut wanting = all.filter(|&rank| self.condition.demand(rank) > C::ZERO);
        wanting.next().expect("asked only while a demand is left")
    }

    /// Up to `size` trees that fit the capacities together, for the roots in turn.
    fn propose(&self, first_root: u32, size: usize) -> Result<Vec<PackedTree<C>>, SynthesisError> {
        let mut left = Remainder::of(&self.condition, self.rank_count());
        let mut proposals = Vec::new();
        let mut root = first_root;
        let mut idle = 0;
        while proposals.len() < size && idle < self.rank_count() {
            idle += 1;
            if left.demands[root as usize] > C::ZERO {
                let Some(tree) = self.grow(&left, root, self.preference, self.trees.len() + proposals.len())? else {
                    break;
                };
                left.take(&tree);
                proposals.push(tree);
                idle = 0;
            }
            root = (root + 1) % self.rank_count();
        }
        Ok(proposals)
    }

    /// Records a tree that the condition knows of.
    fn keep(&mut self, tree: PackedTree<C>) {
        self.done += u64::try_from(tree.weight.to_u128()).expect("no tree outweighs the demands");
        self.progress.report(Stage::Trees, self.done, self.total);
        self.trees.push(tree);
    }
}
