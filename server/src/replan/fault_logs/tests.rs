use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use canopy_faults::{Directory, MeaningError, Remaining, Severity};
use canopy_planner::PlanKey;
use canopy_topology::{TopologyLimits, generate};

use super::super::bases::Base;
use super::super::network::Network;
use super::*;
use crate::store::{Gated, MemoryStore};

const KEY: PlanKey = PlanKey::from_bytes([9; 32]);
const BASE: Scope = Scope::Topology(KEY);

/// Where events of two boxes are entered; what means nothing there is refused.
fn entries(events: Vec<Event>) -> Vec<Result<(Scope, Event), MeaningError>> {
    let base = Arc::new(Base::new(generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap()));
    let network = Network::new(KEY, Arc::clone(&base), None, Audience::Everyone);
    let directory = Directory::new(base.topology());
    let entry = |event: Event| {
        let (scope, target) = network.entry(&directory, &event.target, event.remaining)?;
        Ok((scope, Event { target, ..event }))
    };
    events.into_iter().map(entry).collect()
}

fn report(fault_logs: &FaultLogs, events: Vec<Event>) -> Result<Vec<Result<Entered, ReportError>>, StoreError> {
    fault_logs.report(entries(events).into_iter().map(Result::unwrap).collect())
}

/// An event of a machine.
fn at(host: &str, event: Event) -> (Scope, Event) {
    (Scope::Host(host.to_owned()), event)
}

fn event(id: &str, target: &str, observed_ms: u64, cleared: bool) -> Event {
    Event {
        source: "test".to_owned(),
        event_id: id.to_owned(),
        target: target.parse().unwrap(),
        remaining: Remaining::GONE,
        severity: Severity::Fatal,
        observed_ms,
        expires_ms: None,
        cleared,
    }
}

#[test]
fn faults_survive_a_restart_and_replays_change_nothing() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let now: fn() -> u64 = || 1_000_000;
    let fault_logs = FaultLogs::open(Arc::clone(&store), Policy::STANDARD, now).unwrap();
    let events = || vec![event("1", "gpu:b0:3", 10, false), event("2", "gpu:b0g3", 11, false)];
    assert!(entries(vec![event("3", "gpu:b9g9", 12, false)]).remove(0).is_err());
    let entered = report(&fault_logs, events()).unwrap();
    assert!(matches!(entered[0], Ok(Entered { outcome: Outcome::New, changes: true })));
    assert!(matches!(entered[1], Ok(Entered { outcome: Outcome::Updated, changes: false })), "by its other name");
    let again = FaultLogs::open(store, Policy::STANDARD, now).unwrap();
    let losses = again.count(&BASE).unwrap().losses;
    assert_eq!(losses.iter().map(ToString::to_string).collect::<Vec<_>>(), ["gpu:b0g3"]);
    assert_eq!(again.tick().0, [BASE], "whoever begins is told of all");
    for entered in report(&again, events()).unwrap() {
        assert!(matches!(entered, Ok(Entered { outcome: Outcome::Repeated, changes: false })), "{entered:?}");
    }
    assert_eq!(again.tick().0, []);
}

#[test]
fn what_could_not_be_written_is_taken_back() {
    let disk: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let is_sound = Arc::new(AtomicBool::new(false));
    let sound = Arc::clone(&is_sound);
    let now: fn() -> u64 = || 1_000_000;
    let store = Gated::over(&disk, move |_| sound.load(Ordering::Relaxed));
    let fault_logs = FaultLogs::open(store, Policy::STANDARD, now).unwrap();
    let report = |id, target| report(&fault_logs, vec![event(id, target, 10, false), event(id, "gpu:b1g0", 10, false)]);
    let losses = || fault_logs.count(&BASE).map_or(0, |count| count.losses.len());
    let kept = || FaultLogs::open(Arc::clone(&disk), Policy::STANDARD, now).unwrap().count(&BASE);
    for _ in 0..2 {
        assert!(report("1", "gpu:b0g3").is_err(), "said again, it is still not on the disk");
        assert_eq!(losses(), 0);
    }
    is_sound.store(true, Ordering::Relaxed);
    let entered = report("1", "gpu:b0g4").unwrap();
    assert!(matches!(entered[0], Ok(Entered { outcome: Outcome::New, changes: true })));
    assert_eq!((kept().unwrap().losses.len(), losses()), (2, 2), "nothing of what was refused");

    is_sound.store(false, Ordering::Relaxed);
    assert!(fault_logs.clear(&[(BASE, None)], u64::MAX, |_| true).is_err());
    assert_eq!((kept().unwrap().losses.len(), losses()), (2, 2));
    is_sound.store(true, Ordering::Relaxed);
    fault_logs.write().unwrap();
    assert_eq!(kept().unwrap().losses.len(), 2);
    assert_eq!(fault_logs.clear(&[(BASE, None)], u64::MAX, |_| true).unwrap(), 2);
    assert_eq!(kept().unwrap().losses.len(), 0);
}

#[test]
fn a_machine_is_known_by_its_whole_and_its_short_name() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let fault_logs = FaultLogs::open(Arc::clone(&store), Policy::STANDARD, || 1_000_000).unwrap();
    assert!(!fault_logs.any_counts() && !fault_logs.has_hosts());
    let entered = fault_logs.report(vec![
        at("gpu1.a", event("1", "nic:gpu1.a:3", 10, false)),
        at("gpu1", event("2", "nic:gpu1:3", 11, false)),
        at("gpu10.a", event("3", "gpu:gpu10.a:0", 11, false)),
    ]);
    let changes: Vec<bool> = entered.unwrap().into_iter().map(|entered| entered.unwrap().changes).collect();
    assert_eq!(changes, [true, false, true], "the second says the same of the same card");
    let fault_logs = FaultLogs::open(store, Policy::STANDARD, || 1_000_000).unwrap();
    let known = |name| {
        let counts = fault_logs.of_host(name, &Audience::Everyone);
        counts.iter().flat_map(|count| count.losses.iter()).map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!((known("gpu1"), known("gpu1.a")), (vec!["nic:gpu1.a:3".to_owned()], vec!["nic:gpu1.a:3".to_owned()]));
    assert_eq!((known("gpu1.b"), known("gpu"), known("gpu10")), (vec![], vec![], vec!["gpu:gpu10.a:0".to_owned()]));
    assert!(fault_logs.any_counts() && fault_logs.has_hosts() && fault_logs.count(&BASE).is_none());
    let clear = ["nic:gpu1:3", "gpu:gpu10:0"].map(|target| {
        let target: Target = target.parse().unwrap();
        let host = if target.kind() == "nic" { "gpu1" } else { "gpu10" };
        (Scope::Host(host.to_owned()), Some(target))
    });
    assert_eq!(fault_logs.clear(&clear, u64::MAX, |_| true).unwrap(), 2);
    assert!(!fault_logs.any_counts());
}

static NOW: AtomicU64 = AtomicU64::new(1_000_000);

#[test]
fn what_is_cleared_counts_until_it_was_sound_for_a_while() {
    let fault_logs =
        FaultLogs::open(Arc::new(MemoryStore::default()), Policy::STANDARD, || NOW.load(Ordering::Relaxed)).unwrap();
    let report = |id, cleared| {
        let entered = report(&fault_logs, vec![event(id, "nic:b0g1", NOW.load(Ordering::Relaxed), cleared)]).unwrap();
        entered.into_iter().next().unwrap().unwrap().outcome
    };
    let active = || fault_logs.totals().0.map(|(_, count)| count).iter().sum::<usize>();
    assert_eq!(report("1", false), Outcome::New);
    assert!(fault_logs.totals().0.contains(&("nic", 1)));
    assert_eq!((fault_logs.tick().0.len(), active()), (1, 1));
    NOW.fetch_add(100, Ordering::Relaxed);
    assert_eq!(report("2", true), Outcome::ClearPending);
    let (changed, next) = fault_logs.tick();
    assert_eq!((changed.len(), active()), (0, 1));
    NOW.store(next.unwrap(), Ordering::Relaxed);
    assert_eq!((fault_logs.tick().0, active()), (vec![BASE], 0));
    assert_eq!(fault_logs.count(&BASE).unwrap().since_ms, NOW.load(Ordering::Relaxed));
    // Long enough ago that it is no flapping.
    NOW.fetch_add(3_600_000, Ordering::Relaxed);
    assert_eq!(report("3", false), Outcome::New);
    let shown = || {
        let mut shown = 0;
        fault_logs.for_each(|_, _| shown += 1);
        shown
    };
    let since = NOW.load(Ordering::Relaxed);
    assert_eq!(fault_logs.clear(&[(BASE, None)], since - 1, |_| true).unwrap(), 0, "it has been known only since");
    assert_eq!((shown(), fault_logs.clear(&[(BASE, None)], since, |_| true).unwrap()), (1, 1));
    assert_eq!((fault_logs.tick().0, shown()), (vec![BASE], 0));
}

/// What a tenant's reporters say counts for that tenant alone, also after a restart, and whichever name the machine has.
#[test]
fn what_a_tenants_reporters_say_is_heard_by_that_tenant_alone() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let fault_logs = FaultLogs::open(Arc::clone(&store), Policy::STANDARD, || 1_000_000).unwrap();
    let reports = [("", "gpu:gpu1.a:0"), ("red", "gpu:gpu1:1"), ("blue", "gpu:gpu1.a:2"), ("red", "gpu:gpu1.a:3")];
    let entered = reports.iter().enumerate().map(|(number, (tenant, fault))| {
        let (scope, event) = at("gpu1.a", event(&number.to_string(), fault, 10, false));
        (scope.by(tenant), event)
    });
    fault_logs.report(entered.collect()).unwrap().into_iter().for_each(|one| assert!(one.unwrap().changes));
    let again = FaultLogs::open(store, Policy::STANDARD, || 1_000_000).unwrap();
    for logs in [&fault_logs, &again] {
        assert!(logs.has_hosts());
        assert_eq!(logs.reporters(), ["", "blue", "red"]);
        let heard = |tenant: &str, name| {
            let counts = logs.of_host(name, &Audience::Tenant(tenant.to_owned()));
            let mut devices: Vec<String> =
                counts.iter().flat_map(|count| count.losses.iter()).map(ToString::to_string).collect();
            devices.iter_mut().for_each(|device| *device = device.rsplit(':').next().unwrap().to_owned());
            devices.sort();
            devices.concat()
        };
        for name in ["gpu1", "gpu1.a"] {
            for (tenant, devices) in [("", "0"), ("red", "013"), ("blue", "02"), ("green", "0")] {
                assert_eq!(heard(tenant, name), devices, "{tenant} {name}");
            }
        }
    }
    let all = |tenant: &str| [(Scope::Host("gpu1".to_owned()).by(tenant), None)];
    assert_eq!(again.clear(&all("red"), u64::MAX, |_| true).unwrap(), 2);
    assert_eq!(again.of_host("gpu1", &Audience::Everyone).iter().map(|count| count.losses.len()).sum::<usize>(), 2);
}
