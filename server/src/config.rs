//! What a server can be told: by flags, by environment, or by the program that embeds it.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use canopy_topology::TopologyLimits;

/// Everything a server needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// TCP address to listen on. The Unix socket in the data directory is served always.
    pub listen: Option<SocketAddr>,
    /// Whether `listen` may be reached from other machines.
    pub exposure: Exposure,
    /// Directory of the store and the socket; created if needed.
    pub data_dir: PathBuf,
    /// Threads that make plans.
    pub worker_count: NonZeroUsize,
    /// Most requests that wait.
    pub queue_length_max: NonZeroUsize,
    /// Most bytes of requests held while they wait or run.
    pub queue_bytes_max: usize,
    /// Greatest topology. The limit in bytes is that of a whole request, too.
    pub limits: TopologyLimits,
    /// Deadline of calls that state none.
    pub default_deadline: Duration,
    /// Greatest deadline.
    pub max_deadline: Duration,
    /// How long requests may go on after the server was asked to end.
    pub drain_timeout: Duration,
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
        Self {
            listen: None,
            exposure: Exposure::Loopback,
            data_dir,
            worker_count: worker_count_default(),
            queue_length_max: QUEUE_LENGTH_DEFAULT,
            queue_bytes_max: QUEUE_BYTES_DEFAULT,
            limits: TopologyLimits::STANDARD,
            default_deadline: Duration::from_secs(30),
            max_deadline: Duration::from_secs(24 * 3600),
            drain_timeout: Duration::ZERO,
        }
    }

    /// Checks what no type can say.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Some(address) = self.listen
            && self.exposure == Exposure::Loopback
            && !address.ip().is_loopback()
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

const QUEUE_LENGTH_DEFAULT: NonZeroUsize = NonZeroUsize::new(1024).expect("1024 is not zero");
const QUEUE_BYTES_DEFAULT: usize = 512 << 20;

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
}

/// The same as flags and environment variables.
#[derive(Clone, Debug, clap::Args)]
pub struct ServerFlags {
    /// TCP address to listen on.
    #[arg(long, env = "CANOPY_LISTEN", value_name = "IP:PORT", default_value = "127.0.0.1:7423")]
    pub listen: SocketAddr,
    /// Directory of the store and the Unix socket [default: $XDG_DATA_HOME/canopy, else ~/.local/share/canopy].
    #[arg(long, env = "CANOPY_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Threads that make plans [default: one per core].
    #[arg(long, env = "CANOPY_WORKERS", value_name = "COUNT")]
    pub workers: Option<NonZeroUsize>,
    /// Most requests that wait; more are refused at once.
    #[arg(long, env = "CANOPY_QUEUE_LENGTH", value_name = "COUNT", default_value_t = QUEUE_LENGTH_DEFAULT)]
    pub queue_length: NonZeroUsize,
    /// Most bytes of requests held while they wait or run.
    #[arg(long, env = "CANOPY_QUEUE_BYTES", value_name = "BYTES", default_value_t = QUEUE_BYTES_DEFAULT)]
    pub queue_bytes: usize,
    /// Most nodes of a topology.
    #[arg(long, env = "CANOPY_MAX_NODES", value_name = "COUNT", default_value_t = TopologyLimits::STANDARD.nodes_max)]
    pub max_nodes: usize,
    /// Most directed links of a topology.
    #[arg(long, env = "CANOPY_MAX_LINKS", value_name = "COUNT", default_value_t = TopologyLimits::STANDARD.links_max)]
    pub max_links: usize,
    /// Most bytes of a request.
    #[arg(long, env = "CANOPY_MAX_REQUEST_BYTES", value_name = "BYTES", default_value_t = TopologyLimits::STANDARD.bytes_max)]
    pub max_request_bytes: usize,
    /// Deadline of calls that state none.
    #[arg(long, env = "CANOPY_DEFAULT_DEADLINE", value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub default_deadline: Duration,
    /// Greatest deadline; longer ones are cut.
    #[arg(long, env = "CANOPY_MAX_DEADLINE", value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    pub max_deadline: Duration,
    /// How long requests may go on after the server was asked to end.
    #[arg(long, env = "CANOPY_DRAIN_TIMEOUT", value_name = "TIME", default_value = "25s", value_parser = parse_duration)]
    pub drain_timeout: Duration,
    /// Listen on an address that other machines can reach, without authentication.
    #[arg(long, env = "CANOPY_ALLOW_PUBLIC")]
    pub allow_public: bool,
}

impl ServerFlags {
    /// The options these flags stand for; fills in what depends on the machine.
    ///
    /// # Errors
    /// No data directory is given and there is no home directory.
    pub fn into_options(self) -> Result<Options, ConfigError> {
        Ok(Options {
            listen: Some(self.listen),
            exposure: if self.allow_public { Exposure::Public } else { Exposure::Loopback },
            data_dir: self.data_dir.map_or_else(data_dir_default, Ok)?,
            worker_count: self.workers.unwrap_or_else(worker_count_default),
            queue_length_max: self.queue_length,
            queue_bytes_max: self.queue_bytes,
            limits: TopologyLimits {
                nodes_max: self.max_nodes,
                links_max: self.max_links,
                bytes_max: self.max_request_bytes,
            },
            default_deadline: self.default_deadline,
            max_deadline: self.max_deadline,
            drain_timeout: self.drain_timeout,
        })
    }
}

fn worker_count_default() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
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
            options.listen = Some(address);
            options.exposure = Exposure::Loopback;
            assert_eq!(options.validate().is_ok(), allowed, "{address}");
            options.exposure = Exposure::Public;
            assert_eq!(options.validate(), Ok(()));
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
