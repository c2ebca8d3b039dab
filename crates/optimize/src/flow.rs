//! Exact maximum flows on a network whose capacities change between flows.
//!
//! One engine serves everything: flow is *pulled* into a sink from nodes that have supply, searching backwards and
//! only as far as the supply asked for requires. A network with a thousand nodes answers most questions after
//! looking at a dozen of them, which is what makes one flow per node affordable.

mod pull;
#[cfg(test)]
mod tests;
mod unit;

pub use unit::FlowUnit;

use crate::stop::{Meter, Never, Stop, Stopped};

/// Name of an arc of a [`FlowNetwork`], given out in order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArcId(u32);

impl ArcId {
    /// Position in order of insertion: 0, 1, 2, …
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A directed network with integer capacities, its current flow, and the buffers to find one.
///
/// # Use
/// Add all arcs, then ask for flows. Between flows, change capacities and supplies at will: each costs O(1).
/// [`reset`](Self::reset) drops the flow in time proportional to what the flow touched; [`commit`](Self::commit)
/// keeps it for good. Adding a node or an arc later is allowed; the next flow then sorts all arcs again, in
/// O(nodes + arcs), so an arc that may be wanted later is better added at once with capacity zero.
///
/// # Unlimited arcs
/// A capacity of [`C::MAX`](FlowUnit::MAX) is never used up by any flow that fits `C`; use it for arcs that must not
/// be cut. A supply of `C::MAX` is unlimited in the strict sense: it is never drawn down.
///
/// # Ranges
/// Nothing overflows as long as, for each pair of antiparallel arcs added by [`add_pair`](Self::add_pair), the two
/// capacities add up to at most `C::MAX` (checked there): a flow never exceeds its limit, and a residual capacity
/// never exceeds that sum. A limit of `C::MAX` is a limit like any other: whoever means *as much as possible* sees to it
/// that no flow can be larger, for instance that all capacities but the unlimited ones add up to less.
///
/// Memory: some 70 bytes per arc for `i64`, 120 for `i128`, and 80 per node. No recursion.
#[derive(Clone, Debug)]
pub struct FlowNetwork<C> {
    /// Tail and head of each arc.
    ends: Vec<(u32, u32)>,
    /// Capacity along and against each arc.
    capacities: Vec<[C; 2]>,
    /// `slots` of node `v` are `slot_start[v] .. slot_start[v + 1]`, valid while `sorted`.
    slot_start: Vec<u32>,
    slots: Vec<Slot<C>>,
    /// Where the slot with a code is.
    slot_of: Vec<u32>,
    sorted: bool,
    /// What each node can still give, and what it gives when nothing flows.
    supply: Vec<C>,
    supply_base: Vec<C>,
    /// Arcs and nodes the current flow touched: what a reset must restore.
    touched_arcs: Vec<u32>,
    arc_is_touched: Vec<bool>,
    touched_nodes: Vec<u32>,
    node_is_touched: Vec<bool>,
    search: pull::Search<C>,
}

/// One arc seen from one of its ends.
#[derive(Clone, Copy, Debug)]
struct Slot<C> {
    /// Node at the other end.
    other: u32,
    /// Twice the arc's number, plus 0 at its head and 1 at its tail. The slot at the other end has `code ^ 1`.
    code: u32,
    /// Residual capacity from `other` to here.
    inward: C,
}

impl<C: FlowUnit> FlowNetwork<C> {
    /// A network of nodes `0 … node_count−1` without arcs, no node having supply.
    pub fn new(node_count: u32) -> Self {
        let count = node_count as usize;
        Self {
            ends: Vec::new(),
            capacities: Vec::new(),
            slot_start: Vec::new(),
            slots: Vec::new(),
            slot_of: Vec::new(),
            sorted: false,
            supply: vec![C::ZERO; count],
            supply_base: vec![C::ZERO; count],
            touched_arcs: Vec::new(),
            arc_is_touched: Vec::new(),
            touched_nodes: Vec::new(),
            node_is_touched: vec![false; count],
            search: pull::Search::new(count),
        }
    }

    /// Number of nodes.
    pub fn node_count(&self) -> u32 {
        u32::try_from(self.supply.len()).expect("nodes are counted in u32")
    }

    /// Number of arcs; a pair counts once.
    pub fn arc_count(&self) -> u32 {
        u32::try_from(self.ends.len()).expect("arcs are counted in u31")
    }

    /// Adds a node without supply and returns its number. Drops the current flow.
    pub fn add_node(&mut self) -> u32 {
        self.reset();
        let node = self.node_count();
        assert!(node < u32::MAX - 1, "a network holds fewer than 2^32 - 1 nodes");
        self.supply.push(C::ZERO);
        self.supply_base.push(C::ZERO);
        self.node_is_touched.push(false);
        self.search.add_node();
        self.sorted = false;
        node
    }

    /// Adds an arc. Parallel arcs and capacity zero are welcome. Drops the current flow.
    ///
    /// # Panics
    /// An end is not a node, or the capacity is negative.
    pub fn add_arc(&mut self, from: u32, to: u32, capacity: C) -> ArcId {
        self.add_pair(from, to, capacity, C::ZERO)
    }

    /// Adds an arc and its reverse under one name: half the memory and time of two arcs, and flows in opposite
    /// directions cancel. Drops the current flow.
    ///
    /// # Panics
    /// An end is not a node, a capacity is negative, or their sum does not fit.
    pub fn add_pair(&mut self, from: u32, to: u32, forward: C, backward: C) -> ArcId {
        self.reset();
        let arc = self.arc_count();
        assert!(arc < 1 << 31, "a network holds at most 2^31 arcs");
        assert!(from < self.node_count() && to < self.node_count(), "arcs join nodes of the network");
        assert!(forward >= C::ZERO && backward >= C::ZERO, "capacities are not negative");
        assert!(forward.checked_add(backward).is_some(), "the capacities of a pair add up within range");
        self.ends.push((from, to));
        self.capacities.push([forward, backward]);
        self.arc_is_touched.push(false);
        self.sorted = false;
        ArcId(arc)
    }

    /// Tail and head of an arc.
    pub fn ends(&self, arc: ArcId) -> (u32, u32) {
        self.ends[arc.index()]
    }

    /// Capacity of an arc: as last set, less what was committed.
    pub fn capacity(&self, arc: ArcId) -> C {
        self.capacities[arc.index()][0]
    }

    /// Capacity of the reverse of an arc added by [`add_pair`](Self::add_pair), or what was committed along an arc.
    pub fn reverse_capacity(&self, arc: ArcId) -> C {
        self.capacities[arc.index()][1]
    }

    /// Gives an arc another capacity. Drops the current flow, if there is one.
    ///
    /// # Panics
    /// The capacity is negative, or does not fit together with the reverse one.
    pub fn set_capacity(&mut self, arc: ArcId, capacity: C) {
        self.set_pair(arc, capacity, self.reverse_capacity(arc));
    }

    /// Gives both directions of an arc another capacity. Drops the current flow, if there is one.
    ///
    /// # Panics
    /// A capacity is negative, or their sum does not fit.
    pub fn set_pair(&mut self, arc: ArcId, forward: C, backward: C) {
        assert!(forward >= C::ZERO && backward >= C::ZERO, "capacities are not negative");
        assert!(forward.checked_add(backward).is_some(), "the capacities of a pair add up within range");
        self.reset();
        self.capacities[arc.index()] = [forward, backward];
        if self.sorted {
            self.restore_arc(arc.0);
        }
    }

    /// Gives a node another supply: what [`pull`](Self::pull) may take from it. [`C::MAX`](FlowUnit::MAX) is unlimited.
    /// Drops the current flow, if there is one.
    ///
    /// # Panics
    /// The supply is negative.
    pub fn set_supply(&mut self, node: u32, supply: C) {
        assert!(supply >= C::ZERO, "supplies are not negative");
        self.reset();
        self.supply[node as usize] = supply;
        self.supply_base[node as usize] = supply;
    }

    /// Supply of a node when nothing flows: as last set, less what was committed.
    pub fn supply(&self, node: u32) -> C {
        self.supply_base[node as usize]
    }

    /// Sets the supply of every node to zero. Drops the current flow.
    pub fn clear_supplies(&mut self) {
        self.reset();
        self.supply.fill(C::ZERO);
        self.supply_base.fill(C::ZERO);
    }

    /// Drops the current flow, whatever was committed excepted. O(what the flow touched).
    pub fn reset(&mut self) {
        while let Some(arc) = self.touched_arcs.pop() {
            self.arc_is_touched[arc as usize] = false;
            self.restore_arc(arc);
        }
        while let Some(node) = self.touched_nodes.pop() {
            self.node_is_touched[node as usize] = false;
            self.supply[node as usize] = self.supply_base[node as usize];
        }
    }

    /// Keeps the current flow for good: residual capacities and supplies become the capacities and supplies that a
    /// later [`reset`](Self::reset) returns to. O(what the flow touched).
    pub fn commit(&mut self) {
        while let Some(arc) = self.touched_arcs.pop() {
            self.arc_is_touched[arc as usize] = false;
            self.capacities[arc as usize] = [self.residual(2 * arc), self.residual(2 * arc + 1)];
        }
        while let Some(node) = self.touched_nodes.pop() {
            self.node_is_touched[node as usize] = false;
            self.supply_base[node as usize] = self.supply[node as usize];
        }
    }

    /// Net flow along an arc since the last commit: negative when the reverse of a pair is used.
    pub fn flow(&self, arc: ArcId) -> C {
        if self.arc_is_touched[arc.index()] { self.capacity(arc) - self.residual(2 * arc.0) } else { C::ZERO }
    }

    /// Adds a greatest flow from `source` to `sink` to the current one, but at most `limit`; returns the amount added.
    ///
    /// Supplies are left out of account. To ask a question from scratch, [`reset`](Self::reset) first.
    ///
    /// * **Source.** Dinic 1970 with the search reversed. **Cost.** O(nodes² · arcs) at worst, far less in practice: it
    ///   ends as soon as the limit is reached, and looks no further than needed.
    /// * **Errors.** [`Stopped`]; the current flow is dropped, as by a reset.
    /// * **Panics.** `source` or `sink` is not a node, or they are the same.
    pub fn max_flow(&mut self, source: u32, sink: u32, limit: C, stop: &dyn Stop) -> Result<C, Stopped> {
        assert!(source != sink, "source and sink differ");
        let mut meter = Meter::new(stop);
        self.sort_arcs(&mut meter)?;
        self.search.only_source = Some(source);
        let added = self.pull_flow(sink, limit, &mut meter);
        self.search.only_source = None;
        added
    }

    /// Adds a greatest flow from the nodes with supply to `sink` to the current one, but at most `limit`; returns the
    /// amount added. The sink's own supply counts and needs no arc.
    ///
    /// * **Source.** Dinic 1970 on a network with one more node that feeds every supply, without building it.
    /// * **Errors, cost.** As [`max_flow`](Self::max_flow).
    /// * **Panics.** `sink` is not a node.
    pub fn pull(&mut self, sink: u32, limit: C, stop: &dyn Stop) -> Result<C, Stopped> {
        let mut meter = Meter::new(stop);
        self.sort_arcs(&mut meter)?;
        self.pull_flow(sink, limit, &mut meter)
    }

    /// The nodes from which the sink of the last flow can still be reached through residual capacity: the smallest
    /// sink side of a least cut. Means nothing if that flow ended at its limit, or the network changed since. O(nodes).
    pub fn min_cut_sink_side(&self) -> Vec<bool> {
        (0..self.node_count()).map(|node| self.search.is_reached(node)).collect()
    }

    /// [`min_cut_sink_side`](Self::min_cut_sink_side) as a list, nearest to the sink first, in O(1).
    pub fn min_cut_sink_nodes(&self) -> &[u32] {
        self.search.reached()
    }

    /// The nodes that residual capacity still reaches from `source`: the smallest source side of a least cut, after a
    /// [`max_flow`](Self::max_flow) from there that fell short of its limit. O(nodes + arcs).
    pub fn min_cut_source_side(&self, source: u32) -> Vec<bool> {
        let mut reached = vec![false; self.supply.len()];
        reached[source as usize] = true;
        if !self.sorted {
            return reached;
        }
        let mut stack = vec![source];
        while let Some(node) = stack.pop() {
            for slot in self.slots_of(node) {
                if !reached[slot.other as usize] && self.residual(slot.code ^ 1) > C::ZERO {
                    reached[slot.other as usize] = true;
                    stack.push(slot.other);
                }
            }
        }
        reached
    }

    /// All nodes, each after one of its neighbours where it has any earlier one, nearest first: breadth-first from node
    /// 0, then from the lowest node not reached, directions and capacities ignored. O(nodes + arcs).
    pub fn breadth_first_order(&mut self) -> Vec<u32> {
        self.breadth_first_order_until(&mut Meter::new(&Never)).expect("never asked to stop")
    }

    /// [`breadth_first_order`](Self::breadth_first_order), if there is time.
    pub(crate) fn breadth_first_order_until(&mut self, meter: &mut Meter<'_>) -> Result<Vec<u32>, Stopped> {
        self.sort_arcs(meter)?;
        let mut seen = vec![false; self.supply.len()];
        let mut order = Vec::with_capacity(seen.len());
        for root in 0..self.node_count() {
            if std::mem::replace(&mut seen[root as usize], true) {
                continue;
            }
            let mut next = order.len();
            order.push(root);
            while let Some(&node) = order.get(next) {
                next += 1;
                meter.spend_many(self.slots_of(node).len())?;
                for slot in self.slots_of(node) {
                    if !std::mem::replace(&mut seen[slot.other as usize], true) {
                        order.push(slot.other);
                    }
                }
            }
        }
        Ok(order)
    }

    /// Net flow into a node since the last reset to the capacities of [`add_pair`](Self::add_pair), given their sum:
    /// negative if more leaves. All numbers must fit `C`. O(degree), after the first flow.
    pub(crate) fn net_inflow(&self, node: u32, capacity_into: C) -> C {
        if self.sorted {
            self.slots_of(node).iter().fold(capacity_into, |net, slot| net - slot.inward)
        } else {
            C::ZERO
        }
    }

    /// Residual capacity into the node that holds the slot with this code.
    fn residual(&self, code: u32) -> C {
        self.slots[self.slot_of[code as usize] as usize].inward
    }

    fn slots_of(&self, node: u32) -> &[Slot<C>] {
        &self.slots[self.slot_start[node as usize] as usize..self.slot_start[node as usize + 1] as usize]
    }

    fn restore_arc(&mut self, arc: u32) {
        let [forward, backward] = self.capacities[arc as usize];
        self.slots[self.slot_of[2 * arc as usize] as usize].inward = forward;
        self.slots[self.slot_of[2 * arc as usize + 1] as usize].inward = backward;
    }

    /// Groups the two slots of every arc by node, keeping the order of insertion. O(nodes + arcs), if not done yet.
    fn sort_arcs(&mut self, meter: &mut Meter<'_>) -> Result<(), Stopped> {
        if self.sorted {
            return Ok(());
        }
        let mut next = vec![0_u32; self.supply.len() + 1];
        for &(from, to) in &self.ends {
            next[from as usize + 1] += 1;
            next[to as usize + 1] += 1;
        }
        for node in 1..next.len() {
            next[node] += next[node - 1];
        }
        self.slot_start.clone_from(&next);
        let slot_count = 2 * self.ends.len();
        self.slots = vec![Slot { other: 0, code: 0, inward: C::ZERO }; slot_count];
        self.slot_of = vec![0; slot_count];
        for (arc, (&(from, to), &[forward, backward])) in (0_u32..).zip(self.ends.iter().zip(&self.capacities)) {
            meter.spend(2)?;
            for (here, other, code, inward) in [(to, from, 2 * arc, forward), (from, to, 2 * arc + 1, backward)] {
                let position = next[here as usize];
                next[here as usize] += 1;
                self.slots[position as usize] = Slot { other, code, inward };
                self.slot_of[code as usize] = position;
            }
        }
        self.sorted = true;
        Ok(())
    }
}
