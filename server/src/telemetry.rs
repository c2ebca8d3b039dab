//! Logs of the server process, on standard error: for people on a terminal, else one JSON object per line.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

/// Starts logging; `RUST_LOG` says what, else everything from `info` upwards. A second call does nothing.
pub fn start_logging() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = fmt().with_env_filter(filter).with_writer(io::stderr);
    let _already_started = if io::stderr().is_terminal() {
        builder.try_init()
    } else {
        builder.json().flatten_event(true).with_span_list(false).with_ansi(false).try_init()
    };
}
