//! Processes of ranks on this machine: started, heard, told what to do, and none left behind.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::Ipv4Addr;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use super::control::{FromRank, ToRank};
use super::rank::{GREETING, TOKEN};
use crate::lines::{Speaking, split};

/// How long a dying rank may stay unnoticed after others have missed it.
pub(super) const GRIEF: Duration = Duration::from_millis(300);
/// How long processes that are through may take to end.
pub(super) const FAREWELL: Duration = Duration::from_secs(2);

/// Who may connect to the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// This machine only.
    Machine,
    /// Other hosts.
    Hosts,
}

/// Why ranks cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct RanksError {
    pub(super) message: String,
    /// What others missed, where something else was the cause.
    pub(super) symptom: Option<String>,
    /// Whether the reason is known to lie here.
    pub(super) is_cause: bool,
}

impl RanksError {
    fn cause(message: String) -> Self {
        Self { message, symptom: None, is_cause: true }
    }
}

/// What happened to a rank.
pub(super) enum Heard {
    /// It said something, or has gone.
    Said(u32, Option<FromRank>),
    /// Its process ended.
    Ended(Ended),
}

type Ended = Result<(u32, std::io::Result<ExitStatus>), JoinError>;

fn ended_early(ended: Ended) -> RanksError {
    RanksError::cause(match ended {
        Ok((rank, Ok(status))) => format!("the process of rank {rank} ended early: {status}"),
        Ok((rank, Err(error))) => format!("the process of rank {rank} is lost: {error}"),
        Err(error) => format!("a process is lost: {error}"),
    })
}

/// A word that no other process knows.
pub(super) fn token() -> String {
    // The standard library seeds it from the operating system.
    let part = |number: u64| format!("{:016x}", RandomState::new().hash_one(number));
    part(1) + &part(2)
}

/// The processes of some ranks, and what they say.
pub(super) struct Ranks {
    /// A task for each process, which kills it when the task ends early.
    processes: JoinSet<(u32, std::io::Result<ExitStatus>)>,
    /// A task for each rank's words.
    readers: JoinSet<()>,
    speaking: BTreeMap<u32, Speaking>,
    /// What a rank said, or that it has gone.
    heard: mpsc::Receiver<(u32, Option<FromRank>)>,
    says: mpsc::Sender<(u32, Option<FromRank>)>,
    /// Tells the processes' tasks that it is over.
    end: watch::Sender<()>,
}

impl Ranks {
    pub(super) fn new() -> Self {
        let (says, heard) = mpsc::channel(64);
        Self {
            processes: JoinSet::new(),
            readers: JoinSet::new(),
            speaking: BTreeMap::new(),
            heard,
            says,
            end: watch::Sender::new(()),
        }
    }

    /// Starts processes and waits until each has said at which port others reach it.
    pub(super) async fn start(
        &mut self,
        ranks: &[u32],
        token: &str,
        reach: Reach,
    ) -> Result<BTreeMap<u32, u16>, RanksError> {
        let fault = |error: std::io::Error| RanksError::cause(format!("cannot listen for ranks: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        for &rank in ranks {
            self.start_one(rank, &address.to_string(), token, reach)?;
        }
        let mut ports = BTreeMap::new();
        while ports.len() < ranks.len() {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted.map_err(fault)?,
                Some(ended) = self.processes.join_next() => return Err(ended_early(ended)),
            };
            let (mut listening, speaking) = split(accepted.0);
            // Others may connect, but do not know the word.
            if let Ok(Ok(Some(FromRank::Hello { token: said, rank, port }))) = timeout(GREETING, listening.hear()).await
                && said == token
                && ranks.contains(&rank)
            {
                ports.insert(rank, port);
                self.speaking.insert(rank, speaking);
                self.readers.spawn(listening.pass_on(rank, self.says.clone()));
            }
        }
        Ok(ports)
    }

    /// Starts the process of a rank.
    fn start_one(&mut self, rank: u32, control: &str, token: &str, reach: Reach) -> Result<(), RanksError> {
        let cannot = |error: std::io::Error| RanksError::cause(format!("cannot start rank {rank}: {error}"));
        let program = std::env::current_exe().map_err(cannot)?;
        let mut command = Command::new(program);
        command.args(["run-rank", &rank.to_string(), control]);
        if reach == Reach::Hosts {
            command.arg("--hosts");
        }
        let command = command.env(TOKEN, token).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().map_err(cannot)?;
        let mut end = self.end.subscribe();
        self.processes.spawn(async move {
            let ended = tokio::select! {
                ended = child.wait() => ended,
                // Also where the other half is gone.
                _ = end.changed() => child.kill().await.and(child.wait().await),
            };
            (rank, ended)
        });
        Ok(())
    }

    /// The next thing that a rank says.
    pub(super) async fn hear(&mut self) -> Result<(u32, FromRank), RanksError> {
        let heard = self.next().await;
        self.judge(heard).await
    }

    /// What happens next, to be [judged](Self::judge). It may be given up at any moment and begun again.
    pub(super) async fn next(&mut self) -> Heard {
        tokio::select! {
            Some((rank, said)) = self.heard.recv() => Heard::Said(rank, said),
            Some(ended) = self.processes.join_next() => Heard::Ended(ended),
        }
    }

    /// What a rank said, or why it cannot go on.
    pub(super) async fn judge(&mut self, heard: Heard) -> Result<(u32, FromRank), RanksError> {
        match heard {
            Heard::Ended(ended) => Err(ended_early(ended)),
            Heard::Said(rank, Some(FromRank::Failed { message })) => {
                Err(self.why(format!("rank {rank} gave up: {message}")).await)
            }
            Heard::Said(rank, None) => Err(self.why(format!("rank {rank} disconnected")).await),
            Heard::Said(rank, Some(said)) => Ok((rank, said)),
        }
    }

    /// Tells all ranks the same.
    pub(super) async fn tell(&mut self, what: &ToRank) -> Result<(), RanksError> {
        let mut failed = None;
        for (rank, speaking) in &mut self.speaking {
            if let Err(error) = speaking.say(what).await {
                failed = Some(format!("rank {rank} does not listen: {error}"));
                break;
            }
        }
        match failed {
            Some(symptom) => Err(self.why(symptom).await),
            None => Ok(()),
        }
    }

    /// Why a rank misses another: often a third one has died.
    async fn why(&mut self, symptom: String) -> RanksError {
        match timeout(GRIEF, self.processes.join_next()).await {
            Ok(Some(ended)) => RanksError { symptom: Some(symptom), ..ended_early(ended) },
            Ok(None) | Err(_) => RanksError { message: symptom, symptom: None, is_cause: false },
        }
    }

    /// Ends all processes, and waits for them: for a while, where they end by themselves.
    pub(super) async fn end(&mut self, do_end_by_themselves: bool) {
        if do_end_by_themselves {
            let _ended = timeout(FAREWELL, async { while self.processes.join_next().await.is_some() {} }).await;
        }
        self.end.send_replace(());
        while self.processes.join_next().await.is_some() {}
    }
}
