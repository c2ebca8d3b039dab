//! Plans and bundles that this process makes itself, with the plans of the data folder at hand.
//!
//! The folder is open only while it is read or written. Where a server runs on it, that server is asked instead: it holds
//! the folder, and knows more of it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use canopy_client::{ClientError, PlanReceiver};
use canopy_planner::Watch;
use canopy_proto::v1::{PlanBundleRequest, PlanRequest, PlanResponse, Progress};
use canopy_service::bundle::Bundled;
use canopy_service::{Limits, Outcome, PlanService, STACK_BYTES, ServiceError};
use canopy_store::StoreError;
use canopy_synth::Stop;
use canopy_topology::Rate;
use canopy_wire::fraction;
use tokio::sync::oneshot;

use crate::clock::{self, Deadline};
use crate::connection::{CallError, PATIENCE, held, is_served};
use crate::exit::{Failure, words};
use crate::messages::detail;
use crate::refused;

/// Longest time for a plan where none is stated, as of a server.
const DEADLINE: Duration = Duration::from_secs(30);
/// Longest time for a plan: a year.
const DEADLINE_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Pause between two looks at the folder.
const PAUSE: Duration = Duration::from_millis(20);
/// Time between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Makes a plan, or looks it up in the folder; its file goes to `receiver`. `None`: a server has to be asked, one that
/// runs on the folder, or one that knows what the request names.
///
/// # Errors
/// The reason why there is no plan, in the words of a server.
pub(crate) async fn plan(
    folder: &Path,
    request: &PlanRequest,
    deadline: Option<Duration>,
    receiver: &mut dyn PlanReceiver,
) -> Result<Option<PlanResponse>, CallError> {
    let request = request.clone();
    let work = move |asked: Asked<'_>| asked.service.plan(request.clone(), asked.stop, asked.watch);
    let answered = answered(folder, deadline, &mut |progress| receiver.progress(progress), work).await?;
    let Some((answer, took)) = answered else { return Ok(None) };
    let mut reply = answer.reply();
    reply.timings.get_or_insert_default().total = canopy_wire::duration_of_ms(took.as_secs_f64() * 1e3);
    hand_over(reply, receiver).map(Some).map_err(CallError::Server)
}

/// Makes the plans of a bundle, or looks them up in the folder. `None`: as for [`plan`].
///
/// # Errors
/// The reason why there is no bundle, in the words of a server.
pub(crate) async fn plan_bundle(
    folder: &Path,
    request: &PlanBundleRequest,
    deadline: Option<Duration>,
    said: &mut (dyn FnMut(&Progress) + Send),
) -> Result<Option<Box<Bundled>>, CallError> {
    let request = request.clone();
    let work = move |asked: Asked<'_>| {
        let Asked { service, end, stop, watch } = asked;
        service.plan_bundle(request.clone(), end, stop, watch)
    };
    Ok(answered(folder, deadline, said, work).await?.map(|(bundled, _)| bundled))
}

/// What a request is answered with.
struct Asked<'a> {
    service: &'a PlanService,
    end: Instant,
    stop: &'a dyn Stop,
    watch: &'a dyn Watch,
}

/// Answers a request on a thread of its own; the answer comes with the time that it took.
async fn answered<T: Send + 'static>(
    folder: &Path,
    deadline: Option<Duration>,
    said: &mut (dyn FnMut(&Progress) + Send),
    work: impl Fn(Asked<'_>) -> Result<Outcome<T>, ServiceError> + Send + Clone + 'static,
) -> Result<Option<(T, Duration)>, CallError> {
    let limits = Limits::of_environment().map_err(|error| CallError::Here(Failure::input(error.to_string())))?;
    let service = Arc::new(PlanService::new(folder, limits));
    let limit = deadline.unwrap_or(DEADLINE);
    let end = clock::now() + limit.min(DEADLINE_MAX);
    let give_up = Deadline::after(Some(PATIENCE));
    loop {
        let started = clock::now();
        let run = Run::start(&service, end, work.clone()).map_err(|error| refuse_to_start(&error))?;
        match run.outcome(said).await {
            Ok(Outcome::NeedsServer(reason)) => {
                detail(|| format!("a server has to answer: {reason:?}"));
                return Ok(None);
            }
            Ok(Outcome::Answered(answer)) => return Ok(Some((answer, started.elapsed()))),
            Err((ServiceError::Store(StoreError::InUse { .. }), _)) => {
                if is_served(folder).await {
                    return Ok(None);
                }
                if give_up.is_past() {
                    return Err(CallError::Here(held(folder)));
                }
                tokio::time::sleep(PAUSE).await;
            }
            Err((error, stage)) => return Err(in_words_of_a_server(folder, error, &stage, limit)),
        }
    }
}

/// Gives the file to the receiver and takes it out of the reply.
fn hand_over(mut reply: PlanResponse, receiver: &mut dyn PlanReceiver) -> Result<PlanResponse, ClientError> {
    receiver.plan(&reply).map_err(ClientError::Write)?;
    let artifacts = reply.plan.iter_mut().flat_map(|plan| &mut plan.artifacts);
    for (position, artifact) in artifacts.enumerate() {
        let content = artifact.content.take().unwrap_or_default();
        receiver.content(position, &content).map_err(ClientError::Write)?;
    }
    Ok(reply)
}

fn refuse_to_start(error: &io::Error) -> CallError {
    CallError::Here(Failure::fault(format!("cannot start a thread: {error}")))
}

/// An error of planning as a server tells it.
fn in_words_of_a_server(folder: &Path, error: ServiceError, stage: &str, limit: Duration) -> CallError {
    // Nobody but the deadline stops it while somebody waits.
    if error.is_cancellation() {
        let within = if stage.is_empty() { String::new() } else { format!(" in stage `{stage}`") };
        let message = format!("deadline exceeded ({} ms){within}; allow more time", limit.as_millis());
        return CallError::Server(refused::in_words(&ServiceError::Late.refusal(), &message));
    }
    if let ServiceError::Store(error) = error {
        let message = format!("cannot use the data folder {}: {}", folder.display(), words(&error));
        let help = "name another folder with `--data-dir`, or a server with `--server`";
        return CallError::Here(Failure::fault(message).help(help));
    }
    CallError::Server(refused::told(&error))
}

/// A request that is being answered on a thread of its own. Dropping it stops the thread soon.
struct Run<T> {
    shared: Arc<Shared>,
    ended: oneshot::Receiver<Result<Outcome<T>, ServiceError>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    progress: std::sync::Mutex<Progress>,
}

impl<T: Send + 'static> Run<T> {
    fn start(
        service: &Arc<PlanService>,
        end: Instant,
        work: impl FnOnce(Asked<'_>) -> Result<Outcome<T>, ServiceError> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (tell, ended) = oneshot::channel();
        let service = Arc::clone(service);
        let watched = Arc::clone(&shared);
        thread::Builder::new().name("canopy-planner".to_owned()).stack_size(STACK_BYTES).spawn(move || {
            let stop = || watched.is_over.load(Ordering::Relaxed) || clock::now() >= end;
            let _nobody_waits = tell.send(work(Asked { service: &service, end, stop: &stop, watch: &*watched }));
        })?;
        Ok(Self { shared, ended })
    }

    /// Waits for the end and reports progress meanwhile. An error comes with the stage in which it happened.
    async fn outcome(mut self, said: &mut (dyn FnMut(&Progress) + Send)) -> Result<Outcome<T>, (ServiceError, String)> {
        let mut reported = Progress::default();
        let mut ticks = tokio::time::interval(REPORT_INTERVAL);
        loop {
            tokio::select! {
                biased;
                ended = &mut self.ended => {
                    let Ok(outcome) = ended else { panic!("the planner failed unexpectedly") };
                    return outcome.map_err(|error| (error, self.shared.progress().stage));
                }
                _ = ticks.tick() => {
                    let progress = self.shared.progress();
                    if progress != reported {
                        said(&progress);
                        reported = progress;
                    }
                }
            }
        }
    }
}

impl<T> Drop for Run<T> {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn progress(&self) -> Progress {
        self.progress.lock().map(|progress| progress.clone()).unwrap_or_default()
    }

    fn update(&self, change: impl FnOnce(&mut Progress)) {
        if let Ok(mut progress) = self.progress.lock() {
            change(&mut progress);
        }
    }
}

impl Watch for Shared {
    fn stage(&self, stage: &'static str, done: u64, total: u64) {
        self.update(|progress| {
            stage.clone_into(&mut progress.stage);
            progress.done = done;
            progress.total = total;
        });
    }

    fn bound(&self, algbw: &Rate) {
        self.update(|progress| progress.bound = fraction(&algbw));
    }

    fn incumbent(&self, algbw: &Rate) {
        self.update(|progress| progress.incumbent = fraction(&algbw));
    }
}
