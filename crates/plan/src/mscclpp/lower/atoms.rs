//! What each rank does with each tree, in one order that all ranks follow.
//!
//! In that order everything a rank needs was sent before. So the first atom that is not finished can always go on: there
//! is no deadlock, however blocks divide the atoms, as long as each keeps to the order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::layout::{Layout, Mapping, Spot};
use super::trees::{SwitchTrees, Tree, TreeHop, Work, groups};
use super::{ExecutionLowerError, Stop, check_stop};
use crate::msccl::{Buffer, Ranges};

/// A range of chunks that one rank writes into the memory of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) source: Spot,
    pub(super) target: Spot,
    pub(super) count: u32,
    /// Whether a switch makes it, together with others.
    pub(super) is_stored: bool,
}

/// A range of chunks that one rank stores at all members of a group at once.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) from: u32,
    /// Position in the list of groups.
    pub(super) group: usize,
    /// Where the chunks are: at the rank itself, or at every member, which are then added up.
    pub(super) source: Spot,
    pub(super) is_sum: bool,
    /// Where they go, at every member.
    pub(super) target: Spot,
    pub(super) count: u32,
}

/// A sum of two ranges of one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) first: Spot,
    pub(super) second: Spot,
    pub(super) result: Spot,
    pub(super) count: u32,
}

/// What one rank does at once: wait for what it needs, sum it up, send it on.
#[derive(Clone, Debug)]
pub(super) struct Atom {
    pub(super) rank: u32,
    /// Hops that must have arrived.
    pub(super) needs: Vec<usize>,
    pub(super) sums: Vec<Sum>,
    /// Hops that leave.
    pub(super) sends: Vec<usize>,
    /// Stores that make some of these hops, which come first, and how many each makes.
    pub(super) stores: Vec<(usize, usize)>,
}

/// All atoms.
pub(super) struct Atoms {
    pub(super) hops: Vec<Hop>,
    pub(super) stores: Vec<Store>,
    /// Members of each group that chunks are stored at.
    pub(super) switch_groups: Vec<Vec<u32>>,
    /// Trees that share chunks, together.
    pub(super) groups: Vec<Group>,
    /// By rank.
    pub(super) scratch: Vec<u32>,
}

/// What is done with the chunks of some trees.
pub(super) struct Group {
    /// Hops of the deepest tree, one after the other.
    pub(super) depth: usize,
    /// In their order.
    pub(super) pieces: Vec<Piece>,
}

/// What is done with one piece: first what comes before any copy of a sum, then the rest.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) up: Vec<Atom>,
    pub(super) down: Vec<Atom>,
}

/// Where a rank has some chunks, and what brought them.
#[derive(Clone, Copy)]
struct Held {
    mapping: Mapping,
    brought_by: Option<usize>,
}

impl Atoms {
    /// Follows trees, whose chunks are whole, in pieces.
    pub(super) fn new(switched: &SwitchTrees, layout: &Layout, stop: Stop<'_>) -> Result<Self, ExecutionLowerError> {
        let trees = &switched.trees;
        let mut walk = Walk {
            layout,
            held: vec![Ranges::new(); layout.ranks as usize],
            atoms: Self {
                hops: Vec::new(),
                stores: Vec::new(),
                switch_groups: switched.groups.clone(),
                groups: Vec::new(),
                scratch: vec![layout.landing(); layout.ranks as usize],
            },
        };
        for (rank, held) in (0..layout.ranks).zip(&mut walk.held) {
            if let Some((chunks, mapping)) = layout.start(rank) {
                held.set(chunks, Held { mapping, brought_by: None });
            }
        }
        for (index, members) in groups(trees).into_iter().enumerate() {
            check_stop(stop, index)?;
            let members: Vec<&Tree> = members.into_iter().filter_map(|member| trees.get(member)).collect();
            let depth = members.iter().map(|tree| tree.depth()).max().unwrap_or(0);
            let sums = members.iter().take_while(|tree| tree.work == Work::Reduce).count();
            let (up, down) = members.split_at(if sums == 0 { members.len() } else { sums });
            // What switches do alone needs no order among pieces: side by side they take as many blocks as there are lanes.
            let is_apart = matches!(&*members, [tree] if tree.is_stored());
            let mut pieces = Vec::with_capacity(layout.pieces as usize);
            for piece in 0..layout.pieces {
                let mut atoms = Piece::default();
                for (trees, atoms) in [(up, &mut atoms.up), (down, &mut atoms.down)] {
                    for tree in trees {
                        let chunks = layout.piece(&tree.chunks, piece);
                        for part in walk.parts(tree, &chunks)? {
                            walk.tree(tree, &part, atoms)?;
                        }
                    }
                }
                pieces.push(atoms);
            }
            if is_apart {
                walk.atoms.groups.extend(pieces.into_iter().map(|piece| Group { depth, pieces: vec![piece] }));
            } else {
                walk.atoms.groups.push(Group { depth, pieces });
            }
        }
        Ok(walk.atoms)
    }
}

struct Walk<'a> {
    layout: &'a Layout,
    /// By rank.
    held: Vec<Ranges<Held>>,
    atoms: Atoms,
}

impl Walk<'_> {
    /// Cuts the chunks of a tree where they lie apart at a rank that has them.
    fn parts(&self, tree: &Tree, chunks: &Range<u32>) -> Result<Vec<Range<u32>>, ExecutionLowerError> {
        let mut cuts = vec![chunks.start, chunks.end];
        let holders: Vec<u32> = match tree.work {
            Work::Copy => vec![tree.root],
            Work::Reduce | Work::SwitchSum => {
                let mut ranks: Vec<u32> = tree.hops.iter().flat_map(|hop| [hop.from, hop.to]).collect();
                ranks.sort_unstable();
                ranks.dedup();
                ranks
            }
        };
        for rank in holders {
            let mut at = chunks.start;
            for (part, _) in self.held[rank as usize].over(chunks.clone()) {
                if part.start != at {
                    break;
                }
                cuts.push(part.start);
                at = part.end;
            }
            if at != chunks.end {
                let chunk = self.layout.graph_chunk(at);
                return Err(ExecutionLowerError::NotHeld { rank, chunk });
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        Ok(cuts.windows(2).map(|pair| pair[0]..pair[1]).collect())
    }

    fn tree(&mut self, tree: &Tree, chunks: &Range<u32>, group: &mut Vec<Atom>) -> Result<(), ExecutionLowerError> {
        match tree.work {
            Work::Copy => self.copy(tree, chunks, group),
            Work::Reduce => self.reduce(tree, chunks, group),
            Work::SwitchSum => self.switch_sum(tree, chunks, group),
        }
    }

    fn held(&self, rank: u32, chunks: &Range<u32>) -> Result<Held, ExecutionLowerError> {
        let held = self.held[rank as usize].over(chunks.clone()).next().map(|(_, &held)| held);
        held.ok_or_else(|| ExecutionLowerError::NotHeld { rank, chunk: self.layout.graph_chunk(chunks.start) })
    }

    /// New scratch of a rank for some chunks.
    fn scratch(&mut self, rank: u32, chunks: &Range<u32>) -> Mapping {
        let used = &mut self.atoms.scratch[rank as usize];
        let mapping = Mapping::placing(Buffer::Scratch, chunks.start, *used);
        *used = used.saturating_add(chunks.end - chunks.start);
        mapping
    }

    fn hop(&mut self, (from, to): (u32, u32), chunks: &Range<u32>, source: Mapping, target: Mapping) -> usize {
        let (source, target) = (source.spot(chunks.start), target.spot(chunks.start));
        self.atoms.hops.push(Hop { from, to, source, target, count: chunks.end - chunks.start, is_stored: false });
        self.atoms.hops.len() - 1
    }

    /// A store that makes these hops; the source is the rank's own unless it is a sum.
    fn store(&mut self, group: usize, hops: &[usize], is_sum: bool) -> Option<(usize, usize)> {
        for &hop in hops {
            self.atoms.hops[hop].is_stored = true;
        }
        let &Hop { from, source, target, count, .. } = &self.atoms.hops[*hops.first()?];
        self.atoms.stores.push(Store { from, group, source, is_sum, target, count });
        Some((self.atoms.stores.len() - 1, hops.len()))
    }

    fn copy(&mut self, tree: &Tree, chunks: &Range<u32>, group: &mut Vec<Atom>) -> Result<(), ExecutionLowerError> {
        let mut has_sent = BTreeSet::new();
        for &TreeHop { from, .. } in &tree.hops {
            if !has_sent.insert(from) {
                continue;
            }
            let held = self.held(from, chunks)?;
            let mut by_group: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
            for &TreeHop { to, group, .. } in tree.hops.iter().filter(|hop| hop.from == from) {
                let goal = self.layout.goal(to, chunks.start);
                let target = goal.unwrap_or_else(|| self.scratch(to, chunks));
                let hop = self.hop((from, to), chunks, held.mapping, target);
                self.held[to as usize].set(chunks.clone(), Held { mapping: target, brought_by: Some(hop) });
                by_group.entry(group).or_default().push(hop);
            }
            let plain = by_group.remove(&None).unwrap_or_default();
            let stores = by_group.iter().filter_map(|(&number, hops)| self.store(number?, hops, false)).collect();
            let sends = by_group.into_values().flatten().chain(plain).collect();
            group.push(Atom {
                rank: from,
                needs: held.brought_by.into_iter().collect(),
                sums: Vec::new(),
                sends,
                stores,
            });
        }
        Ok(())
    }

    fn reduce(&mut self, tree: &Tree, chunks: &Range<u32>, group: &mut Vec<Atom>) -> Result<(), ExecutionLowerError> {
        let mut arrived: Vec<Vec<usize>> = vec![Vec::new(); self.layout.ranks as usize];
        for &TreeHop { from, to, .. } in &tree.hops {
            let mut atom = self.sum(from, &std::mem::take(&mut arrived[from as usize]), chunks)?;
            let source = self.held(from, chunks)?.mapping;
            let slot = self.scratch(to, chunks);
            let hop = self.hop((from, to), chunks, source, slot);
            atom.sends.push(hop);
            arrived[to as usize].push(hop);
            group.push(atom);
        }
        let last = self.sum(tree.root, &arrived[tree.root as usize], chunks)?;
        group.push(last);
        Ok(())
    }

    /// All inputs are there from the start, so the root only has to hear that the others have begun.
    fn switch_sum(
        &mut self,
        tree: &Tree,
        chunks: &Range<u32>,
        group: &mut Vec<Atom>,
    ) -> Result<(), ExecutionLowerError> {
        let source = self.held(tree.root, chunks)?.mapping;
        let mut sends = Vec::with_capacity(tree.hops.len());
        for &TreeHop { from, to, .. } in &tree.hops {
            let target = self.layout.goal(to, chunks.start).unwrap_or(source);
            let hop = self.hop((from, to), chunks, source, target);
            self.held[to as usize].set(chunks.clone(), Held { mapping: target, brought_by: Some(hop) });
            sends.push(hop);
        }
        let number = tree.hops.first().and_then(|hop| hop.group);
        let stores = number.and_then(|number| self.store(number, &sends, true)).into_iter().collect();
        group.push(Atom { rank: tree.root, needs: Vec::new(), sums: Vec::new(), sends, stores });
        Ok(())
    }

    /// Adds what has arrived to what a rank has. The result lies where the chunks must end, if they must end there, else
    /// in the scratch that one of them came in: the input stays as it is.
    fn sum(&mut self, rank: u32, arrived: &[usize], chunks: &Range<u32>) -> Result<Atom, ExecutionLowerError> {
        let held = self.held(rank, chunks)?;
        let needs = held.brought_by.into_iter().collect();
        let mut atom = Atom { rank, needs, sums: Vec::new(), sends: Vec::new(), stores: Vec::new() };
        let mut so_far = held.mapping.spot(chunks.start);
        let goal = self.layout.goal(rank, chunks.start);
        for (position, &hop) in arrived.iter().enumerate() {
            atom.needs.push(hop);
            let second = self.atoms.hops[hop].target;
            let is_last = position + 1 == arrived.len();
            let result = goal.filter(|_| is_last).map_or(second, |goal| goal.spot(chunks.start));
            let count = chunks.end - chunks.start;
            atom.sums.push(Sum { first: so_far, second, result, count });
            so_far = result;
        }
        if !arrived.is_empty() {
            let mapping = Mapping::placing(so_far.buffer, chunks.start, so_far.index);
            self.held[rank as usize].set(chunks.clone(), Held { mapping, brought_by: None });
        }
        Ok(atom)
    }
}
