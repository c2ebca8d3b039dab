//! What Open MPI's algorithms take on the network of a plan.

use std::time::Duration;

use canopy_schedule::{Action, CollectiveKind};
use canopy_synth::Algorithm;

use super::case::Case;
use super::mpi::{MpiJob, MpiTime, algorithms, mpi_name};
use super::protocol::{Reply, Request};
use super::session::{Session, has_program, refused};
use crate::clock::Deadline;
use crate::exit::Failure;
use crate::material::Material;
use crate::messages::say;
use crate::running::on_a_thread;

/// Programs that are needed, and the packages that have them.
const NEEDED: [(&str, &str); 3] = [("mpirun", "openmpi-bin"), ("mpicc", "libopenmpi-dev"), ("hostname", "hostname")];
/// Longest time of one call, beside the best so far.
const FIRST_LIMIT_MS: u64 = 150_000;
/// Time for all processes to start.
const START_MS: u64 = 20_000;

/// One algorithm of Open MPI.
#[derive(Clone, Debug)]
pub(super) struct Rival {
    pub(super) name: String,
    /// The best; `None` if it took longer than the best of all by a third.
    pub(super) best_ns: Option<u64>,
    pub(super) size_bytes: u64,
}

/// Runs every algorithm that is there for the collective, in the order of ranks, and the ring also in the order of
/// canopy's.
///
/// # Errors
/// Programs that are missing, and an MPI that does not start.
pub(super) async fn measure(
    session: &mut Session,
    case: &Case,
    deadline: Option<Duration>,
) -> Result<Vec<Rival>, Failure> {
    for (program, package) in NEEDED {
        if !has_program(program) {
            return Err(Failure::input(format!("Open MPI cannot be compared: `{program}` is missing"))
                .help(format!("install the package {package}")));
        }
    }
    let kind = case.material.schedule.collective.kind();
    let ranks = case.material.topology.rank_count();
    let plain: Vec<u32> = (0..ranks).collect();
    let mut jobs: Vec<(String, Option<u32>, Vec<u32>)> =
        algorithms(kind, ranks).into_iter().map(|(name, number)| (name.to_owned(), number, plain.clone())).collect();
    let ring = jobs.iter().find(|(name, ..)| name == "ring").and_then(|(_, number, _)| *number);
    if let Some(number) = ring
        && let Some(order) = ring_order(case, kind, deadline).await
        && order != plain
    {
        jobs.insert(2, ("ring in canopy's order".to_owned(), Some(number), order));
    }
    let (mut rivals, mut best_ms) = (Vec::new(), FIRST_LIMIT_MS);
    for (name, algorithm, order) in jobs {
        say(&format!("Open MPI: {name}"));
        let job = job(case, kind, (algorithm, order), 1, best_ms + START_MS)?;
        let times = call(session, job.clone()).await?;
        let best = times.iter().map(|time| time.nanos).min();
        if let Some(best) = best {
            best_ms = best_ms.min(best / 1_000_000 * 4 / 3 + 1);
        }
        let size_bytes = times.first().map_or(case.size_bytes, |time| time.size_bytes);
        rivals.push((Rival { name, best_ns: best, size_bytes }, job));
    }
    // The first call over fresh connections is slower: the best gets two more.
    let best = rivals.iter_mut().filter(|(rival, _)| rival.best_ns.is_some()).min_by_key(|(rival, _)| rival.best_ns);
    if let Some((rival, job)) = best {
        let again = call(session, MpiJob { repeats: 2, ..job.clone() }).await?;
        rival.best_ns = again.iter().map(|time| time.nanos).chain(rival.best_ns).min();
    }
    Ok(rivals.into_iter().map(|(rival, _)| rival).collect())
}

fn job(
    case: &Case,
    kind: CollectiveKind,
    (algorithm, order): (Option<u32>, Vec<u32>),
    repeats: u32,
    limit_ms: u64,
) -> Result<MpiJob, Failure> {
    let collective = mpi_name(kind).ok_or_else(|| Failure::fault("a collective that MPI is not asked for"))?.to_owned();
    Ok(MpiJob { collective, size_bytes: case.size_bytes, repeats, algorithm, order, limit_ms })
}

async fn call(session: &mut Session, job: MpiJob) -> Result<Vec<MpiTime>, Failure> {
    match session.ask(&Request::Mpi(Box::new(job))).await? {
        Reply::Mpi(times) if times.iter().all(|time| time.wrong_words == 0) => Ok(times),
        Reply::Mpi(_) => Err(Failure::fault("Open MPI's result is wrong")),
        reply => Err(refused(reply)),
    }
}

/// The ranks in the order of canopy's ring; `None` where it has none.
async fn ring_order(case: &Case, kind: CollectiveKind, deadline: Option<Duration>) -> Option<Vec<u32>> {
    let name = case.material.topology.name()?.to_owned();
    let ranks = case.material.topology.rank_count();
    let planned = on_a_thread(move || Material::planned(&name, kind, None, Algorithm::Ring, Deadline::after(deadline)));
    let ring = planned.await.ok().filter(|ring| ring.topology.rank_count() == ranks)?;
    let batch = ring.graph.batches.iter().find(|batch| batch.action == Action::Copy)?;
    let mut next = vec![None; ranks as usize];
    for transfer in ring.graph.transfers_of(batch) {
        *next.get_mut(transfer.from.index())? = Some(transfer.to.number());
    }
    let mut order = vec![batch.root.number()];
    while let Some(rank) = next.get(*order.last()? as usize).copied().flatten() {
        if order.contains(&rank) || order.len() >= ranks as usize {
            break;
        }
        order.push(rank);
    }
    let mut sorted = order.clone();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..ranks).then_some(order)
}
