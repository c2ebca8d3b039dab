//! Networks of machines and fabrics.

use crate::support::{Workspace, check_members};

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
    assert!(composed["report"]["understood"][2].as_str().unwrap().starts_with("4 of 8 machines"), "{composed}");
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
        ("topology compose --host host.xml --fabric topology.conf --nodes gpu9", "node `gpu9` is not in the cluster"),
        ("topology compose --fabric topology.conf --nodes gpu01,gpu02", "state it with `nic=400Gb/s`"),
        ("topology compose --fabric topology.conf --rates nik=1GB/s", "did you mean `nic`?"),
        ("topology replicate host.xml --boxes 2 --fabric mesh", "use star, rail, rail:spine or leaf-spine"),
        ("topology replicate host.xml --boxes 0 --fabric star", "expected 1 to 65536"),
        ("topology show topology.conf", "does not say how fast"),
    ] {
        workspace.refused(arguments, 2, &[words]);
    }
}

#[test]
fn a_stored_cluster_is_planned_by_the_names_of_machines() {
    let workspace = workspace();
    let put = workspace.json("cluster put prod --host host.xml --fabric topology.conf --json");
    check_members(
        &put,
        &[
            "canopy",
            "command",
            "created",
            "changed",
            "name",
            "nodes",
            "ranks",
            "switches",
            "bytes",
            "created_at",
            "updated_at",
            "understood",
            "assumed",
            "left_out",
        ],
    );
    assert_eq!((&put["created"], &put["ranks"], &put["name"]), (&true.into(), &32.into(), &"clusters/prod".into()));
    assert!(
        workspace.run("cluster put prod --host host.xml --fabric topology.conf").stdout.contains("was there already")
    );
    let near = workspace.json("plan clusters/prod:gpu[01-02] --collective allgather -o near.json --json");
    assert_eq!((&near["cache"], &near["optimality"]), (&"miss".into(), &"1/1".into()), "{near}");
    assert_eq!(workspace.json("plan clusters/prod:gpu[01-02] -c allgather -o near.json --json")["cache"], "hit");
    // What is planned is what `compose` writes, but that it is a part of the cluster.
    workspace.json("topology compose --host host.xml --fabric topology.conf --nodes gpu[03-06] -o job.yaml --json");
    workspace.json("topology get clusters/prod:gpu[03-06] -o part.yaml --json");
    let hash = |file: &str| workspace.json(&format!("topology hash {file} --json"))["content"].clone();
    assert_eq!(hash("part.yaml"), hash("job.yaml"));
    assert!(workspace.run("topology get clusters/prod:gpu[03-06]").stdout.contains("\ncluster: prod\n"));
    assert_eq!(workspace.json("topology check clusters/prod --json")["found"]["topology"]["ranks"], 32);

    let told = workspace.json("faults report clusters/prod link:leaf1=spine*1/2 --json --local");
    assert_eq!(told["topology"].as_str().map(|id| id.starts_with("topologies/")), Some(true), "{told}");
    let listed = workspace.json("faults list --json --local");
    assert_eq!(
        (&listed["faults"][0]["topology"], &listed["faults"][0]["scope"]),
        (&"clusters/prod".into(), &"cluster".into())
    );
    let around = workspace.run("plan clusters/prod:gpu03,gpu07 --collective allgather -o around.json");
    assert!(around.stderr.contains("planned around 1 known fault: link:leaf1=spine*1/2"), "{}", around.stderr);
    workspace.json("faults clear clusters/prod --all --json --local");

    let shown = workspace.run("cluster show prod").stdout;
    assert!(shown.starts_with("clusters/prod\nranks      32\n") && shown.ends_with("\n  gpu08\n"), "{shown}");
    assert_eq!(workspace.json("cluster list --json")["clusters"][0]["nodes"], 8);
    workspace.refused(
        "plan clusters/prod:gpu[01-09] -c allgather -o x.json",
        2,
        &["node `gpu09` is not in the cluster"],
    );
    workspace.refused("bound clusters/prod -c allgather", 2, &["kept by a server", "canopy network get"]);
    workspace.json("cluster delete prod --json");
    workspace.refused("plan clusters/prod:gpu[01-02] -c allgather -o x.json", 2, &["clusters/prod", "cluster put"]);
}

#[test]
fn clusters_of_layouts_and_whole_networks_are_stored() {
    let workspace = workspace();
    workspace.json("cluster put lab --host host.xml --fabric rail --nodes lab[1-4] --json");
    let two = workspace.json("plan clusters/lab:lab4,lab2 --collective allgather -o two.json --json");
    assert_eq!(two["topology"]["ranks"], 8);
    workspace.json("cluster put dgx --network dgx-a100:boxes=4 --json");
    let one = workspace.json("plan clusters/dgx:b3 --collective allgather -o one.json --json");
    assert_eq!(one["topology"]["ranks"], 8);
    workspace.refused("cluster put lab --fabric rail", 2, &["layout `rail` does not name machines", "--nodes"]);
    workspace.refused("cluster put lab --fabric mesh --nodes a[1-2]", 2, &["layout `mesh`", "taken for a layout"]);
    workspace.refused("cluster put lab --fabric topology.conf --nodes a[1-2]", 2, &["names its machines"]);
    workspace.refused("cluster put a/b --network ring:4", 2, &["does not name a cluster"]);
    workspace.refused("cluster put ring --network ring:4", 2, &["is on no machine"]);
}

#[test]
fn a_check_says_how_files_of_others_were_read() {
    let workspace = workspace();
    let machine = workspace.json("topology check host.xml --json");
    assert_eq!((&machine["kind"], &machine["ok"]), (&"NCCL XML".into(), &true.into()));
    assert_eq!(machine["report"]["understood"][0], "4 GPUs, 1 CPU and 2 ports of NICs");
    let text = workspace.run("topology check host.xml").stdout;
    assert!(
        text.contains("read as    NCCL XML\nunderstood:\n  4 GPUs") && text.contains("\n  not needed, because "),
        "{text}"
    );
    // What only joins machines is understood, and is no network by itself.
    let fabric = workspace.run("topology check topology.conf --json");
    let told = fabric.object();
    assert_eq!((fabric.status, &told["ok"], &told["kind"]), (Some(2), &false.into(), &"topology.conf".into()));
    assert!(told["report"]["understood"][0].as_str().unwrap().starts_with("8 nodes and 3 switches"), "{told}");
    assert!(fabric.stderr.contains("does not say how fast") && fabric.stderr.contains("network compose"), "{fabric:?}");
}

/// The hooks of a scheduler name the cluster and the nodes of the job, in the words of the scheduler.
#[test]
fn hooks_plan_for_the_nodes_of_a_job_in_a_cluster() {
    let workspace = workspace();
    workspace.json("cluster put prod --host host.xml --fabric topology.conf --json");
    workspace.write("hosts", "gpu05 slots=4\ngpu02:4\n");
    let fetch = |arguments: &str, folder: &str| {
        let fetched = "fetch clusters/prod --collective allgather --job 17 --deadline 20s";
        let run = workspace.run(&format!("{fetched} {arguments} --out {folder}"));
        assert!(run.stderr.contains("1 of 1 plan for job 17"), "{run:?}");
        let manifest = std::fs::read(workspace.path(&format!("{folder}/manifest.json"))).unwrap();
        serde_json::from_slice::<serde_json::Value>(&manifest).unwrap()
    };
    let by_list = fetch("--nodes gpu02/0*4+gpu05/0*4", "a");
    let by_file = fetch("--nodes-file hosts", "b");
    assert_eq!((&by_list["nodes"][0], &by_list["files"][0]["ranks"]), (&"gpu02".into(), &8.into()));
    assert_eq!((&by_file["nodes"][0], &by_file["files"][0]["optimality"]), (&"gpu05".into(), &"1/1".into()));
    let plans = [&by_list, &by_file].map(|manifest| manifest["files"][0]["plan"].clone());
    assert_ne!(plans[0], plans[1], "ranks are in the order of the list");
    let twice = workspace.run("fetch clusters/prod:gpu01 --collective allgather --job 17 --nodes gpu02 --out c");
    assert!(twice.stderr.contains("names machines, and --nodes does, too"), "{twice:?}");
}
