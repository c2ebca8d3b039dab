//! Archives: what goes in comes out, and nothing comes out of a damaged one.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use canopy_prerequisites::Postgres;
use canopy_store::contract::{in_memory, key, plan};

use super::*;

fn open_all(directory: &Path) -> Opened {
    let opened = open_store(directory).unwrap();
    assert_eq!((&opened.moved_aside, &opened.migration), (&None, &None));
    assert!(opened.recovery.is_empty(), "{:?}", opened.recovery);
    opened
}

fn records(store: &Arc<dyn Store>) -> Records {
    Records::new(Arc::clone(store))
}

/// Runs a check on a new store of every kind.
fn on_every_kind(check: impl Fn(&str, &Opened)) {
    check("memory", &in_memory());
    let directory = tempfile::tempdir().unwrap();
    if let Some(postgres) = Postgres::shared() {
        check("PostgreSQL", &shared::tests::Server::new(directory.path(), &postgres.database()).opened);
    }
    let directory = tempfile::tempdir().unwrap();
    check("sled", &open_all(directory.path()));
}

/// A record of a space whose payloads are not this test's business.
fn sealed(payload: &[u8]) -> Vec<u8> {
    encode_record(payload)
}

/// Puts an archive into the spaces where its records belong.
fn restore(archive: &[u8], target: &Opened) -> Result<ArchiveCounts, ArchiveError> {
    read_archive(&mut Cursor::new(archive), 0, |record| {
        target.space(record.space).put(record.key, record.record, record.summary)
    })
}

fn fill(source: &Opened) -> Records {
    let plans = records(source.space(Space::Plans));
    for byte in 1..=3 {
        plans.put(&key(byte), &plan(&key(byte), 70_000)).unwrap();
    }
    plans.pin(&key(2)).unwrap();
    plans.get(&key(3)).unwrap();
    plans.write_back().unwrap();
    source.space(Space::Topologies).put(&key(1), &sealed(b"one network"), &sealed(b"in short")).unwrap();
    source.space(Space::Topologies).put(&key(2), &sealed(b"another"), &[]).unwrap();
    source.space(Space::Jobs).put(&key(1), &sealed(b"a job"), &[]).unwrap();
    source.space(Space::Requests).put(&key(1), &sealed(b"a request"), &[]).unwrap();
    source.space(Space::Replans).put_all(&[(key(1), sealed(b"an event")), (key(2), sealed(b"the head"))]).unwrap();
    source.space(Space::Faults).put_all(&[(key(1), sealed(b"a fault"))]).unwrap();
    source.space(Space::Leases).put(&key(1), &sealed(b"a lease"), &sealed(b"how it stands")).unwrap();
    source.space(Space::Clusters).put(&key(1), &sealed(b"a cluster"), &sealed(b"its size")).unwrap();
    plans
}

#[test]
fn an_archive_moves_plans_pins_uses_topologies_faults_and_leases_between_stores() {
    on_every_kind(|kind, source| {
        let plans = fill(source);
        let mut archive = Vec::new();
        let counts = ArchiveCounts { plans: 3, topologies: 2, replans: 2, faults: 1, leases: 1, clusters: 1 };
        assert_eq!(write_archive(source, &mut archive, None).unwrap(), counts);
        on_every_kind(|other, target| {
            assert_eq!(restore(&archive, target).unwrap(), counts);
            let restored = records(target.space(Space::Plans));
            assert_eq!(restored.list(None, 9).unwrap(), plans.list(None, 9).unwrap(), "{kind} to {other}");
            assert_eq!(restored.peek(&key(1)).unwrap(), plans.peek(&key(1)).unwrap(), "{kind} to {other}");
            for space in [Space::Topologies, Space::Replans, Space::Faults, Space::Leases, Space::Clusters] {
                for key in source.space(space).keys(None, 9).unwrap() {
                    let of = |opened: &Opened| (opened.space(space).get(&key), opened.space(space).summary(&key));
                    let ((record, summary), (found, found_summary)) = (of(source), of(target));
                    let which = format!("{} from {kind} to {other}", space.name());
                    assert_eq!(found.unwrap(), record.unwrap(), "{which}");
                    assert_eq!(found_summary.unwrap(), summary.unwrap(), "{which}");
                }
            }
            for space in [Space::Jobs, Space::Requests, Space::Schedules, Space::Finds] {
                assert!(target.space(space).keys(None, 1).unwrap().is_empty(), "{} stay", space.name());
            }
        });
    });
}

#[test]
fn a_damaged_archive_is_refused_whole_whichever_way_it_comes() {
    let source = in_memory();
    records(source.space(Space::Plans)).put(&key(1), &plan(&key(1), 10)).unwrap();
    source.space(Space::Topologies).put(&key(1), &sealed(b"n"), &[]).unwrap();
    source.space(Space::Leases).put(&key(1), &sealed(b"l"), &sealed(b"s")).unwrap();
    let mut archive = Vec::new();
    write_archive(&source, &mut archive, None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let refused = |bytes: &[u8], what: &str| {
        let never = |_: ArchivedRecord<'_>| panic!("{what}: something was taken");
        assert!(read_archive(&mut Cursor::new(bytes), 0, never).is_err(), "{what}");
        let staging = Staging { directory: directory.path(), bytes_max: 1 << 20 };
        assert!(receive_archive(&mut &bytes[..], staging, 0, never).is_err(), "{what}");
    };
    for position in 0..archive.len() {
        let mut damaged = archive.clone();
        damaged[position] ^= 1;
        refused(&damaged, &format!("byte {position} changed"));
        refused(&archive[..position], &format!("cut at {position}"));
    }
    archive.push(0);
    refused(&archive, "a tail");
}

#[test]
fn an_archive_is_received_from_a_stream_within_a_limit() {
    let source = in_memory();
    fill(&source);
    records(source.space(Space::Plans)).put(&key(9), &plan(&key(9), 5 << 20)).unwrap();
    let mut archive = Vec::new();
    write_archive(&source, &mut archive, None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let limit = archive.len() as u64;
    let target = in_memory();
    let staging = Staging { directory: directory.path(), bytes_max: limit };
    let counts = receive_archive(&mut archive.as_slice(), staging, 0, |record| {
        target.space(record.space).put(record.key, record.record, record.summary)
    });
    assert_eq!(
        counts.unwrap(),
        ArchiveCounts { plans: 4, topologies: 2, replans: 2, faults: 1, leases: 1, clusters: 1 }
    );
    assert_eq!(
        records(target.space(Space::Plans)).list(None, 9).unwrap(),
        records(source.space(Space::Plans)).list(None, 9).unwrap()
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
    let staging = Staging { directory: directory.path(), bytes_max: limit - 1 };
    let refused = receive_archive(&mut archive.as_slice(), staging, 0, |_| panic!("nothing is taken"));
    assert!(matches!(refused, Err(ArchiveError::TooLarge { limit: refused }) if refused == limit - 1));
}

#[test]
fn a_length_that_no_record_has_is_refused_before_it_is_read() {
    let mut archive = b"CNPYARC2".to_vec();
    archive.extend_from_slice(&canopy_migrations::current_version().to_le_bytes());
    archive.push(1);
    archive.extend_from_slice(&[0; 32]);
    archive.extend_from_slice(&u64::MAX.to_le_bytes());
    let error = restore(&archive, &in_memory()).unwrap_err();
    assert!(matches!(error, ArchiveError::Damaged { offset: 45, .. }), "{error}");
}

#[test]
fn archives_of_the_first_form_are_read() {
    let source = in_memory();
    let plans = fill(&source);
    for space in [
        source.space(Space::Topologies),
        source.space(Space::Replans),
        source.space(Space::Faults),
        source.space(Space::Leases),
        source.space(Space::Clusters),
    ] {
        space.remove(&space.keys(None, 9).unwrap()).unwrap();
    }
    let mut archive = Vec::new();
    write_archive(&source, &mut archive, None).unwrap();
    // The same but for the magic, as long as there is nothing but plans.
    let tail = archive.len() - blake3::OUT_LEN;
    archive[7] = b'1';
    let digest = blake3::hash(&archive[..tail]);
    archive[tail..].copy_from_slice(digest.as_bytes());
    let target = in_memory();
    assert_eq!(restore(&archive, &target).unwrap(), ArchiveCounts { plans: 3, ..ArchiveCounts::default() });
    assert_eq!(records(target.space(Space::Plans)).list(None, 9).unwrap(), plans.list(None, 9).unwrap());
}

#[test]
fn an_adopted_plan_keeps_its_pin_and_counts_against_the_limit() {
    let source = in_memory();
    let plans = fill(&source);
    let mut archive = Vec::new();
    write_archive(&source, &mut archive, None).unwrap();
    let target: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let options = RecordOptions { bytes_max: 150_000, ..RecordOptions::STANDARD };
    let target = Records::with_options(target, options);
    target.put(&key(2), &plan(&key(2), 10)).unwrap();
    // From here on it would be answered from memory.
    target.get(&key(2)).unwrap();
    let adopt = |record: ArchivedRecord<'_>| match record.space {
        Space::Plans => target.adopt(&record),
        _ => Ok(()),
    };
    read_archive(&mut Cursor::new(&archive), 0, adopt).unwrap();
    let usage = target.usage().unwrap();
    assert_eq!((usage.records, usage.pinned), (2, 1), "room for two of three");
    assert_eq!(target.summary(&key(2)).unwrap(), plans.summary(&key(2)).unwrap());
    assert_eq!(target.get(&key(2)).unwrap(), plans.peek(&key(2)).unwrap(), "not what was in memory");
    let listed: u64 = target.list(None, 9).unwrap().iter().map(|summary| summary.size_bytes).sum();
    assert_eq!(usage.bytes, listed);
}

#[test]
fn an_archive_takes_nobodys_pin_away() {
    let source = in_memory();
    let unpinned = records(source.space(Space::Plans));
    unpinned.put(&key(1), &plan(&key(1), 10)).unwrap();
    unpinned.get(&key(1)).unwrap();
    let mut archive = Vec::new();
    drop(unpinned);
    write_archive(&source, &mut archive, None).unwrap();
    let target = Records::with_options(Arc::new(MemoryStore::default()), RecordOptions::STANDARD);
    target.put(&key(1), &plan(&key(1), 10)).unwrap();
    target.pin(&key(1)).unwrap();
    read_archive(&mut Cursor::new(&archive), 0, |record| target.adopt(&record)).unwrap();
    let summary = target.summary(&key(1)).unwrap().unwrap();
    assert_eq!((summary.pinned, summary.hits), (true, 1));
    assert_eq!(target.usage().unwrap().pinned, 1);
}

/// Where the signature of a signed archive stands, an unsigned one has the end of its last record, which may be anything.
#[test]
fn an_archive_that_ends_like_a_signed_one_is_not_signed() {
    const TRAILER_BYTES: usize = 104;
    const BYTES_AFTER_RECORDS: usize = 1 + 8 + 32;
    let folder = tempfile::tempdir().unwrap();
    let signing = ArchiveKey::of(folder.path()).unwrap();
    let public = *blake3::Hash::from_hex(signing.name().trim_start_matches("ed25519:")).unwrap().as_bytes();
    let mut forged = [&b"CNPYSIG1"[..], &public].concat();
    forged.resize(TRAILER_BYTES - BYTES_AFTER_RECORDS, 7);
    let source = in_memory();
    source.space(Space::Topologies).put(&key(1), &sealed(b"n"), &sealed(&forged)).unwrap();
    let mut signers = Vec::new();
    for with in [None, Some(&signing)] {
        let mut archive = Vec::new();
        write_archive(&source, &mut archive, with).unwrap();
        assert_eq!(archive[archive.len() - TRAILER_BYTES..][..8], *b"CNPYSIG1");
        signers.push(read_signed_archive(&mut Cursor::new(&archive), 0, |_| Ok(())).unwrap().1);
    }
    assert_eq!(signers, [None, Some(public)]);
    let trust = ArchiveTrust::own();
    assert!(matches!(trust.judge(&signing, signers[0]), Err(ArchiveError::Unsigned)));
    assert!(trust.judge(&signing, signers[1]).is_ok());
}
