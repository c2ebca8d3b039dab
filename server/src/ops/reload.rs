//! Reads the configuration again while the server runs, when it is told to.
//!
//! Only the log filter, the rules of access and the certificates can change under a running server; the rest waits for
//! the next start. A configuration that a
//! start would refuse changes nothing.

use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;

use crate::clock;
use crate::credentials::Credentials;
use crate::metrics::Metrics;
use crate::ops::config::{ConfigError, ServerFlags};
use crate::ops::telemetry::{LogFilter, Telemetry};

/// What a process was told at its start, and what can be changed since.
#[derive(Clone, Debug)]
pub(crate) struct Reload {
    pub(crate) flags: ServerFlags,
    pub(crate) filter: LogFilter,
}

impl Reload {
    /// Reads the configuration again at each signal, for ever.
    pub(crate) async fn at_each(self, mut hangups: Signal, metrics: Metrics, credentials: Credentials) {
        for outcome in ["ok", "error"] {
            metrics.none_yet("canopy_config_reloads_total", &[("outcome", outcome.into())]);
        }
        note_success(&metrics);
        while hangups.recv().await.is_some() {
            credentials.reload_now(&metrics).await;
            let reload = self.clone();
            let read = spawn_blocking(move || reload.read()).await;
            // Counted before it is said: whoever reads the line finds the number.
            let count =
                |outcome: &'static str| metrics.count("canopy_config_reloads_total", &[("outcome", outcome.into())]);
            match read {
                Ok(Ok(telemetry)) => {
                    let changed = self.filter.change(&telemetry);
                    note_success(&metrics);
                    count("ok");
                    tracing::info!(changed, "the configuration was reloaded; its log filter is in effect");
                }
                Ok(Err(error)) => {
                    count("error");
                    tracing::error!(%error, "the configuration is not valid; the current one stays in effect");
                }
                Err(error) => {
                    count("error");
                    tracing::error!(%error, "the configuration could not be read; the current one stays in effect");
                }
            }
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

fn note_success(metrics: &Metrics) {
    metrics.set("canopy_config_reload_success_timestamp_seconds", &[], clock::unix_ms() as f64 / 1e3);
}
