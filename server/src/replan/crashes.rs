//! Faults, leases and events over power cuts: one thread, a clock that is set, a disk that forgets what was not synced.
//!
//! A seed is several lives of a server on one folder. Each life ends with a power cut at a step of the disk by chance, and
//! the next one must know all that was acknowledged, and nothing that was refused or is over. At times the disk is full.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use canopy_faults::{Event as Report, Policy, Remaining, Severity};
use canopy_planner::PlanKey;

use super::event::Change;
use super::resynthesis::{catch_up, tell_expired};
use super::*;
use crate::random::{Random, seeds};
use crate::store::power::{Recording, ReplanStores, memory_folder};

/// Seeds where nothing is said.
const SEEDS: u64 = 100;
/// Lives of a server on one folder, and most changes in each.
const LIVES: usize = 4;
const CHANGES_MAX: usize = 15;
const SCOPE: Scope = Scope::Topology(PlanKey::from_bytes([9; 32]));
const ELEMENTS: [&str; 3] = ["gpu:b0g0", "gpu:b0g1", "link:b0g2-ib"];
/// Ids of requests: few, so that most come again.
const REQUESTS: usize = 6;
const START_MS: u64 = 1_000_000;

thread_local! {
    static NOW_MS: Cell<u64> = const { Cell::new(START_MS) };
}

fn now_ms() -> u64 {
    NOW_MS.get()
}

/// A server, as far as it knows of faults, leases and events.
struct Life {
    faults: FaultLogs,
    leases: Leases,
    events: EventLog,
    stores: ReplanStores,
}

impl Life {
    fn begin(folder: &Path, recording: Option<&Arc<Recording>>) -> Self {
        let stores = ReplanStores::open(folder, recording);
        let policy = Policy { debounce_ms: 50, hold_down_ms: 200, ..Policy::STANDARD };
        let leases = LeaseOptions { now_ms, ..LeaseOptions::STANDARD };
        let events = EventOptions { now_ms, count_max: 12, ..EventOptions::STANDARD };
        let life = Self {
            faults: FaultLogs::open(Arc::clone(&stores.faults), policy, now_ms).unwrap(),
            leases: Leases::open(Arc::clone(&stores.leases), leases).unwrap(),
            events: EventLog::open(Arc::clone(&stores.replans), events).unwrap(),
            stores,
        };
        catch_up(&life.leases, &life.events).unwrap();
        life
    }

    fn known(&self) -> Known {
        self.faults.tick();
        let leases = self.leases.select(|_| true).into_iter().map(|lease| {
            let plan = lease.state.items[0].plan.clone();
            (lease.terms.number, (lease.terms.job.clone(), lease.state.expire_ms, plan))
        });
        let losses = self.faults.count(&SCOPE).map(|count| count.losses.iter().map(ToString::to_string).collect());
        let events = self.events.all().into_iter().map(|event| {
            let is_end = matches!(event.event.change, Some(Change::Expired(_)));
            (event.sequence(), (event.event.lease.clone(), is_end))
        });
        Known {
            time_ms: now_ms(),
            leases: leases.collect(),
            losses: losses.unwrap_or_default(),
            events: events.collect(),
            last: *self.events.watch().borrow(),
        }
    }

    /// One change; it is acknowledged when this returns without an error.
    fn change(&self, chance: &mut Random) -> Result<(), Refused> {
        let held: Vec<u64> = self.leases.select(|_| true).iter().map(|lease| lease.terms.number).collect();
        let one = (!held.is_empty()).then(|| held[chance.below(held.len())]);
        match (chance.below(9), one) {
            (0 | 1, _) | (2..=4, None) => self.acquire(chance),
            (2, Some(number)) => Ok(self.leases.renew(number, Some(chance.below(300) as u64)).map(drop)?),
            (3, Some(number)) => Ok(self.leases.release(&[number]).map(drop)?),
            (4, Some(number)) => self.tell_of_a_plan(number, chance),
            (5, _) => {
                NOW_MS.set(now_ms() + chance.below(200) as u64);
                self.keep_up()
            }
            (6, _) => Ok(self.faults.clear(&[(SCOPE, None)], now_ms(), |_| true).map(drop)?),
            _ => self.report(chance),
        }
    }

    /// What a server does by itself.
    fn keep_up(&self) -> Result<(), Refused> {
        self.faults.write()?;
        self.leases.expire(|lease| tell_expired(&self.events, lease))?;
        while self.leases.write_behind()? {}
        Ok(())
    }

    fn acquire(&self, chance: &mut Random) -> Result<(), Refused> {
        let number = u8::try_from(chance.below(REQUESTS)).unwrap();
        // As the service does: a request that is repeated gets the lease that it has.
        if self.leases.of_request(&PlanKey::from_bytes([number; 32])).is_some() {
            return Ok(());
        }
        let terms = LeaseTerms {
            job: format!("job-{number}"),
            base: vec![9; 32],
            request_key: vec![number; 32],
            items: vec![Item { original: vec![1; 32].into(), links: vec![1].into(), ranks: 4, ..Item::default() }],
            ..LeaseTerms::default()
        };
        let ttl_ms = chance.below(500) as u64;
        let valid = ValidPlan { plan: "plans/first".to_owned(), ..ValidPlan::default() };
        let state = LeaseState { expire_ms: now_ms() + ttl_ms, ttl_ms, items: vec![valid], is_ending: false };
        Ok(self.leases.acquire(terms, state, |_| Ok(())).map(drop)?)
    }

    /// Another plan is valid, which is an event, and then the lease says so.
    fn tell_of_a_plan(&self, number: u64, chance: &mut Random) -> Result<(), Refused> {
        let plan = format!("plans/{}", chance.below(100));
        let superseded = event::Superseded { new_plan: plan.clone(), ..Default::default() };
        let lease = leases::name_of(number);
        let event = Event { lease, change: Some(Change::Superseded(superseded)), ..Event::default() };
        let kept = event_log::KeptEvent { event, avoided: vec![7; 32], ..Default::default() };
        let leases = self.leases.clone();
        let follow = move |kept: &event_log::KeptEvent| {
            let valid = ValidPlan { plan, event: kept.sequence(), avoided: vec![7; 32], ..ValidPlan::default() };
            leases.follow(number, 0, valid);
        };
        let draft = event_log::Draft { make: Box::new(move || Some(kept.clone())), follow: Box::new(follow) };
        Ok(self.events.append(draft).map(drop)?)
    }

    fn report(&self, chance: &mut Random) -> Result<(), Refused> {
        let report = |chance: &mut Random| Report {
            source: "monitor".to_owned(),
            event_id: chance.below(1 << 30).to_string(),
            target: ELEMENTS[chance.below(ELEMENTS.len())].parse().unwrap(),
            remaining: Remaining::GONE,
            severity: Severity::Fatal,
            observed_ms: now_ms(),
            expires_ms: None,
            cleared: chance.below(3) == 0,
        };
        let reports = (0..=chance.below(3)).map(|_| (SCOPE, report(chance)));
        let reports: Vec<_> = reports.collect();
        Ok(self.faults.report(reports).map(drop)?)
    }
}

/// Why something was not done: the disk was full.
type Refused = Box<dyn std::error::Error>;

/// What a server knows.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    time_ms: u64,
    /// By number: the job, when it ends, and the plan that is valid.
    leases: BTreeMap<u64, (String, u64, String)>,
    losses: BTreeSet<String>,
    /// By number: the lease, and whether it has ended.
    events: BTreeMap<u64, (String, bool)>,
    last: u64,
}

/// Checks what is known after a cut: `before` was acknowledged, and a change that led to `after` may have been on its way.
fn check(found: &Known, before: &Known, after: &Known) {
    for (number, lease) in &found.leases {
        let may_be = [before, after].map(|known| known.leases.get(number));
        assert!(may_be.iter().any(Option::is_some), "lease {number} is over, or was never there");
        // Parts of what changes at once may be there: none of them is anything else than before or after.
        let is_either = |part: fn(&(String, u64, String)) -> String| {
            may_be.iter().flatten().any(|known| part(known) == part(lease))
        };
        assert!(
            is_either(|lease| lease.0.clone())
                && is_either(|lease| lease.1.to_string())
                && is_either(|lease| lease.2.clone()),
            "lease {number} is {lease:?} and neither of {may_be:?}"
        );
    }
    for number in before.leases.keys().filter(|number| !found.leases.contains_key(number)) {
        assert!(!after.leases.contains_key(number), "lease {number} is lost");
    }
    let oldest = after.events.keys().next().copied().unwrap_or(after.last + 1);
    for (number, event) in before.events.range(oldest.min(before.last + 1)..) {
        assert_eq!(found.events.get(number), Some(event), "event {number}");
    }
    assert!((before.last..=after.last).contains(&found.last), "the last event is {}", found.last);
    for (number, event) in &found.events {
        let known = before.events.get(number).or_else(|| after.events.get(number));
        assert_eq!(known, Some(event), "event {number} was never there");
    }
    // Whoever watches learns of every end by time.
    let ended = after.events.values().filter(|(_, is_end)| *is_end).filter_map(|(lease, _)| number_of(lease));
    for number in ended.filter(|number| before.leases.contains_key(number)) {
        let is_told = found.events.values().any(|(lease, is_end)| *is_end && number_of(lease) == Some(number));
        assert!(is_told || found.leases.contains_key(&number), "no event says that {number} ended");
    }
}

/// Lives on a folder until all of them are over, on a disk that can sync or cannot.
fn live(seed: u64, is_synced: bool) {
    NOW_MS.set(START_MS);
    let mut chance = Random(seed);
    let mut folder = memory_folder();
    let mut known: Option<Known> = None;
    for life_number in 0..LIVES {
        let recording = Arc::new(Recording::below(folder.path(), is_synced));
        let life = Life::begin(folder.path(), Some(&recording));
        let mut moments = vec![(recording.count(), known.clone().unwrap_or_else(|| life.known()))];
        let mut unsure: Vec<std::ops::Range<usize>> = Vec::new();
        for _ in 0..chance.below(CHANGES_MAX) {
            let is_full = chance.below(4) == 0;
            recording.fill_after(is_full.then(|| chance.below(6)));
            let (before, begun) = (life.known(), recording.count());
            let outcome = life.change(&mut chance);
            recording.fill_after(None);
            let after = life.known();
            assert!(outcome.is_ok() || is_full, "seed {seed}: {outcome:?}");
            if outcome.is_err() && now_ms() == before.time_ms {
                assert_eq!(
                    (&after.leases, &after.events),
                    (&before.leases, &before.events),
                    "seed {seed}: {outcome:?}"
                );
            }
            if outcome.is_ok() {
                moments.push((recording.count(), after));
            }
            // With room again, what is left of it is done soon.
            life.stores.settle();
            life.keep_up().unwrap();
            if outcome.is_err() {
                // Until then what was refused may be there after all: its caller does not know, and asks again.
                unsure.push(begun + 1..recording.count());
            }
            moments.push((recording.count(), life.known()));
        }
        drop(life);
        let left = memory_folder();
        let cut = loop {
            let cut = chance.below(recording.count() + 1);
            if !unsure.iter().any(|steps| steps.contains(&cut)) {
                break cut;
            }
        };
        recording.leave(cut, &mut chance, left.path());
        let acknowledged = moments.iter().rposition(|(steps, _)| *steps <= cut).unwrap_or_default();
        let before = &moments[acknowledged].1;
        let after = moments.get(acknowledged + 1).map_or(before, |(_, known)| known);
        let found = [before, after].map(|moment| {
            NOW_MS.set(moment.time_ms);
            Life::begin(left.path(), None).known()
        });
        let is_told = format!("seed {seed}, life {life_number}, step {cut} of {}", recording.count());
        assert!(
            found[0].losses == before.losses || found[1].losses == after.losses,
            "{is_told}: {found:?} {before:?} {after:?}"
        );
        eprintln!("{is_told}\nfound {:?}\nbefore {before:?}\nafter {after:?}", found[0]);
        check(&found[0], before, after);
        known = Some(found[1].clone());
        folder = left;
    }
}

#[test]
fn what_was_acknowledged_of_faults_leases_and_events_survives_power_cuts() {
    seeds(SEEDS).for_each(|seed| live(seed, true));
}

/// The simulation finds a server that acknowledges what is not synced.
#[test]
fn an_acknowledgement_before_the_sync_is_found() {
    assert!((1..1000).any(|seed| std::panic::catch_unwind(|| live(seed, false)).is_err()));
}
