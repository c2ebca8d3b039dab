//! A `canopyd` process with a folder of its own, on a database or without.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, thread};

use canopy_client::{Client, ServerAddress};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::Failure;

/// What a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Api,
    Worker,
    All,
}

/// A running server; it ends when dropped.
pub(super) struct Server {
    child: Child,
    address: ServerAddress,
    _folder: TempDir,
}

/// The server that was stated, or the one beside this program.
pub(super) fn program(stated: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let beside = || Ok::<_, Failure>(env::current_exe()?.with_file_name("canopyd"));
    let program = stated.map_or_else(beside, Ok)?;
    if program.exists() { Ok(program) } else { Err(format!("{} is missing; build it", program.display()).into()) }
}

impl Server {
    /// Starts a server with one planning thread, and waits until it serves.
    pub(super) fn start(program: &Path, database: Option<&str>, role: Role) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(program);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("CANOPY_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        command.env("RAYON_NUM_THREADS", "1");
        command.args(["--dev", "--workers", "1", "--log-format", "json", "--admin-listen", "off"]);
        command.args(["--log", "off,canopy_server::process=info", "--data-dir"]).arg(folder.path().join("data"));
        command.args(["--fault-debounce", "50ms", "--fault-hold-down", "50ms", "--replan-window", "20ms"]);
        command.args(["--plan-ahead=false", "--default-deadline", "10m"]);
        if let Some(database) = database {
            command.args(["--database", database]);
        }
        match role {
            Role::Api => command.args(["--role", "api", "--listen", "127.0.0.1:0"]),
            Role::Worker => command.args(["--role", "worker"]),
            Role::All => command.args(["--listen", "127.0.0.1:0"]),
        };
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let log = child.stderr.take().ok_or("its log is not read")?;
        let mut lines = BufReader::new(log).lines();
        let address = loop {
            let line = lines.next().ok_or_else(|| format!("{} did not serve", program.display()))??;
            let line: Value = serde_json::from_str(&line)?;
            if line["message"] == "serving canopy.v1" {
                let unix = format!("unix:{}", line["unix"].as_str().unwrap_or_default());
                break line["tcp"].as_str().map_or(unix, ToOwned::to_owned).parse()?;
            }
        };
        // So that it never waits for a full pipe.
        thread::spawn(move || lines.for_each(drop));
        Ok(Self { child, address, _folder: folder })
    }

    /// Memory that it has now.
    pub(super) fn memory_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }

    /// Processor time that it has taken.
    pub(super) fn processor_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks: f64 = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        ticks / rustix::param::clock_ticks_per_second() as f64
    }

    /// Another connection.
    pub(super) async fn connect(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&self.address).await?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // In order, so that others need not notice that it is gone.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _told = pid.map(|pid| kill_process(pid, Signal::TERM));
        let _reaped = self.child.wait();
    }
}
