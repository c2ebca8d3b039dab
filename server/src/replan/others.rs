//! Two servers on one database: what they do at the same time is all done, once, and both know the same of it.

use std::sync::Arc;
use std::thread;

use canopy_faults::{Event as Report, Policy, Remaining, Severity};
use canopy_planner::PlanKey;

use super::event::{Change, Superseded};
use super::event_log::{Draft, KeptEvent};
use super::leases::{Item, LeaseState, LeaseTerms, ValidPlan, name_of};
use super::resynthesis::{apply, catch_up, tell_expired};
use super::*;
use crate::failure::LeaseError;
use crate::store::Space;
use crate::store::shared::tests::{Server, two};

const SCOPE: Scope = Scope::Topology(PlanKey::from_bytes([9; 32]));

/// What one of the servers knows.
struct Parts {
    faults: FaultLogs,
    leases: Leases,
    events: EventLog,
}

impl Parts {
    fn of(server: &Server) -> Self {
        let faults = FaultLogs::open(server.space(Space::Faults), Policy::STANDARD, || 1_000_000).unwrap();
        let options = LeaseOptions { now_ms: || 1_000_000, ..LeaseOptions::STANDARD };
        let leases = Leases::open(server.space(Space::Leases), options).unwrap();
        let events = EventLog::open(server.space(Space::Replans), EventOptions::STANDARD).unwrap();
        let told = leases.clone();
        events.when_heard(move |event| apply(&told, event));
        catch_up(&leases, &events).unwrap();
        Self { faults, leases, events }
    }

    /// Learns all that has changed up to now.
    fn follow(&self, server: &Server) {
        server.hear_of_all();
        self.leases.follow_others().unwrap();
        self.faults.follow().unwrap();
        self.events.follow().unwrap();
    }

    /// A lease that lasts so long, by the request of this number.
    fn acquire(&self, request: u8, ttl_ms: u64) -> Result<Lease, LeaseError> {
        let terms = LeaseTerms {
            job: format!("job-{request}"),
            base: vec![9; 32],
            request_key: vec![request; 32],
            items: vec![Item { original: vec![1; 32].into(), links: vec![1].into(), ranks: 4, ..Item::default() }],
            ..LeaseTerms::default()
        };
        let items = vec![ValidPlan { plan: "plans/first".to_owned(), ..ValidPlan::default() }];
        let state = LeaseState { expire_ms: 1_000_000 + ttl_ms, ttl_ms, items, is_ending: false };
        self.leases.acquire(terms, state, |_| Ok(()))
    }

    /// Another plan is valid for a lease.
    fn tell(&self, lease: u64, plan: &str) {
        let change = Some(Change::Superseded(Superseded { new_plan: plan.to_owned(), ..Default::default() }));
        let event = Event { lease: name_of(lease), change, ..Event::default() };
        let kept = KeptEvent { event, avoided: vec![7; 32], ..KeptEvent::default() };
        let leases = self.leases.clone();
        let follow = Box::new(move |kept: &KeptEvent| apply(&leases, kept));
        self.events.append(Draft { make: Box::new(move || Some(kept.clone())), follow }).unwrap();
    }
}

fn report(source: &str, number: u64, target: &str) -> (Scope, Report) {
    let report = Report {
        source: source.to_owned(),
        event_id: number.to_string(),
        target: target.parse().unwrap(),
        remaining: Remaining::GONE,
        severity: Severity::Fatal,
        observed_ms: 1000 + number,
        expires_ms: None,
        cleared: false,
    };
    (SCOPE, report)
}

#[test]
fn faults_that_both_are_told_of_at_once_are_all_known_to_both() {
    let Some((servers, _folders)) = two() else { return };
    let parts = servers.each_ref().map(Parts::of);
    thread::scope(|scope| {
        // Two callers at each, most of whose reports are of the same elements.
        for (caller, part) in parts.iter().chain(&parts).enumerate() {
            scope.spawn(move || {
                for number in 0..20 {
                    let source = format!("monitor-{caller}");
                    let targets = [format!("gpu:b0g{}", number % 4), format!("gpu:b{}g{caller}", 1 + number)];
                    let reports = targets.iter().map(|target| report(&source, number, target)).collect();
                    assert!(part.faults.report(reports).unwrap().iter().all(Result::is_ok));
                }
            });
        }
    });
    for (part, server) in parts.iter().zip(&servers) {
        part.follow(server);
    }
    let [ones, others] = parts.each_ref().map(|part| part.faults.snapshot());
    assert_eq!(ones, others);
    assert_eq!(ones.len(), 4 + 4 * 20);
    let mut sources = 0;
    parts[0].faults.for_each(|_, record| sources += record.sources().count());
    assert_eq!(sources, 4 * 4 + 4 * 20, "every source of every element");
    // What one clears is whole for the other one.
    let all = [(SCOPE, None)];
    assert_eq!(parts[1].faults.clear(&all, u64::MAX, |_| true).unwrap(), 84);
    parts[0].follow(&servers[0]);
    assert_eq!(parts[0].faults.count(&SCOPE).map(|count| count.losses.len()), Some(0));
}

#[test]
fn leases_that_both_give_at_once_have_numbers_of_their_own() {
    let Some((servers, _folders)) = two() else { return };
    let parts = servers.each_ref().map(Parts::of);
    thread::scope(|scope| {
        for (request, part) in (0_u8..).step_by(50).zip(&parts) {
            scope.spawn(move || (0..20).for_each(|number| drop(part.acquire(request + number, 1000).unwrap())));
        }
    });
    for (part, server) in parts.iter().zip(&servers) {
        part.follow(server);
    }
    let numbers = parts.each_ref().map(|part| part.leases.select(|_| true).into_iter().map(|lease| lease.terms.number));
    let [ones, others] = numbers.map(Iterator::collect::<Vec<_>>);
    assert_eq!((ones.len(), &ones), (40, &others));
    // A request that is repeated at the other server has the lease that it has.
    let again = parts[1].acquire(3, 1000).unwrap();
    assert_eq!(parts[0].leases.get(again.terms.number).unwrap().terms, again.terms);
    // It need not have heard of it.
    let [one, other] = [&parts[0], &parts[1]].map(|part| part.acquire(200, 1000).unwrap().terms.number);
    assert_eq!(one, other);
    // What one lets go of, the other one cannot renew; what it renews, the other one does not let go of as expired.
    assert_eq!(parts[0].leases.release(&[one]).unwrap(), 1);
    assert!(parts[1].leases.renew(one, None).unwrap().is_none());
}

#[test]
fn a_lease_is_renewed_at_one_server_or_expires_at_the_other() {
    let Some((servers, _folders)) = two() else { return };
    let [ones, others] = servers.each_ref().map(Parts::of);
    let leases: Vec<u64> = (0..20).map(|request| ones.acquire(request, 0).unwrap().terms.number).collect();
    others.follow(&servers[1]);
    let renewed = thread::scope(|scope| {
        let renewing = scope.spawn(|| {
            let renewed = leases.iter().rev().filter(|lease| ones.leases.renew(**lease, Some(5000)).unwrap().is_some());
            renewed.copied().collect::<Vec<_>>()
        });
        others.leases.expire(|lease| tell_expired(&others.events, lease)).unwrap();
        renewing.join().unwrap()
    });
    ones.follow(&servers[0]);
    others.follow(&servers[1]);
    let held = [&ones, &others].map(|part| part.leases.select(|_| true).len());
    assert_eq!(held, [renewed.len(); 2]);
    let told: Vec<u64> = ones.events.all().iter().filter_map(|kept| number_of(&kept.event.lease)).collect();
    assert_eq!(told.len() + renewed.len(), leases.len(), "each has expired, or was renewed");
    assert!(told.iter().all(|lease| !renewed.contains(lease)));
}

#[test]
fn events_of_both_are_in_one_order_and_a_watch_goes_on_at_the_other() {
    let Some((servers, _folders)) = two() else { return };
    let parts = servers.each_ref().map(Parts::of);
    let lease = parts[0].acquire(1, 1_000_000).unwrap().terms.number;
    parts[1].follow(&servers[1]);
    thread::scope(|scope| {
        for (name, part) in ["a", "b"].iter().zip(&parts) {
            for writer in 0..2 {
                scope.spawn(move || {
                    (0..15).for_each(|number| part.tell(lease, &format!("plans/{name}{writer}-{number}")))
                });
            }
        }
    });
    for (part, server) in parts.iter().zip(&servers) {
        part.follow(server);
    }
    let [ones, others] = parts.each_ref().map(|part| part.events.all());
    assert_eq!(ones, others);
    let numbers: Vec<u64> = ones.iter().map(|event| event.sequence()).collect();
    assert_eq!(numbers, (1..=60).collect::<Vec<_>>());
    let told = |event: &Arc<KeptEvent>| match &event.event.change {
        Some(Change::Superseded(superseded)) => superseded.new_plan.clone(),
        _ => panic!("{event:?}"),
    };
    let plans: std::collections::BTreeSet<String> = ones.iter().map(told).collect();
    assert_eq!(plans.len(), 60, "each once");
    let token = ones[20].event.resume_token.clone();
    assert_eq!(parts.each_ref().map(|part| part.events.position(&token)), [Ok(21), Ok(21)]);
    // The last one is what the lease says, at both, before and after it is written down.
    let says = || parts.each_ref().map(|part| part.leases.get(lease).unwrap().state.items[0].plan.clone());
    assert_eq!(says(), [told(&ones[59]), told(&ones[59])]);
    for part in &parts {
        while part.leases.write_behind().unwrap() {}
    }
    assert_eq!(says(), [told(&ones[59]), told(&ones[59])]);
    let successor = Parts::of(&servers[0]);
    assert_eq!(successor.leases.get(lease).unwrap().state.items[0].plan, told(&ones[59]));
}
