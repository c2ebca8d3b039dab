//! Records in files: the files are what counts, whatever becomes of the database beside them.

use super::*;

/// The file of a plan.
fn file_of(directory: &Path, key: &PlanKey) -> PathBuf {
    let name = key.to_string();
    directory.join("records-4/plans").join(&name[..2]).join(name)
}

const PLANS: std::ops::Range<u8> = 0..20;

/// A directory with some plans, the fourth pinned, and a topology.
fn filled() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let opened = open_all(directory.path());
    opened.space(Space::Topologies).put(&key(1), &encode_record(b"topology"), &encode_record(b"summary")).unwrap();
    let records = Records::new(opened.into_space(Space::Plans));
    for byte in PLANS {
        records.put(&key(byte), &plan(&key(byte), 1000 * usize::from(byte))).unwrap();
    }
    records.pin(&key(3)).unwrap();
    directory
}

/// All plans are served, and what is known of them is what it was.
fn check_whole(opened: Opened) {
    let topologies = opened.space(Space::Topologies);
    let topology = (topologies.get(&key(1)).unwrap(), topologies.summary(&key(1)).unwrap());
    assert_eq!(topology, (Some(encode_record(b"topology")), Some(encode_record(b"summary"))));
    assert!(check_store(Space::Plans, opened.space(Space::Plans).as_ref(), Repair::Report, 0).unwrap().is_clean());
    let records = Records::new(opened.into_space(Space::Plans));
    for byte in PLANS {
        let stored = plan(&key(byte), 1000 * usize::from(byte));
        assert_eq!(records.get(&key(byte)).unwrap(), Lookup::Found(stored.into()), "{byte}");
        assert_eq!(records.summary(&key(byte)).unwrap().unwrap().pinned, byte == 3, "{byte}");
    }
}

#[test]
fn a_database_that_is_gone_is_made_again_from_the_files() {
    let directory = filled();
    fs::remove_dir_all(directory.path().join("store")).unwrap();
    let opened = open_store(directory.path()).unwrap();
    assert_eq!(opened.recovery, Recovery { restored: 21, ..Recovery::default() });
    assert!(opened.migration.is_none() && opened.moved_aside.is_none());
    check_whole(opened);
    check_whole(open_all(directory.path()));
}

#[test]
fn a_database_that_is_garbage_costs_no_plan() {
    let directory = filled();
    let database = directory.path().join("store/db");
    fs::write(&database, [0x5A; 4096]).unwrap();
    let opened = open_store(directory.path()).unwrap();
    assert_eq!(opened.recovery.restored, 21);
    check_whole(opened);
}

#[test]
fn a_flipped_bit_in_a_file_costs_that_plan_alone() {
    let origin = filled();
    let (victim, file) = (key(9), file_of(origin.path(), &key(9)));
    let length = fs::read(&file).unwrap().len();
    for position in (0..length).step_by(997) {
        let mut bytes = fs::read(&file).unwrap();
        bytes[position] ^= 1;
        fs::write(&file, &bytes).unwrap();
        let records = Records::new(open(origin.path()));
        assert!(matches!(records.get(&victim).unwrap(), Lookup::Quarantined(_)), "byte {position}");
        for byte in PLANS.filter(|&byte| key(byte) != victim) {
            assert!(matches!(records.get(&key(byte)).unwrap(), Lookup::Found(_)), "{byte}");
        }
        assert_eq!(records.usage().unwrap().quarantined, 1);
        records.put(&victim, &plan(&victim, 9000)).unwrap();
    }
}

#[test]
fn a_cut_file_is_quarantined_with_or_without_a_database() {
    for length in [0, 1, 71, 72, 100, 5000] {
        let directory = filled();
        let file = File::options().write(true).open(file_of(directory.path(), &key(9))).unwrap();
        file.set_len(length).unwrap();
        let opened = open(directory.path());
        let report = check_store(Space::Plans, opened.as_ref(), Repair::Fix, 0).unwrap();
        assert_eq!((report.damaged.len(), report.quarantined), (1, 1), "{length} bytes");
        drop(opened);
        let report = check_store(Space::Plans, open(directory.path()).as_ref(), Repair::Report, 0).unwrap();
        assert!(report.is_clean() && report.intact == 19, "{length} bytes");
    }
    let directory = filled();
    File::options().write(true).open(file_of(directory.path(), &key(9))).unwrap().set_len(50).unwrap();
    fs::remove_dir_all(directory.path().join("store")).unwrap();
    let opened = open_store(directory.path()).unwrap();
    assert_eq!(opened.recovery, Recovery { restored: 20, lost: 0, quarantined: 1 });
}

#[test]
fn a_file_that_is_gone_or_unfinished_is_no_plan_and_a_strange_one_stays() {
    let directory = filled();
    fs::remove_file(file_of(directory.path(), &key(9))).unwrap();
    let unfinished = directory.path().join("records-4/plans/09/.new-abcdef");
    let strange = directory.path().join("records-4/plans/09/read me");
    fs::write(&unfinished, b"half a record").unwrap();
    fs::write(&strange, b"by a person").unwrap();
    let opened = open_store(directory.path()).unwrap();
    assert_eq!(opened.recovery, Recovery { lost: 1, ..Recovery::default() });
    assert!(!unfinished.exists() && strange.exists());
    assert!(check_store(Space::Plans, opened.space(Space::Plans).as_ref(), Repair::Report, 0).unwrap().is_clean());
    let records = Records::new(opened.into_space(Space::Plans));
    assert_eq!(records.get(&key(9)).unwrap(), Lookup::Missing);
    assert_eq!(records.list(None, 99).unwrap().len(), 19);
}

/// The file under one name with what belongs to another: a file system that mixes them up must not mix up plans.
#[test]
fn a_file_under_the_name_of_another_is_quarantined() {
    let directory = filled();
    fs::copy(file_of(directory.path(), &key(8)), file_of(directory.path(), &key(9))).unwrap();
    let records = Records::new(open(directory.path()));
    assert!(matches!(records.get(&key(9)).unwrap(), Lookup::Quarantined(_)));
    assert!(matches!(records.get(&key(8)).unwrap(), Lookup::Found(_)));
}

#[test]
fn files_of_a_newer_version_are_refused_even_without_a_database() {
    let directory = tempfile::tempdir().unwrap();
    let newer = canopy_migrations::current_version() + 1;
    fs::create_dir_all(directory.path().join(format!("records-{newer}/plans"))).unwrap();
    let Err(error) = open_store(directory.path()) else { panic!("newer data was opened") };
    assert!(canopy_planner::chain(&error).contains(&format!("schema version {newer}")), "{error}");
    assert!(directory.path().join(format!("records-{newer}/plans")).exists());
}
