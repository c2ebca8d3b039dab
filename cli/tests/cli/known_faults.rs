//! What known faults mean for new plans, and whom a fault concerns, against a server.

use serde_json::json;

use crate::support::{Serving, Workspace};

const PLAN: &str = "plan dgx-a100:boxes=2 --collective allgather -o plan.json --json";

#[test]
fn new_plans_are_made_around_known_faults_and_say_so() {
    let workspace = Workspace::new();
    let _server = Serving::with(&workspace, "--fault-debounce 100ms --plan-ahead=false");
    let healthy = workspace.json(PLAN);
    assert!(healthy.get("faults").is_none(), "{healthy}");
    workspace.json("faults report dgx-a100:boxes=2 nic:b0g3 --json");
    let around = workspace.json(PLAN);
    assert_eq!(around["faults"], json!(["nic:b0g3"]));
    assert_ne!(around["plan"], healthy["plan"]);
    let said = workspace.run("plan dgx-a100:boxes=2 --collective allgather -o plan.json").stderr;
    assert!(said.contains("warning: FAULTS_APPLIED: planned around 1 known fault: nic:b0g3\n"), "{said}");
    assert!(said.contains("help: add `--faults ignore` for the plan of the healthy network\n"), "{said}");
    assert_eq!(workspace.json(&format!("{PLAN} --faults ignore"))["plan"], healthy["plan"]);
    let fetch = "fetch dgx-a100:boxes=2 -c allgather --job 17 --out job --deadline 30s --strict";
    workspace.refused(&format!("{fetch} --lease 1h --faults ignore"), 2, &["a lease is planned around faults"]);

    let fetched = workspace.run(&format!("{fetch} --lease 1h"));
    assert_eq!(fetched.status, Some(0), "{fetched:?}");
    let held = workspace.json("leases list --json")["leases"][0]["plans"][0].clone();
    assert_ne!(held["current"], held["original"], "its first plan is around the fault");
    workspace.json("faults clear dgx-a100:boxes=2 --all --json");
    assert_eq!(workspace.json(PLAN)["plan"], healthy["plan"]);
}

/// A server that has known a fault of the network, and says of the bound what the program itself says of what is left.
#[test]
fn a_bound_from_a_server_takes_known_faults_into_account() {
    let workspace = Workspace::new();
    let _server = Serving::with(&workspace, "--plan-ahead=false");
    let server = format!("--server unix:{}", workspace.path("data/canopy.sock").display());
    const BOUND: &str = "bound dgx-a100:boxes=2 --collective allreduce";
    let bare = workspace.json(&format!("{BOUND} --json"));
    assert_eq!(workspace.json(&format!("{BOUND} --json {server}")), bare, "without faults, both are the same object");
    workspace.json("faults report dgx-a100:boxes=2 link:b0g3-ib --json");
    let around = workspace.json(&format!("{BOUND} --json {server}"));
    assert_eq!(around["faults"], json!(["link:b0g3=ib"]));
    let left = workspace.json("bound dgx-a100:boxes=2,down=b0g3-ib --collective allreduce --json");
    assert_eq!((&around["bound"], &around["certificate"]), (&left["bound"], &left["certificate"]));
    assert_eq!(workspace.json(&format!("{BOUND} --json {server} --faults ignore")), bare);
    let said = workspace.run(&format!("{BOUND} {server}"));
    assert!(said.stderr.contains("warning: FAULTS_APPLIED: planned around 1 known fault: link:b0g3=ib\n"), "{said:?}");
    assert!(said.stdout.contains("\nbound      ") && said.stdout.contains("\ntight      yes"), "{said:?}");
    workspace.refused(&format!("{BOUND} {server} --explain"), 2, &["--explain is worked out here"]);
}

/// The server weighs what the program itself weighs, on what known faults leave.
#[test]
fn faults_are_ranked_by_a_server_around_those_that_it_knows() {
    let workspace = Workspace::new();
    let _server = Serving::with(&workspace, "--plan-ahead=false");
    let server = format!("--server unix:{}", workspace.path("data/canopy.sock").display());
    const RANK: &str = "faults what-if dgx-a100:boxes=2 --collective allreduce";
    let bare = workspace.json(&format!("{RANK} --json"));
    assert_eq!(workspace.json(&format!("{RANK} --json {server}")), bare, "without faults, both are the same object");
    let halved = "--kinds nics,boxes --remaining 1/2";
    assert_eq!(
        workspace.json(&format!("{RANK} {halved} --json {server}")),
        workspace.json(&format!("{RANK} {halved} --json"))
    );
    workspace.json("faults report dgx-a100:boxes=2 nic:b0g3 --json");
    let around = workspace.json(&format!("{RANK} --json {server}"));
    let left = workspace.json("faults what-if dgx-a100:boxes=2,down=b0g3-ib --collective allreduce --json");
    assert_eq!((&around["sound"], &around["faults"]), (&left["sound"], &left["faults"]));
    assert_eq!(workspace.json(&format!("{RANK} --json {server} --faults ignore")), bare);
    let said = workspace.run(&format!("{RANK} {server}"));
    assert!(said.stderr.contains("warning: FAULTS_APPLIED: planned around 1 known fault: nic:b0g3\n"), "{said:?}");
    workspace.refused(&format!("faults what-if ring:4,down=0-1+2-3 -c allgather {server}"), 3, &["add links"]);
}

#[test]
fn faults_are_reported_by_machine_and_by_job() {
    let workspace = Workspace::new();
    let _server = Serving::with(&workspace, "--fault-debounce 100ms --plan-ahead=false");
    for (job, nodes) in [("17", "gpu[01-02]"), ("18", "gpu[11-12]")] {
        let fetch = format!(
            "fetch dgx-a100:boxes=2 -c allgather --job {job} --nodes {nodes} --out job{job} --lease 1h --deadline 30s --strict"
        );
        let fetched = workspace.run(&fetch);
        assert_eq!(fetched.status, Some(0), "{fetched:?}");
    }
    let bare = workspace.run("faults report dgx-a100:boxes=2 nic:b0g3");
    assert!(bare.stdout.contains("nic:b0g3  applied, scope topology\n"), "{bare:?}");
    assert!(bare.stderr.contains("2 leases place this topology on machines that it does not name"), "{bare:?}");
    assert!(bare.stderr.contains("help: name the device by its machine, such as `nic:HOST:INDEX`, or add `--job J`"));

    let told = workspace.json("faults report --job 18 nic:b0g3 --json");
    assert_eq!((&told["outcomes"][0]["fault"], &told["leases"]), (&json!("nic:gpu11:3"), &json!(1)));
    assert_eq!(told["outcomes"][0]["scope"], "host");
    let told = workspace.run("faults report nic:gpu01:3");
    assert!(told.stdout.ends_with("\nmachines: 1 broken or slow element, 1 lease affected\n"), "{told:?}");
    workspace.refused("faults report --job 19 nic:gpu01:3", 2, &["job `19` holds no lease"]);
    let unnamed = workspace.run("faults report nic:b0g3");
    assert_eq!(unnamed.status, Some(2), "{unnamed:?}");
    assert!(unnamed.stdout.contains("write host:NAME, gpu:HOST:INDEX or nic:HOST:INDEX"), "{unnamed:?}");
    workspace.refused("faults report dgx-a100:boxes=2", 2, &["no fault is named"]);

    let table = workspace.run("faults list --filter scope=host").stdout;
    assert!(table.contains("nic:gpu01:3") && table.contains("nic:gpu11:3") && !table.contains("nic:b0g3"), "{table}");
    assert_eq!(workspace.json("faults clear nic:gpu01:3 --json")["cleared"], 1);
    assert_eq!(workspace.json("faults clear --job 18 --all --json")["cleared"], 1);
    workspace.refused("faults clear --job 18", 2, &["no fault is named", "or add `--all`"]);
}
