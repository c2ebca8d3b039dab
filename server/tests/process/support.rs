//! A `canopyd` with a folder of its own.

use std::io::{BufRead as _, BufReader, Lines};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{Collective, CollectiveSpec, PlanSpec, TopologySource};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::transport::Channel;

/// A command that knows no configuration but what it is given. It is the program that was built with the tests, unless
/// `CANOPY_CANOPYD` names another one.
pub(crate) fn canopyd() -> Command {
    let program = std::env::var("CANOPY_CANOPYD");
    canopyd_as(program.as_deref().unwrap_or(env!("CARGO_BIN_EXE_canopyd")))
}

/// The program that [`canopyd`] takes the place of: another build, if `CANOPY_CANOPYD_BEFORE` names one.
pub(crate) fn canopyd_before() -> Command {
    std::env::var("CANOPY_CANOPYD_BEFORE").map_or_else(|_| canopyd(), |program| canopyd_as(&program))
}

/// The same for a program that starts it.
pub(crate) fn canopyd_as(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CANOPY_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The number that a variable of the environment states, if it is set.
pub(crate) fn stated(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// A running process that serves; killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    /// Its log until it began to serve.
    pub(crate) beginning: Vec<Value>,
    /// What it said about itself when it began to serve.
    pub(crate) serving: Value,
    pub(crate) folder: TempDir,
}

impl Process {
    /// Starts a process on ports that the system chooses.
    pub(crate) fn start(arrange: impl FnOnce(&mut Command, PathBuf)) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), arrange)
    }

    /// The same in a folder where another one may have been.
    pub(crate) fn start_in(folder: TempDir, arrange: impl FnOnce(&mut Command, PathBuf)) -> Self {
        Self::start_as(canopyd(), folder, arrange)
    }

    /// The same as a process of a program.
    pub(crate) fn start_as(program: Command, folder: TempDir, arrange: impl FnOnce(&mut Command, PathBuf)) -> Self {
        Self::launch(program, folder, |command, folder| {
            command.arg("--dev");
            arrange(command, folder);
        })
    }

    /// The same in a way that needs certificates.
    pub(crate) fn start_without_development(arrange: impl FnOnce(&mut Command, PathBuf)) -> Self {
        Self::launch(canopyd(), tempfile::tempdir().unwrap(), arrange)
    }

    fn launch(mut command: Command, folder: TempDir, arrange: impl FnOnce(&mut Command, PathBuf)) -> Self {
        command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path().join("data"));
        arrange(&mut command, folder.path().to_owned());
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut beginning = Vec::new();
        let serving = loop {
            let line: Value = serde_json::from_str(&log.next().unwrap().unwrap()).unwrap();
            if line["message"] == "serving canopy.v1" {
                break line;
            }
            beginning.push(line);
        };
        Self { child, log, beginning, serving, folder }
    }

    pub(crate) fn address(&self, name: &str) -> SocketAddr {
        self.serving[name].as_str().unwrap().parse().unwrap()
    }

    pub(crate) async fn client(&self) -> PlannerClient<Channel> {
        PlannerClient::new(self.channel().await)
    }

    pub(crate) async fn plans(&self) -> PlansClient<Channel> {
        PlansClient::new(self.channel().await)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status().unwrap();
        assert!(sent.success());
    }

    /// A page of the port for operators, with its headers.
    pub(crate) async fn page(&self, path: &str) -> String {
        self.page_with(path, &[]).await
    }

    /// The same for a request with these headers.
    pub(crate) async fn page_with(&self, path: &str, headers: &[(&str, &str)]) -> String {
        page_at(self.address("admin"), path, headers.iter().copied()).await.unwrap()
    }

    /// The value of a metric with these labels, if it has one.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        let page = self.page("/metrics").await;
        page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// Syntheses that run, and those that have ended, as the metrics say.
    pub(crate) async fn syntheses(&self) -> (u64, u64) {
        let page = self.page("/metrics").await;
        let sum = |name: &str| {
            let lines = page.lines().filter(|line| line.starts_with(name));
            lines.map(|line| line.rsplit(' ').next().unwrap().trim_end_matches(".0").parse::<u64>().unwrap()).sum()
        };
        (sum("canopy_synthesis_running{"), sum("canopy_synthesis_total{"))
    }

    /// Waits until a synthesis runs.
    pub(crate) async fn wait_until_synthesis_runs(&self) {
        self.wait_for_syntheses(|running, _| running > 0).await;
    }

    /// Waits until a synthesis runs, or more have ended than so many.
    pub(crate) async fn wait_until_synthesis_begins(&self, ended_before: u64) {
        self.wait_for_syntheses(|running, ended| running > 0 || ended > ended_before).await;
    }

    async fn wait_for_syntheses(&self, are_so: impl Fn(u64, u64) -> bool) {
        let looking = async {
            loop {
                let (running, ended) = self.syntheses().await;
                if are_so(running, ended) {
                    return;
                }
            }
        };
        timeout(Duration::from_secs(120), looking).await.expect("a synthesis begins");
    }

    /// Reads the log up to a line with this message.
    pub(crate) fn wait_for(&mut self, message: &str) -> Value {
        loop {
            let line: Value = serde_json::from_str(&self.log.next().unwrap().unwrap()).unwrap();
            if line["message"] == message {
                return line;
            }
        }
    }

    /// Ends it as a crash would, and hands back its folder.
    pub(crate) fn crash(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    /// Waits until it has ended well, and hands back its folder.
    pub(crate) fn end_in_order(mut self) -> TempDir {
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address("tcp"))).unwrap().connect().await.unwrap()
    }

    /// Its exit status, and the rest of its log, each line an object.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<Value>) {
        let lines = self.log.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        (self.child.wait().unwrap().code(), lines)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already where a test went well.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A page of a port for operators, with its headers, for a request with these headers.
pub(crate) async fn page_at(
    address: SocketAddr,
    path: &str,
    headers: impl Iterator<Item = (&str, &str)>,
) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address).await?;
    let headers: String = headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    connection.write_all(format!("GET {path} HTTP/1.0\r\n{headers}\r\n").as_bytes()).await?;
    let mut page = String::new();
    connection.read_to_string(&mut page).await?;
    Ok(page)
}

pub(crate) fn request(expression: &str) -> PlanSpec {
    PlanSpec {
        topology: Some(TopologySource { source: Some(Source::Expression(expression.to_owned())) }),
        collective: Some(CollectiveSpec { kind: Collective::Allgather.into(), root: None }),
        ..PlanSpec::default()
    }
}

#[expect(clippy::disallowed_methods, reason = "tests own their tasks")]
pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> tokio::task::JoinHandle<T> {
    tokio::spawn(future)
}
