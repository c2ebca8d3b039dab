//! What somebody with a stock library can gain, in one of four honest outcomes.

use crate::support::Workspace;

fn worth(workspace: &Workspace, arguments: &str) -> Vec<String> {
    let found = workspace.json(&format!("start {arguments} --json"));
    found["worth_it"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn plans_are_worth_it_where_they_are_faster_than_what_stock_takes() {
    let workspace = Workspace::new();
    assert_eq!(worth(&workspace, "dgx-a100:boxes=2 -c allgather"), ["plans"]);
    let text = workspace.text("start dgx-a100:boxes=2 -c allgather");
    for words in [
        "nothing was measured",
        "outcome    worth it: plans",
        "canopy plan bundle dgx-a100:boxes=2 -c allgather",
        "all_gather_perf",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// The verdict of `explain` is the same: no plan is worth it where stock is as fast.
#[test]
fn nothing_is_promised_where_stock_is_as_fast() {
    let workspace = Workspace::new();
    for network in ["dgx-a100", "dgx-h100"] {
        let gains = workspace.json(&format!("start {network} -c allreduce --sizes 1GiB..4GiB --json"));
        let best = &gains["plans"][0]["best"]["times_as_fast"];
        let is_worth = gains["worth_it"].as_array().unwrap().iter().any(|name| name == "plans");
        assert_eq!(is_worth, best.as_f64().unwrap() >= 1.05, "{network}: {gains}");
    }
    assert_eq!(worth(&workspace, "dgx-h100 -c allreduce --sizes 1GiB..4GiB"), [""; 0]);
    assert!(workspace.text("start dgx-h100 -c allreduce --sizes 1GiB..4GiB").contains("leave all as it is"));
}

/// Eight machines on four leaves, named so that neighbours in the order of names are far apart.
#[test]
fn another_order_is_worth_it_where_rings_cross_the_spine_needlessly() {
    let workspace = Workspace::new();
    let mut file = "canopy: 1\nnodes:\n".to_owned();
    let mut links = "links:\n".to_owned();
    for machine in 0..8 {
        file += &format!("- {{id: g{machine}, host: m{machine}, box: m{machine}}}\n");
        links += &format!("- {{from: g{machine}, to: leaf{}, bandwidth: 50GB/s, both: true}}\n", machine % 2);
    }
    file += "- {id: leaf0, kind: switch}\n- {id: leaf1, kind: switch}\n- {id: spine, kind: switch}\n";
    links += "- {from: leaf0, to: spine, bandwidth: 50GB/s, both: true}\n- {from: leaf1, to: spine, bandwidth: 50GB/s, both: true}\n";
    workspace.write("job.yaml", format!("{file}{links}"));
    let found = workspace.json("start job.yaml -c allreduce --json");
    assert!(found["order"]["times_as_fast"].as_f64().unwrap() > 3.9, "{found}");
    assert!(found["worth_it"].as_array().unwrap().iter().any(|name| name == "order"), "{found}");
}

/// Where links were measured to be slower than the library takes them for, it can be told.
#[test]
fn a_table_is_compared_only_with_measurements() {
    let workspace = Workspace::new();
    assert_eq!(workspace.json("start dgx-a100:boxes=2 -c allreduce --json")["tuner"].as_array().unwrap().len(), 0);
    workspace.write("calibration.yaml", "calibration: 1\nacross: {rate: 0.3}\n");
    let found = workspace.json("start dgx-a100:boxes=2 -c allreduce --calibration calibration.yaml --json");
    let gain = &found["tuner"][0];
    assert_eq!(gain["collective"], "allreduce");
    assert!(gain["best"]["times_as_fast"].as_f64().unwrap() >= 1.0, "{found}");
}

/// A dump describes one machine, and a table of one does: neither says a word of boxes.
#[test]
fn one_machine_is_known_without_a_word_of_boxes() {
    let workspace = Workspace::new();
    let dump = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/import/tests/data/h100-host.xml");
    workspace.write("topo.xml", std::fs::read(dump).unwrap());
    let text = workspace.text("start topo.xml -c allreduce --sizes 1GiB..4GiB");
    assert!(text.contains("1 machine of 8 GPUs") && text.contains("leave all as it is"), "{text}");
    workspace.write(
        "matrix.txt",
        "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\tNV12\tNV12\tNV12\nGPU1\tNV12\tX\tNV12\tNV12\n\
         GPU2\tNV12\tNV12\tX\tNV12\nGPU3\tNV12\tNV12\tNV12\tX\n",
    );
    assert!(workspace.text("start matrix.txt -c allgather").contains("1 machine of 4 GPUs"));
}

#[test]
fn what_cannot_be_judged_is_said() {
    let workspace = Workspace::new();
    workspace.refused("start ring:8", 2, &["no model", "canopy network compose"]);
    workspace.refused("start dgx-h100 -c broadcast", 2, &["broadcast is not compared here"]);
}
