use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::MemoryStore;
use crate::disk::Witness;
use crate::power::Recording;

fn key(byte: u8) -> PlanKey {
    PlanKey::from_bytes([byte; 32])
}

fn open(folder: &Path) -> (DoubledSpace, Damage) {
    DoubledSpace::open(&Disk::default(), folder.to_owned(), "faults", &MemoryStore::default(), Health::of(folder))
        .unwrap()
}

/// Twenty records, some of them changed and two removed.
fn fill(folder: &Path) -> Vec<(PlanKey, Option<Vec<u8>>)> {
    let (space, damage) = open(folder);
    assert_eq!(damage, Damage::default());
    let records: Vec<_> = (0..20).map(|number| (key(number), vec![number; 30 + usize::from(number)])).collect();
    space.put_all(&records).unwrap();
    space.put(&key(3), b"changed", b"summary").unwrap();
    space.set_summaries(&[(key(4), b"another".to_vec())], Durability::Synced).unwrap();
    space.remove(&[key(5), key(6), key(99)]).unwrap();
    (0..20).map(|number| (key(number), space.get(&key(number)).unwrap())).collect()
}

fn held(space: &DoubledSpace) -> Vec<(PlanKey, Option<Vec<u8>>)> {
    (0..20).map(|number| (key(number), space.get(&key(number)).unwrap())).collect()
}

#[test]
fn any_damaged_byte_of_either_file_costs_nothing_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = fill(folder.path());
    assert_eq!(wanted.iter().filter(|(_, record)| record.is_none()).count(), 2);
    let intact = NAMES.map(|name| fs::read(folder.path().join(name)).unwrap());
    assert_eq!(intact[0], intact[1]);
    for position in (0..intact[0].len()).step_by(37) {
        for victim in 0..2 {
            for (name, bytes) in NAMES.iter().zip(&intact) {
                fs::write(folder.path().join(name), bytes).unwrap();
            }
            let mut damaged = intact[victim].clone();
            damaged[position] ^= 0x08;
            fs::write(folder.path().join(NAMES[victim]), damaged).unwrap();
            let (space, _) = open(folder.path());
            assert_eq!(held(&space), wanted, "byte {position} of file {victim}");
            assert_eq!(space.summary(&key(4)).unwrap(), Some(b"another".to_vec()));
            drop(space);
            assert_eq!(open(folder.path()).1, Damage::default(), "mended");
        }
    }
    let mut damaged = intact[0].clone();
    damaged[400] ^= 1;
    fs::write(folder.path().join(NAMES[0]), damaged).unwrap();
    fs::write(folder.path().join(NAMES[1]), &intact[1]).unwrap();
    let (space, damage) = open(folder.path());
    assert_eq!((damage, space.health.damages()), (Damage { mended: 1, lost: 0 }, vec![("faults".to_owned(), 1)]));
}

#[test]
fn a_file_that_is_cut_or_gone_is_made_again_of_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = fill(folder.path());
    for victim in NAMES {
        let path = folder.path().join(victim);
        let bytes = fs::read(&path).unwrap();
        for length in [0, 10, bytes.len() / 3, bytes.len() - 1] {
            fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(held(&open(folder.path()).0), wanted, "{victim} cut at {length}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(held(&open(folder.path()).0), wanted, "{victim} gone");
    }
}

#[test]
fn what_was_kept_elsewhere_is_taken_over_once_and_files_stay_small() {
    let folder = tempfile::tempdir().unwrap();
    let earlier = MemoryStore::default();
    earlier.put(&key(1), b"one", b"").unwrap();
    let open = || {
        DoubledSpace::open(&Disk::default(), folder.path().to_owned(), "faults", &earlier, Health::of(folder.path()))
            .unwrap()
            .0
    };
    let space = open();
    assert_eq!(space.get(&key(1)).unwrap(), Some(b"one".to_vec()));
    space.remove(&[key(1)]).unwrap();
    for _ in 0..200 {
        space.put(&key(2), &[7; 100_000], b"").unwrap();
    }
    drop(space);
    let space = open();
    assert_eq!(space.keys(None, 9).unwrap(), [key(2)]);
    for name in NAMES {
        let length = fs::metadata(folder.path().join(name)).unwrap().len();
        assert!(length < 5 << 20, "{name} has {length} bytes");
    }
    space.quarantine(&key(2)).unwrap();
    assert_eq!((space.get(&key(2)).unwrap(), space.quarantined_count().unwrap()), (None, 1));
}

/// A disk that is full in the middle of any change, and of any attempt to write the files anew, takes nothing away.
#[test]
fn a_disk_that_is_full_at_any_step_costs_nothing_that_was_taken() {
    for (room, tries) in (0..16).flat_map(|room| (1..4).map(move |tries| (room, tries))) {
        let folder = tempfile::tempdir().unwrap();
        let recording = Arc::new(Recording::below(folder.path(), true));
        let disk = Disk::watched(Arc::clone(&recording) as Arc<dyn Witness>);
        let path = folder.path().join("faults");
        let open = |disk| {
            DoubledSpace::open(disk, path.clone(), "faults", &MemoryStore::default(), Health::of(&path)).unwrap()
        };
        let (space, _) = open(&disk);
        let records: Vec<_> = (0..20).map(|number| (key(number), vec![number; 30])).collect();
        space.put_all(&records).unwrap();
        recording.fill_after(Some(0));
        space.put(&key(18), b"refused", b"").unwrap_err();
        recording.fill_after(Some(room));
        for number in 0..tries {
            let _refused_or_not = space.put(&key(10 + number), b"changed", b"");
        }
        recording.fill_after(None);
        // What comes last in order is what an outdated entry behind this one would undo.
        space.put(&key(19), b"changed", b"").unwrap();
        space.remove(&[key(17)]).unwrap();
        let known = held(&space);
        drop(space);
        let (space, damage) = open(&Disk::default());
        let wrong: Vec<_> = held(&space).into_iter().filter(|entry| !known.contains(entry)).collect();
        assert_eq!((wrong, damage), (Vec::new(), Damage::default()), "room for {room} steps, {tries} tries");
    }
}
