//! The families of metrics, as the registry keeps and writes them.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, UNIX_EPOCH};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge;
use prometheus_client::registry::{Metric, Registry};

use super::{Pair, names, process};
use crate::clock;

/// A counter of seconds.
pub(super) type Seconds = Counter<f64, AtomicU64>;
/// A figure of now.
pub(super) type Gauge = gauge::Gauge<f64, AtomicU64>;
/// A histogram, with the id of the trace of the last call of each bucket.
type Histogram = HistogramWithExemplars<[(&'static str, String); 1]>;
type Labels = Vec<Pair>;

/// Bounds of the buckets of a family of histograms.
#[derive(Clone, Copy)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// Every family that is declared, by name.
#[derive(Default)]
pub(super) struct Families {
    registry: Registry,
    counters: HashMap<&'static str, Family<Labels, Counter>>,
    seconds: HashMap<&'static str, Family<Labels, Seconds>>,
    gauges: HashMap<&'static str, Family<Labels, Gauge>>,
    histograms: HashMap<&'static str, Family<Labels, Histogram, Buckets>>,
}

impl Families {
    /// All of [`names`], without a sample, and the figures of the process.
    pub(super) fn declared() -> Self {
        let mut families = Self::default();
        for &(name, help) in names::COUNTERS {
            if name.ends_with("_seconds_total") {
                families.seconds.insert(name, declare(&mut families.registry, name, help, Family::default()));
            } else {
                families.counters.insert(name, declare(&mut families.registry, name, help, Family::default()));
            }
        }
        for &(name, help) in names::GAUGES {
            families.gauges.insert(name, declare(&mut families.registry, name, help, Family::default()));
        }
        for &(name, help, buckets) in names::HISTOGRAMS {
            let family = Family::new_with_constructor(Buckets(buckets));
            families.histograms.insert(name, declare(&mut families.registry, name, help, family));
        }
        families.registry.register_collector(Box::new(process::Figures));
        families
    }

    pub(super) const fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(super) fn counter(&self, name: &'static str, labels: &[Pair]) -> Counter {
        of(&self.counters, name, labels)
    }

    pub(super) fn seconds(&self, name: &'static str, labels: &[Pair]) -> Seconds {
        of(&self.seconds, name, labels)
    }

    pub(super) fn gauge(&self, name: &'static str, labels: &[Pair]) -> Gauge {
        of(&self.gauges, name, labels)
    }

    /// Adds a value to a histogram, of a call with this trace.
    pub(super) fn observe(&self, name: &'static str, labels: &[Pair], value: f64, trace_id: Option<u128>) {
        let Some(family) = declared(&self.histograms, name) else { return };
        let exemplar = trace_id.map(|id| [("trace_id", format!("{id:032x}"))]);
        let now = exemplar.is_some().then(|| UNIX_EPOCH + Duration::from_millis(clock::unix_ms()));
        family.get_or_create_owned(&labels.to_vec()).observe(value, exemplar, now);
    }
}

/// Registers a family. The registry ends each help text with a full stop, and the name of each counter with `_total`.
fn declare<F: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, family: F) -> F {
    registry.register(name.trim_end_matches("_total"), help.trim_end_matches('.'), family.clone());
    family
}

/// The family of a name. Tests fail where a name is used that is not declared.
fn declared<'a, F>(families: &'a HashMap<&'static str, F>, name: &str) -> Option<&'a F> {
    let family = families.get(name);
    debug_assert!(family.is_some(), "{name} is not declared");
    family
}

/// A metric of a family; one that is not shown if the family is not declared.
fn of<M: Clone + Default>(families: &HashMap<&'static str, Family<Labels, M>>, name: &str, labels: &[Pair]) -> M {
    declared(families, name).map(|family| family.get_or_create_owned(&labels.to_vec())).unwrap_or_default()
}
