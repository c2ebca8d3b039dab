//! Counters of seconds. The registry counts whole numbers only, and a second is too coarse.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use metrics::SharedString;
use parking_lot::Mutex;

use super::Pair;

/// Sums of time by metric and labels. The values of labels are plain words of this program.
#[derive(Debug, Default)]
pub(super) struct Seconds {
    sums: Mutex<BTreeMap<(&'static str, Vec<Pair>), Duration>>,
}

impl Seconds {
    pub(super) fn add(&self, name: &'static str, labels: &[Pair], time: Duration) {
        let mut sums = self.sums.lock();
        let sum = sums.entry((name, labels.to_vec())).or_default();
        *sum = sum.saturating_add(time);
    }

    /// Writes every sum, with the meaning of each metric before it.
    pub(super) fn render(&self, page: &mut String, help: impl Fn(&str) -> &'static str) {
        let sums = self.sums.lock();
        let mut last = "";
        for ((name, labels), sum) in &*sums {
            if last != *name {
                super::process::heading(page, "counter", name, help(name));
                last = name;
            }
            let labels: Vec<String> =
                labels.iter().map(|(label, value): &(_, SharedString)| format!("{label}=\"{value}\"")).collect();
            let _a_string_takes_everything = writeln!(page, "{name}{{{}}} {}", labels.join(","), sum.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_a_second_add_up() {
        let seconds = Seconds::default();
        for algorithm in ["forest", "auto", "forest"] {
            seconds.add("canopy_x_seconds_total", &[("algorithm", algorithm.into())], Duration::from_millis(250));
        }
        let mut page = String::new();
        seconds.render(&mut page, |_| "Time.");
        let expected = "# HELP canopy_x_seconds_total Time.\n# TYPE canopy_x_seconds_total counter\n\
            canopy_x_seconds_total{algorithm=\"auto\"} 0.25\ncanopy_x_seconds_total{algorithm=\"forest\"} 0.5\n";
        assert_eq!(page, expected);
    }
}
