//! Jobs of several servers on one database.
#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

mod crashes;
mod operations;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use canopy_database::{
    Change, Claimed, Database, DatabaseError, End, JobState, Jobs, Key, NewJob, Options, SharedRecords, SharedSpace,
    Submitted, Wanted, Who, Write,
};
use canopy_prerequisites::{Commits, Postgres};

const ANY: Wanted = Wanted { memory: u64::MAX, memory_max: u64::MAX, is_beside: false, own_only: false };
/// How long refusals are remembered.
const LIFETIME: Duration = Duration::from_secs(60);

/// A database for tests, and what tells it from others at its server.
struct Place {
    postgres: &'static Postgres,
    address: String,
}

impl Place {
    fn new() -> Option<Self> {
        let postgres = Postgres::shared()?;
        Some(Self { postgres, address: postgres.database() })
    }

    fn database(&self) -> Database {
        open(&self.address)
    }

    fn join(&self, name: &str) -> Jobs {
        self.join_as(name, "class")
    }

    fn join_as(&self, name: &str, class: &str) -> Jobs {
        Jobs::join(&self.database(), who(name, class)).unwrap()
    }

    fn query(&self, statement: &str) -> String {
        self.postgres.query(self.address.split(['/', '?']).nth(3).unwrap(), statement)
    }

    /// As if a server had been silent for long.
    fn silence(&self, name: &str) {
        self.query(&format!("update canopy.servers set until = now() - interval '1 s' where name = '{name}'"));
    }
}

fn who(name: &str, class: &str) -> Who {
    Who { name: name.to_owned(), class: class.to_owned(), role: "all".to_owned() }
}

fn open(address: &str) -> Database {
    let database = Database::new(&Options { address: address.parse().unwrap(), connections: 4 }).unwrap();
    database.migrate().unwrap();
    database
}

fn key(number: u32) -> Key {
    let mut key = [0; 32];
    key[..4].copy_from_slice(&number.to_le_bytes());
    key
}

/// A job of somebody who waits.
fn new(jobs: &Jobs, number: u32) -> NewJob {
    NewJob {
        operation: operation(jobs),
        facts: b"facts".to_vec(),
        key: key(number),
        priority: 1,
        memory: 1000,
        weight: 1,
        entry: number.to_le_bytes().to_vec(),
        ..NewJob::default()
    }
}

/// The number of an operation; a block of them for each would do no harm.
fn operation(jobs: &Jobs) -> i64 {
    i64::try_from(jobs.numbers().unwrap().start).unwrap()
}

fn enter(jobs: &Jobs, job: &NewJob) -> Submitted {
    jobs.submit(job, LIFETIME).unwrap()
}

fn submit(jobs: &Jobs, job: NewJob) -> i64 {
    let submitted = enter(jobs, &job);
    assert!(submitted.is_first, "{job:?}");
    submitted.job
}

fn claim(jobs: &Jobs) -> Option<Claimed> {
    jobs.claim(ANY).unwrap()
}

/// An end after the time that is expected.
fn end(state: JobState, outcome: &[u8]) -> End<'_> {
    End { state, outcome, is_lasting: false, took: Duration::from_secs(1) }
}

fn state(jobs: &Jobs, job: i64) -> JobState {
    jobs.look(&[job]).unwrap()[0].state
}

#[test]
fn each_job_is_done_once_however_many_servers_take_them() {
    const COUNT: u32 = 120;
    let Some(place) = Place::new() else { return };
    let servers = ["a", "b", "c"].map(|name| place.join(name));
    for number in 0..COUNT {
        submit(&servers[number as usize % 3], new(&servers[0], number));
    }
    let done: Vec<Claimed> = thread::scope(|scope| {
        let workers = servers.iter().chain(&servers).map(|server| {
            scope.spawn(|| {
                let mut done = Vec::new();
                while let Some(claimed) = claim(server) {
                    server.end(claimed.right, &end(JobState::Succeeded, b"done"), None).unwrap();
                    done.push(claimed);
                }
                done
            })
        });
        let workers: Vec<_> = workers.collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let mut entries: Vec<u32> =
        done.iter().map(|claimed| u32::from_le_bytes(claimed.entry.clone().try_into().unwrap())).collect();
    entries.sort_unstable();
    assert_eq!(entries, (0..COUNT).collect::<Vec<_>>());
    assert!(done.iter().all(|claimed| claimed.starts == 1
        && claimed.key == key(u32::from_le_bytes(claimed.entry.clone().try_into().unwrap()))));
    for claimed in done {
        let now = servers[0].look(&[claimed.right.job]).unwrap().remove(0);
        assert_eq!((now.state, now.outcome.as_deref()), (JobState::Succeeded, Some(b"done".as_slice())));
    }
    assert_eq!(place.query("select sum(length(entry)) from canopy.jobs"), "0", "requests take room while they wait");
}

#[test]
fn who_asks_for_the_same_waits_for_the_same_job() {
    let Some(place) = Place::new() else { return };
    let servers = ["a", "b", "c"].map(|name| place.join(name));
    let submitted: Vec<Submitted> = thread::scope(|scope| {
        let asking = servers.iter().map(|server| scope.spawn(|| enter(server, &new(server, 7))));
        let asking: Vec<_> = asking.collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(submitted.iter().filter(|one| one.is_first).count(), 1);
    assert!(submitted.iter().all(|one| one.job == submitted[0].job));
    let claimed = claim(&servers[1]).unwrap();
    assert!(claim(&servers[2]).is_none());
    servers[1].report(claimed.right.job, b"half").unwrap();
    assert_eq!(servers[0].look(&[claimed.right.job]).unwrap()[0].report.as_deref(), Some(b"half".as_slice()));
    servers[1].end(claimed.right, &end(JobState::Failed, b"why"), None).unwrap();
    // The next one is another job.
    let again = submit(&servers[0], new(&servers[0], 7));
    assert_ne!(again, claimed.right.job);
    // Another class makes other plans of it.
    let others = place.join_as("d", "another class");
    assert!(claim(&others).is_none());
    assert!(enter(&others, &new(&others, 7)).is_first);
}

#[test]
fn what_comes_first_is_priority_then_whose_turn_it_is_and_no_search_is_made_twice() {
    let Some(place) = Place::new() else { return };
    let server = place.join("a");
    let of = |number, priority, tenant: &str, weight| {
        let job = NewJob { priority, tenant: tenant.to_owned(), weight, ..new(&server, number) };
        submit(&server, job)
    };
    let many: Vec<i64> = (0..4).map(|number| of(number, 1, "many", 1)).collect();
    let few = of(10, 1, "few", 2);
    let few_more = of(11, 1, "few", 2);
    let urgent = of(20, 2, "many", 1);
    let order: Vec<i64> = (0..6).map(|_| claim(&server).unwrap().right.job).collect();
    // After the urgent one, who has less running for its weight.
    assert_eq!(order, [urgent, few, few_more, many[0], many[1], many[2]]);
    let small = submit(&server, NewJob { memory: 1, tenant: "many".to_owned(), ..new(&server, 12) });
    assert!(server.claim(Wanted { memory: 999, ..ANY }).unwrap().is_none(), "the first takes 1000 bytes");
    let beside = Wanted { is_beside: true, ..ANY };
    assert!(server.claim(beside).unwrap().is_none(), "none is a repair, or made beside searches");
    let [aside, repair] = [(1, true), (3, false)].map(|(priority, is_beside)| {
        submit(&server, NewJob { priority, is_beside, ..new(&server, 40 + u32::from(is_beside)) })
    });
    assert_eq!([(), ()].map(|()| server.claim(beside).unwrap().unwrap().right.job), [aside, repair]);
    let little = Wanted { memory: 999, memory_max: 999, ..ANY };
    assert_eq!(server.claim(little).unwrap().unwrap().right.job, small, "others take the large one");
    assert_eq!(claim(&server).unwrap().right.job, many[3]);
    let search = |number| submit(&server, NewJob { search: Some([5; 32]), ..new(&server, number) });
    let (first, second, other) = (search(30), search(31), submit(&server, new(&server, 32)));
    let [claimed, next] = [(), ()].map(|()| claim(&server).unwrap());
    assert_eq!((claimed.right.job, next.right.job), (first, other), "the other one of the same search waits");
    assert!(claim(&server).is_none());
    // It turned out to be known.
    server.land(claimed.right).unwrap();
    assert_eq!(claim(&server).unwrap().right.job, second);
    server.end(claimed.right, &end(JobState::Succeeded, b""), None).unwrap();
}

#[test]
fn tenants_take_turns_by_the_time_that_they_had() {
    let Some(place) = Place::new() else { return };
    let server = place.join("a");
    let of = |number, tenant: &str| {
        submit(&server, NewJob { tenant: tenant.to_owned(), ..new(&server, number) });
    };
    (0..6).for_each(|number| of(number, "many"));
    // One worker, and all of `slow` take four times as long.
    (10..13).for_each(|number| of(number, "slow"));
    let mut order = String::new();
    while let Some(claimed) = claim(&server) {
        let is_slow = u32::from_le_bytes(claimed.entry.clone().try_into().unwrap()) >= 10;
        order.push(if is_slow { 's' } else { 'm' });
        let took = Duration::from_secs(if is_slow { 4 } else { 1 });
        server.end(claimed.right, &End { took, ..end(JobState::Succeeded, b"") }, None).unwrap();
    }
    assert_eq!(order, "msmmmmsms");
}

#[test]
fn a_server_that_was_silent_ends_nothing_and_others_do_it_again() {
    let Some(place) = Place::new() else { return };
    let [late, other] = ["late", "other"].map(|name| place.join(name));
    let records = SharedRecords::open(&place.database(), &[(1, true)]).unwrap().space(1);
    let job = submit(&other, new(&other, 1));
    let lates = claim(&late).unwrap();
    assert_eq!(other.bury(3, b"too often").unwrap(), 0, "nobody is silent");
    place.silence("late");
    assert_eq!(other.bury(3, b"too often").unwrap(), 1);
    assert_eq!(state(&other, job), JobState::Queued);
    let plan = |text: &[u8]| {
        let write = Write::Put { record: text.to_vec(), summary: Vec::new() };
        Some((&records, vec![Change { key: [1; 32], write }]))
    };
    let refused = late.end(lates.right, &end(JobState::Succeeded, b""), plan(b"late"));
    assert!(matches!(refused, Err(DatabaseError::Fenced)), "{refused:?}");
    let others = claim(&other).unwrap();
    assert_eq!((others.right.job, others.starts), (job, 2));
    let refused = late.end(lates.right, &end(JobState::Failed, b""), plan(b"late"));
    assert!(matches!(refused, Err(DatabaseError::Fenced)), "{refused:?}");
    assert!(late.say_there().unwrap().was_given_up);
    assert_eq!(records.record(&[1; 32]).unwrap(), None);
    other.end(others.right, &end(JobState::Succeeded, b""), plan(b"right")).unwrap();
    assert_eq!(records.record(&[1; 32]).unwrap().as_deref(), Some(b"right".as_slice()));
    assert_eq!(state(&other, job), JobState::Succeeded);
}

#[test]
fn what_ends_servers_again_and_again_fails() {
    let Some(place) = Place::new() else { return };
    let other = place.join("other");
    let job = submit(&other, NewJob { is_detached: true, ..new(&other, 1) });
    for start in 1..=3 {
        let name = format!("victim{start}");
        assert_eq!(claim(&place.join(&name)).unwrap().starts, start);
        place.silence(&name);
        other.bury(3, b"too often").unwrap();
    }
    let now = other.look(&[job]).unwrap().remove(0);
    assert_eq!((now.state, now.outcome.as_deref()), (JobState::Failed, Some(b"too often".as_slice())));
    // What a server gives back, it has not begun in earnest.
    let job = submit(&other, new(&other, 2));
    for _ in 0..5 {
        other.give_back(claim(&other).unwrap().right).unwrap();
    }
    assert_eq!((claim(&other).unwrap().starts, state(&other, job)), (1, JobState::Running));
}

#[test]
fn a_plan_is_stored_with_the_end_of_its_job_or_neither() {
    let Some(place) = Place::new() else { return };
    let server = place.join("a");
    let [one, other] = [(), ()].map(|()| SharedRecords::open(&place.database(), &[(1, false)]).unwrap().space(1));
    let job = submit(&server, new(&server, 1));
    let claimed = claim(&server).unwrap();
    let put = |text: &[u8]| {
        let write = Write::Put { record: text.to_vec(), summary: b"summary".to_vec() };
        vec![Change { key: [1; 32], write }]
    };
    other.change(put(b"other")).unwrap();
    let large = vec![7; 100_000];
    let overtaken = server.end(claimed.right, &end(JobState::Succeeded, b""), Some((&one, put(&large))));
    assert!(matches!(overtaken, Err(DatabaseError::Overtaken)), "{overtaken:?}");
    assert_eq!(state(&server, job), JobState::Running);
    assert!(server.say_there().unwrap().unwanted.is_empty(), "it makes it still");
    one.catch_up();
    server.end(claimed.right, &end(JobState::Succeeded, b""), Some((&one, put(&large)))).unwrap();
    assert_eq!(state(&server, job), JobState::Succeeded);
    assert_eq!(one.record(&[1; 32]).unwrap(), Some(large));
}

#[test]
fn a_job_that_nobody_waits_for_is_cancelled_and_one_that_somebody_joins_is_not() {
    let Some(place) = Place::new() else { return };
    let [one, other] = ["one", "other"].map(|name| place.join(name));
    let alone = submit(&one, NewJob { is_detached: true, ..new(&one, 1) });
    let operation = one.operations(1).unwrap()[0].operation;
    let both = submit(&one, new(&one, 2));
    enter(&other, &new(&other, 2));
    [alone, both].iter().for_each(|job| one.leave(*job, true).unwrap());
    assert_eq!([alone, both].map(|job| state(&one, job)), [JobState::Queued; 2]);
    other.leave(both, true).unwrap();
    assert_eq!(state(&one, both), JobState::Cancelled);
    let claimed = claim(&other).unwrap();
    assert_eq!(claimed.right.job, alone);
    assert!(one.cancel(operation, b"by an operator").unwrap() && !one.cancel(operation, b"").unwrap());
    assert_eq!(other.say_there().unwrap().unwanted, [alone]);
    let running = submit(&one, new(&one, 3));
    assert_eq!(claim(&other).unwrap().right.job, running);
    one.leave(running, true).unwrap();
    assert_eq!(other.say_there().unwrap().unwanted, [alone, running]);
    // Whoever joins while the last one leaves waits for a job that is done.
    for round in 0..150 {
        let job = submit(&one, new(&one, 100 + round));
        let joined = thread::scope(|scope| {
            let leaving = scope.spawn(|| one.leave(job, true).unwrap());
            let joined = enter(&other, &new(&other, 100 + round)).job;
            leaving.join().unwrap();
            joined
        });
        assert_eq!(state(&other, joined), JobState::Queued, "round {round}");
    }
}

#[test]
fn a_server_that_was_taken_for_gone_takes_part_again() {
    let Some(place) = Place::new() else { return };
    let [late, other] = ["late", "other"].map(|name| place.join(name));
    let job = submit(&late, new(&late, 1));
    let claimed = claim(&late).unwrap();
    place.silence("late");
    other.bury(3, b"").unwrap();
    // Until it has heard of that it gets nothing, and no one can take it to be there.
    assert!(claim(&late).is_none());
    assert!(enter(&late, &new(&late, 2)).is_first);
    assert!(late.say_there().unwrap().was_given_up);
    late.join_again().unwrap();
    assert!(!late.say_there().unwrap().was_given_up);
    let again = claim(&late).unwrap();
    assert_eq!((again.right.job, again.starts), (job, 2));
    let refused = late.end(claimed.right, &end(JobState::Succeeded, b""), None);
    assert!(matches!(refused, Err(DatabaseError::Fenced)), "{refused:?}");
    late.end(again.right, &end(JobState::Succeeded, b""), None).unwrap();
    // Its own jobs first, where it takes no others.
    let own = submit(&late, new(&late, 3));
    submit(&other, new(&other, 4));
    let own_only = Wanted { own_only: true, ..ANY };
    assert_eq!(late.claim(own_only).unwrap().map(|claimed| claimed.right.job), Some(own));
    assert!(late.claim(own_only).unwrap().is_none());
}

#[test]
fn servers_are_listed_while_they_are_there_with_what_they_make() {
    let Some(place) = Place::new() else { return };
    let [first, second] = ["first", "second"].map(|name| place.join(name));
    let third = place.join_as("third", "another class");
    let names = |server: &Jobs| -> Vec<String> {
        server.servers(10).unwrap().into_iter().map(|server| server.who.name).collect()
    };
    assert_eq!(names(&second), ["first", "second", "third"]);
    submit(&first, new(&first, 1));
    claim(&second).unwrap();
    // As if it had joined a minute before, and last said so two seconds before.
    place.query("update canopy.servers set since = now() - interval '60 s', until = until - interval '2 s' where name = 'second'");
    let servers = second.servers(10).unwrap();
    let found = servers.iter().find(|server| server.is_this).unwrap();
    assert_eq!(found, &servers[0], "it has taken part for longest");
    assert_eq!((found.who.name.as_str(), found.who.role.as_str(), found.makes), ("second", "all", 1));
    assert!((60..75).contains(&found.age.as_secs()) && (2..15).contains(&found.heard_ago.as_secs()), "{found:?}");
    assert_eq!(servers.iter().map(|server| server.makes).sum::<u64>(), 1);
    assert_eq!(servers.iter().filter(|server| server.is_this).count(), 1);
    assert_eq!(second.servers(2).unwrap().len(), 2);

    third.part().unwrap();
    place.silence("first");
    assert_eq!(names(&second), ["second"]);
    // A server of the version before says nothing of its role.
    place.query("insert into canopy.servers (name, class, until) values ('old', 'old class', now() + interval '9 s')");
    assert_eq!(second.servers(10).unwrap().last().unwrap().who.role, "");
}

#[test]
fn jobs_of_a_version_that_is_gone_are_done_by_another_one() {
    let Some(place) = Place::new() else { return };
    let old = place.join("old");
    let new_one = place.join_as("new", "newer class");
    let job = submit(&old, NewJob { is_detached: true, ..new(&old, 1) });
    new_one.bury(3, b"").unwrap();
    assert!(claim(&new_one).is_none(), "there is still one of its own");
    old.part().unwrap();
    new_one.bury(3, b"").unwrap();
    assert_eq!(claim(&new_one).map(|claimed| claimed.right.job), Some(job));
}

#[test]
fn callers_of_a_silent_server_may_come_back_elsewhere() {
    let Some(place) = Place::new() else { return };
    let [silent, other] = ["silent", "other"].map(|name| place.join(name));
    let [back, lost] = [1, 2].map(|number| submit(&silent, new(&silent, number)));
    place.silence("silent");
    other.bury(3, b"").unwrap();
    assert_eq!([back, lost].map(|job| state(&other, job)), [JobState::Queued; 2]);
    assert_eq!(enter(&other, &new(&other, 1)).job, back);
    place.query("update canopy.jobs set orphaned = orphaned - interval '1 minute'");
    other.bury(3, b"").unwrap();
    assert_eq!([back, lost].map(|job| state(&other, job)), [JobState::Queued, JobState::Cancelled]);
}

/// A slice has no name, and nobody asks for its answer later; a plan's job is remembered for those who do.
#[test]
fn slices_are_jobs_without_operations_and_forgotten_soon() {
    let Some(place) = Place::new() else { return };
    let server = place.join("one");
    let slice = submit(&server, NewJob { slice: Some(b"part".to_vec()), ..new(&server, 1) });
    let plan = submit(&server, new(&server, 2));
    assert_eq!(server.operations(10).unwrap().len(), 1);
    for _ in 0..2 {
        let claimed = claim(&server).unwrap();
        assert_eq!(claimed.slice.is_some(), claimed.right.job == slice);
        server.end(claimed.right, &end(JobState::Succeeded, b"answer"), None).unwrap();
    }
    let now = server.look(&[slice]).unwrap().remove(0);
    assert_eq!((now.state, now.outcome.as_deref()), (JobState::Succeeded, Some(&b"answer"[..])));
    place.query("update canopy.jobs set ended = now() - interval '1 minute'");
    server.bury(3, b"").unwrap();
    assert!(server.look(&[slice]).unwrap().is_empty());
    assert_eq!(state(&server, plan), JobState::Succeeded);
}
