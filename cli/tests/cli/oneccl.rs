//! oneCCL plans on the command line: made, verified, rated, and refused when damaged.

use crate::support::Workspace;

/// A plan that somebody wrote by hand, with a declaration and a comment before it.
const HAND_MADE: &str = include_str!("../../../crates/plan/tests/oneccl_files/all_to_all_ring3.xml");

#[test]
fn hand_made_plans_are_verified_and_rated() {
    let workspace = Workspace::new();
    workspace.write("plan.xml", HAND_MADE);
    let verdict = workspace.json("verify plan.xml --collective all-to-all --topology ring:3,dir=uni,bw=6GB/s --json");
    assert_eq!(
        (&verdict["ok"], &verdict["format"], &verdict["profile"]),
        (&true.into(), &"oneccl-xml".into(), &"oneccl".into())
    );
    let checks =
        ["file", "structure", "matching", "deadlock", "meaning", "emulation", "ranks", "routes", "load", "collective"];
    assert_eq!(verdict["checks"].as_object().unwrap().keys().collect::<Vec<_>>().len(), checks.len());
    assert!(checks.iter().all(|check| verdict["checks"][check] == true), "{verdict}");
    assert_eq!((&verdict["algbw"], &verdict["optimality"]), (&"6000000000".into(), &"1/1".into()));
    workspace.refused("verify plan.xml --profile msccl", 2, &["this is a oneCCL plan"]);
    for (from, to, check) in [
        ("<sync scope=\"local\"/>", "<wait/>", "file"),
        ("<copy src=\"i\" srcoff=\"0\"", "<copy src=\"i\" srcoff=\"1\"", "meaning"),
        ("<recv peer=\"2\" buf=\"s\" off=\"0\" cnt=\"1\"/>", "", "matching"),
    ] {
        workspace.write("bad.xml", HAND_MADE.replacen(from, to, 1));
        let run = workspace.run("verify bad.xml --json");
        assert_eq!(run.status, Some(2), "{run:?}");
        assert_eq!(run.object()["problems"][0]["check"], check, "{run:?}");
    }
    let other = workspace.run("verify plan.xml --topology ring:4 --json");
    assert_eq!((other.status, &other.object()["problems"][0]["check"]), (Some(2), &"ranks".into()));
}

#[test]
fn plans_are_made_and_hold() {
    let workspace = Workspace::new();
    for (kind, options) in [("allreduce", ""), ("scatter", " --root 3"), ("all-to-all", " --in-place")] {
        let plan = format!("plan dgx-a100:boxes=2,gpus=2 --collective {kind}{options} --format oneccl-xml");
        let made = workspace.json(&format!("{plan} -o plan.xml --json"));
        assert_eq!(
            (&made["files"][0]["format"], &made["files"][0]["profile"]),
            (&"oneccl-xml".into(), &"oneccl".into())
        );
        let first = workspace.read("plan.xml");
        let verdict = workspace.json("verify plan.xml --topology dgx-a100:boxes=2,gpus=2 --json");
        assert_eq!((&verdict["ok"], &verdict["collective"]), (&true.into(), &kind.into()));
        let again = workspace.json(&format!("{plan} --profile oneccl -o plan.xml --json"));
        assert_eq!((&again["cache"], &again["plan"]), (&"hit".into(), &made["plan"]));
        assert_eq!(workspace.read("plan.xml"), first);
    }
    workspace.refused(
        "plan ring:4 --collective allgather --shares 1,2,1,1 --format oneccl-xml",
        3,
        &["shares of unequal size"],
    );
}
