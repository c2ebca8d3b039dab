//! Files of the store that are not as they were left, through the real binaries: the start succeeds, what is damaged is
//! moved aside, everything else is served byte for byte.

use std::fs;
use std::path::{Path, PathBuf};

use canopy_tests::{Bench, Daemon, Run};

const PLANS: usize = 8;

/// A data folder with some plans, closed in order, and the bytes of their files.
fn filled(bench: &Bench) -> Vec<Vec<u8>> {
    let daemon = Daemon::start(bench, &[]);
    let plans = (0..PLANS).map(|number| plan(bench, &daemon, number, "miss")).collect();
    // A job whose end is not written down yet would be begun again.
    daemon.stop();
    plans
}

/// The bytes of one of the plans; asserts how the cache took part.
fn plan(bench: &Bench, daemon: &Daemon, number: usize, cache: &str) -> Vec<u8> {
    let (topology, path) = (format!("ring:{}", number + 3), bench.file("plan.json"));
    let name = path.to_str().expect("temporary paths are text");
    let arguments = ["plan", &topology, "-c", "allgather", "-o", name, "--json", "--server", daemon.address()];
    let reply = bench.canopy(&arguments).exits(0).json();
    assert_eq!(reply["cache"], cache, "plan {number}");
    fs::read(&path).expect("the plan was written")
}

/// All files below a folder, in order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Flips one bit in the middle of what a file has written.
fn flip(file: &Path) {
    let mut bytes = fs::read(file).expect("a file of the store");
    let written = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes[written / 2] ^= 0x08;
    fs::write(file, bytes).expect("a writable folder");
}

fn cut(file: &Path) {
    let bytes = fs::read(file).expect("a file of the store");
    fs::write(file, &bytes[..bytes.len() / 3]).expect("a writable folder");
}

fn maintain(bench: &Bench, arguments: &[&str]) -> Run {
    Run::from(bench.command("canopyd").args(arguments).output().expect("canopyd starts"))
}

#[test]
fn damage_to_the_database_costs_no_plan() {
    for damage in [flip, cut] {
        let bench = Bench::default();
        let daemon = Daemon::start(&bench, &[]);
        let plans: Vec<_> = (0..PLANS).map(|number| plan(&bench, &daemon, number, "miss")).collect();
        drop(daemon);
        let store = bench.file("data/store");
        files(&store).iter().filter(|file| fs::metadata(file).is_ok_and(|data| data.len() > 0)).for_each(|file| {
            damage(file);
        });
        let daemon = Daemon::start(&bench, &[]);
        for (number, content) in plans.iter().enumerate() {
            assert_eq!(&plan(&bench, &daemon, number, "hit"), content, "plan {number}");
        }
    }
}

#[test]
fn damage_to_the_file_of_a_plan_costs_that_plan_alone() {
    for damage in [flip, cut] {
        let bench = Bench::default();
        let plans = filled(&bench);
        let victims = files(&bench.file("data/records-4/plans"));
        assert_eq!(victims.len(), PLANS, "a file for each plan");
        damage(&victims[PLANS / 2]);
        let checked = maintain(&bench, &["fsck"]).exits(2);
        assert!(checked.stdout.contains("7 plans of") && checked.stdout.contains("1 damaged"), "{}", checked.stdout);
        let repaired = maintain(&bench, &["fsck", "--repair"]).exits(0);
        assert!(repaired.stdout.contains("in quarantine now"), "{}", repaired.stdout);
        maintain(&bench, &["fsck"]).exits(0);
        let daemon = Daemon::start(&bench, &[]);
        let path = bench.file("plan.json");
        let name = path.to_str().expect("temporary paths are text");
        // The damaged one is made again from its schedule.
        for (number, content) in plans.iter().enumerate() {
            let topology = format!("ring:{}", number + 3);
            let arguments = ["plan", &topology, "-c", "allgather", "-o", name, "--json", "--server", daemon.address()];
            let reply = bench.canopy(&arguments).exits(0).json();
            assert_eq!(reply["cache"], "hit");
            assert_eq!(&fs::read(&path).expect("the plan was written"), content, "plan {number}");
        }
        assert_eq!(files(&bench.file("data/records-4/plans")).len(), PLANS + 1, "one is in quarantine");
    }
}

/// Without a check before it: the damage is met when the plan is asked for. While the schedule is there, nothing has to be
/// searched for; a damaged schedule is met in the same way.
#[test]
fn a_damaged_plan_is_quarantined_when_it_is_met_and_made_again() {
    let bench = Bench::default();
    let plans = filled(&bench);
    // While plans are intact, nobody looks at their schedules.
    for (spaces, cache) in [(&["plans"][..], "hit"), (&["plans", "schedules"], "miss")] {
        for space in spaces {
            files(&bench.file(&format!("data/records-4/{space}"))).iter().for_each(|file| flip(file));
        }
        let daemon = Daemon::start(&bench, &[]);
        for (number, content) in plans.iter().enumerate() {
            assert_eq!(&plan(&bench, &daemon, number, cache), content, "plan {number}");
            assert_eq!(&plan(&bench, &daemon, number, "hit"), content, "plan {number}");
        }
        daemon.stop();
        for space in spaces {
            let quarantined = files(&bench.file(&format!("data/records-4/{space}/quarantine")));
            assert_eq!(quarantined.len(), PLANS, "{space}");
            quarantined.iter().for_each(|file| fs::remove_file(file).expect("a writable folder"));
        }
        maintain(&bench, &["fsck"]).exits(0);
    }
}
