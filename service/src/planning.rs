//! A plan for one request, looked up in a data folder, or made and kept there.
//!
//! The folder is open while something is read from it or written to it, and closed during a search: searches of several
//! processes on one folder run at the same time, and each keeps what it finds.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use canopy_plan::PlanFile;
use canopy_planner::{
    Context, PlanError, PlanKey, Planned, Planner, Prepared, Puncture, Recalled, Request, RequestKey, ScheduleKey,
    Schedules, Timings, Warning, Watch, chain,
};
use canopy_proto::v1;
use canopy_proto::v1::topology_source::Source;
use canopy_store::schedules::{ScheduleOptions, StoredSchedules, stored_under};
use canopy_store::{Durability, Lookup, Opened, RecordOptions, Records, Space, StoreError, clock, open_store};
use canopy_synth::Stop;
use canopy_topology::Topology;
use canopy_wire as wire;
use canopy_wire::StoredPlan;
use parking_lot::Mutex;

use crate::asked;
use crate::error::ServiceError;
use crate::limits::Limits;
use crate::turns::{PAUSE, Turn};

/// Longest wait for another process that has the folder open in the middle of a request.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Plans with a data folder.
#[derive(Debug)]
pub struct PlanService {
    folder: PathBuf,
    limits: Limits,
    planner: Planner,
}

/// The end of a request that is answered with a `T`.
#[derive(Debug)]
pub enum Outcome<T> {
    /// The answer.
    Answered(T),
    /// A server has to answer it.
    NeedsServer(ServerReason),
}

/// Why a server has to answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerReason {
    /// Its network is stored, under an id or as a part of a cluster.
    StoredNetwork,
    /// Faults are known in the folder, and the request is to be planned around those of its network.
    KnownFaults,
    /// It asks for another plan where its own does not come in time.
    Fallback,
}

/// A plan and its circumstances.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The plan with its files.
    pub plan: Arc<StoredPlan>,
    /// Whether it was stored, or made of a stored schedule.
    pub is_hit: bool,
    /// Time for reading the topology and bringing it into canonical order.
    pub canonical_ms: f64,
    /// Time for the stages of planning.
    pub timings: Timings,
    /// Warnings besides those of the plan.
    pub warnings: Vec<Warning>,
    /// The healthy network and the faults that the request names.
    pub puncture: Option<Arc<Puncture>>,
}

impl PlanService {
    /// Planning with this data folder, which is made when it is first needed.
    pub fn new(folder: &Path, limits: Limits) -> Self {
        Self { folder: folder.to_owned(), limits, planner: Planner::new(limits.topology) }
    }

    /// Looks the plan up, or makes and keeps it. Blocks; needs a deep stack for deep documents.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process has the folder open: ask its server, or try again soon. Otherwise the
    /// reason why there is no plan; [`PlanError::Stopped`] soon after `stop` is requested.
    pub fn plan(
        &self,
        request: v1::PlanRequest,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Outcome<Box<Answer>>, ServiceError> {
        let accepts_others = ![0, i32::from(v1::OnMiss::Fail)].contains(&request.on_miss);
        if accepts_others || request.minimum_optimality.is_some() {
            return Ok(Outcome::NeedsServer(ServerReason::Fallback));
        }
        let spec = request.spec.unwrap_or_default();
        if let Some(reason) = stated_reason(&spec) {
            return Ok(Outcome::NeedsServer(reason));
        }
        let ignores_faults = ignores_faults(&spec);
        let request = wire::plan_request(spec)?;
        let started = clock::now();
        let prepared = self.planner.prepare(&request, stop)?;
        if prepared.memory_bytes > self.limits.memory_bytes {
            return Err(ServiceError::Memory { needed: prepared.memory_bytes, limit: self.limits.memory_bytes });
        }
        let canonical_ms = clock::millis_since(started);
        let case = Case { request: &request, prepared: &prepared, stop, watch, canonical_ms };
        let opened = open_store(&self.folder)?;
        if !ignores_faults && has_faults(&opened)? {
            return Ok(Outcome::NeedsServer(ServerReason::KnownFaults));
        }
        if let Some(answer) = self.known(&case, &opened)? {
            return Ok(Outcome::Answered(Box::new(answer)));
        }
        let kept = opened.space(Space::Schedules).keys(None, usize::MAX)?.into_iter().collect();
        drop(opened);
        let Some(turn) = self.turn(&prepared.key, stop)? else { return Err(PlanError::Stopped.into()) };
        if turn.has_waited {
            // The process before has kept it, unless it failed.
            let opened = self.open_patiently(stop)?;
            if let Some(answer) = self.known(&case, &opened)? {
                return Ok(Outcome::Answered(Box::new(answer)));
            }
        }
        let shelf = Shelf { service: self, kept, found: Mutex::default() };
        Ok(Outcome::Answered(Box::new(self.searched(&case, shelf)?)))
    }

    /// The limits of planning.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The reason why a server has to answer a request, if one has to.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub(crate) fn needs_server(&self, request: &v1::PlanSpec) -> Result<Option<ServerReason>, ServiceError> {
        if let Some(reason) = stated_reason(request) {
            return Ok(Some(reason));
        }
        let is_around_faults = !ignores_faults(request) && has_faults(&open_store(&self.folder)?)?;
        Ok(is_around_faults.then_some(ServerReason::KnownFaults))
    }

    /// The plan as far as it needs no search.
    fn known(&self, case: &Case<'_>, opened: &Opened) -> Result<Option<Answer>, ServiceError> {
        let records = self.records(opened);
        if let Some(plan) = stored(&records, case.prepared) {
            return Ok(Some(case.answer(plan, true, Timings::default())));
        }
        let schedules = self.schedules(opened);
        match self.planner.recall(case.request, case.prepared, case.context(&schedules))? {
            Recalled::Unknown(_) => Ok(None),
            Recalled::Made(planned) => {
                let mut answer = case.made(*planned);
                // The schedule survives a crash of the machine, and makes the plan again.
                answer.keep(case, &records, Durability::Lazy);
                Ok(Some(answer))
            }
        }
    }

    /// The plan of a search, which is kept with the schedules that were found.
    fn searched(&self, case: &Case<'_>, shelf: Shelf<'_>) -> Result<Answer, ServiceError> {
        let planned = self.planner.produce(case.request, case.prepared, case.context(&shelf))?;
        let mut answer = case.made(planned);
        match self.open_patiently(case.stop) {
            Ok(opened) => {
                let schedules = self.schedules(&opened);
                for (key, plan) in &shelf.found.into_inner() {
                    schedules.put(key, plan);
                }
                answer.keep(case, &self.records(&opened), Durability::Synced);
            }
            Err(error) => answer.note_not_stored(&error),
        }
        Ok(answer)
    }

    /// Waits until no other process searches for the plan; `None` if told to stop.
    fn turn(&self, key: &PlanKey, stop: &dyn Stop) -> Result<Option<Turn>, StoreError> {
        Turn::take(&self.folder, key, stop).map_err(|source| StoreError::Io {
            directory: self.folder.display().to_string(),
            doing: "waiting for another process",
            source,
        })
    }

    /// Opens the folder, waiting for a process that has it open for a moment.
    fn open_patiently(&self, stop: &dyn Stop) -> Result<Opened, StoreError> {
        let give_up = clock::now() + PATIENCE;
        loop {
            match open_store(&self.folder) {
                Err(StoreError::InUse { .. }) if clock::now() < give_up && !stop.is_requested() => thread::sleep(PAUSE),
                opened => return opened,
            }
        }
    }

    fn records(&self, opened: &Opened) -> Records {
        let options = RecordOptions { bytes_max: self.limits.store_bytes, ..RecordOptions::STANDARD };
        Records::with_pins(Arc::clone(opened.space(Space::Plans)), Arc::clone(&opened.pins), options)
    }

    fn schedules(&self, opened: &Opened) -> StoredSchedules {
        let options = ScheduleOptions::beside(self.limits.store_bytes, self.limits.topology);
        StoredSchedules::new(Arc::clone(opened.space(Space::Schedules)), options)
    }
}

/// The reason why a server has to answer, as far as the request alone says it.
fn stated_reason(request: &v1::PlanSpec) -> Option<ServerReason> {
    let source = request.topology.as_ref().and_then(|topology| topology.source.as_ref());
    let base = match source {
        Some(Source::Punctured(punctured)) => punctured.base.as_ref().and_then(|base| base.source.as_ref()),
        source => source,
    };
    matches!(base, Some(Source::Name(_) | Source::Cluster(_))).then_some(ServerReason::StoredNetwork)
}

/// Whether a request is to be planned as if nothing was broken.
fn ignores_faults(request: &v1::PlanSpec) -> bool {
    request.fault_policy == i32::from(v1::FaultPolicy::Ignore)
}

/// Whether the folder knows of any faults.
fn has_faults(opened: &Opened) -> Result<bool, StoreError> {
    Ok(!opened.space(Space::Faults).keys(None, 1)?.is_empty())
}

/// The stored plan. A record that cannot be read costs a search, not the answer.
fn stored(records: &Records, prepared: &Prepared) -> Option<Arc<StoredPlan>> {
    match records.get(&prepared.key) {
        Ok(Lookup::Found(plan)) => Some(plan),
        Ok(Lookup::Missing | Lookup::Quarantined(_)) => None,
        Err(error) => {
            tracing::error!(plan = %prepared.key, error = chain(&error), "the store could not be read");
            None
        }
    }
}

/// A request that is being answered.
struct Case<'a> {
    request: &'a Request,
    prepared: &'a Prepared,
    stop: &'a dyn Stop,
    watch: &'a dyn Watch,
    canonical_ms: f64,
}

impl<'a> Case<'a> {
    fn context(&self, schedules: &'a dyn Schedules) -> Context<'a> {
        Context { stop: self.stop, watch: self.watch, clock: &clock::elapsed_millis, schedules }
    }

    fn answer(&self, plan: Arc<StoredPlan>, is_hit: bool, timings: Timings) -> Answer {
        Answer {
            plan,
            is_hit,
            canonical_ms: self.canonical_ms,
            timings,
            warnings: self.prepared.warnings.clone(),
            puncture: self.prepared.puncture.clone(),
        }
    }

    fn made(&self, planned: Planned) -> Answer {
        let timings = planned.timings;
        let is_recalled = planned.is_recalled;
        let warnings = planned.warnings.clone();
        let mut plan = StoredPlan::new(wire::plan(self.request, planned), warnings);
        plan.plan.provenance.get_or_insert_default().request_key = RequestKey::of(self.request).to_string();
        self.answer(Arc::new(plan), is_recalled, timings)
    }
}

/// Code of the warning that a plan is not kept.
pub const NOT_STORED: &str = "NOT_STORED";

/// The warning that a plan is not kept.
pub fn not_stored() -> Warning {
    Warning::new(NOT_STORED, "the plan could not be stored; the next request computes it again".to_owned())
}

impl Answer {
    /// Keeps the plan. A folder that takes nothing costs a search next time, not the answer.
    fn keep(&mut self, case: &Case<'_>, records: &Records, durability: Durability) {
        let Case { request, prepared, .. } = case;
        let asked = asked::kept(request, prepared);
        if let Err(error) = records.put_asked(&prepared.key, &self.plan, asked, durability) {
            self.note_not_stored(&error);
        }
    }

    fn note_not_stored(&mut self, error: &StoreError) {
        tracing::error!(plan = self.plan.plan.name, error = chain(error), "a plan could not be stored");
        self.warnings.push(not_stored());
    }

    /// The reply of a server with the same answer, files included.
    pub fn reply(&self) -> v1::PlanResponse {
        let cache = if self.is_hit { v1::CacheOutcome::Hit } else { v1::CacheOutcome::Miss };
        let warnings: Vec<Warning> = self.plan.warnings.iter().chain(&self.warnings).cloned().collect();
        v1::PlanResponse {
            plan: Some(self.plan.plan.clone()),
            cache: cache.into(),
            timings: Some(v1::Timings {
                canonical: wire::duration_of_ms(self.canonical_ms),
                ..wire::timings(self.timings)
            }),
            warnings: wire::warnings(&warnings),
            fallback: None,
            puncture: self.puncture.as_deref().map(wire::puncture),
        }
    }
}

/// Schedules during a search: those of the folder, which is opened for each that is read, and those that were found.
#[derive(Debug)]
struct Shelf<'a> {
    service: &'a PlanService,
    /// Keys in the folder when it was looked at.
    kept: HashSet<PlanKey>,
    found: Mutex<HashMap<ScheduleKey, Arc<PlanFile>>>,
}

impl Schedules for Shelf<'_> {
    fn has(&self, key: &ScheduleKey) -> bool {
        self.found.lock().contains_key(key) || self.kept.contains(&stored_under(key))
    }

    fn get(&self, key: &ScheduleKey, normal: &Topology) -> Option<Arc<PlanFile>> {
        if let Some(plan) = self.found.lock().get(key) {
            return Some(Arc::clone(plan));
        }
        // Another process may have it open: finding the schedule again takes less than waiting might.
        let opened = self.kept.contains(&stored_under(key)).then(|| open_store(&self.service.folder).ok()).flatten()?;
        self.service.schedules(&opened).get(key, normal)
    }

    fn put(&self, key: &ScheduleKey, plan: &Arc<PlanFile>) {
        self.found.lock().insert(*key, Arc::clone(plan));
    }

    fn quarantine(&self, key: &ScheduleKey) {
        self.found.lock().remove(key);
        if let Ok(opened) = open_store(&self.service.folder) {
            self.service.schedules(&opened).quarantine(key);
        }
    }
}

#[cfg(test)]
mod tests;
