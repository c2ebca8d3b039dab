//! One replan: from the cache if possible, else a provisional plan first and then the final one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use canopy_faults::Loss;
use canopy_planner::{Request as Order, RequestKey, chain};
use canopy_wire::Exact as _;
use canopy_wire::{KeptRequestError, Priority, each_once, kept_request, loss_written, require_few_faults, timestamp};
use prost_types::Duration as WireDuration;
use tokio::task::spawn_blocking;
use tokio::time;

use super::event::{Change, Event, Expired, Lost, Stage, Superseded};
use super::event_log::{Draft, EventLog, KeptEvent};
use super::fault_logs::Count;
use super::leases::{Avoided, Lease, Leases, ValidPlan, digest, number_of};
use super::link_set::{LinkSet, touched};
use super::replan_queue::HeldPlan;
use super::{FAULTS_NOTED_MAX, RETRY_MS, Shared};
use crate::clock;
use crate::failure::{CallFailure, PlanFailure};
use crate::jobs::job::{Delivery, Goal, Outcome, Terms, Worker};
use crate::jobs::stand_in::{OnMiss, StandIn};
use crate::metrics::size_class;
use crate::store::StoreError;

/// How long a plan that stands in waits for the one that is wanted, which often takes no longer.
const GRACE: Duration = Duration::from_millis(20);
/// By what the beginning of better and better plans that stand in is reckoned.
const SEARCH_TIME: Duration = Duration::from_secs(20);

/// The making of a plan for a held plan.
pub(super) struct Resynthesis {
    lease: Lease,
    item: u32,
    /// What counts.
    losses: Arc<Vec<Loss>>,
    /// Since when.
    since_ms: u64,
    /// What was told last.
    told: Option<Superseded>,
    /// Whether the held plan is free again.
    ended: Arc<AtomicBool>,
}

/// It has come to nothing for a reason that may pass.
struct Later;

/// A plan to tell of.
struct News {
    delivery: Delivery,
    stage: Stage,
    is_final: bool,
}

impl Resynthesis {
    pub(super) fn new(lease: Lease, item: u32, count: Option<Count>, now_ms: u64) -> Self {
        let (losses, since_ms) = count.map_or_else(|| (Arc::default(), now_ms), |count| (count.losses, count.since_ms));
        // A lease that was acquired since could not have a plan before.
        let since_ms = since_ms.max(lease.terms.created_ms);
        Self { lease, item, losses, since_ms, told: None, ended: Arc::default() }
    }

    pub(super) fn held_plan(&self) -> HeldPlan {
        (self.lease.terms.number, self.item)
    }

    /// To be set once the held plan is free again.
    pub(super) fn ended(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ended)
    }

    /// Of what counts.
    pub(super) fn digest(&self) -> Avoided {
        digest(&self.losses)
    }

    /// Makes the plan and tells of it.
    pub(super) async fn run(mut self, shared: &Arc<Shared>) {
        let (held_plan, priority) = (self.held_plan(), self.lease.priority());
        if self.drive(shared).await.is_err() {
            let not_before_ms = shared.elapsed_ms().saturating_add(RETRY_MS);
            shared.state.lock().replan_queue.enter(held_plan, priority, not_before_ms);
        }
    }

    async fn drive(&mut self, shared: &Arc<Shared>) -> Result<(), Later> {
        let order = match self.order(shared).await {
            Ok(order) => order,
            Err(failure) => return self.lost(shared, &failure).await,
        };
        if self.losses.is_empty() && self.current(shared).is_original() {
            // What was broken ceased to count before anything was made for it.
            return Ok(());
        }
        let key = RequestKey::of(&order);
        let terms = Terms { priority: Priority::Repair, detached: false, worker: Worker::Planner };
        let mut lookup = shared.queue.submit(key, order.clone(), Goal::Lookup, terms).map_err(|_| Later)?;
        match lookup.ended().await {
            Ok(delivery) => {
                let stage = match self.losses.is_empty() {
                    true => Stage::Restored,
                    false => Stage::Precomputed,
                };
                return self.tell(shared, News { delivery, stage, is_final: true }, &order).await;
            }
            Err(failure) if matches!(*failure, PlanFailure::NotCached) => {}
            Err(failure) => return self.lost(shared, &failure).await,
        }
        let mut wanted = shared.queue.submit(key, order.clone(), Goal::Plan, terms).map_err(|_| Later)?;
        self.told = self.told_before(shared);
        let stand_in = match self.told {
            // What stands in already is as good as any.
            Some(_) => None,
            None => StandIn::submit(&shared.queue, &order, (OnMiss::BestSoFar, Priority::Repair, SEARCH_TIME)),
        };
        let wanted = wanted.ended();
        tokio::pin!(wanted);
        let Some(mut stand_in) = stand_in else {
            let outcome = wanted.await;
            return self.finish(shared, outcome, &order).await;
        };
        let (mut best, mut is_improving) = (stand_in.best(), true);
        let improving = stand_in.improve();
        tokio::pin!(improving);
        loop {
            tokio::select! {
                biased;
                outcome = &mut wanted => return self.finish(shared, outcome, &order).await,
                Ok(()) = best.changed() => {
                    if self.told.is_none() && let Ok(outcome) = time::timeout(GRACE, &mut wanted).await {
                        return self.finish(shared, outcome, &order).await;
                    }
                    let delivery = best.borrow_and_update().clone();
                    if let Some(delivery) = delivery {
                        self.tell(shared, provisional(delivery), &order).await?;
                    }
                }
                () = &mut improving, if is_improving => is_improving = false,
            }
        }
    }

    /// The plan that was wanted has come, or will not.
    async fn finish(&mut self, shared: &Arc<Shared>, outcome: Outcome, order: &Order) -> Result<(), Later> {
        match outcome {
            Ok(delivery) => {
                let stage = Stage::Optimum;
                self.tell(shared, News { delivery, stage, is_final: true }, order).await
            }
            Err(failure) => match self.told.take().filter(|_| !may_pass(&failure)) {
                // What stands in is all that there is.
                Some(told) => {
                    let event = Superseded { is_final: true, ..told };
                    self.publish(shared, Change::Superseded(event)).await.map(drop)
                }
                None => self.lost(shared, &failure).await,
            },
        }
    }

    /// What is to be planned: for the sound network if the plan for it does again.
    async fn order(&mut self, shared: &Arc<Shared>) -> Result<Order, PlanFailure> {
        let (lease, item, losses) = (self.lease.clone(), self.item, Arc::clone(&self.losses));
        let shared = Arc::clone(shared);
        let made = spawn_blocking(move || order_for(&shared, &lease, item, &losses));
        let made = made.await.map_err(|error| CallFailure::Broken { what: error.to_string() }).flatten();
        let (order, is_sound) = made.map_err(|failure| match failure {
            CallFailure::Plan(failure) => failure,
            failure => {
                tracing::error!(lease = self.lease.name(), failure = chain(&failure), "planning for a lease failed");
                PlanFailure::Stopped
            }
        })?;
        if is_sound {
            self.losses = Arc::default();
        }
        Ok(order)
    }

    /// Tells of a plan.
    async fn tell(&mut self, shared: &Arc<Shared>, news: News, order: &Order) -> Result<(), Later> {
        let News { delivery, stage, is_final } = news;
        let quality = delivery.plan.plan.quality.clone().unwrap_or_default();
        let puncture = delivery.puncture.as_deref();
        let ranks = self.lease.terms.items.get(self.item as usize).map_or(0, |item| item.ranks);
        let survivors = puncture.map(|puncture| puncture.survivor_numbers()).unwrap_or_default();
        let new_plan = delivery.plan.plan.name.clone();
        let elapsed = Duration::from_millis(shared.leases.now_ms().saturating_sub(self.since_ms));
        let event = Superseded {
            old_plan: String::new(),
            new_plan,
            stage: stage.into(),
            bound: quality.bound.exact().to_owned(),
            achieved: quality.achieved.exact().to_owned(),
            optimality: quality.optimality.exact().to_owned(),
            survivors: if survivors.len() == ranks as usize { Vec::new() } else { survivors },
            elapsed: WireDuration::try_from(elapsed).ok(),
            is_final,
        };
        self.told = Some(event.clone());
        if !self.publish(shared, Change::Superseded(event)).await? {
            return Ok(());
        }
        let (outcome, class) = (stage.name(), size_class(ranks));
        shared.metrics.count("canopy_replans_total", &[("outcome", outcome.into())]);
        let labels = [("outcome", outcome.into()), ("size_class", class.into())];
        shared.metrics.took("canopy_replan_latency_seconds", &labels, elapsed);
        self.note_links(shared, order, &delivery).await;
        Ok(())
    }

    /// Tells that there is no plan, unless there may be one a little later.
    async fn lost(&self, shared: &Arc<Shared>, failure: &PlanFailure) -> Result<(), Later> {
        if may_pass(failure) {
            return Err(Later);
        }
        let event = Lost { old_plan: String::new(), error: Some(failure.into()) };
        if self.publish(shared, Change::Lost(event)).await? {
            shared.metrics.count("canopy_replans_total", &[("outcome", "lost".into())]);
        }
        Ok(())
    }

    /// Writes an event down, and then with the lease what it says; those who watch are told. False: there is nothing to tell any more.
    async fn publish(&self, shared: &Arc<Shared>, change: Change) -> Result<bool, Later> {
        let faults = self.losses.iter().take(FAULTS_NOTED_MAX).map(loss_written).collect();
        let event = Event {
            lease: self.lease.name(),
            job: self.lease.terms.job.clone(),
            item: self.item,
            faults,
            change: Some(change),
            ..Event::default()
        };
        let kept = KeptEvent {
            event,
            avoided: if self.losses.is_empty() { Vec::new() } else { self.digest().to_vec() },
            tenant: self.lease.terms.tenant.clone(),
            ..KeptEvent::default()
        };
        let (writer, reader, leases) = (Arc::clone(shared), shared.leases.clone(), shared.leases.clone());
        let ended = Arc::clone(&self.ended);
        let draft = Draft {
            // A resynthesis that was ended may have been at this point; its held plan is another one's by now.
            make: Box::new(
                move || if ended.load(Ordering::Relaxed) { None } else { worth_telling(&reader, kept.clone()) },
            ),
            follow: Box::new(move |kept| apply(&leases, kept)),
        };
        let told = match spawn_blocking(move || writer.events.append(draft)).await {
            Ok(told) => told.map_err(|error| chain(&*error)),
            Err(error) => Err(error.to_string()),
        };
        shared.unwritten.notify_one();
        told.map_err(|error| {
            tracing::error!(error, "the outcome for a lease could not be saved; it is planned again");
            Later
        })
    }

    /// Remembers which links the new plan is on; those of the original are written down.
    async fn note_links(&self, shared: &Arc<Shared>, order: &Order, delivery: &Delivery) {
        let links = match self.losses.is_empty() {
            true => None,
            false => self.links_of(shared, order, delivery).await,
        };
        let plan = delivery.plan.plan.name.clone();
        shared.state.lock().held_plans.entry(self.held_plan()).or_default().links = links.map(|links| (plan, links));
    }

    /// The links of the topology that a plan is on. Many leases may have the same.
    async fn links_of(&self, shared: &Arc<Shared>, order: &Order, delivery: &Delivery) -> Option<Arc<LinkSet>> {
        let base = self.lease.base()?;
        let key = (base, delivery.plan.plan.name.clone());
        let known = shared.state.lock().links.get(&key).map(Arc::clone);
        if known.is_some() {
            return known;
        }
        let (reader, order, plan) = (Arc::clone(shared), order.clone(), Arc::clone(&delivery.plan));
        let read = spawn_blocking(move || {
            let base = reader.bases.get(&base).ok().flatten()?;
            let prepared = reader.planner.prepare(&order, &canopy_synth::Never).ok()?;
            Some(LinkSet::projected(&base, &prepared.topology, &plan.plan.links_used))
        });
        let links = Arc::new(read.await.ok().flatten()?);
        shared.state.lock().links.insert(key, Arc::clone(&links));
        Some(links)
    }

    /// What was told of a plan that stands in for the same faults, before this resynthesis began.
    fn told_before(&self, shared: &Shared) -> Option<Superseded> {
        let valid =
            Some(self.current(shared)).filter(|valid| valid.is_provisional && valid.avoided == self.digest())?;
        let kept =
            shared.events.after(valid.event.saturating_sub(1), 1).ok().and_then(|events| events.first().cloned());
        match kept.and_then(|kept| kept.event.change.clone()) {
            Some(Change::Superseded(told)) if told.new_plan == valid.plan => Some(told),
            // It is long ago.
            _ => {
                let ranks = self.lease.terms.items.get(self.item as usize).map_or(0, |item| item.ranks);
                let (stage, new_plan) = (Stage::StandIn.into(), valid.plan.clone());
                Some(Superseded { stage, new_plan, survivors: valid.survivors(ranks), ..Default::default() })
            }
        }
    }

    /// The plan that is valid now.
    fn current(&self, shared: &Shared) -> ValidPlan {
        let lease = shared.leases.get(self.lease.terms.number);
        lease.as_ref().unwrap_or(&self.lease).state.items.get(self.item as usize).cloned().unwrap_or_default()
    }
}

/// What is to be planned for an item of a lease, and whether that is for the sound network, as the plan for it does again.
pub(super) fn order_for(
    shared: &Shared,
    lease: &Lease,
    item: u32,
    losses: &[Loss],
) -> Result<(Order, bool), CallFailure> {
    let broken = || CallFailure::Broken { what: "a lease has no plans".to_owned() };
    let item = lease.terms.items.get(item as usize).ok_or_else(broken)?;
    let key = lease.base().ok_or_else(broken)?;
    let unknown = || CallFailure::TopologyUnknown { name: crate::store::topologies::id_of(&key) };
    let base = shared.bases.get(&key)?.ok_or_else(unknown)?;
    let is_sound = losses.is_empty() || !touched(&base, losses).meets_bytes(&item.links);
    let document = |id: &str| {
        let unknown = || CallFailure::TopologyUnknown { name: id.to_owned() };
        Ok(shared.topologies.get(id)?.ok_or_else(unknown)?.document)
    };
    let mut order = kept_request(item.request.clone(), document).map_err(|error| match error {
        KeptRequestError::Damaged => broken(),
        KeptRequestError::Request(error) => PlanFailure::Request(error).into(),
        KeptRequestError::Topology(failure) => failure,
    })?;
    if !is_sound {
        require_few_faults(losses.len()).map_err(PlanFailure::Request)?;
        order.faults = each_once(losses.to_vec());
    }
    let tenant = Some(lease.terms.tenant.as_str()).filter(|tenant| !tenant.is_empty());
    order.tenant = tenant.map(str::parse).transpose().map_err(|_| broken())?;
    Ok((order, is_sound))
}

/// A plan that stands in.
fn provisional(delivery: Delivery) -> News {
    let provenance = delivery.plan.plan.provenance.as_ref();
    let is_repaired = provenance.is_some_and(|provenance| !provenance.repaired_from.is_empty());
    let stage = if is_repaired { Stage::Repaired } else { Stage::StandIn };
    News { delivery, stage, is_final: false }
}

/// The event with the plan that is valid until then, unless the lease is gone or says the same already.
fn worth_telling(leases: &Leases, mut kept: KeptEvent) -> Option<KeptEvent> {
    let (lease, item) = subject(leases, &kept.event)?;
    let valid = lease.state.items.get(item)?;
    let said = said_by(&kept, lease.terms.items.get(item)?.ranks);
    if (ValidPlan { event: valid.event, ..said }) == *valid {
        return None;
    }
    match kept.event.change.as_mut()? {
        Change::Superseded(superseded) => superseded.old_plan.clone_from(&valid.plan),
        Change::Lost(lost) => lost.old_plan.clone_from(&valid.plan),
        Change::Expired(_) => {}
    }
    Some(kept)
}

/// The lease that an event is about, and which of its plans.
fn subject(leases: &Leases, event: &Event) -> Option<(Lease, usize)> {
    let lease = leases.get(number_of(&event.lease)?)?;
    Some((lease, event.item as usize))
}

/// Has a lease say what an event says of it, unless it says something later.
pub(super) fn apply(leases: &Leases, kept: &KeptEvent) {
    let Some((lease, item)) = subject(leases, &kept.event) else { return };
    if is_expiry(kept) {
        // It says nothing of a plan, and the lease goes when all such events are written.
        return;
    }
    let Some((ranks, valid)) = lease.terms.items.get(item).map(|item| item.ranks).zip(lease.state.items.get(item))
    else {
        return;
    };
    if valid.event < kept.sequence() {
        leases.follow(lease.terms.number, item, said_by(kept, ranks));
    }
}

/// What an event says of the plan that is valid.
fn said_by(kept: &KeptEvent, ranks: u32) -> ValidPlan {
    let event = &kept.event;
    let faults = event.losses();
    // Of more faults than an event holds, these are not all.
    let is_whole = digest(&faults).as_slice() == kept.avoided;
    let valid = ValidPlan {
        avoided: kept.avoided.clone(),
        event: event.sequence,
        faults: if is_whole { faults.iter().map(Loss::to_string).collect() } else { Vec::new() },
        ..ValidPlan::default()
    };
    match &event.change {
        Some(Change::Superseded(superseded)) => {
            let survivors = &superseded.survivors;
            let is_lost = |rank: &u32| !survivors.is_empty() && survivors.binary_search(rank).is_err();
            let lost = (0..ranks).filter(is_lost).collect();
            ValidPlan { plan: superseded.new_plan.clone(), lost, is_provisional: !superseded.is_final, ..valid }
        }
        Some(Change::Lost(lost)) => ValidPlan { error: lost.error.clone(), ..valid },
        Some(Change::Expired(_)) | None => valid,
    }
}

/// Makes leases say what was told of them before the server ended, and ends those that were told of as expired.
///
/// # Errors
/// The engine failed.
pub(super) fn catch_up(leases: &Leases, events: &EventLog) -> Result<(), StoreError> {
    let all = events.all();
    // An event is about one lease for ever: no other one gets its name while the event is kept.
    leases.number_beyond(all.iter().filter_map(|kept| number_of(&kept.event.lease)).max().unwrap_or_default());
    all.iter().for_each(|event| apply(leases, event));
    let expired = all.iter().filter(|kept| is_expiry(kept));
    let numbers: Vec<u64> = expired.filter_map(|kept| number_of(&kept.event.lease)).collect();
    leases.release(&numbers).map(drop)
}

fn is_expiry(kept: &KeptEvent) -> bool {
    matches!(kept.event.change, Some(Change::Expired(_)))
}

/// Writes down that a lease has expired; those who watch are told.
///
/// # Errors
/// It could not be written.
pub(super) fn tell_expired(events: &EventLog, lease: &Lease) -> Result<(), Arc<StoreError>> {
    let shown = timestamp(clock::shown_ms(lease.state.expire_ms));
    let event = Event {
        lease: lease.name(),
        job: lease.terms.job.clone(),
        change: Some(Change::Expired(Expired { time: Some(shown) })),
        ..Event::default()
    };
    let kept = KeptEvent { event, tenant: lease.terms.tenant.clone(), ..KeptEvent::default() };
    let draft = Draft { make: Box::new(move || Some(kept.clone())), follow: Box::new(|_| {}) };
    events.append(draft).map(drop)
}

/// Whether a plan failed for a reason that passes by itself: another try costs little, and may bring it.
const fn may_pass(failure: &PlanFailure) -> bool {
    matches!(
        failure,
        PlanFailure::Draining
            | PlanFailure::OverQuota(_)
            | PlanFailure::QueueFull { .. }
            | PlanFailure::QueueBudget { .. }
            | PlanFailure::Stopped
            | PlanFailure::NotCached
    )
}
