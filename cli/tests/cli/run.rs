//! `canopy tools run`: plans are executed by real processes, and none of them is left behind.

use crate::support::{Workspace, check_members};

/// A plan that somebody wrote by hand.
const HAND_MADE: &str = include_str!("../../../crates/plan/tests/oneccl_files/allreduce_pair.xml");

const MEMBERS: [&str; 13] = [
    "canopy",
    "command",
    "ok",
    "collective",
    "ranks",
    "instances",
    "type",
    "size_bytes",
    "time_us",
    "algbw_GBps",
    "busbw_GBps",
    "messages",
    "bytes_sent",
];

/// Processes whose parent is this one, as the system lists them.
fn children(parent: u32) -> Vec<u32> {
    let numbers =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let parent_of = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name in parentheses may hold anything.
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    numbers.filter(|process| parent_of(process) == Some(parent)).collect()
}

#[test]
fn a_hand_made_plan_runs_on_every_type_and_length() {
    let workspace = Workspace::new();
    workspace.write("pair.xml", HAND_MADE);
    for (element, size) in [("float32", "4"), ("float64", "1000"), ("int32", "12"), ("int64", "65536")] {
        let run = workspace.json(&format!("run pair.xml --type {element} --size {size} --seed 3 --json"));
        check_members(&run, &[&MEMBERS[..], &["wrong"]].concat());
        assert_eq!((&run["ok"], &run["ranks"], &run["messages"]), (&true.into(), &2.into(), &4.into()));
        // Each rank sends half of the message to be added, and half of the sums.
        assert_eq!(run["bytes_sent"], 2 * size.parse::<u64>().unwrap());
    }
    // Parallel copies, each with its part of every chunk.
    workspace.write("copies.xml", HAND_MADE.replace("instances=\"1\"", "instances=\"3\""));
    let run = workspace.json("run copies.xml --size 4KiB --json");
    assert_eq!((&run["ok"], &run["messages"], &run["bytes_sent"]), (&true.into(), &12.into(), &8192.into()));
    // Everybody waits for everybody, twice in each step.
    workspace.write(
        "joined.xml",
        HAND_MADE.replace("scope=\"local\"", "scope=\"all\"").replace("</step>", "<sync scope=\"all\"/></step>"),
    );
    assert_eq!(workspace.json("run joined.xml --size 4KiB --delays 2ms --json")["ok"], true);
}

#[test]
fn what_cannot_be_run_is_refused() {
    let workspace = Workspace::new();
    workspace.write("pair.xml", HAND_MADE);
    workspace.refused("run pair.xml --size 6", 2, &["6 bytes are not a whole number of float32", "such as 4 or 8"]);
    workspace.refused("run pair.xml --size 1TiB", 2, &["over the limit of", "lower --size"]);
    workspace.refused("run missing.xml", 2, &["missing.xml: no such file"]);
    workspace.write("bad.xml", HAND_MADE.replacen("off=\"1\"", "off=\"0\"", 1));
    workspace.refused("run bad.xml", 2, &["bad.xml is not right: meaning, rank", "canopy verify bad.xml"]);
    workspace.write("other.xml", "<algo/>");
    workspace.refused("run other.xml", 2, &["neither a oneCCL plan nor a plan in canopy's JSON"]);
    workspace.write("small.xml", HAND_MADE.replace("maxbytes=\"0\"", "maxbytes=\"100\""));
    workspace.refused("run small.xml --size 104", 2, &["up to 100 bytes, not for 104"]);
    workspace.refused("run pair.xml --delays 30s --deadline 300ms", 5, &["deadline exceeded (300ms)"]);
}

#[test]
fn eight_ranks_move_real_bytes() {
    let workspace = Workspace::new();
    for (kind, options) in
        [("allreduce", ""), ("all-to-all", ""), ("reduce-scatter", " --in-place"), ("scatter", " --root 5")]
    {
        let plan = format!("plan ring:8 --collective {kind}{options} --format oneccl-xml -o plan.xml --json");
        workspace.json(&plan);
        for delays in ["0", "3ms"] {
            let run = workspace.json(&format!("run plan.xml --size 256KiB --delays {delays} --seed 9 --json"));
            assert_eq!((&run["ok"], &run["collective"], &run["ranks"]), (&true.into(), &kind.into(), &8.into()));
        }
    }
    workspace.json("plan torus:2x3 --collective allgather -o plan.json --json");
    let lowered = workspace.json("run plan.json --size 600000 --type int32 --json");
    assert_eq!((&lowered["ok"], &lowered["type"]), (&true.into(), &"int32".into()));
    // Each of six ranks receives five sixths of it.
    assert_eq!(lowered["bytes_sent"], 6 * 500_000);
}

/// One rank is killed in the middle of a run that would take minutes: the command says which, and takes the others along.
#[test]
fn a_rank_that_dies_ends_the_run_at_once() {
    let workspace = Workspace::new();
    workspace.json("plan ring:4 --collective allreduce --format oneccl-xml -o plan.xml --json");
    let mut command = workspace.command("run plan.xml --delays 60s --deadline 5m");
    let piped = std::process::Stdio::piped;
    let running = command.stdout(piped()).stderr(piped()).spawn().unwrap();
    let mut ranks = Vec::new();
    while ranks.len() < 4 {
        ranks = children(running.id());
        std::thread::yield_now();
    }
    let killed = std::process::Command::new("kill").args(["-KILL", &ranks[2].to_string()]).status().unwrap();
    assert!(killed.success());
    let output = running.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("ended early: signal: 9"), "{said}");
    for rank in ranks {
        assert!(!std::path::Path::new(&format!("/proc/{rank}")).exists(), "rank process {rank} is left behind");
    }
}
