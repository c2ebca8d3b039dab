//! A whole process that serves until it is told to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::config::ServerFlags;
use crate::failure::chain;
use crate::server::{RunError, Server, StartError};

/// Why a serving process ended with an error; prints the whole chain of causes.
#[derive(Debug)]
pub enum ServeError {
    /// It did not start.
    Start(StartError),
    /// It failed while it served.
    Run(RunError),
    /// The operating system refused threads or signals.
    Process(io::Error),
}

impl ServeError {
    /// Why it did not start, if that is what happened.
    pub const fn start_error(&self) -> Option<&StartError> {
        match self {
            Self::Start(error) => Some(error),
            Self::Run(_) | Self::Process(_) => None,
        }
    }
}

impl std::fmt::Display for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&match self {
            Self::Start(error) => chain(error),
            Self::Run(error) => chain(error),
            Self::Process(error) => chain(error),
        })
    }
}

impl std::error::Error for ServeError {}

/// Serves until SIGTERM or SIGINT, then drains; a second signal ends the process at once.
///
/// # Errors
/// What kept the server from starting, or ended it.
pub fn run_server(flags: ServerFlags) -> Result<(), ServeError> {
    let options = flags.into_options().map_err(|error| ServeError::Start(error.into()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ServeError::Process)?;
    runtime.block_on(async {
        let mut signals = Signals::listen().map_err(ServeError::Process)?;
        let server = Server::build(options).await.map_err(ServeError::Start)?;
        tracing::info!(
            tcp = server.tcp_address().map(|address| address.to_string()),
            unix = %server.socket().path().display(),
            version = env!("CARGO_PKG_VERSION"),
            "serving canopy.v1.Planner",
        );
        let (drain, drained) = tokio::sync::oneshot::channel();
        let serving = server.run(async {
            let _said = drained.await;
        });
        tokio::pin!(serving);
        let ended_early = tokio::select! {
            result = &mut serving => Some(result),
            () = signals.next() => None,
        };
        if let Some(result) = ended_early {
            return result.map_err(ServeError::Run);
        }
        tracing::info!("draining");
        let _gone = drain.send(());
        tokio::select! {
            result = serving => result.map_err(ServeError::Run),
            () = signals.next() => {
                tracing::warn!("ending at once");
                std::process::exit(130)
            }
        }
    })
}

/// SIGTERM and SIGINT.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
