//! `canopy plan-job`.

use crate::support::{Workspace, check_members};

const RAIL: &str = "rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s";

fn describe(workspace: &Workspace, groups: &str) {
    workspace.write("job.yaml", format!("topology: {RAIL}\nlayout: tp=8 dp=4\ngroups: {groups}\n"));
}

const BOTH: &str = "[{name: tp, over: tp, collective: allreduce, size: 1000MB}, \
                    {name: dp, over: dp, collective: allreduce, size: 1000MB}]";

/// The fraction that a text is, as a float.
fn number(found: &serde_json::Value) -> f64 {
    let text = found.as_str().unwrap();
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    above.parse::<f64>().unwrap() / below.parse::<f64>().unwrap()
}

/// Tensor and data groups of four boxes: 50/3 GB/s each, together.
#[test]
fn all_groups_share_the_links_as_well_as_they_can() {
    let workspace = Workspace::new();
    describe(&workspace, BOTH);
    let found = workspace.json("plan-job job.yaml --json");
    let job = &found["job"];
    check_members(
        job,
        &[
            "canopy",
            "kind",
            "ranks",
            "forward",
            "seconds",
            "seconds_bound",
            "seconds_rings",
            "seconds_phases",
            "seconds_alone",
            "classes",
            "certificate",
        ],
    );
    assert_eq!((&job["seconds"], &job["seconds_bound"]), (&"3/50".into(), &"3/50".into()));
    assert_eq!(job["seconds_rings"], "3/50");
    assert_eq!(job["classes"][1]["groups"], 8);
    let text = workspace.text("plan-job job.yaml");
    assert!(text.contains("together   60.000 ms, proven optimal"), "{text}");
}

/// Each group has a plan in its share of the links, which is as fast as the joint optimum promises, but for a
/// millionth.
#[test]
fn every_group_has_a_plan_in_its_share() {
    let workspace = Workspace::new();
    describe(&workspace, BOTH);
    let found = workspace.json(&format!("plan-job job.yaml --topology {RAIL},faults=nics:1+seed:1 -o plans --json"));
    let job = &found["job"];
    let groups = job["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 12);
    for group in groups {
        let seconds = group["size_bytes"].as_f64().unwrap() / number(&group["achieved"]);
        assert!(number(&job["seconds"]) / seconds > 1.0 - 2e-6, "{group}");
        let file = format!("plans/{}", group["files"][0]["path"].as_str().unwrap());
        workspace.text(&format!("verify {file}"));
    }
    let manifest: serde_json::Value = serde_json::from_slice(&workspace.read("plans/manifest.json")).unwrap();
    assert_eq!(&manifest, job);
    // What is there is replaced.
    workspace.json("plan-job job.yaml -o plans --json");
    assert!(String::from_utf8(workspace.read("plans/manifest.json")).unwrap().contains("\"3/50\""));
}

#[test]
fn what_is_wrong_with_a_job_is_said() {
    let workspace = Workspace::new();
    for (groups, part) in [
        ("[{name: xp, over: xp, collective: allreduce, size: 1}]", "no dimension is `xp`"),
        ("[{name: tp, over: tp, collective: sum, size: 1}]", "groups[0].collective"),
        ("[]", "groups is missing"),
    ] {
        describe(&workspace, groups);
        workspace.refused("plan-job job.yaml", 2, &["job.yaml", part]);
    }
    describe(&workspace, BOTH);
    workspace.refused("plan-job job.yaml --topology ring:8", 2, &["the layout has 32 ranks, and the network has 8"]);
    workspace.refused("plan-job nowhere.yaml", 2, &["nowhere.yaml"]);
}

/// The folder is judged as a whole: each plan, what all take together, and what the lengths prove.
#[test]
fn a_folder_of_groups_is_verified() {
    let workspace = Workspace::new();
    describe(&workspace, BOTH);
    workspace.text(&format!("plan-job job.yaml --topology {RAIL},faults=nics:1+seed:1 -o plans"));
    let report = workspace.json("verify --joint plans --json");
    check_members(
        &report["checks"],
        &["file", "structure", "meaning", "load", "certificate", "group", "together", "bound"],
    );
    assert!(report["ok"] == true && report["groups"] == 12 && report["problems"] == serde_json::json!([]));
    let manifest: serde_json::Value = serde_json::from_slice(&workspace.read("plans/manifest.json")).unwrap();
    assert_eq!(report["seconds_bound"], manifest["seconds_bound"]);

    type Change = fn(&mut serde_json::Value);
    let changes: [(Change, &str, &str); 6] = [
        (|manifest| manifest["seconds"] = "61/1000".into(), "together", "together they take"),
        (|manifest| manifest["seconds_bound"] = "62/1000".into(), "bound", "the lengths prove"),
        (|manifest| manifest["certificate"]["links"] = serde_json::json!([]), "bound", "prove nothing"),
        (|manifest| manifest["groups"][0]["files"] = manifest["groups"][1]["files"].clone(), "group", "ranks"),
        (|manifest| manifest["groups"][0]["collective"] = "allgather".into(), "group", "another kind or root"),
        (|manifest| manifest["groups"][0]["files"][0]["path"] = "../plan.json".into(), "group", "not in the folder"),
    ];
    for (change, check, problem) in changes {
        let mut changed = manifest.clone();
        change(&mut changed);
        workspace.write("plans/manifest.json", changed.to_string());
        let said = workspace.run("verify --joint plans --json");
        assert_eq!(said.status, Some(2));
        let said = said.object();
        let found = &said["problems"][0];
        assert!(found["check"] == check && found["message"].as_str().unwrap().contains(problem), "{said}");
    }
}
