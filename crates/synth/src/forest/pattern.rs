//! Who should talk to whom through a switch: the splits that are tried first.
//!
//! Any order of splits is exact in the end; this one decides how deep the trees become and how many edges there are
//! to pack. Traffic between groups (boxes) goes first, in equal shares per pair of groups, so that what stays inside a
//! box is left to the switch inside. Within a pair of groups, members at the same position are paired, so that a
//! group of eight makes eight edges and not 64.
//!
//! Nothing here is trusted: every split is tested before it is done.

use canopy_optimize::{ArcId, FlowNetwork, FlowUnit, Stop};

use crate::error::SynthesisError;
use crate::forest::{ASK_INTERVAL, ask};

/// Groups that each group sends to first, of a [`Spread::Few`].
pub(super) const FEW: usize = 2 * POWERS as usize;
const POWERS: u32 = 3;

/// How many groups a group sends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// All others: trees are as flat as can be, but edges are many and thin.
    All,
    /// [`FEW`] of the others, as far as that goes: edges are thick, and trees some hops deeper.
    Few,
}

/// A neighbour of the switch with what it sends to the switch and receives from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port<C> {
    pub(super) node: u32,
    /// Neighbours of one group have something better than this switch to talk to each other.
    pub(super) group: u32,
    pub(super) entering: C,
    pub(super) leaving: C,
}

/// An amount to be led from one port, by its position, to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share<C> {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) amount: C,
}

/// Shares between groups, and for what can not leave its group, within it. Ports are sorted by group.
///
/// * **Out.** Shares that use up all of every port, those between groups first.
/// * **Cost.** A flow on groups², some fifteen times.
pub(super) fn grouped_shares<C: FlowUnit>(
    ports: &[Port<C>],
    spread: Spread,
    stop: &dyn Stop,
) -> Result<Vec<Share<C>>, SynthesisError> {
    if let Some(shares) = uniform_shares(ports, spread) {
        return Ok(shares);
    }
    let mut left: Vec<(C, C)> = ports.iter().map(|port| (port.entering, port.leaving)).collect();
    let groups: Vec<Vec<usize>> = (0..ports.len())
        .collect::<Vec<_>>()
        .chunk_by(|&a, &b| ports[a].group == ports[b].group)
        .map(<[usize]>::to_vec)
        .collect();
    let sums: Vec<(C, C)> = groups.iter().map(|members| sum_of(members, &left)).collect();
    let steps = steps(sums.len(), spread);
    let class = |from: usize, to: usize| match from == to {
        true => 2,
        false => u8::from(steps.binary_search(&((to + sums.len() - from) % sums.len())).is_err()),
    };
    let between = even_shares(&sums, |from, to| Some(class(from, to)), stop)?;
    let mut shares = Vec::new();
    for share in between.iter().filter(|share| share.from != share.to) {
        pair_members(&groups[share.from], &groups[share.to], share.amount, &mut left, &mut shares);
    }
    for members in &groups {
        let rest: Vec<(C, C)> = members.iter().map(|&port| left[port]).collect();
        let within = even_shares(&rest, |from, to| Some(u8::from(from == to)), stop)?;
        shares.extend(within.iter().map(|share| Share { from: members[share.from], to: members[share.to], ..*share }));
    }
    Ok(shares)
}

/// What [`grouped_shares`] comes to if all ports are alike and all groups of one size: each port to its counterparts in
/// the other groups, and what does not divide to those in the groups that follow. So the shares are as symmetric as the
/// ports are. `None` for other ports.
fn uniform_shares<C: FlowUnit>(ports: &[Port<C>], spread: Spread) -> Option<Vec<Share<C>>> {
    let first = ports.first()?;
    let groups: Vec<usize> = ports.chunk_by(|a, b| a.group == b.group).map(<[_]>::len).collect();
    let (count, size) = (groups.len(), *groups.first()?);
    let are_alike = ports.iter().all(|port| port.entering == first.entering && port.leaving == first.entering);
    if count < 2 || !are_alike || groups.iter().any(|&other| other != size) {
        return None;
    }
    let steps = steps(count, spread);
    let others = steps.len() as u128;
    let (whole, rest) = (first.entering.to_u128() / others, first.entering.to_u128() % others);
    let mut shares = Vec::new();
    for (place, step) in (0_u128..).zip(steps) {
        let amount = C::try_from_u128(whole + u128::from(place < rest)).expect("a part of a port");
        for from in (0..ports.len()).filter(|_| amount > C::ZERO) {
            shares.push(Share { from, to: (from + step * size) % ports.len(), amount });
        }
    }
    Some(shares)
}

/// How far from a group those are that it sends to first, in a circle of so many groups: all, or powers of a base on either
/// side, by which every group is reached in few hops.
fn steps(count: usize, spread: Spread) -> Vec<usize> {
    if spread == Spread::All || count <= FEW + 1 {
        return (1..count).collect();
    }
    let base = (2..count).find(|base| base.saturating_pow(POWERS) >= count).unwrap_or(count);
    let mut steps = Vec::with_capacity(FEW);
    for power in (0..POWERS).map(|exponent| base.saturating_pow(exponent).min(count - 1)) {
        for mut step in [power, count - power] {
            while steps.contains(&step) {
                step = step % (count - 1) + 1;
            }
            steps.push(step);
        }
    }
    steps.sort_unstable();
    steps
}

/// Shares as equal as capacities allow, of pairs of the first class, then what is left in the second class, and so on.
///
/// A share of the first class is bounded by `⌈λ·in·out⌉`, with the least λ for which these pairs carry as much as they
/// can. Bounding instead of rounding a matrix of fractions keeps to integers and leaves some pairs without any share.
///
/// * **In.** `ports`: what each sends and receives; `class`: of a pair, `None` where nothing may go.
/// * **Out.** Shares by (class, from, to).
pub(super) fn even_shares<C: FlowUnit>(
    ports: &[(C, C)],
    class: impl Fn(usize, usize) -> Option<u8>,
    stop: &dyn Stop,
) -> Result<Vec<Share<C>>, SynthesisError> {
    evenly(ports, pairs_of(ports, class, stop)?, stop)
}

/// [`even_shares`] between different ports, none more than `most` says of its pair: so they may leave something.
pub(super) fn even_shares_up_to<C: FlowUnit>(
    ports: &[(C, C)],
    most: impl Fn(usize, usize) -> C,
    stop: &dyn Stop,
) -> Result<Vec<Share<C>>, SynthesisError> {
    let mut pairs = pairs_of(ports, |from, to| (from != to).then_some(0), stop)?;
    for (pair, place) in pairs.iter_mut().zip(0_u32..) {
        if place.is_multiple_of(ASK_INTERVAL) {
            ask(stop)?;
        }
        pair.bound = pair.bound.min(most(pair.from, pair.to));
    }
    pairs.retain(|pair| pair.bound > C::ZERO);
    evenly(ports, pairs, stop)
}

fn pairs_of<C: FlowUnit>(
    ports: &[(C, C)],
    class: impl Fn(usize, usize) -> Option<u8>,
    stop: &dyn Stop,
) -> Result<Vec<Pair<C>>, SynthesisError> {
    let mut pairs = Vec::new();
    for from in (0..ports.len()).filter(|&from| ports[from].0 > C::ZERO) {
        ask(stop)?;
        for to in (0..ports.len()).filter(|&to| ports[to].1 > C::ZERO) {
            pairs.extend(class(from, to).map(|class| Pair { from, to, class, bound: ports[from].0.min(ports[to].1) }));
        }
    }
    Ok(pairs)
}

fn evenly<C: FlowUnit>(
    ports: &[(C, C)],
    mut pairs: Vec<Pair<C>>,
    stop: &dyn Stop,
) -> Result<Vec<Share<C>>, SynthesisError> {
    pairs.sort_by_key(|pair| pair.class);
    let mut transport = Transport::new(ports, &pairs, stop)?;
    let first = pairs.partition_point(|pair| pair.class == 0);
    let evenness = Evenness::new(ports);
    let reachable = transport.carried(&pairs[..first], None, &evenness, stop)?;
    let (mut low, mut high) = (Evenness::START, Evenness::START);
    while evenness.limits(&pairs[..first], high)
        && transport.carried(&pairs[..first], Some(high), &evenness, stop)? < reachable
    {
        (low, high) = (high + 1, high * 2);
    }
    while low < high {
        let middle = low.midpoint(high);
        if transport.carried(&pairs[..first], Some(middle), &evenness, stop)? < reachable {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    transport.level(&pairs[..first], high, &evenness, stop)?;
    transport.extend(&pairs, first, stop)?;
    Ok(transport.shares(&pairs))
}

struct Pair<C> {
    from: usize,
    to: usize,
    class: u8,
    /// No more than this can go.
    bound: C,
}

/// The bound `⌈in·out·λ/Σ⌉` of a pair, with `λ` in units of 1/[`START`](Self::START) and all numbers cut to 40 bits.
struct Evenness {
    shift: u32,
    sum: u128,
    ports: Vec<(u128, u128)>,
}

impl Evenness {
    /// λ = 1: the even share if a port could also send to itself.
    const START: u64 = 64;

    fn new<C: FlowUnit>(ports: &[(C, C)]) -> Self {
        let ports = || ports.iter().map(|&(entering, leaving)| (entering.to_u128(), leaving.to_u128()));
        let largest = ports().map(|(entering, leaving)| entering.max(leaving)).max().unwrap_or_default();
        let shift = (u128::BITS - largest.leading_zeros()).saturating_sub(40);
        let cut = |value: u128| if shift == 0 { value } else { (value >> shift) + 1 };
        Self {
            shift,
            sum: ports().map(|(entering, _)| cut(entering)).sum::<u128>().max(1),
            ports: ports().map(|(entering, leaving)| (cut(entering), cut(leaving))).collect(),
        }
    }

    fn bound<C: FlowUnit>(&self, pair: &Pair<C>, lambda: u64) -> C {
        let product = self.ports[pair.from].0 * self.ports[pair.to].1;
        let share = product.saturating_mul(u128::from(lambda)).div_ceil(self.sum * u128::from(Self::START));
        C::try_from_u128(share.saturating_mul(1 << self.shift)).map_or(pair.bound, |share| share.min(pair.bound))
    }

    /// Whether this λ still bounds anything.
    fn limits<C: FlowUnit>(&self, pairs: &[Pair<C>], lambda: u64) -> bool {
        pairs.iter().any(|pair| self.bound(pair, lambda) < pair.bound)
    }
}

/// A flow from the sending to the receiving sides of the ports.
struct Transport<C> {
    network: FlowNetwork<C>,
    arcs: Vec<ArcId>,
    sink: u32,
    total: C,
}

impl<C: FlowUnit> Transport<C> {
    fn new(ports: &[(C, C)], pairs: &[Pair<C>], stop: &dyn Stop) -> Result<Self, SynthesisError> {
        let count = u32::try_from(ports.len()).expect("ports are nodes");
        let sink = 2 * count;
        let mut network = FlowNetwork::new(sink + 1);
        let node = |port: usize| u32::try_from(port).expect("ports are nodes");
        let mut arcs = Vec::with_capacity(pairs.len());
        for (pair, place) in pairs.iter().zip(0_u32..) {
            if place.is_multiple_of(ASK_INTERVAL) {
                ask(stop)?;
            }
            arcs.push(network.add_arc(node(pair.from), count + node(pair.to), C::ZERO));
        }
        for (port, &(_, leaving)) in (count..).zip(ports) {
            network.add_arc(port, sink, leaving);
        }
        let mut total = C::ZERO;
        for (port, &(entering, _)) in (0_u32..).zip(ports) {
            network.set_supply(port, entering);
            total += entering;
        }
        Ok(Self { network, arcs, sink, total })
    }

    /// What these pairs, the first ones, can carry under the bounds of λ, from scratch.
    fn carried(
        &mut self,
        pairs: &[Pair<C>],
        lambda: Option<u64>,
        evenness: &Evenness,
        stop: &dyn Stop,
    ) -> Result<C, SynthesisError> {
        for (pair, &arc) in pairs.iter().zip(&self.arcs) {
            self.network.set_capacity(arc, lambda.map_or(pair.bound, |lambda| evenness.bound(pair, lambda)));
        }
        Ok(self.network.pull(self.sink, self.total, stop)?)
    }

    /// Carries what λ allows, all but the last unit of each pair first: where 36 go to seven others, bounds of 6 would
    /// leave one of them with nothing.
    fn level(
        &mut self,
        pairs: &[Pair<C>],
        lambda: u64,
        evenness: &Evenness,
        stop: &dyn Stop,
    ) -> Result<(), SynthesisError> {
        let one = C::try_from_u128(1).expect("one fits every integer");
        for (pair, &arc) in pairs.iter().zip(&self.arcs) {
            self.network.set_capacity(arc, evenness.bound(pair, lambda) - one);
        }
        self.network.pull(self.sink, self.total, stop)?;
        self.network.commit();
        for (pair, &arc) in pairs.iter().zip(&self.arcs) {
            let carried = self.network.reverse_capacity(arc);
            self.network.set_capacity(arc, evenness.bound(pair, lambda) - carried);
        }
        self.network.pull(self.sink, self.total, stop)?;
        Ok(())
    }

    /// Lets the classes after the first carry what is left, one after the other, rerouting where that helps.
    fn extend(&mut self, pairs: &[Pair<C>], first: usize, stop: &dyn Stop) -> Result<(), SynthesisError> {
        let mut start = first;
        for class in pairs[first..].chunk_by(|a, b| a.class == b.class) {
            self.network.commit();
            for (pair, &arc) in class.iter().zip(&self.arcs[start..]) {
                self.network.set_capacity(arc, pair.bound);
            }
            self.network.pull(self.sink, self.total, stop)?;
            start += class.len();
        }
        self.network.commit();
        Ok(())
    }

    /// The flow, after everything was committed: what was committed along an arc is its reverse capacity.
    fn shares(&self, pairs: &[Pair<C>]) -> Vec<Share<C>> {
        let share = |(pair, &arc): (&Pair<C>, _)| Share {
            from: pair.from,
            to: pair.to,
            amount: self.network.reverse_capacity(arc),
        };
        pairs.iter().zip(&self.arcs).map(share).filter(|share| share.amount > C::ZERO).collect()
    }
}

fn sum_of<C: FlowUnit>(members: &[usize], left: &[(C, C)]) -> (C, C) {
    members.iter().fold((C::ZERO, C::ZERO), |(a, b), &port| (a + left[port].0, b + left[port].1))
}

/// Distributes what goes from one group to another over its members: each sends and receives in proportion to what it
/// has left, to and from the member at its own position as far as possible.
fn pair_members<C: FlowUnit>(from: &[usize], to: &[usize], amount: C, left: &mut [(C, C)], shares: &mut Vec<Share<C>>) {
    let mut sends = quotas(&from.iter().map(|&port| left[port].0).collect::<Vec<_>>(), amount);
    let mut receives = quotas(&to.iter().map(|&port| left[port].1).collect::<Vec<_>>(), amount);
    let mut pair = |a: usize, b: usize, sends: &mut [C], receives: &mut [C]| {
        let amount = sends[a].min(receives[b]);
        if amount > C::ZERO {
            sends[a] -= amount;
            receives[b] -= amount;
            left[from[a]].0 -= amount;
            left[to[b]].1 -= amount;
            shares.push(Share { from: from[a], to: to[b], amount });
        }
    };
    // First those at the same position, then every sender with every receiver that has something left: O(from · to).
    for position in 0..from.len().min(to.len()) {
        pair(position, position, &mut sends, &mut receives);
    }
    for a in 0..from.len() {
        for b in 0..to.len() {
            pair(a, b, &mut sends, &mut receives);
        }
    }
}

/// Parts of `amount` in proportion to `capacities`, none above its capacity; units that do not divide go to those with
/// most left. `amount` is at most the sum.
pub(super) fn quotas<C: FlowUnit>(capacities: &[C], amount: C) -> Vec<C> {
    let sum = capacities.iter().fold(0_u128, |sum, capacity| sum + capacity.to_u128());
    // Cut so that products fit; quotas need not be exact, only add up.
    let shift = (u128::BITS - sum.leading_zeros()).saturating_sub(60);
    let wanted = amount.to_u128() >> shift;
    let part = |capacity: C| {
        let exact = ((capacity.to_u128() >> shift) * wanted).checked_div((sum >> shift) + u128::from(shift > 0));
        C::try_from_u128(exact.unwrap_or_default() << shift).map_or(C::ZERO, |part| part.min(capacity))
    };
    let mut quotas: Vec<C> = capacities.iter().map(|&capacity| part(capacity)).collect();
    let mut missing = quotas.iter().fold(amount, |missing, &quota| missing - quota);
    let one = C::try_from_u128(1).expect("one fits every integer");
    let mut by_rest: Vec<usize> = (0..quotas.len()).collect();
    by_rest.sort_by_key(|&member| std::cmp::Reverse(capacities[member] - quotas[member]));
    // One unit each first, for evenness; then whatever is still missing, all at once.
    for most in [one, C::MAX] {
        for &member in &by_rest {
            let more = most.min(missing).min(capacities[member] - quotas[member]);
            quotas[member] += more;
            missing -= more;
        }
    }
    quotas
}
