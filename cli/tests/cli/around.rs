//! `--fault`: networks without what is named, whatever they are read from.

use crate::support::Workspace;

/// Each command finds of a network without an element what it finds of an expression that says so.
#[test]
fn a_fault_is_as_its_key_in_an_expression() {
    let workspace = Workspace::new();
    for (network, fault, key) in [
        ("dgx-a100:boxes=2", "link:b0g3=ib", "down=b0g3-ib"),
        ("dgx-a100:boxes=2", "nic:b0:3", "down=b0g3-ib"),
        ("dgx-a100:boxes=2", "nic:b0g3*1/2", "degrade=b0g3-ib*1/2"),
        ("dgx-a100:boxes=2", "nic:b0g3*0.5", "degrade=b0g3-ib*50%"),
        ("torus:4x4", "gpu:11", "nodes-down=11"),
        ("torus:4x4", "link:00>01", "down=00>01"),
    ] {
        let broken = format!("{network},{key}");
        workspace.text(&format!("topology generate {network} -o whole.yaml"));
        for collective in ["allgather", "allreduce", "all-to-all"] {
            let wanted = workspace.json(&format!("bound {broken} -c {collective} --json"))["bound"].clone();
            for given in [network, "whole.yaml"] {
                let found = workspace.json(&format!("bound {given} --fault {fault} -c {collective} --json"));
                assert_eq!(found["bound"], wanted, "{given} {fault} {collective}");
            }
        }
        let wanted = workspace.json(&format!("plan {broken} -c allgather -o x.json --json"))["algbw"].clone();
        for given in [network, "whole.yaml"] {
            let found = workspace.json(&format!("plan {given} --fault {fault} -c allgather -o x.json --json"));
            assert_eq!(found["algbw"], wanted, "{given} {fault}");
            assert_eq!(workspace.json("verify x.json --json")["ok"], true);
            let explained = workspace.json(&format!("explain {given} --fault {fault} -c allgather --json"));
            assert_eq!(explained["achieved"], wanted, "{given} {fault}");
            let simulated =
                workspace.json(&format!("simulate {given} --fault {fault} -c allgather --size 1GiB --json"));
            assert_eq!(simulated["algbw"], explained["achieved"], "{given} {fault}");
            let drawing = workspace.text(&format!("draw {given} --fault {fault} -o -"));
            let is_gone = !fault.contains('*');
            assert!(!is_gone || drawing.contains("stroke-dasharray"), "what is missing is dashed: {given} {fault}");
        }
    }
}

#[test]
fn a_fault_of_nothing_is_refused() {
    let workspace = Workspace::new();
    workspace.text("topology generate ring:4 -o ring.yaml");
    for (command, words) in [
        ("bound ring:4 --fault gpu:9 -c allgather", "no node `9`"),
        ("bound ring.yaml --fault link:0=2 -c allgather", "no link"),
        ("plan ring.yaml --fault gpu:9 -c allgather -o x.json", "no node `9`"),
        ("bound ring.yaml,down=0-1 -c allgather", "--fault"),
    ] {
        workspace.refused(command, 2, &[words]);
    }
    workspace.refused(
        "bound ring:4 --fault gpu:0 --fault gpu:1 --fault gpu:2 -c allgather",
        3,
        &["leave at least two"],
    );
}
