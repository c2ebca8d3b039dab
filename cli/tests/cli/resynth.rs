//! `canopy faults resynth`: plans after faults, and what they are worth, through the real program.

use crate::support::{Workspace, check_members};

const MEMBERS: [&str; 7] = ["canopy", "command", "faults", "survivors", "collective", "plans", "restart"];
const PLAN: [&str; 8] = ["stage", "after_ms", "plan", "algorithm", "algbw", "algbw_GBps", "bound", "optimality"];

/// What a slow link leaves of the plan that runs is exact, and so is what a new one gains.
#[test]
fn an_old_plan_that_still_runs_is_weighed_on_what_is_left() {
    let workspace = Workspace::new();
    let report =
        workspace.json("resynth ring:4 --fault link:0=1*1/2 --collective allgather --size 3MB -o plan.json --json");
    check_members(&report, &MEMBERS);
    let plans = report["plans"].as_array().unwrap();
    plans.iter().for_each(|plan| check_members(plan, &PLAN));
    let last = plans.last().unwrap();
    assert_eq!(report["faults"], serde_json::json!(["link:0=1*1/2"]));
    assert_eq!(report["survivors"], serde_json::json!([0, 1, 2, 3]));
    // Links of 25 GB/s carry 3/2 shares of a quarter each: the half one 12.5 GB/s · 4 / 1.5. A rank next to it takes three
    // shares over 37.5 GB/s.
    let restart = &report["restart"];
    assert_eq!((&restart["old"]["runs"], &restart["old"]["algbw"]), (&true.into(), &"100000000000/3".into()));
    assert_eq!((&last["algbw"], &restart["new"]["algbw"]), (&"50000000000".into(), &"50000000000".into()));
    assert_eq!((&restart["new"]["time_ms"], &restart["gain"]), (&0.06.into(), &1.5.into()));
    let written = workspace.json("verify plan.json --json");
    assert_eq!(written["algbw"], last["algbw"]);
}

/// A plan over what is gone does not run, and the reason is said.
#[test]
fn an_old_plan_over_what_is_gone_does_not_run() {
    let workspace = Workspace::new();
    for (fault, why) in [
        ("link:00=01", "which the network does not have"),
        (
            "gpu:22",
            "the network has 8 ranks, but \
         the plan is for 9",
        ),
    ] {
        let report = workspace.json(&format!("resynth torus:3x3 --fault {fault} -c allgather --json"));
        let old = &report["restart"]["old"];
        assert_eq!(old["runs"], false);
        assert!(old["reason"].as_str().unwrap().contains(why), "{old}");
        assert!(report["restart"]["gain"].as_f64().unwrap() > 1.0);
    }
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let workspace = Workspace::new();
    workspace.refused("resynth ring:4 --fault link:0=1 --fault link:2=3 -c allgather", 3, &["split in two"]);
    workspace.refused("resynth ring:4 --fault gpu:9 -c allgather", 2, &["--fault: fault 0"]);
    workspace.refused("resynth ring:4 --fault moon:9 -c allgather", 2, &["unknown target"]);
    workspace.refused("resynth ring:4 -c allgather", 2, &["--fault"]);
}
