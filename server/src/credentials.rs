//! What keeps strangers out, read again while the server runs: the rules of access, and the certificates.

use std::fmt;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use crate::access::{Access, AccessError, AccessOptions};
use crate::metrics::Metrics;
use crate::net::listener::{Tls, TlsError, TlsFiles};

/// How often files are looked at: a revoked token, or a certificate that was replaced, counts after this time.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The rules of access and the certificates; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub(crate) access: Access,
    pub(crate) tls: Option<Tls>,
}

/// Why they cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum CredentialsError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Credentials {
    /// Reads them.
    ///
    /// # Errors
    /// They cannot be read or used.
    pub(crate) fn read(access: AccessOptions, tls: Option<TlsFiles>) -> Result<Self, CredentialsError> {
        let access = Access::read(access)?;
        let tls = tls.map(Tls::read).transpose()?;
        Ok(Self { access, tls })
    }

    /// Reads them again: those whose files have changed, or all if `always`. What cannot be used stays as it was.
    fn reload(&self, always: bool, metrics: &Metrics) -> Vec<Reloaded> {
        let mut all = vec![note("access", "the rules of access", self.access.reload(always), metrics)];
        if let Some(tls) = &self.tls {
            all.push(note("tls", "the certificates", tls.reload(always), metrics));
        }
        self.show(metrics);
        all
    }

    /// Reads all again, off the threads that answer calls.
    pub(crate) async fn reload_now(&self, metrics: &Metrics) -> Vec<Reloaded> {
        let (all, metrics) = (self.clone(), metrics.clone());
        let read = spawn_blocking(move || all.reload(true, &metrics)).await;
        read.unwrap_or_else(|panic| vec![Reloaded { what: "access", outcome: Err(panic.to_string()) }])
    }

    /// Looks at the files for ever.
    pub(crate) async fn keep_current(self, metrics: Metrics) {
        for (file, outcome) in [("access", "ok"), ("access", "error"), ("tls", "ok"), ("tls", "error")] {
            let labels = [("file", file.into()), ("outcome", outcome.into())];
            metrics.none_yet("canopy_credentials_reloads_total", &labels);
        }
        for reason in ["identity", "role", "tenant", "method", "quota", "audit"] {
            metrics.none_yet("canopy_access_refusals_total", &[("reason", reason.into())]);
        }
        self.show(&metrics);
        let mut ticks = interval(LOOK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let (all, metrics) = (self.clone(), metrics.clone());
            let _ended = spawn_blocking(move || all.reload(false, &metrics)).await;
        }
    }

    /// Shows when the certificate ends.
    fn show(&self, metrics: &Metrics) {
        if let Some(tls) = &self.tls {
            metrics.set("canopy_tls_certificate_expiry_timestamp_seconds", &[], tls.expires_ms() as f64 / 1e3);
        }
    }
}

/// What was read again, and why it stays as it was if it cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reloaded {
    /// `access`, `tls` or `configuration`.
    pub(crate) what: &'static str,
    pub(crate) outcome: Result<(), String>,
}

/// Counts and says what came of reading files again.
fn note<E: fmt::Display>(
    file: &'static str,
    what: &'static str,
    outcome: Result<bool, E>,
    metrics: &Metrics,
) -> Reloaded {
    let count = |outcome: &'static str| {
        metrics.count("canopy_credentials_reloads_total", &[("file", file.into()), ("outcome", outcome.into())]);
    };
    match &outcome {
        Ok(false) => {}
        Ok(true) => {
            count("ok");
            tracing::info!("{what} were read again");
        }
        Err(error) => {
            count("error");
            tracing::error!(%error, "{what} cannot be used; those before stay in effect");
        }
    }
    Reloaded { what: file, outcome: outcome.map(drop).map_err(|error| error.to_string()) }
}
