//! Plans for a placement from end to end: the files state the devices, and what executors read is what was asked for.

use std::path::Path;
use std::process::Command;

use canopy_prerequisites::program;
use serde_json::{Value, json};

use crate::support::Workspace;

/// The arguments of a bundle for two boxes and each of them.
const BUNDLE: &str = "plan dgx-a100:boxes=2,gpus=2 -c allgather --sizes 1MiB..4MiB --format oneccl-xml \
                      --communicator all=0-3 --communicator tp0=0-1 --communicator tp1=2-3";

/// Reads a folder for each group as the backend of torch does, and prints the devices of the plans.
const READER: &str = "import json, sys, types
package = types.ModuleType('canopy_torch')
package.__path__ = [sys.argv[1]]
sys.modules['canopy_torch'] = package
from canopy_torch.choice import PlanSet
from canopy_torch.source import read_folder
said = []
for devices in json.loads(sys.argv[3]):
    plans = PlanSet.read(read_folder(sys.argv[2], len(devices)), 0, len(devices)).placed(devices)
    said.append([len(plans), sorted(set(refused.why for refused in plans.refused))])
print(json.dumps(said))";

fn manifest(workspace: &Workspace) -> Value {
    serde_json::from_slice(&workspace.read("out/manifest.json")).unwrap()
}

#[test]
fn a_bundle_states_the_devices_of_each_communicator() {
    let workspace = Workspace::new();
    let reply = workspace.json(&format!("{BUNDLE} --placement gpu07:0-1,gpu08.site:4-5 -o out --json"));
    let manifest = manifest(&workspace);
    assert_eq!(reply["bundle"], manifest);
    let items = manifest["items"].as_array().unwrap();
    let maps: Vec<&Value> = items.iter().map(|item| &item["rank_map"]).collect();
    let [here, there] = [json!(["gpu07:0", "gpu07:1"]), json!(["gpu08.site:4", "gpu08.site:5"])];
    let all = json!(["gpu07:0", "gpu07:1", "gpu08.site:4", "gpu08.site:5"]);
    assert_eq!(maps, [&all, &here, &there]);
    for (item, devices) in items.iter().zip(["gpu07:0,gpu07:1,gpu08.site:4", "gpu07:0,gpu07:1", "gpu08.site:4"]) {
        for file in item["files"].as_array().unwrap() {
            let path = format!("out/{}", file["path"].as_str().unwrap());
            let text = String::from_utf8(workspace.read(&path)).unwrap();
            assert!(text.contains(&format!("<meta key=\"rank_map\" value=\"{devices}")), "{text}");
            assert_eq!(workspace.json(&format!("verify {path} --json"))["ok"], true);
        }
    }
    let Some(python) = program("python3") else { return };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../executors/torch/src/canopy_torch");
    let groups = json!([all, here, ["gpu08:4", "gpu08:5"], ["gpu08:5", "gpu08:4"]]);
    let run = Command::new(python)
        .args(["-B", "-c", READER])
        .args([package.as_path(), &workspace.path("out")])
        .arg(groups.to_string())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let said: Vec<(u64, Vec<String>)> = serde_json::from_slice(&run.stdout).unwrap();
    let plans: Vec<u64> = said.iter().map(|(plans, _)| *plans).collect();
    let files = |item: usize| items[item]["files"].as_array().unwrap().len() as u64;
    assert_eq!(plans, [files(0), files(1), files(2), 0]);
    assert!(said[3].1.contains(&"rank 0 is on gpu08:5, and the plan is for gpu08.site:4".to_owned()), "{said:?}");
}

#[test]
fn without_a_placement_a_bundle_is_for_any_devices() {
    let workspace = Workspace::new();
    workspace.json(&format!("{BUNDLE} -o out --json"));
    let manifest = manifest(&workspace);
    assert!(manifest["items"].as_array().unwrap().iter().all(|item| item.get("rank_map").is_none()));
    assert_eq!(manifest["items"][2]["served_by"], "tp0");
    let path = manifest["items"][0]["files"][0]["path"].as_str().unwrap();
    assert!(!String::from_utf8(workspace.read(&format!("out/{path}"))).unwrap().contains("rank_map"));
}

#[test]
fn a_plan_and_its_part_for_a_rank_state_the_devices() {
    let workspace = Workspace::new();
    let line = "  <meta key=\"rank_map\" value=\"a:0,a:1,b:0,b:1\"/>\n";
    workspace.text("plan ring:4 -c allgather --format oneccl-xml --placement a:0-1,b:0-1 -o plan.xml");
    let text = String::from_utf8(workspace.read("plan.xml")).unwrap();
    assert!(text.contains(line), "{text}");
    assert_eq!(workspace.json("verify plan.xml --json")["ok"], true);
    workspace.text("plan ring:4 -c allgather --format oneccl-xml -o plain.xml");
    assert!(!String::from_utf8(workspace.read("plain.xml")).unwrap().contains("<meta"));
    workspace.text("fetch ring:4 -c allgather --format oneccl-xml --job 1 --nodes a,b --rank 2-3 --out job");
    let manifest: Value = serde_json::from_slice(&workspace.read("job/manifest.json")).unwrap();
    let part = workspace.read(&format!("job/{}", manifest["files"][0]["path"].as_str().unwrap()));
    let part = String::from_utf8(part).unwrap();
    assert!(part.contains(line) && part.contains("<rank id=\"0\""), "{part}");
}

#[test]
fn a_placement_that_does_not_fit_is_refused_by_name() {
    let workspace = Workspace::new();
    for (placement, words) in [
        ("a:0-1", "2 ranks are placed, but 4 take part"),
        ("a:0-1,a:1-2", "both on a:1"),
        ("a:0-2,b:0", "place ranks on one node exactly if they share a box"),
    ] {
        let run = workspace.run(&format!("{BUNDLE} --placement {placement} -o out"));
        assert_eq!(run.status, Some(2), "{run:?}");
        assert!(run.stderr.contains(words) && run.stderr.contains("--placement"), "{}", run.stderr);
    }
    let run = workspace.run("plan mesh:2x2 --joint a=0-1:allgather:1MiB --placement a:0-3 -o out");
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(!workspace.path("out").exists());
}
