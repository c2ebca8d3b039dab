//! A line on a terminal's standard error that says how far a plan is, and for how long it has been made.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use canopy_proto::Exact as _;
use canopy_proto::v1::{Accepted, Progress};
use canopy_topology::Rate;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::messages::{detail, is_quiet, is_verbose};
use crate::output::gigabytes_per_sec;

/// How often the line moves although nothing was heard.
const TICK: Duration = Duration::from_millis(120);
/// A sign of life, the seconds since the start, and what is being done.
const TEMPLATE: &str = "{spinner} {elapsed:>3} {msg}";

/// The line; nothing at all where standard error is no terminal. Under `--verbose` lines that stay instead, one for
/// each stage.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    /// The stage that was said last.
    stage: Mutex<String>,
}

impl ProgressLine {
    /// Starts the line.
    pub(crate) fn start() -> Self {
        let bar = if !std::io::stderr().is_terminal() || is_quiet() || is_verbose() {
            ProgressBar::hidden()
        } else {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_message("connecting");
            bar.enable_steady_tick(TICK);
            bar
        };
        Self { bar, stage: Mutex::default() }
    }

    /// The server has the request.
    pub(crate) fn accepted(&self, accepted: &Accepted) {
        let message = match (accepted.joined, accepted.queue_position) {
            (true, _) => "joined a job that makes the same plan".to_owned(),
            (false, 0) => "accepted".to_owned(),
            (false, before) => format!("queued, {before} before this one"),
        };
        self.begin(&message);
        self.bar.set_message(message);
    }

    /// The server works.
    pub(crate) fn progress(&self, progress: &Progress) {
        self.begin(&progress.stage);
        let mut message = progress.stage.clone();
        if progress.total > 0 {
            message += &format!(" {}/{}", progress.done, progress.total);
        }
        for (word, rate) in [("bound", &progress.bound), ("best so far", &progress.incumbent)] {
            if let Some(rate) = rate.read::<Rate>() {
                message += &format!(", {word} {} GB/s", gigabytes_per_sec(&rate));
            }
        }
        self.bar.set_message(message);
    }

    /// This process works.
    pub(crate) fn working(&self, what: String) {
        self.bar.set_message(what);
    }

    /// Content arrives.
    pub(crate) fn receiving(&self, bytes: u64, bytes_total: u64) {
        self.begin("receiving the file");
        self.bar.set_message(format!("receiving {}", part_in_words(bytes, bytes_total)));
    }

    /// Content leaves.
    pub(crate) fn sending(&self, bytes: u64, bytes_total: u64) {
        if bytes < bytes_total {
            self.bar.set_message(format!("sending {}", part_in_words(bytes, bytes_total)));
        } else {
            self.bar.set_message("the server verifies and stores");
        }
    }

    /// Says under `--verbose` that a stage begins.
    fn begin(&self, stage: &str) {
        let Ok(mut said) = self.stage.lock() else { return };
        if *said != stage {
            stage.clone_into(&mut said);
            detail(|| format!("{:>8.3} s  {stage}", self.bar.elapsed().as_secs_f64()));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// `1.2 of 3.4 MB (35 %)`.
fn part_in_words(bytes: u64, bytes_total: u64) -> String {
    let megabytes = |bytes: u64| {
        let tenths = bytes / 100_000;
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    let percent = u128::from(bytes) * 100 / u128::from(bytes_total.max(1));
    format!("{} of {} MB ({percent} %)", megabytes(bytes), megabytes(bytes_total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_said_in_megabytes_and_percent() {
        assert_eq!(part_in_words(1_250_000, 5_000_000), "1.2 of 5.0 MB (25 %)");
        assert_eq!(part_in_words(0, 0), "0.0 of 0.0 MB (0 %)");
        assert_eq!(part_in_words(u64::MAX, u64::MAX).split(' ').next_back(), Some("%)"));
    }
}
