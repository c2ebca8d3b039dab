//! `canopy convert`: files for one runtime become files for another, or are refused with the reason.

use crate::support::{Workspace, check_members};

const MEMBERS: [&str; 7] = ["canopy", "command", "from", "to", "changes", "warnings", "files"];

/// A ring of two ranks that exchange and add; some runtimes miss attributes, others the operation.
const PAIR: &str = r#"<algo name="pair" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="1" o_chunks="0" s_chunks="1">
    <copy i_off="0"/>
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="1" o_chunks="0" s_chunks="1">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"#;

#[test]
fn a_repaired_file_is_right_for_its_runtime_and_says_what_was_done() {
    let workspace = Workspace::new();
    workspace.write("pair.xml", PAIR);
    for profile in ["msccl", "msccl-executor", "rccl-msccl"] {
        let judged = workspace.run(&format!("verify pair.xml --profile {profile}"));
        assert_eq!(judged.status, Some(if profile == "msccl" { 0 } else { 2 }), "{judged:?}");
        let report = workspace.json(&format!("convert pair.xml --to {profile} -o new.xml --json"));
        check_members(&report, &MEMBERS);
        assert_eq!((&report["from"], &report["to"]), (&"msccl".into(), &profile.into()));
        assert_eq!(report["files"][0]["profile"], profile);
        let changes: Vec<&str> =
            report["changes"].as_array().unwrap().iter().map(|change| change.as_str().unwrap()).collect();
        assert!(changes[0].contains("removed 1 <copy> in <gpu>"), "{changes:?}");
        assert_eq!(changes.iter().any(|change| change.contains("outofplace=\"0\"")), profile != "msccl", "{changes:?}");
        assert_eq!(
            changes.iter().any(|change| change.contains("split 2 `rrc`")),
            profile == "rccl-msccl",
            "{changes:?}"
        );
        let verdict = workspace.json(&format!("verify new.xml --profile {profile} --json"));
        assert_eq!(verdict["checks"]["emulation"], true);
    }
    // Without a file to write to, the text goes to standard output and the rest elsewhere.
    let run = workspace.run("convert pair.xml --to rccl-msccl");
    assert_eq!(run.status, Some(0));
    assert!(run.stdout.starts_with("<algo name=\"pair\""), "{run:?}");
    assert!(run.stderr.contains("split 2 `rrc` into `r` and `re`"), "{run:?}");
}

/// Both send four chunks before they receive: more transfers than a queue holds, unless two chunks fit into one.
#[test]
fn a_size_at_which_queues_fill_up_is_lowered() {
    let workspace = Workspace::new();
    let wide = PAIR
        .replace("    <copy i_off=\"0\"/>\n", "")
        .replace("nchunksperloop=\"1\"", "nchunksperloop=\"4\"")
        .replace("i_chunks=\"1\" o_chunks=\"0\" s_chunks=\"1\"", "i_chunks=\"4\" o_chunks=\"0\" s_chunks=\"0\"")
        .replace("cnt=\"1\"", "cnt=\"4\"")
        .replace("inplace=\"1\"", "inplace=\"1\" outofplace=\"0\" minBytes=\"0\" maxBytes=\"1073741824\"");
    workspace.write("wide.xml", wide);
    let judged = workspace.run("verify wide.xml --profile msccl-executor");
    assert!(judged.status == Some(2) && judged.stdout.contains("deadlock"), "{judged:?}");
    let report = workspace.json("convert wide.xml --from msccl-executor --to msccl-executor -o new.xml --json");
    let change = "changed maxBytes from \"1073741824\" to \"4194304\": larger messages need more slots than the queues \
                  have, and deadlock";
    assert_eq!(report["changes"], serde_json::json!([change]));
    assert_eq!(workspace.json("verify new.xml --profile msccl-executor --json")["ok"], true);
}

#[test]
fn what_cannot_be_right_is_not_written() {
    let workspace = Workspace::new();
    // Both receive before either sends.
    let swapped = PAIR.replace("s=\"0\" type=\"s\"", "s=\"2\" type=\"s\"");
    let mut lines: Vec<&str> = swapped.lines().collect();
    lines.swap(4, 5);
    lines.swap(10, 11);
    workspace.write("stuck.xml", lines.join("\n"));
    workspace.refused("convert stuck.xml --to msccl-executor -o new.xml", 2, &["cannot be made right", "deadlock"]);
    workspace.write("word.xml", PAIR.replace("allreduce", "custom"));
    workspace.refused("convert word.xml --to rccl-msccl -o new.xml", 2, &["cannot express custom"]);
    workspace.write("half.xml", &PAIR[..300]);
    workspace.refused("convert half.xml --to msccl -o new.xml", 2, &["half.xml", "line"]);
    workspace.refused("convert half.xml --to nccl -o new.xml", 2, &["NCCL cannot load external plans"]);
    workspace.refused("convert half.xml --to msccl --from mscclpp-0.10 -o new.xml", 2, &["--from is mscclpp-0.10"]);
    workspace.refused(
        "convert half.xml --to msccl --size 1MiB -o new.xml",
        2,
        &["--size is for plans in canopy's JSON"],
    );
    workspace.refused("convert missing.xml --to msccl -o new.xml", 2, &["missing.xml"]);
    assert_eq!(workspace.run("verify new.xml").status, Some(2), "nothing was written");
}

/// The default profile is msccl's; a file in the words of others names them.
#[test]
fn a_file_for_another_runtime_is_recognised() {
    let workspace = Workspace::new();
    let head = "coll=\"reducescatter\" inplace=\"1\" outofplace=\"0\" minBytes=\"0\" maxBytes=\"1024\"";
    let text = PAIR.replace("    <copy i_off=\"0\"/>\n", "").replace("coll=\"allreduce\" inplace=\"1\"", head);
    workspace.write("later.xml", text);
    let run = workspace.run("verify later.xml --json");
    let message = run.object()["problems"][0]["message"].to_string();
    assert!(message.contains("use --profile msccl-executor, which can read the file"), "{message}");
    let run = workspace.run("verify later.xml --profile msccl --json");
    assert!(!run.object()["problems"][0]["message"].to_string().contains("which can read the file"));
}

/// Two ranks on two links of 10 GB/s in either direction: an exchange of the whole vector.
#[test]
fn a_file_is_rated_on_a_network() {
    let workspace = Workspace::new();
    workspace.write("pair.xml", PAIR.replace("    <copy i_off=\"0\"/>\n", ""));
    let verdict = workspace.json("verify pair.xml --topology complete:2,bw=10GB/s --json");
    assert_eq!(verdict["algbw"], "10000000000", "{verdict}");
    assert_eq!(verdict["checks"]["load"], true);
    assert!(verdict["routing"].as_str().unwrap().contains("shortest route"), "{verdict}");
    assert!(verdict["optimality"].is_string(), "{verdict}");
    let run = workspace.run("verify pair.xml --topology ring:5 --json");
    assert_eq!((run.status, &run.object()["checks"]["ranks"]), (Some(2), &false.into()));
}

/// A file of a runtime says which operations are run, not which transfers of which network they are for.
#[test]
fn files_of_runtimes_become_no_files_of_other_formats() {
    let workspace = Workspace::new();
    for (format, found) in [("oneccl-xml", "a oneCCL plan"), ("mscclpp-json", "an execution plan of MSCCL++")] {
        assert_eq!(workspace.run(&format!("plan ring:2 -c allgather --format {format} -o plan")).status, Some(0));
        let words = [
            &format!("plan is {found}, which cannot be converted for msccl-executor"),
            "canopy plan --format msccl-xml",
        ];
        workspace.refused("convert plan --to msccl-executor -o new.xml", 2, &words.map(|word: &str| word));
    }
    workspace.write("pair.xml", PAIR);
    for (to, remedy) in [("oneccl", "--format oneccl-xml"), ("mscclpp-0.10", "--format mscclpp-json")] {
        workspace.refused(&format!("convert pair.xml --to {to} -o new"), 2, &["pair.xml is an MSCCL file", remedy]);
    }
    assert!(!workspace.path("new").exists() && !workspace.path("new.xml").exists());
}

/// A plan in canopy's JSON becomes the very file that a server makes, but for its label, in every format.
#[test]
fn a_plan_becomes_what_a_server_writes() {
    let workspace = Workspace::new();
    for (collective, size) in [("allgather", "64MiB"), ("allreduce", "1MiB")] {
        let plan = format!("plan dgx-a100:boxes=2 -c {collective} --size {size}");
        assert_eq!(workspace.run(&format!("{plan} -o plan.json")).status, Some(0));
        for (profile, format) in [
            ("msccl", "msccl-xml"),
            ("msccl-executor", "msccl-xml"),
            ("rccl-msccl", "msccl-xml"),
            ("mscclpp-0.8", "mscclpp-json"),
            ("mscclpp-0.9", "mscclpp-json"),
            ("mscclpp-0.10", "mscclpp-json"),
            ("oneccl", "oneccl-xml"),
        ] {
            let report =
                workspace.json(&format!("convert plan.json --to {profile} --size {size} -o made.{format} --json"));
            check_members(&report, &MEMBERS);
            assert_eq!((&report["from"], &report["to"]), (&"json".into(), &profile.into()));
            assert_eq!(report["files"][0]["format"], format);
            assert!(report["changes"][0].as_str().unwrap().starts_with("for messages of at most "), "{report}");
            let asked = format!("{plan} --format {format} --profile {profile} -o asked.{format}");
            assert_eq!(workspace.run(&asked).status, Some(0), "{asked}");
            // Labels end with digits of a digest: of the plan there, of the request here.
            let text = |name: &str| {
                let text = String::from_utf8(workspace.read(&format!("{name}.{format}"))).unwrap();
                let label = format!("canopy-{collective}-16-");
                let start = text.find(&label).unwrap() + label.len();
                format!("{}{}", &text[..start], &text[start + 12..])
            };
            assert!(text("made") == text("asked"), "{collective} for {profile}");
        }
    }
    let modules = ["made.py", "asked.py"].map(|name| String::from_utf8(workspace.read(name)).unwrap());
    assert!(modules.iter().all(|module| module.contains("RANKS_PER_NODE = 8\n")), "{modules:?}");
}

#[test]
fn what_a_plan_cannot_become_is_said() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run("plan ring:4 -c broadcast --root 2 -o rooted.json").status, Some(0));
    workspace.refused("convert rooted.json --to msccl -o new", 3, &["cannot name the root"]);
    assert_eq!(workspace.run("convert rooted.json --to mscclpp-0.10 -o new.json").status, Some(0));
    assert_eq!(workspace.run("verify new.json --collective broadcast --root 2").status, Some(0));
    assert_eq!(workspace.run("plan ring:4 -c allgather --shares 1,2,3,4 -o uneven.json").status, Some(0));
    for to in ["msccl", "mscclpp-0.8", "oneccl"] {
        workspace.refused(&format!("convert uneven.json --to {to} -o new"), 3, &["shares"]);
    }
    workspace.refused("convert rooted.json --from msccl --to msccl -o new", 2, &["--from is msccl"]);
    workspace.refused("convert rooted.json --to oneccl --instances 2 -o new", 2, &["--instances is for msccl-xml"]);
    workspace.write("new.py", "mine");
    workspace.refused("convert rooted.json --to mscclpp-0.10 -o new.json", 2, &["new.py is in the way"]);
    let damaged = String::from_utf8(workspace.read("rooted.json")).unwrap().replacen("\"root\":2", "\"root\":1", 1);
    workspace.write("damaged.json", damaged);
    workspace.refused("convert damaged.json --to oneccl -o new", 2, &["damaged.json"]);
    assert!(!workspace.path("new").exists());
}

/// The greatest message is the last one for the one version, and the first that is too large for the other.
#[test]
fn an_execution_plan_is_converted_between_versions() {
    let workspace = Workspace::new();
    let plan = "plan dgx-a100:boxes=1 -c allgather --size 1MiB --format mscclpp-json";
    for (profile, name) in [("mscclpp-0.8", "old.json"), ("mscclpp-0.10", "new.json")] {
        assert_eq!(workspace.run(&format!("{plan} --profile {profile} -o {name}")).status, Some(0));
    }
    let limit = |name: &str| {
        let value: serde_json::Value = serde_json::from_slice(&workspace.read(name)).unwrap();
        value["max_message_size"].as_u64().unwrap()
    };
    assert_eq!((limit("old.json"), limit("new.json")), ((1 << 20) + 1, 1 << 20));
    let report = workspace.json("convert old.json --from mscclpp-0.8 --to mscclpp-0.10 -o made.json --json");
    let change = "changed max_message_size from 1048577 to 1048576: messages of at most 1048576 bytes";
    assert_eq!(report["changes"], serde_json::json!([change]));
    assert_eq!(limit("made.json"), 1 << 20);
    assert!(workspace.path("made.py").exists());
    let back = workspace.json("convert made.json --to mscclpp-0.8 -o back.json --json");
    assert_eq!(back["changes"].as_array().unwrap().len(), 1);
    assert!(workspace.read("back.json") == workspace.read("old.json"));
    workspace.refused("convert old.json --from msccl --to mscclpp-0.10 -o x.json", 2, &["--from is msccl"]);
}
