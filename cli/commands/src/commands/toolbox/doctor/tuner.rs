//! Advice for the tuner of stock NCCL: the plugin, its table, and what overrules both.

use std::path::Path;

use super::check::{Checks, shown};
use super::environment::Environment;
use super::job;
use super::log::{Log, Version};

/// The check of this module.
const CHECK: &str = "tuner";
/// Releases of NCCL that canopy's plugin is for, and those whose example plugin reads the table.
const RELEASES_OF_OURS: [[u32; 2]; 2] = [[2, 24], [2, 31]];
const RELEASES_OF_EXAMPLE: [[u32; 2]; 2] = [[2, 27], [2, 31]];

/// The release from which on NCCL reads `NCCL_ALGO` by other rules.
const ALGO_CHANGED: [u32; 2] = [2, 31];

/// Checks the way from NCCL to the table.
pub(super) fn check(checks: &mut Checks, environment: &Environment, log: Option<&Log>) {
    let before = checks.list().len();
    plugin(checks, environment, log);
    table(checks, environment, log);
    overruled(checks, environment, log);
    if let Some(version) = log.and_then(|log| log.nccl.as_ref()) {
        release(checks, version, is_ours(environment, log));
    }
    if checks.list().len() == before {
        checks.ok(CHECK, "the plugin and its table are named, and nothing overrules them");
    }
}

/// Whether the plugin is the one of deploy/nccl, by the name of its file or by what it prints.
fn is_ours(environment: &Environment, log: Option<&Log>) -> bool {
    let is_named =
        environment.get("NCCL_TUNER_PLUGIN").is_some_and(|path| path.to_ascii_lowercase().contains("canopy"));
    is_named || log.is_some_and(|log| log.tuner.iter().any(|line| line.contains("TUNER/Canopy")))
}

/// Whether a plugin reads the table in this release.
fn release(checks: &mut Checks, version: &Version, is_ours: bool) {
    let [major, minor, _] = version.numbers;
    let short = version.short();
    let [first, last] = if is_ours { RELEASES_OF_OURS } else { RELEASES_OF_EXAMPLE };
    let [first_of_ours, _] = RELEASES_OF_OURS;
    if [major, minor] < first_of_ours {
        let what = format!("NCCL {short} is older than 2.24, the first release with a plugin that reads the table");
        checks.problem(CHECK, what, "update NCCL to 2.24 or later, and build the plugin of deploy/nccl");
    } else if [major, minor] < first {
        let what = format!("NCCL {short} is older than 2.27, the first release whose example plugin reads the table");
        checks.problem(CHECK, what, "build the plugin of deploy/nccl, which is for 2.24 and later, or update NCCL");
    } else if [major, minor] > last {
        let what = format!("NCCL {short} is newer than 2.31, the last release whose plugin was compared");
        checks.unknown(CHECK, what, "look for `TUNER/` in the log of a run with NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING");
    }
}

/// Variables that mean other than they seem to.
fn overruled(checks: &mut Checks, environment: &Environment, log: Option<&Log>) {
    let release = log.and_then(|log| log.nccl.as_ref()).map(|version| version.numbers);
    if let Some(algorithms) = environment.get("NCCL_ALGO") {
        let what = format!("NCCL_ALGO is {}, which overrules the table", shown(algorithms));
        checks.problem(CHECK, what, "unset NCCL_ALGO");
        if release.is_some_and(|[major, minor, _]| [major, minor] >= ALGO_CHANGED) {
            let what = "NCCL 2.31 and later read NCCL_ALGO by other rules than releases before";
            checks.unknown(CHECK, what, "write it as the documentation of this release says, or unset it");
        }
    }
    job::settings(checks, environment, &["NCCL_CROSS_NIC"]);
}

fn plugin(checks: &mut Checks, environment: &Environment, log: Option<&Log>) {
    let lines = log.map_or(&[][..], |log| &log.tuner);
    let is_loaded = |line: &&String| line.contains("Using ") && !line.contains("internal");
    let is_failed = |line: &&String| {
        ["Could not find", "returned", "Using internal", "using internal"].iter().any(|word| line.contains(word))
    };
    match environment.get("NCCL_TUNER_PLUGIN") {
        None => checks.problem(
            CHECK,
            "NCCL_TUNER_PLUGIN is not set, so NCCL does not read the table",
            "export NCCL_TUNER_PLUGIN=/path/libnccl-tuner-canopy.so, built from deploy/nccl, or NVIDIA's example plugin of NCCL 2.27 and later",
        ),
        Some(path) if path.contains('/') && !Path::new(path).is_file() => {
            let what = format!("NCCL_TUNER_PLUGIN is {}, which does not exist here", shown(path));
            checks.problem(CHECK, what, "name the shared library of the plugin");
        }
        Some(_) => {
            if let Some(line) = lines.iter().find(is_failed).filter(|_| !lines.iter().any(|line| is_loaded(&line))) {
                let what = format!("NCCL did not load the plugin: {line}");
                checks.problem(CHECK, what, "build the plugin for this release of NCCL, and name its file with a path");
            }
        }
    }
}

fn table(checks: &mut Checks, environment: &Environment, log: Option<&Log>) {
    match environment.get("NCCL_TUNER_CONFIG_FILE") {
        None => checks.problem(
            CHECK,
            "NCCL_TUNER_CONFIG_FILE is not set, so the plugin has no table",
            "export NCCL_TUNER_CONFIG_FILE=/path/tuner.csv, as `canopy tools advise T --to nccl-csv` writes it",
        ),
        Some(path) => match std::fs::metadata(path) {
            Ok(found) if found.is_file() && found.len() > 0 => {}
            Ok(_) => {
                let what = format!("NCCL_TUNER_CONFIG_FILE is {}, which is not a table", shown(path));
                checks.problem(CHECK, what, "name the `tuner.csv` that canopy wrote");
            }
            Err(error) => {
                let what = format!("NCCL_TUNER_CONFIG_FILE is {}, which cannot be read: {error}", shown(path));
                checks.problem(CHECK, what, "name a file that every node of the job can read");
            }
        },
    }
    let lines = log.map_or(&[][..], |log| &log.tuner);
    let is_unread = |line: &&String| {
        let line = line.to_ascii_lowercase();
        line.contains("config") && (line.contains("not found") || line.contains("loaded 0 "))
    };
    if let Some(line) = lines.iter().find(is_unread) {
        let what = format!("the plugin has no rows: {line}");
        checks.problem(CHECK, what, "name the table in NCCL_TUNER_CONFIG_FILE with its full path");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn messages(pairs: &[(&str, &str)], lines: &str) -> Vec<String> {
        let pairs: BTreeMap<String, String> =
            pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut checks = Checks::default();
        let log = Log::of_bytes(lines.as_bytes());
        check(&mut checks, &Environment::default().with(&pairs), Some(&log));
        checks.list().iter().map(|check| check.message.clone()).collect()
    }

    #[test]
    fn the_plugin_its_table_and_what_overrules_them() {
        assert_eq!(messages(&[], "").len(), 2);
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("tuner.csv");
        std::fs::write(&csv, "allreduce,0,1,ring,simple,16,2,16,-1,-1\n").unwrap();
        let csv = csv.to_str().unwrap();
        let set = [("NCCL_TUNER_PLUGIN", "example"), ("NCCL_TUNER_CONFIG_FILE", csv)];
        assert_eq!(messages(&set, ""), ["the plugin and its table are named, and nothing overrules them"]);
        let failed = "a:1:1 [0] NCCL INFO TUNER/Plugin: Could not find: example\n\
                      a:1:1 [0] NCCL INFO TUNER/Plugin: Using internal tuner plugin.";
        assert!(messages(&set, failed)[0].starts_with("NCCL did not load the plugin"));
        let unread = "a:1:1 [0] NCCL INFO TUNER/Plugin: Using Example (v4)\n\
                      a:1:1 [0] NCCL INFO TUNER/ExamplePlugin: Config file x.csv not found, using defaults";
        assert!(messages(&set, unread)[0].starts_with("the plugin has no rows"));
        let overruled = [set[0], set[1], ("NCCL_ALGO", "Ring")];
        assert_eq!(messages(&overruled, "NCCL version 2.20.5+cuda12.4").len(), 2);
        let changed = messages(&overruled, "NCCL version 2.31.1+cuda13.0");
        assert!(changed.len() == 2 && changed[1].contains("by other rules"), "{changed:?}");
        for (value, said) in [("0", "by which it came"), ("1", "from rail to rail")] {
            let crossing = messages(&[set[0], set[1], ("NCCL_CROSS_NIC", value)], "");
            assert!(crossing.len() == 1 && crossing[0].contains(said), "{crossing:?}");
        }
        assert_eq!(messages(&[set[0], set[1], ("NCCL_CROSS_NIC", "2")], "").len(), 1);
        let ours = ("NCCL_TUNER_PLUGIN", "libnccl-tuner-canopy.so");
        for (plugin, release, said) in [
            (set[0], "2.23.4", "the first release with a plugin"),
            (ours, "2.23.4", "the first release with a plugin"),
            (set[0], "2.25.1", "the first release whose example plugin"),
            (ours, "2.25.1", "nothing overrules them"),
            (set[0], "2.27.3", "nothing overrules them"),
            (ours, "2.31.1", "nothing overrules them"),
            (ours, "2.32.1", "newer than 2.31"),
        ] {
            let found = messages(&[plugin, set[1]], &format!("NCCL version {release}+cuda12.4"));
            assert!(found.len() == 1 && found[0].contains(said), "{plugin:?} {release}: {found:?}");
        }
    }
}
