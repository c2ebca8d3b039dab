//! Chunks are taken off the busiest arcs, one at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::problem::{ConcurrentError, ConcurrentProblem};
use super::distances::Distances;
use super::{Classes, Effort, WholeFlow, compare};
use crate::fraction::Fraction;
use crate::stop::Stop;

/// Goals between the greatest load there is and the limit: each halves what is left.
const ROUNDS: u32 = 12;
/// Arcs looked at by all searches together, at most: about a second's worth, and where it has to be quick a tenth of that.
const WORK_MAX: u64 = 1 << 26;
const QUICK_WORK_MAX: u64 = 1 << 23;
/// Searches in vain for one arc, after which it is left as it is for this goal.
const VAIN_MAX: u32 = 64;
/// Commodities among which the one is chosen that passes an excess on.
const PASSING_TRIED: usize = 8;
/// Times that an excess is passed on for each arc there is.
const PASSES_PER_ARC: usize = 64;

/// What it costs to pass an excess on to a class for the first time: more than any way around.
const PASSING_COST: u64 = 1 << 20;
/// Moves chunks of a whole flow.
pub(super) struct Relief<'a, 'b> {
    problem: &'a ConcurrentProblem<'a>,
    flow: &'b mut WholeFlow,
    /// By node, arcs with capacity that leave it, and that enter it.
    leaving: Vec<Vec<u32>>,
    entering: Vec<Vec<u32>>,
    distances: Distances<'b>,
    /// By node: how the search at hand got there, at what cost.
    steps: Vec<Option<Step>>,
    costs: Vec<u64>,
    reached: Vec<u32>,
    work: u64,
    work_max: u64,
}

/// Where chunks may go that are taken off an arc.
#[derive(Clone, Copy)]
enum Ways<'a> {
    /// Where there is room, on shortest ways.
    Shortest,
    /// Where there is room.
    Any,
    /// Also where there is none; by class, how often it was filled beyond the goal.
    Passing(&'a [u32]),
}

/// A step of a circulation.
#[derive(Clone, Copy)]
struct Step {
    arc: u32,
    /// One chunk more on the arc, or one less.
    more: bool,
}

impl<'a, 'b> Relief<'a, 'b> {
    pub(super) fn new(problem: &'a ConcurrentProblem<'a>, flow: &'b mut WholeFlow, lengths: &'b [u64]) -> Self {
        let graph = problem.graph();
        let nodes = graph.node_count as usize;
        let (mut leaving, mut entering) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for (index, arc) in (0_u32..).zip(&graph.arcs).filter(|(_, arc)| arc.capacity > 0) {
            leaving[arc.from as usize].push(index);
            entering[arc.to as usize].push(index);
        }
        let distances = Distances::new(graph, lengths);
        let (steps, costs, reached) = (vec![None; nodes], Vec::new(), Vec::new());
        Self { problem, flow, leaving, entering, distances, steps, costs, reached, work: 0, work_max: WORK_MAX }
    }

    /// Aims at the loads of a flow of the rate given: first at half of the excess, then at half of the rest, at last at none.
    pub(super) fn relieve(&mut self, limit: Fraction, effort: Effort, stop: &dyn Stop) -> Result<(), ConcurrentError> {
        self.work_max = if effort == Effort::Full { WORK_MAX } else { QUICK_WORK_MAX };
        // Chunks · capacity / rate, rounded up or down: what a class may carry.
        let allowed = |classes: &Classes, class: usize, up: bool| {
            let product = u128::from(self.flow.chunks).checked_mul(classes.capacities[class])?;
            let product = product.checked_mul(limit.denominator)?;
            let rest = u128::from(up && !product.is_multiple_of(limit.numerator.max(1)));
            Some(product / limit.numerator.max(1) + rest)
        };
        let classes = &self.flow.classes;
        let bounds = |up: bool| (0..classes.loads.len()).map(|class| allowed(classes, class, up)).collect();
        let (Some(ceiling), Some(floor)): (Option<Vec<u128>>, Option<Vec<u128>>) = (bounds(true), bounds(false)) else {
            return Ok(());
        };
        for round in 0..ROUNDS {
            let Some((load, capacity)) = self.flow.classes.busiest().filter(|&(_, capacity)| capacity > 0) else {
                break;
            };
            let goal: Vec<u128> = ceiling
                .iter()
                .zip(&self.flow.classes.capacities)
                .map(|(&ceiling, &own)| {
                    // What the class would carry if it were as busy as the busiest one.
                    let now = own.checked_mul(load).map_or(ceiling, |product| product / capacity).max(ceiling);
                    if round + 1 < ROUNDS { ceiling + (now - ceiling) / 2 } else { ceiling }
                })
                .collect();
            if !self.aim(&goal, Ways::Shortest, stop)? || self.is_within(&ceiling) {
                break;
            }
        }
        for goal in [&ceiling, &floor] {
            self.aim(goal, Ways::Shortest, stop)?;
            if effort == Effort::Full {
                self.pass_on(goal, stop)?;
            }
            self.aim(goal, Ways::Any, stop)?;
            if effort == Effort::Full {
                self.pass_on(goal, stop)?;
            }
            if !self.is_within(goal) || floor == ceiling {
                break;
            }
        }
        Ok(())
    }

    /// Moves what is too much from class to class, away from those it was at before, until it meets one with room: where
    /// no commodity alone can make room, several can. Undone if it ends with a greater load than it began with.
    ///
    /// O(passes · arcs · log arcs), within the work that is left.
    fn pass_on(&mut self, goal: &[u128], stop: &dyn Stop) -> Result<(), ConcurrentError> {
        let classes = &self.flow.classes;
        let room: u128 = classes.loads.iter().zip(goal).map(|(load, goal)| goal.saturating_sub(*load)).sum();
        let excess: u128 = classes.loads.iter().zip(goal).map(|(load, goal)| load.saturating_sub(*goal)).sum();
        if excess == 0 || excess > room {
            return Ok(());
        }
        let before = (self.flow.amounts.clone(), self.flow.classes.clone());
        let arc_count = self.problem.graph().arcs.len();
        let all: Vec<u32> = (0_u32..).take(arc_count).collect();
        let mut carriers = self.carriers(&all);
        let mut visits = vec![0_u32; goal.len()];
        for turn in 0..arc_count.saturating_mul(PASSES_PER_ARC) {
            if stop.is_requested() {
                return Err(ConcurrentError::Stopped);
            }
            let over = all.iter().copied().filter(|&arc| {
                let class = self.flow.classes.of(arc);
                self.flow.classes.loads[class] > goal[class]
            });
            let candidates: Vec<u32> = over.take(PASSING_TRIED).collect();
            if candidates.is_empty() || self.work > self.work_max {
                break;
            }
            let arc = candidates[turn % candidates.len()];
            let carrying = &mut carriers[arc as usize];
            carrying.retain(|&commodity| self.amount(commodity, arc) > 0);
            let count = carrying.len();
            let tried: Vec<u32> = (0..count.min(PASSING_TRIED)).map(|place| carrying[(turn + place) % count]).collect();
            let mut best: Option<(u64, u32, Vec<Step>)> = None;
            for commodity in tried {
                if let Some((cost, circulation)) = self.cheapest(commodity, arc, goal, Ways::Passing(&visits))
                    && best.as_ref().is_none_or(|&(least, ..)| cost < least)
                {
                    best = Some((cost, commodity, circulation));
                }
            }
            let Some((_, commodity, circulation)) = best else { continue };
            self.apply(commodity, arc, &circulation);
            for step in circulation.iter().filter(|step| step.more) {
                let class = self.flow.classes.of(step.arc);
                visits[class] += u32::from(self.flow.classes.loads[class] > goal[class]);
                carriers[step.arc as usize].push(commodity);
            }
        }
        if let (Some(now), Some(then)) = (self.flow.classes.busiest(), before.1.busiest())
            && compare(now, then).is_gt()
        {
            (self.flow.amounts, self.flow.classes) = before;
        }
        Ok(())
    }

    /// Steps from the tail of an arc to its head, in the flow of one commodity, that cost least. A step costs something, more
    /// where it leaves the shortest ways, as that uses up room, and where a class has no room: the more the more often it
    /// was visited.
    fn cheapest(&mut self, commodity: u32, avoided: u32, goal: &[u128], ways: Ways<'_>) -> Option<(u64, Vec<Step>)> {
        let arcs = &self.problem.graph().arcs;
        let copies = u128::from(self.problem.commodities()[commodity as usize].copies);
        let (start, end) = (arcs[avoided as usize].from, arcs[avoided as usize].to);
        let avoided_class = self.flow.classes.of(avoided);
        let distances = self.distances.of(self.problem, commodity);
        self.costs.clear();
        self.costs.resize(self.steps.len(), u64::MAX);
        self.costs[start as usize] = 0;
        self.reached.clear();
        let mut queue = BinaryHeap::from([Reverse((0_u64, start))]);
        while let Some(Reverse((cost, node))) = queue.pop() {
            if cost > self.costs[node as usize] {
                continue;
            }
            if node == end {
                break;
            }
            let more = self.leaving[node as usize].iter().map(|&arc| (arc, true, arcs[arc as usize].to));
            let less = self.entering[node as usize].iter().map(|&arc| (arc, false, arcs[arc as usize].from));
            for (arc, more, to) in more.chain(less) {
                self.work += 1;
                let class = self.flow.classes.of(arc);
                let has_room = || self.flow.classes.loads[class] + copies <= goal[class];
                let astray = || self.distances.astray(&distances, arc, &arcs[arc as usize]);
                let step = match (more, ways) {
                    _ if arc == avoided => continue,
                    (false, _) if amount_of(&self.flow.amounts[commodity as usize], arc) > 0 => 1,
                    (true, _) if class == avoided_class => continue,
                    (true, Ways::Shortest) if astray() > 0 => continue,
                    (true, _) if has_room() => 1 + astray(),
                    (true, Ways::Passing(visits)) => PASSING_COST * (1 + u64::from(visits[class])) + astray(),
                    (true | false, _) => continue,
                };
                if cost + step < self.costs[to as usize] {
                    self.costs[to as usize] = cost + step;
                    self.steps[to as usize] = Some(Step { arc, more });
                    self.reached.push(to);
                    queue.push(Reverse((cost + step, to)));
                }
            }
        }
        let cost = self.costs[end as usize];
        let found = (cost < u64::MAX).then(|| (cost, self.circulation(start, end)));
        for &node in &self.reached {
            self.steps[node as usize] = None;
        }
        // A class that several steps add to must have room for all of them.
        found.filter(|(_, circulation)| matches!(ways, Ways::Passing(_)) || self.has_room(circulation, copies, goal))
    }

    /// The steps by which a search got from one node to another.
    fn circulation(&self, start: u32, end: u32) -> Vec<Step> {
        let mut circulation = Vec::new();
        let mut node = end;
        while let Some(step) = self.steps[node as usize].filter(|_| node != start) {
            circulation.push(step);
            let arc = &self.problem.graph().arcs[step.arc as usize];
            node = if step.more { arc.from } else { arc.to };
        }
        circulation
    }

    fn is_within(&self, goal: &[u128]) -> bool {
        self.flow.classes.loads.iter().zip(goal).all(|(load, goal)| load <= goal)
    }

    /// Relieves all classes that carry more than the goal, as far as that is found; says whether there is work left to spend.
    fn aim(&mut self, goal: &[u128], ways: Ways, stop: &dyn Stop) -> Result<bool, ConcurrentError> {
        let is_over = |classes: &Classes, arc: u32| {
            let class = classes.of(arc);
            classes.loads[class] > goal[class]
        };
        let arc_count = u32::try_from(self.problem.graph().arcs.len()).expect("arcs are counted in u32");
        let mut over: Vec<u32> = (0..arc_count).filter(|&arc| is_over(&self.flow.classes, arc)).collect();
        let classes = &self.flow.classes;
        let ratio = |arc: u32| (classes.loads[classes.of(arc)], classes.capacities[classes.of(arc)]);
        over.sort_by(|&left, &right| compare(ratio(right), ratio(left)).then(left.cmp(&right)));
        let carriers = self.carriers(&over);
        for (&arc, carriers) in over.iter().zip(&carriers) {
            let mut vain = 0;
            // Round after round, as long as one of the commodities can move a chunk.
            let mut moved = true;
            while moved && vain < VAIN_MAX && is_over(&self.flow.classes, arc) {
                moved = false;
                for &commodity in carriers {
                    if stop.is_requested() {
                        return Err(ConcurrentError::Stopped);
                    }
                    if self.work > self.work_max {
                        return Ok(false);
                    }
                    if vain >= VAIN_MAX || !is_over(&self.flow.classes, arc) {
                        break;
                    }
                    if self.amount(commodity, arc) == 0 {
                        continue;
                    }
                    match self.cheapest(commodity, arc, goal, ways) {
                        Some((_, circulation)) => {
                            self.apply(commodity, arc, &circulation);
                            moved = true;
                        }
                        None => vain += 1,
                    }
                }
            }
        }
        Ok(true)
    }

    /// By arc of these, the commodities that use it.
    fn carriers(&self, arcs: &[u32]) -> Vec<Vec<u32>> {
        let mut places: Vec<Option<u32>> = vec![None; self.problem.graph().arcs.len()];
        for (place, &arc) in (0_u32..).zip(arcs) {
            places[arc as usize] = Some(place);
        }
        let mut carriers = vec![Vec::new(); arcs.len()];
        for (commodity, amounts) in (0_u32..).zip(&self.flow.amounts) {
            for &(arc, _) in amounts {
                if let Some(place) = places[arc as usize] {
                    carriers[place as usize].push(commodity);
                }
            }
        }
        carriers
    }

    fn amount(&self, commodity: u32, arc: u32) -> u64 {
        amount_of(&self.flow.amounts[commodity as usize], arc)
    }

    /// Whether classes have room for all steps together.
    fn has_room(&self, circulation: &[Step], copies: u128, goal: &[u128]) -> bool {
        let mut added: Vec<usize> =
            circulation.iter().filter(|step| step.more).map(|step| self.flow.classes.of(step.arc)).collect();
        added.sort_unstable();
        added.chunk_by(|left, right| left == right).all(|same| {
            let class = same[0];
            self.flow.classes.loads[class] + copies * same.len() as u128 <= goal[class]
        })
    }

    fn apply(&mut self, commodity: u32, relieved: u32, circulation: &[Step]) {
        let copies = u128::from(self.problem.commodities()[commodity as usize].copies);
        let all = circulation.iter().copied().chain([Step { arc: relieved, more: false }]);
        for Step { arc, more } in all {
            let class = self.flow.classes.of(arc);
            let amounts = &mut self.flow.amounts[commodity as usize];
            match (amounts.binary_search_by_key(&arc, |&(arc, _)| arc), more) {
                (Ok(position), true) => amounts[position].1 += 1,
                (Ok(position), false) => {
                    amounts[position].1 -= 1;
                    if amounts[position].1 == 0 {
                        amounts.remove(position);
                    }
                }
                (Err(position), true) => amounts.insert(position, (arc, 1)),
                (Err(_), false) => continue,
            }
            let load = &mut self.flow.classes.loads[class];
            *load = if more { *load + copies } else { *load - copies };
        }
    }
}

fn amount_of(amounts: &[(u32, u64)], arc: u32) -> u64 {
    amounts.binary_search_by_key(&arc, |&(arc, _)| arc).map_or(0, |position| amounts[position].1)
}
