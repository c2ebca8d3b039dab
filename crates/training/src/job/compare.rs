//! What the same groups reach otherwise: with rings, one class after another, or each planned as if it were alone.

use std::collections::HashMap;

use canopy_optimize::Arc;
use canopy_topology::{Ratio, Topology, Transit};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero as _;
use rayon::prelude::*;

use crate::groups::{GroupShares, GroupsError, Patience, ring_rate};
use crate::job::classes::{Job, JobGroup};
use crate::job::posed::{Posed, RatesError, in_seconds, time};

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
    let all = Posed::of(topology, &job.groups, transit)?;
    let rings = ring_rate(&all.problem, patience.stop).map_err(|error| all.refusal(error))?;
    let arcs = &all.problem.graph().arcs;
    let mut loads: HashMap<(u32, u32), BigRational> =
        arcs.iter().map(|arc| ((arc.from, arc.to), BigRational::zero())).collect();
    let mut times: Vec<BigRational> = Vec::with_capacity(job.classes.len());
    for class in 0..job.classes.len() {
        let groups: Vec<&JobGroup> = job.groups.iter().filter(|group| group.class == class).collect();
        let posed = Posed::of(topology, groups.iter().copied(), transit)?;
        let (optimum, alike) = posed.solved(patience)?;
        times.push(optimum.rate.recip() * BigInt::from(posed.unit_bytes));
        // Groups that are alike in the class are planned once.
        let firsts: Vec<usize> = (0..groups.len()).filter(|&group| alike.like[group] == group).collect();
        let planned = |&first: &usize| Alone::planned(topology, groups[first], transit, patience);
        let planned: Vec<Result<Alone, RatesError>> = firsts.par_iter().map(planned).collect();
        for (first, alone) in firsts.into_iter().zip(planned) {
            let alone = match alone {
                // There may be room for one at a time.
                Err(RatesError::Groups(GroupsError::NoRoom { .. })) => {
                    Alone::planned(topology, groups[first], transit, patience)
                }
                alone => alone,
            };
            alone?.add_loads((&alike, first), &mut loads);
        }
    }
    let busiest = arcs.iter().map(|arc| &loads[&(arc.from, arc.to)] / BigInt::from(arc.capacity));
    Ok(Comparison {
        rings: time(&rings, all.unit_bytes),
        phases: in_seconds(&times.iter().sum()),
        alone: in_seconds(&busiest.max().unwrap_or_else(BigRational::zero)),
        classes: times.iter().map(in_seconds).collect(),
    })
}

/// A group by its own optimum on the empty network.
struct Alone {
    /// By arc that it uses, its ends and the bytes on it.
    loads: Vec<(Arc, BigRational)>,
}

impl Alone {
    fn planned(
        topology: &Topology,
        group: &JobGroup,
        transit: Transit,
        patience: Patience<'_>,
    ) -> Result<Self, RatesError> {
        let posed = Posed::of(topology, [group], transit)?;
        let (optimum, shares) = posed.solved(patience)?;
        let bytes = |share: &BigRational| share / &optimum.rate * BigInt::from(posed.unit_bytes);
        let arcs = &posed.problem.graph().arcs;
        let loads = shares.of(0).iter().map(|(arc, share)| (arcs[*arc as usize], bytes(share)));
        Ok(Self { loads: loads.collect() })
    }

    /// Adds what it puts on links, for all groups that are like it.
    fn add_loads(&self, (alike, first): (&GroupShares, usize), loads: &mut HashMap<(u32, u32), BigRational>) {
        for (arc, bytes) in &self.loads {
            for group in (0..alike.like.len()).filter(|&group| alike.like[group] == first) {
                let ends = (alike.node_of(group, arc.from), alike.node_of(group, arc.to));
                if let Some(load) = loads.get_mut(&ends) {
                    *load += bytes;
                }
            }
        }
    }
}
