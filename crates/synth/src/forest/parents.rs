//! Trees of a network without switches whose ranks choose their parents one after the other.
//!
//! What an edge carries is settled at its head alone: by which of its neighbours a rank gets each tree. So the ranks can
//! share the trees out over the edges that enter them without regard to each other, as long as no rank ends up below itself.
//! Where every rank takes each tree from a neighbour nearer to the root, none can: then there is a transport problem of a
//! few edges for each rank, whatever the sizes of the demands, and no tree is deeper than the network. Tori and other
//! networks of many short ways leave each rank enough of a choice. Where one has too little, it may take a tree from any
//! neighbour that is not below it.
//!
//! Nothing is tested: trees for all demands within all capacities are what was asked.

mod moves;

use std::cmp::Reverse;

use canopy_optimize::{FlowUnit, Stop, Stopped};

use crate::forest::ask;
use crate::forest::condition::EdgeIndex;
use crate::forest::trees::{Grower, PackedTree, Remainder};
use moves::{Move, Users};

/// Looks at a tree and an edge, at most, for each pair of a root and an edge, and in all: a few nanoseconds each.
const LOOKS_PER_PAIR: u64 = 64;
const LOOKS_MAX: u64 = 1 << 27;

/// Pairs of a root and an edge, at most: some tenths of a second.
const PAIRS_MAX: u64 = 1 << 26;

/// Different trees per root, at most, on average, beyond those there were.
const TREES_PER_ROOT: usize = 8;

/// Trees for all demands.
pub(super) struct Chosen<C> {
    /// By root.
    pub(super) trees: Vec<PackedTree<C>>,
    /// Whether no rank is further from a root than in the network.
    pub(super) is_nearest: bool,
}

/// Trees for all demands; `None` if some rank is left without enough of a choice.
///
/// * **In.** Any demands, and what edges have left. **Out.** Trees by root, within these capacities.
/// * **Source.** Our own. **Errors.** Stopped.
/// * **Cost.** O(roots · edges) for the first choice; [`LOOKS_PER_PAIR`] times as much at most in all.
pub(super) fn chosen_trees<C: FlowUnit>(
    grower: &Grower<C>,
    left: &Remainder<C>,
    stop: &dyn Stop,
) -> Result<Option<Chosen<C>>, Stopped> {
    let Some(mut choice) = Choice::new(grower, left, stop)? else { return Ok(None) };
    for reach in [Reach::Nearer, Reach::Anywhere] {
        let mut is_done = true;
        for rank in 0..grower.rank_count() {
            ask(stop)?;
            is_done &= choice.relieve(rank, reach, stop)?;
            if !is_done && reach == Reach::Anywhere {
                return Ok(None);
            }
        }
        if is_done {
            return Ok(Some(Chosen { trees: choice.trees(stop)?, is_nearest: reach == Reach::Nearer }));
        }
    }
    Ok(None)
}

/// In place of the edge into a root, and of the distance from a rank that leads nowhere.
const NONE: u32 = u32::MAX;

/// From where a rank may take a tree that it gives back to an edge with too many.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// A rank nearer to the root than itself.
    Nearer,
    /// Every rank that is not below it.
    Anywhere,
}

/// Trees on their way: all span, but edges may carry more than they can.
pub(super) struct Choice<'a, C> {
    grower: &'a Grower<C>,
    /// By tree.
    roots: Vec<u32>,
    weights: Vec<C>,
    /// By rank: the edges that enter it, and what they can carry beyond what they do, negative if they carry too much.
    entering: Vec<Vec<(EdgeIndex, u32)>>,
    room: Vec<Vec<C>>,
    /// By rank, then by tree: which of these edges it takes the tree from, and its distance from the root.
    parents: Vec<Vec<u32>>,
    depths: Vec<Vec<u32>>,
    /// Whether trees that need not be divided are moved rather than those that stay flat.
    prefers_whole: bool,
    trees_max: usize,
    looks_left: u64,
}

impl<'a, C: FlowUnit> Choice<'a, C> {
    /// One tree per root, on shortest ways; `None` where a root does not reach all ranks, or there is too much to look at.
    fn new(grower: &'a Grower<C>, left: &Remainder<C>, stop: &dyn Stop) -> Result<Option<Self>, Stopped> {
        let ranks = grower.rank_count();
        let (mut roots, mut weights) = (Vec::new(), Vec::new());
        for (root, &demand) in (0_u32..).zip(&left.demands).filter(|&(_, &demand)| demand > C::ZERO) {
            roots.push(root);
            weights.push(demand);
        }
        let pairs = (roots.len() as u64).saturating_mul(grower.edge_count() as u64);
        if pairs > PAIRS_MAX {
            return Ok(None);
        }
        let mut entering: Vec<Vec<(EdgeIndex, u32)>> = vec![Vec::new(); ranks];
        for (edge, _) in left.capacities.iter().enumerate().filter(|&(_, &capacity)| capacity > C::ZERO) {
            let (from, to) = grower.ends(edge);
            entering[to as usize].push((edge, from));
        }
        let mut depths = Vec::with_capacity(ranks);
        for rank in (0_u32..).take(ranks) {
            ask(stop)?;
            let distances = distances_to(rank, &entering);
            let of_trees: Vec<u32> = roots.iter().map(|&root| distances[root as usize]).collect();
            if of_trees.contains(&NONE) {
                return Ok(None);
            }
            depths.push(of_trees);
        }
        let room = entering.iter().map(|edges| edges.iter().map(|&(edge, _)| left.capacities[edge]).collect());
        let mut choice = Self {
            grower,
            room: room.collect(),
            parents: Vec::with_capacity(ranks),
            roots,
            weights,
            entering,
            depths,
            prefers_whole: false,
            trees_max: TREES_PER_ROOT * ranks,
            looks_left: pairs.saturating_mul(LOOKS_PER_PAIR).min(LOOKS_MAX),
        };
        for rank in 0..ranks {
            ask(stop)?;
            let parents = choice.first_choice(rank);
            choice.parents.push(parents);
        }
        Ok(Some(choice))
    }

    /// These trees, which may use more of an edge than there is; `None` if there is too much to look at.
    pub(super) fn of_trees(
        grower: &'a Grower<C>,
        capacities: &[C],
        trees: &[PackedTree<C>],
        stop: &dyn Stop,
    ) -> Result<Option<Self>, Stopped> {
        let pairs = (trees.len() as u64).saturating_mul(grower.edge_count() as u64);
        if pairs > PAIRS_MAX {
            return Ok(None);
        }
        let ranks = grower.rank_count();
        let mut entering: Vec<Vec<(EdgeIndex, u32)>> = vec![Vec::new(); ranks];
        let mut places = vec![NONE; capacities.len()];
        for (edge, _) in capacities.iter().enumerate().filter(|&(_, &capacity)| capacity > C::ZERO) {
            let (from, to) = grower.ends(edge);
            let edges = &mut entering[to as usize];
            places[edge] = u32::try_from(edges.len()).expect("edges are counted in u32");
            edges.push((edge, from));
        }
        let room = entering.iter().map(|edges| edges.iter().map(|&(edge, _)| capacities[edge]).collect());
        let mut choice = Self {
            grower,
            room: room.collect(),
            roots: trees.iter().map(|tree| tree.root).collect(),
            weights: trees.iter().map(|tree| tree.weight).collect(),
            parents: vec![vec![NONE; trees.len()]; ranks],
            depths: vec![vec![0; trees.len()]; ranks],
            entering,
            prefers_whole: true,
            trees_max: trees.len() + TREES_PER_ROOT * ranks,
            looks_left: pairs.saturating_mul(LOOKS_PER_PAIR).min(LOOKS_MAX),
        };
        for (number, tree) in trees.iter().enumerate() {
            ask(stop)?;
            for &edge in &tree.edges {
                let (from, to) = grower.ends(edge);
                let (from, to) = (from as usize, to as usize);
                choice.parents[to][number] = places[edge];
                choice.depths[to][number] = choice.depths[from][number] + 1;
                choice.room[to][places[edge] as usize] -= tree.weight;
            }
        }
        Ok(Some(choice))
    }

    /// Fills the edges into each rank that has one with too much anew, heaviest trees first, without dividing any: a tree
    /// stays on its edge as long as that has room, else it goes to the edge with room that is nearest to the root, else it
    /// stays in spite of it.
    pub(super) fn refill(&mut self, stop: &dyn Stop) -> Result<(), Stopped> {
        let mut heaviest: Vec<usize> = (0..self.roots.len()).collect();
        heaviest.sort_by_key(|&tree| (Reverse(self.weights[tree]), tree));
        for rank in 0..self.room.len() {
            ask(stop)?;
            if self.room[rank].iter().all(|&room| room >= C::ZERO) {
                continue;
            }
            for (tree, &place) in self.parents[rank].iter().enumerate().filter(|&(_, &place)| place != NONE) {
                self.room[rank][place as usize] += self.weights[tree];
            }
            for &tree in &heaviest {
                let now = self.parents[rank][tree];
                if now == NONE {
                    continue;
                }
                let place = self.place_for(rank, tree).unwrap_or(now as usize);
                self.room[rank][place] -= self.weights[tree];
                if place != now as usize {
                    self.parents[rank][tree] = u32::try_from(place).expect("edges are counted in u32");
                    self.sink(rank, tree);
                }
            }
        }
        Ok(())
    }

    /// The edge into a rank that has room for a tree: the one it is on, or else the one nearest to the root.
    fn place_for(&self, rank: usize, tree: usize) -> Option<usize> {
        let has_room = |place: &usize| self.room[rank][*place] >= self.weights[tree];
        let tail = |place: usize| self.entering[rank][place].1 as usize;
        let now = self.parents[rank][tree] as usize;
        let others = (0..self.room[rank].len()).filter(|&place| !self.is_below(tail(place), rank, tree));
        let nearest = || {
            others
                .filter(has_room)
                .min_by_key(|&place| (self.depths[tail(place)][tree], Reverse(self.room[rank][place]), place))
        };
        Some(now).filter(has_room).or_else(nearest)
    }

    /// Trees within all capacities, divided and moved along chains where they have to be; `None` where that does not do.
    pub(super) fn relieve_all(mut self, stop: &dyn Stop) -> Result<Option<Vec<PackedTree<C>>>, Stopped> {
        for rank in 0..self.room.len() {
            ask(stop)?;
            if !self.relieve(rank, Reach::Anywhere, stop)? {
                return Ok(None);
            }
        }
        self.trees(stop).map(Some)
    }

    /// Edges into a rank from ranks nearer to all roots, each with much room left when its turn comes: trees that have only
    /// one such edge come first.
    fn first_choice(&mut self, rank: usize) -> Vec<u32> {
        let edges = &self.entering[rank];
        let mut options: Vec<(u32, usize)> = Vec::with_capacity(self.roots.len());
        for (tree, &depth) in self.depths[rank].iter().enumerate() {
            let count = edges.iter().filter(|&&(_, from)| self.depths[from as usize][tree] < depth).count();
            options.push((u32::try_from(count).unwrap_or(u32::MAX), tree));
        }
        options.sort_unstable_by_key(|&(count, tree)| (count, Reverse(self.weights[tree]), tree));
        let mut parents = vec![NONE; self.roots.len()];
        for (_, tree) in options.into_iter().filter(|&(count, _)| count > 0) {
            let depth = self.depths[rank][tree];
            let nearer = (0..edges.len()).filter(|&place| self.depths[edges[place].1 as usize][tree] < depth);
            let place = nearer.rev().max_by_key(|&place| self.room[rank][place]).expect("counted above");
            self.room[rank][place] -= self.weights[tree];
            parents[tree] = u32::try_from(place).expect("edges are counted in u32");
        }
        parents
    }

    /// Moves trees between the edges into a rank until none carries too much. Says whether that went well.
    fn relieve(&mut self, rank: usize, reach: Reach, stop: &dyn Stop) -> Result<bool, Stopped> {
        if self.room[rank].iter().all(|&room| room >= C::ZERO) {
            return Ok(true);
        }
        let mut users = Users::of(&self.parents[rank], self.entering[rank].len());
        while let Some(full) = (0..self.room[rank].len())
            .filter(|&place| self.room[rank][place] < C::ZERO)
            .min_by_key(|&place| self.room[rank][place])
        {
            ask(stop)?;
            let Some(moves) = self.find_moves(rank, full, reach, &mut users) else { return Ok(false) };
            // From the end of the chain: the first move leads to the edge with room.
            let Some(&Move { to: end, .. }) = moves.first() else { return Ok(false) };
            let excess = C::ZERO - self.room[rank][full];
            let amount =
                moves.iter().map(|step| self.weights[step.tree]).fold(excess.min(self.room[rank][end]), C::min);
            if self.roots.len() + moves.len() > self.trees_max {
                return Ok(false);
            }
            self.room[rank][full] += amount;
            self.room[rank][end] -= amount;
            moves.into_iter().for_each(|step| self.shift(rank, step, amount, reach, &mut users));
        }
        Ok(true)
    }

    /// Whether a rank is below another one in a tree. O(depth).
    fn is_below(&self, rank: usize, above: usize, tree: usize) -> bool {
        let up = |&rank: &usize| {
            let place = self.parents[rank][tree];
            (place != NONE).then(|| self.entering[rank][place as usize].1 as usize)
        };
        std::iter::successors(Some(rank), up).any(|rank| rank == above)
    }

    /// Leaves so much of a tree; what is more becomes a tree of its own, the last, which this gives.
    fn divide(&mut self, tree: usize, weight: C) -> Option<usize> {
        if self.weights[tree] == weight {
            return None;
        }
        self.roots.push(self.roots[tree]);
        self.weights.push(self.weights[tree] - weight);
        self.weights[tree] = weight;
        for (parents, depths) in self.parents.iter_mut().zip(&mut self.depths) {
            parents.push(parents[tree]);
            depths.push(depths[tree]);
        }
        Some(self.roots.len() - 1)
    }

    /// Corrects the distances of a rank, which has another parent, and of all below it.
    fn sink(&mut self, rank: usize, tree: usize) {
        let parent = |rank: usize, parents: &[Vec<u32>]| {
            let place = parents[rank][tree];
            (place != NONE).then(|| self.entering[rank][place as usize].1 as usize)
        };
        let mut waiting = vec![rank];
        while let Some(rank) = waiting.pop() {
            let Some(above) = parent(rank, &self.parents) else { continue };
            let depth = self.depths[above][tree] + 1;
            if std::mem::replace(&mut self.depths[rank][tree], depth) != depth {
                let heads = self.grower.leaving(u32::try_from(rank).expect("ranks are counted in u32"));
                let heads = heads.iter().map(|&edge| self.grower.ends(edge).1 as usize);
                waiting.extend(heads.filter(|&head| parent(head, &self.parents) == Some(rank)));
            }
        }
    }

    /// The trees, by root.
    fn trees(&self, stop: &dyn Stop) -> Result<Vec<PackedTree<C>>, Stopped> {
        let mut packed = Vec::with_capacity(self.roots.len());
        for (tree, (&root, &weight)) in self.roots.iter().zip(&self.weights).enumerate() {
            ask(stop)?;
            let mut outwards: Vec<(u32, EdgeIndex)> = Vec::with_capacity(self.grower.rank_count());
            for (rank, entering) in self.entering.iter().enumerate() {
                let edge = entering.get(self.parents[rank][tree] as usize);
                outwards.extend(edge.map(|&(edge, _)| (self.depths[rank][tree], edge)));
            }
            outwards.sort_unstable();
            packed.push(PackedTree { root, weight, edges: outwards.into_iter().map(|(_, edge)| edge).collect() });
        }
        packed.sort_by_key(|tree| tree.root);
        Ok(packed)
    }
}

/// By rank: hops from it to this one, [`NONE`] if it does not reach it. O(edges).
fn distances_to(rank: u32, entering: &[Vec<(EdgeIndex, u32)>]) -> Vec<u32> {
    let mut distances = vec![NONE; entering.len()];
    distances[rank as usize] = 0;
    let mut order = vec![rank];
    let mut next = 0;
    while let Some(&rank) = order.get(next) {
        next += 1;
        for &(_, from) in &entering[rank as usize] {
            if distances[from as usize] == NONE {
                distances[from as usize] = distances[rank as usize] + 1;
                order.push(from);
            }
        }
    }
    distances
}
