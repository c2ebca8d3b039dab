//! Schedules several collectives at once, so that none waits for a link used by another.
//!
//! One after the other takes its place in a calendar of all links (`place`): copies from the beginning, sums from a moment backwards
//! on the network turned around, each around what is taken already. What the order should be, and whether sums that end
//! with nothing after them are early or as late as may be, is tried, and broadcasts and reductions in common (`urgent`) before
//! all others; the best is kept. It is never slower than one after the other.
//!
//! Source: Won et al., section 5, for one network in time that several collectives share; sums in it, and the method, are our
//! own.

mod copy;
mod delivery;
mod place;
mod urgent;
mod view;

use canopy_optimize::Stop;
use rayon::prelude::*;

use crate::bound::lower_bound;
use crate::calendar::Calendar;
use crate::chance::Chance;
use crate::copies::CopyError;
use crate::network::TimedNetwork;
use crate::sends::Sends;
use crate::task::CopyTask;
use crate::unicast::{Demand, delivery_bound};
use place::{Placing, place};

/// A resource that a link uses for every chunk: itself, or a physical link on its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The resource, numbered over all tenants.
    pub thing: u32,
    /// For how long from the start of a send, at least 1.
    pub ticks: u64,
}

/// A task of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Chunks of owners go to all members.
    Copy(CopyTask),
    /// What members have of each chunk is added up at its owner: a copy on the network turned around, backwards.
    Sum(CopyTask),
    /// Chunks go to one node each.
    Deliver(Vec<Demand>),
}

/// A tenant: a network of nodes that store and forward chunks, and its tasks in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    network: TimedNetwork,
    /// The network turned around, for sums.
    transposed: TimedNetwork,
    claims: Vec<Vec<Claim>>,
    works: Vec<Work>,
}

/// Errors of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TenantError {
    #[error("{found} claims for {links} links")]
    ClaimCount { found: usize, links: usize },
    #[error("link {link} is claimed for no time, or busy without a claim")]
    Claim { link: usize },
    #[error("a task has {found} nodes, and the network {nodes}")]
    Sizes { found: usize, nodes: u32 },
}

impl Tenant {
    /// A tenant on a network all of whose links are its own things: link 3 is thing 3 for every such tenant.
    ///
    /// # Errors
    /// [`TenantError::Sizes`].
    pub fn on(network: &TimedNetwork, works: Vec<Work>) -> Result<Self, TenantError> {
        let own = (0..).zip(network.links()).map(|(thing, link)| vec![Claim { thing, ticks: link.occupancy }]);
        Self::new(network.clone(), own.collect(), works)
    }

    /// A tenant whose links take, each, all these things at once, the longest for as long as it is busy; each once.
    ///
    /// # Errors
    /// [`TenantError`]: links that take nothing, works for other nodes than there are. O(links + claims).
    pub fn new(network: TimedNetwork, claims: Vec<Vec<Claim>>, works: Vec<Work>) -> Result<Self, TenantError> {
        let (found, links) = (claims.len(), network.links().len());
        if found != links {
            return Err(TenantError::ClaimCount { found, links });
        }
        for (link, (claims, timed)) in claims.iter().zip(network.links()).enumerate() {
            let longest = claims.iter().map(|claim| claim.ticks).max();
            if longest != Some(timed.occupancy) || claims.iter().any(|claim| claim.ticks == 0) {
                return Err(TenantError::Claim { link });
            }
        }
        let nodes = network.node_count();
        for work in &works {
            let found = match work {
                Work::Copy(task) | Work::Sum(task) => task.node_count(),
                Work::Deliver(demands) => {
                    let greatest = demands.iter().map(|demand| demand.from.max(demand.to)).max();
                    greatest.map_or(0, |node| node as usize + 1).max(nodes as usize)
                }
            };
            if found != nodes as usize {
                return Err(TenantError::Sizes { found, nodes });
            }
        }
        Ok(Self { transposed: network.transposed(), network, claims, works })
    }

    /// Its links.
    pub const fn network(&self) -> &TimedNetwork {
        &self.network
    }

    /// The claims of each link.
    pub fn claims(&self) -> &[Vec<Claim>] {
        &self.claims
    }

    /// Its tasks.
    pub fn works(&self) -> &[Work] {
        &self.works
    }

    /// Ticks that all its works take at least; none where one cannot be done.
    pub fn bound(&self) -> Option<u64> {
        self.works.iter().try_fold(0_u64, |sum, work| sum.checked_add(self.bound_of(work)?))
    }

    fn bound_of(&self, work: &Work) -> Option<u64> {
        match work {
            Work::Copy(task) => lower_bound(&self.network, task),
            Work::Sum(task) => lower_bound(&self.transposed, task),
            Work::Deliver(demands) => delivery_bound(&self.network, demands),
        }
    }

    fn things(&self) -> usize {
        self.claims.iter().flatten().map(|claim| claim.thing as usize + 1).max().unwrap_or(0)
    }
}

/// The effort of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointOptions {
    /// The first seed.
    pub seed: u64,
    /// Most attempts, at least one is made; the first that takes no longer than the longest tenant's bound is the last.
    pub attempts: u32,
}

/// A joint schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joint {
    /// By tenant and work, its sends in ticks that are the same for all, and when it ends; that means nothing without sends.
    pub sends: Vec<Vec<Sends>>,
    /// When the last one ends.
    pub end: u64,
    /// By tenant, the ticks of the best found with nobody else there.
    pub alone: Vec<u64>,
    /// The same, the moments at which anything starts in it.
    pub moments_alone: Vec<u64>,
    /// By tenant, the ticks that it takes at least with nobody else there.
    pub bounds: Vec<u64>,
}

impl Joint {
    /// Ticks with one tenant after the other.
    pub fn one_by_one(&self) -> u64 {
        self.alone.iter().fold(0, |sum, &ticks| sum.saturating_add(ticks))
    }

    /// When anything starts, in order, each moment once: what starts at the same time is a step, whoever sends it.
    pub fn moments(&self) -> Vec<u64> {
        moments(self.sends.iter().flatten())
    }
}

/// Errors of a joint schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum JointError {
    #[error("tenant {tenant}: no path leads to one of its members")]
    Unreachable { tenant: usize },
    #[error(transparent)]
    Copy(#[from] CopyError),
}

/// A schedule of all tenants together, in which nothing is taken twice at a time.
///
/// * **Source.** Our own; the problem is that of Won et al., section 5.
/// * **Out.** The same for the same seed. `end` ≤ [`Joint::one_by_one`].
/// * **Errors.** [`JointError`]. Being stopped after the first attempt costs no more than the attempts not yet done.
/// * **Cost.** For each attempt and each moment O(links · chunks / 64), and O(nodes after a node) for each candidate of a send; sums as often
///   as they find no place.
pub fn joint_schedule(tenants: &[Tenant], options: JointOptions, stop: &dyn Stop) -> Result<Joint, JointError> {
    let bounds = tenants.iter().enumerate().map(|(tenant, it)| it.bound().ok_or(JointError::Unreachable { tenant }));
    let bounds = bounds.collect::<Result<Vec<u64>, _>>()?;
    let things = tenants.iter().map(Tenant::things).max().unwrap_or(0);
    let empty = Calendar::new(things);
    let mut alone: Vec<Vec<Sends>> = Vec::with_capacity(tenants.len());
    for (tenant, &bound) in tenants.iter().zip(&bounds) {
        alone.push(alone_best(tenant, &empty, bound, options, stop)?);
    }
    let ends: Vec<u64> = alone.iter().map(|works| end_of(works)).collect();
    let moments_alone = alone.iter().map(|works| moments(works).len() as u64).collect();
    let bound = bounds.iter().copied().max().unwrap_or(0);
    let longest = ends.iter().copied().max().unwrap_or(0);
    let mut best = one_after_the_other(alone);
    let attempts = orders(tenants, &ends, options);
    for batch in attempts.chunks(AT_A_TIME) {
        if rank(&best).0 <= bound {
            break;
        }
        let found = batch.par_iter().map(|attempt| attempt.run(tenants, &empty, longest, stop));
        let found: Vec<Result<Option<Vec<Vec<Sends>>>, CopyError>> = found.collect();
        for found in found {
            match found {
                Ok(Some(found)) if rank(&found) < rank(&best) => best = found,
                Ok(_) | Err(CopyError::Stopped) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if stop.is_requested() {
            break;
        }
    }
    Ok(Joint { end: rank(&best).0, sends: best, alone: ends, moments_alone, bounds })
}

/// Attempts begun together, as many whatever the number of threads.
const AT_A_TIME: usize = 4;
/// Attempts at broadcasts and reductions in common, beside those that are asked for.
const URGENT_ATTEMPTS: u64 = 8;
/// Tenants up to which all orders are tried.
const PERMUTED_MAX: usize = 4;
/// Attempts at a tenant alone.
const ALONE_MAX: u32 = 16;

/// When anything starts in these, in order, each moment once.
fn moments<'a>(works: impl IntoIterator<Item = &'a Sends>) -> Vec<u64> {
    let mut moments: Vec<u64> = works.into_iter().flat_map(|work| work.sends.iter().map(|sent| sent.start)).collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// When the last work ends.
fn end_of(works: &[Sends]) -> u64 {
    works.iter().map(|work| work.end).max().unwrap_or(0)
}

/// Less for the better one: which ends first, then whose tenants end first, then which has fewest sends.
fn rank(sends: &[Vec<Sends>]) -> (u64, u64, usize) {
    let ends = sends.iter().map(|works| end_of(works));
    let count = sends.iter().flatten().map(|work| work.sends.len()).sum();
    (ends.clone().max().unwrap_or(0), ends.fold(0, u64::saturating_add), count)
}

/// The best of some attempts at one tenant, alone.
fn alone_best(
    tenant: &Tenant,
    empty: &Calendar,
    bound: u64,
    options: JointOptions,
    stop: &dyn Stop,
) -> Result<Vec<Sends>, CopyError> {
    let attempt = |seed: u64| {
        let placing = Placing { seed: options.seed.wrapping_add(seed), sums_until: 0 };
        place(tenant, placing, &mut empty.clone(), stop)
    };
    let mut best = attempt(0)?;
    for seed in 1..u64::from(options.attempts.min(ALONE_MAX)) {
        if end_of(&best) <= bound {
            break;
        }
        let found = match attempt(seed) {
            Err(CopyError::Stopped) => break,
            found => found?,
        };
        if end_of(&found) < end_of(&best) {
            best = found;
        }
    }
    Ok(best)
}

/// Each tenant's own schedule, begun when the one before has ended.
fn one_after_the_other(mut alone: Vec<Vec<Sends>>) -> Vec<Vec<Sends>> {
    let mut begin = 0_u64;
    for works in &mut alone {
        let end = end_of(works);
        for work in works.iter_mut().filter(|work| !work.sends.is_empty()) {
            work.sends.iter_mut().for_each(|sent| sent.start = sent.start.saturating_add(begin));
            work.end = work.end.saturating_add(begin);
        }
        begin = begin.saturating_add(end);
    }
    alone
}

/// Who takes a place before whom, and whether sums are late.
struct Order {
    tenants: Vec<usize>,
    is_late: bool,
    /// Whether broadcasts and reductions take theirs in common, before all.
    is_urgent: bool,
    seed: u64,
}

impl Order {
    fn run(
        &self,
        tenants: &[Tenant],
        empty: &Calendar,
        longest: u64,
        stop: &dyn Stop,
    ) -> Result<Option<Vec<Vec<Sends>>>, CopyError> {
        let mut calendar = empty.clone();
        let mut placed = vec![Vec::new(); tenants.len()];
        let mut until = longest;
        let urgent = match self.is_urgent {
            true => urgent::place(tenants, &mut calendar, longest, self.seed, stop)?,
            false => Some(Vec::new()),
        };
        let Some(urgent) = urgent else { return Ok(None) };
        for (number, sends) in urgent {
            until = until.max(sends.end);
            placed[number] = vec![sends];
        }
        let others =
            self.tenants.iter().filter(|&&number| !self.is_urgent || urgent::task_of(&tenants[number]).is_none());
        for &number in others {
            let sums_until = if self.is_late { until } else { 0 };
            let works = place(&tenants[number], Placing { seed: self.seed, sums_until }, &mut calendar, stop)?;
            until = until.max(end_of(&works));
            placed[number] = works;
        }
        Ok(Some(placed))
    }
}

/// Orders worth trying: all of few tenants; else by time alone both ways, as given, and at random.
fn orders(tenants: &[Tenant], alone: &[u64], options: JointOptions) -> Vec<Order> {
    let mut chance = Chance::new(options.seed);
    let mut as_given: Vec<usize> = (0..tenants.len()).collect();
    let mut longest_first = as_given.clone();
    longest_first.sort_by_key(|&tenant| (std::cmp::Reverse(alone[tenant]), tenant));
    let mut found = vec![longest_first.clone()];
    longest_first.reverse();
    found.push(longest_first);
    if tenants.len() <= PERMUTED_MAX {
        permutations(&mut as_given, 0, &mut found);
    } else {
        found.push(as_given);
    }
    let ends_with_sum = tenants.iter().any(|tenant| matches!(tenant.works.last(), Some(Work::Sum(_))));
    let lateness: &[bool] = if ends_with_sum { &[true, false] } else { &[false] };
    let mut orders = Vec::new();
    for round in 0..u64::from(options.attempts.max(1)) {
        let place = usize::try_from(round).unwrap_or(usize::MAX) / lateness.len();
        let order = found.get(place).cloned().unwrap_or_else(|| {
            let mut order: Vec<usize> = (0..tenants.len()).collect();
            chance.shuffle(&mut order);
            order
        });
        let is_late = lateness[usize::try_from(round).unwrap_or(0) % lateness.len()];
        orders.push(Order { tenants: order, is_late, is_urgent: false, seed: options.seed.wrapping_add(round) });
    }
    if tenants.iter().any(|tenant| urgent::task_of(tenant).is_some()) {
        let tenants = orders.first().map_or_else(Vec::new, |order| order.tenants.clone());
        let urgent = (0..URGENT_ATTEMPTS).map(|round| options.seed.wrapping_add(round));
        orders.extend(urgent.map(|seed| Order { tenants: tenants.clone(), is_late: true, is_urgent: true, seed }));
    }
    orders
}

/// All orders of what follows a place.
fn permutations(order: &mut Vec<usize>, from: usize, found: &mut Vec<Vec<usize>>) {
    if from + 1 >= order.len() {
        if !found.contains(order) {
            found.push(order.clone());
        }
        return;
    }
    for other in from..order.len() {
        order.swap(from, other);
        permutations(order, from + 1, found);
        order.swap(from, other);
    }
}
