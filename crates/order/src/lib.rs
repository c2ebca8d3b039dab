//! The order of machines for which rings over a fabric load its links least.
//!
//! Stock NCCL, RCCL and MPI number machines as their ranks come, and each of their rings goes from one machine to the next
//! and back to the first. Nothing in them looks at switches: an order that goes back and forth between racks makes rings
//! share uplinks.
//!
//! On a fabric of levels (racks, pods, halls), the order that takes one part after another crosses each boundary once each
//! way. No order crosses one less often, so that is best on every link at once. It keeps the order that was given as far
//! as that goes. Elsewhere, on tori and dragonflies, orders are searched for, up to nine machines exactly.
//!
//! | module | what it does |
//! |---|---|
//! | `fabric` | machines and switches of a topology, and how a flow between two machines divides |
//! | `levels` | parts within parts |
//! | `load`, `bound` | what an order loads, and every order at least |
//! | `search` | orders where there are no levels |
//!
//! Source: our own; the argument for levels counts crossings of a cut, of which a ring has at least two.

mod bound;
mod fabric;
mod levels;
mod load;
mod search;

use std::cmp::Ordering;

pub use fabric::{Fabric, NoMachines};
pub use load::Cost;

use bound::least;
use levels::{by_levels, has_levels};
use load::Loads;

/// Machines up to which all orders are compared.
pub const EXACT_MAX: usize = 9;

/// Machines up to which orders are searched for where parts say nothing.
const SEARCHED_MAX: usize = 128;

/// An order of machines with what it loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// Positions of machines in the fabric's list.
    pub order: Vec<usize>,
    /// What the order loads.
    pub cost: Cost,
    /// What the list as it stands loads.
    pub given: Cost,
    /// What it loads sorted by name, numbers in names as numbers.
    pub by_name: Cost,
    /// What every order loads at least.
    pub bound: Cost,
    /// Whether no order is better: it reaches the bound on its busiest link, or all were compared.
    pub is_best: bool,
}

/// The best order found, the given one if none is better.
///
/// Rank 0's machine stays the first. Compared by the load of the busiest link, then by hops of all.
///
/// * **Errors.** `stop` returned true; it is asked for every flow.
/// * **Cost.** O(machines · links) for the loads of an order, of which there are a handful; up to nine machines all orders,
///   up to 128 without levels some thousand.
pub fn order(fabric: &Fabric, stop: &dyn Fn() -> bool) -> Result<Ordered, Stopped> {
    let count = fabric.machines().len();
    let as_given: Vec<usize> = (0..count).collect();
    let mut loads = Loads::new(fabric);
    let given = loads.cost(&as_given, stop)?;
    let mut names: Vec<usize> = as_given.clone();
    names.sort_by(|&a, &b| by_number(&fabric.machines()[a], &fabric.machines()[b]).then(a.cmp(&b)));
    let by_name = loads.cost(&names, stop)?;
    let bound = Cost { busiest: least(fabric), hops: 0 };
    let mut best = (given, as_given);
    let take = |best: &mut (Cost, Vec<usize>), cost: Cost, order: Vec<usize>| {
        if cost < best.0 {
            *best = (cost, order);
        }
    };
    // Rings have no beginning.
    let first = names.iter().position(|&machine| machine == 0).unwrap_or(0);
    names.rotate_left(first);
    take(&mut best, by_name, names);
    let in_parts = by_levels(fabric);
    take(&mut best, loads.cost(&in_parts, stop)?, in_parts);
    let is_exact = count <= EXACT_MAX;
    if is_exact {
        let (cost, order) = search::all(&mut loads, best.0, stop)?;
        if let Some(order) = order {
            best = (cost, order);
        }
    } else if !has_levels(fabric) || !is_least(best.0, bound) {
        let near = search::nearest(fabric);
        take(&mut best, loads.cost(&near, stop)?, near);
        if count <= SEARCHED_MAX {
            let (cost, order) = search::improved(&mut loads, best.1.clone(), stop)?;
            take(&mut best, cost, order);
        }
    }
    let (cost, order) = best;
    Ok(Ordered { order, cost, given, by_name, bound, is_best: is_exact || is_least(cost, bound) })
}

/// What the rings of an order load.
///
/// # Errors
/// As [`order`].
pub fn cost(fabric: &Fabric, order: &[usize], stop: &dyn Fn() -> bool) -> Result<Cost, Stopped> {
    Loads::new(fabric).cost(order, stop)
}

/// Whether a cost is the least, but for what is lost where flows divide.
const fn is_least(cost: Cost, bound: Cost) -> bool {
    cost.busiest - cost.busiest / 1_000_000 <= bound.busiest
}

/// The caller stopped the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request before an order was found")]
pub struct Stopped;

/// Names with numbers in them, by number: `gpu2` before `gpu10`.
pub fn by_number(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    loop {
        match (digits(a), digits(b)) {
            (0, _) | (_, 0) => {
                let (first, second) = (a.chars().next(), b.chars().next());
                match first.cmp(&second) {
                    Ordering::Equal if first.is_none() => return Ordering::Equal,
                    Ordering::Equal => {
                        let length = first.map_or(0, char::len_utf8);
                        (a, b) = (&a[length..], &b[length..]);
                    }
                    unequal => return unequal,
                }
            }
            (of_a, of_b) => {
                let (number, other) = (a[..of_a].trim_start_matches('0'), b[..of_b].trim_start_matches('0'));
                match number.len().cmp(&other.len()).then(number.cmp(other)).then(of_a.cmp(&of_b)) {
                    Ordering::Equal => (a, b) = (&a[of_a..], &b[of_b..]),
                    unequal => return unequal,
                }
            }
        }
    }
}
