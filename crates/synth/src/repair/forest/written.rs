//! The repaired trees as a forest.

use canopy_schedule::{Action, Carrier, Forest, Hop, Phase, RouteIndex, RouteInterner, Tree};
use canopy_topology::Rank;

use super::super::RepairError;
use super::super::refinement::common_divisor;
use super::Trees;

impl Trees<'_> {
    /// Trees by root, those of one root in the order in which they came about, in chunks as large as possible.
    pub(super) fn written(mut self) -> Result<Forest, RepairError> {
        let k = self.forest.chunks_per_share.checked_mul(self.factor).and_then(|k| k.checked_mul(self.of.divisor));
        let mut forest = Forest {
            chunks_per_share: k.ok_or(RepairError::TooLarge)?,
            carriers: Vec::with_capacity(self.forest.carriers.len()),
            hops: Vec::with_capacity(self.forest.hops.len()),
            ..Forest { chunks_per_share: 1, routes: Default::default(), carriers: vec![], hops: vec![], phases: vec![] }
        };
        let mut routes = RouteInterner::default();
        let mut number: Vec<Option<RouteIndex>> = vec![None; self.routes.len()];
        let mut named = |route: RouteIndex, of: &[Vec<canopy_topology::LinkIndex>]| {
            *number[route.index()].get_or_insert_with(|| routes.intern(&of[route.index()]))
        };
        for at in 0..self.phases.len() {
            let action = self.phases[at].action;
            let mut entries = std::mem::take(&mut self.phases[at].entries);
            entries.sort_by_key(|entry| (entry.root, entry.base));
            let mut trees = Vec::with_capacity(entries.len());
            for entry in &entries {
                let start = position(forest.hops.len())?;
                if let Some(tree) = &entry.changed {
                    let mut order = tree.branch(tree.root);
                    if action == Action::Reduce {
                        order.reverse();
                    }
                    for rank in order {
                        let Some(up) = &tree.ups[rank as usize] else { continue };
                        let first = position(forest.carriers.len())?;
                        for (route, chunk_count) in up.ways.parts(tree.weight) {
                            forest.carriers.push(Carrier { route: named(route, &self.routes), chunk_count });
                        }
                        let (parent, rank) = (Rank::new(up.parent), Rank::new(rank));
                        let (from, to) = if action == Action::Copy { (parent, rank) } else { (rank, parent) };
                        forest.hops.push(Hop { from, to, carriers: first..position(forest.carriers.len())? });
                    }
                } else {
                    let missing = RepairError::Malformed { what: "a tree has a rank that it does not know" };
                    for hop in self.forest.hops_of(&self.forest.phases[at].trees[entry.base]) {
                        let ends = self.of.remainder.rank(hop.from).zip(self.of.remainder.rank(hop.to));
                        let Some((from, to)) = ends else { return Err(missing) };
                        let first = position(forest.carriers.len())?;
                        for &Carrier { route, chunk_count } in self.forest.carriers_of(hop) {
                            let chunk_count = chunk_count.checked_mul(self.factor).ok_or(RepairError::TooLarge)?;
                            forest.carriers.push(Carrier { route: named(route, &self.routes), chunk_count });
                        }
                        forest.hops.push(Hop { from, to, carriers: first..position(forest.carriers.len())? });
                    }
                }
                let hops = start..position(forest.hops.len())?;
                trees.push(Tree { root: Rank::new(entry.root), multiplicity: self.weight_of(at, entry), hops });
            }
            forest.phases.push(Phase { action, trees });
        }
        forest.routes = routes.finish();
        let counts = forest.carriers.iter().map(|carrier| carrier.chunk_count);
        let divisor = common_divisor(counts.chain([forest.chunks_per_share]));
        forest.chunks_per_share /= divisor;
        forest.carriers.iter_mut().for_each(|carrier| carrier.chunk_count /= divisor);
        forest.phases.iter_mut().flat_map(|phase| &mut phase.trees).for_each(|tree| tree.multiplicity /= divisor);
        Ok(forest)
    }
}

/// Where the next entry of a table goes.
fn position(length: usize) -> Result<u32, RepairError> {
    u32::try_from(length).map_err(|_| RepairError::TooLarge)
}
