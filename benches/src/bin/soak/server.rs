//! A `canopyd` process with a folder of its own: its start, its signals, its log, and its end.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, thread};

use canopy_benches::Stopwatch;
use canopy_client::{Client, ServerAddress};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::Failure;
use super::log::Log;

/// Longest time between the start of the process and its line that it serves.
const START_MAX: Duration = Duration::from_secs(60);
/// Longest time between SIGTERM and the end of the process: the drain time-out and some more.
const END_MAX: Duration = Duration::from_secs(40);

/// How to start it.
pub(super) struct Launch {
    /// The program.
    pub(super) program: PathBuf,
    /// Planning threads.
    pub(super) workers: usize,
    /// Most bytes of stored plans.
    pub(super) store_bytes: u64,
}

/// A running server; killed if it is dropped before [`Server::stop`].
pub(super) struct Server {
    child: Child,
    pid: Pid,
    address: SocketAddr,
    admin: SocketAddr,
    log: Arc<Log>,
    _folder: TempDir,
}

impl Server {
    /// Starts a server on ports that the system chooses, and waits until it serves.
    pub(super) fn start(launch: &Launch) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let configuration = folder.path().join("canopyd.toml");
        fs::write(&configuration, "log = \"info\"\n")?;
        let mut command = Command::new(&launch.program);
        // Only what is stated here counts.
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("CANOPY_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        command.args(["--dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-format", "json"]);
        command.arg("--config").arg(&configuration).arg("--data-dir").arg(folder.path().join("data"));
        command.args(["--workers", &launch.workers.to_string(), "--store-bytes", &launch.store_bytes.to_string()]);
        // So that many faults come, go and are planned around within a run.
        command.args(["--fault-debounce", "500ms", "--fault-hold-down", "2s", "--replan-window", "500ms"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", launch.program.display()))?;
        let log = Arc::new(Log::default());
        let streams = (child.stdout.take(), child.stderr.take());
        if let (Some(output), Some(errors)) = streams {
            follow(BufReader::new(output), Arc::clone(&log));
            follow(BufReader::new(errors), Arc::clone(&log));
        }
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("the process has no id")?;
        let watch = Stopwatch::start();
        let (address, admin) = loop {
            if let Some(ports) = log.ports() {
                break ports;
            }
            if child.try_wait()?.is_some() || watch.elapsed() > START_MAX {
                let _ended = child.kill();
                return Err(format!("{} did not serve: {:?}", launch.program.display(), log.unexpected().1).into());
            }
            thread::sleep(Duration::from_millis(20));
        };
        Ok(Self { child, pid, address, admin, log, _folder: folder })
    }

    /// Another connection.
    pub(super) async fn connect(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&self.server_address()?).await?)
    }

    /// Where it serves calls.
    pub(super) fn server_address(&self) -> Result<ServerAddress, Failure> {
        Ok(self.address.to_string().parse()?)
    }

    /// Where it serves the pages of operators.
    pub(super) const fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Its process.
    pub(super) const fn pid(&self) -> Pid {
        self.pid
    }

    /// What it has written.
    pub(super) fn log(&self) -> Arc<Log> {
        Arc::clone(&self.log)
    }

    /// Asks it to end and waits; how it ended and after what time. Killed if it takes too long.
    pub(super) fn stop(mut self) -> Result<(ExitStatus, Duration), Failure> {
        let watch = Stopwatch::start();
        kill_process(self.pid, Signal::TERM)?;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok((status, watch.elapsed()));
            }
            if watch.elapsed() > END_MAX {
                self.child.kill()?;
                return Ok((self.child.wait()?, watch.elapsed()));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Reads every line, so that the server never waits for a full pipe.
fn follow(mut lines: impl BufRead + Send + 'static, log: Arc<Log>) {
    thread::spawn(move || {
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            log.add(&line);
            line.clear();
        }
    });
}

/// The server to measure: the stated one, or that beside this program.
pub(super) fn program(stated: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let beside = || Ok::<_, Failure>(env::current_exe()?.parent().unwrap_or(Path::new(".")).join("canopyd"));
    stated.map_or_else(beside, Ok)
}
