//! Ways over several switches: the shortest ones, in turn.

use std::collections::HashMap;

use canopy_topology::LinkIndex;

use super::lanes::{Lane, Lanes};

/// Most switches on a way.
const SWITCHES_MAX: u8 = 8;

/// Numbers that all fields together may hold before they are made anew.
const SIZE_MAX: usize = 1 << 24;

/// What is known of the shortest ways to nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Far {
    fields: Vec<Field>,
    /// By whether a node is a rank, and the links from switches into it: nodes with the same ones share a field.
    known: HashMap<(bool, Vec<(u32, u64)>), usize>,
    /// By node, 1 more than the number of its field; 0 without one.
    of_node: Vec<u32>,
    size: usize,
}

impl Far {
    /// The links of the way from a node to another over at least one switch, whose turn it is, are added to a way;
    /// `None`: each takes more than so many switches, and something may have been added.
    ///
    /// * **In.** Nodes without a link from one to the other. **Cost.** For all ways to one node once: the links of
    ///   switches nearer to it than the farthest.
    pub(super) fn add(&mut self, lanes: &Lanes, from: u32, to: u32, turn: u64, way: &mut Vec<LinkIndex>) -> Option<()> {
        let field = self.field(lanes, to)?;
        let before = field.size();
        let last = field.walk(lanes, from, turn, way)?;
        self.size += field.size() - before;
        way.push(LinkIndex::new(lanes.down(to).get(last)?.link));
        Some(())
    }

    fn field(&mut self, lanes: &Lanes, to: u32) -> Option<&mut Field> {
        if self.size > SIZE_MAX || self.of_node.is_empty() {
            *self = Self { of_node: vec![0; lanes.node_count()], ..Self::default() };
        }
        let known = self.of_node.get(to as usize)?.checked_sub(1).map(|at| at as usize);
        let at = match known {
            Some(at) => at,
            None => {
                let down: Vec<(u32, u64)> = lanes.down(to).iter().map(|lane| (lane.other, lane.capacity)).collect();
                let next = self.fields.len();
                let at = *self.known.entry((to < lanes.rank_count, down)).or_insert(next);
                if at == next {
                    let field = Field::of(lanes, to);
                    self.size += field.size();
                    self.fields.push(field);
                }
                self.of_node[to as usize] = u32::try_from(at).ok()?.checked_add(1)?;
                at
            }
        };
        self.fields.get_mut(at)
    }
}

/// A switch that data on its way to a node may pass.
#[derive(Clone, Copy, Debug)]
struct Passed {
    switch: u32,
    /// Switches on the way from it to a rank, itself included.
    level: u8,
    /// Bytes per second that shortest ways from it to the last switch have.
    width: u64,
    /// One of the links that they begin with, and where it leads to.
    link: u32,
    next: u32,
    has_others: bool,
}

/// The shortest ways to nodes with the same links from switches.
#[derive(Clone, Debug)]
struct Field {
    /// By level, the nearest first.
    passed: Vec<Passed>,
    /// By switch, its level; 0: not reached.
    level: Vec<u8>,
    /// By switch that is reached, its place in `passed`.
    place: Vec<u32>,
    /// The level next to the goal.
    first: u8,
    /// Where the farthest level begins.
    farthest: usize,
    /// By switch, 1 more than the number of its choice; 0: not made.
    choice: Vec<u32>,
    choices: Vec<Choice>,
    steps: Vec<Step>,
}

/// A link on a shortest way.
#[derive(Clone, Copy, Debug)]
struct Step {
    link: u32,
    next: u32,
    weight: u64,
}

/// The steps from a switch, in the order of the switches that they lead to.
#[derive(Clone, Copy, Debug)]
struct Choice {
    first: usize,
    count: usize,
    /// Sum of weights; 0 where all are equal.
    total: u128,
}

impl Field {
    fn of(lanes: &Lanes, to: u32) -> Self {
        let is_rank = to < lanes.rank_count;
        let first = if is_rank { 1 } else { 2 };
        let switches = lanes.node_count().saturating_sub(lanes.rank_count as usize);
        let mut field = Self {
            passed: Vec::new(),
            level: vec![0; switches],
            place: vec![0; switches],
            first,
            farthest: 0,
            choice: vec![0; switches],
            choices: Vec::new(),
            steps: Vec::new(),
        };
        for lane in lanes.down(to) {
            field.reach(lanes, lane, first, (to, if is_rank { u64::MAX } else { lane.capacity }));
        }
        field
    }

    /// About how many numbers it holds.
    fn size(&self) -> usize {
        self.place.len() + 4 * (self.passed.len() + self.steps.len())
    }

    /// The level of a switch that is reached.
    fn level(&self, lanes: &Lanes, switch: u32) -> Option<u8> {
        self.level.get(switch.checked_sub(lanes.rank_count)? as usize).copied().filter(|&level| level > 0)
    }

    /// A switch has a link, the lane, to another one; the way over it is as wide as stated.
    fn reach(&mut self, lanes: &Lanes, lane: &Lane, level: u8, (next, width): (u32, u64)) {
        let at = lane.other.wrapping_sub(lanes.rank_count) as usize;
        let (Some(known), Some(place)) = (self.level.get_mut(at), self.place.get_mut(at)) else { return };
        if *known == 0 {
            *known = level;
            *place = u32::try_from(self.passed.len()).unwrap_or(u32::MAX);
            self.passed.push(Passed { switch: lane.other, level, width, link: lane.link, next, has_others: false });
        } else if *known == level
            && let Some(passed) = self.passed.get_mut(*place as usize)
        {
            passed.width = passed.width.saturating_add(width);
            passed.has_others = true;
        }
    }

    /// The width of a switch that is reached.
    fn width(&self, lanes: &Lanes, switch: u32) -> u64 {
        self.place(lanes, switch).and_then(|place| self.passed.get(place)).map_or(0, |passed| passed.width)
    }

    /// Where a switch that is reached is among `passed`.
    fn place(&self, lanes: &Lanes, switch: u32) -> Option<usize> {
        self.place.get(switch.checked_sub(lanes.rank_count)? as usize).map(|&place| place as usize)
    }

    /// Reaches the switches that are one link farther away than the farthest; false: there are none.
    fn widen(&mut self, lanes: &Lanes) -> bool {
        let level = self.farthest..self.passed.len();
        for at in level.clone() {
            let Passed { switch, level, width, .. } = self.passed[at];
            for lane in lanes.down(switch).iter().filter(|_| level < SWITCHES_MAX) {
                self.reach(lanes, lane, level + 1, (switch, lane.capacity.min(width)));
            }
        }
        self.farthest = level.end;
        self.passed.len() > level.end
    }

    /// Goes from a node to the last switch before the goal; which of those with a link to the goal that is, it returns.
    fn walk(&mut self, lanes: &Lanes, from: u32, turn: u64, way: &mut Vec<LinkIndex>) -> Option<usize> {
        let (mut switch, mut turn) = (from, turn);
        loop {
            if let Some(level) = self.level(lanes, switch) {
                let place = self.place(lanes, switch)?;
                if level == self.first {
                    // These were reached first, in the order of their links.
                    return Some(place);
                }
                let passed = self.passed.get(place).filter(|passed| !passed.has_others);
                if let Some(passed) = passed {
                    way.push(LinkIndex::new(passed.link));
                    switch = passed.next;
                    continue;
                }
            }
            let choice = self.choice_at(lanes, switch)?;
            let step = choice.take(self.steps.get(choice.first..choice.first + choice.count)?, turn)?;
            if switch < lanes.rank_count {
                // The choice of a rank, which few ask for, is made each time.
                self.steps.truncate(choice.first);
            }
            if choice.count > 1 {
                turn /= choice.count as u64;
            }
            way.push(LinkIndex::new(step.link));
            switch = step.next;
        }
    }

    /// The steps from a node to switches that are nearest to the goal.
    fn choice_at(&mut self, lanes: &Lanes, node: u32) -> Option<Choice> {
        let at = node.checked_sub(lanes.rank_count).map(|at| at as usize);
        let known = at.and_then(|at| self.choice.get(at)?.checked_sub(1));
        if let Some(known) = known {
            return self.choices.get(known as usize).copied();
        }
        // What is not reached yet is farther away than all that is.
        let nearest = loop {
            let levels = lanes.up(node).iter().filter_map(|lane| self.level(lanes, lane.other));
            match levels.min() {
                Some(SWITCHES_MAX) if at.is_some() => return None,
                Some(nearest) => break nearest,
                None if !self.widen(lanes) => return None,
                None => {}
            }
        };
        let first = self.steps.len();
        for lane in lanes.up(node) {
            if self.level(lanes, lane.other) == Some(nearest) {
                let weight = lane.capacity.min(self.width(lanes, lane.other));
                self.steps.push(Step { link: lane.link, next: lane.other, weight });
            }
        }
        let choice = self.keep_wide(first);
        if let Some(at) = at {
            self.choices.push(choice);
            *self.choice.get_mut(at)? = u32::try_from(self.choices.len()).ok()?;
        }
        Some(choice)
    }

    /// Of the latest steps, those at least half as wide as the widest.
    fn keep_wide(&mut self, first: usize) -> Choice {
        let widest = self.steps[first..].iter().map(|step| step.weight).max().unwrap_or(0);
        let mut end = first;
        for at in first..self.steps.len() {
            if self.steps[at].weight >= widest.div_ceil(2) {
                self.steps[end] = self.steps[at];
                end += 1;
            }
        }
        self.steps.truncate(end);
        let steps = &self.steps[first..];
        let is_even = steps.iter().all(|step| step.weight == widest);
        let total = if is_even { 0 } else { steps.iter().map(|step| u128::from(step.weight)).sum() };
        Choice { first, count: steps.len(), total }
    }
}

impl Choice {
    /// The step whose turn it is: one after the other where all are as wide, else in proportion to their widths.
    ///
    /// Multiples of the golden ratio, without their whole part, are spread over the numbers from 0 to 1 as evenly as can
    /// be, however many there are.
    fn take(self, steps: &[Step], turn: u64) -> Option<Step> {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        if let [only] = steps {
            return Some(*only);
        }
        if self.total == 0 {
            let number = turn.checked_rem(self.count as u64)?;
            return steps.get(usize::try_from(number).ok()?).copied();
        }
        let mut left = (u128::from(turn.wrapping_mul(GOLDEN) >> 32) * self.total) >> 32;
        steps.iter().copied().find(|step| match left.checked_sub(step.weight.into()) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        })
    }
}
