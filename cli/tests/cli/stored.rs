//! Topologies that a server keeps, and archives of all that it holds.

use std::fs;

use serde_json::Value;

use crate::support::{DISCONNECTED, Workspace, check_members, sha256};

const PAIR: &str = "\
canopy: 1
name: pair
nodes: [{id: a, host: left}, {id: b}]
links: [{from: a, to: b, bandwidth: 1GB/s, both: true}]
";

fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object[member].as_str().unwrap_or_else(|| panic!("{member} of {object}"))
}

#[test]
fn a_topology_is_put_listed_written_named_and_deleted() {
    let workspace = Workspace::new();
    workspace.write("pair.yaml", PAIR);
    let put = workspace.json("topology put pair.yaml --json");
    check_members(&put, &["canopy", "command", "created", "id", "name", "topology", "bytes", "created_at", "warnings"]);
    assert_eq!((&put["created"], text(&put, "name")), (&true.into(), "pair"));
    let id = text(&put, "id");
    assert_eq!(workspace.json("topology put pair.yaml --json")["created"], false);
    assert!(workspace.run("topology put pair.yaml").stdout.contains(&format!("{id} was there already")));
    workspace.json("topology put ring:5 --json");

    let list = workspace.json("topology list --filter ranks<5 --sort -ranks,name --json");
    check_members(&list, &["canopy", "command", "topologies", "total"]);
    assert_eq!((text(&list["topologies"][0], "id"), &list["total"]), (id, &1.into()));
    let table = workspace.run("topology list").stdout;
    assert!(table.starts_with("TOPOLOGY ") && table.contains("pair"), "{table}");

    let got = workspace.json(&format!("topology get {id} -o copy.json --json"));
    check_members(&got, &["canopy", "command", "id", "name", "topology", "bytes", "created_at", "files"]);
    assert_eq!(text(&got["files"][0], "sha256"), sha256(&workspace.path("copy.json")));
    assert_eq!(workspace.json("topology put copy.json --json")["id"], id, "what was written is the same topology");
    let yaml = workspace.run(&format!("topology get {id}")).stdout;
    assert!(yaml.contains("host: left"), "{yaml}");

    let named = workspace.json(&format!("plan {id} --collective allgather -o plan.json --json"));
    let plain = workspace.json("plan pair.yaml --collective allgather -o plan.json --json");
    assert_eq!((&named["plan"], &plain["cache"]), (&plain["plan"], &"hit".into()));
    workspace.refused(&format!("bound {id} --collective allgather"), 2, &["kept by a server", "canopy network get"]);

    let deleted = workspace.json(&format!("topology delete {id} --json"));
    check_members(&deleted, &["canopy", "command", "id", "freed_bytes"]);
    workspace.refused(&format!("topology get {id}"), 2, &[id]);
    workspace.refused(&format!("plan {id} --collective allgather -o plan.json"), 2, &[id]);
}

/// Wherever a plan file is read, its id does as well, and the first digits of it.
#[test]
fn plans_are_read_by_their_ids() {
    let workspace = Workspace::new();
    let made = workspace.json("plan ring:4 --collective allgather -o plan.json --json");
    let id = text(&made, "plan");
    let digits = id.strip_prefix("plans/").unwrap();
    for name in [id, digits, &id[..12], &digits[..6]] {
        for command in ["verify", "simulate --size 1MiB", "explain --size 1MiB", "run --size 4KiB"] {
            let (verb, options) = command.split_once(' ').unwrap_or((command, ""));
            let told = workspace.json(&format!("{verb} {name} {options} --json"));
            let of_file = workspace.json(&format!("{verb} plan.json {options} --json"));
            assert_eq!(told["collective"], of_file["collective"], "{command} {name}");
        }
        workspace.json(&format!("convert {name} --to msccl -o converted.xml --json"));
        workspace.json(&format!("export {name} --format astra-network -o astra --json"));
        workspace.json(&format!("draw {name} -o drawing.svg --json"));
        assert_eq!(workspace.json(&format!("plans show {name} --json"))["plan"], id);
    }
    assert_eq!(workspace.json(&format!("plans pin {} --json", &digits[..5]))["plans"][0]["pinned"], true);
    assert_eq!(workspace.json(&format!("plans diff {} {id} --json", &digits[..5]))["same"], true);
    // What is there by that name is meant.
    workspace.write(&digits[..6], workspace.read("plan.json"));
    let offline = workspace.command(&format!("verify {} --server unix:none.sock", &digits[..6])).output().unwrap();
    assert!(offline.status.success(), "{offline:?}");
    workspace.refused(
        "verify plans/0000000000000000",
        2,
        &["no plan of the server has an id that begins with", "plans list"],
    );
    workspace.refused("verify plans/01", 2, &["is not the id of a plan", "plans/0123abcd"]);
    workspace.refused("verify nothing.json", 2, &["nothing.json: no such file"]);
}

#[test]
fn ids_in_filters_have_an_order() {
    let workspace = Workspace::new();
    let mut known: Vec<String> = Vec::new();
    for ranks in 3..9 {
        let made = workspace.json(&format!("plan ring:{ranks} --collective allgather -o plan.json --json"));
        known.push(text(&made, "plan").to_owned());
    }
    let listed = workspace.json("plans list --filter id>=plans/0 --json");
    assert_eq!(listed["plans"].as_array().unwrap().len(), 6, "{listed}");
    known.sort();
    let middle = &known[3];
    let filtered = workspace.json(&format!("plans list --filter id>={middle} --json"));
    assert_eq!(filtered["plans"].as_array().unwrap().len(), 3, "{filtered}");
    assert_eq!(filtered["plans"][0]["plan"], middle.as_str());
}

/// A file of a runtime that the server has not is made here, and proved right.
#[test]
fn files_of_plans_are_fetched_or_made() {
    let workspace = Workspace::new();
    let made = workspace.json("plan ring:4 --collective allgather --format msccl-xml -o first.xml --json");
    let with_xml = text(&made, "plan");
    let got = workspace.json(&format!("plans get {with_xml} --format msccl-xml -o got.xml --json"));
    check_members(&got, &["canopy", "command", "plan", "converted", "warnings", "files"]);
    assert_eq!((&got["converted"], workspace.read("got.xml")), (&false.into(), workspace.read("first.xml")));
    let bare = workspace.json(&format!("plans get {with_xml} -o bare.xml --json"));
    assert_eq!(
        (text(&bare["files"][0], "profile"), workspace.read("bare.xml")),
        ("msccl", workspace.read("first.xml")),
        "its only file"
    );
    workspace.refused(
        &format!("plans get {with_xml} --format oneccl-xml -o x.xml"),
        2,
        &["without canopy's JSON", "msccl-xml for msccl"],
    );

    let made = workspace.json("plan ring:5 --collective allgather -o plan.json --json");
    let id = text(&made, "plan");
    workspace.json(&format!("plans get {id} -o copy.json --json"));
    assert_eq!(workspace.read("copy.json"), workspace.read("plan.json"));
    let got = workspace.json(&format!("plans get {id} --profile msccl-executor -o made.xml --json"));
    assert_eq!((&got["converted"], text(&got["files"][0], "profile")), (&true.into(), "msccl-executor"));
    assert_eq!(workspace.json("verify made.xml --profile msccl-executor --json")["ok"], true);
    assert!(
        workspace.run(&format!("plans get {id} --format oneccl-xml")).stdout.contains("<"),
        "standard output without -o"
    );
    workspace.refused(
        &format!("plans get {id} --profile nccl -o x"),
        2,
        &["NCCL cannot load external plans", "plan bundle"],
    );
    workspace.refused(
        &format!("plans get {id} --format msccl-xml --profile oneccl -o x"),
        2,
        &["oneccl reads oneccl-xml"],
    );
}

#[test]
fn a_check_says_what_the_server_makes_of_a_topology() {
    let workspace = Workspace::new();
    workspace.write("pair.yaml", PAIR);
    workspace.write("typo.yaml", PAIR.replace("1GB/s", "much"));
    workspace.write("disconnected.yaml", DISCONNECTED);
    let good = workspace.json("topology check pair.yaml --json");
    check_members(&good, &["canopy", "command", "ok", "found", "kind", "report", "warnings"]);
    assert_eq!(good["kind"], "canopy YAML");
    let members = ["id", "name", "topology", "family", "eulerian", "unbalanced", "connected", "unreachable"];
    check_members(&good["found"], &members);
    assert_eq!(good["ok"], true);
    assert_eq!((&good["found"]["connected"], &good["found"]["eulerian"]), (&true.into(), &true.into()));
    assert_eq!(good["found"]["id"], workspace.json("topology put pair.yaml --json")["id"]);
    // Two ranks with a link each way are the least of rings.
    assert_eq!(good["found"]["family"], "ring:2,bw=1GB/s");
    assert!(workspace.run("topology check pair.yaml").stdout.contains("family     ring:2,bw=1GB/s\n"));
    let apart = workspace.json("topology check disconnected.yaml --json");
    assert_eq!(apart["found"]["family"], Value::Null);
    assert_eq!((&apart["ok"], &apart["found"]["connected"]), (&true.into(), &false.into()));
    assert!(!apart["warnings"].as_array().unwrap().is_empty());
    assert!(workspace.run("topology check disconnected.yaml").stdout.contains("connected  no: rank"));

    let bad = workspace.run("topology check typo.yaml --json");
    let object = bad.object();
    assert_eq!((bad.status, &object["ok"]), (Some(2), &false.into()), "{bad:?}");
    assert_eq!(text(&object["problem"], "reason"), "TOPOLOGY_MALFORMED");
    assert_eq!(text(&object["problem"], "field"), "topology.document.links[0].bandwidth");
    assert!(bad.stderr.contains("links[0].bandwidth of typo.yaml"), "{bad:?}");
    workspace.refused("topology check ring:0", 2, &["ring"]);
}

/// What the server on the workspace holds, apart from when and how often it was used.
fn holdings(workspace: &Workspace) -> Vec<(String, bool)> {
    let plans = workspace.json("plans list --json")["plans"].as_array().unwrap().clone();
    let mut held: Vec<_> =
        plans.iter().map(|plan| (text(plan, "plan").to_owned(), plan["pinned"].as_bool().unwrap())).collect();
    let topologies = workspace.json("topology list --json")["topologies"].as_array().unwrap().clone();
    held.extend(topologies.iter().map(|topology| (text(topology, "id").to_owned(), false)));
    held
}

#[test]
fn an_import_restores_what_an_export_saved() {
    let workspace = Workspace::new();
    let pinned = workspace.json("plan ring:4 --collective allgather -o ring.json --json");
    workspace.json(&format!("plans pin {} --json", text(&pinned, "plan")));
    workspace.json("plan torus:3x3 --collective allreduce --format msccl-xml -o torus.xml --json");
    workspace.json("topology put ring:7 --json");
    let before = holdings(&workspace);
    let exported = workspace.json("plans export --all -o plans.canopy --json");
    check_members(&exported, &["canopy", "command", "plans", "pinned", "topologies", "damaged_plans", "files"]);
    assert_eq!((&exported["plans"], &exported["pinned"], &exported["topologies"]), (&2.into(), &1.into(), &1.into()));
    assert_eq!(text(&exported["files"][0], "sha256"), sha256(&workspace.path("plans.canopy")));
    let some = workspace.json("plans export --filter ranks=9 -o some.canopy --json");
    assert_eq!((&some["plans"], &some["topologies"]), (&1.into(), &1.into()));

    fs::remove_dir_all(workspace.path("data")).unwrap();
    assert!(holdings(&workspace).is_empty());
    let archive = workspace.read("plans.canopy");
    let mut bent = archive.clone();
    bent[archive.len() / 2] ^= 1;
    for (name, bytes) in [("bent", bent.as_slice()), ("cut", &archive[..archive.len() / 2]), ("empty", b"")] {
        workspace.write(name, bytes);
        workspace.refused(&format!("plans import {name}"), 2, &["archive"]);
        assert!(holdings(&workspace).is_empty(), "{name}");
    }
    let imported = workspace.json("plans import plans.canopy --json");
    let members = ["canopy", "command", "plans", "pinned", "topologies", "plans_added", "topologies_added"];
    check_members(&imported, &[members.as_slice(), &["plans_kept", "plans_skipped", "skipped"]].concat());
    assert_eq!((&imported["plans_added"], &imported["topologies_added"]), (&2.into(), &1.into()));
    assert_eq!(holdings(&workspace), before);
    let again = workspace.json("plan ring:4 --collective allgather -o again.json --json");
    assert_eq!((&again["cache"], workspace.read("again.json")), (&"hit".into(), workspace.read("ring.json")));
    assert!(
        workspace.run("plans import plans.canopy").stdout.contains("0 plans and 0 topologies were not there before")
    );

    workspace.refused("plans export -o x", 2, &["--all"]);
    workspace.refused("plans export --filter bogus=1 -o x", 2, &["bogus"]);
    workspace.refused("plans import none.canopy", 2, &["none.canopy"]);
    assert!(!workspace.path("x").exists());
}

#[test]
fn two_plans_are_compared() {
    let workspace = Workspace::new();
    let plan = |arguments: &str| text(&workspace.json(&format!("plan {arguments} -o out --json")), "plan").to_owned();
    let a = plan("ring:4 --collective allgather");
    let b = plan("ring:4 --collective allgather --size 512MiB");
    let compared = workspace.json(&format!("plans diff {a} {b} --json"));
    check_members(&compared, &["canopy", "command", "a", "b", "same", "differences"]);
    assert_eq!((text(&compared, "a"), &compared["same"]), (&*a, &false.into()));
    let fields: Vec<&str> =
        compared["differences"].as_array().unwrap().iter().map(|difference| text(difference, "field")).collect();
    assert_eq!(fields, ["valid_for.size_bytes_max"]);
    assert_eq!(workspace.json(&format!("plans diff {a} {a} --json"))["same"], true);
    assert!(workspace.run(&format!("plans diff {a} {b}")).stdout.starts_with("FIELD "));
    workspace.refused(&format!("plans diff {a} plans/none"), 2, &["plans/none"]);
}
