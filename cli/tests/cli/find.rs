//! `canopy tools find`.

use crate::support::{Workspace, check_members};

/// Table 3.4: 1,024 nodes of four ports, 10 µs, 100 Gbps, 1 MiB.
#[test]
fn the_published_frontier() {
    let workspace = Workspace::new();
    let object = workspace.json("find --nodes 1024 --degree 4 --workload allreduce:1MiB --deadline 10m --json");
    let rows = object["topologies"].as_array().unwrap();
    let named = |expression: &str| rows.iter().find(|row| row["expression"] == expression).unwrap();
    for (expression, steps, bandwidth, time_us) in [
        ("genkautz:n=1024,d=4", 5, "341/256", 323.472),
        ("line:2(power:2(diamond))", 8, "257/256", 328.427),
        ("line:1(power:2(dbjmod:d=2,n=4))", 11, "1/1", 387.772),
    ] {
        let row = named(expression);
        assert_eq!((&row["t_l"], &row["t_b"]), (&steps.into(), &bandwidth.into()), "{row}");
        assert!((row["time_us"].as_f64().unwrap() - time_us).abs() < 0.05, "{row}");
    }
    assert_eq!(object["lacking"], serde_json::json!([]));
    assert_eq!(object["bounds"]["t_b"], "1023/1024");
    let best = object["choices"]["allreduce"].as_array().unwrap();
    assert_eq!(best[0]["from_bytes"], "0");
    let least = rows.iter().map(|row| row["time_us"].as_f64().unwrap()).fold(f64::MAX, f64::min);
    assert!((object["workload"]["time_us"].as_f64().unwrap() - least).abs() < 1e-6, "{object}");
}

#[test]
fn the_object_has_the_shape_of_its_description() {
    let workspace = Workspace::new();
    let object = workspace.json("find --nodes 12 --degree 4 --json");
    let members = [
        "canopy",
        "command",
        "nodes",
        "degree",
        "links",
        "cached",
        "bounds",
        "model",
        "topologies",
        "choices",
        "lacking",
    ];
    check_members(&object, &members);
    check_members(&object["bounds"], &["t_l", "t_b", "all_to_all_rate"]);
    check_members(&object["model"], &["alpha_ns", "node_bytes_per_sec"]);
    let row = &object["topologies"][0];
    let members = [
        "expression",
        "t_l",
        "t_b",
        "t_b_decimal",
        "reduce_scatter_t_b",
        "t_b_kind",
        "diameter",
        "all_to_all",
        "bandwidth_optimal",
        "moore_optimal",
        "bidirectional",
        "reverse_symmetric",
    ];
    check_members(row, &members);
    check_members(&row["all_to_all"], &["rate", "rate_decimal", "kind"]);
    assert_eq!(row["expression"], "circulant:n=12,offsets=2+3");
    assert_eq!(object["choices"].as_object().unwrap().len(), 2);
    assert_eq!(workspace.json("find --nodes 12 --degree 4 --json")["cached"], true);
}

#[test]
fn tables_and_drawings_name_every_network() {
    let workspace = Workspace::new();
    let run = workspace.run("find --nodes 64 --degree 4 --workload all-to-all:64MiB --svg frontier.svg");
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let drawing = String::from_utf8(workspace.read("frontier.svg")).unwrap();
    for expression in ["genkautz:n=64,d=4", "line:1(dbjmod:d=4,n=2)", "power:2(diamond)"] {
        assert!(run.stdout.contains(expression), "{}", run.stdout);
        assert!(drawing.contains(expression));
    }
    assert!(run.stdout.contains("fastest for all-to-all at 10 us a step and 12.5 GB/s a node:"), "{}", run.stdout);
    assert!(drawing.ends_with("</svg>\n") && drawing.contains("time of all-to-all, us"));
}

#[test]
fn bad_numbers_are_refused() {
    let workspace = Workspace::new();
    for (arguments, status, words) in [
        ("find --nodes 8", 2, "--degree"),
        ("find --nodes 0 --degree 4", 2, "nodes: 0 is out of range"),
        ("find --nodes 8 --degree 99", 2, "degree: 99 is out of range"),
        ("find --nodes 4294967296 --degree 4", 2, "4294967296"),
        ("find --nodes 8 --degree 4 --workload gossip:1MiB", 2, "is not a workload"),
        ("find --nodes 8 --degree 4 --alpha 0us", 2, "the duration is zero"),
        ("find --nodes 8 --degree 4 --node-bw fast", 2, "fast"),
        ("find --nodes 7 --degree 3 --bidirectional", 3, "with links both ways"),
    ] {
        workspace.refused(arguments, status, &[words]);
    }
}
