//! Orders where parts say nothing: all of a few machines, else from neighbour to neighbour, then better ones nearby.

use crate::Stopped;
use crate::chance::Chance;
use crate::fabric::{WHOLE, ratio};
use crate::load::{Cost, Loads};

/// Trials without a better order, by machine, after which the search ends.
const FAILURES_PER_MACHINE: usize = 60;

/// The best of all orders that begin with the first machine, if it is better than this.
pub(crate) fn all(
    loads: &mut Loads<'_>,
    than: Cost,
    stop: &dyn Fn() -> bool,
) -> Result<(Cost, Option<Vec<usize>>), Stopped> {
    let count = loads.fabric.machines().len();
    let mut rest: Vec<usize> = (1..count).collect();
    let mut best = (than, None);
    // Heap's algorithm.
    let mut state = vec![0; rest.len()];
    let mut place = 0;
    loop {
        let order: Vec<usize> = std::iter::once(0).chain(rest.iter().copied()).collect();
        let cost = loads.cost(&order, stop)?;
        if cost < best.0 {
            best = (cost, Some(order));
        }
        while place < rest.len() && state[place] >= place {
            state[place] = 0;
            place += 1;
        }
        if place >= rest.len() {
            return Ok(best);
        }
        let other = if place.is_multiple_of(2) { 0 } else { state[place] };
        rest.swap(other, place);
        state[place] += 1;
        place = 0;
    }
}

/// What decides between machines that are as near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// The least name by number: people name machines by where they stand.
    Name,
    /// The fewest such neighbours left: what is not visited now would be far from all later (after Warnsdorff, for a
    /// knight's tour).
    Neighbours,
}

/// From a machine always to the nearest that is left, begun at the first machine; `names` are all in order of their names.
/// O(machines · links).
pub(crate) fn nearest(loads: &mut Loads<'_>, names: &[usize], start: usize, tie: Tie) -> Vec<usize> {
    let count = loads.fabric.machines().len();
    let near = near(loads, count);
    let mut place = vec![0; count];
    names.iter().enumerate().for_each(|(at, &machine)| place[machine] = at);
    let mut is_left = vec![true; count];
    let mut order = Vec::with_capacity(count);
    let mut next = (count > 0).then_some(start);
    while let Some(last) = next {
        is_left[last] = false;
        order.push(last);
        // What is as far there as back.
        let distances = loads.distances_to(last);
        let left = (0..count).filter(|&machine| is_left[machine]);
        let ways = |machine: usize| match tie {
            Tie::Name => 0,
            Tie::Neighbours => near[machine].iter().filter(|&&other| is_left[other]).count(),
        };
        next = left.min_by_key(|&machine| (distances[machine], ways(machine), place[machine]));
    }
    let first = order.iter().position(|&machine| machine == 0).unwrap_or(0);
    order.rotate_left(first);
    order
}

impl Chance {
    /// Two short ones.
    fn short_stretches(&mut self, count: usize) -> Option<[usize; 3]> {
        let first = 1 + self.place(count);
        let middle = first + 1 + self.place(KICKED);
        let end = middle + 1 + self.place(KICKED);
        (end <= count).then_some([first, middle, end])
    }

    /// A change after which some machine is followed by one that is near it: ends of two neighbouring stretches, and how
    /// they change.
    fn joining(&mut self, ring: &Ring, near: &[Vec<usize>]) -> Option<([usize; 3], usize)> {
        let count = ring.order.len();
        let place = self.place(count);
        let of_machine = &near[ring.order[place]];
        let other = *of_machine.get(self.place(of_machine.len()))?;
        let at = ring.order.iter().position(|&machine| machine == other)?;
        let length = 1 + if self.place(4) == 0 { self.place(count) } else { self.place(SHORT) };
        let (places, how) = match self.place(2) {
            0 if at > place => ([place + 1, at + 1, at + 1], 3),
            _ if at > place => ([place + 1, at, at + length], 0),
            how => ([at, at + length, place + 1], how),
        };
        let [first, middle, end] = places;
        // The first machine stays.
        (0 < first && first < middle && middle <= end && end <= count && first < end).then_some((places, how))
    }

    /// Ends of two neighbouring stretches of an order, without its first place.
    fn stretches(&mut self, count: usize) -> Option<[usize; 3]> {
        let mut places = [1 + self.place(count), 1 + self.place(count), 1 + self.place(count)];
        places.sort_unstable();
        let [first, middle, end] = places;
        (first < middle && middle < end && end <= count).then_some(places)
    }
}

/// A better order, or this one: two neighbouring stretches swap places, as long as that helps. None is turned round, as links
/// may differ by direction.
pub(crate) fn improved(
    loads: &mut Loads<'_>,
    mut order: Vec<usize>,
    stop: &dyn Fn() -> bool,
) -> Result<(Cost, Vec<usize>), Stopped> {
    let count = order.len();
    let mut cost = loads.cost(&order, stop)?;
    let mut failures = 0;
    let mut walk = Chance(Chance::SEED);
    while count > 3 && failures < FAILURES_PER_MACHINE * count {
        failures += 1;
        let Some([first, middle, end]) = walk.stretches(count) else { continue };
        let mut other = order.clone();
        other[first..end].rotate_left(middle - first);
        let found = loads.cost(&other, stop)?;
        if found < cost {
            (order, cost, failures) = (other, found, 0);
        }
    }
    Ok((cost, order))
}

/// Links that all changes of a search look at together, at most.
const LOOKS_MAX: usize = 1 << 26;

/// Machines up to which long stretches are turned round.
const TURNED_MAX: usize = 200;

/// Machines of a stretch that is moved by chance, at most.
const KICKED: usize = 6;

/// Machines of a stretch that is turned round in any case.
const SHORT: usize = 4;

/// Trials by machine, and those without a better order after which a search starts again from a changed one.
const TRIALS_PER_MACHINE: usize = 2_000;
const TRIALS_MAX: usize = 1 << 17;
const IDLE_PER_MACHINE: usize = 20;

/// The same for one ring through all machines, by what each change changes; stretches may be turned round, too. What gets no
/// better is changed by chance, and goes on from there.
///
/// Compared by the load of the busiest link to nine digits, then by hops. For each change O(machines), and O(links) while the
/// busiest link carries more than the least.
pub(crate) fn ring_improved(
    loads: &mut Loads<'_>,
    order: Vec<usize>,
    least: u128,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<usize>, Stopped> {
    let count = order.len();
    // In the units of loads here.
    let least = least as f64 / ratio(1, 1) as f64;
    let mut looks_left = LOOKS_MAX / loads.fabric.edges.len().max(1);
    let (near, hops) = (near(loads, count), Hops::new(loads));
    let mut ring = Ring::new(loads, order, least);
    let mut best = (ring.value, ring.order.clone());
    let (mut idle, mut walk) = (0, Chance(Chance::SEED));
    for _ in 0..(TRIALS_PER_MACHINE * count).min(TRIALS_MAX) {
        if stop() {
            return Err(Stopped);
        }
        if looks_left == 0 || (ring.is_least() && ring.value.hops <= hops.least) {
            break;
        }
        let is_kick = idle > IDLE_PER_MACHINE * count;
        let tried =
            if is_kick { walk.short_stretches(count).map(|places| (places, 0)) } else { walk.joining(&ring, &near) };
        let Some((places, how)) = tried else {
            idle += 1;
            continue;
        };
        looks_left = looks_left.saturating_sub(usize::from(!ring.is_least()));
        let is_better = ring.change(loads, &hops, (places, how), is_kick);
        idle = if is_better || is_kick { 0 } else { idle + 1 };
        if ring.value.is_less(&best.0) {
            best = (ring.value, ring.order.clone());
        } else if is_kick && best.1 != ring.order {
            // From the best one again, but for this change.
            let kicked = changed(&best.1, places, 0).1;
            let mut order = best.1.clone();
            order[places[0]..places[2]].copy_from_slice(&kicked[1..kicked.len() - 1]);
            ring = Ring::new(loads, order, least);
        }
    }
    Ok(best.1)
}

/// Neighbours of a machine that a search tries to join to it, at least and at most.
const NEAR_MIN: usize = 4;
const NEAR: usize = 16;

/// By machine, the nearest others; all that are as near as any, if there are not too many.
fn near(loads: &mut Loads<'_>, count: usize) -> Vec<Vec<usize>> {
    let of = |machine: usize| {
        let distances = loads.distances_to(machine);
        let mut others: Vec<usize> = (0..count).filter(|&other| other != machine).collect();
        others.sort_by_key(|&other| (distances[other], other));
        let is_near = |&other: &usize| distances[other] == distances[others[0]];
        let nearest = others.iter().filter(|&&other| !others.is_empty() && is_near(&other)).count();
        others.truncate(nearest.clamp(NEAR_MIN, NEAR));
        others
    };
    (0..count).map(of).collect()
}

/// How far it is from machine to machine.
struct Hops {
    count: usize,
    table: Vec<u16>,
    /// Of every ring at least.
    least: i128,
}

impl Hops {
    fn new(loads: &mut Loads<'_>) -> Self {
        let count = loads.fabric.machines().len();
        let table = (0..count).flat_map(|to| {
            let distances = loads.distances_to(to);
            (0..count).map(move |from| distances[from])
        });
        let mut hops = Self { count, table: table.collect(), least: 0 };
        let nearest = |to: usize| (0..count).filter(|&from| from != to).map(|from| hops.of(&[from, to])).min();
        hops.least = (0..count).filter_map(nearest).sum();
        hops
    }

    /// Links that flows from each machine to the next pass.
    fn of(&self, way: &[usize]) -> i128 {
        let hops: u64 = way.windows(2).map(|pair| u64::from(self.table[pair[1] * self.count + pair[0]])).sum();
        i128::from(hops) * i128::from(WHOLE)
    }
}

/// What a ring loads.
#[derive(Clone, Copy)]
struct Value {
    busiest: f64,
    hops: i128,
}

impl Value {
    /// Less, to nine digits.
    fn is_less(&self, other: &Self) -> bool {
        let margin = other.busiest * 1e-9;
        self.busiest < other.busiest - margin || (self.busiest <= other.busiest + margin && self.hops < other.hops)
    }
}

/// A ring that is changed.
struct Ring {
    order: Vec<usize>,
    /// By link, parts of flows on it, and what one loads it with.
    used: Vec<i64>,
    rates: Vec<f64>,
    /// What the busiest link carries at least.
    least: f64,
    value: Value,
}

impl Ring {
    fn new(loads: &mut Loads<'_>, order: Vec<usize>, least: f64) -> Self {
        let edges = &loads.fabric.edges;
        let rates: Vec<f64> = edges.iter().map(|edge| 1.0 / edge.capacity.max(1) as f64).collect();
        let used = vec![0; edges.len()];
        let mut ring = Self { order, used, rates, least, value: Value { busiest: 0.0, hops: 0 } };
        let closed: Vec<usize> = ring.order.iter().chain(ring.order.first()).copied().collect();
        ring.add(loads, &closed, 1);
        let hops = ring.used.iter().map(|&used| i128::from(used)).sum();
        ring.value = Value { busiest: ring.busiest(), hops };
        ring
    }

    fn busiest(&self) -> f64 {
        self.used.iter().zip(&self.rates).map(|(&used, rate)| used as f64 * rate).fold(0.0, f64::max)
    }

    /// Whether no link needs to carry less.
    fn is_least(&self) -> bool {
        self.value.busiest <= self.least * (1.0 + 1e-6)
    }

    /// Changes two stretches if that is no worse, or in any case; whether it is better.
    fn change(
        &mut self,
        loads: &mut Loads<'_>,
        known: &Hops,
        (places, how): ([usize; 3], usize),
        in_any_case: bool,
    ) -> bool {
        let (was, is) = changed(&self.order, places, how);
        let hops = self.value.hops + known.of(&is) - known.of(&was);
        if !in_any_case && hops > self.value.hops && self.is_least() {
            return false;
        }
        self.add(loads, &was, -1);
        let busiest = self.add(loads, &is, 1);
        let is_out = busiest > self.value.busiest * (1.0 + 1e-9);
        if in_any_case || !is_out {
            let busiest = if self.is_least() && !is_out { self.value.busiest } else { self.busiest() };
            let found = Value { busiest, hops };
            // What is as good is taken, too: better ones may be near it.
            if in_any_case || !self.value.is_less(&found) {
                let is_better = found.is_less(&self.value);
                self.order[places[0]..places[2]].copy_from_slice(&is[1..is.len() - 1]);
                self.value = found;
                return is_better;
            }
        }
        self.add(loads, &is, -1);
        self.add(loads, &was, 1);
        false
    }

    /// Adds the flows from each machine to the next to what links are used, or takes them away: the load of the busiest of
    /// these links then.
    fn add(&mut self, loads: &mut Loads<'_>, way: &[usize], sign: i64) -> f64 {
        let mut busiest = 0.0;
        for pair in way.windows(2) {
            for &(edge, part) in loads.parts(pair[0], pair[1]).iter() {
                let part = sign * i64::try_from(part).unwrap_or(i64::MAX);
                self.used[edge] += part;
                busiest = f64::max(busiest, self.used[edge] as f64 * self.rates[edge]);
            }
        }
        busiest
    }
}

/// Two neighbouring stretches of an order with what stands before and after them, as they are and as they become: in the
/// other order, or one of them turned round as well if it is short, or the first of them turned round alone.
fn changed(order: &[usize], [first, middle, end]: [usize; 3], how: usize) -> (Vec<usize>, Vec<usize>) {
    let may_turn = |length: usize| length <= SHORT || order.len() <= TURNED_MAX;
    let (mut one, mut other) = (order[first..middle].to_vec(), order[middle..end].to_vec());
    let is_turned = match how {
        1 | 3 if may_turn(one.len()) => {
            one.reverse();
            how == 3
        }
        2 if may_turn(other.len()) => {
            other.reverse();
            false
        }
        _ => false,
    };
    let (before, after) = (order[first - 1], order[end % order.len()]);
    let stretches = if is_turned { [one, other] } else { [other, one] };
    let closed = |inner: Vec<usize>| std::iter::once(before).chain(inner).chain([after]).collect();
    (closed(order[first..end].to_vec()), closed(stretches.concat()))
}
