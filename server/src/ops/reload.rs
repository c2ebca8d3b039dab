//! Reads the configuration again while the server runs, when it is told to.
//!
//! Only the log filter, the rules of access and the certificates can change under a running server; the rest waits for
//! the next start. A configuration that a start would refuse changes nothing.

use std::sync::{Arc, OnceLock};

use canopy_planner::chain;
use tokio::signal::unix::Signal;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::clock;
use crate::credentials::{Credentials, Reloaded};
use crate::metrics::Metrics;
use crate::ops::config::{ConfigError, ServerFlags};
use crate::ops::telemetry::{LogFilter, Telemetry};

/// What a process was told at its start, and what can be changed since.
#[derive(Clone, Debug)]
pub(crate) struct Reload {
    pub(crate) flags: ServerFlags,
    pub(crate) filter: LogFilter,
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
}

impl Reloads {
    pub(crate) fn new(credentials: Credentials, metrics: Metrics) -> Self {
        Self { credentials, metrics, process: Arc::default(), turn: Arc::default() }
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

impl Reload {
    /// Reads every layer, and checks what a start would check.
    fn read(self) -> Result<Telemetry, ConfigError> {
        let settings = self.flags.into_settings()?;
        let telemetry = settings.telemetry()?;
        settings.into_options()?.validate()?;
        Ok(telemetry)
    }
}
