//! `canopy plan --trees`, `--max-chunks`, `--max-depth` and `--tolerance` from end to end.

use crate::support::Workspace;

/// Planned, written, read back and verified: chunks per share and the rate.
#[track_caller]
fn planned(workspace: &Workspace, arguments: &str) -> (u64, String) {
    let plan = workspace.json(&format!("plan {arguments} -o plan.json --json"));
    let verdict = workspace.json("verify plan.json --json");
    assert_eq!((&verdict["ok"], &verdict["algbw"]), (&true.into(), &plan["algbw"]), "{arguments}: {verdict}");
    (plan["chunks"].as_u64().unwrap(), plan["algbw"].as_str().unwrap().to_owned())
}

/// Two boxes of MI250: the article's 320 and 348 GB/s, and 3 as the best number up to 4.
#[test]
fn plans_have_the_trees_that_are_asked_for() {
    let workspace = Workspace::new();
    let allgather = |options: &str| planned(&workspace, &format!("mi250:boxes=2 --collective allgather {options}"));
    assert_eq!(allgather("--trees 1"), (1, "320000000000".to_owned()));
    assert_eq!(allgather("--trees 5 --algorithm forest"), (5, "8000000000000/23".to_owned()));
    assert_eq!(allgather("--max-chunks 4"), (3, "2400000000000/7".to_owned()));
    assert_eq!(allgather("--max-chunks 100").0, 83);
    assert_eq!(planned(&workspace, "ring:4 --collective broadcast --trees 3").0, 3);
}

/// A plan that may lack a part says what it lacks, and is another than the best one.
#[test]
fn plans_lack_no_more_than_they_may() {
    let workspace = Workspace::new();
    let rail = "plan rail:boxes=4,nv=60GB/s,nic=50GB/s,faults=gpus:2+seed:1 --collective allgather -o plan.json --json";
    let best = workspace.json(rail);
    let near = workspace.json(&format!("{rail} --tolerance 1/8"));
    assert_eq!((&best["optimality"], &near["cache"]), (&"1/1".into(), &"miss".into()));
    let (numerator, denominator) = near["optimality"].as_str().unwrap().split_once('/').unwrap();
    let (numerator, denominator): (u64, u64) = (numerator.parse().unwrap(), denominator.parse().unwrap());
    assert!(8 * numerator >= 7 * denominator && numerator < denominator, "{near}");
    assert!(near["chunks"].as_u64() < best["chunks"].as_u64(), "{near}");
    let verdict = workspace.json("verify plan.json --json");
    assert_eq!((&verdict["ok"], &verdict["optimality"]), (&true.into(), &near["optimality"]));
    for same in ["2/16", "12.5%", "0.125"] {
        assert_eq!(workspace.json(&format!("{rail} --tolerance {same}"))["cache"], "hit", "{same}");
    }
    for wrong in ["1", "3/2", "0%", "100%", "1/4294967296", "much"] {
        workspace.refused(&format!("{rail} --tolerance {wrong}"), 2, &["is not a fraction", "1%, 0.01 or 1/100"]);
    }
    workspace.refused(&format!("{rail} --tolerance 1/2 --algorithm ring"), 2, &["--tolerance", "limits trees"]);
}

/// `steps` is the depth; below the four hops that a ring of eight needs, the least is named.
#[test]
fn plans_are_no_deeper_than_asked_for() {
    let workspace = Workspace::new();
    let plan = workspace.json("plan mi250:boxes=2 --collective allgather --max-depth 7 -o plan.json --json");
    assert!(plan["steps"].as_u64().unwrap() <= 7, "{plan}");
    let verdict = workspace.json("verify plan.json --json");
    assert_eq!((&verdict["ok"], &verdict["algbw"]), (&true.into(), &plan["algbw"]));
    let words = ["`max_depth` is 3", "takes at least 4 hops"];
    workspace.refused("plan ring:8 --collective allgather --max-depth 3", 3, &words);
    let limited = workspace.json("plan torus:4x4 --collective allreduce --max-depth 4 --trees 4 -o plan.json --json");
    assert_eq!((limited["steps"].as_u64(), limited["chunks"].as_u64()), (Some(8), Some(4)));
}

/// Through the switch of a box every hop crosses two links; between ranks of a ring, one. Steps have no trees.
#[test]
fn plans_say_how_far_their_trees_reach() {
    let workspace = Workspace::new();
    let star = workspace.json("plan dgx-a100:boxes=1 --collective allgather -o star.json --json");
    let figures =
        |plan: &serde_json::Value| ["steps", "depth_mean", "hops_max", "hops_mean"].map(|name| plan[name].as_f64());
    assert_eq!(figures(&star), [Some(1.0), Some(1.0), Some(2.0), Some(2.0)]);
    let ring = workspace.json("plan ring:6 --collective allreduce -o ring.json --json");
    assert_eq!(figures(&ring), [Some(6.0), Some(6.0), Some(6.0), Some(6.0)], "three hops to the far side, and back");
    let shown = workspace.run(&format!("plans show {}", star["plan"].as_str().unwrap()));
    let expected = "reach      depth mean 1, at most 1; links crossed mean 2, at most 2";
    assert!(shown.stdout.contains(expected), "{shown:?}");
}

/// The loss is stated exactly, and each limit makes a plan of its own in the cache.
#[test]
fn limits_are_part_of_what_is_asked_for() {
    let workspace = Workspace::new();
    let plan =
        |options: &str| workspace.json(&format!("plan dgx-a100:boxes=2 --collective allgather {options} -o a --json"));
    let (optimal, limited) = (plan(""), plan("--trees 1"));
    assert_eq!((&optimal["optimality"], &limited["optimality"]), (&"1/1".into(), &"90/91".into()));
    assert_ne!(optimal["plan"], limited["plan"]);
    assert_eq!(plan("--trees 1")["cache"], "hit");
    assert_eq!(plan("--max-chunks 1")["cache"], "miss");
}

#[test]
fn limits_that_mean_nothing_are_refused() {
    let workspace = Workspace::new();
    for (arguments, words) in [
        ("ring:4 --collective allgather --trees 0", ["--trees", "is not a count"]),
        ("ring:4 --collective allgather --max-chunks many", ["--max-chunks", "is not a count"]),
        ("ring:4 --collective allgather --trees 1 --max-chunks 2", ["--trees", "cannot be combined"]),
        ("ring:4 --collective gather --trees 1", ["--trees", "flow builds none for gather"]),
        (
            "ring:4 --collective allgather --algorithm ring --max-chunks 3",
            ["--max-chunks", "ring builds none for allgather"],
        ),
    ] {
        workspace.refused(&format!("plan {arguments}"), 2, &words);
    }
}
