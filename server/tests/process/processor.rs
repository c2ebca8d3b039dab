//! How long a process has had a processor, how long its threads have waited for one, and what memory it has held.
//!
//! The machine may give its processors to others at any time. What a test measures is therefore what the server does,
//! not how late that is by a clock on the wall.

use std::path::Path;
use std::time::Duration;

/// Clock ticks of `/proc` per second, on every architecture that this runs on.
const TICKS_PER_SECOND: u64 = 100;

/// Threads that search for plans: no call waits for them but those that ask for a plan.
const SEARCHING: [&str; 4] = ["canopy-planner", "canopy-quick", "canopy-beside", "canopy-call"];

/// Processor time that a process has used.
pub(crate) fn processor_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name in parentheses may hold anything; time of the user and of the system are the 14th and the 15th field.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}

/// Memory that a process holds, and the most that it has held.
pub(crate) fn bytes_held(process: u32) -> (f64, f64) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
    };
    (bytes("RssAnon:"), bytes("VmHWM:") - bytes("RssFile:"))
}

/// How long the threads of a process that answer calls have been ready to run while others had the processors.
pub(crate) fn waited_to_answer(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().map(|thread| thread.unwrap().path());
    let that_answer = threads.filter(|thread| {
        // One that has ended in between waits for nothing.
        let name = std::fs::read_to_string(thread.join("comm")).unwrap_or_default();
        !SEARCHING.iter().any(|prefix| name.starts_with(prefix))
    });
    that_answer.map(|thread| waited(&thread)).sum()
}

/// How long this thread has.
pub(crate) fn waited_here() -> Duration {
    waited(Path::new("/proc/thread-self"))
}

/// The second number is nanoseconds in line for a processor; none where the kernel does not count them.
fn waited(thread: &Path) -> Duration {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().nth(1).and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}
