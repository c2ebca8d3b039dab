//! The planner: bound first, then a schedule, then every check, then files that are read back.
//!
//! Pure but for the clock that times the stages. A plan comes out only if everything that judges it agrees: the
//! certificate proves the bound, the checker found the transfers right and their rate no better than the bound, and
//! each file, read back, is what was written and passes the checks of its format.

mod attempt;
mod describe;
mod fewer;
mod files;
mod input;
mod memory;

use canopy_proto::v1;
use canopy_schedule::{AllreduceForm, Bound, Collective, CollectiveKind, Shares, certified_bound};
use canopy_synth::{Algorithm, RootPolicy, Stop, TreeLimits, allreduce_form, bound};
use canopy_topology::{Rank, Topology, TopologyLimits, renumbering};

use self::attempt::{Attempt, Work};
pub(crate) use self::describe::{collective as collective_on_the_wire, topology_summary, weights};
use self::fewer::Fitted;
pub(crate) use self::input::read_topology;
use self::memory::Form;
use crate::clock;
use crate::failure::PlanFailure;
use crate::key::{PlanKey, TopologyKey};
use crate::order::{Group, Order};
use crate::planner::{Planner, Prepared, Produced, Watch};
use crate::store::StoredPlan;

/// From this estimate on, an allreduce is looked at for the form it will have: trees with roots anywhere are fewer, and
/// to find out takes some tenths of a second.
const FORM_MATTERS_BYTES: u64 = 1 << 30;

/// Plans with canopy's own libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    limits: TopologyLimits,
}

impl Pipeline {
    /// A planner for topologies within these limits.
    pub const fn new(limits: TopologyLimits) -> Self {
        Self { limits }
    }
}

impl Planner for Pipeline {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        let (whole, mut warnings) = read_topology(&order.topology, &self.limits, stop)?;
        ask(stop)?;
        let topology = match &order.group {
            None => whole,
            Some(Group { ranks, transit }) => {
                let members: Vec<Rank> = ranks.iter().copied().map(Rank::new).collect();
                let group = whole.group(&members, *transit)?;
                let text = renumbering(&members);
                warnings.extend(text.map(|text| v1::Warning { code: "RANKS_RENUMBERED".to_owned(), text }));
                group
            }
        };
        ask(stop)?;
        let collective = Collective::new(order.kind, order.root.map(Rank::new), topology.rank_count())?;
        let shares = match order.shares.as_slice() {
            [] => Shares::Equal,
            weights => Shares::in_proportion(collective, topology.rank_count(), weights.to_vec())?,
        };
        let topology_key = TopologyKey::of(&topology);
        ask(stop)?;
        let key = PlanKey::new(&topology_key, collective, &shares, order);
        let outputs = (order.outputs.as_slice(), order.limits.max_depth.is_some());
        let estimate = |form| memory::estimate_bytes(&topology, collective, &shares, form, outputs);
        let mut memory_bytes = estimate(Form::Phases);
        if memory_bytes > FORM_MATTERS_BYTES && has_choice_of_form(order) {
            // What cannot be decided here is found out again, and told, where the plan is made.
            let form = allreduce_form(&topology, &shares, order.sums, stop);
            ask(stop)?;
            if form == Ok(AllreduceForm::Trees) {
                let is_rooted = order.sums.roots == RootPolicy::Spread || shares != Shares::Equal;
                memory_bytes = estimate(if is_rooted { Form::RootedTrees } else { Form::Trees });
            }
        }
        Ok(Prepared { key, topology, topology_key, collective, shares, memory_bytes, warnings })
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        let started = clock::now();
        watch.stage("bound", 0, 1);
        let bound = proven_bound(&prepared.topology, prepared.collective, &prepared.shares, stop)?;
        watch.bound(&bound.upper);
        let timings = v1::Timings { bound: clock::millis_since(started), ..v1::Timings::default() };

        let mut work = Work { limits: &self.limits, order, prepared, bound, timings, stop, watch };
        let Fitted { attempt: Attempt { plan, verdict, .. }, files, warning } = fewer::that_fit(&mut work)?;
        watch.incumbent(&verdict.algbw);
        let timings = work.timings;
        let warnings = files.warnings.iter().cloned().chain(warning).collect();
        let plan = describe::plan(order, prepared, &plan, &verdict, files, clock::millis_since(started))?;
        Ok(Produced { plan: StoredPlan { plan, warnings }, timings })
    }
}

/// The bound, and the certificate's own word for it.
fn proven_bound(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    stop: &dyn Stop,
) -> Result<Bound, PlanFailure> {
    let bound = bound(topology, collective, shares, stop).map_err(PlanFailure::Bound)?;
    let rejected = |problem: String| PlanFailure::Rejected { check: "certificate", problem };
    let proven = certified_bound(topology, collective, shares, &bound.certificate);
    let proven = proven.map_err(|error| rejected(error.to_string()))?;
    if proven != bound.upper {
        return Err(rejected(format!("the certificate proves {proven}, stated is {}", bound.upper)));
    }
    if bound.lower > bound.upper {
        return Err(rejected(format!("{} is said to be reachable beyond the bound {}", bound.lower, bound.upper)));
    }
    Ok(bound)
}

/// Whether a plan may have trees with roots anywhere.
fn has_choice_of_form(order: &Order) -> bool {
    let is_by_trees = matches!(order.algorithm, Algorithm::Auto | Algorithm::Forest);
    order.kind == CollectiveKind::Allreduce && is_by_trees && order.limits == TreeLimits::NONE
}

/// Ends the work between two stages when nobody waits for it.
fn ask(stop: &dyn Stop) -> Result<(), PlanFailure> {
    if stop.is_requested() { Err(PlanFailure::Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
