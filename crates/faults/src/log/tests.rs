//! What counts follows from what was said and when, never from how often or how late it was repeated.

use proptest::prelude::*;

use super::*;
use crate::event::Severity;

/// Seconds instead of minutes, and room for little.
const POLICY: Policy = Policy {
    debounce_ms: 10,
    transitions: 4,
    window_ms: 100,
    hold_down_ms: 200,
    memory_ms: 10_000,
    skew_ms: 1_000,
    elements_max: 6,
    sources_max: 3,
    ids_max: 4,
};

fn target(name: &str) -> Target {
    Target::Node { id: name.to_owned() }
}

fn half() -> Remaining {
    Remaining::new(1, 2).unwrap()
}

/// A fault of element `x` by source `s`, observed at a time that is its id, too.
fn down(observed_ms: u64) -> Event {
    Event {
        source: "s".to_owned(),
        event_id: format!("{observed_ms}"),
        target: target("x"),
        remaining: Remaining::GONE,
        severity: Severity::Fatal,
        observed_ms,
        expires_ms: None,
        cleared: false,
    }
}

fn slow(observed_ms: u64) -> Event {
    Event { remaining: half(), severity: Severity::Degraded, ..down(observed_ms) }
}

fn up(observed_ms: u64) -> Event {
    Event { cleared: true, ..down(observed_ms) }
}

fn by(source: &str, event: Event) -> Event {
    Event { source: source.to_owned(), ..event }
}

fn on(name: &str, event: Event) -> Event {
    Event { target: target(name), ..event }
}

/// What counts of `x`: `-` where it is well.
fn counts(log: &FaultLog) -> String {
    let x = log.active().into_iter().find(|loss| loss.target == target("x"));
    x.map_or_else(|| "-".to_owned(), |loss| loss.remaining.to_string())
}

/// Enters events at the times they were observed, ticking before each, and compares outcome and what counts.
#[track_caller]
fn check(log: &mut FaultLog, steps: &[(Event, Outcome, &str)]) {
    for (event, outcome, expected) in steps {
        log.tick(event.observed_ms);
        let found = log.report(event.clone(), event.observed_ms);
        assert_eq!((found, counts(log).as_str()), (Ok(*outcome), *expected), "at {}", event.observed_ms);
    }
}

#[test]
fn a_fault_counts_at_once_and_a_clear_after_a_while() {
    let mut log = FaultLog::new(POLICY);
    check(
        &mut log,
        &[
            (up(1), Outcome::NothingToClear, "-"),
            (slow(2), Outcome::New, "1/2"),
            (slow(3), Outcome::Updated, "1/2"),
            (up(20), Outcome::ClearPending, "1/2"),
        ],
    );
    assert_eq!((log.next_wake(), log.version()), (Some(30), 1));
    log.tick(29);
    assert_eq!(counts(&log), "1/2");
    log.tick(30);
    assert_eq!((counts(&log).as_str(), log.version(), log.next_wake()), ("-", 2, Some(10_020)));
    // Well for long: forgotten.
    assert_eq!(log.records().len(), 1);
    log.tick(10_020);
    assert_eq!((log.records().len(), log.next_wake(), log.version()), (0, None, 2));
    assert_eq!(log.take_unsaved(), [(target("x"), None)]);
    assert_eq!(log.take_unsaved(), []);
}

#[test]
fn new_trouble_ends_the_wait() {
    let mut log = FaultLog::new(POLICY);
    check(&mut log, &[(down(0), Outcome::New, "0/1"), (up(50), Outcome::ClearPending, "0/1")]);
    check(&mut log, &[(slow(55), Outcome::Updated, "0/1")]);
    log.tick(64);
    assert_eq!(counts(&log), "0/1");
    log.tick(65);
    assert_eq!(counts(&log), "1/2");
}

#[test]
fn the_worst_source_counts_and_each_clears_its_own() {
    let mut log = FaultLog::new(POLICY);
    check(
        &mut log,
        &[
            (by("a", slow(1)), Outcome::New, "1/2"),
            (by("b", down(2)), Outcome::Updated, "0/1"),
            (by("a", up(500)), Outcome::Updated, "0/1"),
            (by("a", slow(700)), Outcome::Updated, "0/1"),
            (by("b", up(900)), Outcome::Updated, "0/1"),
        ],
    );
    log.tick(910);
    assert_eq!(counts(&log), "1/2");
    let record = log.record(&target("x")).unwrap();
    assert_eq!((record.severity(), record.since_ms(), record.said()), (Some(Severity::Degraded), 910, half()));
}

#[test]
fn an_operator_clears_all_at_once_and_for_all_that_was_before() {
    let mut log = FaultLog::new(POLICY);
    assert_eq!(log.clear(&target("x"), 1), Outcome::NothingToClear);
    check(&mut log, &[(by("a", down(10)), Outcome::New, "0/1"), (by("b", down(11)), Outcome::Updated, "0/1")]);
    assert_eq!((log.clear(&target("x"), 20), counts(&log)), (Outcome::Cleared, "-".to_owned()));
    for late in [by("a", down(10)), by("b", down(19)), by("c", down(20))] {
        assert_eq!(log.report(late, 21), Ok(Outcome::Stale));
    }
    check(&mut log, &[(by("a", down(21)), Outcome::New, "0/1")]);
    assert_eq!(log.clear(&target("x"), 22), Outcome::Cleared);
}

/// What others have said stays, with its debounce and its hold-down.
#[test]
fn some_sources_are_cleared_without_the_others() {
    let mut log = FaultLog::new(POLICY);
    let of = |name: &'static str| move |source: &str| source == name;
    check(&mut log, &[(by("a", down(10)), Outcome::New, "0/1")]);
    assert_eq!((log.clear_of(&target("x"), of("b"), 11), counts(&log)), (Outcome::NothingToClear, "0/1".to_owned()));
    check(&mut log, &[(by("b", Event { remaining: half(), ..down(12) }), Outcome::Updated, "0/1")]);
    // The worse of the two is taken back: the other one's counts once the element was quiet.
    assert_eq!((log.clear_of(&target("x"), of("a"), 20), counts(&log)), (Outcome::Updated, "0/1".to_owned()));
    assert_eq!(log.report(by("a", down(19)), 21), Ok(Outcome::Stale));
    log.tick(30);
    assert_eq!(counts(&log), "1/2");
    assert_eq!((log.clear_of(&target("x"), of("b"), 50), counts(&log)), (Outcome::Cleared, "-".to_owned()));
    // What changed too often stays held when one of several takes its report back.
    for at in [100, 120, 140] {
        log.report(by("a", down(at)), at).unwrap();
        log.report(by("a", Event { cleared: true, ..down(at + 10) }), at + 10).unwrap();
    }
    assert!(log.record(&target("x")).unwrap().is_held());
    assert_eq!(log.clear_of(&target("x"), of("a"), 160), Outcome::Updated);
    assert_eq!(log.clear_of(&target("x"), |_| true, 161), Outcome::Cleared);
}

#[test]
fn faults_expire() {
    let mut log = FaultLog::new(POLICY);
    let brief = |observed_ms, expires| Event { expires_ms: Some(expires), ..down(observed_ms) };
    check(&mut log, &[(brief(1, 100), Outcome::New, "0/1"), (brief(90, 150), Outcome::Updated, "0/1")]);
    assert_eq!(log.next_wake(), Some(150));
    log.tick(155);
    assert_eq!((counts(&log).as_str(), log.next_wake()), ("0/1", Some(160)));
    log.tick(160);
    assert_eq!(counts(&log), "-");
    // What has expired when it comes says nothing.
    assert_eq!(log.report(brief(161, 162), 170), Ok(Outcome::NothingToClear));
}

#[test]
fn flapping_elements_are_held_at_their_worst() {
    let mut log = FaultLog::new(POLICY);
    check(
        &mut log,
        &[
            (down(0), Outcome::New, "0/1"),
            (up(20), Outcome::ClearPending, "0/1"),
            (slow(40), Outcome::New, "1/2"),
            (up(60), Outcome::Held, "0/1"),
            (slow(70), Outcome::Held, "0/1"),
            (up(80), Outcome::Held, "0/1"),
        ],
    );
    let record = log.record(&target("x")).unwrap();
    assert!(record.is_held());
    assert_eq!((record.flaps_suppressed(), record.better_at_ms(&POLICY)), (2, Some(280)));
    let version = log.version();
    log.tick(279);
    assert_eq!((counts(&log).as_str(), log.version()), ("0/1", version));
    log.tick(280);
    assert_eq!((counts(&log).as_str(), log.version()), ("-", version + 1));
    // And is let go as it is if that is how it stays.
    check(&mut log, &[(down(300), Outcome::New, "0/1"), (up(320), Outcome::ClearPending, "0/1")]);
    check(&mut log, &[(down(340), Outcome::New, "0/1"), (slow(345), Outcome::Held, "0/1")]);
    log.tick(545);
    assert_eq!(counts(&log), "1/2");
}

#[test]
fn what_came_before_is_known_by_id_and_time() {
    let mut log = FaultLog::new(POLICY);
    check(&mut log, &[(down(10), Outcome::New, "0/1"), (up(50), Outcome::ClearPending, "0/1")]);
    log.tick(60);
    assert_eq!(log.report(up(50), 61), Ok(Outcome::Repeated));
    assert_eq!(log.report(down(10), 61), Ok(Outcome::Repeated));
    assert_eq!(log.report(Event { event_id: "late".to_owned(), ..down(49) }, 61), Ok(Outcome::Stale));
    // Of one time the last to come counts, as long as ids are remembered.
    let same = |id: &str, event: Event| Event { event_id: id.to_owned(), ..event };
    assert_eq!(log.report(same("a", down(50)), 162), Ok(Outcome::New));
    assert_eq!(log.report(same("b", up(50)), 162), Ok(Outcome::ClearPending));
    assert_eq!(log.report(same("a", down(50)), 163), Ok(Outcome::Repeated));
    assert_eq!(log.report(same("c", up(50)), 163), Ok(Outcome::ClearPending));
    let error = log.report(same("d", down(50)), 164).unwrap_err();
    assert_eq!(
        error.to_string(),
        "source s reported node:x 4 times in one millisecond, the limit of ids_max; send only the last report, or the time of each"
    );
    assert_eq!(log.report(same("e", down(51)), 164), Ok(Outcome::Updated));
}

#[test]
fn limits_are_named_and_the_well_make_room() {
    let mut log = FaultLog::new(POLICY);
    for index in 0..POLICY.elements_max {
        assert_eq!(log.report(on(&index.to_string(), down(1)), 1), Ok(Outcome::New));
    }
    let error = log.report(on("more", down(2)), 2).unwrap_err();
    assert!(error.to_string().starts_with("6 elements of the topology are already faulty, the limit of elements_max"));
    assert_eq!(log.report(on("3", up(3)), 3), Ok(Outcome::ClearPending));
    log.tick(13);
    log.take_unsaved();
    assert_eq!(log.report(on("more", down(14)), 14), Ok(Outcome::New));
    let unsaved: Vec<(Target, bool)> =
        log.take_unsaved().into_iter().map(|(target, record)| (target, record.is_some())).collect();
    assert_eq!(unsaved, [(target("3"), false), (target("more"), true)]);

    for source in ["a", "b"] {
        assert_eq!(log.report(on("0", by(source, down(20))), 20), Ok(Outcome::Updated));
    }
    let error = log.report(on("0", by("c", down(21))), 21).unwrap_err();
    assert!(error.to_string().starts_with("3 sources already report node:0, the limit of sources_max"));
    assert_eq!(log.report(on("0", by("a", up(22))), 22), Ok(Outcome::Updated));
    assert_eq!(log.report(on("0", by("c", down(23))), 23), Ok(Outcome::Updated));
    assert_eq!(log.report(on("0", by("a", down(20))), 24), Ok(Outcome::Stale));

    let error = log.report(down(2_000), 999).unwrap_err();
    assert_eq!(error, FaultLogError::Future { ahead_ms: 1_001, limit: 1_000 });
    for (event, field) in [(by("", down(1)), "source"), (by("a\nb", down(1)), "source")] {
        assert!(log.report(event, 30).unwrap_err().to_string().starts_with(field));
    }
    let long = Event { event_id: "x".repeat(129), ..down(1) };
    assert!(log.report(long, 30).unwrap_err().to_string().contains("1 to 128 bytes"));
    assert!(log.report(on("a>b", down(1)), 30).unwrap_err().to_string().starts_with("target: id cannot be `a>b`"));
}

/// Who says that nothing is missing says nothing: it is forgotten like a clear, and makes room like one.
#[test]
fn a_fault_of_nothing_is_none() {
    let whole = |observed_ms| Event { remaining: Remaining::WHOLE, ..down(observed_ms) };
    let mut log = FaultLog::new(POLICY);
    check(&mut log, &[(whole(1), Outcome::NothingToClear, "-"), (down(2), Outcome::New, "0/1")]);
    check(&mut log, &[(whole(3), Outcome::ClearPending, "0/1")]);
    log.tick(13);
    assert_eq!((counts(&log).as_str(), log.next_wake()), ("-", Some(10_003)));
    for index in 0..2 * POLICY.elements_max {
        assert_eq!(log.report(on(&index.to_string(), whole(20)), 20), Ok(Outcome::NothingToClear));
    }
}

#[test]
fn policies_out_of_range_are_refused() {
    assert_eq!(Policy::STANDARD.checked(), Ok(Policy::STANDARD));
    let error = Policy { transitions: 1, ..POLICY }.checked().unwrap_err();
    assert_eq!(error.to_string(), "transitions is 1; use 2 to 64");
    assert!(Policy { elements_max: 0, ..POLICY }.checked().is_err());
}

/// Something that happens to a log: an event, a clear of all, or time alone.
#[derive(Clone, Debug)]
enum Happening {
    Event(Event),
    ClearAll(Target),
    Nothing,
}

/// What happens, each so many milliseconds after the one before.
fn happenings() -> impl Strategy<Value = Vec<(u64, Happening)>> {
    let names = || prop::sample::select(vec!["x", "y", "z"]);
    let fraction = prop::sample::select(vec![Remaining::GONE, half(), Remaining::WHOLE]);
    let event = (prop::sample::select(vec!["a", "b"]), names(), fraction, any::<bool>(), 0_u64..60, 0_u64..120)
        .prop_map(|(source, name, remaining, cleared, age, life)| {
            let expires_ms = (life > 60).then_some(life);
            let event = Event { remaining, cleared, expires_ms, ..down(age) };
            Happening::Event(by(source, on(name, event)))
        });
    let happening = prop_oneof![
        20 => event,
        1 => names().prop_map(|name| Happening::ClearAll(target(name))),
        4 => Just(Happening::Nothing),
    ];
    // Observed some time before it is reported; expiring some time after.
    prop::collection::vec((0_u64..80, happening), 0..40).prop_map(|steps| {
        let mut now = 1_000;
        let at = |(gap, mut happening): (u64, Happening)| {
            now += gap;
            if let Happening::Event(event) = &mut happening {
                event.observed_ms = now - event.observed_ms;
                event.expires_ms = event.expires_ms.map(|life| now + life);
                event.event_id = format!("{:?}", (event.observed_ms, event.expires_ms, event.remaining, event.cleared));
            }
            (now, happening)
        };
        steps.into_iter().map(at).collect()
    })
}

fn happen(log: &mut FaultLog, now_ms: u64, happening: &Happening) -> Option<Result<Outcome, FaultLogError>> {
    match happening {
        Happening::Event(event) => Some(log.report(event.clone(), now_ms)),
        Happening::ClearAll(target) => Some(Ok(log.clear(target, now_ms))),
        Happening::Nothing => {
            log.tick(now_ms);
            None
        }
    }
}

/// All that a log answers, but for what is waiting to be stored.
fn state(log: &FaultLog) -> (Vec<Loss>, Vec<Record>, Option<u64>) {
    (log.active(), log.records().cloned().collect(), log.next_wake())
}

proptest! {
    #[test]
    fn replaying_changes_nothing(steps in happenings(), from in 0_usize..40) {
        let mut log = FaultLog::new(POLICY);
        let mut now = 0;
        for (at, happening) in &steps {
            happen(&mut log, *at, happening);
            now = *at;
        }
        log.tick(now);
        let before = (state(&log), log.version());
        for (_, happening) in steps.iter().skip(from) {
            if let Happening::Event(event) = happening {
                let outcome = log.report(event.clone(), now);
                let is_known = matches!(outcome, Ok(Outcome::Repeated | Outcome::Stale) | Err(FaultLogError::TooManyIds { .. }));
                prop_assert!(is_known, "{event:?}: {outcome:?}");
            }
        }
        prop_assert_eq!((state(&log), log.version()), before);
    }

    /// Whether time passes in one leap or in every wake is no difference.
    #[test]
    fn late_ticks_end_the_same(steps in happenings()) {
        let (mut punctual, mut late) = (FaultLog::new(POLICY), FaultLog::new(POLICY));
        for (at, happening) in &steps {
            while let Some(wake) = punctual.next_wake().filter(|wake| wake <= at) {
                punctual.tick(wake);
            }
            let outcomes = (happen(&mut punctual, *at, happening), happen(&mut late, *at, happening));
            prop_assert_eq!(outcomes.0, outcomes.1);
        }
        let end = steps.last().map_or(0, |(at, _)| at + 5_000);
        punctual.tick(end);
        late.tick(end);
        prop_assert_eq!(state(&punctual), state(&late));
    }

    /// A log made again from what was stored after each step goes on as the one that never stopped.
    #[test]
    fn rebuilt_books_go_on(steps in happenings()) {
        let mut log = FaultLog::new(POLICY);
        let mut stored: BTreeMap<Target, String> = BTreeMap::new();
        for (at, happening) in &steps {
            let records = stored.values().map(|json| serde_json::from_str(json).unwrap());
            let mut rebuilt = FaultLog::rebuilt(POLICY, log.version(), records.collect::<Vec<Record>>());
            prop_assert_eq!(state(&rebuilt), state(&log));
            prop_assert_eq!(happen(&mut rebuilt, *at, happening), happen(&mut log, *at, happening));
            prop_assert_eq!(rebuilt.version(), log.version());
            for (target, record) in log.take_unsaved() {
                match record {
                    Some(record) => stored.insert(target, serde_json::to_string(record).unwrap()),
                    None => stored.remove(&target),
                };
            }
        }
    }

    /// A change that is taken back leaves nothing, unless another one came after it.
    #[test]
    fn changes_are_taken_back(steps in happenings(), last in 0_usize..6) {
        let mut log = FaultLog::new(POLICY);
        for (number, (at, happening)) in steps.iter().enumerate() {
            log.tick(*at);
            let (Happening::Event(Event { target, .. }) | Happening::ClearAll(target)) = happening else { continue };
            let (before, old) = (state(&log), log.record(target).cloned());
            happen(&mut log, *at, happening);
            let (after, new) = (state(&log), log.record(target).cloned());
            if number % 6 == last && new != old {
                log.take_back(target, old.clone(), old.as_ref());
                prop_assert_eq!(state(&log), after, "it is not what was to be taken back");
                log.take_back(target, old, new.as_ref());
                // Room that was made for it stays.
                prop_assert!(state(&log) == before || log.records().len() < before.1.len());
            }
        }
    }

    /// The version counts exactly the changes of what counts, and what counts is never better than what is said.
    #[test]
    fn versions_count_changes_and_memory_is_bounded(steps in happenings()) {
        let mut log = FaultLog::new(POLICY);
        for (at, happening) in &steps {
            let before = (log.active(), log.version());
            happen(&mut log, *at, happening);
            prop_assert_eq!(log.active() == before.0, log.version() == before.1);
            prop_assert!(log.records().len() <= POLICY.elements_max);
            for record in log.records() {
                prop_assert!(record.counts_as() <= record.said() && record.sources().len() <= POLICY.sources_max);
                prop_assert!(serde_json::to_string(record).unwrap().len() < 2_000);
            }
        }
    }

    /// Of one source's words the one observed last counts, in whatever order they come.
    #[test]
    fn order_does_not_matter(words in prop::collection::vec((any::<bool>(), any::<bool>()), 1..12), seed in any::<u64>()) {
        let events: Vec<Event> = (1_000..).step_by(7).zip(&words).map(|(at, (cleared, is_slow))| {
            let event = if *is_slow { slow(at) } else { down(at) };
            Event { cleared: *cleared, ..event }
        }).collect();
        let mut shuffled = events.clone();
        for index in (1..shuffled.len()).rev() {
            let other = usize::try_from(seed % 1_000_003).unwrap() * 31 % (index + 1);
            shuffled.swap(index, other);
        }
        let said = |events: Vec<Event>| {
            let mut log = FaultLog::new(POLICY);
            for event in events {
                log.report(event, 1_100).unwrap();
            }
            log.tick(5_000);
            (log.active(), log.record(&target("x")).unwrap().said())
        };
        prop_assert_eq!(said(events), said(shuffled));
    }

    /// From when an element is held until it was quiet for long enough, nothing changes, however it flaps.
    #[test]
    fn held_elements_change_once_in_a_hold_down(gaps in prop::collection::vec(1_u64..60, 4..60)) {
        let mut log = FaultLog::new(POLICY);
        let (mut now, mut held_since) = (0, None);
        for (index, gap) in gaps.iter().enumerate() {
            now += gap;
            log.tick(now);
            let event = if index % 2 == 0 { down(now) } else { up(now) };
            if log.report(event, now) == Ok(Outcome::Held) {
                let version = *held_since.get_or_insert(log.version());
                prop_assert_eq!(log.version(), version);
            }
        }
        // Four changes within 100 ms come at the latest after so many gaps of less than 60.
        prop_assert!(gaps.iter().sum::<u64>() > 100 || held_since.is_some());
        if let Some(version) = held_since {
            log.tick(now + POLICY.hold_down_ms);
            prop_assert!(log.version() - version <= 1);
        }
    }

    /// Flapping faster than clears count is one change, before an element is held as after.
    #[test]
    fn fast_flapping_is_one_change(gaps in prop::collection::vec(1_u64..10, 1..200)) {
        let mut log = FaultLog::new(POLICY);
        let mut now = 0;
        for (index, gap) in gaps.iter().enumerate() {
            now += gap;
            log.tick(now);
            log.report(if index % 2 == 0 { down(now) } else { up(now) }, now).unwrap();
            prop_assert_eq!(log.version(), 1);
        }
    }
}
