//! Puts the trees of pieces together to trees of the network, with a route for every hop.
//!
//! A tree of the network is a tree of the piece its root is in, then one of the piece around that, and so on outwards;
//! wherever it reaches a terminal that stands for a piece, it enters that by a boundary link and goes on with a tree
//! rooted where the link leads. Tight boundaries make the numbers match: each piece has one tree for every unit of
//! capacity that enters it.
//!
//! What is needed next may be there only for some of the trees at hand. Those go on with it, the others start over from
//! the same point with something else.

use std::cmp::Reverse;
use std::ops::Range;

use canopy_optimize::{FlowUnit, Stop};
use canopy_schedule::{RouteIndex, RouteTable};
use canopy_topology::LinkIndex;

use crate::error::SynthesisError;
use crate::forest::assembly::{count, position};
use crate::forest::packing::require_room;
use crate::forest::piece::{Home, Piece, PieceEdge, PieceTree, Solution, Terminal};
use crate::forest::{RoutedHop, RoutedTree, RoutedTrees, ask};
use crate::progress::{Progress, Stage};

/// Tasks done between two looks at whether to stop: one takes a millisecond where thousands of ways out are compared.
const TASKS_BETWEEN_STOPS: u32 = 8;

/// Glues the trees of all roots.
///
/// * **In.** Pieces with the positions of their solutions; `homes` by rank; `demands` by rank.
/// * **Out.** Trees by root, heaviest first. **Errors.** Stopped, too many hops; broken if numbers do not match.
/// * **Cost.** O(hops · strands per edge).
pub(super) fn glue<C: FlowUnit>(
    pieces: &[Piece<'_, C>],
    (solution_of, solutions): (&[usize], &[Solution<C>]),
    homes: &[Home],
    demands: &[C],
    trees_per_root: u64,
    (stop, progress): (&dyn Stop, &dyn Progress),
) -> Result<RoutedTrees, SynthesisError> {
    let solved = |(piece, &solution)| PieceRemainder::new(piece, &solutions[solution]);
    let mut glue = Glue {
        remainders: pieces.iter().zip(solution_of).map(solved).collect(),
        passages: Vec::new(),
        used: Vec::new(),
        routes: RouteTable::default(),
        rank_count: homes.len(),
        choices: 0,
        stop,
    };
    // A tree for each root at least: what grows to hundreds of megabytes takes long to move.
    let hops_min = demands.iter().filter(|&&demand| demand > C::ZERO).count() * homes.len().saturating_sub(1);
    let (hops, carriers) = (Vec::with_capacity(hops_min), Vec::with_capacity(hops_min));
    let mut finished_trees = FinishedTrees { trees: Vec::new(), hops, carriers };
    let total = homes.len() as u64;
    for (root, (&home, &demand)) in (0_u32..).zip(homes.iter().zip(demands)) {
        progress.report(Stage::Routes, root.into(), total);
        if demand == C::ZERO {
            continue;
        }
        let mut finished = Vec::new();
        let mut waiting = vec![Growth::new((demand, trees_per_root > 1), home, pieces, homes.len())];
        while let Some(growth) = waiting.pop() {
            require_room(finished_trees.trees.len() + finished.len() + waiting.len() + 1, homes.len())?;
            finished.push(glue.finish(growth, &mut waiting)?);
        }
        finished.sort_by_key(|growth| Reverse(growth.weight));
        for growth in finished {
            finished_trees.add(root, &growth)?;
        }
    }
    progress.report(Stage::Routes, total, total);
    let (FinishedTrees { trees, hops, carriers }, Glue { routes, .. }) = (finished_trees, glue);
    Ok(RoutedTrees { trees_per_root, trees, hops, carriers, routes })
}

/// Finished trees.
struct FinishedTrees {
    trees: Vec<RoutedTree>,
    hops: Vec<RoutedHop>,
    carriers: Vec<(RouteIndex, u64)>,
}

impl FinishedTrees {
    fn add<C: FlowUnit>(&mut self, root: u32, growth: &Growth<C>) -> Result<(), SynthesisError> {
        let start = position(self.hops.len())?;
        for (place, &(from, to, first)) in growth.hops.iter().enumerate() {
            let end = growth.hops.get(place + 1).map_or(growth.carriers.len(), |next| next.2);
            let begin = position(self.carriers.len())?;
            self.carriers.extend(growth.carriers[first..end].iter().map(|&(route, amount)| (route, count(amount))));
            self.hops.push(RoutedHop { from, to, carriers: begin..position(self.carriers.len())? });
        }
        let hops = start..position(self.hops.len())?;
        self.trees.push(RoutedTree { root, multiplicity: count(growth.weight), hops });
        Ok(())
    }
}

/// Equal trees of the network on their way.
#[derive(Clone)]
struct Growth<C> {
    weight: C,
    /// Tail, head, and the first carrier; those of the next hop follow.
    hops: Vec<(u32, u32, usize)>,
    carriers: Vec<(RouteIndex, C)>,
    /// By rank, of those that are reached.
    depths: Vec<u32>,
    /// Whether a root has several trees.
    are_many: bool,
    /// What is to be done, last first.
    tasks: Vec<Task>,
}

#[derive(Clone, Copy)]
enum Task {
    /// Reach all of a piece from a terminal that is reached.
    Spread { piece: usize, from: u32 },
    /// Pass an edge of a tree of a piece.
    Pass { piece: usize, root: u32, tree: usize, edge: usize },
}

impl<C: FlowUnit> Growth<C> {
    fn new((weight, are_many): (C, bool), home: Home, pieces: &[Piece<'_, C>], rank_count: usize) -> Self {
        let outwards = std::iter::successors(Some(home), |&(piece, _)| pieces[piece].around);
        let mut tasks: Vec<Task> = outwards.map(|(piece, from)| Task::Spread { piece, from }).collect();
        tasks.reverse();
        let (hops, carriers) = (Vec::with_capacity(rank_count - 1), Vec::with_capacity(rank_count - 1));
        Self { weight, hops, carriers, depths: vec![0; rank_count], are_many, tasks }
    }

    /// What counts in a way to go on: that it is enough for all, then that it starts near the root, then that little of it is left.
    fn worth(&self, way: Way<C>) -> (C, Reverse<u32>, Reverse<C>) {
        (way.amount.min(self.weight), Reverse(self.depths[way.rank as usize]), self.rest(way.amount))
    }

    /// What counts last where trees are many: what is left of an amount does for none of the next.
    fn rest(&self, amount: C) -> Reverse<C> {
        Reverse(if self.are_many { amount } else { C::ZERO })
    }

    /// Keeps only `weight` of the trees; the others start over with `task`.
    fn divide(&mut self, weight: C, task: Task, waiting: &mut Vec<Self>) {
        if weight == self.weight {
            return;
        }
        let mut others = self.clone();
        others.weight = self.weight - weight;
        others.tasks.push(task);
        let (mut kept, mut left) = (Vec::new(), Vec::new());
        for (place, hop) in self.hops.iter_mut().enumerate() {
            let end = others.hops.get(place + 1).map_or(self.carriers.len(), |next| next.2);
            let begin = std::mem::replace(&mut hop.2, kept.len());
            others.hops[place].2 = left.len();
            let mut missing = weight;
            for &(route, amount) in &self.carriers[begin..end] {
                let part = amount.min(missing);
                missing -= part;
                kept.extend(Some((route, part)).filter(|_| part > C::ZERO));
                left.extend(Some((route, amount - part)).filter(|_| part < amount));
            }
        }
        (self.carriers, others.carriers, self.weight) = (kept, left, weight);
        waiting.push(others);
    }
}

/// A piece with what of its solution is not used up.
struct PieceRemainder<'a, 'p, C> {
    piece: &'a Piece<'p, C>,
    solution: &'a Solution<C>,
    strands_left: Vec<C>,
    /// By terminal.
    trees_left: Vec<Vec<C>>,
    /// By strand: the last route it was used for.
    last_used: Vec<Option<usize>>,
    /// By boundary link: when the best way out over it was last looked for, and what was found.
    ways_out: Vec<(u64, Option<WayOut<C>>)>,
}

/// A way out of a piece, by an exit of its solution.
#[derive(Clone, Copy)]
struct WayOut<C> {
    way: Way<C>,
    /// The terminal at which it starts.
    terminal: u32,
    strand: usize,
}

impl<'a, 'p, C: FlowUnit> PieceRemainder<'a, 'p, C> {
    fn new(piece: &'a Piece<'p, C>, solution: &'a Solution<C>) -> Self {
        let of_root = |trees: &Vec<_>| trees.iter().map(|tree: &PieceTree<C>| tree.weight).collect();
        Self {
            piece,
            solution,
            strands_left: solution.strands.iter().map(|strand| strand.amount).collect(),
            trees_left: solution.trees.iter().map(of_root).collect(),
            last_used: vec![None; solution.strands.len()],
            ways_out: vec![(0, None); solution.exits.len()],
        }
    }
}

/// A route that a strand was used for.
struct Used {
    /// The strands it consists of, this one among them.
    passage: Range<usize>,
    route: RouteIndex,
    /// What the strand was used for before.
    before: Option<usize>,
}

/// Strands of nested pieces, in the direction of travel: each a piece and a position.
type Passage = Vec<(usize, usize)>;

/// Where a passage between a rank and a boundary link starts or ends, and how many trees can use it.
#[derive(Clone, Copy)]
struct Way<C> {
    rank: u32,
    amount: C,
}

struct Glue<'a, 'p, C> {
    remainders: Vec<PieceRemainder<'a, 'p, C>>,
    /// Of all routes one after the other, and what strands were used for: millions of lists would take long to let go of.
    passages: Passage,
    used: Vec<Used>,
    /// No two are equal: routes of different strands differ.
    routes: RouteTable,
    rank_count: usize,
    /// How often a way out was chosen: what was found before holds no longer.
    choices: u64,
    stop: &'a dyn Stop,
}

impl<C: FlowUnit> Glue<'_, '_, C> {
    /// Does all tasks of a growth, leaving to others what can not be done for all of its trees.
    fn finish(&mut self, mut growth: Growth<C>, waiting: &mut Vec<Growth<C>>) -> Result<Growth<C>, SynthesisError> {
        let mut done = 0_u32;
        while let Some(task) = growth.tasks.pop() {
            if done.is_multiple_of(TASKS_BETWEEN_STOPS) {
                ask(self.stop)?;
            }
            done += 1;
            let matched = match task {
                Task::Spread { piece, from } => self.spread(&mut growth, task, (piece, from), waiting),
                Task::Pass { piece, root, tree, edge } => {
                    let solution = self.remainders[piece].solution;
                    let edge = solution.trees[root as usize][tree].edges[edge].clone();
                    self.pass(&mut growth, task, piece, edge, waiting)
                }
            };
            matched
                .ok_or_else(|| SynthesisError::Broken { what: "the trees of two pieces do not match".to_owned() })?;
        }
        let reached = growth.hops.len() + 1;
        if reached != self.rank_count {
            let what = format!("a tree reaches {reached} of {} ranks", self.rank_count);
            return Err(SynthesisError::Broken { what });
        }
        Ok(growth)
    }

    /// Takes trees of a piece, the first that are enough, else the most.
    fn spread(
        &mut self,
        growth: &mut Growth<C>,
        task: Task,
        (piece, from): Home,
        waiting: &mut Vec<Growth<C>>,
    ) -> Option<()> {
        let remainder = &mut self.remainders[piece];
        let left = &mut remainder.trees_left[from as usize];
        let enough = (0..left.len()).filter(|&tree| left[tree] >= growth.weight);
        let enough = enough.rev().max_by_key(|&tree| growth.rest(left[tree]));
        let tree = enough.or_else(|| (0..left.len()).rev().max_by_key(|&tree| left[tree]))?;
        let weight = left[tree].min(growth.weight);
        if weight == C::ZERO {
            return None;
        }
        left[tree] -= weight;
        growth.divide(weight, task, waiting);
        let edges = remainder.solution.trees[from as usize][tree].edges.len();
        growth.tasks.extend((0..edges).rev().map(|edge| Task::Pass { piece, root: from, tree, edge }));
        Some(())
    }

    /// Takes strands of an edge. Between two ranks several may serve one hop; otherwise it is the one that starts at the
    /// rank nearest to the root, of those that are enough, if any is.
    fn pass(
        &mut self,
        growth: &mut Growth<C>,
        task: Task,
        piece: usize,
        PieceEdge { tail, head, strands }: PieceEdge,
        waiting: &mut Vec<Growth<C>>,
    ) -> Option<()> {
        let terminals = &self.remainders[piece].piece.terminals;
        let (tail, head) = (terminals[tail as usize], terminals[head as usize]);
        if let (Terminal::Rank(tail), Terminal::Rank(head)) = (tail, head) {
            return self.pass_between_ranks(growth, piece, (tail, head), strands);
        }
        let mut passage = Passage::new();
        let (out, strand) = self.best_way(growth, piece, tail, strands, &mut passage)?;
        passage.push((piece, strand));
        let inside = passage.len();
        let remainder = &self.remainders[piece];
        let into = match head {
            Terminal::Rank(rank) => Way { rank, amount: C::MAX },
            Terminal::Piece(inner) => {
                let last = remainder.solution.strands[strand].links.last()?;
                self.way_in(growth, inner, remainder.piece.inward[last.index()], &mut passage)?
            }
        };
        let weight = growth.weight.min(remainder.strands_left[strand]).min(out.amount).min(into.amount);
        if weight == C::ZERO {
            return None;
        }
        growth.divide(weight, task, waiting);
        for &(piece, strand) in &passage {
            self.remainders[piece].strands_left[strand] -= weight;
        }
        growth.hops.push((out.rank, into.rank, growth.carriers.len()));
        growth.depths[into.rank as usize] = growth.depths[out.rank as usize] + 1;
        // Inside first: what is around is reached from all of it.
        for &(piece, strand) in &passage[inside..] {
            let from = self.remainders[piece].head_of_entry(strand)?;
            growth.tasks.push(Task::Spread { piece, from });
        }
        growth.carriers.push((self.route((piece, strand), &passage), weight));
        Some(())
    }

    /// The route of a passage, of which this is the strand that is in no inner piece.
    fn route(&mut self, (piece, strand): (usize, usize), passage: &[(usize, usize)]) -> RouteIndex {
        let last_used = self.remainders[piece].last_used[strand];
        let mut known =
            std::iter::successors(last_used, |&known| self.used[known].before).map(|known| &self.used[known]);
        if let Some(known) = known.find(|known| self.passages[known.passage.clone()] == *passage) {
            return known.route;
        }
        let mut links: Vec<LinkIndex> = Vec::new();
        for &(piece, strand) in passage {
            let remainder = &self.remainders[piece];
            for link in remainder.solution.strands[strand].links.iter() {
                let link = remainder.piece.links[link.index()];
                // A boundary link is the end of one strand and the start of the next.
                links.extend(Some(link).filter(|link| links.last() != Some(link)));
            }
        }
        let route = self.routes.push(&links);
        let start = self.passages.len();
        self.passages.extend_from_slice(passage);
        self.remainders[piece].last_used[strand] = Some(self.used.len());
        self.used.push(Used { passage: start..self.passages.len(), route, before: last_used });
        route
    }

    fn pass_between_ranks(
        &mut self,
        growth: &mut Growth<C>,
        piece: usize,
        (tail, head): (u32, u32),
        strands: Range<usize>,
    ) -> Option<()> {
        growth.hops.push((tail, head, growth.carriers.len()));
        growth.depths[head as usize] = growth.depths[tail as usize] + 1;
        let mut missing = growth.weight;
        let left = &self.remainders[piece].strands_left;
        let enough = strands.clone().find(|&strand| left[strand] >= missing);
        for strand in enough.into_iter().chain(strands) {
            let left = &mut self.remainders[piece].strands_left[strand];
            let part = (*left).min(missing);
            if part > C::ZERO {
                *left -= part;
                missing -= part;
                // Between two ranks a strand is all of the one route that it is used for.
                let known = self.remainders[piece].last_used[strand].map(|known| self.used[known].route);
                let route = known.unwrap_or_else(|| self.route((piece, strand), &[(piece, strand)]));
                growth.carriers.push((route, part));
            }
        }
        (missing == C::ZERO).then_some(())
    }

    /// The way out of a terminal and the strand to go on with. Of those that are enough, if any is, the one that starts
    /// nearest to the root; adds what is in inner pieces to the passage.
    fn best_way(
        &mut self,
        growth: &Growth<C>,
        piece: usize,
        tail: Terminal,
        strands: Range<usize>,
        passage: &mut Passage,
    ) -> Option<(Way<C>, usize)> {
        self.choices += 1;
        let mut best: Option<(Way<C>, usize)> = None;
        for strand in strands {
            let left = self.remainders[piece].strands_left[strand];
            if left == C::ZERO {
                continue;
            }
            let mut out = match tail {
                Terminal::Rank(rank) => Way { rank, amount: C::MAX },
                Terminal::Piece(inner) => {
                    let link = self.remainders[piece].link_out(strand)?;
                    self.way_out(growth, inner, link)?
                }
            };
            out.amount = out.amount.min(left);
            if best.is_none_or(|(known, _)| growth.worth(out) > growth.worth(known)) {
                best = Some((out, strand));
            }
            // None is worth more.
            let is_enough = if growth.are_many { out.amount == growth.weight } else { out.amount >= growth.weight };
            if is_enough && growth.depths[out.rank as usize] == 0 {
                break;
            }
        }
        if let (Some((_, strand)), Terminal::Piece(inner)) = (best, tail) {
            self.pass_out(inner, self.remainders[piece].link_out(strand)?, passage)?;
        }
        best
    }

    /// From a rank of a piece out over a boundary link, chosen as by [`best_way`](Self::best_way): links around often lead to
    /// the same one, for which it is looked for once.
    fn way_out(&mut self, growth: &Growth<C>, piece: usize, link: usize) -> Option<Way<C>> {
        let (found_at, known) = self.remainders[piece].ways_out[link];
        if found_at == self.choices {
            return known.map(|out| out.way);
        }
        let mut best: Option<WayOut<C>> = None;
        let solution = self.remainders[piece].solution;
        for &(terminal, strand) in &solution.exits[link] {
            let remainder = &self.remainders[piece];
            let left = remainder.strands_left[strand];
            if left == C::ZERO {
                continue;
            }
            let mut way = match remainder.piece.terminals[terminal as usize] {
                Terminal::Rank(rank) => Way { rank, amount: C::MAX },
                Terminal::Piece(inner) => {
                    let link = remainder.link_out(strand)?;
                    self.way_out(growth, inner, link)?
                }
            };
            way.amount = way.amount.min(left);
            if best.is_none_or(|known| growth.worth(way) > growth.worth(known.way)) {
                best = Some(WayOut { way, terminal, strand });
            }
        }
        self.remainders[piece].ways_out[link] = (self.choices, best);
        best.map(|out| out.way)
    }

    /// Adds the strands of a way out that was found, the innermost first.
    fn pass_out(&self, piece: usize, link: usize, passage: &mut Passage) -> Option<()> {
        let remainder = &self.remainders[piece];
        let WayOut { terminal, strand, .. } = remainder.ways_out[link].1?;
        if let Terminal::Piece(inner) = remainder.piece.terminals[terminal as usize] {
            self.pass_out(inner, remainder.link_out(strand)?, passage)?;
        }
        passage.push((piece, strand));
        Some(())
    }

    /// From a boundary link of a piece to a rank of it: the first strand that is enough, else the one with most left.
    fn way_in(&self, growth: &Growth<C>, piece: usize, link: usize, passage: &mut Passage) -> Option<Way<C>> {
        let remainder = &self.remainders[piece];
        let left = |&(_, strand): &(u32, usize)| {
            let left = remainder.strands_left[strand];
            (left.min(growth.weight), growth.rest(left))
        };
        let entries = remainder.solution.entries[link].iter();
        let &(terminal, strand) = entries.rev().max_by_key(|&entry| left(entry))?;
        passage.push((piece, strand));
        let mut way = match remainder.piece.terminals[terminal as usize] {
            Terminal::Rank(rank) => Way { rank, amount: C::MAX },
            Terminal::Piece(inner) => {
                let last = remainder.solution.strands[strand].links.last()?;
                self.way_in(growth, inner, remainder.piece.inward[last.index()], passage)?
            }
        };
        way.amount = way.amount.min(remainder.strands_left[strand]);
        Some(way)
    }
}

impl<C: FlowUnit> PieceRemainder<'_, '_, C> {
    /// The link by which a strand leaves an inner piece, as that numbers it.
    fn link_out(&self, strand: usize) -> Option<usize> {
        self.solution.strands[strand].links.first().map(|first| self.piece.outward[first.index()])
    }

    /// The terminal at which a strand from outside ends.
    fn head_of_entry(&self, strand: usize) -> Option<u32> {
        let first = self.solution.strands[strand].links.first()?;
        self.solution.entries[first.index()].iter().find(|&&(_, entry)| entry == strand).map(|&(head, _)| head)
    }
}
