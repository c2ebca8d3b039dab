//! Plans by a rule, for more ranks than trees can be written down for, and files of single ranks.

use crate::support::{Workspace, check_members};

/// 8,000 ranks, of which 5,792 may have a tree each.
const BOXES: &str = "dgx-h100:boxes=1000,faults=nics:1+seed:1";

#[test]
fn a_plan_for_thousands_of_ranks_is_a_rule_and_each_rank_has_its_file() {
    let workspace = Workspace::new();
    let planned = workspace.json(&format!("plan {BOXES} -c allgather -o plan.json --json"));
    assert_eq!(planned["algorithm"], "stages");
    assert!(workspace.read("plan.json").len() < 100_000);
    let verdict = workspace.json("verify plan.json --json");
    assert_eq!(
        (&verdict["checks"]["load"], &verdict["checks"]["certificate"]),
        (&true.into(), &true.into()),
        "{verdict}"
    );
    let report = workspace.json("render plan.json --rank 7999 --to oneccl -o rank.xml --json");
    check_members(&report, &["canopy", "command", "collective", "ranks", "rank", "files"]);
    assert_eq!((&report["ranks"], &report["rank"]), (&8000.into(), &7999.into()));
    let file = String::from_utf8(workspace.read("rank.xml")).expect("a plan is text");
    assert!(file.contains("version=\"2\"") && file.contains("nranks=\"8000\"") && file.matches("<rank ").count() == 1);
    let steps: serde_json::Value =
        serde_json::from_str(&workspace.run("render plan.json --rank 0").stdout).expect("steps are JSON");
    assert_eq!((&steps["ranks"], &steps["rank"]), (&8000.into(), &0.into()));
    let execution = workspace.run("render plan.json --rank 3 --to mscclpp-0.10");
    let execution: serde_json::Value = serde_json::from_str(&execution.stdout).expect("an execution plan is JSON");
    assert_eq!(execution["gpus"][3]["id"], 3);
}

#[test]
fn tori_of_thousands_of_ranks_are_planned_by_their_symmetries() {
    let workspace = Workspace::new();
    for (network, least) in [("torus:20x20x20", 1.0), ("torus:20x20x20,faults=links:2+gpus:1+seed:1", 0.95)] {
        let planned = workspace.json(&format!("plan {network} -c reduce-scatter -o plan.json --json"));
        assert_eq!(planned["algorithm"], "orbits");
        let (part, whole) = planned["optimality"].as_str().unwrap().split_once('/').unwrap();
        let [part, whole] = [part, whole].map(|digits| digits.parse::<f64>().unwrap());
        assert!(part / whole >= least, "{planned}");
        let verdict = workspace.json("verify plan.json --json");
        assert_eq!(verdict["checks"]["load"], true, "{verdict}");
    }
}

#[test]
fn what_no_rank_has_a_file_of_is_refused() {
    let workspace = Workspace::new();
    workspace.run("plan dgx-h100:boxes=4 -c allreduce --algorithm stages -o plan.json");
    let refused = |line: &str, status: i32, words: &[&str]| drop(workspace.refused(line, status, words));
    refused("render plan.json --rank 32", 2, &["rank 32 does not exist", "there are 32"]);
    refused("render plan.json --rank 0 --to msccl", 3, &["no msccl-xml is made for one rank", "use json"]);
    refused("render plan.json --rank 0 --to nccl", 2, &["NCCL cannot load external plans"]);
    workspace.run("plan ring:4 -c allreduce -o ring.json");
    refused("render ring.json --rank 0", 2, &["the plan is a forest", "--algorithm stages"]);
    workspace.write("bad.json", "{}");
    refused("render bad.json --rank 0", 2, &["bad.json is no plan in canopy's JSON"]);
    refused(&format!("plan {BOXES} -c allreduce --format msccl-xml"), 2, &["bytes of memory, over the limit"]);
    refused("plan dgx-h100:boxes=1200 -c broadcast", 2, &["10801 nodes, more than 10000", "by a rule"]);
    refused("plan mesh:80x80 -c allgather", 2, &["needs boxes of ranks that switches join, or a torus"]);
}
