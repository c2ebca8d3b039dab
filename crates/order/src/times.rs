//! How long a job takes in an order, for people.

use crate::Stopped;
use crate::fabric::{Edge, Fabric, ratio};
use crate::hashed::hashed;
use crate::job::{Job, Kind};
use crate::load::{Cost, Loads, times};

/// How long the collectives of a job take in one order, in several ways to look at shared links, each beside the least that
/// any order takes with links of its own. For people: chance is in some.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Of what counts, all kinds of groups added up by weight.
    pub total: f64,
    /// Of each kind of groups, then of what decides between equals.
    pub by_kind: Vec<f64>,
    /// If the job had of each link what its machines are among all below it; none where others are not known.
    pub fair_share: Option<f64>,
    /// If each connection took one cable at random.
    pub hashed: f64,
    /// Links that all flows pass.
    pub hops: u64,
}

/// The times of an order beside what every order loads at least.
///
/// # Errors
/// As [`order`].
pub fn order_times(
    fabric: &Fabric,
    job: &Job,
    order: &[usize],
    bound: &Cost,
    stop: &dyn Fn() -> bool,
) -> Result<Times, Stopped> {
    let mut loads = Loads::new(fabric, job);
    let least = bound.busiest;
    let (busiest, hops) = loads.by_kind(order, stop)?;
    let kinds = job.kinds.iter().chain(&job.ties);
    let weighted = |(kind, &load): (&Kind, &u128)| load.saturating_mul(kind.weight.into());
    let weighted: Vec<u128> = kinds.zip(&busiest).map(weighted).collect();
    let total = weighted.iter().take(job.kinds.len()).copied().fold(0, u128::saturating_add);
    let by_kind = weighted.iter().map(|&load| times(load, least)).collect();
    let mut fair = 0_u128;
    for (number, kind) in job.kinds.iter().enumerate().filter(|_| fabric.is_shared()) {
        let of_kind = loads.of_kind((number, kind), order, stop)?;
        let per = u128::from(kind.per());
        let shares = of_kind.iter().zip(&fabric.edges).zip(&fabric.below);
        let share = |((&load, edge), &(of_job, all)): ((&u128, &Edge), &(u64, u64))| {
            ratio(load.saturating_mul(all.max(1).into()), u128::from(edge.capacity) * per * u128::from(of_job.max(1)))
        };
        fair = fair.saturating_add(shares.map(share).max().unwrap_or(0).saturating_mul(kind.weight.into()));
    }
    let hashed = hashed(&mut loads, job, order, stop)?;
    // In parts of 2⁶⁴ of a second per byte.
    let least_seconds = least as f64 / 2_f64.powi(64);
    let hashed = if hashed == 0.0 { 1.0 } else { hashed / least_seconds.max(f64::MIN_POSITIVE) };
    let fair_share = fabric.is_shared().then(|| times(fair, least));
    Ok(Times { total: times(total, least), by_kind, fair_share, hashed, hops })
}
