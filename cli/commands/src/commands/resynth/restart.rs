//! Whether a restart is worth it: the plan that runs, the new one and a ring, all on what is left of the network.

use canopy_plan::{PlanFile, read_plan};
use canopy_schedule::{check, compile};
use canopy_simulate::elsewhere;
use canopy_topology::{Rate, Topology, TopologyLimits};
use serde::Serialize;

use crate::exit::{Failure, words};
use crate::output::gigabytes_per_sec;
use crate::sizes::in_words;

/// Three ways to go on.
#[derive(Debug, Serialize)]
pub(super) struct Restart {
    /// Going on with the plan of the sound network.
    old: Way,
    /// The plan for what is left.
    new: Way,
    /// What a runtime does that knows nothing of the network.
    ring: Way,
    /// How many times as fast the new plan is as the faster of the others that run; not there where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<f64>,
}

/// One way to go on.
#[derive(Debug, Serialize)]
struct Way {
    runs: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    algbw: Option<String>,
    #[serde(rename = "algbw_GBps", skip_serializing_if = "Option::is_none")]
    algbw_gigabytes: Option<f64>,
    /// For the message that was named, by its bytes alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ms: Option<f64>,
    #[serde(skip)]
    rate: Option<Rate>,
}

impl Way {
    fn of(rate: Result<Rate, String>, size_bytes: u64) -> Self {
        let reason = rate.as_ref().err().cloned().unwrap_or_default();
        let rate = rate.ok();
        Self {
            runs: rate.is_some(),
            reason,
            algbw: rate.as_ref().map(ToString::to_string),
            algbw_gigabytes: rate.as_ref().map(gigabytes_per_sec),
            time_ms: rate.as_ref().map(|rate| milliseconds(size_bytes, rate)),
            rate,
        }
    }

    fn readable(&self, name: &str, size: &str) -> String {
        match (self.algbw_gigabytes, self.time_ms) {
            (Some(rate), Some(time)) => format!("{name:<9} {rate} GB/s, {time:.3} ms for {size}"),
            _ => format!("{name:<9} does not run: {}", self.reason),
        }
    }
}

/// For display.
#[expect(clippy::cast_precision_loss, reason = "no float decides")]
fn milliseconds(size_bytes: u64, rate: &Rate) -> f64 {
    size_bytes as f64 / (rate.gigabytes_per_sec() * 1e6)
}

impl Restart {
    /// Weighs the plan of a sound network, as it is, on what is left of that.
    ///
    /// # Errors
    /// The plan is wrong where it was made for.
    pub(super) fn of(
        old: &PlanFile,
        left: &Topology,
        new: Option<Rate>,
        ring: Option<Rate>,
        size_bytes: u64,
    ) -> Result<Self, Failure> {
        let graph = compile(&old.topology, &old.schedule).map_err(|error| Failure::fault(words(&error)))?;
        let old = elsewhere(&graph, &old.topology, left).map_err(|error| words(&error));
        let old = old.and_then(|graph| check(left, &graph).map_err(|error| words(&error)));
        let way = |rate: Option<Rate>| rate.ok_or_else(|| "no such plan exists for the remaining network".to_owned());
        let ways = [old.map(|verdict| verdict.algbw), way(new), way(ring)];
        let [old, new, ring] = ways.map(|rate| Way::of(rate, size_bytes));
        let other = old.rate.clone().max(ring.rate.clone());
        let gain = new.rate.as_ref().zip(other.as_ref()).and_then(|(new, other)| new.ratio_to(other));
        Ok(Self { old, new, ring, gain: gain.map(|gain| gain.to_f64()) })
    }

    /// Lines for people.
    pub(super) fn readable(&self, size_bytes: u64) -> Vec<String> {
        let size = in_words(size_bytes);
        let mut lines = vec!["is a restart worth it? on the remaining network:".to_owned()];
        lines.push(self.old.readable("old plan", &size));
        lines.push(self.new.readable("new plan", &size));
        lines.push(self.ring.readable("ring", &size));
        lines.push(match self.gain {
            Some(gain) => format!("the new plan is {gain:.3} times as fast as the best that runs without it"),
            None => "nothing else runs".to_owned(),
        });
        lines
    }
}

/// A plan in canopy's JSON, as the server sends it.
pub(super) fn read(file: &[u8]) -> Result<PlanFile, Failure> {
    let limits = TopologyLimits { bytes_max: usize::MAX, ..TopologyLimits::STANDARD };
    read_plan(file, &limits).map_err(|error| Failure::fault(format!("the server's plan: {}", words(&error))))
}
