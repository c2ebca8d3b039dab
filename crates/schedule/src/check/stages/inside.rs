//! What the links in boxes carry when ranks spread what enters their box.

use super::error::{StagesError, TreeFault};
use crate::stages::{BoxTree, Inside, Seating, Stages};

/// Judges the trees of boxes, and counts what they carry.
pub(super) struct Spread<'a> {
    stages: &'a Stages,
    seating: &'a Seating,
    /// Classes with boxes of the same live places were judged before: by class, those places.
    judged: Vec<Vec<Vec<u32>>>,
    depth: u32,
}

impl<'a> Spread<'a> {
    /// * **Errors.** A class that is not stated, or a box that does not exist.
    pub(super) fn new(stages: &'a Stages, seating: &'a Seating) -> Result<Self, StagesError> {
        let (boxes, classes) = (seating.box_count(), stages.inside.len());
        let first = (0, 0);
        let stated = stages.classes.iter().map(|(&of_box, &class)| (of_box, class));
        for (of_box, class) in stated.chain([first]) {
            if of_box >= boxes || class as usize >= classes {
                return Err(StagesError::Class { of_box, class, boxes, classes });
            }
        }
        Ok(Self { stages, seating, judged: vec![Vec::new(); classes], depth: 0 })
    }

    /// Greatest depth of a tree so far, in hops.
    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    /// Counts what a box carries along trees, given how much enters at each of its places, by calls of `carry` with two
    /// ranks and a number of chunks. False: it spreads without trees.
    pub(super) fn along_trees(
        &mut self,
        of_box: u32,
        entered: &[u64],
        mut carry: impl FnMut(u32, u32, u64) -> Result<(), StagesError>,
    ) -> Result<bool, StagesError> {
        let class = self.stages.classes.get(&of_box).copied().unwrap_or(0);
        let trees = match self.stages.inside.get(class as usize) {
            Some(Inside::Trees(trees)) => trees,
            Some(Inside::Star) => return Ok(false),
            None => {
                let (boxes, classes) = (self.seating.box_count(), self.stages.inside.len());
                return Err(StagesError::Class { of_box, class, boxes, classes });
            }
        };
        let live: Vec<u32> = self.seating.live(of_box).map(|(place, _)| place).collect();
        if !self.judged[class as usize].contains(&live) {
            for (tree, of_tree) in trees.iter().enumerate() {
                let depth = spans(of_tree, &live, entered.len());
                let depth = depth.map_err(|fault| StagesError::Tree { class, tree, of_box, fault })?;
                self.depth = self.depth.max(depth);
            }
            self.judged[class as usize].push(live.clone());
        }
        for &place in &live {
            let own = || trees.iter().enumerate().filter(|(_, tree)| tree.root == place);
            let turn = own().try_fold(0_u64, |turn, (_, tree)| turn.checked_add(tree.multiplicity));
            let tree = own().next().map_or(0, |(tree, _)| tree);
            let overflow = StagesError::Tree { class, tree, of_box, fault: TreeFault::TooManyChunks };
            let turn = turn.ok_or(overflow)?;
            if turn == 0 {
                return Err(StagesError::NoTree { class, place, of_box });
            }
            let (turns, over) = (entered[place as usize] / turn, entered[place as usize] % turn);
            let mut before = 0;
            for (_, tree) in own() {
                let chunks = turns * tree.multiplicity + over.saturating_sub(before).min(tree.multiplicity);
                before += tree.multiplicity;
                for &(from, to) in tree.hops.iter().filter(|_| chunks > 0) {
                    let ranks = self.seating.rank(of_box, from).zip(self.seating.rank(of_box, to));
                    let (from, to) = ranks.ok_or(StagesError::NoTree { class, place, of_box })?;
                    carry(from, to, chunks)?;
                }
            }
        }
        Ok(true)
    }
}

/// Whether a tree reaches each of these places once, from its root; returns how deep it is.
fn spans(tree: &BoxTree, live: &[u32], places: usize) -> Result<u32, TreeFault> {
    if tree.multiplicity == 0 {
        return Err(TreeFault::NoChunks);
    }
    let require = |place: u32| if live.contains(&place) { Ok(()) } else { Err(TreeFault::NoRank { place }) };
    require(tree.root)?;
    let mut depths: Vec<Option<u32>> = vec![None; places];
    depths[tree.root as usize] = Some(0);
    for &(from, to) in &tree.hops {
        require(from)?;
        require(to)?;
        let depth = depths[from as usize].ok_or(TreeFault::Early { place: from })?;
        if depths[to as usize].replace(depth + 1).is_some() {
            return Err(TreeFault::Twice { place: to });
        }
    }
    let found = depths.iter().flatten().count();
    if found != live.len() {
        return Err(TreeFault::Missing { found, expected: live.len() });
    }
    Ok(depths.into_iter().flatten().max().unwrap_or(0))
}
