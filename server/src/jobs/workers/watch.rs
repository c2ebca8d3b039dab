//! What a planner says of a job while it makes its plan.

use std::time::{Duration, Instant};

use canopy_planner::{Note, PlanKey, Rejection, chain};
use canopy_topology::Rate;
use parking_lot::Mutex;

use super::Jobs;
use crate::clock;
use crate::jobs::job::Job;
use crate::jobs::planner::Watch;

/// Shortest time between two reports of one stage that are passed on.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// Passes the reports of a planner on to those who wait for a job: within one stage, some each second.
pub(in crate::jobs) struct JobWatch<'a> {
    jobs: &'a Jobs,
    job: &'a Job,
    plan: &'a PlanKey,
    passed_on: Mutex<(&'static str, Instant)>,
}

impl<'a> JobWatch<'a> {
    pub(in crate::jobs) fn new(jobs: &'a Jobs, job: &'a Job, plan: &'a PlanKey) -> Self {
        Self { jobs, job, plan, passed_on: Mutex::new(("", clock::now())) }
    }
}

impl Watch for JobWatch<'_> {
    fn stage(&self, stage: &'static str, done: u64, total: u64) {
        let now = clock::now();
        let mut passed_on = self.passed_on.lock();
        if passed_on.0 != stage || now.duration_since(passed_on.1) >= REPORT_INTERVAL {
            *passed_on = (stage, now);
            self.job.update(|status| (status.stage, status.done, status.total) = (stage.into(), done, total));
        }
    }

    fn bound(&self, algbw: &Rate) {
        self.job.update(|status| status.bound = algbw.to_string());
    }

    fn incumbent(&self, algbw: &Rate) {
        self.job.update(|status| status.incumbent = algbw.to_string());
    }

    fn note(&self, note: Note<'_>) {
        let plan = self.plan.plan_id();
        match note {
            Note::Rejected(rejection @ Rejection { algorithm, reason, problem }) => {
                let reproducer = self.jobs.reproducer(self.job, self.plan, rejection.clone());
                tracing::error!(%plan, algorithm, reason, problem, reproducer, "a plan failed its check and was left out of the comparison");
            }
            Note::NoRival { algorithm, reason } => {
                tracing::debug!(%plan, algorithm, failure = %reason, "a plan for the comparison could not be made");
            }
            Note::WrongSchedule { key, reason } => {
                let fault = reason.fault();
                tracing::error!(schedule = %key, fault, "a stored schedule is wrong; it is computed again");
            }
            Note::NotRepaired { reason } => {
                tracing::info!(reason = chain(reason), "a schedule could not be repaired");
            }
        }
    }
}
