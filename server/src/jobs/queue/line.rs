//! Jobs that wait for a worker. Repairs go first; else it is the turn of the tenant that had least, and within a tenant
//! the highest priority goes first, and among equals the first to arrive.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use canopy_planner::ScheduleKey;
use canopy_wire::Priority;

use super::turns::Turns;
use crate::jobs::job::Job;

/// Jobs of one tenant by their places.
type OfTenant = BTreeMap<(Reverse<Priority>, u64), Arc<Job>>;

/// A line of jobs. The place of a job follows from its tenant, its priority and its number alone.
#[derive(Default)]
pub(super) struct Line(BTreeMap<String, OfTenant>);

impl Line {
    /// Puts a job where its priority says.
    pub(super) fn push(&mut self, job: Arc<Job>) {
        let priority = job.ties.lock().priority;
        let of_tenant = self.0.entry(job.tenant().to_owned()).or_default();
        of_tenant.insert((Reverse(priority), job.number), job);
    }

    /// The first job whose schedule is not being searched for, among those of at least this priority.
    /// O(tenants + jobs that wait for schedules).
    pub(super) fn first(
        &self,
        sought: &HashMap<ScheduleKey, u64>,
        turns: &Turns,
        least: Option<Priority>,
    ) -> Option<Arc<Job>> {
        let is_free = |job: &Job| job.schedule().is_none_or(|schedule| !sought.contains_key(&schedule));
        let first_of = |(tenant, jobs): (&String, &OfTenant)| {
            let wanted =
                jobs.iter().take_while(|((Reverse(priority), _), _)| least.is_none_or(|least| *priority >= least));
            let (place, job) = wanted.into_iter().find(|(_, job)| is_free(job)).map(|(place, job)| (*place, job))?;
            let (Reverse(priority), number) = place;
            let is_repair = priority >= Priority::Repair;
            Some(((Reverse(is_repair), turns.of(tenant), Reverse(priority), number), Arc::clone(job)))
        };
        self.0.iter().filter_map(first_of).min_by_key(|(place, _)| *place).map(|(_, job)| job)
    }

    /// Takes the first job.
    pub(super) fn pop(&mut self, turns: &Turns) -> Option<Arc<Job>> {
        let first = self.first(&HashMap::new(), turns, None)?;
        self.remove(&first)
    }

    /// Takes a job out, if it is in the line. Before its priority changes, that is.
    pub(super) fn remove(&mut self, job: &Job) -> Option<Arc<Job>> {
        let priority = job.ties.lock().priority;
        let of_tenant = self.0.get_mut(job.tenant())?;
        let removed = of_tenant.remove(&(Reverse(priority), job.number));
        if of_tenant.is_empty() {
            self.0.remove(job.tenant());
        }
        removed
    }

    /// Jobs that stand before a newcomer of this tenant and priority: those of its own tenant, and as many of each other
    /// one, which may turn out to be fewer. O(their number).
    pub(super) fn ahead_of(&self, tenant: &str, priority: Priority) -> usize {
        let own = self.0.get(tenant).map_or(0, |jobs| jobs.range(..=(Reverse(priority), u64::MAX)).count());
        let others = self.0.iter().filter(|(other, _)| *other != tenant);
        own + others.map(|(_, jobs)| jobs.len().min(own + 1)).sum::<usize>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
