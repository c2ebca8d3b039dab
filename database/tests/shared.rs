//! Several servers, as handles of their own, on one database.
#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use canopy_database::{Change, Database, DatabaseError, Key, Options, Role, SharedRecords, SharedSpace, State, Write};
use canopy_prerequisites::{Commits, Postgres};
use tokio::time::Instant;

/// Of the spaces that these tests use: small records are at hand in the first.
const SPACES: [(i16, bool); 2] = [(1, true), (2, false)];

fn database(address: &str) -> Database {
    let database = Database::new(&Options { address: address.parse().unwrap(), connections: 4 }).unwrap();
    database.migrate().unwrap();
    database
}

fn records(address: &str) -> SharedRecords {
    SharedRecords::open(&database(address), &SPACES).unwrap()
}

fn put(key: Key, record: &[u8], summary: &[u8]) -> Change {
    Change { key, write: Write::Put { record: record.to_vec(), summary: summary.to_vec() } }
}

/// Catches up until something holds.
fn until(space: &SharedSpace, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "others have not heard of it");
        thread::sleep(Duration::from_millis(2));
        space.catch_up();
    }
}

#[test]
fn what_one_server_writes_others_read() {
    let Some(postgres) = Postgres::shared() else { return };
    let address = postgres.database();
    let (one, other) = (records(&address), records(&address));
    for (number, _) in SPACES {
        let (one, other) = (one.space(number), other.space(number));
        for size in [0, 1, 16_384, 16_385, 3_000_000] {
            let record: Vec<u8> = (0_u8..=250).cycle().take(size).collect();
            let summary = size.to_le_bytes();
            one.change(vec![put([7; 32], &record, &summary)]).unwrap();
            assert_eq!(one.record(&[7; 32]).unwrap().as_deref(), Some(&*record), "{size}");
            let knows = |space: &SharedSpace| {
                space.entry(&[7; 32]).is_some_and(|entry| entry.summary.as_deref() == Some(summary.as_slice()))
            };
            until(&other, || knows(&other));
            assert_eq!(other.record(&[7; 32]).unwrap().as_deref(), Some(&*record), "{size}");
            assert_eq!(one.entry(&[7; 32]).map(|entry| entry.record), other.entry(&[7; 32]).map(|entry| entry.record));
        }
        other.change(vec![Change { key: [7; 32], write: Write::Summary(b"new".to_vec()) }]).unwrap();
        until(&one, || one.entry(&[7; 32]).unwrap().summary.as_deref() == Some(b"new"));
        assert_eq!(one.record(&[7; 32]).unwrap().map(|record| record.len()), Some(3_000_000));
        other.change(vec![Change { key: [7; 32], write: Write::Quarantine }]).unwrap();
        until(&one, || one.entry(&[7; 32]).is_none());
        assert_eq!((one.record(&[7; 32]).unwrap(), one.quarantined_count().unwrap()), (None, 1));
    }
    let third = records(&address);
    assert!(third.space(1).entries(None, 9, |_| true).is_empty());
    let name = address.split(['/', '?']).nth(3).unwrap();
    // Two in quarantine; the others went with their records.
    assert_eq!(postgres.query(name, "select count(*) from canopy.bodies"), "2");
    assert_eq!(postgres.query(name, "select count(*) from canopy.pieces"), "6");
}

#[test]
fn who_has_not_heard_of_a_change_does_not_undo_it() {
    let Some(postgres) = Postgres::shared() else { return };
    let address = postgres.database();
    let (one, other) = (records(&address).space(1), records(&address).space(1));
    one.change(vec![put([1; 32], b"first", b"")]).unwrap();
    let late = other.change(vec![put([2; 32], b"good", b""), put([1; 32], b"late", b"")]);
    assert!(matches!(late, Err(DatabaseError::Overtaken)), "{late:?}");
    assert_eq!(other.entry(&[2; 32]), None, "all or none");
    until(&other, || other.entry(&[1; 32]).is_some());
    other.change(vec![put([2; 32], b"good", b""), put([1; 32], b"second", b"")]).unwrap();
    for write in [Write::Remove, Write::Summary(Vec::new()), Write::Quarantine] {
        let late = one.change(vec![Change { key: [1; 32], write }]);
        assert!(matches!(late, Err(DatabaseError::Overtaken)), "{late:?}");
    }
    until(&one, || one.entry(&[2; 32]).is_some());
    assert_eq!(one.record(&[1; 32]).unwrap().as_deref(), Some(b"second".as_slice()));
    // What is not there is at no version.
    let removed = one.change(vec![Change { key: [3; 32], write: Write::Remove }]);
    assert!(removed.is_ok(), "{removed:?}");
}

/// Whatever is acknowledged at one server, the other one has once it has asked, however many ask at once.
#[test]
fn whoever_asks_hears_of_all_that_was_acknowledged_before() {
    let Some(postgres) = Postgres::shared() else { return };
    let address = postgres.database();
    let one = records(&address);
    let other = records(&address);
    let acknowledged = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let number = |entry: &[u8]| u64::from_le_bytes(entry.try_into().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            let space = one.space(1);
            for count in 1..=60_u64 {
                space.change(vec![put([1; 32], &count.to_le_bytes(), b"")]).unwrap();
                acknowledged.store(count, Ordering::SeqCst);
            }
            is_over.store(true, Ordering::SeqCst);
        });
        for _ in 0..8 {
            scope.spawn(|| {
                let space = other.space(1);
                while !is_over.load(Ordering::SeqCst) {
                    let before = acknowledged.load(Ordering::SeqCst);
                    other.hear_of_all().unwrap();
                    space.catch_up();
                    let known = space.record(&[1; 32]).unwrap().map_or(0, |record| number(&record));
                    assert!(known >= before, "{known} is known of {before}");
                }
            });
        }
    });
}

/// Records that are changed together, in two spaces, are known together, and both or neither is changed.
#[test]
fn what_is_changed_together_is_known_together() {
    let Some(postgres) = Postgres::shared() else { return };
    let address = postgres.database();
    let one = records(&address);
    let other = records(&address);
    let is_over = AtomicBool::new(false);
    let many: Vec<Key> = (1..=20).map(|byte| [byte; 32]).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            for count in 0..40_u8 {
                let changes = many.iter().map(|key| put(*key, &[count], b"")).collect();
                let noted = Change { key: [9; 32], write: Write::Summary(vec![count]) };
                one.space(1).change_with(changes, Some((&one.space(2), noted))).unwrap();
            }
            is_over.store(true, Ordering::SeqCst);
        });
        let known = |space: &SharedSpace| -> Vec<u8> {
            many.iter().filter_map(|key| space.record(key).unwrap()).flatten().collect()
        };
        let records = other.space(1);
        let notes = other.space(2);
        while !is_over.load(Ordering::SeqCst) {
            // Whatever is noted, what it was noted with is known.
            notes.catch_up();
            let noted = notes.entry(&[9; 32]).map(|entry| entry.summary.unwrap()[0]);
            records.catch_up();
            let found = known(&records);
            assert!(found.iter().all(|count| *count == found[0]), "{found:?}");
            assert!(noted <= found.first().copied(), "{noted:?} is noted, {found:?} is known");
        }
    });
    // A note that is behind keeps the records from being changed.
    let late = Change { key: [9; 32], write: Write::Summary(Vec::new()) };
    let stale = records(&address);
    one.space(2).change(vec![late.clone()]).unwrap();
    let refused = stale.space(1).change_with(vec![put([77; 32], b"", b"")], Some((&stale.space(2), late)));
    assert!(matches!(refused, Err(DatabaseError::Overtaken)), "{refused:?}");
    one.hear_of_all().unwrap();
    assert_eq!(one.space(1).entry(&[77; 32]), None);
}

/// Adds one to the number under a key.
fn count_up(space: &SharedSpace, key: Key) -> Result<(), DatabaseError> {
    loop {
        let record = space.record(&key)?;
        let count = record.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        match space.change(vec![put(key, &(count + 1).to_le_bytes(), b"")]) {
            Err(DatabaseError::Overtaken) => drop(space.catch_up()),
            done => return done,
        }
    }
}

#[test]
fn nothing_that_servers_do_at_once_is_lost() {
    const EACH: u64 = 40;
    let Some(postgres) = Postgres::shared() else { return };
    let address = postgres.database();
    let servers: Vec<SharedSpace> = (0..3).map(|_| records(&address).space(1)).collect();
    thread::scope(|scope| {
        for server in &servers {
            scope.spawn(move || (0..EACH).for_each(|_| count_up(server, [1; 32]).unwrap()));
        }
    });
    let all = (3 * EACH).to_le_bytes();
    for server in &servers {
        until(server, || server.record(&[1; 32]).unwrap().as_deref() == Some(all.as_slice()));
    }
    let versions: Vec<i64> = servers.iter().map(|server| server.entry(&[1; 32]).unwrap().version).collect();
    assert_eq!(versions, [3 * EACH as i64; 3], "each change has a number, and no number is left out");
}

/// Whoever counts is told of each number; what was acknowledged is there after a crash, and once.
#[test]
fn a_crash_of_the_database_loses_nothing_that_was_acknowledged_and_doubles_nothing() {
    const ROUNDS: u64 = 5;
    let Some(postgres) = Postgres::new(Commits::Synced) else { return };
    let address = postgres.database();
    let (acknowledged, unknown, ends) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for writer in 0..4_u8 {
            let space = records(&address).space(1);
            let (acknowledged, unknown, ends) = (&acknowledged, &unknown, &ends);
            scope.spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    match count_up(&space, [writer; 32]) {
                        Ok(()) => acknowledged.fetch_add(1, Ordering::Relaxed),
                        Err(DatabaseError::Away { .. }) => unknown.fetch_add(1, Ordering::Relaxed),
                        Err(error) => panic!("{error}"),
                    };
                }
            });
        }
        for _ in 0..ROUNDS {
            // A crash counts only while all are at work.
            let before = acknowledged.load(Ordering::Relaxed);
            while acknowledged.load(Ordering::Relaxed) < before + 100 {
                thread::sleep(Duration::from_millis(1));
            }
            postgres.kill();
            postgres.begin();
        }
        ends.store(true, Ordering::Relaxed);
    });
    let (acknowledged, unknown) = (acknowledged.into_inner(), unknown.into_inner());
    let space = records(&address).space(1);
    let numbers = space.entries(None, 9, |_| true);
    let count = |(key, _): &(Key, _)| u64::from_le_bytes(space.record(key).unwrap().unwrap().try_into().unwrap());
    let counted: u64 = numbers.iter().map(count).sum();
    assert!(counted >= acknowledged && counted <= acknowledged + unknown, "{acknowledged} + {unknown}: {counted}");
    assert!(acknowledged >= 100 * ROUNDS);
}

#[test]
fn a_server_that_missed_changes_which_nobody_remembers_compares_all() {
    let Some(postgres) = Postgres::shared() else { return };
    let address = postgres.database();
    let name = address.split(['/', '?']).nth(3).unwrap();
    let (one, other) = (records(&address).space(1), records(&address).space(1));
    for key in 1..=5 {
        one.change(vec![put([key; 32], b"record", b"summary")]).unwrap();
    }
    until(&other, || other.entries(None, 9, |_| true).len() == 5);
    // Between two looks of the other one: the change is forgotten with the statement that makes it.
    let statement = "with a as (update canopy.head set version = version + 1 returning version),
        b as (delete from canopy.records where key <= decode(repeat('02', 32), 'hex'))
        update canopy.records r set version = a.version, summary = 'x' from a where r.key = decode(repeat('04', 32), 'hex')";
    postgres.query(name, statement);
    until(&other, || other.entries(None, 9, |_| true).len() == 3);
    assert_eq!(other.entry(&[4; 32]).unwrap().summary.as_deref(), Some(b"x".as_slice()));
}

#[test]
fn a_database_that_is_away_is_found_again() {
    let Some(postgres) = Postgres::new(Commits::Unsynced) else { return };
    let address = postgres.database();
    let records = records(&address);
    let space = records.space(1);
    space.change(vec![put([1; 32], b"record", b"")]).unwrap();
    postgres.kill();
    let begun = Instant::now();
    let refused = space.change(vec![put([2; 32], b"record", b"")]);
    assert!(matches!(refused, Err(DatabaseError::Away { .. })), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(matches!(records.database().state(), State::Away(_)));
    assert_eq!(space.record(&[1; 32]).unwrap().as_deref(), Some(b"record".as_slice()), "what is at hand is served");
    postgres.begin();
    let begun = Instant::now();
    while records.database().state() != State::There {
        assert!(begun.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(5));
    }
    space.change(vec![put([2; 32], b"record", b"")]).unwrap();
}

#[test]
fn a_schema_is_made_once_however_many_begin_and_a_newer_one_is_refused() {
    let Some(postgres) = Postgres::shared() else { return };
    let address = postgres.database();
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| records(&address));
        }
    });
    let again = database(&address).migrate().unwrap();
    assert_eq!((again.from, again.to), (again.to, again.to));
    let name = address.split(['/', '?']).nth(3).unwrap();
    // A newer one with which this build can work.
    postgres.query(name, "update canopy.settings set value = '900' where name = 'schema'");
    assert_eq!(database(&address).schema_version().unwrap(), 900);
    postgres.query(name, "update canopy.settings set value = '899' where name = 'works_with'");
    let database = Database::new(&Options { address: address.parse().unwrap(), connections: 1 }).unwrap();
    let refusal = database.schema_version().unwrap_err().to_string();
    assert!(refusal.contains("schema version 900, whose servers must know version 899 at least"), "{refusal}");
}

#[test]
fn a_role_is_one_servers_until_it_leaves_or_is_silent() {
    let Some(postgres) = Postgres::shared() else { return };
    let address = postgres.database();
    let servers: Vec<SharedRecords> = (0..3).map(|_| records(&address)).collect();
    let roles: Vec<Role> = servers.iter().map(|server| Role::new(server, 1, "replanner").unwrap()).collect();
    let held = |for_ms| roles.iter().filter(|role| role.hold(for_ms).unwrap()).count();
    let at_once = thread::scope(|scope| {
        let holding: Vec<_> = roles.iter().map(|role| scope.spawn(|| role.hold(60_000).unwrap())).collect();
        holding.into_iter().map(|one| one.join().unwrap()).filter(|has| *has).count()
    });
    assert_eq!(at_once, 1);
    servers.iter().for_each(|server| server.hear_of_all().unwrap());
    assert_eq!(held(60_000), 1);
    let holder = roles.iter().position(|role| role.hold(1).unwrap()).unwrap();
    thread::sleep(Duration::from_millis(20));
    // It was silent; and who leaves lets another one in at once.
    let next = (holder + 1) % 3;
    servers[next].hear_of_all().unwrap();
    assert!(roles[next].hold(60_000).unwrap());
    servers[holder].hear_of_all().unwrap();
    assert!(!roles[holder].hold(60_000).unwrap());
    roles[holder].leave().unwrap();
    assert!(roles[next].hold(60_000).unwrap(), "only who has it can leave it");
    roles[next].leave().unwrap();
    servers[holder].hear_of_all().unwrap();
    assert!(roles[holder].hold(60_000).unwrap());
}

#[test]
fn the_servers_go_by_one_time_whatever_the_database_is_set_to() {
    let Some(postgres) = Postgres::shared() else { return };
    let address = postgres.database();
    let name = address.split(['/', '?']).nth(3).unwrap();
    let (one, other) = (records(&address), records(&address));
    assert!(one.now_ms().abs_diff(other.now_ms()) < 100);
    // As if its time of day had been set back by eight days: what is added to it differs by as much from what it was.
    const DAYS_MS: u64 = 8 * 24 * 3_600_000;
    postgres.query(name, &format!("update canopy.head set clock_shift_ms = clock_shift_ms - {DAYS_MS}"));
    let begun = Instant::now();
    while one.clock_jumps() + other.clock_jumps() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "nobody has noticed");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(postgres.query(name, "select abs(clock_shift_ms) < 1000 from canopy.head"), "t");
    let late = records(&address);
    assert!(one.now_ms().abs_diff(other.now_ms()) < 100 && one.now_ms().abs_diff(late.now_ms()) < 1000);
    assert_eq!(one.clock_jumps() + other.clock_jumps(), 1, "it is written down once");
}
