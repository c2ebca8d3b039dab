//! Tenants take turns by their weights, however much they ask for.

use std::collections::BTreeMap;

use canopy_access::{Policy, Quotas};
use proptest::prelude::*;
use tonic::codegen::http::HeaderMap;
use tracing::Span;

use super::*;
use crate::call::{CallContext, LineLimit};
use crate::metrics::Metrics;
use crate::quota::{Accounts, OverQuota};

fn quotas(rules: &str) -> Quotas {
    Policy::read(rules, |_| Err("nothing is named".to_owned())).unwrap().quotas().clone()
}

/// A queue, and the accounts of those who ask it.
struct Shared {
    queue: Queue,
    accounts: Accounts,
    quotas: Quotas,
    /// What keeps jobs from ending with their callers.
    waiting: Vec<Subscription>,
    ranks: u32,
}

impl Shared {
    fn new(rules: &str) -> Self {
        let limits = QueueLimits { length_max: 1000, bytes_max: 1 << 24, memory_bytes_max: u64::MAX };
        let queue = Queue::new(limits, None);
        let accounts = Accounts::new(Metrics::off());
        Self { queue, accounts, quotas: quotas(rules), waiting: Vec::new(), ranks: 2 }
    }

    /// Submits a plan of its own for a tenant.
    fn submit(&mut self, tenant: &str, priority: Priority) -> Result<(), PlanFailure> {
        self.ranks += 1;
        let call = CallContext::begin(Metrics::off(), LineLimit::default(), &HeaderMap::new(), &Span::none());
        call.billed_to(self.accounts.of("somebody", tenant, &self.quotas));
        let _in_call = call.enter();
        let terms = Terms { priority, ..TERMS };
        self.waiting.push(submit_as(&self.queue, &format!("ring:{}", self.ranks), Goal::Plan, terms)?);
        Ok(())
    }

    /// Brings all that is submitted into the second line.
    fn read(&self) {
        while !self.queue.shared.lines.lock().reading.is_empty() {
            let job = self.queue.next_to_read().unwrap();
            let read = read(&job);
            if let Err(failure) = self.queue.promote(&job, read) {
                self.queue.finish(&job, Err(Arc::new(failure)));
            }
        }
    }

    /// Works on the next job for so long: its tenant.
    fn work(&self, took: Duration) -> String {
        let job = self.queue.next_to_plan().unwrap();
        self.queue.finish(&job, Ok(delivery()));
        self.queue.vacate(&job, took);
        job.tenant().to_owned()
    }
}

const INTERACTIVE: Priority = Priority::Interactive;

#[test]
fn one_tenants_many_jobs_do_not_keep_anothers_waiting() {
    let mut shared = Shared::new("");
    (0..6).for_each(|_| shared.submit("red", INTERACTIVE).unwrap());
    (0..2).for_each(|_| shared.submit("blue", Priority::Prefetch).unwrap());
    assert_eq!(shared.waiting[7].position, 3, "its own, and two of the other in turn");
    shared.read();
    let took = Duration::from_secs(3);
    let turns: Vec<String> = (0..4).map(|_| shared.work(took)).collect();
    assert_eq!(turns, ["red", "blue", "red", "blue"]);
    // What is not used is not saved up.
    assert_eq!(shared.work(took), "red");
    assert_eq!(shared.work(took), "red");
    (0..3).for_each(|_| shared.submit("blue", INTERACTIVE).unwrap());
    shared.read();
    let turns: Vec<String> = (0..5).map(|_| shared.work(took)).collect();
    assert_eq!(turns.iter().filter(|tenant| *tenant == "red").count(), 2);
}

#[test]
fn repairs_go_first_and_within_a_tenant_so_do_higher_priorities() {
    let mut shared = Shared::new("");
    shared.submit("red", Priority::Prefetch).unwrap();
    shared.submit("red", Priority::JobStart).unwrap();
    shared.submit("blue", Priority::Prefetch).unwrap();
    shared.submit("blue", Priority::Repair).unwrap();
    shared.read();
    let next = || {
        let job = shared.queue.next_to_plan().unwrap();
        shared.queue.vacate(&job, Duration::from_secs(9));
        (job.tenant().to_owned(), job.ties.lock().priority)
    };
    let expected = [
        ("blue".to_owned(), Priority::Repair),
        ("red".to_owned(), Priority::JobStart),
        ("red".to_owned(), Priority::Prefetch),
        ("blue".to_owned(), Priority::Prefetch),
    ];
    assert_eq!([next(), next()], expected[..2]);
    assert_eq!(BTreeMap::from([next(), next()]), BTreeMap::from([expected[2].clone(), expected[3].clone()]));
}

/// Repairs have a worker that takes nothing else from those who search.
#[test]
fn a_repair_does_not_wait_for_a_search_to_end() {
    let mut shared = Shared::new("");
    shared.submit("red", INTERACTIVE).unwrap();
    shared.read();
    let searching = shared.queue.next_to_plan().unwrap();
    shared.submit("red", INTERACTIVE).unwrap();
    shared.submit("red", Priority::Repair).unwrap();
    shared.read();
    let beside = shared.queue.next_beside().unwrap();
    assert_eq!(beside.ties.lock().priority, Priority::Repair);
    shared.queue.vacate(&searching, Duration::ZERO);
}

#[test]
fn quotas_of_jobs_and_of_planning_time_are_kept() {
    let rules = "[quotas]\ndefault = { jobs = 2, planning_seconds_per_hour = 60 }\n";
    let mut shared = Shared::new(rules);
    let refused = |found: Result<(), PlanFailure>| match found {
        Err(PlanFailure::OverQuota(OverQuota { quota, limit, .. })) => Some((quota, limit)),
        other => panic!("{other:?}"),
    };
    (0..2).for_each(|_| shared.submit("red", INTERACTIVE).unwrap());
    assert_eq!(refused(shared.submit("red", INTERACTIVE)), Some((Quota::Jobs, 2)));
    // The caller's own quota is not stated, and another tenant's is another.
    shared.submit("blue", INTERACTIVE).unwrap();
    shared.read();
    assert_eq!(shared.work(Duration::from_secs(61)), "red");
    assert_eq!(shared.work(Duration::from_secs(59)), "blue");
    // Its second job was let in, and may be planned; what comes now is not.
    assert_eq!(shared.work(Duration::ZERO), "red");
    shared.submit("red", INTERACTIVE).unwrap();
    shared.submit("blue", INTERACTIVE).unwrap();
    shared.read();
    let outcome = shared.waiting[3].job().state();
    let is_refused = |quota| matches!(&outcome, JobState::Done(Err(failure)) if matches!(&**failure, PlanFailure::OverQuota(over) if over.quota == quota));
    assert!(is_refused(Quota::PlanningSecondsPerHour), "{outcome:?}");
    assert_eq!(shared.work(Duration::ZERO), "blue");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Between tenants that always have jobs in line, what they have had differs by no more than two jobs, by weight.
    #[test]
    fn what_tenants_get_is_by_their_weights(
        red in 1_u64..5,
        blue in 1_u64..5,
        took in proptest::collection::vec(1_u64..5000, 30),
    ) {
        let mut shared = Shared::new(&format!("[quotas.tenants]\nred = {{ weight = {red} }}\nblue = {{ weight = {blue} }}\n"));
        (0..30).for_each(|_| ["red", "blue"].map(|tenant| shared.submit(tenant, INTERACTIVE).unwrap()).into_iter().collect());
        shared.read();
        let mut had = BTreeMap::from([("red".to_owned(), 0_u64), ("blue".to_owned(), 0)]);
        for milliseconds in took {
            *had.get_mut(&shared.work(Duration::from_millis(milliseconds))).unwrap() += milliseconds;
            let apart = (had["red"] * blue).abs_diff(had["blue"] * red);
            prop_assert!(apart <= 2 * 5000 * red.max(blue), "{had:?}");
        }
    }
}
