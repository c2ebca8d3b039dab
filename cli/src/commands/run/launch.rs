//! The processes of a run: started, told what to do, waited for, and none left behind.

use std::hash::{BuildHasher as _, RandomState};
use std::net::Ipv4Addr;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use canopy_client::ErrorClass;
use canopy_plan::oneccl::Program;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::control::{Done, FromRank, Job, Listening, Speaking, ToRank, split};
use super::rank::TOKEN;
use crate::exit::Failure;

/// How long a dying rank may stay unnoticed after others have missed it.
const GRIEF: Duration = Duration::from_millis(300);
/// How long ranks that are through may take to end.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long a connection may take to say who it is.
const GREETING: Duration = Duration::from_secs(5);

/// What a rank said, or that it has gone.
type Said = (u32, Option<FromRank>);

/// Runs a plan on processes of this program, all of which have ended when it returns.
///
/// # Errors
/// A rank cannot be started, dies, or gives up; the deadline comes.
pub(super) async fn run(program: &Program, job: Job, deadline: Duration) -> Result<Vec<Done>, Failure> {
    let mut ranks =
        Ranks { processes: JoinSet::new(), readers: JoinSet::new(), speaking: Vec::new(), end: watch::Sender::new(()) };
    let outcome = match timeout(deadline, ranks.run(program, job)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::new(
            ErrorClass::Deadline,
            format!("deadline exceeded ({deadline:?}) before all ranks finished"),
        )
        .help("raise `--deadline`, or lower `--size` or `--delays`")),
    };
    if outcome.is_ok() {
        let _ended_by_themselves =
            timeout(FAREWELL, async { while ranks.processes.join_next().await.is_some() {} }).await;
    }
    // Whoever still lives is killed, and waited for.
    ranks.end.send_replace(());
    while ranks.processes.join_next().await.is_some() {}
    outcome
}

struct Ranks {
    /// A task for each process, which kills it when the task ends early.
    processes: JoinSet<(u32, std::io::Result<ExitStatus>)>,
    /// A task for each rank's words.
    readers: JoinSet<()>,
    speaking: Vec<Speaking>,
    /// Tells the processes' tasks that it is over.
    end: watch::Sender<()>,
}

impl Ranks {
    async fn run(&mut self, program: &Program, mut job: Job) -> Result<Vec<Done>, Failure> {
        let count = program.rank_count;
        let fault = |error: std::io::Error| Failure::fault(format!("cannot listen for ranks: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        let token = token();
        for rank in 0..count {
            self.start(rank, &address.to_string(), &token)?;
        }
        let mut greeted: Vec<Option<(Listening, Speaking, u16)>> = (0..count).map(|_| None).collect();
        while greeted.iter().any(Option::is_none) {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted.map_err(fault)?,
                Some(ended) = self.processes.join_next() => return Err(ended_early(ended)),
            };
            let (mut listening, speaking) = split(accepted.0);
            // Whoever does not know the word is none of ours.
            if let Ok(Ok(Some(FromRank::Hello { token: said, rank, port }))) = timeout(GREETING, listening.hear()).await
                && said == token
                && let Some(place) = greeted.get_mut(rank as usize)
            {
                *place = Some((listening, speaking, port));
            }
        }
        let (says, mut hears) = mpsc::channel::<Said>(64);
        for (rank, (mut listening, speaking, port)) in (0..).zip(greeted.into_iter().flatten()) {
            job.ports.push(port);
            self.speaking.push(speaking);
            let says = says.clone();
            self.readers.spawn(async move {
                while let Ok(Some(said)) = listening.hear().await {
                    if says.send((rank, Some(said))).await.is_err() {
                        return;
                    }
                }
                let _nobody_listens = says.send((rank, None)).await;
            });
        }
        self.tell(&ToRank::Job(job)).await?;
        let done = self.follow(program, &mut hears).await?;
        self.tell(&ToRank::End).await?;
        Ok(done)
    }

    /// Starts the process of a rank.
    fn start(&mut self, rank: u32, control: &str, token: &str) -> Result<(), Failure> {
        let cannot = |error: std::io::Error| Failure::fault(format!("cannot start rank {rank}: {error}"));
        let program = std::env::current_exe().map_err(cannot)?;
        let mut child = Command::new(program)
            .args(["run-rank", &rank.to_string(), control])
            .env(TOKEN, token)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
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

    async fn tell(&mut self, what: &ToRank) -> Result<(), Failure> {
        for index in 0..self.speaking.len() {
            if let Err(error) = self.speaking[index].say(what).await {
                return Err(self.cause(format!("rank {index} does not listen: {error}")).await);
            }
        }
        Ok(())
    }

    /// Lets ranks start together, brings them together at barriers, and collects what they did.
    async fn follow(&mut self, program: &Program, hears: &mut mpsc::Receiver<Said>) -> Result<Vec<Done>, Failure> {
        let count = program.rank_count as usize;
        let mut ready = 0;
        let mut waiting = vec![0_usize; program.instances as usize];
        let mut done: Vec<Option<Done>> = vec![None; count];
        while done.iter().any(Option::is_none) {
            let (rank, said) = tokio::select! {
                said = hears.recv() => said.expect("every rank reports its end"),
                Some(ended) = self.processes.join_next() => return Err(ended_early(ended)),
            };
            match said {
                Some(FromRank::Ready) => {
                    ready += 1;
                    if ready == count {
                        self.tell(&ToRank::Start).await?;
                    }
                }
                Some(FromRank::Barrier { instance }) if (instance as usize) < waiting.len() => {
                    let here = &mut waiting[instance as usize];
                    *here += 1;
                    if *here == count {
                        *here = 0;
                        self.tell(&ToRank::Go { instance }).await?;
                    }
                }
                Some(FromRank::Done(what)) => done[rank as usize] = Some(what),
                Some(FromRank::Failed { message }) => {
                    return Err(self.cause(format!("rank {rank} gave up: {message}")).await);
                }
                None => return Err(self.cause(format!("rank {rank} disconnected")).await),
                Some(FromRank::Hello { .. } | FromRank::Barrier { .. }) => {
                    return Err(Failure::fault(format!("rank {rank} says what it must not")));
                }
            }
        }
        Ok(done.into_iter().flatten().collect())
    }

    /// Why a rank misses another: often a third one has died.
    async fn cause(&mut self, symptom: String) -> Failure {
        match timeout(GRIEF, self.processes.join_next()).await {
            Ok(Some(ended)) => ended_early(ended).note(symptom),
            Ok(None) | Err(_) => Failure::fault(symptom),
        }
    }
}

type Ended = Result<(u32, std::io::Result<ExitStatus>), tokio::task::JoinError>;

fn ended_early(ended: Ended) -> Failure {
    Failure::fault(match ended {
        Ok((rank, Ok(status))) => format!("the process of rank {rank} ended early: {status}"),
        Ok((rank, Err(error))) => format!("the process of rank {rank} is lost: {error}"),
        Err(error) => format!("a process is lost: {error}"),
    })
}

/// A word that no other process knows.
fn token() -> String {
    // The standard library seeds it from the operating system.
    let part = |number: u64| format!("{:016x}", RandomState::new().hash_one(number));
    part(1) + &part(2)
}
