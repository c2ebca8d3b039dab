//! `canopy tools plan-moving`.

use std::io::Write as _;
use std::process::Stdio;

use crate::support::{Run, Workspace, check_members};

const RAIL: &str = "rail:boxes=2,gpus=2,nv=450GB/s,nic=50GB/s";
const FIRST: &str = r#"{"bytes":[[0,8,2,90],[1,0,6,2],[3,5,0,9],[7,1,2,0]]}"#;
const SECOND: &str = r#"{"number":5,"bytes":[[0,8,2,4],[1,0,6,2],[3,5,0,9],[7,1,2,0]]}"#;
/// Bytes from rank 0 to itself.
const WRONG: &str = r#"{"number":9,"bytes":[[1,8,2,4],[1,0,6,2],[3,5,0,9],[7,1,2,0]]}"#;

fn objects(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn bytes(object: &serde_json::Value) -> u64 {
    object["bytes"].as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).sum()
}

#[test]
fn each_matrix_of_a_file_is_planned() {
    let workspace = Workspace::new();
    workspace.write("m.jsonl", format!("{FIRST}\n\n{SECOND}\n"));
    let found = objects(&workspace.text(&format!("plan-moving {RAIL} m.jsonl --json -o plans.jsonl")));
    assert_eq!(found.len(), 3);
    check_members(&found[0], &["canopy", "command", "event", "ranks", "box_size", "fabric", "lost_ranks", "dead_nics"]);
    check_members(
        &found[2],
        &["canopy", "command", "event", "number", "seconds", "seconds_bound", "ratio", "parts", "skipped"],
    );
    assert_eq!((&found[0]["fabric"], &found[0]["box_size"]), (&"rails".into(), &2.into()));
    assert_eq!((&found[1]["number"], &found[2]["number"]), (&1.into(), &5.into()));
    let plans = objects(&String::from_utf8(workspace.read("plans.jsonl")).unwrap());
    assert_eq!((plans.len(), bytes(&plans[0]), bytes(&plans[1])), (2, 136, 50));
    assert_eq!((&plans[1]["format"], &plans[1]["seconds"]), (&"canopy-moving".into(), &found[2]["seconds"]));
    let lists = ["from", "to", "leaves", "enters", "bytes"].map(|name| plans[0][name].as_array().unwrap().len());
    assert_eq!(lists, [lists[0]; 5]);
    let table = workspace.text(&format!("plan-moving {RAIL} m.jsonl"));
    assert!(table.contains("OF OPTIMAL") && table.lines().count() == 3, "{table}");
}

/// Within a box, bytes also go out of a NIC and come back, which the bound counts in any case.
#[test]
fn routes_of_any_kind_are_written_hop_by_hop() {
    let workspace = Workspace::new();
    workspace.write("m.jsonl", "{\"bytes\":[[0,1000000000,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,0]]}\n");
    for network in ["dgx-h100:boxes=2,gpus=2,nv=50GB/s,nic=50GB/s", "rail:boxes=2,gpus=2,nv=50GB/s,nic=50GB/s"] {
        for (option, has_relays) in [("", true), (" --ends-only", false)] {
            let text = format!("plan-moving {network} m.jsonl --json -o plans.jsonl{option}");
            assert_eq!(objects(&workspace.text(&text))[1]["seconds_bound"], "1/100", "{text}");
            let plan = objects(&String::from_utf8(workspace.read("plans.jsonl")).unwrap()).remove(0);
            assert_eq!((bytes(&plan), plan.get("relayed").is_some()), (1_000_000_000, has_relays), "{plan}");
            for relay in plan["relayed"].as_array().into_iter().flatten() {
                check_members(relay, &["part", "ranks", "by_nic"]);
                assert_eq!(relay["ranks"].as_array().unwrap().last().unwrap(), 1);
            }
        }
    }
}

#[test]
fn matrices_come_from_standard_input_and_plans_go_to_standard_output() {
    let workspace = Workspace::new();
    let mut command = workspace.command(&format!("plan-moving {RAIL} - -o -"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{FIRST}\n{SECOND}").unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.status, Some(0), "{run:?}");
    let plans = objects(&run.stdout);
    assert_eq!((&plans.last().unwrap()["number"], bytes(plans.last().unwrap())), (&5.into(), 50));
}

/// The object of `--json` that tells of a file.
fn file_of(text: &str) -> serde_json::Value {
    let found = objects(text).into_iter().find(|object| object["event"] == "file").unwrap();
    check_members(
        &found,
        &[
            "canopy",
            "command",
            "event",
            "number",
            "path",
            "format",
            "profile",
            "bytes",
            "unit_bytes",
            "slot_units",
            "buffer_bytes",
        ],
    );
    found
}

#[test]
fn one_matrix_becomes_an_execution_plan() {
    let workspace = Workspace::new();
    workspace.write("m.jsonl", format!("{FIRST}\n"));
    for profile in ["mscclpp-0.8", "mscclpp-0.9", "mscclpp-0.10"] {
        let arguments = format!("plan-moving {RAIL} m.jsonl --mscclpp plan.json --unit 16 --profile {profile}");
        let found = file_of(&workspace.text(&format!("{arguments} --json")));
        let text = String::from_utf8(workspace.read("plan.json")).unwrap();
        assert_eq!((&found["profile"], &found["format"]), (&profile.into(), &"mscclpp-json".into()));
        assert_eq!((&found["slot_units"], &found["buffer_bytes"]), (&6.into(), &(4 * 6 * 16).into()));
        assert_eq!(found["bytes"], text.len());
        let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&plan["collective"], &plan["inplace"]), (&"custom".into(), &false.into()));
        assert_eq!(plan["gpus"].as_array().unwrap().len(), 4);
        let sizes = [&plan["min_message_size"], &plan["max_message_size"]].map(|size| size.as_u64().unwrap());
        assert_eq!(sizes, [384, if profile == "mscclpp-0.8" { 385 } else { 384 }]);
        assert_eq!(workspace.path("plan.py").exists(), profile != "mscclpp-0.8");
        // That it runs can be seen in the file alone.
        let verdict = workspace.json(&format!("verify plan.json --profile {profile} --json"));
        assert_eq!((&verdict["ok"], &verdict["checks"]["races"]), (&true.into(), &true.into()));
        workspace.write("changed.json", text.replacen("\"wait\"", "\"nop\"", 1));
        assert_eq!(workspace.run(&format!("verify changed.json --profile {profile}")).status, Some(2));
        // The same again gives the same bytes.
        workspace.text(&arguments);
        assert_eq!(workspace.read("plan.json"), text.as_bytes());
    }
    let module = String::from_utf8(workspace.read("plan.py")).unwrap();
    assert!(module.contains("RANKS_PER_NODE = 2\n") && module.contains("BYTES_MULTIPLE = 384\n"), "{module}");
}

#[test]
fn a_matrix_without_room_or_with_company_has_no_execution_plan() {
    let workspace = Workspace::new();
    workspace.write("one.jsonl", format!("{FIRST}\n"));
    workspace.write("two.jsonl", format!("{FIRST}\n{SECOND}\n"));
    workspace.write("none.jsonl", "\n");
    workspace.write("idle.jsonl", "{\"bytes\":[[0,0],[0,0]]}\n");
    workspace.write("huge.jsonl", "{\"bytes\":[[0,9000000000,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,0]]}\n");
    workspace.write("mine.py", "print('mine')\n");
    for (matrices, options, status, words) in [
        (
            "two.jsonl",
            "--mscclpp plan.json --unit 16",
            2,
            "the plan of one matrix, and line 2 of two.jsonl has another",
        ),
        ("none.jsonl", "--mscclpp plan.json --unit 16", 2, "the plan of one matrix, and none.jsonl has none"),
        ("idle.jsonl", "--mscclpp plan.json --unit 16", 2, "no rank has bytes for another one"),
        ("one.jsonl", "--mscclpp plan.json --unit 24", 2, "help: use a multiple of 16"),
        ("huge.jsonl", "--mscclpp plan.json --unit 16", 2, "use units of at least"),
        ("huge.jsonl", "--mscclpp plan.json --unit 1MiB", 3, "divide the exchange"),
        ("one.jsonl", "--mscclpp plan.json", 2, "needs `--unit`"),
        ("one.jsonl", "--unit 16", 2, "needs `--mscclpp`"),
        ("one.jsonl", "--mscclpp - --unit 16", 2, "--mscclpp -: standard output is for what the command says"),
        ("one.jsonl", "--mscclpp plan.json --unit 16 --profile mscclpp-0.7", 2, "read another schema"),
        ("one.jsonl", "--mscclpp mine.json --unit 16", 2, "mine.py is in the way of the module"),
    ] {
        workspace.refused(&format!("plan-moving {RAIL} {matrices} {options}"), status, &[words]);
        assert!(!workspace.path("plan.json").exists(), "{matrices} {options}");
    }
    // Each of 300 ranks writes to all others.
    let row = |from: usize| (0..300).map(|to| if from == to { "0" } else { "16" }).collect::<Vec<_>>().join(",");
    let rows: Vec<String> = (0..300).map(|from| format!("[{}]", row(from))).collect();
    workspace.write("many.jsonl", format!("{{\"bytes\":[{}]}}\n", rows.join(",")));
    let many = "rail:boxes=150,gpus=2,nv=450GB/s,nic=50GB/s";
    let words = ["allows 256 remote buffers of a rank", "plan for fewer ranks"];
    workspace.refused(&format!("plan-moving {many} many.jsonl --mscclpp plan.json --unit 16"), 3, &words);
}

#[test]
fn what_is_wrong_is_said() {
    let workspace = Workspace::new();
    workspace.write("m.jsonl", format!("{FIRST}\n{WRONG}\n"));
    let run = workspace.run(&format!("plan-moving {RAIL} m.jsonl"));
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(
        run.stderr.contains("matrix 9: MOVING_MATRIX_INVALID") && run.stderr.contains("1 of 2 matrices"),
        "{run:?}"
    );
    workspace.write("bad.jsonl", "{\"bytes\":[[0,1]]}\n");
    for (arguments, status, words) in [
        (format!("plan-moving {RAIL} bad.jsonl"), 2, "bad.jsonl: line 1: row 0 has 2 numbers"),
        (format!("plan-moving {RAIL} missing.jsonl"), 2, "cannot read missing.jsonl"),
        (format!("plan-moving {RAIL} m.jsonl --json -o -"), 2, "--json needs a file"),
        ("plan-moving ring:5 m.jsonl".to_owned(), 3, "no switch joins them"),
        ("plan-moving rings:5 m.jsonl".to_owned(), 2, "unknown family `rings`"),
    ] {
        workspace.refused(&arguments, status, &[words]);
    }
}
