//! `canopy tools order`.

use crate::support::{Workspace, check_members};

/// Two racks of four machines with one GPU each, listed in turns.
fn in_turns(workspace: &Workspace) {
    let mut text = "canopy: 1\nnodes:\n".to_owned();
    for place in 0..8 {
        let host = place % 2 * 4 + place / 2;
        text += &format!("  - {{id: g{host}, rank: {place}, host: n{host}}}\n");
    }
    text += "  - {id: rack0, kind: switch}\n  - {id: rack1, kind: switch}\n  - {id: spine, kind: switch}\nlinks:\n";
    for host in 0..8 {
        text += &format!("  - {{from: g{host}, to: rack{}, bandwidth: 50GB/s, both: true}}\n", host / 4);
    }
    for rack in 0..2 {
        text += &format!("  - {{from: rack{rack}, to: spine, bandwidth: 100GB/s, both: true}}\n");
    }
    workspace.write("job.yaml", text);
}

/// In turns, four flows share an uplink of two NICs; rack by rack, there is one.
#[test]
fn racks_follow_one_another() {
    let workspace = Workspace::new();
    in_turns(&workspace);
    let found = workspace.json("order job.yaml --to nodes -o hosts --json");
    check_members(
        &found,
        &["canopy", "command", "topology", "machines", "groups", "given", "by_name", "found", "best", "files"],
    );
    let time = |name: &str| found[name]["time"].as_f64().unwrap();
    assert!((time("given") - 2.0).abs() < 1e-6 && (time("by_name") - 1.0).abs() < 1e-6, "{found}");
    assert!((time("found") - 1.0).abs() < 1e-6 && found["best"] == true, "{found}");
    assert_eq!(found["found"]["hops"], 6 * 2 + 2 * 4);
    let hosts = String::from_utf8(workspace.read("hosts")).unwrap();
    assert_eq!(hosts.lines().next(), Some("n0"), "the first machine stays");
    let racks: Vec<bool> = hosts.lines().map(|host| host < "n4").collect();
    assert_eq!(racks.windows(2).filter(|pair| pair[0] != pair[1]).count(), 1, "{hosts}");
    let text = workspace.text("order job.yaml");
    assert!(text.contains("gain       2.000 times as fast as given; no order is better"), "{text}");
}

#[test]
fn host_files_are_those_of_launchers() {
    let workspace = Workspace::new();
    let network = "dgx-a100:boxes=2,gpus=2";
    for (kind, first) in
        [("slurm", "b0\nb0\nb1\n"), ("openmpi", "b0 slots=2\n"), ("mpich", "b0:2\n"), ("nodes", "b0\nb1\n")]
    {
        let text = workspace.text(&format!("order {network} --to {kind} -o -"));
        assert!(text.starts_with(first), "{kind}: {text}");
    }
    let map = workspace.text(&format!("order {network} --to configmap -o -"));
    assert!(map.contains("kind: ConfigMap") && map.ends_with("data:\n  \"b0\": \"0\"\n  \"b1\": \"1\"\n"), "{map}");
    let told = workspace.text(&format!("order {network} --host b1.site"));
    assert_eq!(told.trim(), "NODE_RANK=1\nMASTER_ADDR=b0\nNNODES=2");
    assert_eq!(workspace.text(&format!("order {network} --host b1.site -o b1.env")), "");
    assert_eq!(String::from_utf8(workspace.read("b1.env")).unwrap(), told);
    workspace.refused(&format!("order {network} --host b7"), 2, &["no machine of the network"]);
    let text = workspace.text(&format!("order {network}"));
    assert!(text.contains("no gain    no order is better than the one given"), "{text}");
}

/// Machines of a job among others, and groups of ranks: columns of their own.
#[test]
fn parts_and_groups_have_columns() {
    let workspace = Workspace::new();
    in_turns(&workspace);
    let part = workspace.json("order job.yaml --nodes n0,n4,n1,n5 --json");
    let share = |name: &str| part[name]["fair_share"].as_f64().unwrap();
    assert!((share("given") - 2.0).abs() < 1e-6 && (share("found") - 1.0).abs() < 1e-6, "{part}");
    let hosts: Vec<&str> =
        part["machines"].as_array().unwrap().iter().map(|one| one["host"].as_str().unwrap()).collect();
    assert_eq!(hosts, ["n0", "n1", "n4", "n5"]);
    let text = workspace.text("order job.yaml --nodes n0,n4,n1,n5");
    assert!(text.contains("FAIR SHARE") && text.contains("HASHED"), "{text}");
    workspace.write("nodes", "n0\nn4\n");
    let few = workspace.json("order job.yaml --nodes-file nodes --json");
    assert_eq!(few["machines"].as_array().unwrap().len(), 2);
    let groups = "--group ep=4:all-to-all --group dp=2:ring:3";
    let grouped = workspace.json(&format!("order job.yaml {groups} --json"));
    assert_eq!(grouped["groups"][0]["name"], "ep");
    assert_eq!(grouped["groups"][1]["pattern"], "ring");
    let times = |name: &str| grouped[name]["group_times"][0].as_f64().unwrap();
    assert!(times("found") < times("given"), "{grouped}");
    let text = workspace.text(&format!("order job.yaml {groups}"));
    assert!(text.contains("EP ALL-TO-ALL") && text.contains("DP RING"), "{text}");
}

#[test]
fn what_cannot_be_ordered_is_refused() {
    let workspace = Workspace::new();
    let remedy = "compose the network with `canopy network compose`, or add `host`";
    workspace.refused("order ring:8", 2, &["does not say on which machines its ranks are", remedy]);
    let remedy = "write NAME=SIZE, NAME=SIZE:PATTERN or NAME=SIZE:PATTERN:WEIGHT";
    workspace.refused("order dgx-a100:boxes=2 --group 8", 2, &["`8` does not name a group", remedy]);
    workspace.refused("order dgx-a100:boxes=2 --group tp=8:star", 2, &["take ring, trees or all-to-all"]);
    let remedy = "name all kinds from the innermost to the outermost";
    workspace.refused("order dgx-a100:boxes=2 --group tp=8", 2, &["8 ranks together", "has 16", remedy]);
    let remedy = "`canopy tools order T --to nodes -o -` lists the machines";
    workspace.refused("order dgx-a100:boxes=2 --nodes b[0-2]", 2, &["`b2` is not a machine of the network", remedy]);
    workspace.refused("order clusters/prod:b0", 2, &["is kept by a server"]);
    workspace.refused("order dgx-a100:boxes=2 --to slurm", 2, &["--output"]);
    workspace.refused("order dgx-a100:boxes=2 --to slurm -o - --json", 2, &["--json needs a file for the hosts"]);
}

/// Names are sorted as strings, as runtimes do it; by number is a row of its own where that is another order.
#[test]
fn names_are_sorted_as_strings() {
    let workspace = Workspace::new();
    let fabric =
        "SwitchName=leaf1 Nodes=gpu-[1-4]\nSwitchName=leaf2 Nodes=gpu-[9-12]\nSwitchName=spine Switches=leaf[1-2]\n";
    workspace.write("topology.conf", fabric);
    let compose = "topology compose --fabric topology.conf --rates nic=100Gb/s,oversub=4 -o job.yaml --nodes";
    workspace.text(&format!("{compose} gpu-[1-4,9-12]"));
    let text = workspace.text("order job.yaml");
    let row = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    assert_eq!(
        [row("given"), row("by name "), row("by number"), row("new")].map(Option::unwrap),
        ["1.000", "2.000", "1.000", "1.000"]
    );
    let found = workspace.json("order job.yaml --json");
    assert!((found["by_name"]["time"].as_f64().unwrap() - 2.0).abs() < 1e-6, "{found}");
    assert!((found["by_number"]["time"].as_f64().unwrap() - 1.0).abs() < 1e-6, "{found}");
    workspace.text(&format!("{compose} gpu-[1-4]"));
    assert_eq!(workspace.json("order job.yaml --json").get("by_number"), None);
}
