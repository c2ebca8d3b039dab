//! Logs of the server process, on standard error, and its traces.
//!
//! Logs are text on a terminal and one JSON object per line elsewhere. Traces go to a collector if there is one. Spans
//! have a target of their own; without a collector they cost only a check.

mod collector;
mod lines;
mod log_writer;
mod text;

use std::env;
use std::io::{self, IsTerminal as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

pub(crate) use self::collector::{Collector, Identity};
use self::lines::JsonLines;
use self::log_writer::LogWriter;
use self::text::TextFields;
use crate::trace::TRACE;

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, else JSON.
    Auto,
    /// One JSON object per line.
    Json,
    /// For people.
    Text,
}

/// Why the settings of logs or traces are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TelemetryError {
    #[error("cannot read the log filter `{filter}`: {problem}; use a level such as `info`, or targets with levels")]
    LogFilter { filter: String, problem: String },
    #[error("`otlp_endpoint`: `{endpoint}` is not an endpoint for traces; use https://HOST:PORT or http://HOST:PORT")]
    TraceEndpoint { endpoint: String },
    #[error("`{setting}` is stated, and `otlp_endpoint` is without TLS; use https://HOST:PORT, or take it away")]
    TraceWithoutTls { setting: &'static str },
    #[error("`{setting}`, {path}: {problem}")]
    TraceFile { setting: &'static str, path: String, problem: String },
    #[error(
        "traces cannot be sent to {endpoint}: {problem}; are the files of `otlp_ca`, `otlp_certificate` and \
             `otlp_key` PEM, and has this machine root certificates?"
    )]
    TraceTls { endpoint: String, problem: String },
    #[error("the process writes its log by other means than canopyd's; change the filter there")]
    OtherLog,
}

/// Settings of logs and traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    filter: String,
    format: LogFormat,
    collector: Option<Collector>,
}

/// Logs and traces of a running process.
#[derive(Debug)]
pub(crate) struct Telescope {
    traces: Option<SdkTracerProvider>,
    filter: LogFilter,
}

/// The log filter of a process, which can be changed while it runs; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct LogFilter {
    handle: reload::Handle<EnvFilter, Registry>,
    /// Its text, and how often it was changed.
    current: Arc<Mutex<(String, u64)>>,
}

impl LogFilter {
    /// Replaces the filter. Returns false if the process logs by other means, and nothing has changed.
    pub(crate) fn change(&self, telemetry: &Telemetry) -> bool {
        self.put(&mut self.current.lock(), &telemetry.filter)
    }

    /// Replaces the filter by another text; returns that of before, and the number of the change.
    ///
    /// # Errors
    /// It cannot be read, or the process logs by other means.
    pub(crate) fn set(&self, filter: &str) -> Result<(String, u64), TelemetryError> {
        require_filter(filter)?;
        let mut current = self.current.lock();
        let before = current.0.clone();
        if self.put(&mut current, filter) { Ok((before, current.1)) } else { Err(TelemetryError::OtherLog) }
    }

    /// Puts a filter back, unless it was changed since the change of this number.
    pub(crate) fn put_back(&self, filter: &str, change: u64) -> bool {
        let mut current = self.current.lock();
        current.1 == change && self.put(&mut current, filter)
    }

    /// Its text.
    pub(crate) fn text(&self) -> String {
        self.current.lock().0.clone()
    }

    fn put(&self, current: &mut (String, u64), filter: &str) -> bool {
        let changed = self.handle.reload(EnvFilter::new(filter)).is_ok();
        if changed {
            *current = (filter.to_owned(), current.1 + 1);
        }
        changed
    }
}

/// Longest text of a filter in bytes.
const FILTER_BYTES_MAX: usize = 4096;

fn require_filter(filter: &str) -> Result<(), TelemetryError> {
    let problem = match EnvFilter::try_new(filter) {
        _ if filter.len() > FILTER_BYTES_MAX => format!("it has more than {FILTER_BYTES_MAX} bytes"),
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    Err(TelemetryError::LogFilter { filter: filter.chars().take(80).collect(), problem })
}

impl Telemetry {
    /// Checks the settings, but for the files of the collector.
    ///
    /// # Errors
    /// The filter cannot be read.
    pub(crate) fn new(
        filter: Option<String>,
        format: LogFormat,
        collector: Option<Collector>,
    ) -> Result<Self, TelemetryError> {
        let filter = filter.unwrap_or_else(Self::filter_default);
        require_filter(&filter)?;
        Ok(Self { filter, format, collector })
    }

    /// Reads the files of the collector.
    ///
    /// # Errors
    /// One of them cannot be read or used.
    pub(crate) fn require_files(&self) -> Result<(), TelemetryError> {
        self.collector.as_ref().map_or(Ok(()), |collector| collector.connection().map(drop))
    }

    /// Which lines are logged.
    pub(crate) fn filter(&self) -> &str {
        &self.filter
    }

    /// `RUST_LOG` if it is set, else `info`.
    pub(crate) fn filter_default() -> String {
        env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty()).unwrap_or_else(|| "info".to_owned())
    }

    /// Starts logs and traces, from within a runtime. A second start in one process changes nothing.
    pub(crate) fn start(&self) -> Telescope {
        let json = match self.format {
            LogFormat::Auto => !io::stderr().is_terminal(),
            LogFormat::Json => true,
            LogFormat::Text => false,
        };
        let (filter, handle) = reload::Layer::new(EnvFilter::new(&self.filter));
        let as_json = || fmt::layer().event_format(JsonLines).with_ansi(false);
        let as_text = || fmt::layer().fmt_fields(TextFields).with_ansi(io::stderr().is_terminal());
        let lines = match (writer(json), json) {
            (Some(writer), true) => as_json().with_writer(writer).boxed(),
            (Some(writer), false) => as_text().with_writer(writer).boxed(),
            // Better with a log that may hold up the process than without one.
            (None, true) => as_json().with_writer(io::stderr).boxed(),
            (None, false) => as_text().with_writer(io::stderr).boxed(),
        };
        let logs = Registry::default().with(lines.with_filter(filter));
        let (traces, problem) = match self.collector.as_ref().map(Collector::provider) {
            None => (None, None),
            Some(Ok(traces)) => (Some(traces), None),
            Some(Err(error)) => (None, Some(error)),
        };
        let spans = traces.as_ref().map(|traces| {
            let only_requests = Targets::new().with_target(TRACE, LevelFilter::DEBUG);
            tracing_opentelemetry::layer().with_tracer(traces.tracer("canopyd")).with_filter(only_requests)
        });
        let _already_started = logs.with(spans).try_init();
        if let Some(error) = problem {
            tracing::error!(%error, "traces cannot be sent; the server continues without them");
        }
        let current = Arc::new(Mutex::new((self.filter.clone(), 0)));
        Telescope { traces, filter: LogFilter { handle, current } }
    }
}

impl Telescope {
    /// The filter of the log.
    pub(crate) fn filter(&self) -> LogFilter {
        self.filter.clone()
    }

    /// Sends the remaining spans. Blocks for some seconds at most.
    pub(crate) fn finish(self) {
        if let Some(traces) = self.traces
            && let Err(error) = traces.shutdown()
        {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// The way of all log lines of the process to standard error; none where the system has no thread for it.
fn writer(json: bool) -> Option<LogWriter> {
    WRITER.get_or_init(|| LogWriter::start(io::stderr(), if json { lines::dropped } else { dropped }).ok()).clone()
}

static WRITER: OnceLock<Option<LogWriter>> = OnceLock::new();

/// Says in words that lines of the log were dropped.
fn dropped(count: u64) -> String {
    format!("WARN {count} log lines were dropped because their reader was too slow\n")
}

/// Lines of the log that were dropped because their reader was too slow.
pub(crate) fn dropped_lines() -> u64 {
    WRITER.get().and_then(Option::as_ref).map_or(0, LogWriter::dropped_count)
}

/// Waits for the last lines of the log to leave the process, which ends next. Blocks for half a second at most, where
/// nobody reads them.
pub fn flush_log() {
    if let Some(Some(writer)) = WRITER.get() {
        writer.flush(Duration::from_millis(500));
    }
}

/// Starts logging with the default configuration.
pub(crate) fn start_logging() {
    let usual = Telemetry { filter: Telemetry::filter_default(), format: LogFormat::Auto, collector: None };
    usual.start().finish();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_refused() {
        let telemetry = |filter: &str| Telemetry::new(Some(filter.to_owned()), LogFormat::Auto, None);
        assert!(telemetry("info,canopy_server=debug").is_ok());
        assert!(matches!(telemetry("a=b=c"), Err(TelemetryError::LogFilter { .. })));
    }
}
