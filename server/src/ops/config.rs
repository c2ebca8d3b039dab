//! Configuration of a server: from a file, the environment, flags, or the program that embeds it.

mod engine;
mod print;
mod settings;
mod types;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use canopy_database::Address;
use canopy_service::NoHome;
use canopy_topology::{SiteRates, TopologyLimits};

use crate::access::AccessOptions;
use crate::jobs::refusals::RefusalOptions;
use crate::net::listener::TlsFiles;
use crate::ops::audit::AuditOptions;
use crate::ops::telemetry::TelemetryError;
use crate::replan::ReplanOptions;
use crate::store::ArchiveTrust;
use crate::tenant::IsolatedTenant;

pub use self::print::{print_effective, print_sample};
pub use self::settings::{ServerFlags, Settings};
pub use self::types::{AdminListen, AuditFolder, ServerRole, Time, WhenAway};

/// All options of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// TCP address to listen on. The Unix socket in the data directory is always served.
    pub listen: Option<SocketAddr>,
    /// Certificates of the TCP ports. `None`: they speak plain text, which needs development mode and a loopback address.
    pub tls: Option<TlsFiles>,
    /// Who may call what.
    pub access: AccessOptions,
    /// Where changes and refusals are written down. `None`: nowhere.
    pub audit: Option<AuditOptions>,
    /// Whose archives are imported.
    pub archive_trust: ArchiveTrust,
    /// TCP address of the operators' port: health, readiness and metrics over HTTP. `None`: no such port and no
    /// metrics.
    pub admin_listen: Option<SocketAddr>,
    /// Unix socket to which every user of this machine may connect, beside that in the data directory.
    pub users_socket: Option<PathBuf>,
    /// Directory of the store and the socket; created if needed.
    pub data_dir: PathBuf,
    /// The database that servers share. `None`: the store is this server's alone.
    pub database: Option<Address>,
    /// Most connections to it, beside one that hears of changes.
    pub database_connections: NonZeroUsize,
    /// What to do with requests for plans that are not cached while it cannot be reached.
    pub database_when_away: WhenAway,
    /// What this server does for those that share it.
    pub role: ServerRole,
    /// Most bytes of stored plans.
    pub store_bytes_max: u64,
    /// Planning threads.
    pub worker_count: NonZeroUsize,
    /// Most waiting requests.
    pub queue_length_max: NonZeroUsize,
    /// Most bytes of waiting and running requests, including their networks.
    pub queue_bytes_max: usize,
    /// Most memory, in bytes, for all running jobs together; estimated before each job starts.
    pub job_memory_bytes_max: u64,
    /// Largest topology. The limit in bytes also applies to a whole request.
    pub limits: TopologyLimits,
    /// What the site states of network families in place of their own rates.
    pub family_rates: SiteRates,
    /// Tenants whose plans are not shared.
    pub isolated_tenants: Vec<IsolatedTenant>,
    /// How many refusals are remembered, and for how long.
    pub refusals: RefusalOptions,
    /// When to replan for running jobs.
    pub replans: ReplanOptions,
    /// Deadline of calls without one.
    pub default_deadline: Duration,
    /// Longest deadline.
    pub max_deadline: Duration,
    /// How long requests may continue after a shutdown request.
    pub drain_timeout: Duration,
    /// Whether programs on this host may drain the server over TCP as well as over the Unix socket.
    pub loopback_drain: bool,
    /// Whether services are described by gRPC reflection.
    pub has_reflection: bool,
    /// Whether the operators' port shows the queue.
    pub has_debug_pages: bool,
    /// Whether the operators' port serves the console.
    pub has_console: bool,
    /// Whether the server outlives the command that started it.
    pub lifetime: Lifetime,
}

/// Lifetime of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Serves all clients. Its successor takes up its unfinished jobs, and it becomes ready once it has read the store.
    Daemon,
    /// Serves one command and ends with it. Its unfinished jobs are dropped, and those of a daemon on the same
    /// directory are left alone.
    Command,
}

impl Options {
    /// Options of a server inside a command-line process: no TCP port; it ends with the process.
    pub fn embedded(data_dir: PathBuf) -> Self {
        Self::of_command(data_dir, Settings::default())
    }

    /// As [`Options::embedded`], with the limits and the store from `CANOPY_*` variables, as for `canopyd`.
    ///
    /// # Errors
    /// A variable has a value that cannot be read.
    pub fn embedded_as_told(data_dir: PathBuf) -> Result<Self, ConfigError> {
        let said = Settings::from_environment()?;
        let limits_and_store = Settings {
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
        // Nobody else reaches it: its socket is in a directory of its owner.
        let settings = Settings { data_dir: Some(data_dir), dev: Some(true), ..settings };
        Self {
            listen: None,
            admin_listen: None,
            users_socket: None,
            tls: None,
            audit: None,
            database: None,
            role: ServerRole::All,
            archive_trust: ArchiveTrust::Everything,
            max_deadline: Duration::from_secs(24 * 3600),
            drain_timeout: Duration::ZERO,
            lifetime: Lifetime::Command,
            ..settings.into_options().expect("a data directory is given")
        }
    }

    /// Checks what the types cannot express.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut addresses = [self.listen, self.admin_listen].into_iter().flatten();
        if self.tls.is_none() {
            if let Some(address) = addresses.clone().next().filter(|_| !self.access.development) {
                return Err(ConfigError::PlainText { address });
            }
            if let Some(address) = addresses.find(|address| !address.ip().is_loopback()) {
                return Err(ConfigError::NotLoopback { address });
            }
        } else if self.access.development && self.access.rules.is_none() {
            return Err(ConfigError::OpenToAll);
        }
        if self.users_socket.is_some() && self.access.rules.is_none() {
            return Err(ConfigError::UsersWithoutRules);
        }
        if self.role != ServerRole::All && self.database.is_none() {
            return Err(ConfigError::RoleAlone);
        }
        if self.role == ServerRole::Worker && self.listen.is_some() {
            return Err(ConfigError::WorkerListens);
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

/// A problem with the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ConfigError {
    #[error(
        "{address} would carry plain text; state `tls_certificate` and `tls_key`, or try canopy out by yourself with `--dev`"
    )]
    PlainText { address: SocketAddr },
    #[error(
        "{address} can be reached from other machines, and would carry plain text; state `tls_certificate` and `tls_key`, or use a loopback address"
    )]
    NotLoopback { address: SocketAddr },
    #[error(
        "with `dev` and without `access`, everybody who reaches the server may do everything; take `dev` away, or state `access`"
    )]
    OpenToAll,
    #[error("`users_socket` is for callers whom `access` knows; state `access`, or take `users_socket` away")]
    UsersWithoutRules,
    #[error("{problem}")]
    Database { problem: String },
    #[error(
        "`role` says what a server does for others that share its `database`, which is not stated; state it, or take `role` away"
    )]
    RoleAlone,
    #[error("a server with the role `worker` answers no calls over TCP; take `listen` away, or let `role` be `all`")]
    WorkerListens,
    #[error("`{present}` is stated, and `{absent}`, which belongs to it, is not; state both or neither")]
    Half { present: &'static str, absent: &'static str },
    #[error("`default_deadline` {default:?} exceeds `max_deadline` {max:?}; change one of them")]
    Deadlines { default: Duration, max: Duration },
    #[error("`queue_bytes` {budget} is less than `max_request_bytes` {limit}; change one of them")]
    Budget { budget: usize, limit: usize },
    #[error("{path}, the file of `family_rates`: {problem}")]
    FamilyRates { path: String, problem: String },
    #[error("`archive_signers`, {path}: {problem}")]
    ArchiveSigners { path: String, problem: String },
    #[error("`{key}` is {found}; set at most {limit}, the largest whole number of TOML")]
    Number { key: String, found: u64, limit: i64 },
    #[error("a path cannot be written as a setting: {problem}; rename it, all but `data_dir` must be text")]
    PathNotText { problem: String },
    #[error(transparent)]
    NoHome(#[from] NoHome),
    #[error("cannot read the configuration file {path}: {kind}; name another one with `--config`")]
    Unreadable { path: String, kind: io::ErrorKind },
    #[error("{path}, line {line}: {problem}; run `canopyd --print-config` for all keys")]
    Malformed { path: String, line: usize, problem: String },
    #[error("{problem}; correct or unset the variable")]
    Environment { problem: String },
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
}

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration; write a number and ms, s, m or h, such as 30s")]
pub struct DurationError {
    /// The text.
    pub text: String,
}

/// Reads a whole number followed by `ms`, `s`, `m` or `h`.
///
/// # Errors
/// Any other text, or a duration that exceeds 64 bits of milliseconds.
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
    use canopy_service::Limits;

    use super::*;

    /// A command plans by itself or by a server inside it, within the same limits.
    #[test]
    fn limits_are_those_of_a_process_without_a_server() {
        let folder = PathBuf::from("/tmp/x");
        let Options { limits, store_bytes_max, job_memory_bytes_max, .. } = Options::embedded_as_told(folder).unwrap();
        let alone = Limits::of_environment().unwrap();
        assert_eq!(
            alone,
            Limits { topology: limits, store_bytes: store_bytes_max, memory_bytes: job_memory_bytes_max }
        );
    }

    #[test]
    fn plain_text_stays_on_this_machine_and_is_asked_for() {
        let mut options = Options::embedded(PathBuf::from("/tmp/x"));
        assert_eq!(options.validate(), Ok(()));
        for (address, is_here) in
            [("127.0.0.1:1", true), ("[::1]:1", true), ("0.0.0.0:1", false), ("10.0.0.1:1", false)]
        {
            let address = address.parse().unwrap();
            for (listen, admin_listen) in [(Some(address), None), (None, Some(address))] {
                (options.listen, options.admin_listen, options.tls) = (listen, admin_listen, None);
                options.access.development = true;
                assert_eq!(options.validate().is_ok(), is_here, "{address}");
                options.access.development = false;
                assert_eq!(options.validate(), Err(ConfigError::PlainText { address }));
                let [certificate, key] = ["c", "k"].map(PathBuf::from);
                options.tls = Some(TlsFiles { certificate, key, client_ca: None });
                assert_eq!(options.validate(), Ok(()));
                options.access.development = true;
                assert_eq!(options.validate(), Err(ConfigError::OpenToAll));
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
