//! What the same groups reach otherwise: with rings, one class after another, or each planned as if it were alone.

use canopy_groups::{GroupOptions, group_optimum, group_shares, ring_rate};
use canopy_topology::{Ratio, Topology, Transit};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero as _;

use crate::job::{Job, JobGroup};
use crate::rates::{Patience, Posed, RatesError, in_seconds, refusal, time};

/// Seconds for all groups, each for its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Rings in the order of the members, all at once.
    pub rings: Ratio,
    /// One class of groups after another, each class jointly optimal.
    pub phases: Ratio,
    /// Each group by its own optimum on the empty network, all at once, each of them spread over what is alike.
    pub alone: Ratio,
    /// By class, the time of that class alone, jointly optimal.
    pub classes: Vec<Ratio>,
}

/// Computes what the groups of a job reach otherwise.
///
/// # Errors
/// [`RatesError`]. Costs that of the joint optimum for each class, and for each group that is like no other.
pub fn comparison(
    topology: &Topology,
    job: &Job,
    transit: Transit,
    patience: Patience<'_>,
) -> Result<Comparison, RatesError> {
    let refused = |error| refusal(topology, job, error);
    let all = Posed::of(topology, job.groups.iter(), transit)?;
    let rings = ring_rate(&all.problem).map_err(refused)?;
    let mut times: Vec<BigRational> = Vec::with_capacity(job.classes.len());
    let mut loads = vec![BigRational::zero(); all.problem.graph().arcs.len()];
    for class in 0..job.classes.len() {
        let groups: Vec<&JobGroup> = job.groups.iter().filter(|group| group.class == class).collect();
        let posed = Posed::of(topology, groups.iter().copied(), transit)?;
        let optimum = group_optimum(&posed.problem, GroupOptions::STANDARD, patience.enough).map_err(refused)?;
        times.push(optimum.rate.recip() * BigInt::from(posed.unit_bytes));
        add_loads_alone(topology, &groups, transit, &mut loads, patience).map_err(|error| match error {
            RatesError::Groups(error) => refused(error),
            error => error,
        })?;
    }
    let busiest = loads.iter().zip(&all.problem.graph().arcs).map(|(load, arc)| load / BigInt::from(arc.capacity));
    Ok(Comparison {
        rings: time(&rings, all.unit_bytes),
        phases: in_seconds(&times.iter().sum()),
        alone: in_seconds(&busiest.max().unwrap_or_else(BigRational::zero)),
        classes: times.iter().map(in_seconds).collect(),
    })
}

/// Adds the bytes that groups put on links when each is planned alone.
fn add_loads_alone(
    topology: &Topology,
    groups: &[&JobGroup],
    transit: Transit,
    loads: &mut [BigRational],
    Patience { enough, stop }: Patience<'_>,
) -> Result<(), RatesError> {
    // Groups that are alike in the class are planned once.
    let class = Posed::of(topology, groups.iter().copied(), transit)?;
    let whole = group_optimum(&class.problem, GroupOptions::STANDARD, enough).map_err(RatesError::Groups)?;
    let alike = group_shares(&class.problem, &whole, GroupOptions::STANDARD, stop).map_err(RatesError::Groups)?;
    let place: std::collections::HashMap<(u32, u32), usize> =
        class.problem.graph().arcs.iter().enumerate().map(|(place, arc)| ((arc.from, arc.to), place)).collect();
    for first in (0..groups.len()).filter(|&group| alike.like[group] == group) {
        let alone = Posed::of(topology, std::iter::once(groups[first]), transit)?;
        let optimum = group_optimum(&alone.problem, GroupOptions::STANDARD, enough).map_err(RatesError::Groups)?;
        let shares =
            group_shares(&alone.problem, &optimum, GroupOptions::STANDARD, stop).map_err(RatesError::Groups)?;
        for group in (0..groups.len()).filter(|&group| alike.like[group] == first) {
            for (arc, share) in shares.of(0) {
                let arc = alone.problem.graph().arcs[*arc as usize];
                let ends = (alike.node_of(group, arc.from), alike.node_of(group, arc.to));
                if let Some(load) = place.get(&ends).and_then(|&place| loads.get_mut(place)) {
                    *load += share / &optimum.rate * BigInt::from(alone.unit_bytes);
                }
            }
        }
    }
    Ok(())
}
