//! A run: ranks are started, brought together at barriers, and what they did is collected.

use std::time::Duration;

use canopy_client::ErrorClass;
use canopy_plan::oneccl::Program;
use tokio::time::timeout;

use super::control::{Done, FromRank, Job, ToRank};
use super::hosts::Hosts;
use super::ranks::{Ranks, RanksError, Reach, token};
use crate::exit::Failure;

/// Where ranks run.
enum Group {
    /// As processes of this one.
    Here(Ranks),
    /// On hosts, with a helper on each.
    There(Hosts),
}

impl From<RanksError> for Failure {
    fn from(error: RanksError) -> Self {
        let failure = Self::fault(error.message);
        match error.symptom {
            Some(symptom) => failure.note(symptom),
            None => failure,
        }
    }
}

/// Runs a plan on processes of this program, all of which have ended when it returns.
///
/// # Errors
/// A rank cannot be started, dies, or gives up; the deadline comes.
pub(super) async fn run(
    program: &Program,
    job: Job,
    hosts: Option<Hosts>,
    deadline: Duration,
) -> Result<Vec<Done>, Failure> {
    let mut group = hosts.map_or_else(|| Group::Here(Ranks::new()), Group::There);
    let outcome = match timeout(deadline, group.run(program, job)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::new(
            ErrorClass::Deadline,
            format!("deadline exceeded ({deadline:?}) before all ranks finished"),
        )
        .help("raise `--deadline`, or lower `--size` or `--delays`")),
    };
    match &mut group {
        Group::Here(ranks) => ranks.end(outcome.is_ok()).await,
        Group::There(hosts) => hosts.end().await,
    }
    outcome
}

impl Group {
    async fn run(&mut self, program: &Program, mut job: Job) -> Result<Vec<Done>, Failure> {
        let ranks: Vec<u32> = (0..program.rank_count).collect();
        let places = match self {
            Self::Here(own) => {
                let ports = own.start(&ranks, &token(), Reach::Machine).await?;
                ports.into_iter().map(|(rank, port)| (rank, ("127.0.0.1".to_owned(), port))).collect()
            }
            Self::There(hosts) => hosts.start().await?,
        };
        if places.keys().ne(&ranks) {
            return Err(Failure::fault("not all ranks say where they are reached"));
        }
        job.places = places.into_values().collect();
        self.tell(ToRank::Job(job)).await?;
        let done = self.follow(program).await?;
        self.tell(ToRank::End).await?;
        Ok(done)
    }

    async fn tell(&mut self, what: ToRank) -> Result<(), Failure> {
        match self {
            Self::Here(ranks) => Ok(ranks.tell(&what).await?),
            Self::There(hosts) => hosts.tell(what).await,
        }
    }

    async fn hear(&mut self) -> Result<(u32, FromRank), Failure> {
        match self {
            Self::Here(ranks) => Ok(ranks.hear().await?),
            Self::There(hosts) => hosts.hear().await,
        }
    }

    /// Lets ranks start together, brings them together at barriers, and collects what they did.
    async fn follow(&mut self, program: &Program) -> Result<Vec<Done>, Failure> {
        let count = program.rank_count as usize;
        let mut ready = 0;
        let mut waiting = vec![0_usize; program.instances as usize];
        let mut done: Vec<Option<Done>> = vec![None; count];
        while done.iter().any(Option::is_none) {
            match self.hear().await? {
                (_, FromRank::Ready) => {
                    ready += 1;
                    if ready == count {
                        self.tell(ToRank::Start).await?;
                    }
                }
                (_, FromRank::Barrier { instance }) if (instance as usize) < waiting.len() => {
                    let here = &mut waiting[instance as usize];
                    *here += 1;
                    if *here == count {
                        *here = 0;
                        self.tell(ToRank::Go { instance }).await?;
                    }
                }
                (rank, FromRank::Done(what)) if (rank as usize) < count => done[rank as usize] = Some(what),
                (rank, _) => return Err(Failure::fault(format!("rank {rank} says what it must not"))),
            }
        }
        Ok(done.into_iter().flatten().collect())
    }
}
