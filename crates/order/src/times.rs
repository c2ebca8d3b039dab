//! How long a job takes in an order, for people.

use crate::Stopped;
use crate::fabric::{Edge, Fabric, ratio};
use crate::hashed::hashed;
use crate::job::{Job, Kind, Pattern};
use crate::load::{Cost, Loads, times};

/// How long the collectives of a job take in one order, in several ways to look at shared links, each beside the least that
/// any order takes with links of its own. For people: chance is in some.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Of each kind of groups, then of what decides between equals.
    pub by_kind: Vec<(String, Pattern, f64)>,
    /// If the job had of each link what its machines are among all below it; none where others are not known.
    pub fair_share: Option<f64>,
    /// If each connection took one cable at random.
    pub hashed: f64,
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
    let (busiest, _) = loads.by_kind(order, stop)?;
    let kinds = job.kinds.iter().chain(&job.ties);
    let weighted = |kind: &Kind, load: u128| times(load.saturating_mul(kind.weight.into()), least);
    let by_kind =
        kinds.zip(&busiest).map(|(kind, &load)| (kind.name.clone(), kind.pattern, weighted(kind, load))).collect();
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
    Ok(Times { by_kind, fair_share: fabric.is_shared().then(|| times(fair, least)), hashed })
}
