//! What is measured of the process over time, and how it changes.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;

/// The state of the server at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Since the load began.
    pub(super) at: Duration,
    /// Resident memory in bytes.
    pub(super) resident: u64,
    /// Resident memory that no file stands behind: heap and stacks, in bytes.
    pub(super) anonymous: u64,
    /// Open files.
    pub(super) descriptors: u64,
    pub(super) threads: u64,
    pub(super) log_bytes: u64,
    pub(super) plans: u64,
    pub(super) plan_bytes: u64,
    /// Waiting and running jobs.
    pub(super) jobs: u64,
    /// Calls that had ended.
    pub(super) calls: u64,
}

impl Sample {
    /// What the system says of a process; zeros where it says nothing.
    pub(super) fn of_process(pid: Pid, at: Duration) -> Self {
        let folder = format!("/proc/{}", pid.as_raw_nonzero());
        let status = fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
        let memory = fs::read_to_string(format!("{folder}/smaps_rollup")).unwrap_or_default();
        let descriptors = fs::read_dir(format!("{folder}/fd")).map_or(0, |entries| entries.count() as u64);
        Self {
            at,
            resident: number(&status, "VmRSS:") << 10,
            anonymous: number(&memory, "Anonymous:") << 10,
            descriptors,
            threads: number(&status, "Threads:"),
            ..Self::default()
        }
    }
}

/// The number behind a name at the start of a line.
fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Change per minute, by least squares over the samples; 0 for fewer than two.
pub(super) fn slope_per_minute(samples: &[Sample], value: impl Fn(&Sample) -> u64) -> f64 {
    let points: Vec<(f64, f64)> =
        samples.iter().map(|sample| (sample.at.as_secs_f64() / 60.0, value(sample) as f64)).collect();
    let count = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
    let (time, level) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - time).powi(2)).sum();
    let common: f64 = points.iter().map(|point| (point.0 - time) * (point.1 - level)).sum();
    if spread > 0.0 { common / spread } else { 0.0 }
}

/// The mean of the samples; 0 if there are none.
pub(super) fn mean(samples: &[Sample], value: impl Fn(&Sample) -> u64) -> f64 {
    let sum: u64 = samples.iter().map(value).sum();
    if samples.is_empty() { 0.0 } else { sum as f64 / samples.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_a_line_is_exact_and_noise_cancels() {
        let at = |second: u64, resident: u64| Sample { at: Duration::from_secs(second), resident, ..Sample::default() };
        let line: Vec<Sample> = (0..10).map(|step| at(step * 30, 100 + step * 5)).collect();
        assert!((slope_per_minute(&line, |sample| sample.resident) - 10.0).abs() < 1e-9);
        let flat = [at(0, 1), at(10, 3), at(20, 1)];
        assert!(slope_per_minute(&flat, |sample| sample.resident).abs() < 1e-9);
        assert!(slope_per_minute(&flat[..1], |sample| sample.resident).abs() < 1e-9);
    }

    #[test]
    fn this_process_can_be_measured() {
        let sample = Sample::of_process(rustix::process::getpid(), Duration::ZERO);
        assert!(sample.resident > 0 && sample.anonymous > 0 && sample.descriptors > 0 && sample.threads > 0);
    }
}
