//! What published baselines take for several collectives at once, beside plans that were made in common.

use std::num::NonZeroU64;

use canopy_baselines::{Tenant, queued_together_ps};
use canopy_proto::Exact as _;
use canopy_proto::v1::{JointItem, PlanBundleResponse};
use canopy_schedule::Collective;
use canopy_synth::Never;
use canopy_topology::{Rank, Ratio};

use super::super::super::simulate::published::{Baseline, BaselineTime, composition};
use crate::args;
use crate::exit::{Failure, words};
use crate::input::{self, Source};
use crate::progress::ProgressLine;
use crate::request::{self, missing};

/// Picoseconds of a second.
const PICOS: f64 = 1e12;

/// Times of the baselines that are asked for.
///
/// # Errors
/// The network is not here; a collective that one of them does not run.
pub(super) fn times(
    topology: &str,
    baselines: &[Baseline],
    reply: &PlanBundleResponse,
) -> Result<Vec<BaselineTime>, Failure> {
    if baselines.is_empty() {
        return Ok(Vec::new());
    }
    if !matches!(input::source(topology)?, Source::Here(_)) {
        return Err(Failure::input("`--published` runs messages on a network that is here, not at a server")
            .help("name an expression or a file"));
    }
    let joint = reply.joint.as_ref().ok_or_else(|| missing("the plans in common"))?;
    let seconds = &joint.times.as_ref().ok_or_else(|| missing("the times"))?.seconds;
    let seconds: Ratio = seconds.read().ok_or_else(|| Failure::fault("the time of the plans is no fraction"))?;
    let (network, composition) = (input::topology(topology)?, composition(topology)?);
    let tenants: Vec<Tenant> = joint.items.iter().map(tenant).collect::<Result<_, _>>()?;
    let line = ProgressLine::start();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "for display, at least 0")]
    let plan_ps = (seconds.to_f64() * PICOS).round() as u64;
    let time = |&baseline: &Baseline| {
        line.working(format!("running all messages of {}", baseline.name()));
        let model = (composition.as_ref(), baseline.algorithm());
        let time_ps = queued_together_ps(&network, model, &tenants, 0, &Never)
            .map_err(|error| Failure::input(format!("`--published {}`: {}", baseline.name(), words(&error))))?;
        Ok(BaselineTime::beside(plan_ps, baseline, time_ps))
    };
    baselines.iter().map(time).collect()
}

/// A collective of the answer.
fn tenant(item: &JointItem) -> Result<Tenant, Failure> {
    let plan = item.plan.as_ref().ok_or_else(|| missing("a plan"))?;
    let place = plan.joint.as_ref().ok_or_else(|| missing("a plan's place among the others"))?;
    let spec = plan.collective.as_ref().ok_or_else(|| missing("a collective"))?;
    let name = request::collective_name(spec.kind()).ok_or_else(|| missing("a collective"))?;
    let kind = args::collective_kind(name).map_err(Failure::fault)?;
    let members: Vec<Rank> = place.ranks.iter().copied().map(Rank::new).collect();
    let rank_count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    let collective = Collective::new(kind, spec.root.map(Rank::new), rank_count);
    let positive = |number| NonZeroU64::new(number).ok_or_else(|| missing("a size or a number of chunks"));
    Ok(Tenant {
        collective: collective.map_err(|error| Failure::fault(words(&error)))?,
        members,
        chunks: positive(plan.chunks_per_rank)?,
        size_bytes: positive(place.size_bytes)?,
    })
}

/// A line for each.
pub(super) fn readable(times: &[BaselineTime]) -> String {
    let line = |time: &BaselineTime| {
        let micros = time.time_ps as f64 / 1e6;
        format!("\n{:<11} {micros:.3} µs, {:.2} times as long", time.baseline.name(), time.times_as_long)
    };
    times.iter().map(line).collect()
}
