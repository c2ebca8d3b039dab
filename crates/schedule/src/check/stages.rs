//! Judges exchanges in stages by their rule, without a tree for any rank.
//!
//! **Every share reaches every rank once.** By induction: before a stage, all ranks of a box hold the run of the box,
//! nothing else, each chunk once. Runs of boxes that differ in the digit of the stage are disjoint, and their union is
//! the next run. A box gets each of them once: its first chunks, if some go in the box first, at each of its ranks from
//! the rank at the same place, which has the run as well; the others as pieces that add up to them and leave ranks that
//! have them, each of which enters at one rank, and a tree from there spans the box. **Loads** are counted place by
//! place, piece by piece and tree by tree. Backwards, all holds with sums in place of shares.

mod alike;
mod error;
mod inside;

use canopy_topology::{Rank, Topology};

use super::load::busiest;
use super::{CheckError, Stop, Verdict, phases};
use crate::collective::{Collective, CollectiveKind};
use crate::forest::Action;
use crate::shares::{ChunkLayout, Shares};
use crate::stages::{BoxGrid, Exchange, Nics, Piece, Pieces, Seating, Stages, Way, Ways};

use alike::{Alike, Exchanged};
pub use error::{PieceFault, StagesError, TreeFault};
use inside::Spread;

/// Judges an exchange in stages: structure and meaning by its rule, then the exact load of every link.
///
/// * **Source.** The induction over stages in the text of this module.
/// * **Out.** As of [`check`](super::check), but that trees are of single chunks, and depths are those of the deepest
///   tree: at most, where boxes spread along trees.
/// * **Errors.** [`StagesError`], or [`Stopped`](CheckError::Stopped) soon after `stop` says so.
/// * **Cost.** O(boxes · stages + ranks · places + links) time where boxes are at the same switches, and for each pair
///   that exchanges something else O(places); O(ranks + links) memory, whatever the number of trees.
pub fn check_stages_until(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    stages: &Stages,
    stop: Stop<'_>,
) -> Result<Verdict, CheckError> {
    Ok(judge_stages_until(topology, collective, shares, stages, stop)?.0)
}

/// The same with the chunks over each link.
pub fn judge_stages_until(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    stages: &Stages,
    stop: Stop<'_>,
) -> Result<(Verdict, Vec<u128>), CheckError> {
    let rank_count = topology.rank_count();
    require_phases(collective.kind(), stages)?;
    if *shares != Shares::Equal {
        return Err(StagesError::Shares.into());
    }
    // No link carries more than all chunks once for each pair of ranks.
    let max = u64::MAX / 4 / u64::from(rank_count).pow(2).max(1);
    let chunks_per_share = stages.chunks_per_share;
    if !(1..=max).contains(&chunks_per_share) {
        return Err(StagesError::Chunks { chunks_per_share, rank_count, max }.into());
    }
    let seating = stages.grid.seating(rank_count).map_err(StagesError::from)?;
    require_exceptions(stages, &seating)?;
    require_inside_first(stages)?;
    let (mut judged, alike) = Judged::new(topology, stages, &seating);
    let mut spread = Spread::new(stages, &seating)?;
    for to in in_pods(&stages.grid) {
        if stop() {
            return Err(CheckError::Stopped);
        }
        if !seating.is_empty(to) {
            let entered = judged.enter(to, &alike)?;
            if !spread.along_trees(to, &entered, |from, to, chunks| judged.carry(from, to, chunks))? {
                judged.spread(to, &entered)?;
            }
        }
        // For a box without ranks, others send and get sums.
        judged.leave(to, &alike)?;
    }
    let size =
        ChunkLayout::new(collective, rank_count, chunks_per_share, shares).map_err(super::StructureError::from)?;
    judged.carry_crossed();
    let loads = judged.loads.all();
    let (algbw, busiest_link) = busiest(topology, &loads, size.size())?;
    let phases = u32::try_from(stages.actions.len()).unwrap_or(u32::MAX);
    let (depth, links) = judged.depth(spread.depth().max(judged.depth_of_stars));
    let tree_count = u64::from(rank_count) * chunks_per_share;
    let verdict = Verdict {
        algbw,
        busiest_link,
        tree_count,
        depth_max: depth * phases,
        depth_sum: u128::from(depth * phases) * u128::from(tree_count),
        links_max: links * phases,
        links_sum: u128::from(links * phases) * u128::from(tree_count),
        batch_count: rank_count as usize * stages.actions.len(),
        chain_max: depth * phases,
        steps: None,
        in_network: None,
        checks: ["structure", "meaning", "load"],
    };
    Ok((verdict, loads))
}

/// All boxes in the order of the number whose lowest digit is the last: those of a pod follow each other, and pods of a
/// pod do, so that what joins them is at hand.
fn in_pods(grid: &BoxGrid) -> impl Iterator<Item = u32> {
    (0..grid.box_count().unwrap_or(0)).map(|number| {
        let (mut rest, mut unit) = (number, grid.box_count().unwrap_or(0));
        let digits = grid.digits.iter().rev().map(|&size| {
            let digit = rest % size;
            (rest, unit) = (rest / size, unit / size);
            digit * unit
        });
        digits.sum()
    })
}

fn require_phases(kind: CollectiveKind, stages: &Stages) -> Result<(), StagesError> {
    match phases::difference(kind, &stages.actions) {
        Some((found, expected)) => Err(StagesError::Phases { collective: kind.name(), found, expected }),
        None => Ok(()),
    }
}

/// Whether no stage sends more in the box first than a run has.
fn require_inside_first(stages: &Stages) -> Result<(), StagesError> {
    let (grid, k) = (&stages.grid, stages.chunks_per_share);
    for (stage, &chunks) in stages.inside_first.iter().enumerate() {
        let run = (u64::from(grid.unit(stage)) * u64::from(grid.places)).saturating_mul(k);
        let max = if stage < grid.digits.len() { run } else { 0 };
        if chunks > max {
            return Err(StagesError::InsideFirst { stage, chunks, max });
        }
    }
    Ok(())
}

/// Whether what is stated of pairs is about runs that they exchange.
fn require_exceptions(stages: &Stages, seating: &Seating) -> Result<(), StagesError> {
    let (grid, boxes) = (&stages.grid, seating.box_count());
    for (&(from, to), pieces) in &stages.exceptions {
        let exchange = Exchange::between(grid, from, to).ok_or(StagesError::Pair { from, to, boxes })?;
        let run = exchange.run(grid);
        let expected = u64::from(seating.ranks_in(run.clone())) * stages.chunks_per_share;
        let fault = |fault| StagesError::Piece { from, to, fault };
        if expected == 0 || seating.is_empty(to) {
            return Err(fault(PieceFault::Nothing));
        }
        let mut found = 0;
        for &Piece { sender, leaves, enters, chunk_count } in pieces {
            if chunk_count == 0 {
                return Err(fault(PieceFault::Empty));
            }
            if !run.contains(&sender) {
                return Err(fault(PieceFault::Sender { sender }));
            }
            for (of_box, place) in [(sender, leaves), (to, enters)] {
                seating.rank(of_box, place).ok_or(fault(PieceFault::NoRank { of_box, place }))?;
            }
            found += u128::from(chunk_count);
        }
        if found != u128::from(expected) {
            return Err(fault(PieceFault::Chunks { found, expected }));
        }
    }
    Ok(())
}

/// What is known of a schedule while its boxes are gone through.
struct Judged<'a> {
    stages: &'a Stages,
    seating: &'a Seating,
    ways: Ways,
    way: Way,
    nics: Nics,
    loads: Loads,
    /// By box: chunks that leave each place and enter it in exchanges of boxes with the same switches, still to be
    /// counted.
    crossed: Vec<[u64; 2]>,
    /// By box: of those, the chunks that enter each place where shares are copied and are spread from there.
    equal: Vec<u64>,
    /// Greatest depth, in hops, where boxes spread without trees.
    depth_of_stars: u32,
    /// Whether shares leave their boxes from other ranks than their own.
    is_handed_over: bool,
    /// By stage: whether boxes spread something of what enters them.
    spreads: Vec<bool>,
}

impl<'a> Judged<'a> {
    /// Counts what boxes exchange that are alike. O(boxes · stages + ranks + links).
    fn new(topology: &Topology, stages: &'a Stages, seating: &'a Seating) -> (Self, Alike<'a>) {
        let ways = Ways::of(topology);
        let nics = Nics::of(&ways, seating);
        let alike = Alike::of(stages, seating, &nics);
        let boxes = seating.box_count() as usize;
        let mut judged = Self {
            stages,
            seating,
            ways,
            way: Way::new(),
            nics,
            loads: Loads::none(topology),
            crossed: vec![[0; 2]; boxes],
            equal: vec![0; boxes],
            depth_of_stars: 0,
            is_handed_over: false,
            spreads: vec![false; stages.grid.digits.len()],
        };
        alike.exchanged().iter().for_each(|exchanged| judged.exchange(exchanged));
        (judged, alike)
    }

    /// Counts what a box exchanges with those that are like it.
    fn exchange(&mut self, exchanged: &Exchanged) {
        let &Exchanged { stage, of_box, out, into, spread, has_inside_first } = exchanged;
        for action in &self.stages.actions {
            let (sends, receives) = directed(*action, out, into);
            let [up, down] = &mut self.crossed[of_box as usize];
            (*up, *down) = (*up + sends, *down + receives);
        }
        self.equal[of_box as usize] += spread;
        self.spreads[stage] |= spread > 0;
        // The run of boxes that nothing has entered is one box.
        self.is_handed_over |= has_inside_first && self.stages.grid.unit(stage) == 1 && self.seating.places() > 1;
    }

    /// Counts what a box gets in all stages where shares are copied, but for exchanges with boxes that are like it;
    /// returns by place how much enters in all, the own shares included.
    fn enter(&mut self, to: u32, alike: &Alike<'_>) -> Result<Vec<u64>, StagesError> {
        let (stages, seating) = (self.stages, self.seating);
        let rules = Pieces::new(stages, seating);
        let mut entered = vec![0; seating.places() as usize];
        for (place, _) in seating.live(to) {
            entered[place as usize] = stages.chunks_per_share;
        }
        let (mut pieces, mut equal) = (Vec::new(), self.equal[to as usize]);
        for exchange in alike.one_by_one(to, true).into_iter().filter(|&exchange| rules.chunks(exchange) > 0) {
            let inside_first = rules.inside_first(exchange);
            let is_own = exchange.run(&stages.grid).len() == 1;
            self.is_handed_over |= is_own && inside_first > 0 && seating.places() > 1;
            // Such pieces of a box's own shares are those of the places that they leave from.
            if let Some(each) = self.count(exchange, Action::Copy, &mut pieces)? {
                self.spreads[exchange.stage] |= each > 0;
                equal += each;
                continue;
            }
            self.spreads[exchange.stage] |= !pieces.is_empty();
            if is_own {
                self.is_handed_over |= !leave_from_owners(&pieces, inside_first, seating, stages.chunks_per_share);
            }
            pieces.iter().for_each(|piece| entered[piece.enters as usize] += piece.chunk_count);
        }
        // Of a box with a rank on each place.
        entered.iter_mut().filter(|_| equal > 0).for_each(|entered| *entered += equal);
        Ok(entered)
    }

    /// Counts what comes back to a box where shares are summed up, but for exchanges with boxes that are like it: so
    /// ways to one box follow each other here, too.
    fn leave(&mut self, from: u32, alike: &Alike<'_>) -> Result<(), StagesError> {
        let (stages, seating) = (self.stages, self.seating);
        if !stages.actions.contains(&Action::Reduce) {
            return Ok(());
        }
        let rules = Pieces::new(stages, seating);
        let mut pieces = Vec::new();
        let back = alike.one_by_one(from, false).into_iter();
        for exchange in back.filter(|&exchange| rules.chunks(exchange) > 0 && !seating.is_empty(exchange.to)) {
            self.count(exchange, Action::Reduce, &mut pieces)?;
        }
        Ok(())
    }

    /// Counts chunks that come to each rank of a box from the rank at its place in the other.
    fn carry_to_all(&mut self, exchange: Exchange, action: Action, chunks: u64) -> Result<(), StagesError> {
        let Exchange { from, to, .. } = exchange;
        let seating = self.seating;
        for (place, at) in seating.live(to).filter(|_| chunks > 0) {
            let sender = seating.rank(from, place).ok_or(StagesError::NoPieces { from, to })?;
            self.carry_over(action, sender, at, exchange.turn(&self.stages.grid, from, place), chunks)?;
        }
        Ok(())
    }

    /// Counts an exchange in the phases of one action, what goes in the box first included: equal pieces from each place
    /// to the same one, whose size it returns, or others, which it puts into `pieces`.
    fn count(
        &mut self,
        exchange: Exchange,
        action: Action,
        pieces: &mut Vec<Piece>,
    ) -> Result<Option<u64>, StagesError> {
        let (stages, seating) = (self.stages, self.seating);
        let rules = Pieces::new(stages, seating);
        let is_made = stages.actions.contains(&action);
        let full = seating.full(exchange.from).zip(seating.full(exchange.to));
        let inside_first = rules.inside_first(exchange);
        if let Some((each, full)) = rules.equal(exchange).zip(full) {
            if is_made {
                self.carry_equal(exchange, action, inside_first + each, full)?;
            }
            return Ok(Some(each));
        }
        if is_made {
            self.carry_to_all(exchange, action, inside_first)?;
        }
        let Exchange { from, to, .. } = exchange;
        rules.put(exchange, pieces);
        if pieces.is_empty() && inside_first < rules.chunks(exchange) {
            return Err(StagesError::NoPieces { from, to });
        }
        for piece in pieces.iter().filter(|_| is_made) {
            let ranks = seating.rank(piece.sender, piece.leaves).zip(seating.rank(to, piece.enters));
            let (leaves, enters) = ranks.ok_or(StagesError::NoPieces { from, to })?;
            let turn = exchange.turn(&stages.grid, piece.sender, piece.leaves);
            self.carry_over(action, leaves, enters, turn, piece.chunk_count)?;
        }
        Ok(None)
    }

    /// Counts equal pieces, one from each place to the same one of another box.
    fn carry_equal(
        &mut self,
        exchange: Exchange,
        action: Action,
        each: u64,
        (from, to): (&[u32], &[u32]),
    ) -> Result<(), StagesError> {
        let turn = |place| exchange.turn(&self.stages.grid, exchange.from, place);
        let first = turn(0);
        let more = if from.len() > 1 { turn(1) - first } else { 0 };
        for ((&from, &to), place) in from.iter().zip(to).zip(0..) {
            self.carry_over(action, from, to, first + place * more, each)?;
        }
        Ok(())
    }

    /// Counts what boxes with the same switches have exchanged. O(ranks).
    fn carry_crossed(&mut self) {
        for (of_box, chunks) in (0..).zip(&self.crossed).filter(|(_, chunks)| **chunks != [0; 2]) {
            for links in self.seating.live(of_box).filter_map(|(_, rank)| self.nics.of_rank(rank)) {
                for (link, chunks) in links.into_iter().zip(chunks) {
                    self.loads.of_links[link.index()] += chunks;
                }
            }
            self.loads.longest = self.loads.longest.max(2);
        }
    }

    /// Hops from a root to the farthest rank at most, and links on them, given the hops in boxes.
    fn depth(&self, inside: u32) -> (u32, u32) {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let stages = count(self.stages.grid.digits.iter().filter(|&&size| size > 1).count());
        let spreads = count(self.spreads.iter().filter(|&&spreads| spreads).count());
        let first = u32::from(stages == 0 || self.is_handed_over);
        let depth = spreads.saturating_add(first).saturating_mul(inside).saturating_add(stages);
        (depth, depth.saturating_mul(self.loads.longest))
    }

    /// Counts chunks from one rank to another of another box, in the phases of one action.
    fn carry_over(&mut self, action: Action, from: u32, to: u32, turn: u64, chunks: u64) -> Result<(), StagesError> {
        let (from, to) = directed(action, from, to);
        let way = self.nics.between(&mut self.ways, from, to, turn, &mut self.way);
        way.ok_or(StagesError::NoWay { from, to })?;
        self.loads.add(&self.way, chunks);
        Ok(())
    }

    /// Counts what enters a box, by place, from the rank there to each other one.
    fn spread(&mut self, of_box: u32, entered: &[u64]) -> Result<(), StagesError> {
        let live: Vec<(u32, u64)> =
            self.seating.live(of_box).map(|(place, rank)| (rank, entered[place as usize])).collect();
        let others = live.len() as u64 - 1;
        self.depth_of_stars = self.depth_of_stars.max(u32::from(others > 0));
        let ranks: Vec<u32> = live.iter().map(|&(rank, _)| rank).collect();
        let Some(links) = self.ways.over_one_switch(&ranks).filter(|_| others > 0) else {
            let pairs = live.iter().flat_map(|from| live.iter().map(move |to| (from, to)));
            let mut others = pairs.filter(|(from, to)| from != to);
            return others.try_for_each(|(&(from, chunks), &(to, _))| self.carry(from, to, chunks));
        };
        let all: u64 = live.iter().map(|&(_, chunks)| chunks).sum();
        for ([up, down], (_, chunks)) in links.into_iter().zip(live) {
            for action in &self.stages.actions {
                let (sends, receives) = directed(*action, chunks * others, all - chunks);
                self.loads.of_links[up.index()] += sends;
                self.loads.of_links[down.index()] += receives;
            }
        }
        self.loads.longest = self.loads.longest.max(2);
        Ok(())
    }

    /// Counts chunks from one rank to another of the same box, in all phases.
    fn carry(&mut self, from: u32, to: u32, chunks: u64) -> Result<(), StagesError> {
        for action in &self.stages.actions {
            let (from, to) = directed(*action, from, to);
            let way = self.ways.between(Rank::new(from), Rank::new(to), 0, &mut self.way);
            way.ok_or(StagesError::NoWay { from, to })?;
            self.loads.add(&self.way, chunks);
        }
        Ok(())
    }
}

/// What is of the sender and of the receiver of what is copied one way, and summed up the other way.
const fn directed<T: Copy>(action: Action, from: T, to: T) -> (T, T) {
    match action {
        Action::Copy => (from, to),
        Action::Reduce => (to, from),
    }
}

/// Whether the pieces of a box's own shares, from the chunk `first` on, leave it from the ranks whose shares they are.
fn leave_from_owners(pieces: &[Piece], first: u64, seating: &Seating, chunks_per_share: u64) -> bool {
    let mut first = first;
    pieces.iter().all(|piece| {
        let chunks = first..first + piece.chunk_count;
        first = chunks.end;
        let before = seating.live(piece.sender).take_while(|&(place, _)| place < piece.leaves).count() as u64;
        let own = before * chunks_per_share..(before + 1) * chunks_per_share;
        own.start <= chunks.start && chunks.end <= own.end
    })
}

/// Chunks on each link, and how long ways are.
struct Loads {
    of_links: Vec<u64>,
    longest: u32,
}

impl Loads {
    fn none(topology: &Topology) -> Self {
        Self { of_links: vec![0; topology.links().len()], longest: 0 }
    }

    fn add(&mut self, way: &Way, chunks: u64) {
        way.iter().for_each(|link| self.of_links[link.index()] += chunks);
        self.longest = self.longest.max(u32::try_from(way.len()).unwrap_or(u32::MAX));
    }

    fn all(&self) -> Vec<u128> {
        self.of_links.iter().map(|&load| u128::from(load)).collect()
    }
}
