//! `Analysis.WeighFaults`: which single faults cost a collective how much. Workers weigh them in slices.

use std::sync::Arc;
use std::time::Duration;

use canopy_faults::{EquivalentFaults, Loss, Remaining};
use canopy_planner::{Left, Request as Order, TopologyKey, WhatIf};
use canopy_proto::v1::weigh_faults_event::Event;
use canopy_proto::v1::{WeighFaultsEvent, WeighFaultsProgress, WeighFaultsRequest, WeighFaultsStarted, WeighedFaults};
use canopy_topology::Rate;
use canopy_wire as wire;
use canopy_wire::fraction;
use tonic::{Request, Status};

use crate::clock;
use crate::failure::PlanFailure;
use crate::jobs::questions::{Asked, weighing_bytes};
use crate::jobs::slices::Part;
use crate::rpc::shared::admission::Admission;
use crate::rpc::shared::decode::{Decoded, Method, decode};
use crate::rpc::shared::events::EventStream;
use crate::rpc::shared::outgoing::{Ended, Outgoing, PROGRESS_INTERVAL, batches, stream};
use crate::rpc::shared::plan_query::PlanQuery;
use crate::rpc::shared::resolve::Resolved;

/// How long a slice is to take, so that workers share what there is to do, and repairs do not wait for long.
const SLICE_TIME: Duration = Duration::from_secs(1);
/// Most faults in one slice, and most slices.
const FAULTS_MAX: usize = 32;
const SLICES_MAX: usize = 1024;

/// Groups of faults, some of which have been weighed.
struct Weighing {
    sound: Rate,
    remaining: Remaining,
    groups: Vec<EquivalentFaults>,
    /// Faults in each slice but the last.
    at_once: usize,
    /// What the groups leave, as far as it is known.
    left: Vec<Option<Left>>,
    asked: Asked,
}

/// Begins to weigh the faults; the stream ends with all of them.
pub(super) async fn weigh_faults(
    admission: &Admission,
    request: Request<WeighFaultsRequest>,
) -> Result<EventStream<WeighFaultsEvent>, Status> {
    let arrived = clock::now();
    let may_fail = wire::what_may_fail(request.get_ref());
    let Resolved { request, applied } = admission.resolve(request.map(PlanQuery::from), Method::WeighFaults).await?;
    let (headers, _, asked) = request.into_parts();
    let jobs = Arc::clone(&admission.jobs);
    let begun = admission.pool.compute(Method::WeighFaults.name(), &headers, move |_, seat| {
        let (kinds, remaining) = may_fail.map_err(PlanFailure::Request)?;
        let Decoded { order, terms, .. } = decode(asked, Method::WeighFaults).map_err(PlanFailure::Request)?;
        let what_if = jobs.what_if(&order, seat)?;
        seat.take_memory(weighing_bytes(&what_if))?;
        let started = clock::now();
        let sound = what_if.sound(seat).map_err(PlanFailure::from)?;
        let took = clock::now().duration_since(started);
        let groups = what_if.groups(&kinds, seat).map_err(PlanFailure::from)?;
        let at_once = at_once(groups.len(), took);
        let parts = parts(&Arc::new(order), &groups, remaining, at_once);
        let slices = parts.len();
        let asked = jobs.ask(&what_if, parts, terms.priority)?;
        let started = started_event(&what_if, &sound, groups.len(), slices);
        let left = vec![None; groups.len()];
        Ok((started, Weighing { sound, remaining, groups, at_once, left, asked }))
    });
    let (mut started, weighing) = begun.await.map_err(|status| applied.explain(&status))?;
    started.warnings.extend(applied.warnings());
    let (terms, interval) = ((arrived, admission.reader.deadlines.apply(&headers)), PROGRESS_INTERVAL);
    Ok(stream(Method::WeighFaults.name(), terms, |events| weighing.report(started, events, interval)))
}

/// Faults in one slice, where one takes so long.
fn at_once(groups: usize, one: Duration) -> usize {
    let in_time = SLICE_TIME.as_micros() / one.as_micros().max(1);
    let in_time = usize::try_from(in_time).unwrap_or(FAULTS_MAX).clamp(1, FAULTS_MAX);
    in_time.max(groups.div_ceil(SLICES_MAX))
}

/// Slices of the groups, each of which the first of its faults speaks for.
fn parts(order: &Arc<Order>, groups: &[EquivalentFaults], remaining: Remaining, at_once: usize) -> Vec<Part> {
    let loss =
        |group: &EquivalentFaults| group.targets.first().map(|target| Loss { target: target.clone(), remaining });
    let part = |groups: &[EquivalentFaults]| Part {
        order: Arc::clone(order),
        losses: groups.iter().filter_map(loss).collect(),
    };
    groups.chunks(at_once.max(1)).map(part).collect()
}

fn started_event(what_if: &WhatIf, sound: &Rate, groups: usize, slices: usize) -> WeighFaultsStarted {
    let (topology, number) = (what_if.topology(), |count: usize| u32::try_from(count).unwrap_or(u32::MAX));
    WeighFaultsStarted {
        bound: fraction(&sound),
        topology: Some(wire::topology_summary(topology, &TopologyKey::of(topology))),
        groups: number(groups),
        slices: number(slices),
        warnings: Vec::new(),
    }
}

impl Weighing {
    /// Sends what becomes known until all of it is.
    async fn report(
        mut self,
        started: WeighFaultsStarted,
        events: Outgoing<WeighFaultsEvent>,
        interval: Duration,
    ) -> Result<(), Ended> {
        let send = async |event| events.send(WeighFaultsEvent { event: Some(event) }).await;
        send(Event::Started(started)).await?;
        let groups = self.groups.len();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let mut next_report = clock::now();
        while self.left.iter().any(Option::is_none) {
            let (slice, outcome) = self.asked.next().await.ok_or_else(|| Ended::from(&PlanFailure::Draining))?;
            let answer = outcome.map_err(|failure| Ended::from(&*failure))?;
            let of_slice = self.left.iter_mut().skip(slice.saturating_mul(self.at_once)).take(self.at_once);
            of_slice.zip(answer).for_each(|(place, left)| *place = Some(left));
            if clock::now() >= next_report {
                next_report = clock::now() + interval;
                let weighed = number(self.left.iter().flatten().count());
                send(Event::Progress(WeighFaultsProgress { weighed, groups: number(groups) })).await?;
            }
        }
        for weighed in self.messages() {
            send(Event::Weighed(weighed)).await?;
        }
        Ok(())
    }

    /// All groups, most harmful first: those that leave the same in the order of kinds and elements.
    fn messages(&self) -> Vec<WeighedFaults> {
        let mut weighed: Vec<(&EquivalentFaults, &Left)> = self.groups.iter().zip(self.left.iter().flatten()).collect();
        weighed.sort_by_key(|(_, left)| left.harm());
        let sent =
            weighed.into_iter().map(|(group, left)| wire::weighed_fault(group, self.remaining, left, &self.sound));
        batches(sent).into_iter().map(|groups| WeighedFaults { groups }).collect()
    }
}
