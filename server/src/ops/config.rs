//! What a server can be told: by a file, by environment, by flags, or by the program that embeds it.

mod print;
mod settings;
mod types;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use canopy_topology::TopologyLimits;

use crate::jobs::refusals::RefusalOptions;
use crate::ops::telemetry::TelemetryError;
use crate::replan::ReplanOptions;
use crate::store::StoreEngine;
use crate::tenant::IsolatedTenant;

pub use self::print::{print_effective, print_sample};
pub use self::settings::{ServerFlags, Settings};
pub use self::types::{AdminListen, Time};

/// Everything a server needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// TCP address to listen on. The Unix socket in the data directory is served always.
    pub listen: Option<SocketAddr>,
    /// Whether `listen` may be reached from other machines.
    pub exposure: Exposure,
    /// TCP address of the port for operators: health, readiness and metrics over HTTP. None: no such port, and
    /// nothing is counted for it.
    pub admin_listen: Option<SocketAddr>,
    /// Directory of the store and the socket; created if needed.
    pub data_dir: PathBuf,
    /// What keeps the plans on the disk.
    pub store_engine: StoreEngine,
    /// Most bytes of stored plans.
    pub store_bytes_max: u64,
    /// Threads that make plans.
    pub worker_count: NonZeroUsize,
    /// Most requests that wait.
    pub queue_length_max: NonZeroUsize,
    /// Most bytes of requests, and of the networks in them, held while they wait or run.
    pub queue_bytes_max: usize,
    /// Most bytes of memory that jobs take for making plans, all that run together; estimated before they begin.
    pub job_memory_bytes_max: u64,
    /// Greatest topology. The limit in bytes is that of a whole request, too.
    pub limits: TopologyLimits,
    /// Tenants whose plans nobody else gets.
    pub isolated_tenants: Vec<IsolatedTenant>,
    /// How many requests are remembered to have no plan, and for how long.
    pub refusals: RefusalOptions,
    /// When plans are made anew for running jobs.
    pub replans: ReplanOptions,
    /// Deadline of calls that state none.
    pub default_deadline: Duration,
    /// Greatest deadline.
    pub max_deadline: Duration,
    /// How long requests may go on after the server was asked to end.
    pub drain_timeout: Duration,
    /// Whether programs on this host may drain the server over TCP, not over the Unix socket alone.
    pub loopback_drain: bool,
    /// Whether the server outlives the command that started it.
    pub lifetime: Lifetime,
}

/// What a server is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It serves whoever comes: jobs that it cannot finish are taken up by its successor, and it is ready once it
    /// knows what is stored.
    Daemon,
    /// It serves one command, and ends with it: its unfinished jobs are forgotten, and those of a standing server on
    /// the same directory are left alone.
    Command,
}

/// Who may reach a server, which has no authentication yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Programs on this machine.
    Loopback,
    /// Everybody the network lets through.
    Public,
}

impl Options {
    /// Options of a server inside a command-line process: no TCP port, and it ends with the process.
    pub fn embedded(data_dir: PathBuf) -> Self {
        Self::of_command(data_dir, Settings::default())
    }

    /// The same with the limits and the store that `CANOPY_*` variables state, as for `canopyd`.
    ///
    /// # Errors
    /// A variable that cannot be read.
    pub fn embedded_as_told(data_dir: PathBuf) -> Result<Self, ConfigError> {
        let said = Settings::from_environment()?;
        let limits_and_store = Settings {
            store_engine: said.store_engine,
            store_bytes: said.store_bytes,
            workers: said.workers,
            job_memory_bytes: said.job_memory_bytes,
            negative_ttl: said.negative_ttl,
            negative_entries: said.negative_entries,
            max_nodes: said.max_nodes,
            max_links: said.max_links,
            max_request_bytes: said.max_request_bytes,
            ..Settings::default()
        };
        Ok(Self::of_command(data_dir, limits_and_store))
    }

    fn of_command(data_dir: PathBuf, settings: Settings) -> Self {
        let settings = Settings { data_dir: Some(data_dir), ..settings };
        Self {
            listen: None,
            admin_listen: None,
            max_deadline: Duration::from_secs(24 * 3600),
            drain_timeout: Duration::ZERO,
            lifetime: Lifetime::Command,
            ..settings.into_options().expect("a data directory is given")
        }
    }

    /// Checks what no type can say.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut addresses = [self.listen, self.admin_listen].into_iter().flatten();
        if self.exposure == Exposure::Loopback
            && let Some(address) = addresses.find(|address| !address.ip().is_loopback())
        {
            return Err(ConfigError::NotLoopback { address });
        }
        if self.default_deadline > self.max_deadline {
            let (default, max) = (self.default_deadline, self.max_deadline);
            return Err(ConfigError::Deadlines { default, max });
        }
        if self.queue_bytes_max < self.limits.bytes_max {
            let (budget, limit) = (self.queue_bytes_max, self.limits.bytes_max);
            return Err(ConfigError::Budget { budget, limit });
        }
        Ok(())
    }
}

/// Why options contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ConfigError {
    #[error(
        "{address} can be reached from other machines, and this server has no authentication; use a loopback address or say --allow-public"
    )]
    NotLoopback { address: SocketAddr },
    #[error("the default deadline of {default:?} is greater than the greatest deadline of {max:?}; change one of them")]
    Deadlines { default: Duration, max: Duration },
    #[error(
        "the budget of {budget} bytes for waiting requests is less than one request of {limit} bytes; change one of them"
    )]
    Budget { budget: usize, limit: usize },
    #[error("there is no home directory to keep plans in; set CANOPY_DATA_DIR")]
    NoHome,
    #[error("the configuration file {path} cannot be read: {kind}; give another with --config")]
    Unreadable { path: String, kind: io::ErrorKind },
    #[error("{path}, line {line}: {problem}; `canopyd --print-config` shows every key")]
    Malformed { path: String, line: usize, problem: String },
    #[error("{problem}; correct or unset the variable")]
    Environment { problem: String },
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
}

/// Where plans are kept when nothing is said: `$XDG_DATA_HOME/canopy`, else `~/.local/share/canopy`.
///
/// # Errors
/// There is no home directory.
pub fn data_dir_default() -> Result<PathBuf, ConfigError> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data_home = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    data_home.map(|path| path.join("canopy")).ok_or(ConfigError::NoHome)
}

/// The Unix socket of the server on a data directory.
pub fn socket_path(data_dir: &Path) -> PathBuf {
    data_dir.join("canopy.sock")
}

/// A text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration; write a number and ms, s, m or h, such as 30s")]
pub struct DurationError {
    /// What was found.
    pub text: String,
}

/// Reads a whole number followed by `ms`, `s`, `m` or `h`.
///
/// # Errors
/// Anything else, and what does not fit 64 bits of milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError { text: text.chars().take(80).collect() };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let millis_per_unit = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(error()),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(error());
    }
    let millis = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(millis_per_unit));
    millis.map(Duration::from_millis).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_others_can_reach_needs_the_flag() {
        let mut options = Options::embedded(PathBuf::from("/tmp/x"));
        assert_eq!(options.validate(), Ok(()));
        for (address, allowed) in
            [("127.0.0.1:1", true), ("[::1]:1", true), ("0.0.0.0:1", false), ("10.0.0.1:1", false)]
        {
            let address = address.parse().unwrap();
            for (listen, admin_listen) in [(Some(address), None), (None, Some(address))] {
                (options.listen, options.admin_listen) = (listen, admin_listen);
                options.exposure = Exposure::Loopback;
                assert_eq!(options.validate().is_ok(), allowed, "{address}");
                options.exposure = Exposure::Public;
                assert_eq!(options.validate(), Ok(()));
            }
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let mut options = Options::embedded(PathBuf::from("/tmp/x"));
        options.max_deadline = Duration::from_secs(1);
        assert!(matches!(options.validate(), Err(ConfigError::Deadlines { .. })));
        let mut options = Options::embedded(PathBuf::from("/tmp/x"));
        options.queue_bytes_max = 1;
        assert!(matches!(options.validate(), Err(ConfigError::Budget { .. })));
    }

    #[test]
    fn durations_are_read() {
        for (text, millis) in [("250ms", 250), ("30s", 30_000), ("2m", 120_000), ("1h", 3_600_000), ("0s", 0)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "s", "30", "1.5s", "-1s", "1 s", "30sec", "99999999999999999999s", "18446744073709551615h", "１s"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
