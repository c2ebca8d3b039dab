//! Execution plans on networks whose switches multicast and aggregate: made, judged, and made without.

use serde_json::Value;

use crate::support::Workspace;

/// Boxes of H100, whose own switches do both and whose InfiniBand switch does neither.
fn document(workspace: &Workspace, boxes: u32) -> String {
    let text = workspace.run(&format!("topology generate dgx-h100:boxes={boxes}")).stdout;
    let capable: String = text
        .lines()
        .map(|line| {
            let is_own = line.contains("kind: switch") && line.contains("box: ");
            let line = if is_own {
                line.replace("kind: switch", "kind: switch, multicast: true, aggregate: true")
            } else {
                line.to_owned()
            };
            line + "\n"
        })
        .collect();
    assert_eq!(capable.matches("multicast: true").count(), boxes as usize, "{capable}");
    let name = format!("h100-{boxes}.yaml");
    workspace.write(&name, capable);
    name
}

fn count(workspace: &Workspace, operation: &str) -> usize {
    let plan: Value = serde_json::from_slice(&workspace.read("plan.json")).unwrap();
    let operations = plan["gpus"].as_array().unwrap().iter().flat_map(|gpu| gpu["threadblocks"].as_array().unwrap());
    operations.flat_map(|block| block["ops"].as_array().unwrap()).filter(|op| op["name"] == operation).count()
}

#[test]
fn switches_store_and_sum_where_the_topology_says_so() {
    let workspace = Workspace::new();
    let (one, two) = (document(&workspace, 1), document(&workspace, 2));
    for (topology, collective, profile, operation, is_there) in [
        (&one, "allreduce", "mscclpp-0.8", "glres", true),
        (&one, "allreduce", "mscclpp-0.10", "glres", true),
        (&one, "allgather", "mscclpp-0.10", "gstore", true),
        (&one, "allgather", "mscclpp-0.8", "gstore", false),
        (&one, "allgather", "mscclpp-0.9", "gstore", false),
        (&one, "reduce-scatter", "mscclpp-0.10", "glres", false),
        (&two, "broadcast", "mscclpp-0.10", "gstore", true),
        (&two, "allreduce", "mscclpp-0.10", "gstore", true),
        (&two, "allreduce", "mscclpp-0.10", "glres", false),
    ] {
        let options = format!("--format mscclpp-json --profile {profile}");
        let made = workspace.run(&format!("plan {topology} -c {collective} {options} -o plan.json"));
        assert_eq!(made.status, Some(0), "{}", made.stderr);
        assert_eq!(count(&workspace, operation) > 0, is_there, "{topology} {collective} {profile}");
        let has_switches = count(&workspace, "glres") + count(&workspace, "gstore") > 0;
        assert_eq!(made.stderr.contains("compute capability 9.0"), has_switches, "{}", made.stderr);
        let verdict = workspace.json(&format!("verify plan.json --profile {profile} -c {collective} --json"));
        for check in ["races", "deadlock", "meaning", "emulation"] {
            assert_eq!(verdict["checks"][check], true, "{check}");
        }
    }
}

/// Without channels of switches a plan is what it is on the same network with plain switches, but for its name.
#[test]
fn channels_of_switches_can_be_left_out() {
    let workspace = Workspace::new();
    let topology = document(&workspace, 1);
    for collective in ["allreduce", "allgather"] {
        let unnamed = |workspace: &Workspace| {
            let text = String::from_utf8(workspace.read("plan.json")).unwrap();
            text.lines().filter(|line| !line.contains("\"name\": \"canopy-")).collect::<Vec<_>>().join("\n")
        };
        workspace.json(&format!("plan {topology} -c {collective} --format mscclpp-json -o plan.json --json"));
        let with = unnamed(&workspace);
        let options = "--format mscclpp-json --no-switch-channels";
        workspace.json(&format!("plan {topology} -c {collective} {options} -o plan.json --json"));
        let without = unnamed(&workspace);
        workspace.json(&format!("plan dgx-h100:boxes=1 -c {collective} --format mscclpp-json -o plan.json --json"));
        assert_eq!(without, unnamed(&workspace));
        assert_ne!(with, without);
        assert!(!without.contains("switch"), "{without}");
    }
    let elsewhere = format!("plan {topology} -c allgather --format msccl-xml --no-switch-channels -o plan.xml");
    workspace.refused(&elsewhere, 2, &["--no-switch-channels is for mscclpp-json", "--format mscclpp-json"]);
}

/// What is said of the schedule has nothing to do with what a runtime's file makes of it.
#[test]
fn bundles_and_explanations_take_such_networks() {
    let workspace = Workspace::new();
    let topology = document(&workspace, 1);
    let made = workspace.run(&format!(
        "plan {topology} -c allreduce --sizes 1MiB-64MiB --format mscclpp-json --profile mscclpp-0.10 -o bundle"
    ));
    assert_eq!(made.status, Some(0), "{}", made.stderr);
    assert!(made.stderr.contains("compute capability 9.0"), "{}", made.stderr);
    let manifest = String::from_utf8(workspace.read("bundle/manifest.json")).unwrap();
    assert!(manifest.contains("compute capability 9.0"), "{manifest}");
    let explained = workspace.run(&format!("explain {topology} -c allreduce"));
    assert_eq!(explained.status, Some(0), "{}", explained.stderr);
}

/// An allreduce in a box whose switch adds up moves each byte once: all of the bound, half as much again as without.
#[test]
fn bounds_count_on_switches_that_reduce() {
    let workspace = Workspace::new();
    let bound = workspace.json("bound dgx-h100:gpus=4,nvls=true --collective allreduce --json");
    assert_eq!((&bound["bound"]["algbw_GBps"], &bound["bound"]["tight"]), (&450.0.into(), &true.into()));
    assert_eq!(bound["without_in_network"]["algbw_GBps"], 300.0);
    let told = workspace.run("bound dgx-h100:gpus=4,nvls=true --collective allreduce").stdout;
    assert!(told.contains("450 GB/s with switches that replicate and add"), "{told}");
    assert!(told.contains("without    300 GB/s if they only forward"), "{told}");
    let plain = workspace.json("bound dgx-h100:gpus=4 --collective allreduce --json");
    assert!(plain.get("without_in_network").is_none(), "{plain}");
    let arguments = "--collective allreduce --format mscclpp-json -o plan.json --json";
    let plan = workspace.json(&format!("plan dgx-h100:gpus=4,nvls=true {arguments}"));
    assert_eq!((&plan["optimality"], &plan["in_network"]["optimality"]), (&"2/3".into(), &"1/1".into()));
    assert_eq!(workspace.run("verify plan.json").status, Some(0));
}

/// Across boxes, trees go through such switches where the plan is canopy's own; files have what is best without.
#[test]
fn own_plans_go_through_switches_and_files_do_not() {
    let workspace = Workspace::new();
    let network = "dgx-h100:boxes=2,nvls=true";
    let plan = workspace.json(&format!("plan {network} -c allreduce -o plan.json --json"));
    assert_eq!((&plan["optimality"], &plan["in_network"]["optimality"]), (&"9/14".into(), &"1/1".into()));
    assert_eq!(workspace.run("verify plan.json").status, Some(0));
    let converted = workspace.run("convert plan.json --to msccl -o plan.xml").stdout;
    let lost = "warning    the plan reaches 400.000 GB/s where switches replicate and add, and 257.143 GB/s where they";
    assert!(converted.contains(lost), "{converted}");
    let file = workspace.json(&format!("plan {network} -c allreduce --format mscclpp-json -o plan.json --json"));
    assert_eq!(file["optimality"], "2/3");
    let racks = workspace.json("plan gb200-nvl72:racks=4,nvls=true -c allreduce -o racks.json --json");
    assert_eq!(racks["in_network"]["optimality"], "1/1");
}

/// 27,000 blocks, each of which hears of some forty others.
#[test]
fn an_allgather_among_288_gpus_has_a_file() {
    let workspace = Workspace::new();
    let plan =
        workspace.json("plan gb200-nvl72:racks=4 -c allgather --format mscclpp-json --trees 1 -o plan.json --json");
    assert_eq!(plan["optimality"], "2583/2584");
}
