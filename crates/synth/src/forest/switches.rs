//! Removal of switches: each is replaced by edges between its neighbours, without loss of a single tree.

use std::collections::{BTreeMap, BTreeSet};

use canopy_optimize::{FlowUnit, Stop};
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::condition::{Condition, EdgeIndex, Step};
use crate::forest::logical::{LogicalGraph, Sides};
use crate::forest::network::Network;
use crate::forest::pattern::{Port, Share, Spread, even_shares, even_shares_up_to, grouped_shares};
use crate::forest::{ASK_INTERVAL, ask};
use crate::progress::{Progress, Stage};

/// Most neighbours, or groups of them, of one switch: each pair of them takes some 100 bytes.
const NEIGHBOURS_MAX: usize = 1 << 12;

/// Splits off every switch that carries anything.
///
/// A split of γ replaces γ of `u → w` and of `w → t` by γ of `u → t`. Splits are proposed in bulk by
/// [`grouped_shares`] and tested together; of a split that is too large exactly γ is done, and that pair is never
/// proposed again, since γ can only shrink. As long as capacity is left at w, some pair has γ > 0 (theorem 27), and
/// each round either uses everything up or rules out a pair.
///
/// * **Source.** Zhao 2026, algorithm 3 and theorems 27 and 28. Departures: order of splits; γ found by testing
///   (see [`Condition`]); `u = t` allowed, where the article is silent, since surplus must go somewhere (digest example
///   of three unequal links at one switch).
/// * **In.** A network with balanced switches that meets the condition for these demands. **Out.** Edges between ranks
///   only, that meet it as well.
/// * **Errors.** Stopped, too many neighbours, or broken if the input does not meet the condition.
/// * **Cost.** One test per switch where the first proposal holds; O(log) tests per split that does not.
pub(super) fn remove_switches<C: FlowUnit>(
    network: &Network<'_>,
    graph: &mut LogicalGraph<'_, C>,
    demands: &[C],
    spread: Spread,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(), SynthesisError> {
    let &Network { terminal_count, node_count, .. } = network;
    remove_thin(network, graph, stop)?;
    let mut groups = Groups::new(network);
    // Fewest neighbours first: switches inside boxes before those between them. One without any gets none.
    let neighbours = |(entering, leaving): Sides<C>| entering.len().max(leaving.len());
    let counts = graph.all_sides(node_count).into_iter().map(neighbours).zip(0..node_count);
    let mut order: Vec<(usize, u32)> = counts.filter(|&(count, node)| count > 0 && node >= terminal_count).collect();
    order.sort_unstable();
    let total = order.len() as u64;
    for (done, &(_, switch)) in (0..).zip(&order) {
        progress.report(Stage::Switches, done, total);
        let (entering, leaving) = graph.sides(switch);
        if entering.is_empty() && leaving.is_empty() {
            continue;
        }
        ask(stop)?;
        let ports = groups.ports(&entering, &leaving, terminal_count);
        let condition = Condition::new(graph.edges(), demands.to_vec(), terminal_count, stop)?;
        let demand_unit = demands.iter().fold(0_u128, |unit, demand| unit.gcd(&demand.to_u128()));
        Removal { switch, network, ports, demand_unit, condition, graph, spent: BTreeSet::new(), spread, stop }
            .run()?;
    }
    progress.report(Stage::Switches, total, total);
    Ok(())
}

/// Splits off switches that one neighbour alone feeds, or that feed only one, as those between a rank and its links: all that
/// passes them is known, and nothing has to be tested.
///
/// *Why:* let w be fed by u alone, and send a(t) to t. A set that holds w but not u is entered by Σ a over `u → w`, and
/// without w by a(t) of the t it holds, which is no more; a set that holds u does best to hold w, and then is entered by nothing
/// of this, as by edges `u → t`. So of the two sets with and without w the weaker one has what it has after the split.
///
/// * **Cost.** O(nodes + edges) for each time that one such switch feeds another.
fn remove_thin<C: FlowUnit>(
    network: &Network<'_>,
    graph: &mut LogicalGraph<'_, C>,
    stop: &dyn Stop,
) -> Result<(), SynthesisError> {
    let switches = network.terminal_count as usize..network.node_count as usize;
    loop {
        ask(stop)?;
        let sides = graph.all_sides(network.node_count);
        // What a split has changed is known in the next round.
        let mut is_changed = vec![false; switches.end];
        let mut is_done = true;
        for (switch, (entering, leaving)) in (network.terminal_count..).zip(&sides[switches.clone()]) {
            let is_thin = entering.len() == 1 && !leaving.is_empty() || leaving.len() == 1 && !entering.is_empty();
            let neighbours = || entering.iter().chain(leaving).map(|&(node, _)| node as usize);
            if !is_thin || is_changed[switch as usize] || neighbours().any(|node| is_changed[node]) {
                is_done &= !is_thin;
                continue;
            }
            neighbours().filter(|node| switches.contains(node)).for_each(|node| is_changed[node] = true);
            for &(from, entered) in entering {
                for &(to, left) in leaving {
                    graph.split(from, switch, to, entered.min(left));
                }
            }
            is_done = false;
        }
        if is_done {
            return Ok(());
        }
    }
}

/// One switch being removed.
struct Removal<'a, 'g, 'topology, C> {
    switch: u32,
    network: &'a Network<'a>,
    ports: Vec<Port<C>>,
    /// What all demands are multiples of.
    demand_unit: u128,
    condition: Condition<'a, C>,
    graph: &'g mut LogicalGraph<'topology, C>,
    /// Pairs of which no more can be split off.
    spent: BTreeSet<(usize, usize)>,
    /// Of the first proposal.
    spread: Spread,
    stop: &'a dyn Stop,
}

impl<C: FlowUnit> Removal<'_, '_, '_, C> {
    fn run(mut self) -> Result<(), SynthesisError> {
        loop {
            let shares = self.propose()?;
            if shares.is_empty() {
                break;
            }
            self.split_off(&shares)?;
        }
        if self.ports.iter().any(|port| port.entering > C::ZERO || port.leaving > C::ZERO) {
            let what = format!("switch {} keeps capacity that no split can use", self.switch);
            return Err(SynthesisError::Broken { what });
        }
        Ok(())
    }

    /// All of what is left, over pairs not yet spent: other groups first, then the own group, then back to the sender.
    fn propose(&self) -> Result<Vec<Share<C>>, SynthesisError> {
        if self.spent.is_empty() {
            let largest_group = self.ports.chunk_by(|a, b| a.group == b.group).map(<[_]>::len).max().unwrap_or(0);
            let groups = self.ports.chunk_by(|a, b| a.group == b.group).count();
            self.require_room(groups.max(largest_group))?;
            return self.shares_in_units();
        }
        self.require_room(self.ports.len())?;
        let sides: Vec<(C, C)> = self.ports.iter().map(|port| (port.entering, port.leaving)).collect();
        let class = |from: usize, to: usize| {
            let class = if from == to { 2 } else { u8::from(self.ports[from].group == self.ports[to].group) };
            (!self.spent.contains(&(from, to))).then_some(class)
        };
        even_shares(&sides, class, self.stop)
    }

    /// The first proposal, in multiples of the trees that each root has, where all ports are: then trees of one root,
    /// which come in that number, are not divided more than they must be.
    fn shares_in_units(&self) -> Result<Vec<Share<C>>, SynthesisError> {
        let amounts = self.ports.iter().flat_map(|port| [port.entering, port.leaving]).map(C::to_u128);
        let unit = amounts.fold(self.demand_unit, |unit, amount| unit.gcd(&amount)).max(1);
        let convert = |amount: u128| C::try_from_u128(amount).expect("a part of a port or of what it was made from");
        let part = |amount: C| convert(amount.to_u128() / unit);
        let ports = self.ports.iter();
        let ports: Vec<Port<C>> =
            ports.map(|port| Port { entering: part(port.entering), leaving: part(port.leaving), ..*port }).collect();
        let mut shares = self.shares_for_stars(&ports, unit)?;
        let mut left = ports;
        for share in &shares {
            left[share.from].entering -= share.amount;
            left[share.to].leaving -= share.amount;
        }
        shares.extend(grouped_shares(&left, self.spread, self.stop)?);
        shares.iter_mut().for_each(|share| share.amount = convert(share.amount.to_u128() * unit));
        Ok(shares)
    }

    /// Shares by which no edge becomes wider than the trees that start at its tail: where several switches join the same
    /// ranks, what comes through all of them together then makes a star for each. None for ports that have something
    /// better to talk to each other, or that no trees start at.
    fn shares_for_stars(&self, ports: &[Port<C>], unit: u128) -> Result<Vec<Share<C>>, SynthesisError> {
        let are_apart = ports.windows(2).all(|pair| pair[0].group != pair[1].group);
        let starts_trees = |node: u32| node < self.network.terminal_count && Some(node) != self.network.outside;
        if !are_apart || !ports.iter().all(|port| starts_trees(port.node)) {
            return Ok(Vec::new());
        }
        let most = |from: usize, to: usize| {
            let (from, to) = (ports[from].node, ports[to].node);
            let entering = self.network.outside.map(|outside| self.condition.capacity_between(outside, from));
            let trees = self.condition.demand(from) + entering.unwrap_or(C::ZERO);
            let edge = self.condition.capacity_between(from, to);
            let missing = if trees > edge { trees - edge } else { C::ZERO };
            C::try_from_u128(missing.to_u128() / unit).expect("a part of a demand")
        };
        let sides: Vec<(C, C)> = ports.iter().map(|port| (port.entering, port.leaving)).collect();
        even_shares_up_to(&sides, most, self.stop)
    }

    /// Refuses to pair so many neighbours, all with all, before memory is spent on the pairs.
    fn require_room(&self, neighbours: usize) -> Result<(), SynthesisError> {
        if neighbours > NEIGHBOURS_MAX {
            let node = self.network.switch_name(self.switch).to_owned();
            return Err(SynthesisError::TooManyNeighbours { node, neighbours, limit: NEIGHBOURS_MAX });
        }
        Ok(())
    }

    /// Does each split as far as the condition allows.
    fn split_off(&mut self, shares: &[Share<C>]) -> Result<(), SynthesisError> {
        let mut splits: Vec<Split<C>> = Vec::with_capacity(shares.len());
        for (share, place) in shares.iter().zip(0_u32..) {
            if place.is_multiple_of(ASK_INTERVAL) {
                ask(self.stop)?;
            }
            splits.push(self.split_of(share));
        }
        let mut done = 0;
        while done < splits.len() {
            let (whole, part) = self.condition.apply_longest_prefix(&splits[done..])?;
            for (share, place) in shares[done..done + whole].iter().zip(0_u32..) {
                if place.is_multiple_of(ASK_INTERVAL) {
                    ask(self.stop)?;
                }
                self.record(share, share.amount);
            }
            done += whole;
            if let Some(share) = shares.get(done) {
                self.record(share, part);
                self.spent.insert((share.from, share.to));
                done += 1;
            }
        }
        Ok(())
    }

    fn split_of(&mut self, share: &Share<C>) -> Split<C> {
        let (from, to) = (self.ports[share.from].node, self.ports[share.to].node);
        Split {
            inward: self.condition.edge_or_new(from, self.switch),
            outward: self.condition.edge_or_new(self.switch, to),
            across: (from != to).then(|| self.condition.edge_or_new(from, to)),
            amount: share.amount,
        }
    }

    fn record(&mut self, share: &Share<C>, amount: C) {
        if amount > C::ZERO {
            self.ports[share.from].entering -= amount;
            self.ports[share.to].leaving -= amount;
            self.graph.split(self.ports[share.from].node, self.switch, self.ports[share.to].node, amount);
        }
    }
}

/// `u → w → t` replaced by `u → t`.
struct Split<C> {
    inward: EdgeIndex,
    outward: EdgeIndex,
    /// `None` where t is u: the capacity is given up.
    across: Option<EdgeIndex>,
    amount: C,
}

impl<C: FlowUnit> Step<C> for Split<C> {
    fn amount(&self) -> C {
        self.amount
    }

    fn apply(&self, condition: &mut Condition<'_, C>, amount: C) {
        condition.lower(self.inward, amount);
        condition.lower(self.outward, amount);
        if let Some(across) = self.across {
            condition.raise(across, amount);
        }
    }

    fn undo(&self, condition: &mut Condition<'_, C>, amount: C) {
        condition.raise(self.inward, amount);
        condition.raise(self.outward, amount);
        if let Some(across) = self.across {
            condition.lower(across, amount);
        }
    }

    /// A set loses one unit when both of the old edges or one of them enter it and the new one does not make up for it:
    /// that is, when it holds the switch and neither end, or both ends and not the switch.
    fn cost(&self, condition: &Condition<'_, C>, set: &[bool]) -> u64 {
        let enters = |edge: EdgeIndex| {
            let (from, to) = condition.ends(edge);
            !set[from as usize] && set[to as usize]
        };
        let lost = u64::from(enters(self.inward)) + u64::from(enters(self.outward));
        lost - u64::from(self.across.is_some_and(enters))
    }
}

/// Which nodes have something better than the switch at hand to talk to each other.
struct Groups {
    /// By rank: its box, as the topology states it.
    of_rank: Vec<Option<u32>>,
    node_count: u32,
    /// For ranks without a box: those that shared an earlier switch, as a forest of parents.
    parents: Vec<u32>,
}

impl Groups {
    fn new(network: &Network<'_>) -> Self {
        let node_count = network.node_count;
        Self { of_rank: network.boxes.clone(), node_count, parents: (0..node_count).collect() }
    }

    /// Ports of a switch, sorted by group. Where the hints put all into one group, each is a group of its own.
    fn ports<C: FlowUnit>(&mut self, entering: &[(u32, C)], leaving: &[(u32, C)], rank_count: u32) -> Vec<Port<C>> {
        let mut sides: BTreeMap<u32, (C, C)> = BTreeMap::new();
        for &(node, capacity) in entering {
            sides.entry(node).or_insert((C::ZERO, C::ZERO)).0 += capacity;
        }
        for &(node, capacity) in leaving {
            sides.entry(node).or_insert((C::ZERO, C::ZERO)).1 += capacity;
        }
        let nodes: Vec<u32> = sides.keys().copied().collect();
        let mut groups: Vec<u32> = nodes.iter().map(|&node| self.group(node, rank_count)).collect();
        if groups.iter().all(|&group| group == groups[0]) {
            groups.clone_from(&nodes);
        }
        self.unite(nodes.iter().copied().filter(|&node| node < rank_count));
        let port = |((node, (entering, leaving)), group)| Port { node, group, entering, leaving };
        let mut ports: Vec<Port<C>> = sides.into_iter().zip(groups).map(port).collect();
        ports.sort_by_key(|port| port.group);
        ports
    }

    /// Numbers below the node count for ranks by what they shared, one number for all switches, the rest for boxes.
    fn group(&self, node: u32, rank_count: u32) -> u32 {
        if node >= rank_count {
            return self.node_count;
        }
        self.of_rank[node as usize].map_or_else(|| self.oldest(node), |number| self.node_count + 1 + number)
    }

    fn oldest(&self, mut node: u32) -> u32 {
        while self.parents[node as usize] != node {
            node = self.parents[node as usize];
        }
        node
    }

    fn unite(&mut self, ranks: impl Iterator<Item = u32>) {
        let mut first = None;
        for rank in ranks {
            let oldest = self.oldest(rank);
            let first = *first.get_or_insert(oldest);
            let first = self.oldest(first);
            self.parents[oldest.max(first) as usize] = oldest.min(first);
        }
    }
}
