//! Reads the configuration again while the server runs, when it is told to.
//!
//! Only the log filter, the rules of access and the certificates can change under a running server; the rest waits for
//! the next start. A configuration that a start would refuse changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use canopy_planner::chain;
use tokio::signal::unix::Signal;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::clock;
use crate::credentials::{Credentials, Reloaded};
use crate::metrics::Metrics;
use crate::ops::config::{ConfigError, ServerFlags, print_effective};
use crate::ops::telemetry::{LogFilter, Telemetry, TelemetryError};
use crate::tasks::{self, Task};

/// What a process was told at its start, and what can be changed since.
#[derive(Clone, Debug)]
pub(crate) struct Reload {
    pub(crate) flags: ServerFlags,
    pub(crate) filter: LogFilter,
    /// The settings that it started with, as a file.
    pub(crate) effective: Arc<str>,
}

/// The settings of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Configured {
    /// Those in effect, as a file.
    pub(crate) effective: Arc<str>,
    pub(crate) log_filter: String,
    /// Keys that a start would read otherwise now; or why none would succeed.
    pub(crate) pending: Result<Vec<String>, String>,
}

/// Reads again what can change under a running server; clones share it.
#[derive(Clone)]
pub(crate) struct Reloads {
    credentials: Credentials,
    metrics: Metrics,
    /// A server inside another program has none.
    process: Arc<OnceLock<Reload>>,
    /// One at a time.
    turn: Arc<Mutex<()>>,
    /// Ends the latest log filter that was to last for a while.
    filter_ends: Arc<parking_lot::Mutex<Option<Task<()>>>>,
}

impl Reloads {
    pub(crate) fn new(credentials: Credentials, metrics: Metrics) -> Self {
        Self { credentials, metrics, process: Arc::default(), turn: Arc::default(), filter_ends: Arc::default() }
    }

    /// Reads all again. What cannot be used stays as it was.
    pub(crate) async fn now(&self) -> Vec<Reloaded> {
        let _turn = self.turn.lock().await;
        let mut all = self.credentials.reload_now(&self.metrics).await;
        if let Some(process) = self.process.get() {
            all.push(Reloaded { what: "configuration", outcome: self.configuration(process).await });
        }
        all
    }

    /// The settings of the process; none for a server inside another program.
    pub(crate) async fn configured(&self) -> Option<Configured> {
        let process = self.process.get()?.clone();
        let (effective, log_filter) = (Arc::clone(&process.effective), process.filter.text());
        let now = spawn_blocking(move || process.now()).await.map_err(|error| error.to_string());
        let pending = now.and_then(|now| now.map_err(|error| chain(&error)));
        Some(Configured { pending: pending.map(|now| changed_keys(&effective, &now)), effective, log_filter })
    }

    /// Has other lines logged, for a while if that is stated; returns the filter of before. None: the server is inside another
    /// program.
    pub(crate) fn log(&self, filter: &str, lasts: Option<Duration>) -> Option<Result<String, TelemetryError>> {
        let process = self.process.get()?;
        Some(process.filter.set(filter).map(|(before, change)| {
            tracing::warn!(filter, before, ?lasts, "the log filter was changed by a call");
            if let Some(lasts) = lasts {
                let reload = process.clone();
                let ends = tasks::spawn("log-filter", async move {
                    tokio::time::sleep(lasts).await;
                    let _done = spawn_blocking(move || reload.return_to_configured(change)).await;
                });
                *self.filter_ends.lock() = Some(ends);
            }
            before
        }))
    }

    /// Reads the configuration of a process again at each signal, for ever, and whenever else it is asked to.
    pub(crate) async fn at_each(self, mut hangups: Signal, process: Reload) {
        for outcome in ["ok", "error"] {
            self.metrics.none_yet("canopy_config_reloads_total", &[("outcome", outcome.into())]);
        }
        self.note_success();
        let _set_once = self.process.set(process);
        while hangups.recv().await.is_some() {
            self.now().await;
        }
    }

    async fn configuration(&self, process: &Reload) -> Result<(), String> {
        let reload = process.clone();
        let read = spawn_blocking(move || reload.read()).await.map_err(|error| error.to_string());
        let read = read.and_then(|read| read.map_err(|error| chain(&error)));
        // Counted before it is said: whoever reads the line finds the number.
        let outcome = if read.is_ok() { "ok" } else { "error" };
        self.metrics.count("canopy_config_reloads_total", &[("outcome", outcome.into())]);
        match read {
            Ok(telemetry) => {
                let changed = process.filter.change(&telemetry);
                self.note_success();
                tracing::info!(changed, "the configuration was reloaded; its log filter is in effect");
                Ok(())
            }
            Err(error) => {
                tracing::error!(error, "the configuration is not valid; the current one stays in effect");
                Err(error)
            }
        }
    }

    fn note_success(&self) {
        let now = clock::unix_ms() as f64 / 1e3;
        self.metrics.set("canopy_config_reload_success_timestamp_seconds", &[], now);
    }
}

/// Keys whose lines differ between two files.
fn changed_keys(before: &str, now: &str) -> Vec<String> {
    let lines = |text: &str| -> BTreeMap<String, String> {
        let key = |line: &str| line.split_once(" = ").map(|(key, value)| (key.to_owned(), value.to_owned()));
        text.lines().filter_map(key).collect()
    };
    let (before, now) = (lines(before), lines(now));
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    keys.into_iter().filter(|key| before.get(*key) != now.get(*key)).cloned().collect()
}

impl Reload {
    /// The settings as a start would read them now.
    fn now(self) -> Result<String, ConfigError> {
        let settings = self.flags.into_settings()?;
        settings.clone().into_options()?.validate()?;
        print_effective(settings)
    }

    /// Logs what the configuration says, unless the filter was changed since.
    fn return_to_configured(self, change: u64) {
        let filter = self.filter.clone();
        match self.read() {
            Ok(telemetry) if filter.put_back(telemetry.filter(), change) => {
                tracing::info!("the configured log filter is in effect again");
            }
            Ok(_) => {}
            Err(error) => tracing::error!(error = chain(&error), "the log filter stays changed"),
        }
    }

    /// Reads every layer, and checks what a start would check.
    fn read(self) -> Result<Telemetry, ConfigError> {
        let settings = self.flags.into_settings()?;
        let telemetry = settings.telemetry()?;
        settings.into_options()?.validate()?;
        Ok(telemetry)
    }
}
