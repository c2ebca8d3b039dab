//! A line on a terminal's standard error that says how far a plan is.

use std::io::IsTerminal;
use std::time::Duration;

use canopy_proto::v1::{Accepted, Progress};
use canopy_topology::Rate;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::gigabytes_per_sec;

/// How often the line moves although nothing was heard.
const TICK: Duration = Duration::from_millis(120);

/// The line; nothing at all where standard error is no terminal.
#[derive(Debug)]
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Starts the line.
    pub(crate) fn start() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        line.set_style(ProgressStyle::default_spinner());
        line.set_message("connecting");
        line.enable_steady_tick(TICK);
        Self(line)
    }

    /// The server has the request.
    pub(crate) fn accepted(&self, accepted: &Accepted) {
        self.0.set_message(match (accepted.joined, accepted.queue_position) {
            (true, _) => "joined a job that makes the same plan".to_owned(),
            (false, 0) => "accepted".to_owned(),
            (false, before) => format!("queued, {before} before this one"),
        });
    }

    /// The server works.
    pub(crate) fn progress(&self, progress: &Progress) {
        let mut message = progress.stage.clone();
        if progress.total > 0 {
            message += &format!(" {}/{}", progress.done, progress.total);
        }
        for (word, rate) in [("bound", &progress.bound), ("best so far", &progress.incumbent)] {
            if let Ok(rate) = rate.parse::<Rate>() {
                message += &format!(", {word} {} GB/s", gigabytes_per_sec(&rate));
            }
        }
        self.0.set_message(message);
    }

    /// This process works.
    pub(crate) fn working(&self, what: String) {
        self.0.set_message(what);
    }

    /// Content arrives.
    pub(crate) fn receiving(&self, bytes: u64, bytes_total: u64) {
        self.0.set_message(format!("receiving {bytes} of {bytes_total} bytes"));
    }

    /// Content leaves.
    pub(crate) fn sending(&self, bytes: u64, bytes_total: u64) {
        if bytes < bytes_total {
            self.0.set_message(format!("sending {bytes} of {bytes_total} bytes"));
        } else {
            self.0.set_message("the server verifies and stores");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
