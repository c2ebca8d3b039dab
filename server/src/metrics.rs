//! What a server counts, for Prometheus.
//!
//! Each server has a registry of its own. Names and labels are fixed here; label values are words of this program, or the
//! first ones that callers choose (`bounded.rs`), so that their number is bounded. Figures that others keep anyway, such as the length of the
//! queue, are asked for when a page is drawn.

mod bounded;
mod families;
mod names;
mod process;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::{prometheus_text, text};
use tonic::Code;

use self::bounded::Bounded;
use self::families::{Families, Gauge};
pub(crate) use names::size_class;
pub(crate) use process::{resident_bytes, thread_time};

/// Content type of the page in the older format.
pub(crate) const TEXT: &str = prometheus_text::CONTENT_TYPE;
/// Content type of the page in the OpenMetrics format.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts, times and sizes of one server; clones share them. [`Metrics::off`] costs nothing and shows nothing.
#[derive(Clone, Default)]
pub(crate) struct Metrics {
    registry: Option<Arc<Registry>>,
}

struct Registry {
    families: Families,
    tenants: Bounded,
    sources: Bounded,
}

/// Most tenants, and most sources of faults, that are told apart.
const TENANTS_MAX: usize = 100;
const SOURCES_MAX: usize = 32;

/// What the cache had to do with a refusal that was remembered.
pub(crate) const NEGATIVE: &str = "negative";

/// Value of a label, out of a bounded set.
pub(crate) type Value = Cow<'static, str>;

/// A label: its name, and its value.
type Pair = (&'static str, Value);

/// How long something took, and the id of the call's trace if it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) time: Duration,
    pub(crate) trace_id: Option<u128>,
}

impl Metrics {
    /// Nothing is counted.
    pub(crate) fn off() -> Self {
        Self::default()
    }

    /// A registry of its own.
    pub(crate) fn on() -> Self {
        let (tenants, sources) = (Bounded::new(TENANTS_MAX), Bounded::new(SOURCES_MAX));
        let registry = Registry { families: Families::declared(), tenants, sources };
        let metrics = Self { registry: Some(Arc::new(registry)) };
        let build = [
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("revision", env!("CANOPY_BUILD_REVISION").into()),
            ("rustc", env!("CANOPY_BUILD_RUSTC").into()),
        ];
        metrics.set("canopy_build_info", &build, 1.0);
        metrics
    }

    /// The page in the older format.
    pub(crate) fn render(&self) -> String {
        self.page(prometheus_text::encode)
    }

    /// The page in the OpenMetrics format, with the traces of calls.
    pub(crate) fn render_open_metrics(&self) -> String {
        self.page(text::encode)
    }

    fn page(
        &self,
        encode: impl FnOnce(&mut String, &prometheus_client::registry::Registry) -> std::fmt::Result,
    ) -> String {
        let mut page = String::new();
        if let Some(registry) = &self.registry {
            let _a_string_takes_everything = encode(&mut page, registry.families.registry());
        }
        page
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
            registry.families.counter(name, labels).inc();
        }
    }

    /// Counts nothing yet, so that the first one is seen to come.
    pub(crate) fn none_yet(&self, name: &'static str, labels: &[Pair]) {
        self.count_is(name, labels, 0);
    }

    /// A count that somebody else keeps.
    pub(crate) fn count_is(&self, name: &'static str, labels: &[Pair], count: u64) {
        if let Some(registry) = &self.registry {
            registry.families.counter(name, labels).inner().fetch_max(count, Ordering::Relaxed);
        }
    }

    /// A figure of now.
    pub(crate) fn set(&self, name: &'static str, labels: &[Pair], value: f64) {
        if let Some(registry) = &self.registry {
            registry.families.gauge(name, labels).set(value);
        }
    }

    /// One more, until the result is dropped.
    pub(crate) fn going_on(&self, name: &'static str, labels: &[Pair]) -> GoingOn {
        GoingOn(self.registry.as_ref().map(|registry| {
            let gauge = registry.families.gauge(name, labels);
            gauge.inc();
            gauge
        }))
    }

    /// How long something took.
    pub(crate) fn took(&self, name: &'static str, labels: &[Pair], time: Duration) {
        self.measured(name, labels, time.as_secs_f64());
    }

    /// How long something took in a call, which the page may name.
    pub(crate) fn took_in_call(&self, name: &'static str, labels: &[Pair], Timed { time, trace_id }: Timed) {
        if let Some(registry) = &self.registry {
            registry.families.observe(name, labels, time.as_secs_f64(), trace_id);
        }
    }

    /// More seconds.
    pub(crate) fn spent(&self, name: &'static str, labels: &[Pair], time: Duration) {
        if let Some(registry) = &self.registry {
            registry.families.seconds(name, labels).inc_by(time.as_secs_f64());
        }
    }

    /// How much something was.
    pub(crate) fn measured(&self, name: &'static str, labels: &[Pair], value: f64) {
        if let Some(registry) = &self.registry {
            registry.families.observe(name, labels, value, None);
        }
    }
}

/// Counts something that goes on; dropping this ends it.
pub(crate) struct GoingOn(Option<Gauge>);

impl Drop for GoingOn {
    fn drop(&mut self) {
        if let Some(gauge) = &self.0 {
            gauge.dec();
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
