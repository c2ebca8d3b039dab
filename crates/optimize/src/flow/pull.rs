//! Dinic's algorithm from the sink backwards: levels, then a blocking flow, until enough has come or nothing is left.

use super::{FlowNetwork, FlowUnit, Slot};
use crate::stop::{Meter, Stopped};

/// Marks and buffers of a search. A node's entries hold only while its stamp is the current one, so that starting
/// afresh costs nothing and a search costs what it visits.
#[derive(Clone, Debug)]
pub(super) struct Search<C> {
    stamp: u64,
    stamp_of: Vec<u64>,
    /// Arcs between node and sink on a shortest residual path.
    level: Vec<u32>,
    /// First slot of the node not yet found useless in this phase.
    cursor: Vec<u32>,
    queue: Vec<u32>,
    /// The visits that wait for the present one, from the sink on.
    path: Vec<Visit<C>>,
    /// Where flow comes from, instead of the supplies.
    pub(super) only_source: Option<u32>,
}

/// A node that is being asked for flow.
#[derive(Clone, Copy, Debug)]
struct Visit<C> {
    /// Slot the question came through, held by the asking node; of no meaning for the sink.
    slot: u32,
    node: u32,
    asked: C,
    got: C,
}

/// How much a search for levels looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LevelScan {
    /// Every slot: what a blocking flow needs to end the phase for good.
    Full,
    /// Of each node, the slots up to the first that leads to unlimited supply. In dense graphs most flows end after
    /// two such phases, which saves looking at all neighbours of all neighbours.
    Partial,
}

/// Partial phases at the start of each flow: some for the gain, few for the worst case.
const PARTIAL_PHASES: u32 = 4;

impl<C> Search<C> {
    pub(super) fn new(node_count: usize) -> Self {
        Self {
            stamp: 0,
            stamp_of: vec![0; node_count],
            level: vec![0; node_count],
            cursor: vec![0; node_count],
            queue: Vec::new(),
            path: Vec::new(),
            only_source: None,
        }
    }

    pub(super) fn add_node(&mut self) {
        self.stamp_of.push(0);
        self.level.push(0);
        self.cursor.push(0);
    }

    /// Whether the last search came to this node. Stamps start at 1, so nothing is reached before the first.
    pub(super) fn is_reached(&self, node: u32) -> bool {
        self.stamp_of[node as usize] == self.stamp && self.stamp != 0
    }

    /// All nodes the last search came to, in the order it did.
    pub(super) fn reached(&self) -> &[u32] {
        &self.queue
    }

    fn visit(&mut self, node: u32, level: u32, first_slot: u32) {
        self.stamp_of[node as usize] = self.stamp;
        self.level[node as usize] = level;
        self.cursor[node as usize] = first_slot;
        self.queue.push(node);
    }
}

impl<C: FlowUnit> FlowNetwork<C> {
    /// Phases until `limit` is reached or no supply can be reached. The distance of the nearest supply grows from
    /// thorough phase to thorough phase, so there are at most as many as nodes. Drops all flow when stopped, since a
    /// search may be cut off half way.
    pub(super) fn pull_flow(&mut self, sink: u32, limit: C, meter: &mut Meter<'_>) -> Result<C, Stopped> {
        let pulled = self.phases(sink, limit, meter);
        if pulled.is_err() {
            self.reset();
        }
        pulled
    }

    fn phases(&mut self, sink: u32, limit: C, meter: &mut Meter<'_>) -> Result<C, Stopped> {
        let mut pulled = C::ZERO;
        let mut phase = 0;
        loop {
            let wanted = limit - pulled;
            let scan = if phase < PARTIAL_PHASES { LevelScan::Partial } else { LevelScan::Full };
            if wanted <= C::ZERO || !self.find_levels(sink, wanted, scan, meter)? {
                return Ok(pulled);
            }
            pulled += self.blocking_flow(sink, wanted, meter)?;
            phase += 1;
        }
    }

    /// What the node can still give.
    fn available(&self, node: u32) -> C {
        match self.search.only_source {
            Some(source) if source == node => C::MAX,
            Some(_) => C::ZERO,
            None => self.supply[node as usize],
        }
    }

    /// Breadth-first search backwards over residual arcs, to the end of the first level at which the reached supplies
    /// add up to `wanted`, else to the end. Says whether any supply was reached; if not, the search left nothing out.
    fn find_levels(&mut self, sink: u32, wanted: C, scan: LevelScan, meter: &mut Meter<'_>) -> Result<bool, Stopped> {
        self.search.stamp += 1;
        self.search.queue.clear();
        self.search.visit(sink, 0, self.slot_start[sink as usize]);
        let mut reached = self.available(sink);
        let mut level_max = if reached < wanted { u32::MAX } else { 0 };
        let mut next = 0;
        while next < self.search.queue.len() {
            let node = self.search.queue[next];
            next += 1;
            let level = self.search.level[node as usize];
            if level >= level_max {
                break;
            }
            let (start, end) = (self.slot_start[node as usize], self.slot_start[node as usize + 1]);
            meter.spend(end - start + 1)?;
            for position in start..end {
                let Slot { other, inward, .. } = self.slots[position as usize];
                if inward <= C::ZERO {
                    continue;
                }
                if !self.search.is_reached(other) {
                    self.search.visit(other, level + 1, self.slot_start[other as usize]);
                    reached = reached.saturating_add(self.available(other));
                }
                if scan == LevelScan::Partial
                    && self.search.level[other as usize] > level
                    && self.available(other) == C::MAX
                {
                    break;
                }
            }
            if reached >= wanted {
                level_max = level_max.min(level + 1);
            }
        }
        Ok(reached > C::ZERO)
    }

    /// Depth-first search away from the sink, with each useless slot looked at once. Returns what was pulled.
    ///
    /// A node asks its neighbours until it has what it was asked for, and hands over the sum: so a slot is settled once
    /// per visit, not once per supply behind it, which makes long paths with supply all along cheap.
    fn blocking_flow(&mut self, sink: u32, wanted: C, meter: &mut Meter<'_>) -> Result<C, Stopped> {
        self.search.path.clear();
        let mut visit = Visit { slot: u32::MAX, node: sink, asked: wanted, got: self.take_supply(sink, wanted) };
        loop {
            let open = visit.got < visit.asked;
            if let Some(position) = if open { self.next_slot(visit.node, meter)? } else { None } {
                let Slot { other, inward, .. } = self.slots[position as usize];
                let asked = inward.min(visit.asked - visit.got);
                self.search.path.push(visit);
                visit = Visit { slot: position, node: other, asked, got: self.take_supply(other, asked) };
                continue;
            }
            let Some(mut asking) = self.search.path.pop() else {
                return Ok(visit.got);
            };
            self.settle(visit.slot, visit.got);
            asking.got += visit.got;
            if visit.got < visit.asked {
                // Nothing more comes through this slot.
                self.search.cursor[asking.node as usize] += 1;
            }
            visit = asking;
        }
    }

    /// First slot at or after the cursor that leads one level further from the sink through residual capacity.
    fn next_slot(&mut self, node: u32, meter: &mut Meter<'_>) -> Result<Option<u32>, Stopped> {
        let end = self.slot_start[node as usize + 1];
        let further = self.search.level[node as usize] + 1;
        let start = self.search.cursor[node as usize];
        let found = (start..end).find(|&position| {
            let slot = self.slots[position as usize];
            slot.inward > C::ZERO
                && self.search.is_reached(slot.other)
                && self.search.level[slot.other as usize] == further
        });
        let position = found.unwrap_or(end);
        self.search.cursor[node as usize] = position;
        meter.spend(position - start + 1)?;
        Ok(found)
    }

    /// Draws on the supply of a node; returns the amount, at most `asked`.
    fn take_supply(&mut self, node: u32, asked: C) -> C {
        let available = self.available(node);
        let amount = asked.min(available);
        if amount > C::ZERO && available < C::MAX {
            self.supply[node as usize] -= amount;
            if !std::mem::replace(&mut self.node_is_touched[node as usize], true) {
                self.touched_nodes.push(node);
            }
        }
        amount
    }

    /// Moves `amount` through a slot, from its other end to the node that holds it.
    fn settle(&mut self, position: u32, amount: C) {
        if amount == C::ZERO {
            return;
        }
        let slot = &mut self.slots[position as usize];
        slot.inward -= amount;
        let code = slot.code;
        self.slots[self.slot_of[code as usize ^ 1] as usize].inward += amount;
        let arc = code / 2;
        if !std::mem::replace(&mut self.arc_is_touched[arc as usize], true) {
            self.touched_arcs.push(arc);
        }
    }
}
