//! Networks whose files state no boxes: they are taken from the family that the network is of.

use crate::support::Workspace;

#[test]
fn networks_without_boxes_have_the_bounds_and_plans_of_those_with_boxes() {
    let workspace = Workspace::new();
    workspace.run("topology generate dgx-a100:boxes=4 -o stated.yaml");
    let stated = String::from_utf8(workspace.read("stated.yaml")).unwrap();
    let without =
        |line: &str| line.split_once(", box: ").map_or_else(|| line.to_owned(), |(node, _)| node.to_owned() + "}");
    let plain: Vec<String> = stated.lines().map(without).collect();
    workspace.write("plain.yaml", plain.join("\n"));
    assert!(!plain.iter().any(|line| line.contains("box:")) && stated.contains("box: b3}"));
    let bound = |file: &str| workspace.json(&format!("bound {file} --collective all-to-all --json"))["bound"].clone();
    assert_eq!(bound("plain.yaml"), bound("stated.yaml"));

    let reply = workspace.json("plan plain.yaml --collective all-to-all -o plan.json --json");
    assert_eq!(reply["optimality"], "1/1");
    assert_eq!(workspace.run("verify plan.json").status, Some(0));
    let plan = reply["plan"].as_str().unwrap();
    assert_eq!(workspace.json(&format!("plans show {plan} --json"))["family"], "dgx-a100:boxes=4,gpus=8");
    let text = workspace.run(&format!("plans show {plan} --explain")).stdout;
    assert!(text.contains("family     dgx-a100:boxes=4,gpus=8 (its boxes were used for planning)\n"), "{text}");

    let reply = workspace.json("plan stated.yaml --collective all-to-all -o plan.json --json");
    let plan = reply["plan"].as_str().unwrap();
    assert_eq!(workspace.json(&format!("plans show {plan} --json")).get("family"), None);
}
