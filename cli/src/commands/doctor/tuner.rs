//! Advice for the tuner of stock NCCL: the plugin, its table, and what overrules both.

use std::path::Path;

use super::check::{Checks, shown};
use super::environment::Environment;
use super::log::Log;

/// The check of this module.
const CHECK: &str = "tuner";
/// Releases of NCCL whose example plugin reads the table.
const RELEASES: [[u32; 2]; 2] = [[2, 27], [2, 31]];

/// The release from which on NCCL reads `NCCL_ALGO` by other rules.
const ALGO_CHANGED: [u32; 2] = [2, 31];

/// Checks the way from NCCL to the table.
pub(super) fn check(checks: &mut Checks, environment: &Environment, log: Option<&Log>) {
    let before = checks.list().len();
    plugin(checks, environment, log);
    table(checks, environment, log);
    overruled(checks, environment, log);
    if let Some(version) = log.and_then(|log| log.nccl.as_ref()) {
        let [major, minor, _] = version.numbers;
        let [first, last] = RELEASES;
        if [major, minor] < first {
            let what = format!("NCCL {} is older than 2.27, whose example plugin reads the table", version.short());
            checks.problem(CHECK, what, "update NCCL to 2.27 or later, and build the plugin of that release");
        } else if [major, minor] > last {
            let what =
                format!("NCCL {} is newer than 2.31, the last release whose plugin was compared", version.short());
            checks.unknown(CHECK, what, "look for `TUNER/` in the log of a run with NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING");
        }
    }
    if checks.list().len() == before {
        checks.ok(CHECK, "the plugin and its table are named, and nothing overrules them");
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
    match environment.number("NCCL_CROSS_NIC") {
        Some(0) => {
            let what = "NCCL_CROSS_NIC is 0: a ring leaves a machine by the NIC by which it came";
            let help = "where each GPU has a NIC of its own, unset it: rings stay on their rails anyway";
            checks.unknown(CHECK, what, help);
        }
        Some(1) => {
            let what = "NCCL_CROSS_NIC is 1: rings may go from rail to rail, over the spine";
            checks.unknown(CHECK, what, "on a fabric of rails, unset it");
        }
        _ => {}
    }
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
            "export NCCL_TUNER_PLUGIN=/path/libnccl-tuner-canopy.so, built from deploy/nccl, or NVIDIA's example plugin",
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
            "export NCCL_TUNER_CONFIG_FILE=/path/tuner.csv, as `canopy plan … --profile nccl` writes it",
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
    }
}
