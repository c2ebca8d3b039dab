//! Plans of collectives that run at the same time: made in common, each with its own file, judged together.

use serde_json::Value;

use crate::support::{Serving, Workspace};

const ROWS: &str =
    "--joint up=0-17:allgather:18MiB --joint down=35,18-34:broadcast@35:1MiB --joint sum=18-35:reduce@18:1MiB";

fn read(workspace: &Workspace, name: &str) -> Value {
    serde_json::from_slice(&workspace.read(name)).unwrap()
}

#[test]
fn each_has_a_file_and_all_of_them_get_along() {
    let workspace = Workspace::new();
    let made = workspace.json(&format!("plan mesh:6x6 {ROWS} --format msccl-xml -o out --json"));
    assert_eq!(made["cache"], serde_json::json!(["miss", "miss", "miss"]));
    let manifest = read(&workspace, "out/manifest.json");
    assert_eq!((&made["joint"], &manifest["kind"]), (&manifest, &Value::from("joint-plans")));
    assert_eq!((&manifest["steps"], &manifest["seconds"]), (&Value::from(9), &manifest["seconds_longest_alone"]));
    for (plan, (name, root, first)) in
        manifest["plans"].as_array().unwrap().iter().zip([("up", None, 0), ("down", Some(0), 35), ("sum", Some(0), 18)])
    {
        assert_eq!((&plan["name"], &plan["ranks"][0]), (&Value::from(name), &Value::from(first)));
        assert_eq!(plan["root"].as_u64(), root);
        let collective = plan["collective"].as_str().unwrap();
        assert_eq!(workspace.json(&format!("verify out/{name}.json --json"))["ok"], true);
        let root = root.map_or_else(String::new, |root| format!("--root {root}"));
        assert_eq!(
            workspace.json(&format!("verify out/{name}.xml --collective {collective} {root} --json"))["ok"],
            true
        );
    }
    let files = "out/up.json out/down.json out/sum.json";
    let verdict = workspace.json(&format!("verify --json --joint {files}"));
    assert_eq!(
        (&verdict["ok"], &verdict["steps"], &verdict["checks"]["joint"]),
        (&true.into(), &9.into(), &true.into())
    );
    let text = workspace.run(&format!("verify --joint {files}")).stdout;
    assert!(text.contains("together   9 steps, in none of which two use the same link"), "{text}");
    assert_eq!(workspace.json("verify --json --joint out"), verdict);
    assert_eq!(workspace.run("verify --joint out/manifest.json out/sum.json").stdout, text);
    // The same again is there, and takes the place of the folder.
    let again = workspace.run(&format!("plan mesh:6x6 {ROWS} --format msccl-xml -o out"));
    assert_eq!(again.status, Some(0), "{}", again.stderr);
    assert_eq!(again.stderr.matches("RANK_MAP_ASSUMED").count(), 1, "{}", again.stderr);
    for words in ["broadcast@35", "together    9 steps", "one by one  23 steps", "longest     9 steps", "at least"] {
        assert!(again.stdout.contains(words), "`{words}` is missing from\n{}", again.stdout);
    }
    assert_eq!(read(&workspace, "out/manifest.json"), manifest);
    let shown = workspace.run(&format!("plans show {}", manifest["plans"][1]["plan"].as_str().unwrap()));
    assert!(shown.stdout.contains("plan 2 of 3 that run at the same time; 9 steps together, 7 alone"), "{shown:?}");
    assert_eq!(workspace.names(), ["out"]);
}

/// Won et al., table V: straight messages of several collectives at once, beside a plan of all of them.
#[test]
fn baselines_run_all_collectives_at_once() {
    let workspace = Workspace::new();
    let made = workspace.json(&format!("plan mesh:6x6 {ROWS} --published direct,ring -o out --json"));
    let [direct, ring] = [0, 1].map(|place| &made["published"][place]);
    assert_eq!((&direct["baseline"], &ring["baseline"]), (&"direct".into(), &"ring".into()));
    let seconds: Vec<f64> =
        made["joint"]["seconds"].as_str().unwrap().split('/').map(|part| part.parse().unwrap()).collect();
    for found in [direct, ring] {
        let times = found["time_ps"].as_f64().unwrap() / 1e12 / (seconds[0] / seconds[1]);
        assert!(times > 1.0 && (found["times_as_long"].as_f64().unwrap() - times).abs() < 0.01, "{found}: {times}");
    }
    let text = workspace.run(&format!("plan mesh:6x6 {ROWS} --published direct -o out")).stdout;
    assert!(text.lines().any(|line| line.starts_with("direct ") && line.ends_with(" times as long")), "{text}");
    workspace.refused("plan mesh:6x6 -c allgather --published direct", 2, &["--published", "--collective"]);
    workspace.refused("plan mesh:6x6 --published direct", 2, &["--joint"]);
    let gather = "--joint up=0-17:gather@0:18MiB --joint down=18-35:broadcast@35:1MiB";
    workspace.refused(
        &format!("plan mesh:6x6 {gather} --published ring -o none"),
        2,
        &["`--published ring`: ring-xy does not plan gather"],
    );
}

#[test]
fn plans_that_were_made_apart_are_no_plans_in_common() {
    let workspace = Workspace::new();
    for (name, ranks) in [("a", "0-17"), ("b", "6-23")] {
        workspace.json(&format!(
            "plan mesh:6x6 -c allgather --algorithm tacos --ranks {ranks} --transit forward -o {name}.json --json"
        ));
    }
    let verdict = workspace.run("verify --json --joint a.json b.json");
    assert_eq!(verdict.status, Some(2), "{}", verdict.stderr);
    let verdict = verdict.object();
    assert_eq!((&verdict["checks"]["joint"], &verdict["checks"]["meaning"]), (&false.into(), &true.into()));
    workspace.json("plan ring:4 -c allgather --algorithm tacos -o ring.json --json");
    let other = workspace.run("verify --joint a.json ring.json");
    assert_eq!(other.status, Some(2));
    assert!(other.stdout.contains("another network"), "{}", other.stdout);
    workspace.write("broken.json", "{");
    assert_eq!(workspace.run("verify --joint a.json broken.json").status, Some(2));
    workspace.refused("verify", 2, &["FILE"]);
    workspace.refused("verify --joint a.json", 2, &["there are not two", "the folder"]);
    workspace.refused("verify --joint .", 2, &["manifest.json", "no such file"]);
    for (manifest, words) in [
        ("{", "no manifest"),
        (r#"{"canopy":1,"kind":"plan-bundle","plans":[]}"#, "is of plan-bundle, not of joint-plans"),
        (r#"{"canopy":1,"kind":"joint-plans","plans":[]}"#, "there are not two"),
        (
            r#"{"canopy":1,"kind":"joint-plans","plans":[{"files":[{"format":"json","path":"../a.json"}]}]}"#,
            "../a.json is not in the manifest's folder",
        ),
    ] {
        workspace.write("manifest.json", manifest);
        workspace.refused("verify --joint .", 2, &[words]);
    }
}

#[test]
fn what_is_wrong_is_told_in_the_words_of_the_command() {
    let workspace = Workspace::new();
    for (arguments, words) in [
        ("--joint up=0,99:allgather -o out", "--joint up: ranks[1]"),
        ("--joint up=0,3,0:allgather -o out", "rank 0 is named twice"),
        ("--joint up=3:allgather -o out", "at least two"),
        ("--joint up=0-3:allgather --joint up=0-3:allgather -o out", "--joint up"),
        ("--joint up=0-3:allgather", "-o DIR"),
        ("--joint up=0-3:broadcast@9 -o out", "root 9"),
        ("--joint up=0-3:allgather --sizes 1KiB-1MiB -o out", "--sizes"),
        ("--joint up=0-3:allgather --collective allgather -o out", "--collective"),
    ] {
        workspace.refused(&format!("plan mesh:6x6 {arguments}"), 2, &[words]);
    }
    assert!(workspace.names().is_empty());
}

/// The same by a server in a process of its own.
#[test]
fn a_server_makes_the_same() {
    let workspace = Workspace::new();
    workspace.json(&format!("plan mesh:6x6 {ROWS} -o own --json"));
    let _serving = Serving::on(&workspace);
    let asked = workspace.json(&format!("plan mesh:6x6 {ROWS} -o asked --json"));
    assert_eq!(asked["cache"], serde_json::json!(["hit", "hit", "hit"]));
    for name in ["manifest.json", "up.json", "down.json", "sum.json"] {
        assert_eq!(workspace.read(&format!("own/{name}")), workspace.read(&format!("asked/{name}")), "{name}");
    }
}
