//! From a job's end to the caller: one reply, or a stream of events and pieces.

use canopy_proto::Exact as _;
use canopy_wire::duration_of_ms;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use canopy_planner::{PlanError, Request as Order, RequestKey};
use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::{
    Accepted, CacheOutcome, ContentPiece, Fallback, Operation, Plan, PlanEvent, PlanResponse, Warning,
};
use canopy_topology::Ratio;
use canopy_wire::{StoredPlan, sha256_hex};
use tokio::sync::{mpsc, watch};
use tokio::time;
use tonic::Status;

use crate::call;
use crate::clock;
use crate::failure::{PlanFailure, Shortfall};
use crate::jobs::answers::Answers;
use crate::jobs::job::{Cache, Delivery, Goal, Job, JobState, Outcome, Terms};
use crate::jobs::queue::{Queue, Subscription};
use crate::jobs::stand_in::{OnMiss, StandIn};
use crate::rpc::shared::deadline::Deadline;
use crate::rpc::shared::decode::Quality;
use crate::rpc::shared::describe;
use crate::rpc::shared::known_faults::AppliedFaults;
use crate::rpc::shared::parts::{Parts, PlanField};
use crate::rpc::shared::request_log::RequestLog;
use crate::rpc::shared::status::{to_fallback, to_status};

/// Largest file that travels inside a reply.
pub(in crate::rpc) const INLINE_BYTES_MAX: usize = 64 << 10;
/// Largest piece of a file.
pub(in crate::rpc) const PIECE_BYTES: usize = 256 << 10;

/// Longest time a reader may take nothing.
pub(in crate::rpc) const STALL_MAX: Duration = Duration::from_secs(60);

/// A call whose request is in line.
pub(crate) struct Call {
    pub(crate) terms: CallTerms,
    pub(crate) answers: Answers,
    pub(crate) subscription: Subscription,
    /// The job whose plan is sent when the other one does not come.
    pub(crate) stand_in: Option<StandIn>,
}

/// A request that has been read.
pub(in crate::rpc) struct Read {
    pub(in crate::rpc) call: CallTerms,
    pub(in crate::rpc) order: Order,
    pub(in crate::rpc) terms: Terms,
    /// Purpose of its job.
    pub(in crate::rpc) goal: Goal,
}

/// What a call asks for besides the plan, and what is to be logged of it.
pub(crate) struct CallTerms {
    pub(crate) arrived: Instant,
    pub(crate) deadline: Deadline,
    pub(crate) key: RequestKey,
    pub(crate) quality: Quality,
    /// Known faults that the request was made to name.
    pub(crate) applied: AppliedFaults,
    pub(crate) log: RequestLog,
}

/// A plan that is sent.
struct Verdict {
    delivery: Delivery,
    /// Why it stands in for the one that was asked for, if it does.
    fallback: Option<Fallback>,
    /// What it lacks, if the caller takes it all the same.
    shortfall: Option<Shortfall>,
}

/// Where the events of a stream go, numbered on the way.
#[derive(Debug)]
pub(crate) struct Sink {
    sender: mpsc::Sender<Result<Parts, Status>>,
    sequence: u64,
}

/// A plan on its way to one caller.
#[derive(Debug)]
pub(crate) struct Answer {
    plan: Arc<StoredPlan>,
    /// What goes with it; the plan itself is not in there.
    reply: PlanResponse,
}

impl Answer {
    /// The message, with the content of files of at most `inline_bytes_max`.
    pub(in crate::rpc) fn parts(&self, inline_bytes_max: usize) -> Parts {
        Parts::reply(&self.reply, self.plan.inline_sent(inline_bytes_max))
    }

    /// The same as a message, with the content of every file: a copy of its own.
    pub(in crate::rpc) fn into_whole(self) -> PlanResponse {
        PlanResponse { plan: Some(self.plan.plan.clone()), ..self.reply }
    }
}

/// The reader of a stream has gone.
#[derive(Debug)]
struct Gone;

impl Sink {
    pub(crate) fn new(sender: mpsc::Sender<Result<Parts, Status>>) -> Self {
        Self { sender, sequence: 0 }
    }

    /// Waits for room: a slow reader slows its own stream down, and nothing else. One that takes nothing for a long
    /// time is given up, because a plan is held in memory for it.
    async fn send(&mut self, event: Event) -> Result<(), Gone> {
        self.send_with(|sequence| Parts::of(&PlanEvent { sequence, event: Some(event) })).await
    }

    async fn send_plan(&mut self, field: PlanField, answer: &Answer) -> Result<(), Gone> {
        self.send_with(|sequence| Parts::plan_event(sequence, field, answer.parts(0))).await
    }

    async fn send_with(&mut self, event: impl FnOnce(u64) -> Parts) -> Result<(), Gone> {
        let event = event(self.sequence);
        self.sequence += 1;
        let sent = time::timeout(STALL_MAX, self.sender.send(Ok(event))).await;
        sent.map_err(|_| Gone)?.map_err(|_| Gone)
    }
}

impl Call {
    /// Puts a request in line.
    pub(in crate::rpc) fn submit(
        queue: &Queue,
        answers: &Answers,
        Read { mut call, order, terms, goal }: Read,
    ) -> Result<Self, Status> {
        let wanted = (call.quality.on_miss, terms.priority, call.deadline.work);
        let stand_in = StandIn::submit(queue, &order, wanted);
        match queue.submit(call.key, order, goal, terms) {
            Ok(subscription) => {
                // The queue counts what it holds, and holds equal requests once.
                call::hands_on();
                Ok(Self { terms: call, answers: answers.clone(), subscription, stand_in })
            }
            Err(failure) => {
                let status = to_status(&failure);
                call.log.failed(&status);
                Err(status)
            }
        }
    }

    /// Waits for the plan and answers with it.
    pub(crate) async fn reply(mut self) -> Result<Answer, Status> {
        let limit = time::Instant::from_std(self.terms.arrived) + self.terms.deadline.work;
        let Self { subscription, stand_in, .. } = &mut self;
        let ended = async {
            // Without a sender it has ended as well.
            let _state = subscription.state.wait_for(is_done).await.map(|_| ());
        };
        let done = time::timeout_at(limit, beside(ended, stand_in)).await;
        let found = self.judge(done.is_err(), limit).await?;
        Ok(self.terms.reply(&found, self.subscription.joined))
    }

    /// Leaves the job to itself and answers with what it is.
    pub(crate) fn leave(mut self) -> Operation {
        self.terms.log.left_alone();
        describe::operation(&self.subscription.job().describe())
    }

    /// Sends everything that becomes of the request.
    pub(crate) async fn stream(mut self, mut sink: Sink, progress_interval: Duration) {
        // A reader that has gone is nobody's fault; the log says that the caller left.
        let _gone = self.stream_events(&mut sink, progress_interval).await;
    }

    async fn stream_events(&mut self, sink: &mut Sink, progress_interval: Duration) -> Result<(), Gone> {
        sink.send(Event::Accepted(self.accepted())).await?;
        let limit = time::Instant::from_std(self.terms.arrived) + self.terms.deadline.work;
        let Self { terms, answers, subscription, stand_in } = &mut *self;
        let candidates = Candidates {
            best: stand_in.as_ref().map(StandIn::best),
            terms,
            answers,
            job: Arc::clone(subscription.job()),
        };
        let reports = report_progress(&mut subscription.state, candidates, sink, progress_interval);
        let waited = time::timeout_at(limit, beside(reports, stand_in)).await;
        if let Ok(Err(gone)) = waited {
            return Err(gone);
        }
        let found = match self.judge(waited.is_err(), limit).await {
            Ok(found) => found,
            Err(status) => return sink.sender.send(Err(status)).await.map_err(|_| Gone),
        };
        let answer = self.terms.answer(&found, self.subscription.joined);
        sink.send_plan(PlanField::Final, &answer).await?;
        send_content(&answer.plan, sink).await?;
        self.terms.log.answered(&answer.reply, &answer.plan.plan);
        Ok(())
    }

    fn accepted(&self) -> Accepted {
        Accepted {
            request_key: self.terms.key.to_string(),
            queue_position: u32::try_from(self.subscription.position).unwrap_or(u32::MAX),
            joined: self.subscription.joined,
            deadline: self.terms.deadline.stated.try_into().ok(),
            operation: self.subscription.job().operation(),
        }
    }

    /// The plan of a finished job if it is good enough, else one that stands in for it, else why there is none.
    async fn judge(&mut self, late: bool, limit: time::Instant) -> Result<Verdict, Status> {
        let outcome = self.outcome(late);
        if let Ok(delivery) = &outcome {
            self.answers.learn(&self.terms.key, delivery);
        }
        let failure = match outcome.and_then(|delivery| self.terms.accept(delivery)) {
            Ok(verdict) => return Ok(verdict),
            Err(failure) => failure,
        };
        if let Some(stand_in) = self.stand_in.as_mut().filter(|_| failure.may_be_stood_in() && !late) {
            // What cannot be made as it was asked for may be made with something to spare.
            stand_in.improve_by(limit).await;
        }
        if let Some(stand_in) = self.stand_in.as_mut().filter(|_| failure.may_be_stood_in())
            && let Some(delivery) = stand_in.delivery(limit).await
        {
            let job = self.subscription.job();
            let goes_on = late && job.ties.lock().detached;
            let wanted = self.answers.stood_in(&delivery, job);
            let fallback = to_fallback(&failure, goes_on.then(|| job.operation()), wanted.as_ref());
            self.terms.log.stood_in(&fallback);
            return Ok(Verdict { delivery, fallback: Some(fallback), shortfall: None });
        }
        Err(self.terms.refuse(&failure))
    }

    /// How the job has ended, or that it has not in time.
    fn outcome(&self, late: bool) -> Outcome {
        match self.subscription.state.borrow().clone() {
            JobState::Done(outcome) => outcome,
            JobState::Working(status) if late => {
                let deadline_ms = u64::try_from(self.terms.deadline.stated.as_millis()).unwrap_or(u64::MAX);
                let job = self.subscription.job();
                let operation = job.ties.lock().detached.then(|| job.operation());
                Err(PlanFailure::Deadline { deadline_ms, stage: status.stage, operation }.into())
            }
            // The sender of an unfinished job goes away only when its queue does.
            JobState::Working(_) => Err(PlanFailure::Draining.into()),
        }
    }
}

/// Does what is wanted while better and better plans are made that may stand in.
async fn beside<T>(wanted: impl Future<Output = T>, stand_in: &mut Option<StandIn>) -> T {
    let improve = async {
        if let Some(stand_in) = stand_in {
            stand_in.improve().await;
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        done = wanted => done,
        never = improve => never,
    }
}

/// Plans that are there while the one that was asked for is still being made.
struct Candidates<'a> {
    /// None where nobody wants any.
    best: Option<watch::Receiver<Option<Delivery>>>,
    terms: &'a CallTerms,
    answers: &'a Answers,
    job: Arc<Job>,
}

impl Candidates<'_> {
    /// The next plan that is better than all before; for ever waits where none comes any more.
    async fn next(&mut self) -> Delivery {
        let Some(best) = &mut self.best else { return std::future::pending().await };
        while best.changed().await.is_ok() {
            if let Some(delivery) = best.borrow_and_update().clone() {
                return delivery;
            }
        }
        std::future::pending().await
    }

    /// The message that brings a plan, which is known from then on to stand in for the one that was asked for.
    fn answer(&self, delivery: Delivery) -> Answer {
        let _wanted = self.answers.stood_in(&delivery, &self.job);
        self.terms.answer(&Verdict { delivery, fallback: None, shortfall: None }, false)
    }
}

/// Sends a job's status each time it has changed, not more often than the interval, and every plan that is better than those
/// before, at once, until the job is done.
async fn report_progress(
    state: &mut watch::Receiver<JobState>,
    mut candidates: Candidates<'_>,
    sink: &mut Sink,
    interval: Duration,
) -> Result<(), Gone> {
    // A second pair of eyes, so that waiting for the end does not count as having seen what comes before it.
    let mut end = state.clone();
    let mut incumbent = String::new();
    loop {
        let mut status = match &*state.borrow_and_update() {
            JobState::Done(_) => return Ok(()),
            JobState::Working(status) => status.clone(),
        };
        if status.incumbent.is_empty() {
            status.incumbent.clone_from(&incumbent);
        }
        sink.send(Event::Progress(describe::progress(&status))).await?;
        // Whatever changes meanwhile becomes one event; the end is not kept waiting, and neither are plans.
        let may_report = time::Instant::now() + interval;
        let mut is_new = false;
        loop {
            tokio::select! {
                biased;
                // Without a sender it has ended as well.
                () = async { let _is_done = end.wait_for(is_done).await.is_ok(); } => return Ok(()),
                better = candidates.next() => {
                    let quality = better.plan.plan.quality.as_ref();
                    incumbent = quality.map(|quality| quality.achieved.clone()).unwrap_or_default().exact().to_owned();
                    sink.send_plan(PlanField::Candidate, &candidates.answer(better)).await?;
                    is_new = true;
                }
                changed = state.changed(), if !is_new => match changed {
                    Ok(()) => is_new = true,
                    Err(_) => return Ok(()),
                },
                () = time::sleep_until(may_report), if is_new => break,
            }
        }
    }
}

impl CallTerms {
    /// The reply with a plan that needs no waiting for, if it is good enough.
    pub(crate) fn reply_at_once(mut self, found: Delivery) -> Result<Answer, Status> {
        match self.accept(found) {
            Ok(verdict) => Ok(self.reply(&verdict, false)),
            Err(failure) => Err(self.refuse(&failure)),
        }
    }

    /// The reply of a delivery; the call has ended with it.
    fn reply(mut self, verdict: &Verdict, joined: bool) -> Answer {
        let answer = self.answer(verdict, joined);
        self.log.answered(&answer.reply, &answer.plan.plan);
        answer
    }

    /// The delivery if it is good enough, else why it is not.
    fn accept(&self, delivery: Delivery) -> Result<Verdict, Arc<PlanFailure>> {
        let shortfall = match self.shortfall(&delivery.plan.plan) {
            None => None,
            Some(PlanFailure::BelowMinimum(shortfall)) if self.quality.on_miss == OnMiss::BestSoFar => Some(*shortfall),
            Some(failure) => return Err(failure.into()),
        };
        Ok(Verdict { delivery, fallback: None, shortfall })
    }

    fn refuse(&mut self, failure: &PlanFailure) -> Status {
        let status = self.applied.explain(&to_status(failure));
        self.log.failed(&status);
        if matches!(failure, PlanFailure::Remembered { .. }) {
            self.log.remembered();
        }
        status
    }

    /// What is missing to the least optimality asked for.
    fn shortfall(&self, plan: &Plan) -> Option<PlanFailure> {
        let minimum = self.quality.minimum_optimality.clone()?;
        let stated = plan.quality.as_ref().map_or("", |quality| quality.optimality.exact());
        let achieved: Ratio = match stated.parse() {
            Ok(achieved) => achieved,
            Err(_) => {
                return Some(PlanError::Rejected { check: "load", problem: format!("optimality `{stated}`") }.into());
            }
        };
        (achieved < minimum).then_some(PlanFailure::BelowMinimum(Box::new(Shortfall { achieved, minimum })))
    }

    /// The reply of a delivery. `joined`: the job was there before the call.
    fn answer(&self, verdict: &Verdict, joined: bool) -> Answer {
        let Verdict { delivery, fallback, shortfall } = verdict;
        let mut reply = describe::besides(delivery);
        reply.warnings.extend(self.applied.warnings());
        if let Some(fallback) = fallback {
            let quality = delivery.plan.plan.quality.as_ref();
            let reached = quality.map_or("", |quality| quality.optimality.exact());
            let text = format!(
                "the requested plan is not available ({}); this provisional one reaches {reached} of the bound",
                fallback.text
            );
            reply.warnings.push(Warning { code: "FALLBACK_USED".to_owned(), text });
            reply.fallback = Some(fallback.clone());
        }
        if let Some(shortfall) = shortfall {
            reply.warnings.push(Warning { code: "BELOW_MINIMUM".to_owned(), text: shortfall.to_string() });
        }
        if self.deadline.clipped {
            let text = format!("the deadline was shortened to the longest one allowed, {:?}", self.deadline.stated);
            reply.warnings.push(Warning { code: "DEADLINE_CLIPPED".to_owned(), text });
        }
        reply.timings.get_or_insert_default().total = duration_of_ms(clock::millis_since(self.arrived));
        if delivery.cache == Cache::Miss && joined && fallback.is_none() {
            reply.set_cache(CacheOutcome::Joined);
        }
        Answer { plan: Arc::clone(&delivery.plan), reply }
    }
}

/// Sends every file of a plan in pieces, which share its memory.
async fn send_content(stored: &StoredPlan, sink: &mut Sink) -> Result<(), Gone> {
    for ((artifact, position), file) in (0_u32..).zip(0..).zip(&stored.plan.artifacts) {
        let content = file.content.clone().unwrap_or_default();
        for (number, sha256) in stored.piece_digests(position, PIECE_BYTES).iter().enumerate() {
            let begin = number.saturating_mul(PIECE_BYTES).min(content.len());
            let data = content.slice(begin..content.len().min(begin.saturating_add(PIECE_BYTES)));
            let piece = ContentPiece { artifact, offset: begin as u64, data, sha256: sha256.clone() };
            sink.send_with(|sequence| Parts::piece_event(sequence, piece)).await?;
        }
    }
    Ok(())
}

/// A file from `offset` on, in pieces that share its memory.
pub(in crate::rpc) fn pieces(
    artifact: u32,
    content: Bytes,
    offset: usize,
) -> impl Iterator<Item = ContentPiece> + Send {
    let mut offset = offset;
    std::iter::from_fn(move || {
        let data = content.slice(offset..content.len().min(offset.checked_add(PIECE_BYTES)?));
        let piece = ContentPiece { artifact, offset: offset as u64, sha256: sha256_hex(&data), data };
        offset += piece.data.len();
        (!piece.data.is_empty()).then_some(piece)
    })
}

fn is_done(state: &JobState) -> bool {
    matches!(state, JobState::Done(_))
}
