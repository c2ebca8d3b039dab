//! What the program does not do, and how it says so.

use crate::support::Workspace;

#[test]
fn options_of_later_versions_are_refused_by_name() {
    let workspace = Workspace::new();
    for option in ["--link-down 0:1", "--node-down 2", "--degrade 0:1=1/2"] {
        let name = option.split_whitespace().next().unwrap();
        workspace.refused(&format!("plan ring:4 --collective allgather {option}"), 2, &[name, "unknown option"]);
    }
    assert!(!workspace.path("data").exists(), "refused before a server was started");
}

#[test]
fn names_of_later_versions_are_told_from_nonsense() {
    let workspace = Workspace::new();
    for (arguments, words) in [
        ("plan ring:4 --collective allgather --format oneccl-xml --profile msccl", "msccl reads msccl-xml"),
        ("plan ring:4 --collective allgather --format oneccl-xml --instances 2", "--instances is for msccl-xml"),
        ("plan ring:4 --collective allgather --format pdf", "unknown format `pdf`"),
        ("plan ring:4 --collective allgather --format msccl-xml --profile oneccl", "add `--format oneccl-xml`"),
        (
            "plan ring:4 --collective allgather --format msccl-xml --profile cuda",
            "rccl-msccl, mscclpp-0.8, mscclpp-0.9, mscclpp-0.10, oneccl, routes, nccl",
        ),
        ("plan ring:4 --collective allgather --format msccl-xml --profile nccl", "cannot load external plans"),
        ("plan ring:4 --collective allgather --algorithm magic", "unknown algorithm"),
        ("plan ring:4 --collective allgather --format json --profile msccl", "json is canopy's own"),
        ("plan ring:4 --collective allgather --json", "-o FILE"),
        ("plan ring:4", "no collective is given"),
        ("plan ring:4 --collective allgather -f json -f msccl-xml", "cannot be combined"),
        ("plan ring:4 --collective allgather --in-place --out-of-place", "cannot be combined"),
        ("plan ring:4 --collective allgather --size 0", "the size is zero"),
        ("plan ring:4 --collective allgather --size big", "is not a size"),
        ("plan missing.yaml --collective allgather", "neither an existing file nor"),
        ("plan ring:4 --collective allgather -o no/such/folder/plan.json", "cannot write no/such/folder/plan.json"),
        ("plan ring:4 --collective allgather --server nowhere", "is not a server address"),
        ("plam ring:4", "did you mean"),
    ] {
        workspace.refused(arguments, 2, &[words]);
    }
}

/// `25` may be meant in GB/s or in Gbps: a network so described would be planned for, whatever was meant.
#[test]
fn rates_and_times_without_a_unit_are_refused_with_what_to_write() {
    let workspace = Workspace::new();
    let document = "canopy: 1\nnodes: [{id: a}, {id: b}]\nlinks: [{from: a, to: b, both: true, bandwidth: \"25\"}]\n";
    workspace.write("text.yaml", document);
    for (arguments, words) in [
        ("bound ring:8,bw=25 -c allgather", ["bw: `25` has no unit", "write `25GB/s`"]),
        ("bound ring:8,lat=3 -c allgather", ["lat: `3` has no unit", "or `3us`"]),
        ("bound ring:8,host=75 -c allgather", ["host: `75` has no unit", "write `75GB/s`"]),
        ("bound rail:boxes=2,nv=450 -c allgather", ["nv: `450` has no unit", "write `450GB/s`"]),
        ("bound dims:ring4+fc2,bw=200GB/s+50 -c allgather", ["bw: `50` has no unit", "write `50GB/s`"]),
        ("bound text.yaml -c allgather", ["links[0].bandwidth: `25` has no unit", "write `25GB/s`"]),
        ("bound ring:8 -c allgather --deadline 30", ["--deadline: `30` has no unit", "`30s`"]),
        ("simulate ring:8 -c allgather --alpha 1", ["--alpha: `1` has no unit", "`1ms`"]),
        ("find --nodes 8 --degree 4 --node-bw 100", ["--node-bw: `100` has no unit", "write `100GB/s`"]),
        ("run plan.xml --delays 20", ["--delays: `20` has no unit", "`20ms`"]),
    ] {
        workspace.refused(arguments, 2, &words);
    }
}

#[test]
fn a_server_that_is_not_there_is_worth_another_try() {
    let workspace = Workspace::new();
    workspace.refused("plan ring:4 --collective allgather --server unix:nothing.sock", 6, &["cannot reach the server"]);
    assert!(!workspace.path("data").exists(), "a named server is the only one asked");
}

#[test]
fn help_and_version_succeed() {
    let workspace = Workspace::new();
    let version = workspace.run("--version");
    assert_eq!((version.status, version.stdout), (Some(0), format!("canopy {}\n", env!("CARGO_PKG_VERSION"))));
    for arguments in [
        "--help",
        "plan --help",
        "bound --help",
        "verify --help",
        "topology --help",
        "plans --help",
        "jobs --help",
        "stats --help",
        "drain --help",
        "bench --help",
        "prefetch --help",
        "fetch --help",
        "env --help",
        "release --help",
    ] {
        let run = workspace.run(arguments);
        assert_eq!(run.status, Some(0), "{arguments}");
        assert!(run.stdout.contains("canopy"), "{arguments}\n{}", run.stdout);
        assert!(!run.stdout.contains("--link-down"), "{arguments} offers what there is not");
    }
    assert_eq!(workspace.run("").status, Some(2), "no command is no success");
}
