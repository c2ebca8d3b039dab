//! The hosts of a run: which ranks each has, how its helper is started, and what helpers say.

use std::collections::{BTreeMap, VecDeque};
use std::process::Stdio;

use canopy_client::ErrorClass;
use canopy_topology::{expand_hosts, host_items};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::control::{FromHost, FromRank, ToHost, ToRank};
use super::ranks::{FAREWELL, GRIEF, token};
use crate::exit::Failure;
use crate::lines::{Listening, Speaking};

/// Most hosts of a run.
const HOSTS_MAX: usize = 1024;
/// Lines of a launcher's messages that are repeated.
const MESSAGES_MAX: usize = 4;
/// Launchers by their names: `{host}` becomes the host, and the helper's command follows.
const LAUNCHERS: [(&str, &str); 3] = [
    ("ssh", "ssh -oBatchMode=yes -oConnectTimeout=20 {host} --"),
    ("srun", "srun --quiet --nodes=1 --ntasks=1 --overlap --nodelist={host}"),
    ("mpirun", "mpirun -n 1 --host {host}"),
];

/// A command that starts another one on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Launcher(Vec<String>);

impl Launcher {
    /// Reads `ssh`, `srun`, `mpirun`, or words of which one holds `{host}`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let known = LAUNCHERS.iter().find(|(name, _)| *name == text);
        let words: Vec<String> = known.map_or(text, |(_, words)| words).split_whitespace().map(str::to_owned).collect();
        match words.iter().any(|word| word.contains("{host}")) {
            true => Ok(Self(words)),
            false => Err(format!(
                "`{text}` does not say where the host goes; write ssh, srun, mpirun, or a command such as \
                 `kubectl exec -i {{host}} --`"
            )),
        }
    }

    fn command(&self, host: &str, program: &str) -> Command {
        let mut words = self.0.iter().map(|word| word.replace("{host}", host));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args([program, "run-host"]);
        command
    }
}

/// A host as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    name: String,
    /// Where other hosts reach it.
    address: String,
    /// Ranks of it, where stated.
    ranks: Option<u32>,
}

/// Hosts in the order of their ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostList(Vec<Host>);

impl HostList {
    /// Reads `gpu[01-02]:8,login1=10.0.0.3:4`: hosts, the address where others reach it, and its ranks.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut hosts = Vec::new();
        for item in host_items(text).map_err(|error| error.to_string())? {
            let shown: String = item.chars().take(80).collect();
            let wrong = |why: &str| format!("`{shown}` {why}; write hosts such as gpu[01-02]:8 or gpu01=10.0.0.1:8");
            let counted = item.rsplit_once(':').and_then(|(host, ranks)| Some((host, ranks.parse::<u32>().ok()?)));
            let (rest, ranks) = counted.map_or((item, None), |(host, ranks)| (host, Some(ranks)));
            if ranks == Some(0) {
                return Err(wrong("has no ranks"));
            }
            let (names, address) = rest.split_once('=').map_or((rest, None), |(names, own)| (names, Some(own)));
            let names = expand_hosts(names).map_err(|error| error.to_string())?;
            if address.is_some_and(|address| names.len() != 1 || address.is_empty()) {
                return Err(wrong("gives several hosts one address, or none"));
            }
            for name in names {
                if hosts.len() == HOSTS_MAX || hosts.iter().any(|other: &Host| other.name == name) {
                    return Err(wrong("names a host twice, or makes it more than 1024 hosts"));
                }
                let address = address.unwrap_or(&name).trim_start_matches('[').trim_end_matches(']').to_owned();
                hosts.push(Host { name, address, ranks });
            }
        }
        if hosts.is_empty() { Err("no host is named".to_owned()) } else { Ok(Self(hosts)) }
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Gives each host its ranks, one after the other.
    pub(super) fn place(&self, rank_count: u32) -> Result<Vec<Placed>, Failure> {
        let stated = self.0.iter().all(|host| host.ranks.is_some());
        let count = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        if !stated && (self.0.iter().any(|host| host.ranks.is_some()) || !rank_count.is_multiple_of(count)) {
            let text = format!("{rank_count} ranks cannot be divided equally among {count} hosts");
            return Err(Failure::input(text).help("say how many ranks each has, such as --hosts gpu01:8,gpu02:4"));
        }
        let mut placed = Vec::new();
        let mut first = 0_u32;
        for host in &self.0 {
            let end = first.saturating_add(host.ranks.unwrap_or(rank_count / count));
            placed.push(Placed {
                name: host.name.clone(),
                address: host.address.clone(),
                ranks: (first..end.min(rank_count)).collect(),
            });
            first = end;
        }
        if first != rank_count {
            let text = format!("the hosts have room for {first} ranks, and the plan has {rank_count}");
            return Err(
                Failure::input(text).help("change the numbers of --hosts, or make a plan for fewer or more ranks")
            );
        }
        Ok(placed)
    }
}

/// A host and its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) name: String,
    address: String,
    pub(super) ranks: Vec<u32>,
}

type Said = (usize, Option<FromHost>);

/// The helpers of all hosts.
pub(super) struct Hosts {
    placed: Vec<Placed>,
    launcher: Launcher,
    /// The program on each host.
    program: String,
    children: Vec<Child>,
    speaking: Vec<Speaking<ChildStdin>>,
    readers: JoinSet<()>,
    heard: mpsc::Receiver<Said>,
    says: mpsc::Sender<Said>,
    /// By host: the last lines of its launcher's messages.
    messages: Vec<JoinSet<VecDeque<String>>>,
}

impl Hosts {
    pub(super) fn new(placed: Vec<Placed>, launcher: Launcher, program: String) -> Self {
        let (says, heard) = mpsc::channel(64);
        let (children, speaking, messages) = (Vec::new(), Vec::new(), Vec::new());
        Self { placed, launcher, program, children, speaking, readers: JoinSet::new(), heard, says, messages }
    }

    /// The hosts with their ranks.
    pub(super) fn placed(&self) -> &[Placed] {
        &self.placed
    }

    /// Starts the helpers and their ranks; returns where each rank is reached.
    pub(super) async fn start(&mut self) -> Result<BTreeMap<u32, (String, u16)>, Failure> {
        for host in 0..self.placed.len() {
            self.launch(host)?;
        }
        let token = token();
        let mut places = BTreeMap::new();
        let mut waiting = self.placed.len();
        while waiting > 0 {
            match self.next().await? {
                (host, FromHost::Hello { version }) if version == env!("CARGO_PKG_VERSION") => {
                    let ranks = self.placed[host].ranks.clone();
                    self.say(host, &ToHost::Start { token: token.clone(), ranks }).await?;
                }
                (host, FromHost::Hello { version }) => {
                    let (name, own) = (&self.placed[host].name, env!("CARGO_PKG_VERSION"));
                    let text = format!("{name} has canopy {version}, and this is {own}");
                    return Err(Failure::input(text).help("name the same version there with --program"));
                }
                (host, FromHost::Started { ports }) => {
                    let address = &self.placed[host].address;
                    places.extend(ports.into_iter().map(|(rank, port)| (rank, (address.clone(), port))));
                    waiting -= 1;
                }
                (host, FromHost::Said { .. } | FromHost::Failed { .. }) => return Err(self.nonsense(host)),
            }
        }
        Ok(places)
    }

    fn launch(&mut self, host: usize) -> Result<(), Failure> {
        let name = self.placed[host].name.clone();
        let mut command = self.launcher.command(&name, &self.program);
        let shown = format!("{:?}", command.as_std().get_program());
        let spawned =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn();
        let mut child = spawned.map_err(|error| {
            Failure::fault(format!("cannot start {shown} for {name}: {error}"))
                .help("install it, or choose another --launcher")
        })?;
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let Some(((input, output), errors)) = pipes else { return Err(Failure::fault("a pipe is missing")) };
        self.speaking.push(Speaking::new(input));
        self.readers.spawn(Listening::new(output).pass_on(host, self.says.clone()));
        let mut messages = JoinSet::new();
        messages.spawn(async move {
            let mut lines = BufReader::new(errors).lines();
            let mut kept = VecDeque::new();
            while let Ok(Some(line)) = lines.next_line().await {
                kept.push_back(line.chars().take(200).collect());
                if kept.len() > MESSAGES_MAX {
                    kept.pop_front();
                }
            }
            kept
        });
        self.messages.push(messages);
        self.children.push(child);
        Ok(())
    }

    /// What a helper says next.
    async fn next(&mut self) -> Result<(usize, FromHost), Failure> {
        match self.heard.recv().await {
            Some((host, Some(FromHost::Failed { message, is_cause }))) => {
                let own = self.failure(host, &message);
                if is_cause { Err(own) } else { Err(self.cause(host).await.unwrap_or(own)) }
            }
            Some((host, Some(said))) => Ok((host, said)),
            Some((host, None)) => Err(self.gone(host).await),
            None => Err(Failure::fault("no helper is left")),
        }
    }

    fn failure(&self, host: usize, message: &str) -> Failure {
        Failure::fault(format!("on {}: {message}", self.placed[host].name))
    }

    /// What another host than this one says within a moment of the reason.
    async fn cause(&mut self, than: usize) -> Option<Failure> {
        let find = async {
            loop {
                match self.heard.recv().await? {
                    (host, _) if host == than => {}
                    (host, Some(FromHost::Failed { message, is_cause: true })) => return Some((host, Some(message))),
                    (host, None) => return Some((host, None)),
                    _ => {}
                }
            }
        };
        match timeout(2 * GRIEF, find).await.ok().flatten()? {
            (host, Some(message)) => Some(self.failure(host, &message)),
            (host, None) => Some(self.gone(host).await),
        }
    }

    /// A launcher that ended, and what it said.
    async fn gone(&mut self, host: usize) -> Failure {
        let name = self.placed[host].name.clone();
        let status = timeout(GRIEF, self.children[host].wait()).await;
        let status = status.ok().and_then(Result::ok).map(|status| format!(": {status}")).unwrap_or_default();
        let said = timeout(GRIEF, self.messages[host].join_next()).await.ok().flatten();
        let mut failure = Failure::new(ErrorClass::Fault, format!("the helper on {name} has gone{status}"));
        for line in said.and_then(Result::ok).unwrap_or_default() {
            failure = failure.note(line);
        }
        failure.help(format!(
            "see that the launcher runs `canopy --version` on {name} without a question; --launcher and --program change it"
        ))
    }

    fn nonsense(&self, host: usize) -> Failure {
        self.failure(host, "the helper says what it must not")
    }

    async fn say(&mut self, host: usize, what: &ToHost) -> Result<(), Failure> {
        match self.speaking[host].say(what).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.gone(host).await),
        }
    }

    /// The next thing that a rank says.
    pub(super) async fn hear(&mut self) -> Result<(u32, FromRank), Failure> {
        match self.next().await? {
            (host, FromHost::Said { rank, said }) if self.placed[host].ranks.contains(&rank) => Ok((rank, said)),
            (host, _) => Err(self.nonsense(host)),
        }
    }

    /// Tells all ranks the same.
    pub(super) async fn tell(&mut self, what: ToRank) -> Result<(), Failure> {
        let what = ToHost::Tell(Box::new(what));
        for host in 0..self.placed.len() {
            self.say(host, &what).await?;
        }
        Ok(())
    }

    /// Ends the helpers, which end their ranks, and waits for them.
    pub(super) async fn end(&mut self) {
        // Their standard input ends.
        self.speaking.clear();
        let all = async {
            for child in &mut self.children {
                let _ended = child.wait().await;
            }
        };
        if timeout(FAREWELL, all).await.is_err() {
            for child in &mut self.children {
                let _killed = child.kill().await;
            }
        }
    }
}
