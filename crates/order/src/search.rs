//! Orders where parts say nothing: all of a few machines, else from neighbour to neighbour, then better ones nearby.

use crate::Stopped;
use crate::fabric::Fabric;
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

/// From the first machine always to the nearest that is left, the first of equals. O(machines · links).
pub(crate) fn nearest(fabric: &Fabric) -> Vec<usize> {
    let count = fabric.machines().len();
    let mut left: Vec<usize> = (1..count).collect();
    let mut order = vec![0; count.min(1)];
    while let Some(&last) = order.last()
        && !left.is_empty()
    {
        // What is as far there as back.
        let distances = fabric.distances_to(last);
        let next = (0..left.len()).min_by_key(|&at| distances[left[at]].unwrap_or(u32::MAX)).unwrap_or(0);
        order.push(left.remove(next));
    }
    order
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
    // A walk through all triples of places that repeats itself late.
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % bound.max(1) as u64).unwrap_or(0)
    };
    while count > 3 && failures < FAILURES_PER_MACHINE * count {
        // The first machine stays.
        let mut places = [1 + below(count), 1 + below(count), 1 + below(count)];
        places.sort_unstable();
        let [first, middle, end] = places;
        if first == middle || middle == end || end > count {
            failures += 1;
            continue;
        }
        let mut other = order.clone();
        other[first..end].rotate_left(middle - first);
        let found = loads.cost(&other, stop)?;
        if found < cost {
            (order, cost, failures) = (other, found, 0);
        } else {
            failures += 1;
        }
    }
    Ok((cost, order))
}
