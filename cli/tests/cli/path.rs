//! `canopy tools path`.

use crate::support::{Workspace, check_members};

/// Type 1 of K(4, 2), with α = 1 µs and β = 0.1 ns.
const KAUTZ: &str = "path kautz:d=4,n=2,bw=10GB/s,lat=1us 0 10 --size 1MB";

#[test]
fn parts_are_told_for_people() {
    let workspace = Workspace::new();
    let run = workspace.run(KAUTZ);
    assert_eq!(run.status, Some(0), "{run:?}");
    let expected = "\
1 MB from rank 0 to rank 10
time       69.333 us on 4 paths, of 4 without a common link
in equal   78.000 us if the message is divided equally
on one     202.000 us by 01 > 12 > 23
 BYTES  LINKS   LATENCY   NS/BYTE  PATH
336667      2  2.000 us  0.200000  01 > 12 > 23
221111      3  3.000 us  0.300000  01 > 10 > 02 > 23
221111      3  3.000 us  0.300000  01 > 13 > 32 > 23
221111      3  3.000 us  0.300000  01 > 14 > 42 > 23
";
    assert_eq!(run.stdout, expected);
}

#[test]
fn the_object_has_the_shape_of_its_description() {
    let workspace = Workspace::new();
    let object = workspace.json(&format!("{KAUTZ} --json"));
    let members = [
        "canopy",
        "command",
        "source_rank",
        "target_rank",
        "size_bytes",
        "forwarding",
        "disjoint_paths",
        "time_ns",
        "whole_time_ns",
        "even_time_ns",
        "single",
        "paths",
    ];
    check_members(&object, &members);
    check_members(&object["single"], &["nodes", "time_ns"]);
    check_members(&object["paths"][0], &["nodes", "bytes", "share_bytes", "latency_ns", "ns_per_byte"]);
    assert_eq!((&object["time_ns"], &object["single"]["time_ns"]), (&"208000/3".into(), &"202000".into()));
    let two = workspace.json(&format!("{KAUTZ} --paths 2 --forwarding through --json"));
    assert_eq!((two["paths"].as_array().unwrap().len(), &two["forwarding"]), (2, &"through".into()));
}

#[test]
fn refusals_name_the_argument() {
    let workspace = Workspace::new();
    workspace.refused("path ring:4 0 1 --size 0", 2, &["--size"]);
    workspace.refused("path ring:4 0 1", 2, &["--size"]);
    workspace.refused(
        "path ring:4 0 4 --size 8",
        2,
        &["target_rank: rank 4 is not in the topology", "use a rank below 4"],
    );
    workspace.refused("path ring:4 1 1 --size 8", 2, &["source and destination are both"]);
    workspace.refused("path ring:4 0 1 --size 8 --paths 65", 2, &["1 to 64 paths"]);
    workspace.refused("path ring:4 0 1 --size 8 --paths 0", 2, &["--paths"]);
    workspace.refused("path ring:4,dir=uni,down=0>1 0 1 --size 8", 3, &["add links that lead there"]);
    workspace.refused("path nowhere.yaml 0 1 --size 8", 2, &["nowhere.yaml"]);
}
