//! The last call that fell into each bucket of a histogram, by the id of its trace, so that a slow one can be looked
//! up.

use std::collections::HashMap;
use std::fmt::Write as _;

use parking_lot::Mutex;

use super::{Pair, names};
use crate::clock;

/// Calls by histogram, labels and bucket: as many as there are buckets, since labels have few values.
#[derive(Debug, Default)]
pub(super) struct Exemplars {
    last: Mutex<HashMap<Bucket, Exemplar>>,
}

/// A histogram, its labels as the page writes them, and the number of the bucket.
type Bucket = (String, usize);

#[derive(Clone, Copy, Debug)]
struct Exemplar {
    trace_id: u128,
    value: f64,
    unix_ms: u64,
}

impl Exemplars {
    /// A call with this trace was measured.
    pub(super) fn note(&self, name: &str, labels: &[Pair], value: f64, trace_id: u128) {
        let buckets = names::buckets(name);
        let number = buckets.iter().position(|&bound| value <= bound).unwrap_or(buckets.len());
        let exemplar = Exemplar { trace_id, value, unix_ms: clock::unix_ms() };
        self.last.lock().insert((series(name, labels), number), exemplar);
    }

    /// Adds to a line of a bucket what was noted of it: ` # {trace_id="…"} VALUE TIME`.
    pub(super) fn add(&self, line: &str, page: &mut String) {
        let Some((series, bound)) = bucket(line) else { return };
        let name = series.split_once('{').map_or("", |(name, _)| name);
        let buckets = names::buckets(name);
        let number = match bound {
            "+Inf" => Some(buckets.len()),
            bound => bound.parse().ok().and_then(|bound: f64| buckets.iter().position(|&other| bound <= other)),
        };
        let Some(number) = number else { return };
        let noted = self.last.lock().get(&(series, number)).copied();
        if let Some(Exemplar { trace_id, value, unix_ms }) = noted {
            let (seconds, millis) = (unix_ms / 1000, unix_ms % 1000);
            let _a_string_takes_everything =
                write!(page, " # {{trace_id=\"{trace_id:032x}\"}} {value} {seconds}.{millis:03}");
        }
    }
}

/// A histogram with its labels, as the lines of its buckets begin without `_bucket`.
fn series(name: &str, labels: &[Pair]) -> String {
    let mut series = format!("{name}{{");
    for (label, value) in labels {
        let _a_string_takes_everything = write!(series, "{label}=\"{value}\",");
    }
    series
}

/// The series and the bound of a line such as `name_bucket{label="value",le="0.5"} 7`.
fn bucket(line: &str) -> Option<(String, &str)> {
    let (name, rest) = line.split_once("_bucket{")?;
    let (labels, rest) = rest.split_at(rest.rfind("le=\"")?);
    let bound = rest.strip_prefix("le=\"")?.split_once('"')?.0;
    Some((format!("{name}{{{labels}"), bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_call_of_each_bucket_is_shown() {
        let exemplars = Exemplars::default();
        let labels = [("cache", "hit".into())];
        for (value, trace_id) in [(0.004, 1), (0.0045, 2), (5000.0, 3)] {
            exemplars.note("canopy_plan_latency_seconds", &labels, value, trace_id);
        }
        let shown = |line: &str| {
            let mut page = String::new();
            exemplars.add(line, &mut page);
            page
        };
        let line = |bound: &str| format!("canopy_plan_latency_seconds_bucket{{cache=\"hit\",le=\"{bound}\"}} 2");
        assert!(shown(&line("0.005")).starts_with(" # {trace_id=\"00000000000000000000000000000002\"} 0.0045 "));
        assert!(shown(&line("+Inf")).contains("3\"} 5000 "));
        for other in ["0.01", "0.0025"].map(line).iter().map(String::as_str).chain([
            "canopy_plan_latency_seconds_bucket{cache=\"miss\",le=\"0.005\"} 2",
            "canopy_plan_latency_seconds_sum{cache=\"hit\"} 2",
            "canopy_leases_active 3",
        ]) {
            assert_eq!(shown(other), "", "{other}");
        }
    }
}
