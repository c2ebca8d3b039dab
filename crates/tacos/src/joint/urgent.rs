//! Broadcasts and reductions of several tenants at the same time, the most urgent first: who is as far from a chunk as there is
//! time for has a way before all who can wait, whoever's chunk it is.
//!
//! Placed one tenant after the other (`copy`), the first sends over every link as soon as it can, and leaves none to what the
//! others cannot put off.

use std::collections::BTreeMap;

use canopy_optimize::Stop;

use super::place::real;
use super::view::View;
use super::{Tenant, Work};
use crate::bound::distances;
use crate::calendar::Calendar;
use crate::chance::Chance;
use crate::copies::CopyError;
use crate::earliest::Earliest;
use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};
use crate::task::CopyTask;

/// Most chunks of a tenant, counted once for each member: each takes a search.
const SEARCHES_MAX: usize = 1 << 12;

/// The one work of a tenant, where it is a broadcast or a reduction that is small enough.
pub(super) fn task_of(tenant: &Tenant) -> Option<&CopyTask> {
    let [Work::Copy(task) | Work::Sum(task)] = tenant.works.as_slice() else { return None };
    let owners = task.owners();
    let has_one_owner = owners.first() == owners.last();
    (has_one_owner && owners.len().saturating_mul(task.node_count()) <= SEARCHES_MAX).then_some(task)
}

/// What one of these tenants does.
struct TenantState<'a> {
    number: usize,
    tenant: &'a Tenant,
    task: &'a CopyTask,
    view: View,
    network: &'a TimedNetwork,
    search: Earliest<'a>,
    /// By chunk, who has it or is sent it, from when on as seen.
    held: Vec<BTreeMap<u32, u64>>,
    sends: Vec<Sent>,
}

/// Who is to get what; in order, the most urgent stands first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Delivery {
    /// How long it can wait, in ticks.
    wait: u64,
    /// What decides between equal ones.
    lot: u64,
    state: usize,
    chunk: u32,
    member: u32,
}

/// By number of a tenant, of those that have a [`task`](task_of): its sends, entered in the calendar. None where a reduction does not fit
/// in before the end.
///
/// O(links · log) for each chunk and member.
pub(super) fn place(
    tenants: &[Tenant],
    calendar: &mut Calendar,
    end: u64,
    seed: u64,
    stop: &dyn Stop,
) -> Result<Option<Vec<(usize, Sends)>>, CopyError> {
    let mut chance = Chance::new(seed);
    let mut states: Vec<TenantState<'_>> =
        (0..).zip(tenants).filter_map(|(number, tenant)| TenantState::of(number, tenant, end)).collect();
    let mut deliveries: Vec<Delivery> = Vec::new();
    for (number, state) in states.iter().enumerate() {
        let delivery = |(wait, chunk, member)| Delivery { wait, lot: chance.next(), state: number, chunk, member };
        deliveries.extend(state.deliveries(end).map(delivery));
    }
    deliveries.sort_unstable();
    for Delivery { state, chunk, member, .. } in deliveries {
        if stop.is_requested() {
            return Err(CopyError::Stopped);
        }
        if !states[state].bring(chunk, member, calendar) {
            return Ok(None);
        }
    }
    states.into_iter().map(|state| state.done(end)).collect::<Result<Vec<_>, _>>().map(Some)
}

impl<'a> TenantState<'a> {
    fn of(number: usize, tenant: &'a Tenant, end: u64) -> Option<Self> {
        let task = task_of(tenant)?;
        let (view, network) = match tenant.works.first() {
            Some(Work::Sum(_)) => (View::Backwards { begin: 0, end }, &tenant.transposed),
            _ => (View::Forwards { begin: 0 }, &tenant.network),
        };
        let held = task.owners().iter().map(|&owner| BTreeMap::from([(owner, 0)])).collect();
        Some(Self { number, tenant, task, view, network, search: Earliest::new(network), held, sends: Vec::new() })
    }

    /// How long each member can wait for each chunk, so that it is there by the end on a shortest way.
    fn deliveries(&self, end: u64) -> impl Iterator<Item = (u64, u32, u32)> {
        let from: Vec<u32> = self.task.owners().first().copied().into_iter().collect();
        let distances = distances(self.network, &from, |link| link.latency);
        let members = (0..self.network.node_count()).filter(|&node| self.task.is_member(node) && !from.contains(&node));
        let waits: Vec<(u64, u32)> =
            members.map(|member| (end.saturating_sub(distances[member as usize]), member)).collect();
        (0..self.task.chunk_count())
            .flat_map(move |chunk| waits.clone().into_iter().map(move |(wait, member)| (wait, chunk, member)))
    }

    /// Sends a chunk to a member on the way on which it is there first; whether there is one.
    fn bring(&mut self, chunk: u32, member: u32, calendar: &mut Calendar) -> bool {
        let &mut Self { tenant, view, network, .. } = self;
        let held = &mut self.held[chunk as usize];
        if held.contains_key(&member) {
            return true;
        }
        let places: Vec<(u32, u64)> = held.iter().map(|(&place, &since)| (place, since)).collect();
        let free = |link: u32, time: u64| view.first_free(tenant, calendar, link, time);
        let Some(way) = self.search.way(&places, member, free) else { return false };
        for (link, start) in way {
            let timed = network.link(link);
            held.insert(timed.to, start.saturating_add(timed.latency));
            view.take(tenant, calendar, link, start);
            self.sends.push(Sent { start, link, chunk });
        }
        true
    }

    /// Its number and what it sends.
    fn done(mut self, end: u64) -> Result<(usize, Sends), CopyError> {
        self.sends.sort_unstable();
        let sends = real(self.tenant, self.view, self.sends)?;
        let end = if matches!(self.view, View::Backwards { .. }) { end } else { sends.end };
        Ok((self.number, Sends { end, ..sends }))
    }
}
