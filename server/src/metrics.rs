//! What a server counts, for Prometheus.
//!
//! Each server has a registry of its own. Names and labels are fixed here; label values are words of this program, or the
//! first ones that callers choose (`bounded.rs`), so that their number is bounded. Figures that others keep anyway, such as the length of the
//! queue, are asked for when a page is drawn.

mod bounded;
mod exemplars;
mod names;
mod open_metrics;
mod process;
mod seconds;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder as _, SharedString};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tonic::Code;

use self::bounded::Bounded;
use self::exemplars::Exemplars;
pub(crate) use self::open_metrics::CONTENT_TYPE as OPEN_METRICS;
pub(crate) use names::size_class;
pub(crate) use process::{resident_bytes, thread_time};

/// Counts, times and sizes of one server; clones share them. [`Metrics::off`] costs nothing and shows nothing.
#[derive(Clone, Default)]
pub(crate) struct Metrics {
    registry: Option<Arc<Registry>>,
}

struct Registry {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    seconds: seconds::Seconds,
    exemplars: Exemplars,
    tenants: Bounded,
    sources: Bounded,
}

/// Most tenants, and most sources of faults, that are told apart.
const TENANTS_MAX: usize = 100;
const SOURCES_MAX: usize = 32;

/// What the cache had to do with a refusal that was remembered.
pub(crate) const NEGATIVE: &str = "negative";

/// A label: its name, and a value out of a bounded set.
type Pair = (&'static str, SharedString);

/// How long something took, and the id of the call's trace if it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) time: Duration,
    pub(crate) trace_id: Option<u128>,
}

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);

impl Metrics {
    /// Nothing is counted.
    pub(crate) fn off() -> Self {
        Self::default()
    }

    /// A registry of its own.
    pub(crate) fn on() -> Self {
        let mut builder = PrometheusBuilder::new();
        for (name, _, buckets) in names::HISTOGRAMS {
            builder = builder
                .set_buckets_for_metric(Matcher::Full((*name).to_owned()), buckets)
                .expect("no list of buckets is empty");
        }
        let recorder = builder.build_recorder();
        for (name, help) in names::COUNTERS {
            recorder.describe_counter(KeyName::from_const_str(name), None, (*help).into());
        }
        for (name, help) in names::GAUGES {
            recorder.describe_gauge(KeyName::from_const_str(name), None, (*help).into());
        }
        for (name, help, _) in names::HISTOGRAMS {
            recorder.describe_histogram(KeyName::from_const_str(name), None, (*help).into());
        }
        let handle = recorder.handle();
        let (seconds, exemplars) = (seconds::Seconds::default(), Exemplars::default());
        let (tenants, sources) = (Bounded::new(TENANTS_MAX), Bounded::new(SOURCES_MAX));
        let metrics =
            Self { registry: Some(Arc::new(Registry { recorder, handle, seconds, exemplars, tenants, sources })) };
        let build = [
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("revision", env!("CANOPY_BUILD_REVISION").into()),
            ("rustc", env!("CANOPY_BUILD_RUSTC").into()),
        ];
        metrics.set("canopy_build_info", &build, 1.0);
        metrics
    }

    /// The page.
    pub(crate) fn render(&self) -> String {
        let Some(registry) = &self.registry else {
            return String::new();
        };
        let mut page = registry.handle.render();
        registry.seconds.render(&mut page, names::help);
        process::render(&mut page);
        page
    }

    /// The page in the OpenMetrics format, with the traces of calls.
    pub(crate) fn render_open_metrics(&self) -> String {
        let page = self.render();
        self.registry.as_ref().map_or_else(String::new, |registry| open_metrics::rewritten(&page, &registry.exemplars))
    }

    /// Folds recorded times into their buckets, so that they do not pile up where nobody asks for the page.
    pub(crate) fn upkeep(&self) {
        if let Some(registry) = &self.registry {
            registry.handle.run_upkeep();
        }
    }

    /// A request for a plan has ended; `cache` is the name of the outcome in the protocol, [`NEGATIVE`] for a refusal that
    /// was remembered, empty if there is none.
    /// `ranks` is the size of the topology, 0 if unknown.
    pub(crate) fn plan_request(
        &self,
        collective: &'static str,
        cache: &'static str,
        code: Code,
        ranks: u32,
        time: Timed,
    ) {
        let collective = if collective.is_empty() { "unknown" } else { collective };
        let cache = match cache {
            "CACHE_OUTCOME_HIT" => "hit",
            "CACHE_OUTCOME_JOINED" => "joined",
            "CACHE_OUTCOME_MISS" => "miss",
            NEGATIVE => "negative",
            _ => "none",
        };
        let labels = [("collective", collective.into()), ("cache", cache.into()), ("outcome", outcome(code).into())];
        self.count("canopy_plan_requests_total", &labels);
        if code == Code::Ok {
            let labels = [("cache", cache.into()), ("size_class", size_class(ranks).into())];
            self.took_in_call("canopy_plan_latency_seconds", &labels, time);
        }
    }

    /// A plan was sent in place of the one that was asked for. `reason`: one of the reasons of refusals.
    pub(crate) fn plan_fallback(&self, reason: &str) {
        self.count("canopy_plan_fallbacks_total", &[("reason", reason.to_ascii_lowercase().into())]);
    }

    /// A message has passed, `in` or `out`.
    pub(crate) fn message_bytes(&self, direction: &'static str, bytes: u64) {
        self.measured("canopy_rpc_message_bytes", &[("direction", direction.into())], bytes as f64);
    }

    /// A tenant had a planning worker for this time.
    pub(crate) fn planned_for(&self, tenant: &str, time: Duration) {
        if let Some(registry) = &self.registry {
            self.spent("canopy_tenant_planning_seconds_total", &[("tenant", registry.tenants.label(tenant))], time);
        }
    }

    /// A fault was reported, of an element of this kind by this source.
    pub(crate) fn fault_event(&self, outcome: &'static str, kind: &'static str, source: &str) {
        if let Some(registry) = &self.registry {
            let source = ("source", registry.sources.label(source));
            self.count("canopy_fault_events_total", &[("outcome", outcome.into()), ("kind", kind.into()), source]);
        }
    }

    /// One more.
    pub(crate) fn count(&self, name: &'static str, labels: &[Pair]) {
        if let Some(registry) = &self.registry {
            registry.recorder.register_counter(&key(name, labels), &METADATA).increment(1);
        }
    }

    /// Counts nothing yet, so that the first one is seen to come.
    pub(crate) fn none_yet(&self, name: &'static str, labels: &[Pair]) {
        self.count_is(name, labels, 0);
    }

    /// A count that somebody else keeps.
    pub(crate) fn count_is(&self, name: &'static str, labels: &[Pair], count: u64) {
        if let Some(registry) = &self.registry {
            registry.recorder.register_counter(&key(name, labels), &METADATA).absolute(count);
        }
    }

    /// A figure of now.
    pub(crate) fn set(&self, name: &'static str, labels: &[Pair], value: f64) {
        if let Some(registry) = &self.registry {
            registry.recorder.register_gauge(&key(name, labels), &METADATA).set(value);
        }
    }

    /// One more, until the result is dropped.
    pub(crate) fn going_on(&self, name: &'static str, labels: &[Pair]) -> GoingOn {
        GoingOn(self.registry.as_ref().map(|registry| {
            let gauge = registry.recorder.register_gauge(&key(name, labels), &METADATA);
            gauge.increment(1.0);
            gauge
        }))
    }

    /// How long something took.
    pub(crate) fn took(&self, name: &'static str, labels: &[Pair], time: Duration) {
        self.measured(name, labels, time.as_secs_f64());
    }

    /// How long something took in a call, which the page may name.
    pub(crate) fn took_in_call(&self, name: &'static str, labels: &[Pair], Timed { time, trace_id }: Timed) {
        self.took(name, labels, time);
        if let (Some(registry), Some(trace_id)) = (&self.registry, trace_id) {
            registry.exemplars.note(name, labels, time.as_secs_f64(), trace_id);
        }
    }

    /// More seconds.
    pub(crate) fn spent(&self, name: &'static str, labels: &[Pair], time: Duration) {
        if let Some(registry) = &self.registry {
            registry.seconds.add(name, labels, time);
        }
    }

    /// How much something was.
    pub(crate) fn measured(&self, name: &'static str, labels: &[Pair], value: f64) {
        if let Some(registry) = &self.registry {
            registry.recorder.register_histogram(&key(name, labels), &METADATA).record(value);
        }
    }
}

/// Counts something that goes on; dropping this ends it.
pub(crate) struct GoingOn(Option<metrics::Gauge>);

impl Drop for GoingOn {
    fn drop(&mut self) {
        if let Some(gauge) = &self.0 {
            gauge.decrement(1.0);
        }
    }
}

/// What came of a request for a plan, as a label.
pub(crate) const fn outcome(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::DeadlineExceeded => "timeout",
        Code::ResourceExhausted | Code::Unavailable => "busy",
        Code::Internal | Code::Unknown | Code::DataLoss => "error",
        _ => "refused",
    }
}

fn key(name: &'static str, labels: &[Pair]) -> Key {
    let labels: Vec<Label> = labels.iter().map(|(name, value)| Label::new(*name, value.clone())).collect();
    Key::from_parts(name, labels)
}
