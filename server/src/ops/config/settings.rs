//! The settings of a server process and their layers: a file, overridden by the environment, overridden by flags.

mod files;
mod options;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use canopy_service::{Memory, data_dir_default};
use canopy_topology::TopologyLimits;
use clap::builder::BoolishValueParser;
use clap::{Args as _, FromArgMatches as _};
use serde::{Deserialize, Serialize};

use super::engine::StoreEngine;
use super::{AdminListen, AuditFolder, ConfigError, Options, ServerRole, Time, WhenAway};
use crate::jobs::refusals::RefusalOptions;
use crate::ops::audit::WhenUnwritable;
use crate::ops::telemetry::{LogFormat, Telemetry};
use crate::replan::ReplanOptions;
use crate::store::RecordOptions;
use crate::tenant::IsolatedTenant;

/// Characters of a message of the TOML reader that are shown.
const PROBLEM_CHARS_MAX: usize = 1000;
/// Bytes of requests that wait or run, where the memory allows.
const QUEUE_BYTES: usize = 512 << 20;

/// One layer of settings; unset fields fall through to the layer below.
///
/// The field names are the keys of the file; their documentation is the help of the flags and the comments of the
/// printed configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// TCP address to listen on [default: 127.0.0.1:7423 with TLS or `dev`, else none].
    #[arg(long, env = "CANOPY_LISTEN", value_name = "IP:PORT")]
    pub listen: Option<SocketAddr>,
    /// TCP address of /healthz, /readyz and /metrics, or `off` [default: loopback, the port after `listen`].
    #[arg(long, env = "CANOPY_ADMIN_LISTEN", value_name = "IP:PORT")]
    pub admin_listen: Option<AdminListen>,
    /// Try canopy out: plain text on loopback, and everybody there may do everything unless `access` says who may what
    /// [default: false].
    #[arg(long, env = "CANOPY_DEV", value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub dev: Option<bool>,
    /// Unix socket to which every user of this machine may connect; `access` says who may what [default: none].
    #[arg(long, env = "CANOPY_USERS_SOCKET", value_name = "PATH")]
    pub users_socket: Option<PathBuf>,
    /// Certificate of the TCP ports, and those that lead to its root (PEM); read again when it changes [default: none].
    #[arg(long, env = "CANOPY_TLS_CERTIFICATE", value_name = "FILE")]
    pub tls_certificate: Option<PathBuf>,
    /// Private key of that certificate (PEM), which others must not be able to read [default: none].
    #[arg(long, env = "CANOPY_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Certificates that sign callers' certificates (PEM) [default: none, callers show tokens].
    #[arg(long, env = "CANOPY_TLS_CLIENT_CA", value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
    /// File of rules that say who may call what (TOML); read again when it changes [default: none].
    #[arg(long, env = "CANOPY_ACCESS", value_name = "FILE")]
    pub access: Option<PathBuf>,
    /// File of the tokens that `canopy server tokens` makes; read again when it changes [default: tokens.json in `data_dir`].
    #[arg(long, env = "CANOPY_TOKENS", value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// Folder of the audit log, or `off` [default: audit in `data_dir`; off with `dev`].
    #[arg(long, env = "CANOPY_AUDIT", value_name = "DIR")]
    pub audit: Option<AuditFolder>,
    /// Most bytes of the audit log; beyond it the oldest files are removed [default: 1073741824].
    #[arg(long, env = "CANOPY_AUDIT_BYTES", value_name = "BYTES")]
    pub audit_bytes: Option<u64>,
    /// What to do with changes while the audit log cannot be written [default: refuse].
    #[arg(long, env = "CANOPY_AUDIT_WHEN_FULL", value_name = "POLICY", value_enum)]
    pub audit_when_full: Option<WhenUnwritable>,
    /// File of the keys of other servers whose archives may be imported; `unsigned` in a line allows those without a signature
    /// [default: only archives of this server; all with `dev`].
    #[arg(long, env = "CANOPY_ARCHIVE_SIGNERS", value_name = "FILE")]
    pub archive_signers: Option<PathBuf>,
    /// Directory of the store and the Unix socket [default: $XDG_DATA_HOME/canopy, else ~/.local/share/canopy].
    #[arg(long, env = "CANOPY_DATA_DIR", value_name = "DIR", global = true)]
    pub data_dir: Option<PathBuf>,
    /// Storage engine for plans: sled, the only one since redb is gone [default: sled].
    #[arg(long, env = "CANOPY_STORE_ENGINE", value_name = "ENGINE", global = true)]
    pub store_engine: Option<StoreEngine>,
    /// PostgreSQL that servers share, such as postgres://canopy@db.example:5432/canopy; encrypted, unless it is on this machine or says
    /// sslmode=disable [default: none, the store in `data_dir` is this server's alone].
    #[arg(long, env = "CANOPY_DATABASE", value_name = "URL", global = true)]
    pub database: Option<String>,
    /// File with the password for it, which others must not be able to read [default: none].
    #[arg(long, env = "CANOPY_DATABASE_PASSWORD_FILE", value_name = "FILE", global = true)]
    pub database_password_file: Option<PathBuf>,
    /// Most connections to it, beside one that hears of changes [default: 8].
    #[arg(long, env = "CANOPY_DATABASE_CONNECTIONS", value_name = "COUNT")]
    pub database_connections: Option<NonZeroUsize>,
    /// What to do with requests for plans that are not cached while it cannot be reached [default: refuse].
    #[arg(long, env = "CANOPY_DATABASE_WHEN_AWAY", value_name = "POLICY", value_enum)]
    pub database_when_away: Option<WhenAway>,
    /// What this server does for those that share the database [default: all].
    #[arg(long, env = "CANOPY_ROLE", value_name = "ROLE", value_enum)]
    pub role: Option<ServerRole>,
    /// Most bytes of stored plans; beyond it the least valuable ones are evicted [default: 4294967296].
    #[arg(long, env = "CANOPY_STORE_BYTES", value_name = "BYTES")]
    pub store_bytes: Option<u64>,
    /// Planning threads [default: one per core].
    #[arg(long, env = "CANOPY_WORKERS", value_name = "COUNT")]
    pub workers: Option<NonZeroUsize>,
    /// Most waiting requests; further ones are refused at once [default: 1024].
    #[arg(long, env = "CANOPY_QUEUE_LENGTH", value_name = "COUNT")]
    pub queue_length: Option<NonZeroUsize>,
    /// Most bytes of waiting and running requests, including their networks [default: 536870912, or an eighth of the
    /// memory limit if that is less].
    #[arg(long, env = "CANOPY_QUEUE_BYTES", value_name = "BYTES")]
    pub queue_bytes: Option<usize>,
    /// Most memory for planning, in bytes, by estimate: larger jobs are refused, others wait [default: three quarters of
    /// the memory limit, else half of the machine's memory, at most 8589934592].
    #[arg(long, env = "CANOPY_JOB_MEMORY_BYTES", value_name = "BYTES")]
    pub job_memory_bytes: Option<u64>,
    /// Most nodes of a topology [default: 200000].
    #[arg(long, env = "CANOPY_MAX_NODES", value_name = "COUNT")]
    pub max_nodes: Option<usize>,
    /// Most directed links of a topology [default: 2000000].
    #[arg(long, env = "CANOPY_MAX_LINKS", value_name = "COUNT")]
    pub max_links: Option<usize>,
    /// Most bytes of a request [default: 67108864].
    #[arg(long, env = "CANOPY_MAX_REQUEST_BYTES", value_name = "BYTES")]
    pub max_request_bytes: Option<usize>,
    /// File of rates that replace those of network families, such as `dgx-h100: {nic: 45GB/s}` [default: none].
    #[arg(long, env = "CANOPY_FAMILY_RATES", value_name = "FILE")]
    pub family_rates: Option<PathBuf>,
    /// Tenants (header `x-canopy-tenant`) whose plans are not shared; `*` for every named tenant [default: []].
    #[arg(long, env = "CANOPY_ISOLATE_TENANTS", value_name = "TENANT,...", value_delimiter = ',')]
    pub isolate_tenants: Option<Vec<IsolatedTenant>>,
    /// How long to remember that a request has no plan; 0s to search again each time [default: 10m].
    #[arg(long, env = "CANOPY_NEGATIVE_TTL", value_name = "TIME")]
    pub negative_ttl: Option<Time>,
    /// Most requests remembered to have no plan [default: 4096].
    #[arg(long, env = "CANOPY_NEGATIVE_ENTRIES", value_name = "COUNT")]
    pub negative_entries: Option<usize>,
    /// Shortest time between two replans of one lease [default: 5s].
    #[arg(long, env = "CANOPY_REPLAN_WINDOW", value_name = "TIME")]
    pub replan_window: Option<Time>,
    /// Most replans started per second [default: 100].
    #[arg(long, env = "CANOPY_REPLANS_PER_SECOND", value_name = "COUNT")]
    pub replans_per_second: Option<NonZeroUsize>,
    /// How long a cleared element must stay healthy before its fault is removed [default: 10s].
    #[arg(long, env = "CANOPY_FAULT_DEBOUNCE", value_name = "TIME")]
    pub fault_debounce: Option<Time>,
    /// How long a flapping element must be stable before its fault is removed [default: 1m].
    #[arg(long, env = "CANOPY_FAULT_HOLD_DOWN", value_name = "TIME")]
    pub fault_hold_down: Option<Time>,
    /// When idle, plan ahead for single faults in networks with leases [default: true].
    #[arg(long, env = "CANOPY_PLAN_AHEAD", value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub plan_ahead: Option<bool>,
    /// Most pinned plans without a lease to plan ahead for, most used first [default: 64].
    #[arg(long, env = "CANOPY_PLAN_AHEAD_PINNED", value_name = "COUNT")]
    pub plan_ahead_pinned: Option<usize>,
    /// Deadline of calls without one [default: 30s].
    #[arg(long, env = "CANOPY_DEFAULT_DEADLINE", value_name = "TIME")]
    pub default_deadline: Option<Time>,
    /// Longest deadline; longer ones are shortened to it [default: 1h].
    #[arg(long, env = "CANOPY_MAX_DEADLINE", value_name = "TIME")]
    pub max_deadline: Option<Time>,
    /// How long requests may continue after a shutdown request [default: 25s].
    #[arg(long, env = "CANOPY_DRAIN_TIMEOUT", value_name = "TIME")]
    pub drain_timeout: Option<Time>,
    /// Let programs on this host drain the server over TCP as well as over the Unix socket [default: false].
    #[arg(long, env = "CANOPY_ALLOW_LOOPBACK_DRAIN", value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub allow_loopback_drain: Option<bool>,
    /// Describe all services to clients that ask by gRPC reflection [default: true].
    #[arg(long, env = "CANOPY_REFLECTION", value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub reflection: Option<bool>,
    /// Serve `/debug/queue`, which shows the jobs of all tenants, at `admin_listen` [default: true].
    #[arg(long, env = "CANOPY_DEBUG_PAGES", value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub debug_pages: Option<bool>,
    /// Serve the console, a web page for operators, and the calls that it makes, at `admin_listen` [default: true].
    #[arg(long, env = "CANOPY_CONSOLE", value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub console: Option<bool>,
    /// Log filter: a level, or targets with levels [default: $RUST_LOG, else info].
    #[arg(long, env = "CANOPY_LOG", value_name = "FILTER")]
    pub log: Option<String>,
    /// Format of log lines; `auto` is text on a terminal and JSON elsewhere [default: auto].
    #[arg(long, env = "CANOPY_LOG_FORMAT", value_name = "FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,
    /// OpenTelemetry collector for traces (OTLP over gRPC), such as https://collector:4317 [default: none].
    #[arg(long, env = "CANOPY_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Roots that the collector's certificate is signed by (PEM) [default: those of the system].
    #[arg(long, env = "CANOPY_OTLP_CA", value_name = "FILE")]
    pub otlp_ca: Option<PathBuf>,
    /// Certificate that the server shows the collector (PEM) [default: none].
    #[arg(long, env = "CANOPY_OTLP_CERTIFICATE", value_name = "FILE")]
    pub otlp_certificate: Option<PathBuf>,
    /// Key of that certificate (PEM) [default: none].
    #[arg(long, env = "CANOPY_OTLP_KEY", value_name = "FILE")]
    pub otlp_key: Option<PathBuf>,
}

/// Settings from flags and environment variables, and the file below them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ServerFlags {
    /// Configuration file (TOML); environment variables and flags override it.
    #[arg(long, env = "CANOPY_CONFIG", value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Settings from outside the file.
    #[command(flatten)]
    pub settings: Settings,
}

impl ServerFlags {
    /// Merges all layers but the defaults.
    ///
    /// # Errors
    /// The file cannot be read, or holds an unknown key or a bad value.
    pub fn into_settings(self) -> Result<Settings, ConfigError> {
        match &self.config {
            Some(path) => self.settings.over(Settings::read(path)?),
            None => Ok(self.settings),
        }
    }

    /// The options that result from these flags, with machine-dependent defaults filled in.
    ///
    /// # Errors
    /// As [`ServerFlags::into_settings`] and [`Settings::into_options`].
    pub fn into_options(self) -> Result<Options, ConfigError> {
        self.into_settings()?.into_options()
    }
}

impl Settings {
    /// Settings from the `CANOPY_*` variables.
    ///
    /// # Errors
    /// A variable has a value that cannot be read.
    pub fn from_environment() -> Result<Self, ConfigError> {
        let command = Self::augment_args(clap::Command::new("canopy").no_binary_name(true));
        // The parser speaks of flags, and only the variables behind them were used.
        let names: Vec<(String, String)> = command
            .get_arguments()
            .filter_map(|flag| {
                let variable = flag.get_env()?.to_str()?.to_owned();
                Some((format!("'--{} <{}>'", flag.get_long()?, flag.get_value_names()?.first()?), variable))
            })
            .collect();
        let refused = |error: clap::Error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let problem = names.iter().fold(line.to_owned(), |line, (flag, variable)| line.replace(flag, variable));
            ConfigError::Environment { problem }
        };
        let matches = command.try_get_matches_from([] as [&str; 0]).map_err(&refused)?;
        Self::from_arg_matches(&matches).map_err(refused)
    }

    /// Reads a configuration file.
    ///
    /// # Errors
    /// It cannot be read, is not TOML, or holds an unknown key or a bad value.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { path: path.display().to_string(), kind: error.kind() })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads the text of a configuration file; `path` is for messages only.
    ///
    /// # Errors
    /// It is not TOML, or holds an unknown key or a bad value.
    pub fn parse(text: &str, path: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
            let problem = error.message().split('\n').collect::<Vec<_>>().join(", ");
            // It may repeat a value.
            let problem = problem.chars().take(PROBLEM_CHARS_MAX).collect();
            ConfigError::Malformed { path: path.to_owned(), line, problem }
        })
    }

    /// The defaults that do not depend on the machine or on other settings.
    pub fn defaults() -> Self {
        let limits = TopologyLimits::STANDARD;
        Self {
            listen: None,
            admin_listen: None,
            dev: Some(false),
            users_socket: None,
            tls_certificate: None,
            tls_key: None,
            tls_client_ca: None,
            access: None,
            tokens: None,
            audit: None,
            audit_bytes: Some(1 << 30),
            audit_when_full: Some(WhenUnwritable::Refuse),
            archive_signers: None,
            data_dir: None,
            store_engine: Some(StoreEngine),
            database: None,
            database_password_file: None,
            database_connections: NonZeroUsize::new(8),
            database_when_away: Some(WhenAway::Refuse),
            role: Some(ServerRole::All),
            store_bytes: Some(RecordOptions::STANDARD.bytes_max),
            workers: None,
            queue_length: NonZeroUsize::new(1024),
            queue_bytes: None,
            job_memory_bytes: None,
            max_nodes: Some(limits.nodes_max),
            max_links: Some(limits.links_max),
            max_request_bytes: Some(limits.bytes_max),
            family_rates: None,
            isolate_tenants: Some(Vec::new()),
            negative_ttl: Some(Time(RefusalOptions::STANDARD.lifetime)),
            negative_entries: Some(RefusalOptions::STANDARD.count_max),
            replan_window: Some(Time(ReplanOptions::STANDARD.window)),
            replans_per_second: Some(ReplanOptions::STANDARD.per_second),
            fault_debounce: Some(Time(ReplanOptions::STANDARD.debounce)),
            fault_hold_down: Some(Time(ReplanOptions::STANDARD.hold_down)),
            plan_ahead: Some(ReplanOptions::STANDARD.plans_ahead),
            plan_ahead_pinned: Some(ReplanOptions::STANDARD.pinned_ahead),
            default_deadline: Some(Time(Duration::from_secs(30))),
            max_deadline: Some(Time(Duration::from_secs(3600))),
            drain_timeout: Some(Time(Duration::from_secs(25))),
            allow_loopback_drain: Some(false),
            reflection: Some(true),
            debug_pages: Some(true),
            console: Some(true),
            log: None,
            log_format: Some(LogFormat::Auto),
            otlp_endpoint: None,
            otlp_ca: None,
            otlp_certificate: None,
            otlp_key: None,
        }
    }

    /// Fills in every default; a setting that is still unset is off.
    ///
    /// # Errors
    /// No data directory is given and no home directory is known; a number is too large for a file of settings.
    pub fn filled(self) -> Result<Self, ConfigError> {
        let mut all = self.over(Self::defaults())?;
        all.require_numbers_of_toml()?;
        if all.data_dir.is_none() {
            all.data_dir = Some(data_dir_default()?);
        }
        all.workers.get_or_insert_with(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
        let memory = Memory::of_process();
        all.job_memory_bytes.get_or_insert_with(|| memory.for_plans());
        let request_bytes = all.max_request_bytes.unwrap_or(0);
        all.queue_bytes.get_or_insert_with(|| memory.for_requests(QUEUE_BYTES).max(request_bytes));
        let usual_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 7423));
        if all.tls_certificate.is_some() || all.dev == Some(true) {
            if all.role == Some(ServerRole::Worker) {
                // It serves nobody, and can be watched.
                let port = SocketAddr::from((Ipv4Addr::LOCALHOST, usual_port.port() + 1));
                all.admin_listen.get_or_insert(AdminListen::At(port));
            } else {
                all.listen.get_or_insert(usual_port);
            }
        }
        if all.tokens.is_none() {
            all.tokens = all.data_dir.as_ref().map(|folder| folder.join("tokens.json"));
        }
        if all.dev == Some(true) {
            all.audit.get_or_insert(AuditFolder::Off);
        } else if let Some(folder) = &all.data_dir {
            all.audit.get_or_insert(AuditFolder::At(folder.join("audit")));
        }
        if all.listen.is_none() {
            all.admin_listen.get_or_insert(AdminListen::Off);
        } else if let Some(listen) = all.listen {
            // Where the system chooses one port it chooses the other, too: several servers may run on one machine.
            let port = if listen.port() == 0 { 0 } else { listen.port().checked_add(1).unwrap_or(0) };
            all.admin_listen.get_or_insert(AdminListen::At(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        }
        all.log.get_or_insert_with(Telemetry::filter_default);
        Ok(all)
    }

    /// Whole numbers of TOML have a sign and 64 bits, and settings are printed as a file.
    fn require_numbers_of_toml(&self) -> Result<(), ConfigError> {
        let limit = i64::MAX;
        let too_large = |(key, value): (String, serde_json::Value)| {
            let found = value.as_u64().filter(|&number| i64::try_from(number).is_err())?;
            Some(ConfigError::Number { key, found, limit })
        };
        self.said()?.into_iter().find_map(too_large).map_or(Ok(()), Err)
    }

    /// This layer over another one.
    fn over(self, below: Self) -> Result<Self, ConfigError> {
        // A path need not be text, which everything else can be written as.
        let data_dir = self.data_dir.clone().or_else(|| below.data_dir.clone());
        let mut all = below.said()?;
        all.extend(self.said()?);
        let all: Self = serde_json::from_value(all.into()).expect("values are read as they are written");
        Ok(Self { data_dir, ..all })
    }

    /// The keys of this layer that say something, but for the data directory.
    ///
    /// # Errors
    /// Another path is not text, so that it could not be written to a file of settings.
    fn said(&self) -> Result<serde_json::Map<String, serde_json::Value>, ConfigError> {
        let texts = Self { data_dir: None, ..self.clone() };
        match serde_json::to_value(texts).map_err(|error| ConfigError::PathNotText { problem: error.to_string() })? {
            serde_json::Value::Object(keys) => Ok(keys.into_iter().filter(|(_, value)| !value.is_null()).collect()),
            _ => unreachable!("a struct is an object"),
        }
    }
}
