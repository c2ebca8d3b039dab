//! A planner that is watched.

use std::sync::Arc;
use std::time::{Duration, Instant};

use canopy_plan::Target;
use canopy_planner::{Note, PlanError, Rejection, Request as Order, ScheduleKey};
use canopy_synth::Stop;
use canopy_topology::Rate;
use parking_lot::Mutex;
use tracing::Span;

use crate::clock;
use crate::failure::PlanFailure;
use crate::jobs::planner::{Planner, Prepared, Produced, Recall, Watch};
use crate::metrics::{Metrics, Value, resident_bytes, size_class, thread_time};
use crate::ops::observed::memory::{Growth, MemoryMeter};
use crate::store::StoreError;
use crate::trace::stage_span;

/// Counts, times and traces syntheses.
pub(crate) struct ObservedPlanner {
    inner: Arc<dyn Planner>,
    metrics: Metrics,
    memory: MemoryMeter,
}

impl ObservedPlanner {
    pub(crate) fn new(inner: Arc<dyn Planner>, metrics: Metrics) -> Self {
        Self { inner, metrics, memory: MemoryMeter::start(resident_bytes) }
    }
}

impl Planner for ObservedPlanner {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        stage_span!("canonicalise").in_scope(|| self.inner.prepare(order, stop))
    }

    fn recall(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Recall, PlanFailure> {
        let watch = Rivals { metrics: &self.metrics, inner: watch };
        let recalled = stage_span!("recall").in_scope(|| self.inner.recall(order, prepared, stop, &watch));
        self.observe_recall(order, &recalled);
        self.count_rejected(&recalled);
        recalled
    }

    fn is_known(&self, schedule: &ScheduleKey) -> bool {
        self.inner.is_known(schedule)
    }

    fn kept(&self) -> Result<(usize, u64), StoreError> {
        self.inner.kept()
    }

    fn forget(&self, schedules: &[ScheduleKey]) {
        self.inner.forget(schedules);
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        let size_class = size_class(prepared.topology.rank_count());
        // Counts as an error unless it says otherwise: a panic passes through here.
        let (started, cpu) = (clock::now(), thread_time());
        let mut run = Run { metrics: &self.metrics, order, size_class, started, cpu, outcome: "error" };
        let stages = Stages::new(&run, watch);
        let memory = self.memory.begin();
        let result = self.inner.produce(order, prepared, stop, &stages);
        self.observe_growth(order, prepared, memory.growth(prepared.memory_bytes));
        drop((memory, stages));
        run.outcome = match &result {
            Ok(_) => "ok",
            Err(failure) => outcome(failure),
        };
        self.count_files(order, &result);
        if let Ok(Produced { plan, .. }) = &result
            && let Some(quality) = &plan.plan.quality
        {
            let labels = [("algorithm", order.algorithm.name().into()), ("collective", order.kind.name().into())];
            self.metrics.measured(
                "canopy_plan_quality_ratio",
                &labels,
                quality.optimality.as_ref().map_or(0.0, |optimality| optimality.value),
            );
        }
        self.count_rejected(&result);
        result
    }
}

impl ObservedPlanner {
    fn observe_recall(&self, order: &Order, result: &Result<Recall, PlanFailure>) {
        let outcome = match result {
            Ok(Recall::Made(_)) => "made",
            Ok(Recall::Unknown(_)) => "unknown",
            Err(failure) => outcome(failure),
        };
        let labels = [("algorithm", order.algorithm.name().into()), ("outcome", outcome.into())];
        self.metrics.count("canopy_recall_total", &labels);
    }

    fn observe_growth(&self, order: &Order, prepared: &Prepared, growth: Option<Growth>) {
        let Some(growth) = growth else { return };
        let algorithm = order.algorithm.name();
        self.metrics.measured("canopy_job_memory_ratio", &[("algorithm", algorithm.into())], growth.ratio());
        if growth.is_underestimated() {
            self.metrics.count("canopy_job_memory_underestimated_total", &[("algorithm", algorithm.into())]);
            let Growth { found, estimate } = growth;
            tracing::warn!(plan = %prepared.key, algorithm, found, estimate, "a job took more memory than was estimated");
        }
    }

    /// Counts a plan that was made, with or without a search, and failed a check.
    fn count_rejected<T>(&self, result: &Result<T, PlanFailure>) {
        if let Err(PlanFailure::Planning(PlanError::Rejected { check, .. })) = result {
            self.metrics.count("canopy_verifier_failures_total", &[("check", (*check).into())]);
        }
    }

    fn count_files(&self, order: &Order, result: &Result<Produced, PlanFailure>) {
        let labels = |output: &Target, outcome: &'static str| {
            let [format, profile] = file_labels(output);
            [format, profile, ("outcome", outcome.into())]
        };
        match result {
            Ok(produced) => {
                for (output, artifact) in order.outputs.iter().zip(&produced.plan.plan.artifacts) {
                    let labels = labels(output, "ok");
                    self.metrics.count("canopy_export_total", &labels);
                    let bytes = artifact.content.as_ref().map_or(0, |content| content.len());
                    self.metrics.measured("canopy_artifact_bytes", &labels[..2], bytes as f64);
                }
            }
            Err(PlanFailure::Planning(error)) => {
                if let Some(output) = error.output().and_then(|output| order.outputs.get(output)) {
                    self.metrics.count("canopy_export_total", &labels(output, "refused"));
                }
            }
            Err(_) => {}
        }
    }
}

fn file_labels(output: &Target) -> [(&'static str, Value); 2] {
    let format = output.format.name();
    // Of a format with one profile nobody needs to be told.
    let profile = if output.format.profiles().len() > 1 { output.profile } else { "none" };
    [("format", format.into()), ("profile", profile.into())]
}

fn outcome(failure: &PlanFailure) -> &'static str {
    match failure {
        PlanFailure::Stopped => "cancelled",
        PlanFailure::Planning(error) if error.is_cancellation() => "cancelled",
        _ if failure.fault().is_some() => "error",
        _ => "infeasible",
    }
}

/// One synthesis; dropping this counts it.
struct Run<'a> {
    metrics: &'a Metrics,
    order: &'a Order,
    size_class: &'static str,
    started: Instant,
    /// Time on a processor that the thread had had before.
    cpu: Option<Duration>,
    outcome: &'static str,
}

impl Run<'_> {
    /// A stage has ended.
    fn took(&self, stage: &'static str, since: Instant) {
        let algorithm = ("algorithm", self.order.algorithm.name().into());
        let labels = [algorithm, ("stage", stage.into()), ("size_class", self.size_class.into())];
        self.metrics.took("canopy_synthesis_duration_seconds", &labels, clock::now().duration_since(since));
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.took("all", self.started);
        let labels = [("algorithm", self.order.algorithm.name().into()), ("outcome", self.outcome.into())];
        self.metrics.count("canopy_synthesis_total", &labels);
        // A planner computes on the thread it is called from.
        if let Some((before, now)) = self.cpu.zip(thread_time()) {
            self.metrics.spent("canopy_synthesis_cpu_seconds_total", &labels[..1], now.saturating_sub(before));
        }
    }
}

/// Passes reports on, and makes spans and times of the stages that are worth one.
struct Stages<'a> {
    run: &'a Run<'a>,
    inner: &'a dyn Watch,
    /// The caller's span: reports may come from other threads.
    parent: Span,
    current: Mutex<Option<Current>>,
    /// The place of the file that is being written, and since when.
    file: Mutex<Option<(u64, Instant)>>,
}

struct Current {
    stage: &'static str,
    since: Instant,
    _span: Span,
}

impl<'a> Stages<'a> {
    fn new(run: &'a Run<'a>, inner: &'a dyn Watch) -> Self {
        Self { run, inner, parent: Span::current(), current: Mutex::new(None), file: Mutex::new(None) }
    }

    /// The file at this place is begun, which ends the one before it.
    fn begin_file(&self, place: Option<u64>) {
        let mut file = self.file.lock();
        let begun = place.map(|place| (place, clock::now()));
        let Some((place, since)) = std::mem::replace(&mut *file, begun) else { return };
        if let Some(output) = usize::try_from(place).ok().and_then(|place| self.run.order.outputs.get(place)) {
            let time = clock::now().duration_since(since);
            self.run.metrics.took("canopy_export_duration_seconds", &file_labels(output), time);
        }
    }

    fn enter(&self, stage: Option<&'static str>) {
        let mut current = self.current.lock();
        if current.as_ref().map(|current| current.stage) == stage {
            return;
        }
        if let Some(ended) = current.take() {
            self.run.took(ended.stage, ended.since);
        }
        *current = stage.map(|stage| {
            let span = self.parent.in_scope(|| match stage {
                "bound" => stage_span!("bound"),
                "verify" => stage_span!("verify"),
                "lower" => stage_span!("lower"),
                _ => stage_span!("solve"),
            });
            Current { stage, since: clock::now(), _span: span }
        });
    }
}

impl Drop for Stages<'_> {
    fn drop(&mut self) {
        self.begin_file(None);
        self.enter(None);
    }
}

impl Watch for Stages<'_> {
    fn stage(&self, stage: &'static str, done: u64, total: u64) {
        self.begin_file((stage == "lower").then_some(done));
        self.enter(Some(match stage {
            "bound" => "bound",
            "check" => "verify",
            "lower" => "lower",
            // A synthesizer's own stages are the inside of the solution.
            _ => "solve",
        }));
        self.inner.stage(stage, done, total);
    }

    fn bound(&self, algbw: &Rate) {
        self.inner.bound(algbw);
    }

    fn incumbent(&self, algbw: &Rate) {
        self.inner.incumbent(algbw);
    }

    fn note(&self, note: Note<'_>) {
        count_rival(self.run.metrics, note);
        self.inner.note(note);
    }
}

/// Passes reports on, and counts rejected rivals: plans are compared without a search, too.
struct Rivals<'a> {
    metrics: &'a Metrics,
    inner: &'a dyn Watch,
}

impl Watch for Rivals<'_> {
    fn stage(&self, stage: &'static str, done: u64, total: u64) {
        self.inner.stage(stage, done, total);
    }

    fn bound(&self, algbw: &Rate) {
        self.inner.bound(algbw);
    }

    fn incumbent(&self, algbw: &Rate) {
        self.inner.incumbent(algbw);
    }

    fn note(&self, note: Note<'_>) {
        count_rival(self.metrics, note);
        self.inner.note(note);
    }
}

fn count_rival(metrics: &Metrics, note: Note<'_>) {
    if let Note::Rejected(Rejection { algorithm, reason, .. }) = note {
        metrics
            .count("canopy_rivals_rejected_total", &[("algorithm", (*algorithm).into()), ("reason", (*reason).into())]);
    }
}

#[cfg(test)]
mod tests {
    use canopy_schedule::CollectiveKind;
    use canopy_synth::Never;
    use canopy_topology::TopologyLimits;

    use super::*;
    use crate::jobs::pipeline::Pipeline;

    /// Refuses a rival, and its own plan.
    struct Refusing(Pipeline);

    impl Planner for Refusing {
        fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
            self.0.prepare(order, stop)
        }

        fn recall(&self, _: &Order, _: &Prepared, _: &dyn Stop, watch: &dyn Watch) -> Result<Recall, PlanFailure> {
            watch.note(Note::Rejected(&Rejection { algorithm: "tacos", reason: "meaning", problem: String::new() }));
            Err(PlanError::Rejected { check: "load", problem: String::new() }.into())
        }

        fn produce(
            &self,
            order: &Order,
            prepared: &Prepared,
            stop: &dyn Stop,
            watch: &dyn Watch,
        ) -> Result<Produced, PlanFailure> {
            self.recall(order, prepared, stop, watch)?;
            unreachable!("it is refused")
        }
    }

    struct Unwatched;

    impl Watch for Unwatched {
        fn stage(&self, _: &'static str, _: u64, _: u64) {}
        fn bound(&self, _: &Rate) {}
        fn incumbent(&self, _: &Rate) {}
    }

    #[test]
    fn what_is_refused_counts_with_and_without_a_search() {
        let metrics = Metrics::on();
        let inner = Arc::new(Refusing(Pipeline::new(TopologyLimits::STANDARD)));
        let planner = ObservedPlanner::new(inner, metrics.clone());
        let order = Order::on("ring:4", CollectiveKind::Allgather);
        let prepared = planner.prepare(&order, &Never).unwrap();
        let counts = |expected: u32| {
            let page = metrics.render();
            for line in [
                format!("canopy_verifier_failures_total{{check=\"load\"}} {expected}\n"),
                format!("canopy_rivals_rejected_total{{algorithm=\"tacos\",reason=\"meaning\"}} {expected}\n"),
            ] {
                assert!(page.contains(&line), "{line}{page}");
            }
        };
        planner.recall(&order, &prepared, &Never, &Unwatched).unwrap_err();
        counts(1);
        planner.produce(&order, &prepared, &Never, &Unwatched).unwrap_err();
        counts(2);
    }
}
