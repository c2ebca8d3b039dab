//! Files that are not as they were left: the start succeeds, and nothing wrong is served.

use super::*;

const PLANS: u8 = 40;

#[test]
fn a_store_that_does_not_open_is_moved_aside_and_another_one_works() {
    let directory = tempfile::tempdir().unwrap();
    Records::new(open(directory.path())).put(&key(1), &plan(&key(1), 10)).unwrap();
    let path = directory.path().join("store");
    fs::write(path.join("conf"), b"this is nothing that sled has written").unwrap();
    let opened = open_store(directory.path()).unwrap();
    let (aside, reason) = opened.moved_aside.clone().expect("the damaged one is kept");
    assert_eq!(aside, path.with_extension("damaged-1"));
    assert!(aside.join("db").exists() && !reason.is_empty());
    let records = Records::new(opened.into_space(Space::Plans));
    assert!(matches!(records.get(&key(1)).unwrap(), Lookup::Found(_)));
    records.put(&key(1), &plan(&key(1), 10)).unwrap();
}

/// A generator of numbers that needs no seed from outside (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}

/// All files below a directory.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
    found.sort();
}

/// Changes some bytes of a file that is not empty, or cuts it.
fn damage(file: &Path, numbers: &mut Numbers) {
    let mut bytes = fs::read(file).unwrap();
    if bytes.is_empty() {
        return;
    }
    let written = bytes.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
    match numbers.below(3) {
        0 => bytes.truncate(numbers.below(written)),
        1 => bytes[numbers.below(written)] ^= 1 << numbers.below(8),
        _ => {
            let start = numbers.below(written);
            let end = (start + 1 + numbers.below(4096)).min(bytes.len());
            bytes[start..end].iter_mut().for_each(|byte| *byte ^= 0xa5);
        }
    }
    fs::write(file, bytes).unwrap();
}

/// Damages one file of a store in so many ways: the start succeeds, nothing but the true plan is ever served, and no plan
/// is lost but the one whose file it was.
fn check_damage(rounds: u64) {
    let origin = tempfile::tempdir().unwrap();
    let records = Records::new(open(origin.path()));
    let plans: Vec<_> = (0..PLANS).map(|byte| plan(&key(byte), 1000 * usize::from(byte))).collect();
    for (byte, plan) in (0..PLANS).zip(&plans) {
        records.put(&key(byte), plan).unwrap();
    }
    drop(records);
    for round in 0..rounds {
        let directory = tempfile::tempdir().unwrap();
        versions::copy(origin.path(), directory.path());
        let mut numbers = Numbers(round);
        let mut found = Vec::new();
        files(directory.path(), &mut found);
        found.retain(|file| !file.ends_with("lock") && fs::metadata(file).unwrap().len() > 0);
        // Every other time a file of the database: there are few of them.
        let of_records = |file: &Path| file.starts_with(directory.path().join("records-4"));
        found.retain(|file| of_records(file) == (round % 2 == 0));
        damage(&found[numbers.below(found.len())], &mut numbers);
        let opened = open_store(directory.path()).expect("the start succeeds");
        let (records, jobs) = (super::records(opened.space(Space::Plans)), opened.space(Space::Jobs));
        // Whatever it says: a start asks for it, and goes on.
        let _known = (records.usage(), jobs.keys(None, 9), jobs.summaries(None, 9));
        let mut lost = 0;
        for (byte, plan) in (0..PLANS).zip(&plans) {
            match records.get(&key(byte)) {
                Ok(Lookup::Found(stored)) => assert_eq!(*stored, *plan, "round {round}: a wrong plan was served"),
                Ok(Lookup::Missing | Lookup::Quarantined(_)) | Err(_) => {
                    lost += 1;
                    records.put(&key(byte), plan).expect("a plan that is lost can be stored again");
                }
            }
        }
        let most = u64::from(round % 2 == 0);
        assert!(lost <= most, "round {round}: {lost} plans are lost");
    }
}

#[test]
fn damaged_files_are_survived() {
    check_damage(40);
}

/// Flips a bit in the middle of every file of an engine.
fn bend(engine: &Path) {
    for file in fs::read_dir(engine).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let mut bytes = fs::read(&file).unwrap();
        if let Some(middle) = bytes.iter().rposition(|&byte| byte != 0).map(|last| last / 2) {
            bytes[middle] ^= 0x08;
            fs::write(&file, bytes).unwrap();
        }
    }
}

#[test]
fn pins_faults_leases_and_events_survive_a_damaged_database_and_pins_damaged_plans() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open_all(directory.path());
    let pinned = |opened: &Opened| {
        let (plans, pins) = (Arc::clone(opened.space(Space::Plans)), Arc::clone(&opened.pins));
        Records::with_pins(plans, pins, RecordOptions::STANDARD)
    };
    let records = pinned(&opened);
    for byte in 1..=20 {
        records.put(&key(byte), &plan(&key(byte), 10)).unwrap();
        records.pin(&key(byte)).unwrap();
        opened.space(Space::Faults).put_all(&[(key(byte), encode_record(&[byte]))]).unwrap();
        opened.space(Space::Replans).put_all(&[(key(byte), encode_record(&[byte]))]).unwrap();
        opened.space(Space::Leases).put(&key(byte), &encode_record(&[byte]), &encode_record(b"first")).unwrap();
        opened.space(Space::Leases).set_summaries(&[(key(byte), encode_record(&[byte]))], Durability::Synced).unwrap();
    }
    records.unpin(&key(20)).unwrap();
    drop((records, opened));
    bend(&directory.path().join("store"));
    // The file of one plan as well.
    let name = key(7).to_string();
    let file = directory.path().join("records-4/plans").join(&name[..2]).join(&name);
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();

    let opened = open_store(directory.path()).unwrap();
    let records = pinned(&opened);
    for byte in 1..=20 {
        let expected = encode_record(&[byte]);
        for space in [Space::Faults, Space::Replans, Space::Leases] {
            assert_eq!(opened.space(space).get(&key(byte)).unwrap().as_ref(), Some(&expected), "{}", space.name());
        }
        assert_eq!(opened.space(Space::Leases).summary(&key(byte)).unwrap(), Some(expected), "a renewal is there");
        if byte != 7 {
            let summary = records.summary(&key(byte)).unwrap().unwrap();
            let is_pinned = records.list(None, 99).unwrap().iter().any(|plan| plan.key() == key(byte) && plan.pinned);
            assert_eq!(is_pinned, byte != 20, "{byte}: {}", summary.pinned);
        }
    }
    assert!(matches!(records.get(&key(7)).unwrap(), Lookup::Quarantined(_)));
    records.put(&key(7), &plan(&key(7), 10)).unwrap();
    assert!(records.summary(&key(7)).unwrap().unwrap().pinned, "what is made again is pinned again");
    assert!(opened.upkeep.damages().contains(&("plans".to_owned(), 1)), "{:?}", opened.upkeep.damages());
}
