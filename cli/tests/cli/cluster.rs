//! Networks of machines and fabrics.

use crate::support::Workspace;

/// Four GPUs, two NICs.
const DUMP: &str = include_str!("../../../crates/import/tests/data/four-gpus.xml");
const CONF: &str =
    "SwitchName=leaf1 Nodes=gpu[01-04]\nSwitchName=leaf2 Nodes=gpu[05-08]\nSwitchName=spine Switches=leaf[1-2]\n";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("host.xml", DUMP);
    workspace.write("topology.conf", CONF);
    workspace
}

#[test]
fn a_dump_and_slurm_make_the_network_of_a_job() {
    let workspace = workspace();
    let composed =
        workspace.json("topology compose --host host.xml --fabric topology.conf --nodes gpu[03-06] -o job.yaml --json");
    assert_eq!(composed["topology"]["ranks"], 16);
    assert!(composed["report"]["understood"][1].as_str().unwrap().starts_with("4 of 8 machines"), "{composed}");
    let shown = workspace.json("topology show job.yaml --json");
    assert_eq!((&shown["eulerian"], &shown["connected"]), (&true.into(), &true.into()));
    let bound = workspace.json("bound job.yaml --collective allgather --json");
    // Into each machine lead two NICs of 50 GB/s behind PCIe of 48: 96 GB/s for the shares of 12 ranks, of 16 in all.
    assert_eq!((&bound["bound"]["algbw"], &bound["bound"]["tight"]), (&"128000000000".into(), &true.into()), "{bound}");
}

#[test]
fn machines_without_a_dump_are_ranks() {
    let workspace = workspace();
    let composed = workspace
        .json("topology compose --fabric topology.conf --rates nic=400Gb/s,leaf-spine=800Gb/s -o all.yaml --json");
    assert_eq!((&composed["topology"]["ranks"], &composed["topology"]["nodes"]), (&8.into(), &11.into()));
}

#[test]
fn layouts_join_copies_of_a_machine() {
    let workspace = workspace();
    let made = workspace.json("topology replicate host.xml --boxes 3 --fabric rail -o three.yaml --json");
    assert_eq!(made["topology"]["ranks"], 12);
    assert_eq!(made["report"]["left_out"], serde_json::json!([]));
}

#[test]
fn refusals_say_what_to_give() {
    let workspace = workspace();
    for (arguments, words) in [
        (
            "topology compose --fabric host.xml --nodes a",
            "host.xml: this is NCCL XML (a machine), not what joins machines",
        ),
        ("topology compose --host topology.conf --fabric topology.conf", "(what joins machines), not a machine"),
        ("topology compose --host host.xml --fabric topology.conf --nodes gpu9", "node `gpu9` is not in the fabric"),
        ("topology compose --fabric topology.conf --nodes gpu01,gpu02", "state it with `nic=400Gb/s`"),
        ("topology compose --fabric topology.conf --rates nik=1GB/s", "did you mean `nic`?"),
        ("topology replicate host.xml --boxes 2 --fabric mesh", "use star, rail, rail:spine or leaf-spine"),
        ("topology replicate host.xml --boxes 0 --fabric star", "expected 1 to 65536"),
        ("topology show topology.conf", "does not say how fast"),
    ] {
        workspace.refused(arguments, 2, &[words]);
    }
}
