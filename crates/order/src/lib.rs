//! The order of machines for which what stock runtimes do over a fabric loads its links least.
//!
//! Stock NCCL, RCCL and MPI number machines as their ranks come, and each of their rings goes from one machine to the next
//! and back to the first. Nothing in them looks at switches: an order that goes back and forth between racks makes rings
//! share uplinks.
//!
//! On a fabric of levels (racks, pods, halls), the order that takes one part after another crosses each boundary once each
//! way. No order crosses one less often, so for rings that is best on every link at once; among such orders the one is
//! taken that loads links least with double binary trees. Groups of ranks are kept within parts. Elsewhere, on tori and
//! dragonflies, orders are searched for, up to nine machines exactly.
//!
//! | module | what it does |
//! |---|---|
//! | `fabric` | machines and switches of a topology, and how a flow between two machines divides |
//! | `part` | some of the machines |
//! | `job` | groups of ranks, and the flows that they make |
//! | `levels` | parts within parts, and blocks of machines within them |
//! | `load`, `bound` | what an order loads, and every order at least |
//! | `hashed` | what it loads if flows do not divide |
//! | `chance` | numbers that look like chance |
//! | `search` | orders where there are no levels |
//! | `times`, `report` | the same for people, in several ways to look at shared links |
//! | `names` | names by the numbers in them |
//! | `walk` | links that alone join two sides, and machines side by side |
//!
//! Source: our own; the argument for levels counts crossings of a cut, of which a ring has at least two.

mod bound;
mod chance;
mod fabric;
mod hashed;
mod job;
mod levels;
mod load;
mod names;
mod part;
mod report;
mod search;
mod times;
mod walk;

use std::cmp::Ordering;

pub use fabric::{Fabric, NoMachines};
pub use job::{GROUPS_MAX, Group, GroupError, Job, Pattern};
pub use load::Cost;
pub use names::by_number;
pub use part::PartError;
pub use report::{OrderError, Report, report};
pub use times::{Times, order_times};

use bound::least;
use levels::{by_levels, by_levels_shuffled, has_levels, in_blocks};
use load::Loads;
use search::Tie;
use walk::Walk;

/// Machines up to which all orders are compared.
pub const EXACT_MAX: usize = 9;

/// Machines up to which orders are searched for where parts say nothing: for groups, and for one ring.
const SEARCHED_MAX: usize = 128;
const RINGS_SEARCHED_MAX: usize = 2_048;

/// Starts of the search for a ring, and machines up to which there are several.
const STARTS: usize = 6;
const MANY_STARTS_MAX: usize = 200;

/// Orders of parts beside their like that are tried, and machines in all of them together at most.
const SHUFFLES_MAX: usize = 200;
const SHUFFLED_MAX: usize = 1 << 16;

/// An order of machines with what it loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// Positions of machines in the fabric's list.
    pub order: Vec<usize>,
    /// The list sorted by name, as strings.
    pub names: Vec<usize>,
    /// The list sorted by name, numbers in names as numbers.
    pub numbers: Vec<usize>,
    /// What the order loads.
    pub cost: Cost,
    /// What the list as it stands loads.
    pub given: Cost,
    /// What it loads sorted by name, as strings: so do runtimes that sort machines.
    pub by_name: Cost,
    /// What every order loads at least; what the one found loads where that is not known.
    pub bound: Cost,
    /// Whether no order is better: it reaches the bound on its busiest link, or all were compared.
    pub is_best: bool,
}

/// The best order found, the given one if none is better.
///
/// Rank 0's machine stays the first. Compared by the load of the busiest link, then by that of trees, then by hops of all.
///
/// * **Errors.** `stop` returned true; it is asked for every flow.
/// * **Cost.** O(flows · links) for the loads of an order, of which there are a handful, or some hundred where parts can
///   change places. Up to nine machines all orders. Without levels, or where groups leave room, some hundred thousand changes of
///   a ring up to 2,048 machines, each O(machines), and some thousand orders for groups up to 128.
pub fn order(fabric: &Fabric, job: &Job, stop: &dyn Fn() -> bool) -> Result<Ordered, Stopped> {
    let count = fabric.machines().len();
    let as_given: Vec<usize> = (0..count).collect();
    let mut loads = Loads::new(fabric, job);
    let given = loads.cost(&as_given, stop)?;
    let sorted = |compare: fn(&str, &str) -> Ordering| {
        let mut sorted = as_given.clone();
        sorted.sort_by(|&a, &b| compare(&fabric.machines()[a], &fabric.machines()[b]).then(a.cmp(&b)));
        sorted
    };
    let (names, numbers) = (sorted(str::cmp), sorted(by_number));
    let by_name = loads.cost(&names, stop)?;
    let bound = Cost { busiest: least(fabric, job), trees: 0, hops: 0 };
    let mut best = (given, as_given);
    let mut candidates = vec![names.clone(), numbers.clone()];
    // Rings have no beginning.
    for order in &mut candidates {
        let first = order.iter().position(|&machine| machine == 0).unwrap_or(0);
        order.rotate_left(first);
    }
    candidates.extend([by_levels(fabric), Walk::of(fabric).machines]);
    if let Some(sizes) = block_sizes(fabric, job) {
        candidates.push(in_blocks(fabric, &sizes));
    }
    for order in candidates {
        let cost = loads.cost(&order, stop)?;
        take(&mut best, cost, order);
    }
    let is_exact = count <= EXACT_MAX;
    if is_exact {
        let (cost, order) = search::all(&mut loads, best.0, stop)?;
        if let Some(order) = order {
            best = (cost, order);
        }
    } else {
        searched(&mut loads, (job, &numbers), bound, &mut best, stop)?;
    }
    let (cost, order) = best;
    let is_best = is_exact || is_least(cost, bound);
    let bound = if bound.busiest == 0 { Cost { busiest: cost.busiest, ..bound } } else { bound };
    Ok(Ordered { order, names, numbers, cost, given, by_name, bound, is_best })
}

fn take(best: &mut (Cost, Vec<usize>), cost: Cost, order: Vec<usize>) {
    if cost < best.0 {
        *best = (cost, order);
    }
}

/// Better orders of more than a few machines.
fn searched(
    loads: &mut Loads<'_>,
    (job, names): (&Job, &[usize]),
    bound: Cost,
    best: &mut (Cost, Vec<usize>),
    stop: &dyn Fn() -> bool,
) -> Result<(), Stopped> {
    let fabric = loads.fabric;
    let count = fabric.machines().len();
    let are_parts = has_levels(fabric);
    // Rings alone are as good in all of these.
    if are_parts && !(job.is_whole() && job.ties.is_empty() && is_least(best.0, bound)) {
        for order in by_levels_shuffled(fabric, SHUFFLES_MAX.min(SHUFFLED_MAX / count.max(1))) {
            let cost = loads.cost(&order, stop)?;
            take(best, cost, order);
        }
    }
    if !are_parts || !is_least(best.0, bound) {
        let mut starts = vec![best.1.clone()];
        for tie in [Tie::Name, Tie::Neighbours] {
            let near = search::nearest(loads, names, names.first().copied().unwrap_or(0), tie);
            let cost = loads.cost(&near, stop)?;
            starts.push(near.clone());
            take(best, cost, near);
        }
        if job.is_whole() && count <= RINGS_SEARCHED_MAX {
            if count <= MANY_STARTS_MAX {
                let more = (1..STARTS).map(|turn| turn * count / STARTS);
                starts.extend(more.map(|start| search::nearest(loads, names, start, Tie::Neighbours)));
            }
            for start in starts {
                let order = search::ring_improved(loads, start, bound.busiest, stop)?;
                let cost = loads.cost(&order, stop)?;
                take(best, cost, order);
            }
        } else if count <= SEARCHED_MAX {
            let start = if are_parts { by_levels(fabric) } else { best.1.clone() };
            for start in [best.1.clone(), start] {
                let (cost, order) = search::improved(loads, start, stop)?;
                take(best, cost, order);
            }
        }
    }
    Ok(())
}

/// Numbers of machines that groups fill, from the smallest on; none where machines are unequal or groups do not fill them.
fn block_sizes(fabric: &Fabric, job: &Job) -> Option<Vec<usize>> {
    let counts = fabric.rank_counts();
    let &each = counts.first()?;
    if job.is_whole() || counts.iter().any(|&count| count != each) {
        return None;
    }
    let each = u64::from(each.max(1));
    let filled = job.blocks().filter(|ranks| ranks.is_multiple_of(each) && ranks / each < counts.len() as u64);
    Some(filled.filter_map(|ranks| usize::try_from(ranks / each).ok()).filter(|&size| size > 1).collect())
}

/// What an order loads.
///
/// # Errors
/// As [`order`].
pub fn cost(fabric: &Fabric, job: &Job, order: &[usize], stop: &dyn Fn() -> bool) -> Result<Cost, Stopped> {
    Loads::new(fabric, job).cost(order, stop)
}

/// Whether a cost is the least, but for what is lost where flows divide.
const fn is_least(cost: Cost, bound: Cost) -> bool {
    cost.busiest - cost.busiest / 1_000_000 <= bound.busiest
}

/// The caller stopped the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request before an order was found")]
pub struct Stopped;
