//! `canopy tools plan-job`.

mod folders;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::support::{Serving, Workspace, check_members};

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

#[test]
fn all_plans_of_a_folder_are_simulated_at_once() {
    let workspace = Workspace::new();
    describe(&workspace, BOTH);
    workspace.text(&format!("plan-job job.yaml --topology {RAIL},faults=nics:1+seed:1 -o plans"));
    let found = workspace.json("simulate plans --piece 4MiB --json");
    let part = found["of_joint"].as_f64().unwrap();
    // Of 240 pieces, some fill the trees.
    assert!((0.95..=1.0).contains(&part), "{part}");
    assert_eq!(found["groups"].as_array().unwrap().len(), 12);
    assert_eq!(workspace.run("simulate plans/manifest.json --piece 4MiB --json").object()["time_ps"], found["time_ps"]);
    let text = workspace.text("simulate plans --piece 4MiB");
    assert!(text.lines().any(|line| line.starts_with("dp ")) && text.contains(" of the joint rate"), "{text}");
    workspace.refused("simulate plans --size 1MiB", 2, &["`--size` is for a single plan"]);
}

#[test]
fn other_orders_of_dimensions_are_compared() {
    let workspace = Workspace::new();
    let groups = "[{name: tp, over: tp, collective: allreduce, size: 8GB}, {name: dp, over: dp, collective: allreduce, size: 1GB}]";
    workspace.write("job.yaml", format!("topology: {RAIL}\nlayout: dp=4 tp=8\ngroups: {groups}\n"));
    let job = workspace.json("plan-job job.yaml --best-order --json")["job"].clone();
    let orders = job["orders"].as_array().unwrap();
    assert_eq!(orders.iter().filter(|order| order["best"] == true).count(), 1);
    assert_eq!(
        orders[1],
        serde_json::json!({"layout": "tp=8 dp=4", "seconds": job["seconds"], "seconds_bound": job["seconds_bound"], "best": true})
    );
    assert_eq!(job["rank_order"].as_array().unwrap().len(), 32);
    let text = workspace.text("plan-job job.yaml --best-order");
    assert!(text.lines().any(|line| line.starts_with("tp=8 dp=4") && line.ends_with("1.00  taken")), "{text}");
}

#[test]
fn groups_that_can_be_faster_are_if_that_is_asked_for() {
    let workspace = Workspace::new();
    describe(&workspace, BOTH);
    let text = workspace.text("plan-job job.yaml --levels");
    let line = text.lines().find(|line| line.starts_with("faster")).unwrap();
    assert!(line.ends_with(", proven optimal: 4 of tp"), "{line}");
    let job = workspace.json("plan-job job.yaml --levels -o plans --json")["job"].clone();
    let levels = job["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 2);
    assert_eq!((&levels[0]["seconds"], &levels[0]["groups"]), (&"3/50".into(), &serde_json::json!({"dp": 8})));
    assert_eq!(levels[0]["certificate"], job["certificate"]);
    let times = [&job["groups"][0]["seconds"], &levels[1]["seconds"]].map(number);
    assert!((times[0] / times[1] - 1.0).abs() < 1e-6, "{times:?}");
    assert_eq!(workspace.json("verify --joint plans --json")["ok"], true);
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
    let changes: [(Change, &str, &str); 7] = [
        (|manifest| manifest["seconds"] = "61/1000".into(), "together", "together they take"),
        (|manifest| manifest["seconds"] = "99/1000".into(), "together", "together they take"),
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

/// The folder is that of the network as faults have left it, and the earlier one until then.
#[test]
fn a_job_that_is_followed_is_planned_again_when_faults_come() {
    let workspace = Workspace::new();
    describe(&workspace, BOTH);
    workspace.refused("plan-job job.yaml --follow --server=", 2, &["no server is named", "--server ADDR"]);
    let _server = Serving::with(&workspace, "--plan-ahead=false");
    let mut follow =
        workspace.command("plan-job job.yaml -o plans --follow --rounds 2 --json --server unix:data/canopy.sock");
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next =
        || serde_json::from_str::<serde_json::Value>(&lines.next().unwrap().unwrap()).unwrap()["job"].clone();
    assert_eq!(next()["seconds"], "3/50");
    workspace.json("verify --joint plans --json");
    workspace.json(&format!("faults report {RAIL} link:b1g2=rail2 --json"));
    let hit = next();
    assert!(number(&hit["seconds"]) > 0.06, "{}", hit["seconds"]);
    assert!(follow.wait().unwrap().success());
    let kept: serde_json::Value = serde_json::from_slice(&workspace.read("plans/manifest.json")).unwrap();
    assert_eq!(kept, hit);
    workspace.json("verify --joint plans --json");
}

#[test]
fn a_job_has_its_place_beside_jobs_that_run() {
    let workspace = Workspace::new();
    describe(&workspace, BOTH);
    let job = |more: &str| format!("topology: {RAIL}\nlayout: tp=8 dp=2\ngroups: {BOTH}\nranks: 0-7,16-23\n{more}");
    workspace.write("new.yaml", job("running: [{job: job.yaml, time: 120ms}]\n"));
    workspace.write("alone.yaml", job(""));
    let seconds = |name: &str| number(&workspace.json(&format!("plan-job {name} --json"))["job"]["seconds"]);
    assert!((seconds("new.yaml") - 2.0 * seconds("alone.yaml")).abs() < 1e-9);
    workspace.text("plan-job new.yaml -o plans --max-chunks 4");
    workspace.json("verify --joint plans --json");
    workspace.write("fast.yaml", job("running: [{job: job.yaml, time: 20ms}]\n"));
    workspace.refused("plan-job fast.yaml", 3, &["running[0]", "3/50 s together at least"]);
    workspace.write("astray.yaml", job("").replace("16-23", "32-39"));
    workspace.refused("plan-job astray.yaml", 2, &["astray.yaml: ranks", "rank 32"]);
}

/// The ranks of a job are where its list says, in the order of the list.
#[test]
fn ranks_are_placed_in_the_order_in_which_they_are_named() {
    let workspace = Workspace::new();
    let links: Vec<serde_json::Value> = (0..3)
        .map(|at| {
            let ends = [format!("r{at}"), format!("r{}", at + 1)];
            serde_json::json!({"from": ends[0], "to": ends[1], "bandwidth": "10GB/s", "both": true})
        })
        .collect();
    // A chain whose nodes have the ranks that they are given.
    let chain = |ranks: [u32; 4]| {
        let node = |(at, rank): (usize, &u32)| serde_json::json!({"id": format!("r{at}"), "rank": rank});
        let nodes: Vec<serde_json::Value> = ranks.iter().enumerate().map(node).collect();
        serde_json::json!({"canopy": 1, "nodes": nodes, "links": links}).to_string()
    };
    workspace.write("chain.json", chain([0, 1, 2, 3]));
    let job = |network: &str, collective: &str, more: &str| {
        format!(
            "topology: {network}\nlayout: a=4\ngroups: [{{name: g, over: a, collective: {collective}, size: 360GB}}]\n{more}"
        )
    };
    let mut times = std::collections::BTreeSet::new();
    for order in [[0, 1, 2, 3], [1, 0, 2, 3], [3, 0, 2, 1], [2, 3, 0, 1], [0, 2, 1, 3]] {
        // Rank i of the layout is node order[i].
        let mut ranks = [0; 4];
        (0..4).for_each(|place| ranks[order[place as usize]] = place);
        workspace.write("renumbered.json", chain(ranks));
        for collective in ["next", "broadcast", "gather"] {
            let list = order.map(|rank| rank.to_string()).join(",");
            workspace.write("named.yaml", job("chain.json", collective, &format!("ranks: {list}\n")));
            workspace.write("renumbered.yaml", job("renumbered.json", collective, ""));
            let found = workspace.json("plan-job named.yaml -o plans --json")["job"].clone();
            let same = workspace.json("plan-job renumbered.yaml --json")["job"].clone();
            assert_eq!(found["seconds"], same["seconds"], "{collective} {list}");
            assert_eq!(found["seconds_rings"], same["seconds_rings"], "{collective} {list}");
            let members: Vec<u64> =
                found["groups"][0]["ranks"].as_array().unwrap().iter().map(|rank| rank.as_u64().unwrap()).collect();
            assert_eq!(members, order[..members.len()].iter().map(|&rank| rank as u64).collect::<Vec<_>>());
            times.insert((collective, found["seconds"].to_string()));
        }
    }
    assert!(times.len() > 3, "{times:?}");
    workspace.write("twice.yaml", job("chain.json", "next", "ranks: 1,0,2,1\n"));
    workspace.refused("plan-job twice.yaml", 2, &["ranks", "rank 1 is named twice"]);
}

/// Beside files of a runtime are canopy's own, by which the folder is verified.
#[test]
fn folders_for_runtimes_are_verified_too() {
    let workspace = Workspace::new();
    describe(&workspace, BOTH);
    let found = workspace.json("plan-job job.yaml --format msccl-xml -o plans --json");
    let formats: Vec<&str> = found["job"]["groups"][0]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["format"].as_str().unwrap())
        .collect();
    assert_eq!(formats, ["json", "msccl-xml"]);
    assert_eq!(workspace.json("verify --joint plans --json")["ok"], true);
}
