//! What the system says of this process, under the names that every exporter uses. Read from `/proc`: elsewhere than on
//! Linux, and where a file cannot be read, the figures are left out.

use std::fs;
use std::str::FromStr;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Ticks per second in `/proc`. Linux fixes it at 100 for programs on every processor that it is built for today.
const TICKS_PER_SECOND: f64 = 100.0;

/// Time that this thread has had a processor.
pub(crate) fn thread_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// The figures of the process, read when a page is drawn.
#[derive(Debug)]
pub(super) struct Figures;

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        for (name, help, value) in figures() {
            let Some(value) = value else { continue };
            // Counters get their ending from the encoder.
            match name.strip_suffix("_total") {
                Some(bare) => {
                    let counter = ConstCounter::new(value);
                    counter.encode(encoder.encode_descriptor(bare, help, None, counter.metric_type())?)?;
                }
                None => {
                    let gauge = ConstGauge::new(value);
                    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
                }
            }
        }
        Ok(())
    }
}

/// Names, meanings and values of the figures; those that cannot be read have none.
fn figures() -> [(&'static str, &'static str, Option<f64>); 7] {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let booted = fs::read_to_string("/proc/stat").ok().and_then(|text| number::<f64>(&text, "btime "));
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
    let stat = Stat::parse(&stat);
    let field = |of: fn(&Stat) -> f64| stat.as_ref().map(of);
    let started = booted.zip(field(|stat| stat.started_s)).map(|(booted, after)| booted + after);
    [
        ("process_cpu_seconds_total", "User and system CPU time.", field(|stat| stat.cpu_s)),
        ("process_start_time_seconds", "Start time of the process, in Unix seconds.", started),
        ("process_resident_memory_bytes", "Resident memory in bytes.", resident_bytes().map(|bytes| bytes as f64)),
        ("process_virtual_memory_bytes", "Virtual memory in bytes.", field(|stat| stat.virtual_bytes)),
        ("process_threads", "Threads.", field(|stat| stat.threads)),
        // One of them is this look.
        ("process_open_fds", "Open files and connections.", open.map(|open| open - 1.0)),
        ("process_max_fds", "Limit of open files and connections.", number(&limits, "Max open files ")),
    ]
}

/// The number behind this beginning of a line.
fn number<T: FromStr>(text: &str, beginning: &str) -> Option<T> {
    let rest = text.lines().find_map(|line| line.strip_prefix(beginning))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Memory of this process that is in use, in bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    number::<u64>(&status, "VmRSS:")?.checked_mul(1024)
}

/// Fields of `/proc/self/stat`.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_s: f64,
    threads: f64,
    /// After the system's start.
    started_s: f64,
    virtual_bytes: f64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The second field is the name, in parentheses, and may hold anything; the third begins behind the last one.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<f64>().ok();
        Some(Self {
            cpu_s: (field(14)? + field(15)?) / TICKS_PER_SECOND,
            threads: field(20)?,
            started_s: field(22)? / TICKS_PER_SECOND,
            virtual_bytes: field(23)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let text = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 15 16 12 18 4200 8192 21";
        let expected = Stat { cpu_s: 2.0, threads: 12.0, started_s: 42.0, virtual_bytes: 8192.0 };
        assert_eq!(Stat::parse(text), Some(expected));
        for text in ["", "7 (x", "7 (x) S 1", ")"] {
            assert_eq!(Stat::parse(text), None, "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_every_figure() {
        for (name, _, value) in figures() {
            assert!(value.is_some_and(|value| value >= 0.0), "{name} {value:?}");
        }
        let mut registry = prometheus_client::registry::Registry::default();
        registry.register_collector(Box::new(Figures));
        let mut page = String::new();
        prometheus_client::encoding::prometheus_text::encode(&mut page, &registry).unwrap();
        assert!(number::<f64>(&page, "process_threads ").unwrap() >= 1.0);
        assert!(number::<f64>(&page, "process_cpu_seconds_total ").is_some(), "{page}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn work_takes_time() {
        let before = thread_time().unwrap();
        let mut sum = 0_u64;
        while thread_time().unwrap() == before {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        assert!(thread_time().unwrap() > before);
    }
}
