//! Trees that faults have touched: other parents of some seats, and seats without ranks.
//!
//! In a tree with patches, each walk towards the root comes nearer to it by the template until it meets a seat with a
//! patch. So every seat is connected if those with patches are, and these are followed from one to the next.

use super::error::{OrbitsError, PatchFault};
use super::group::Group;
use super::loads::{Healthy, Loads};
use super::tree::{Spans, Tree};
use crate::check::Stop;
use crate::orbits::{Orbits, Patch};

/// Most patches of one tree.
const PATCHES_MAX: usize = 256;
/// Most hops of templates, each counted for each lost seat.
const LOST_HOPS_MAX: u64 = 1 << 31;

/// What patches do to the trees of one template.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deeper {
    /// Depth of the deepest tree, at most.
    pub(super) depth: u32,
    /// Σ over trees of the hops by which they are deeper than the template, at most.
    pub(super) sum: u64,
}

/// The patches of all templates.
pub(super) struct Patches<'a> {
    orbits: &'a Orbits,
    group: &'a Group,
    network: &'a Healthy<'a>,
    /// By template, patches by number.
    of_templates: Vec<Vec<usize>>,
    /// By seat, whether some tree has a patch of it.
    pub(super) is_patched: Vec<bool>,
}

impl<'a> Patches<'a> {
    /// Checks that what patches name exists.
    pub(super) fn new(orbits: &'a Orbits, group: &'a Group, network: &'a Healthy<'a>) -> Result<Self, OrbitsError> {
        let hops = u64::from(orbits.seat_count) * orbits.templates.len() as u64;
        let lost = u64::from(orbits.seat_count - network.topology.rank_count());
        if lost.saturating_mul(hops) > LOST_HOPS_MAX {
            return Err(OrbitsError::TooManyLost { lost });
        }
        let mut of_templates = vec![Vec::new(); orbits.templates.len()];
        let mut is_patched = vec![false; orbits.seat_count as usize];
        for (number, patch) in orbits.patches.iter().enumerate() {
            let fault = |fault| OrbitsError::Patch { patch: number, fault };
            let Patch { template, child, parent, .. } = *patch;
            let of_template = of_templates.get_mut(template as usize);
            of_template.ok_or(fault(PatchFault::NoTemplate { template }))?.push(number);
            for seat in [child, parent] {
                if !network.is_live(seat) {
                    return Err(fault(PatchFault::NoRank { seat }));
                }
            }
            if orbits.actions.iter().any(|&action| network.link(action, parent, child).is_none()) {
                return Err(fault(PatchFault::NoLink { parent, child }));
            }
            if let Some(pair) = patch.roots.windows(2).find(|pair| pair[0] >= pair[1]) {
                return Err(fault(PatchFault::Unsorted { root: pair[1] }));
            }
            is_patched[child as usize] = true;
        }
        Ok(Self { orbits, group, network, of_templates, is_patched })
    }

    /// Whether the network is as healthy as the templates take it to be.
    pub(super) fn is_needed(orbits: &Orbits, rank_count: u32) -> bool {
        rank_count != orbits.seat_count || !orbits.patches.is_empty()
    }

    /// Takes hops to and from lost seats, and those that patches replace, from the loads of one template; adds those of
    /// patches. `None`: stopped.
    pub(super) fn apply(
        &self,
        number: usize,
        tree: &Tree,
        loads: &mut [Loads<'_>],
        stop: Stop<'_>,
    ) -> Result<Option<Deeper>, OrbitsError> {
        let weight = i64::try_from(self.orbits.templates[number].weight).unwrap_or(i64::MAX);
        let mut change = |from: u32, to: u32, chunks: i64| {
            loads.iter_mut().try_for_each(|of_phase| of_phase.change(from, to, chunks))
        };
        for lost in (0..self.orbits.seat_count).filter(|&seat| !self.network.is_live(seat)) {
            if stop() {
                return Ok(None);
            }
            self.lose(lost, tree, |from, to| change(from, to, -weight))?;
        }
        let patches = &self.of_templates[number];
        for &at in patches {
            if stop() {
                return Ok(None);
            }
            let patch = &self.orbits.patches[at];
            for &root in &patch.roots {
                let fault = |fault| OrbitsError::Patch { patch: at, fault };
                let old = self.parent(tree, patch.child, root).map_err(fault)?;
                if old == patch.parent {
                    return Err(fault(PatchFault::Unchanged { root }));
                }
                change(old, patch.child, -weight)?;
                change(patch.parent, patch.child, weight)?;
            }
        }
        if patches.is_empty() { Ok(Some(Deeper::default())) } else { self.follow(number, tree, stop) }
    }

    /// The parent that a seat has by the template, in the tree from a root.
    fn parent(&self, tree: &Tree, child: u32, root: u32) -> Result<u32, PatchFault> {
        let group = self.group;
        let is_root = root < self.orbits.seat_count
            && self.network.is_live(root)
            && group.orbit_of(group.code_of(root)) == group.orbit_of(tree.root);
        if !is_root {
            return Err(PatchFault::NoTree { root });
        }
        if root == child {
            return Err(PatchFault::Root { root });
        }
        let by = group.code_of(root);
        let parent = tree.parents[group.back(group.code_of(child), by) as usize];
        Ok(group.seat_of(group.forth(parent, by)))
    }

    /// Hops of the trees of one template that a lost seat does not take part in.
    fn lose(
        &self,
        lost: u32,
        tree: &Tree,
        mut drop: impl FnMut(u32, u32) -> Result<(), OrbitsError>,
    ) -> Result<(), OrbitsError> {
        let group = self.group;
        let code = group.code_of(lost);
        let is_root = group.orbit_of(code) == group.orbit_of(tree.root);
        let of_roots = group.orbit_of(tree.root) * group.size();
        for (child, parent) in tree.hops() {
            let moved = |code, by| group.seat_of(group.forth(code, by));
            if is_root {
                drop(moved(parent, code), moved(child, code))?;
            }
            // The one tree in which this hop leads into the lost seat.
            if group.orbit_of(child) == group.orbit_of(code) {
                let by = of_roots + group.back(code, child) % group.size();
                if self.network.is_live(group.seat_of(by)) {
                    drop(moved(parent, by), lost)?;
                }
            }
        }
        Ok(())
    }

    /// Follows all patched seats to the roots of their trees. `None`: stopped.
    fn follow(&self, number: usize, tree: &Tree, stop: Stop<'_>) -> Result<Option<Deeper>, OrbitsError> {
        let (group, spans) = (self.group, tree.spans());
        let of_roots = group.orbit_of(tree.root) * group.size();
        let (starts, patches) = self.by_root(number, of_roots);
        let weightless = Walk { tree, spans: &spans, depth: tree.depth };
        let mut deeper = Deeper::default();
        let mut hops = Vec::new();
        for root in 0..group.size() {
            if root.is_multiple_of(1024) && stop() {
                return Ok(None);
            }
            let of_tree = &patches[starts[root as usize]..starts[root as usize + 1]];
            if of_tree.is_empty() {
                continue;
            }
            let (by, seat) = (of_roots + root, group.seat_of(of_roots + root));
            if of_tree.len() > PATCHES_MAX {
                let (found, max) = (of_tree.len(), PATCHES_MAX);
                return Err(OrbitsError::TooManyPatches { template: number, root: seat, found, max });
            }
            hops.clear();
            for &at in of_tree {
                let Patch { child, parent, .. } = self.orbits.patches[at as usize];
                let [child, parent] = [child, parent].map(|seat| group.back(group.code_of(seat), by));
                if hops.iter().any(|hop: &Rehung| hop.child == child) {
                    let fault = PatchFault::Twice { root: seat };
                    return Err(OrbitsError::Patch { patch: at as usize, fault });
                }
                hops.push(Rehung { child, parent, depth: None });
            }
            let depth = weightless.depth(&mut hops).map_err(|child| OrbitsError::Circle {
                template: number,
                root: seat,
                child: group.seat_of(group.forth(child, by)),
            })?;
            deeper.depth = deeper.depth.max(depth);
            deeper.sum += u64::from(depth - tree.depth);
        }
        Ok(Some(deeper))
    }

    /// The patches of a template by the root of the tree: where those of each root start, and all of them.
    fn by_root(&self, number: usize, of_roots: u32) -> (Vec<usize>, Vec<u32>) {
        let all = || {
            self.of_templates[number].iter().flat_map(|&at| {
                let roots = self.orbits.patches[at].roots.iter();
                roots.map(move |&root| (at, (self.group.code_of(root) - of_roots) as usize))
            })
        };
        let mut starts = vec![0_usize; self.group.size() as usize + 1];
        all().for_each(|(_, root)| starts[root + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut patches = vec![0; starts.last().copied().unwrap_or(0)];
        for (at, root) in all() {
            patches[next[root]] = u32::try_from(at).unwrap_or(u32::MAX);
            next[root] += 1;
        }
        (starts, patches)
    }
}

/// A patch of one tree, by codes as the root sees them.
struct Rehung {
    child: u32,
    parent: u32,
    /// Hops from the root, once they are known.
    depth: Option<u32>,
}

/// One template and what is below what.
struct Walk<'a> {
    tree: &'a Tree,
    spans: &'a Spans,
    depth: u32,
}

impl Walk<'_> {
    /// The greatest depth of a tree with patches, at most; else a seat from which the walk never ends.
    fn depth(&self, hops: &mut [Rehung]) -> Result<u32, u32> {
        let depths = &self.tree.depths;
        let mut deepest = self.depth;
        let mut left = hops.len();
        while left > 0 {
            let before = left;
            for at in 0..hops.len() {
                if hops[at].depth.is_some() {
                    continue;
                }
                let parent = hops[at].parent;
                // The first seat with a patch that the walk from the parent meets: itself, or the lowest above it.
                let above = hops.iter().filter(|hop| self.spans.is_below(parent, hop.child));
                let met = above.max_by_key(|hop| depths[hop.child as usize]);
                let depth = match met {
                    None => Some(depths[parent as usize] + 1),
                    Some(met) => {
                        met.depth.map(|depth| depth + depths[parent as usize] - depths[met.child as usize] + 1)
                    }
                };
                if let Some(depth) = depth {
                    hops[at].depth = Some(depth);
                    deepest = deepest.max(depth.saturating_add(self.spans.heights[hops[at].child as usize]));
                    left -= 1;
                }
            }
            if left == before {
                return Err(hops.iter().find(|hop| hop.depth.is_none()).map_or(0, |hop| hop.child));
            }
        }
        Ok(deepest)
    }
}
