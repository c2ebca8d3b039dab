//! `canopy tools lab`: plans reach their rates on an emulated network, links carry what the plan puts on them, a link that
//! fails is gone, and nothing is left behind. A program of its own: it measures times.
#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use canopy_prerequisites::has_network_namespaces;
use serde_json::Value;

#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "shared with the other tests of the command")]
mod support;

use support::Workspace;

/// One lab at a time: several would measure each other.
static MACHINE: Mutex<()> = Mutex::new(());

/// Least part of the simulated rate that the best of three runs reaches on a shared machine.
const SIMULATED_LEAST: f64 = 0.85;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What holds for every plan that ran.
fn check(entry: &Value) {
    let to_simulated = number(&entry["best_to_simulated"]);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    assert!(to_simulated >= SIMULATED_LEAST, "{to_simulated} of the simulated rate, load {load}: {entry}");
    // More than large messages can have: limits are not in force.
    assert!(number(&entry["best_to_predicted"]) <= 1.0, "{entry}");
    let mut used = 0;
    for link in entry["links"].as_array().unwrap() {
        let [planned, answered, counted] =
            ["planned_bytes", "answered_bytes", "counted_bytes"].map(|name| number(&link[name]));
        // Heads of frames, and answers to what came the other way, or to others whose shortest path this is.
        assert!(counted >= planned && counted <= planned * 1.03 + answered * 0.02 + 30_000.0, "{link} in {entry}");
        used += u32::from(planned > 0.0);
    }
    assert!(used > 0);
}

#[test]
fn plans_reach_their_rates_and_links_carry_their_loads() {
    if !has_network_namespaces() {
        return;
    }
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let workspace = Workspace::new();
    for (network, kind) in
        [("ring:3", "allreduce"), ("dgx-a100:gpus=4", "allgather"), ("mesh:2x2,degrade=00-01*1/2", "all-to-all")]
    {
        let report = workspace.json(&format!("lab {network} -c {kind} --time 1s --json"));
        let entries = report["entries"].as_array().unwrap();
        assert_eq!((entries.len(), &entries[0]["network"]), (1, &network.into()));
        assert_eq!(entries[0]["measured_GBps"].as_array().unwrap().len(), 3);
        check(&entries[0]);
    }
}

#[test]
fn a_link_that_fails_is_gone_and_the_repaired_plan_keeps_its_rate() {
    if !has_network_namespaces() {
        return;
    }
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let workspace = Workspace::new();
    let report = workspace.json("lab torus:3x3 -c allgather --time 1s --fail link:00=01 --plot lab.svg --json");
    let entries = report["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    let [before, after] = [&entries[0], &entries[1]];
    assert_eq!(after["failed"], "link:00=01");
    assert!(number(&after["predicted_GBps"]) < number(&before["predicted_GBps"]));
    entries.iter().for_each(check);
    let ends = |entry: &Value| -> BTreeSet<(String, String)> {
        let links = entry["links"].as_array().unwrap().iter();
        let name = |value: &Value| value.as_str().unwrap().to_owned();
        links.map(|link| (name(&link["from"]), name(&link["to"]))).collect()
    };
    let gone: Vec<_> = ends(before).difference(&ends(after)).cloned().collect();
    assert_eq!(gone, [("00".to_owned(), "01".to_owned()), ("01".to_owned(), "00".to_owned())]);
    let drawing = String::from_utf8(workspace.read("lab.svg")).unwrap();
    assert!(drawing.starts_with("<svg") && drawing.contains("after link:00=01"));
}

/// Processes of this program that belong to a lab, and the devices of this machine.
fn traces() -> (Vec<u32>, BTreeSet<String>) {
    let numbers =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_of_lab = |process: &u32| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains(env!("CARGO_BIN_EXE_canopy")) && line.contains("lab-")
    };
    let devices = std::fs::read_to_string("/proc/net/dev").unwrap();
    let devices = devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    (numbers.filter(is_of_lab).collect(), devices)
}

#[test]
fn a_killed_lab_leaves_nothing_behind() {
    if !has_network_namespaces() {
        return;
    }
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let workspace = Workspace::new();
    let (_, devices) = traces();
    // Killed while ranks run, and interrupted, which is said.
    for (signal, status) in [("-KILL", None), ("-INT", Some(130))] {
        let mut command = workspace.command("lab ring:3 -c allgather --time 5s --runs 50");
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The helper and its ranks, by `unshare` and by themselves.
        while traces().0.len() < 5 {
            assert_eq!(running.try_wait().unwrap(), None, "the lab ended by itself");
            std::thread::yield_now();
        }
        let told = std::process::Command::new("kill").args([signal, &running.id().to_string()]).status().unwrap();
        assert!(told.success());
        assert_eq!(running.wait().unwrap().code(), status);
        // The kernel ends them, one after the other: if it did not, this test would not end.
        while !traces().0.is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(traces().1, devices, "the machine has other devices than before");
    }
}

#[test]
fn what_no_lab_holds_is_refused() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let workspace = Workspace::new();
    workspace.refused("lab ring:41 -c allgather", 2, &["41 nodes", "at most 40"]);
    workspace.refused("lab ring:3", 2, &["needs a collective", "add `-c allgather`"]);
    workspace.refused("lab ring:3 -c allgather --scale 2Mbit", 2, &["is not a scale", "1GBps=2Mbit"]);
    workspace.refused("lab ring:3 -c allgather --scale 1GBps=1kbit", 2, &["another scale"]);
    workspace.refused("lab ring:3 -c allgather --size 1TiB", 2, &["smaller size"]);
    workspace.refused("lab ring:3 -c allgather --time 1h", 2, &["between 100ms and 60s"]);
    workspace.refused("lab ring:3 -c allgather --fail gpu:0", 2, &["takes links down", "name links"]);
    workspace.refused("lab ring:3 -c allgather --fail link:0=7", 2, &["7"]);
    // The helper touches nothing where it is not in namespaces that were made for it.
    workspace.refused("lab-inside net:[1] mnt:[1]", 2, &["in namespaces of its own only"]);
    let mut command = workspace.command("lab ring:3 -c allgather");
    let run = support::Run::of(command.env("PATH", "/nowhere").output().unwrap());
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.contains("which is missing") && run.stderr.contains("install the package"), "{}", run.stderr);
}
