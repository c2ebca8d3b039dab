//! `canopy simulate`: times by hand through the real program, and refusals.

use std::path::Path;

use crate::support::{Workspace, check_members, sha256};

const MEMBERS: [&str; 9] =
    ["canopy", "command", "topology", "collective", "algorithm", "model", "algbw", "bound", "sizes"];
const SIZE: [&str; 10] = [
    "size_bytes",
    "time_ps",
    "least_ps",
    "limit_ps",
    "algbw",
    "algbw_GBps",
    "busbw_GBps",
    "of_bound",
    "messages",
    "events",
];

/// Two ranks, 25 GB/s each way: 40 ps for each byte.
const PAIR: &str = "\
canopy: 1
nodes: [{id: a}, {id: b}]
links: [{from: a, to: b, bandwidth: 25GB/s, latency: 500ns, both: true}]
";

fn desk_with_plan(collective: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.write("pair.yaml", PAIR);
    workspace.json(&format!("plan pair.yaml --collective {collective} --format json -o plan.json --json"));
    workspace
}

#[test]
fn times_are_those_of_the_model() {
    let workspace = desk_with_plan("allgather");
    // Each rank sends its half: α of 1 µs, 500 ns of latency, and 40 ps for each byte.
    let report = workspace.json("simulate plan.json --sizes 2000..128000 --piece whole --json");
    check_members(&report, &MEMBERS);
    check_members(&report["sizes"][0], &SIZE);
    let times: Vec<u64> =
        report["sizes"].as_array().unwrap().iter().map(|size| size["time_ps"].as_u64().unwrap()).collect();
    assert_eq!(times, [1_000, 4_000, 16_000, 64_000].map(|half| 1_500_000 + half * 40));
    assert_eq!((&report["model"]["alpha_ns"], &report["model"]["piece_bytes"]), (&1_000.into(), &().into()));
    let last = &report["sizes"][3];
    assert_eq!((&last["least_ps"], &last["messages"]), (&(64_000 * 40).into(), &2.into()));
    assert_eq!((&last["limit_ps"], &last["of_bound"]), (&(64_000 * 40).into(), &0.6305.into()));
    assert_eq!((&last["algbw_GBps"], &last["busbw_GBps"]), (&31.5271.into(), &15.7635.into()));
    // Pieces of 16,000 bytes take an alpha each.
    let pieces = workspace.json("simulate plan.json --size 128000 --piece 16kB --sharing fifo --sync steps --json");
    assert_eq!(pieces["sizes"][0]["time_ps"], 4 * (1_000_000 + 16_000 * 40) + 500_000);
    assert_eq!((&pieces["model"]["sync"], &pieces["model"]["sharing"]), (&"steps".into(), &"fifo".into()));
    let bytes_only = workspace.json("simulate plan.json --size 128000 --alpha 0 --piece whole --json");
    assert_eq!(bytes_only["sizes"][0]["time_ps"], 500_000 + 64_000 * 40);
    // The same again, to the byte.
    assert_eq!(workspace.run("simulate plan.json --json"), workspace.run("simulate plan.json --json"));
}

#[test]
fn links_and_the_critical_path_are_told() {
    let workspace = desk_with_plan("broadcast");
    let report = workspace.json("simulate plan.json --size 1000 --links --critical-path --json");
    assert_eq!(report["root"], 0);
    let link = &report["links"][0];
    assert_eq!((&link["from"], &link["to"]), (&"a".into(), &"b".into()));
    assert_eq!((&link["bytes"], &link["busy_ps"]), (&1_000.into(), &40_000.into()));
    let leg = &report["critical_path"][0];
    assert_eq!((&leg["from"], &leg["to"], &leg["after"]), (&0.into(), &1.into(), &"at-once".into()));
    assert_eq!((&leg["start_ps"], &leg["left_ps"], &leg["end_ps"]), (&0.into(), &1_040_000.into(), &1_540_000.into()));
    assert_eq!(leg["link"], serde_json::json!(["a", "b"]));
    let text = workspace.run("simulate plan.json --sizes 1KiB..1MiB --links --critical-path");
    assert_eq!(text.status, Some(0), "{text:?}");
    for words in ["broadcast on 2 ranks by forest: alpha 1µs", "OF BOUND", "1 MiB", "a -> b", "critical path at 1 MiB"]
    {
        assert!(text.stdout.contains(words), "`{words}` is missing from\n{}", text.stdout);
    }
}

/// A network and a collective instead of a file: the same plan, and the same times.
#[test]
fn a_plan_is_made_to_be_simulated() {
    let workspace = desk_with_plan("allgather");
    let how = "--sizes 1KiB..1MiB --links --critical-path --json";
    let made = workspace.json(&format!("simulate pair.yaml --collective allgather {how}"));
    assert_eq!(made, workspace.json(&format!("simulate plan.json {how}")));
    let expression =
        workspace.json("simulate ring:8,lat=500ns --collective broadcast --root 3 --algorithm ring --size 1MiB --json");
    assert_eq!((&expression["algorithm"], &expression["root"]), (&"ring".into(), &3.into()));
    assert_eq!(expression["topology"]["ranks"], 8);
    // Planned for one network, run on another.
    let slow =
        workspace.json("simulate ring:8 --collective allgather --topology ring:8,degrade=2>3*1/2 --size 1MiB --json");
    assert_eq!((&slow["planned_for"]["ranks"], slow["topology"] == slow["planned_for"]), (&8.into(), false));
    workspace.refused("simulate nonsense --collective allgather", 2, &["nonsense"]);
    workspace.refused("simulate plan.json --root 1", 2, &["`--root` needs a collective", "--collective C"]);
    workspace.refused("simulate ring:8 --collective allgather --algorithm flow", 2, &["flow"]);
    assert_eq!(workspace.run("simulate plan.json --algorithm ring").status, Some(2));
}

/// The link that carries rank 0's half at a quarter of its rate, and another latency: 160 ps for each byte, 2 µs.
#[test]
fn a_plan_runs_on_another_network() {
    let workspace = desk_with_plan("allgather");
    let before = workspace.json("simulate plan.json --size 128000 --piece whole --json");
    workspace.write("same.yaml", PAIR);
    let same = workspace.json("simulate plan.json --size 128000 --piece whole --topology same.yaml --json");
    assert_eq!((&same["sizes"], &same["planned_for"]), (&before["sizes"], &before["topology"]));
    let slow = "\
canopy: 1
nodes: [{id: a}, {id: b}, {id: s, kind: switch}]
links:
  - {from: a, to: b, bandwidth: 6.25GB/s, latency: 2us}
  - {from: b, to: a, bandwidth: 25GB/s, latency: 500ns}
  - {from: a, to: s, bandwidth: 25GB/s, both: true}
";
    workspace.write("slow.yaml", slow);
    let report = workspace.json("simulate plan.json --size 128000 --piece whole --topology slow.yaml --json");
    assert_eq!(report["sizes"][0]["time_ps"], 1_000_000 + 2_000_000 + 64_000 * 160);
    assert_eq!(report["planned_for"], before["topology"]);
    assert_eq!(report["topology"]["nodes"], 3);
    // What is sent is half the size, over the slow link; the bound is that of the slow network, too.
    assert_eq!((&report["algbw"], &report["bound"]), (&"12500000000".into(), &"12500000000".into()));
    let text = workspace.run("simulate plan.json --size 128000 --topology slow.yaml");
    assert!(
        text.stdout.starts_with("allgather on 2 ranks by forest") && text.stdout.contains("on slow.yaml"),
        "{text:?}"
    );
    workspace.refused(
        "simulate plan.json --topology ring:3",
        2,
        &["cannot run on ring:3", "3 ranks", "canopy plan ring:3"],
    );
    workspace.write("cut.yaml", PAIR.replace("both: true", "both: false"));
    workspace.refused(
        "simulate plan.json --topology cut.yaml",
        2,
        &[
            "uses link b -> a",
            "which the network does not \
         have",
        ],
    );
    workspace.refused("simulate plan.json --topology none.yaml", 2, &["none.yaml"]);
}

/// Compares with the approved drawing; `CANOPY_APPROVE=1` writes it instead.
#[test]
fn a_sweep_is_drawn() {
    let workspace = desk_with_plan("allgather");
    let report = workspace.json("simulate plan.json --sizes 1KiB..1MiB --plot sweep.svg --json");
    let file = &report["files"][0];
    assert_eq!((&file["format"], &file["path"]), (&"svg".into(), &"sweep.svg".into()));
    assert_eq!(file["sha256"], sha256(&workspace.path("sweep.svg")));
    let drawn = String::from_utf8(workspace.read("sweep.svg")).unwrap();
    let mut reader = quick_xml::Reader::from_str(&drawn);
    while reader.read_event().unwrap() != quick_xml::events::Event::Eof {}
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/approved/simulate.svg");
    if std::env::var_os("CANOPY_APPROVE").is_some() {
        return std::fs::write(&path, &drawn).unwrap();
    }
    let approved = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(approved == drawn, "the drawing changed; if intended, rerun with CANOPY_APPROVE=1\n{drawn}");
    // One size alone is a drawing, too; a folder that is not there is told.
    assert_eq!(workspace.run("simulate plan.json --size 1MiB --plot one.svg").status, Some(0));
    workspace.refused("simulate plan.json --plot no/folder/sweep.svg", 2, &["cannot write no/folder/sweep.svg"]);
}

#[test]
fn what_cannot_be_simulated_is_refused_with_a_way_out() {
    let workspace = desk_with_plan("allgather");
    workspace.refused("simulate none.json", 2, &["none.json: no such file"]);
    workspace.refused("simulate pair.yaml", 2, &["is not a plan in canopy's JSON", "canopy plan T"]);
    workspace.refused(
        "simulate plan.json --size 1MiB --piece 1 --work-max 1000",
        2,
        &["1048576 messages", "raise --piece"],
    );
    workspace.refused("simulate plan.json --size 1TiB --alpha 5000h", 2, &["picoseconds", "--alpha"]);
    workspace.refused("simulate plan.json --size 9000000TiB", 2, &["more than", "lower --size"]);
    let text = String::from_utf8(workspace.read("plan.json")).unwrap();
    workspace.write("cut.json", &text[..text.len() / 2]);
    workspace.refused("simulate cut.json", 2, &["cut.json"]);
    for wrong in ["--sizes 2KiB..1KiB", "--sizes 1KiB..", "--size 0", "--alpha 1", "--sync now", "--piece none"] {
        let run = workspace.run(&format!("simulate plan.json {wrong}"));
        assert_eq!(run.status, Some(2), "{wrong}");
        assert!(run.stderr.contains("error: "), "{wrong}: {}", run.stderr);
    }
}

/// Won et al., figure 6: 394 and 552 steps of ring and direct on a mesh, of which plans have the first to come of each chunk only.
#[test]
fn published_baselines_send_all_their_messages() {
    let workspace = Workspace::new();
    // A chunk takes a microsecond over a link.
    let common = "--alpha 0 --piece whole --size 2500000";
    let mesh = "simulate mesh:10x10,bw=25GB/s -c allreduce --algorithm ring-xy --published direct,ring";
    let report = workspace.json(&format!("{mesh} {common} --json"));
    let published = report["sizes"][0]["published"].as_array().unwrap();
    let of = |place: usize| (&published[place]["baseline"], published[place]["time_ps"].as_u64().unwrap());
    assert_eq!((of(0), of(1)), ((&"direct".into(), 552_000_000), (&"ring".into(), 394_000_000)));
    let planned = report["sizes"][0]["time_ps"].as_u64().unwrap();
    assert!(planned < 394_000_000, "{planned}");
    let times = published[1]["times_as_long"].as_f64().unwrap();
    assert!((times - 394e6 / planned as f64).abs() < 0.01, "{times}");
    // Two chunks of half the size: what shares a link waits for half as much.
    let twice = workspace.json(&format!("{mesh} {common} --chunks 2 --json"));
    assert_eq!(twice["sizes"][0]["published"][1]["time_ps"], 215_000_000);
    // A message takes the latency of each of its hops.
    let pair = "simulate ring:2,bw=1GB/s -c allgather --published direct --alpha 500ns --piece whole --size 2000";
    assert_eq!(workspace.json(&format!("{pair} --json"))["sizes"][0]["published"][0]["time_ps"], 1_500_000);
    let text = workspace.run(pair);
    assert!(text.stdout.contains("DIRECT µs  ÷ PLAN"), "{text:?}");
    workspace.refused(
        "simulate ring:4 -c gather --published ring",
        2,
        &["`--published ring`: ring-xy does not plan gather", "it plans allgather"],
    );
}
