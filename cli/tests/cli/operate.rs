//! The commands of those who run a server, against one.

use serde_json::Value;

use crate::support::{CallPool, Run, Serving, check_members};

fn names<'a>(object: &'a Value, list: &str, member: &str) -> Vec<&'a str> {
    object[list].as_array().unwrap().iter().map(|entry| entry[member].as_str().unwrap()).collect()
}

#[test]
fn cached_plans_are_listed_shown_pinned_and_evicted() {
    let desk = CallPool::new();
    // Each command runs a server of its own on what the one before left.
    let plan = |arguments: &str| {
        desk.json(&format!("plan {arguments} -o plan.out --json"))["plan"].as_str().unwrap().to_owned()
    };
    let ring = plan("ring:4 --collective allgather");
    let torus = plan("torus:3x3 --collective allreduce --format msccl-xml");
    plan("ring:4 --collective allgather");

    let list = desk.json("plans list --sort -ranks --json");
    check_members(&list, &["canopy", "command", "plans", "total"]);
    assert_eq!((&list["command"], &list["total"]), (&"plans list".into(), &2.into()));
    assert_eq!(names(&list, "plans", "plan"), [torus.as_str(), ring.as_str()]);
    let members = [
        "plan",
        "content_key",
        "collective",
        "algorithm",
        "topology_hash",
        "ranks",
        "optimality",
        "bytes",
        "created",
        "last_used",
        "hits",
        "pinned",
    ];
    check_members(&list["plans"][0], &members);
    let some = desk.json("plans list --filter collective=allgather --json");
    assert_eq!(names(&some, "plans", "plan"), [ring.as_str()]);
    let one = desk.json("plans list --limit 1 --json");
    assert_eq!((one["plans"].as_array().unwrap().len(), &one["total"]), (1, &2.into()));
    let table = desk.run("plans list").stdout;
    assert!(table.starts_with("PLAN ") && table.contains(&torus), "{table}");
    desk.refused("plans list --filter bogus=1", 2, &["bogus"]);
    desk.refused("plans list --sort bogus", 2, &["bogus", "at --sort"]);

    let shown = desk.json(&format!("plans show {torus} --explain --json"));
    assert_eq!((&shown["plan"], &shown["optimality"]), (&torus.as_str().into(), &"1/1".into()));
    assert_eq!(shown["explanation"]["gap"], "0/1");
    assert!(shown["files"][0]["msccl"]["channels"].as_u64().unwrap() > 0);
    let short = torus.strip_prefix("plans/").unwrap();
    assert!(desk.run(&format!("plans show {short}")).stdout.contains("9 ranks"));
    let (record, origin) = (&shown["record"], &shown["provenance"]);
    assert_eq!((&record["hits"], &record["pinned"]), (&0.into(), &false.into()), "{shown}");
    assert!(record["bytes"].as_u64() > Some(0) && record["age_seconds"].as_u64() < Some(600), "{shown}");
    assert!(origin["planner_class"].as_str().unwrap().starts_with("canopy-planner-"), "{shown}");
    assert_eq!(origin["request"].as_str().map(str::len), Some(64), "{shown}");
    desk.refused("plans show plans/none", 2, &["plans/none"]);

    assert_eq!(desk.json(&format!("plans pin {torus} --json"))["plans"][0]["pinned"], true);
    let tried = desk.json("plans evict --filter ranks>=4 --dry-run --json");
    assert_eq!((&tried["evicted"], &tried["pinned"], &tried["dry_run"]), (&1.into(), &1.into(), &true.into()));
    let evicted = desk.json("plans evict --filter ranks>=4 --json");
    assert_eq!((&evicted["evicted"], &evicted["pinned"]), (&1.into(), &1.into()));
    assert_eq!(names(&desk.json("plans list --json"), "plans", "plan"), [torus.as_str()]);
    assert_eq!(desk.json(&format!("plans unpin {torus} --json"))["plans"][0]["pinned"], false);
    assert_eq!(desk.json(&format!("plans evict {torus} --json"))["evicted"], 1);
    assert_eq!(desk.json("plans list --json")["total"], 0);
}

#[test]
fn jobs_are_listed_followed_and_ended() {
    let desk = CallPool::new();
    let _server = Serving::on(&desk);
    let prefetch = |topology: &str| {
        let run =
            desk.run(&format!("prefetch {topology} -c allgather --job 1 --strict --server unix:data/canopy.sock"));
        assert_eq!((run.status, run.stdout.as_str()), (Some(0), ""), "{run:?}");
        run.stderr.trim().strip_prefix("allgather: ").unwrap().to_owned()
    };
    let small = prefetch("ring:4");
    let done = desk.json(&format!("jobs watch {small} --json"));
    assert_eq!((&done["operation"], &done["state"], &done["done"]), (&small.into(), &"succeeded".into(), &true.into()));
    let fetched =
        desk.run("fetch ring:4 -c allgather --job 1 --out out --strict --on-miss fail --server unix:data/canopy.sock");
    assert_eq!(fetched.status, Some(0), "{fetched:?}");
    assert_eq!(desk.json("stats --json")["syntheses"], 1, "what was prefetched is there");

    // Ranks as scarce as their boxes, which differ in size: slow to plan.
    let large = prefetch("rail:boxes=128,nv=60GB/s,nic=50GB/s,nodes-down=b0g0+b1g1+b5g3");
    let open = desk.json("jobs list --filter done=false --json");
    assert_eq!(names(&open, "jobs", "operation"), [large.as_str()]);
    desk.json(&format!("jobs cancel {large} --json"));
    let ended = desk.run(&format!("jobs watch {large} --json"));
    assert_eq!((ended.status, &ended.object()["state"]), (Some(6), &"cancelled".into()), "{ended:?}");
    desk.refused("jobs watch operations/none", 2, &["operations/none"]);
    let stats = desk.json("stats --json");
    assert_eq!((&stats["plans"], &stats["draining"]), (&1.into(), &false.into()));
}

#[test]
fn a_server_is_drained_by_word() {
    let desk = CallPool::new();
    desk.refused("drain", 2, &["nothing to drain"]);
    let mut server = Serving::on(&desk);
    let drained = desk.json("drain --json");
    check_members(&drained, &["canopy", "command", "unfinished"]);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_burst_is_served_by_one_plan() {
    let desk = CallPool::new();
    let bench = desk.json("bench ring:6 -c allgather --burst 200 --concurrency 50 --call plan --cold --json");
    check_members(&bench, &["canopy", "command", "burst", "concurrency", "connections", "distinct", "calls"]);
    let calls = &bench["calls"][0];
    assert_eq!((&calls["requests"], &calls["failed"], &calls["plans"]), (&200.into(), &0.into(), &1.into()));
    assert_eq!(calls["cache"]["miss"], 1, "one synthesis for all");
    let bench = desk.json("bench ring:6 -c allgather --burst 20 --concurrency 4 --json");
    assert_eq!(names(&bench, "calls", "call"), ["lookup", "plan", "content"]);
    for calls in bench["calls"].as_array().unwrap() {
        assert_eq!((&calls["requests"], &calls["failed"]), (&20.into(), &0.into()), "{calls}");
        assert!(calls["latency_ms"]["p50"].as_f64() <= calls["latency_ms"]["p99"].as_f64(), "{calls}");
    }
    assert!(bench["calls"][2]["MBps"].as_f64().unwrap() > 0.0);
    desk.refused("bench ring:6 -c allgather --cold", 2, &["--call plan"]);
    desk.refused("bench ring:6 -c allgather --distinct 2", 2, &["--cold --call plan"]);
    desk.refused("bench ring:6 -c allgather --connections 2", 2, &["--server"]);
    let bench =
        desk.json("bench ring:7 -c allgather --burst 60 --concurrency 30 --call plan --cold --distinct 20 --json");
    let calls = &bench["calls"][0];
    assert_eq!((&calls["failed"], &calls["cache"]["miss"], &calls["plans"]), (&0.into(), &20.into(), &20.into()));
    let failed: Run = desk.run("bench ring:1 -c allgather --burst 3 --call plan --cold --json");
    assert_eq!((failed.status, &failed.object()["calls"][0]["failed"]), (Some(2), &3.into()), "{failed:?}");
}
