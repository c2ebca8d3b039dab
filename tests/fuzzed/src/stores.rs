//! What a server reads from its disk: records, archives and settings.

use std::io::Cursor;
use std::path::PathBuf;

use canopy_plan::read_plan;
use canopy_server::{Settings, StoredPlan, parse_duration, print_effective, read_archive};
use canopy_store::{decode_record, encode_record};
use canopy_topology::TopologyLimits;
use canopy_wire::{decode_entry, encode_entry};

use crate::{LIMITS, refused, seen, text};

/// Magic of archives of all kinds of records, and the schema version of their records.
const ARCHIVE_HEAD: [u8; 12] = *b"CNPYARC3\x04\0\0\0";
/// Bytes of the head of a record in the input: its kind, the byte that its key repeats, and two lengths.
const RECORD_HEAD: usize = 6;
const KEY_BYTES: usize = 32;
/// Time at which archives are read.
const NOW_MS: u64 = 1_800_000_000_000;

/// A record: its envelope, and what each owner reads in its payload.
pub(crate) fn record(input: &[u8]) {
    if let Ok(payload) = decode_record(input) {
        assert_eq!(encode_record(payload), input, "two records have one payload");
    }
    // Few inputs have a digest that matches, so all of them are payloads, too.
    let record = encode_record(input);
    assert_eq!(decode_record(&record), Ok(input));
    if let Some(entry) = decode_entry(input) {
        let caller = entry.caller.clone();
        let kept = encode_entry(entry.number, &entry.request, entry.priority, entry.arrived_unix_ms, caller);
        assert_eq!(decode_entry(&kept).as_ref(), Some(&entry));
    }
    seen(StoredPlan::request_in(input));
    if let Some(stored) = StoredPlan::decode(input.to_vec().into()) {
        let again = StoredPlan::decode(stored.encode(b"asked".to_vec()).into());
        assert_eq!(again.as_ref(), Some(&stored));
        seen((stored.header_sent(), stored.inline_sent(64), stored.memory_bytes()));
        assert!(stored.piece_digests(stored.plan.artifacts.len(), 1).is_empty());
    }
    let limits = TopologyLimits { bytes_max: usize::MAX, ..LIMITS };
    seen(read_plan(input, &limits));
}

/// An archive as it is, and one whose digests and lengths match, of what stands in the input.
pub(crate) fn archive(input: &[u8]) {
    read_whole(input);
    read_whole(&archive_of(input));
}

/// The records that are handed out are those that are counted.
fn read_whole(archive: &[u8]) {
    let mut taken = 0_u64;
    let read = read_archive(&mut Cursor::new(archive), NOW_MS, |record| {
        assert!(decode_record(record.record).is_ok(), "a damaged record is handed out");
        taken += 1;
        Ok(())
    });
    match read {
        Ok(counts) => {
            let counted = [counts.plans, counts.topologies, counts.replans, counts.faults, counts.leases];
            assert_eq!(counted.iter().sum::<u64>() + counts.clusters, taken);
        }
        Err(error) => {
            assert_eq!(taken, 0, "part of an archive was taken");
            refused(&error);
        }
    }
}

/// An archive of records that the input states, each with its kind, its key and two lengths before it.
fn archive_of(input: &[u8]) -> Vec<u8> {
    let mut archive = ARCHIVE_HEAD.to_vec();
    let mut rest = input;
    let mut count = 0_u64;
    while let Some((head, after)) = rest.split_first_chunk::<RECORD_HEAD>() {
        let [kind, key, record_low, record_high, summary_low, summary_high] = *head;
        let take = |length: usize, from: &mut &[u8]| {
            let (payload, left) = from.split_at(length.min(from.len()));
            *from = left;
            encode_record(payload)
        };
        rest = after;
        let record = take(usize::from(u16::from_le_bytes([record_low, record_high])), &mut rest);
        let summary = take(usize::from(u16::from_le_bytes([summary_low, summary_high])), &mut rest);
        archive.push(kind % 6 + 1);
        archive.extend([key; KEY_BYTES]);
        for part in [record, summary] {
            archive.extend((part.len() as u64).to_le_bytes());
            archive.extend(part);
        }
        count += 1;
    }
    archive.push(0);
    archive.extend(count.to_le_bytes());
    let digest = blake3::hash(&archive);
    archive.extend(digest.as_bytes());
    archive
}

/// A file of settings. No file that it names is opened.
pub(crate) fn configuration(input: &[u8]) {
    let Some(text) = text(input) else { return };
    seen(parse_duration(text));
    let settings = match Settings::parse(text, "canopyd.toml") {
        Ok(settings) => settings,
        Err(error) => return refused(&error),
    };
    let data_dir = settings.data_dir.clone().or_else(|| Some(PathBuf::from("/var/lib/canopy")));
    let settings = Settings { data_dir, ..settings };
    let filled = match settings.clone().filled() {
        Ok(filled) => filled,
        Err(error) => return refused(&error),
    };
    let printed = print_effective(settings).expect("what can be filled in can be printed");
    let again = Settings::parse(&printed, "printed").unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again, filled, "{printed}");
}
