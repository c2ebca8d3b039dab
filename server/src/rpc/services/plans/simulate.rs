//! `Plans.SimulatePlan`: how long a stored plan takes, and when its links are busy.

use std::sync::Arc;

use canopy_plan::Format;
use canopy_planner::{Recent, Simulation, SimulationError, SimulationQuestion, Timeline, chain, simulate_file};
use canopy_proto::v1::{
    Artifact, LinkActivity, SimulatePlanRequest, SimulatePlanResponse, SimulatedSize, SimulatedTimeline,
    SimulationModel, Warning,
};
use canopy_simulate::{ALPHA_NS_USUAL, PIECE_BYTES_USUAL, Reached, part_start_ps};
use canopy_topology::{Latency, TopologyLimits};
use canopy_wire::fraction;
use canopy_wire::{StoredPlan, format_of_wire};
use parking_lot::Mutex;
use prost::Message as _;
use tonic::{Request, Status};

use crate::clock;
use crate::failure::CallFailure;
use crate::rpc::shared::call_pool::{self, CallPool};
use crate::rpc::shared::rank_map;
use crate::rpc::shared::status::call_status;
use crate::store::Records;
use crate::tenant::Viewer;

const METHOD: &str = "SimulatePlan";
/// Bytes that a simulation takes, roughly, for each byte of the plan file, and at most: about 1 GB.
const FILE_FACTOR: u64 = 32;
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Bytes of answers that are kept for equal questions: some hundred.
const KEPT_BYTES: u64 = 1 << 20;
/// Thousandths of a part of the time.
const WHOLE: u64 = 1_000;

/// Where simulations are computed, with the latest answers; clones share both.
#[derive(Clone)]
pub(super) struct Simulations {
    /// Where plans are looked up and simulated.
    pool: CallPool,
    known: Arc<Mutex<Recent<Key, Arc<SimulatePlanResponse>>>>,
}

/// The digest of a plan file, and what is asked of it: equal keys have equal answers.
type Key = (String, SimulationQuestion);

impl Simulations {
    pub(super) fn new(pool: &CallPool) -> Self {
        Self { pool: pool.clone(), known: Arc::new(Mutex::new(Recent::new(KEPT_BYTES))) }
    }

    /// Answers the call: at once, where the answer is known or the question does not fit, else when there is a place. Calls
    /// that wait for one hold no plan.
    pub(super) async fn simulate_plan(
        &self,
        request: Request<SimulatePlanRequest>,
        limits: TopologyLimits,
    ) -> Result<SimulatePlanResponse, Status> {
        let arrived = clock::now();
        let (headers, _, request) = request.into_parts();
        let (asked, known, viewer) = (request.clone(), Arc::clone(&self.known), Viewer::of(&headers));
        let kept = self.pool.work(&headers, move |records| {
            let plan = stored(records, &viewer?, &asked)?;
            let key = (json_file(&plan)?.sha256.clone(), question(&plan, asked)?);
            Ok(known.lock().get(&key))
        });
        match kept.await {
            Ok(None) => {}
            Ok(Some(answer)) => {
                call_pool::log(METHOD, arrived, None);
                return Ok(Arc::unwrap_or_clone(answer));
            }
            Err(failure) => {
                call_pool::log(METHOD, arrived, Some(&failure));
                return Err(call_status(&failure));
            }
        }
        let (known, viewer) = (Arc::clone(&self.known), Viewer::of(&headers));
        let found = self.pool.compute(METHOD, &headers, move |records, seat| {
            let plan = stored(records, &viewer?, &request)?;
            let file = json_file(&plan)?;
            let key = (file.sha256.clone(), question(&plan, request)?);
            // Another caller may have asked the same meanwhile.
            if let Some(answer) = known.lock().get(&key) {
                return Ok(answer);
            }
            let content = file.content.as_deref().unwrap_or_default();
            let bytes = (content.len() as u64).saturating_mul(FILE_FACTOR);
            seat.take_memory(bytes.min(MEMORY_BYTES_MAX))?;
            let found =
                simulate_file(content, &key.1, &limits, &|| seat.is_over()).map_err(|error| failed(&plan, error))?;
            let answer = Arc::new(on_the_wire(&found, key.1.alpha));
            known.lock().keep(key, Arc::clone(&answer), answer.encoded_len() as u64);
            Ok(answer)
        });
        found.await.map(Arc::unwrap_or_clone)
    }
}

/// The plan that is asked about, if it is for the caller's devices.
fn stored(records: &Records, viewer: &Viewer, request: &SimulatePlanRequest) -> Result<Arc<StoredPlan>, CallFailure> {
    let plan = call_pool::plan_of(records, viewer, &request.name, false)?;
    rank_map::require(&plan.plan, request.placement.clone())?;
    Ok(plan)
}

/// A plan was judged before it was stored, so its file can be read and simulated.
fn failed(stored: &StoredPlan, error: SimulationError) -> CallFailure {
    match error {
        SimulationError::File(_) | SimulationError::Compile(_) | SimulationError::Rule(_) | SimulationError::Run(_) => {
            CallFailure::Broken { what: format!("{}: {}", stored.plan.name, chain(&error)) }
        }
        error => error.into(),
    }
}

/// What is asked, if it fits the plan.
fn question(stored: &StoredPlan, request: SimulatePlanRequest) -> Result<SimulationQuestion, CallFailure> {
    let broken = || CallFailure::Broken { what: format!("{}: it does not say what it is valid for", stored.plan.name) };
    let valid = stored.plan.valid_for.as_ref().ok_or_else(broken)?;
    let question = SimulationQuestion {
        sizes: request.sizes_bytes,
        timeline: request.timeline_size_bytes,
        alpha: Latency::from_nanos(request.alpha_ns.unwrap_or(ALPHA_NS_USUAL)),
        valid: valid.size_bytes_min.max(1)..=valid.size_bytes_max,
    };
    question.check()?;
    Ok(question)
}

/// The file that says which transfers on which network a plan is made from.
fn json_file(stored: &StoredPlan) -> Result<&Artifact, CallFailure> {
    let file = stored.plan.artifacts.iter().find(|file| format_of_wire(file.format) == Some(Format::Json));
    file.ok_or_else(|| CallFailure::NotSimulated { plan: stored.plan.name.clone() })
}

fn on_the_wire(found: &Simulation, alpha: Latency) -> SimulatePlanResponse {
    let left_out = found.left_out.map(|size| Warning {
        code: "SIZES_LEFT_OUT".to_owned(),
        text: format!("sizes of {size} bytes and more take too long to simulate at a server; run `canopy simulate`"),
    });
    SimulatePlanResponse {
        sizes: found.sizes.iter().map(size).collect(),
        bound: fraction(&found.bound),
        busbw_bound: fraction(&found.busbw_bound),
        model: Some(SimulationModel { alpha_ns: alpha.nanos(), piece_bytes: PIECE_BYTES_USUAL }),
        timeline: found.timeline.as_ref().map(timeline),
        warnings: left_out.into_iter().collect(),
    }
}

fn size(reached: &Reached) -> SimulatedSize {
    SimulatedSize {
        size_bytes: reached.size_bytes,
        time_ps: reached.time_ps,
        least_ps: reached.least_ps,
        limit_ps: reached.limit_ps,
        algbw: fraction(&reached.algbw),
        busbw: fraction(&reached.busbw),
        of_bound: reached.of_bound.as_ref().and_then(fraction),
        messages: reached.message_count,
    }
}

fn timeline(found: &Timeline) -> SimulatedTimeline {
    let links = found.links.iter().map(|link| {
        let [from, to] = link.ends.clone();
        let part = |(part, &busy_ps): (u32, &u64)| {
            let start = |part: u32| part_start_ps(found.time_ps, part, found.parts);
            thousandths(busy_ps, start(part.saturating_add(1)).saturating_sub(start(part)))
        };
        LinkActivity {
            from,
            to,
            bytes: link.link_use.bytes,
            busy_ps: link.link_use.busy_ps,
            critical: link.is_critical,
            busy: (0..).zip(&link.busy_ps).map(part).collect(),
        }
    });
    SimulatedTimeline {
        size_bytes: found.size_bytes,
        time_ps: found.time_ps,
        parts: found.parts.get(),
        links: links.collect(),
        links_used: u32::try_from(found.links_used).unwrap_or(u32::MAX),
    }
}

/// A part of a time in thousandths of it, rounded up so that something is never nothing.
fn thousandths(busy_ps: u64, of_ps: u64) -> u32 {
    let found = (u128::from(busy_ps) * u128::from(WHOLE)).div_ceil(of_ps.max(1).into());
    u32::try_from(found).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousandths_are_rounded_up() {
        for (busy, of, expected) in [(0, 10, 0), (1, 1_000_000, 1), (5, 10, 500), (10, 10, 1_000), (0, 0, 0)] {
            assert_eq!(thousandths(busy, of), expected, "{busy} of {of}");
        }
        assert_eq!(thousandths(u64::MAX, u64::MAX), 1_000);
    }
}
