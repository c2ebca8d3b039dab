//! A process that serves until it is asked to stop.

mod memory;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use canopy_planner::chain;
use tokio::signal::unix::{SignalKind, signal};

use crate::credentials::Credentials;
use crate::net::listener::raise_descriptor_limit;
use crate::ops::config::{ConfigError, Options, ServerFlags, print_effective};
use crate::ops::notify::Notifier;
use crate::ops::reload::Reload;
use crate::ops::telemetry::{flush_log, start_logging};
use crate::server::{RunError, Server, StartError};
use crate::tasks;

/// Longest time that threads have to end once the server has.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Why a serving process ended with an error; prints the whole chain of causes.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It did not start.
    #[error("{}", chain(.0))]
    Start(StartError),
    /// It failed while it served.
    #[error("{}", chain(.0))]
    Run(RunError),
    /// The operating system refused threads or signals.
    #[error("{}", chain(.0))]
    Process(io::Error),
}

impl ServeError {
    /// Why it did not start, if that is the error.
    pub const fn start_error(&self) -> Option<&StartError> {
        match self {
            Self::Start(error) => Some(error),
            Self::Run(_) | Self::Process(_) => None,
        }
    }
}

/// Serves until SIGTERM or SIGINT, then drains; a second signal ends the process at once. SIGHUP reloads the
/// configuration and applies its log filter. Starts logs and traces.
///
/// # Errors
/// What kept the server from starting, or ended it.
pub fn run_server(flags: ServerFlags) -> Result<(), ServeError> {
    // Whatever this process writes is its user's alone; the socket for all users says otherwise of itself.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let configured = flags.clone().into_settings().and_then(|settings| {
        let (telemetry, effective) = (settings.telemetry()?, print_effective(settings.clone())?);
        telemetry.require_files()?;
        Ok((telemetry, settings.into_options()?, effective))
    });
    let (telemetry, options, effective) = configured.map_err(|error| {
        // So that the caller's report of this error is seen.
        start_logging();
        ServeError::Start(error.into())
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ServeError::Process)?;
    let telescope = {
        let _runtime = runtime.enter();
        telemetry.start()
    };
    raise_descriptor_limit();
    let reload = Reload { flags, filter: telescope.filter(), effective: effective.into() };
    let result = runtime.block_on(serve(options, reload));
    // The runtime still carries the connection to the collector.
    telescope.finish();
    flush_log();
    // The store closes with the last of its users, which takes its time. A thread that is still busy after that must not
    // keep the process: nothing that it does is acknowledged any more.
    runtime.shutdown_timeout(LAST_WAIT);
    result
}

/// The effective settings as a configuration file, after the checks that a start makes: of the files of rules, tokens and
/// certificates, too, if `reads_files`.
///
/// # Errors
/// What would keep a server from starting.
pub(crate) fn check_config(flags: ServerFlags, reads_files: bool) -> Result<String, StartError> {
    let settings = flags.into_settings()?;
    let telemetry = settings.telemetry()?;
    let options = settings.clone().into_options()?;
    options.validate()?;
    if reads_files {
        telemetry.require_files().map_err(ConfigError::from)?;
        Credentials::read(options.access, options.tls)?;
    }
    Ok(print_effective(settings)?)
}

async fn serve(options: Options, reload: Reload) -> Result<(), ServeError> {
    let mut signals = Signals::listen().map_err(ServeError::Process)?;
    let notifier = Arc::new(Notifier::from_environment());
    let hangups = signal(SignalKind::hangup()).map_err(ServeError::Process)?;
    let server = Server::build(options).await.map_err(ServeError::Start)?;
    let _memory = tasks::spawn("memory", memory::give_back_what_is_free());
    let _reloads = tasks::spawn("reload", server.reloads().at_each(hangups, reload));
    let _looks = tasks::spawn("credentials", server.credentials().keep_current(server.metrics()));
    tracing::info!(
        tcp = server.tcp_address().map(|address| address.to_string()),
        admin = server.admin_address().map(|address| address.to_string()),
        unix = %server.socket().path().display(),
        version = env!("CARGO_PKG_VERSION"),
        "serving canopy.v1",
    );
    notifier.ready();
    let _sign_of_life = notifier.watchdog_period().map(|period| {
        let notifier = Arc::clone(&notifier);
        // A task like those that serve: when the runtime is stuck, the manager hears nothing and restarts the process.
        tasks::spawn("watchdog", async move {
            let mut ticks = tokio::time::interval(period);
            loop {
                ticks.tick().await;
                notifier.alive();
            }
        })
    });
    let drain = server.drain_handle();
    let serving = server.run(std::future::pending());
    tokio::pin!(serving);
    let ended_early = tokio::select! {
        result = &mut serving => Some(result),
        () = signals.next() => { drain.start(); None }
        () = drain.started() => None,
    };
    if let Some(result) = ended_early {
        return result.map_err(ServeError::Run);
    }
    tracing::info!(calls_inside = drain.calls_inside(), "draining");
    notifier.stopping();
    tokio::select! {
        result = serving => result.map_err(ServeError::Run),
        () = signals.next() => {
            tracing::warn!("ending at once");
            flush_log();
            std::process::exit(130)
        }
    }
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
