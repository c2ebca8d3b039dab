//! What the measuring programs share: a clock, the memory of this process, and tables.
//!
//! Figures depend on the machine: compare them by ratio within one run.

mod clusters;
mod cold;
mod generic;
mod random;
pub mod seeds;
mod unnamed;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

pub use clusters::{Cluster, Inside, Outside, Parts, cluster, healthy};
pub use cold::{ColdPlan, cold_plan};
pub use generic::{Generic, generic_allgather};
pub use random::Random;
pub use unnamed::{Factor, unnamed};

/// Runs something and says how long it took.
#[expect(clippy::disallowed_methods, reason = "measuring is what these programs are for")]
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed())
}

/// Says how long ago it was started.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    /// Starts it.
    #[expect(clippy::disallowed_methods, reason = "measuring is what these programs are for")]
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Time since then.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Time that all threads of this process had a processor so far.
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Runs something and says how long all threads of this process had a processor meanwhile: unlike [`timed`], that does not
/// depend on what else the machine does.
pub fn timed_on_processors<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = processor_time();
    let result = work();
    (result, processor_time().saturating_sub(before))
}

/// Greatest resident memory of this process so far in bytes; `None` where the system does not say (Linux does).
pub fn memory_peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// Bytes that the files below a folder take on the disk; a file that vanishes meanwhile takes none.
pub fn disk_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// A number without decimals, in groups of three digits.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Prints rows under a heading, as a Markdown table.
#[expect(clippy::print_stdout, reason = "the tables are the result")]
pub fn print_table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) {
    println!("| {} |", heading.join(" | "));
    println!("|{}", "---|".repeat(N));
    for row in rows {
        println!("| {} |", row.join(" | "));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn digits_are_grouped() {
        for (number, text) in [(0.4, "0"), (999.4, "999"), (999.6, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(super::thousands(number), text);
        }
    }
}
