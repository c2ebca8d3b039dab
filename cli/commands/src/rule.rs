//! Plans by a rule for more ranks than trees can be written for: judged, explained, drawn and simulated by class.

use canopy_client::ErrorClass;
use canopy_plan::PlanFile;
use canopy_schedule::{Bound, BoxClass, ByClass, Schedule, Shape, Verdict, by_class, certified_bound};
use canopy_synth::are_listed;
use canopy_topology::Topology;

use crate::exit::{Failure, words};
use crate::output::gigabytes;
use crate::table::count;

/// Most slow or missing NICs of a class that are listed.
const ODD_MAX: usize = 4;

/// A plan by a rule that is right, with its links and boxes in classes.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) topology: Topology,
    pub(crate) schedule: Schedule,
    /// The upper bound follows from its certificate.
    pub(crate) bound: Bound,
    pub(crate) classes: ByClass,
}

impl Rule {
    /// Derives again whether a plan by a rule is right, how fast it is, and what bounds it; in words, why not.
    pub(crate) fn judged(plan: PlanFile) -> Result<Self, String> {
        let PlanFile { topology, schedule, bound, .. } = plan;
        let classes = by_class(&topology, schedule.collective, &schedule.shape, &|| false);
        let classes = classes.map_err(|error| words(&error))?.ok_or("it has no rule")?;
        let bound = proven(&topology, &schedule, bound, &classes.verdict)?;
        Ok(Self { topology, schedule, bound, classes })
    }
}

/// Whether all transfers of a plan can be written down.
pub(crate) fn is_listed(plan: &PlanFile) -> bool {
    let is_by_rule = matches!(plan.schedule.shape, Shape::Stages(_) | Shape::Orbits(_));
    !is_by_rule || are_listed(plan.schedule.collective.kind(), plan.topology.rank_count())
}

/// Refuses a plan by a rule that stands for more trees than can be written down, where each transfer counts.
pub(crate) fn require_listed(name: &str, plan: &PlanFile) -> Result<(), Failure> {
    if is_listed(plan) {
        return Ok(());
    }
    let (shape, ranks) = (plan.schedule.shape.name(), plan.topology.rank_count());
    let what = format!("{name}: a plan by {shape} for {ranks} ranks has too many transfers to list");
    Err(Failure::new(ErrorClass::Infeasible, what).help(
        "make one rank's part with `canopy job render`; see what limits it with `canopy explain`, and how long it takes with \
         `canopy simulate`",
    ))
}

/// Refuses an option that takes all transfers.
pub(crate) fn refuse(option: &str, remedy: &str) -> Failure {
    Failure::new(
        ErrorClass::Infeasible,
        format!("`{option}` takes every transfer of a plan, and this one has too many ranks to list them"),
    )
    .help(remedy)
}

/// The bound that follows from its certificate, if the plan is not above it; in words, why not.
pub(crate) fn proven(
    topology: &Topology,
    schedule: &Schedule,
    bound: Bound,
    verdict: &Verdict,
) -> Result<Bound, String> {
    let upper = certified_bound(topology, schedule.collective, &schedule.shares, &bound.certificate)
        .map_err(|error| words(&error))?;
    if verdict.algbw > upper {
        return Err(format!("its {} bytes/s are above the proven bound of {upper}", verdict.algbw));
    }
    let lower = bound.lower.min(upper.clone()).max(verdict.algbw.clone());
    Ok(Bound { upper, lower, certificate: bound.certificate })
}

/// How a class differs from the class of most boxes.
pub(crate) fn odd(usual: &BoxClass, class: &BoxClass) -> Vec<String> {
    let mut found = Vec::new();
    let missing = class.missing.len().saturating_sub(usual.missing.len());
    if missing > 0 {
        found.push(format!("{} missing", count(missing, "rank")));
    }
    let mut nics = Vec::new();
    for nic in &usual.nics {
        let same = class.nics.iter().find(|other| (other.place, other.is_up) == (nic.place, nic.is_up));
        if class.missing.contains(&nic.place) || nics.iter().any(|(place, _)| *place == nic.place) {
            continue;
        }
        match same {
            None => nics.push((nic.place, "dead".to_owned())),
            Some(other) if other.capacity < nic.capacity => {
                let [found, usual] = [other.capacity, nic.capacity].map(|capacity| gigabytes(capacity.into()));
                nics.push((nic.place, format!("at {found} GB/s, not {usual}")));
            }
            Some(_) => {}
        }
    }
    let more = nics.len().saturating_sub(ODD_MAX);
    found.extend(nics.into_iter().take(ODD_MAX).map(|(place, what)| format!("NIC of place {place} {what}")));
    if more > 0 {
        found.push(format!("{} more", count(more, "NIC")));
    }
    if class.missing.len() == usual.missing.len() && class.inner_capacity < usual.inner_capacity {
        let [found_rate, usual] = [class.inner_capacity, usual.inner_capacity].map(gigabytes);
        found.push(format!("{found_rate} GB/s in the box, not {usual}"));
    }
    found
}
