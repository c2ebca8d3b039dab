//! What callers ask for by name, refusals, and quotas of all servers.

use std::time::Duration;

use canopy_database::{End, JobState, Jobs, OperationNow, QuotaUse};

use super::{Place, claim, end, enter, new, state, submit};

#[test]
fn operations_are_known_and_ended_at_every_server() {
    let Some(place) = Place::new() else { return };
    let [one, other] = ["one", "other"].map(|name| place.join(name));
    let (first, second) = (new(&one, 1), new(&other, 1));
    let (job, joined) = (enter(&one, &first), enter(&other, &second));
    assert_eq!((job.job, job.is_first, joined.is_first), (joined.job, true, false));
    // A connection that breaks has it asked for again.
    assert!(enter(&one, &first).is_first);
    let now = other.operation(first.operation).unwrap().unwrap();
    assert_eq!((now.state, now.facts.as_slice(), now.waiters), (JobState::Queued, b"facts".as_slice(), 2));
    assert!(now.is_first && now.ended_ms.is_none());
    let numbers = |listed: Vec<OperationNow>| listed.iter().map(|now| now.operation).collect::<Vec<_>>();
    assert_eq!(numbers(one.operations(10).unwrap()), [second.operation, first.operation]);
    // The second ends alone, at the server where somebody waits.
    assert!(one.cancel(second.operation, b"why").unwrap());
    assert_eq!(other.look(&[job.job]).unwrap()[0].cancelled, [second.operation]);
    assert_eq!(state(&one, job.job), JobState::Queued);
    assert!(other.cancel(first.operation, b"why").unwrap());
    let now = one.operation(second.operation).unwrap().unwrap();
    assert_eq!((now.state, now.outcome.as_deref()), (JobState::Cancelled, Some(b"why".as_slice())));
    assert!(now.is_cancelled && !now.is_first && now.ended_ms.is_some());
    // What ended before it had a job is known, too.
    let at_once = new(&one, 9);
    for _ in 0..2 {
        one.end_operation(&at_once, (JobState::Succeeded, b"hit")).unwrap();
    }
    let now = other.operation(at_once.operation).unwrap().unwrap();
    assert_eq!((now.state, now.outcome.as_deref()), (JobState::Succeeded, Some(b"hit".as_slice())));
    assert!(other.operation(at_once.operation + 1).unwrap().is_none());
}

#[test]
fn what_would_fail_again_is_not_tried_again_at_any_server() {
    let Some(place) = Place::new() else { return };
    let [one, other] = ["one", "other"].map(|name| place.join(name));
    let fail = |number, is_lasting| {
        submit(&one, new(&one, number));
        let how = End { is_lasting, ..end(JobState::Failed, b"disconnected") };
        one.end(claim(&one).unwrap().right, &how, None).unwrap();
    };
    fail(1, true);
    fail(2, false);
    assert_eq!(enter(&other, &new(&other, 1)).refusal.as_deref(), Some(b"disconnected".as_slice()));
    assert!(enter(&other, &new(&other, 2)).is_first);
    let late = other.submit(&new(&other, 1), Duration::ZERO).unwrap();
    assert!(late.is_first, "it is too old");
    let claimed = [(), ()].map(|()| claim(&other).unwrap().right);
    for right in claimed {
        other.end(right, &end(JobState::Succeeded, b""), None).unwrap();
    }
    assert!(enter(&one, &new(&one, 1)).refusal.is_some());
    let before = other.say_there().unwrap().forgettings;
    assert_eq!(one.forget_refusals().unwrap(), 1);
    one.forget_refusals().unwrap();
    assert!(other.say_there().unwrap().forgettings > before);
    assert!(enter(&one, &new(&one, 1)).is_first);
}

#[test]
fn quotas_are_counted_over_all_servers() {
    let Some(place) = Place::new() else { return };
    let [one, other] = ["one", "other"].map(|name| place.join(name));
    let used = |seconds, held| QuotaUse {
        account: "tred".to_owned(),
        quota: "jobs".to_owned(),
        more: Duration::from_secs(seconds),
        held,
    };
    let share = |jobs: &Jobs, seconds, held| jobs.share_quotas(&[used(seconds, held)]).unwrap().remove(0);
    let now = share(&one, 100, 2);
    assert_eq!((now.back_in.as_secs().div_ceil(10), now.held_elsewhere), (10, 0));
    let now = share(&other, 200, 1);
    assert_eq!((now.back_in.as_secs().div_ceil(10), now.held_elsewhere), (30, 2));
    let now = share(&one, 0, 0);
    assert_eq!((now.back_in.as_secs().div_ceil(10), now.held_elsewhere), (30, 1));
    // What a server held that is gone is free.
    place.silence("other");
    one.bury(3, b"").unwrap();
    assert_eq!(share(&one, 0, 0).held_elsewhere, 0);
}
