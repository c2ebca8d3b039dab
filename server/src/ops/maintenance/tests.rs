use canopy_planner::PlanKey;
use canopy_wire::StoredPlan;
use clap::Parser;

use super::*;
use crate::store::{Lookup, Records, Space};

mod databases;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    server: ServerFlags,
    #[command(subcommand)]
    command: MaintenanceCommand,
}

/// What a command writes, and how it ends.
fn run(directory: &Path, arguments: &[&str]) -> (String, Result<(), MaintenanceError>) {
    let directory = directory.display().to_string();
    let arguments = [&["canopyd"], arguments, &["--data-dir", &directory]].concat();
    let arguments = Arguments::try_parse_from(arguments).unwrap();
    let mut output = Vec::new();
    let result = run_maintenance(&arguments.command, arguments.server, &mut output);
    (String::from_utf8(output).unwrap(), result)
}

fn key(byte: u8) -> PlanKey {
    PlanKey::from_bytes([byte; 32])
}

fn plan(key: &PlanKey) -> StoredPlan {
    let mut stored = StoredPlan::default();
    stored.plan.content_key = key.to_string();
    stored
}

/// A data directory with two plans, one of them pinned.
fn filled() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let records = Records::new(open_store(directory.path()).unwrap().into_space(Space::Plans));
    for byte in [1, 2] {
        records.put(&key(byte), &plan(&key(byte))).unwrap();
    }
    records.pin(&key(2)).unwrap();
    directory
}

#[test]
fn a_backup_brings_back_what_was_lost() {
    let directory = filled();
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("plans.canopy");
    let name = file.to_str().unwrap();
    let (text, result) = run(directory.path(), &["backup", name]);
    result.unwrap();
    assert!(text.starts_with("2 plans, 0 topologies, 0 clusters, 0 leases and 0 faults written"), "{text}");
    let fresh = elsewhere.path().join("data");
    let (text, result) = run(&fresh, &["restore", name]);
    result.unwrap();
    assert!(text.starts_with("2 plans, 0 topologies, 0 clusters, 0 leases and 0 faults restored"), "{text}");
    let records = Records::new(open_store(&fresh).unwrap().into_space(Space::Plans));
    assert_eq!(records.get(&key(1)).unwrap(), Lookup::Found(plan(&key(1)).into()));
    assert!(records.summary(&key(2)).unwrap().unwrap().pinned);
    assert!(!elsewhere.path().join("plans.canopy.partial").exists());
}

#[test]
fn a_damaged_backup_is_refused_whole() {
    let directory = filled();
    let file = directory.path().join("plans.canopy");
    run(directory.path(), &["backup", file.to_str().unwrap()]).1.unwrap();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let fresh = directory.path().join("fresh");
    let error = run(&fresh, &["restore", file.to_str().unwrap()]).1.unwrap_err();
    assert!(error.describe().contains("nothing was imported"), "{}", error.describe());
    assert_eq!(error.exit_status(), 2);
    assert_eq!(
        run(&fresh, &["fsck"]).0,
        "\
0 plans of 0 bytes intact, 0 damaged, 0 in quarantine
0 topologies of 0 bytes intact, 0 damaged, 0 in quarantine
0 jobs of 0 bytes intact, 0 damaged, 0 in quarantine
0 requests of 0 bytes intact, 0 damaged, 0 in quarantine
0 schedules of 0 bytes intact, 0 damaged, 0 in quarantine
0 finds of 0 bytes intact, 0 damaged, 0 in quarantine
0 faults of 0 bytes intact, 0 damaged, 0 in quarantine
0 leases of 0 bytes intact, 0 damaged, 0 in quarantine
0 replans of 0 bytes intact, 0 damaged, 0 in quarantine
0 clusters of 0 bytes intact, 0 damaged, 0 in quarantine
"
    );
}

#[test]
fn a_check_fails_until_the_store_is_repaired() {
    let directory = filled();
    let clean = run(directory.path(), &["fsck"]);
    assert!(clean.1.is_ok() && clean.0.starts_with("2 plans of "), "{}", clean.0);
    {
        let store = open_store(directory.path()).unwrap().into_space(Space::Plans);
        store.put(&key(1), b"no record", b"no summary").unwrap();
    }
    let (text, result) = run(directory.path(), &["fsck"]);
    assert!(text.contains("shorter than its header") && text.contains("1 damaged, 0 in quarantine"), "{text}");
    assert_eq!(result.unwrap_err().exit_status(), 2);
    let (text, result) = run(directory.path(), &["fsck", "--repair"]);
    assert!(text.contains("; in quarantine now") && result.is_ok(), "{text}");
    let (text, result) = run(directory.path(), &["fsck"]);
    assert!(text.contains("0 damaged, 1 in quarantine") && result.is_ok(), "{text}");
}

#[test]
fn a_store_in_use_and_one_that_is_not_there_are_refused() {
    let directory = filled();
    let _server = open_store(directory.path()).unwrap();
    assert_eq!(run(directory.path(), &["fsck"]).1.unwrap_err().exit_status(), 6);
    let nowhere = directory.path().join("nowhere");
    let error = run(&nowhere, &["backup", "/dev/null"]).1.unwrap_err();
    assert!(matches!(error, MaintenanceError::NoStore { .. }), "{error}");
    assert!(!nowhere.exists(), "nothing is made");
}

#[test]
fn the_directory_may_be_named_before_the_command_and_after_it() {
    for arguments in [["--data-dir", "/d", "fsck"], ["fsck", "--data-dir", "/d"]] {
        let arguments = Arguments::try_parse_from([&["canopyd"], &arguments[..]].concat()).unwrap();
        assert_eq!(arguments.server.into_options().unwrap().data_dir, Path::new("/d"));
    }
}

#[test]
fn an_up_to_date_store_has_nothing_to_migrate() {
    let directory = filled();
    for arguments in [&["migrate", "--dry-run"][..], &["migrate"]] {
        let (text, result) = run(directory.path(), arguments);
        assert!(result.is_ok() && text == "nothing to do\n", "{text}");
    }
}
