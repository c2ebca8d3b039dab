//! The commands of those who run a server, against one.

use serde_json::Value;

use crate::support::{Run, Serving, Workspace, check_members};

fn names<'a>(object: &'a Value, list: &str, member: &str) -> Vec<&'a str> {
    object[list].as_array().unwrap().iter().map(|entry| entry[member].as_str().unwrap()).collect()
}

#[test]
fn cached_plans_are_listed_shown_pinned_and_evicted() {
    let workspace = Workspace::new();
    // Each command runs a server of its own on what the one before left.
    let plan = |arguments: &str| {
        workspace.json(&format!("plan {arguments} -o plan.out --json"))["plan"].as_str().unwrap().to_owned()
    };
    let ring = plan("ring:4 --collective allgather");
    let torus = plan("torus:3x3 --collective allreduce --format msccl-xml");
    plan("ring:4 --collective allgather");

    let list = workspace.json("plans list --sort -ranks --json");
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
        "network",
        "formats",
    ];
    check_members(&list["plans"][0], &members);
    let some = workspace.json("plans list --filter collective=allgather --json");
    assert_eq!(names(&some, "plans", "plan"), [ring.as_str()]);
    let one = workspace.json("plans list --limit 1 --json");
    assert_eq!((one["plans"].as_array().unwrap().len(), &one["total"]), (1, &2.into()));
    let table = workspace.run("plans list").stdout;
    assert!(table.starts_with("PLAN ") && table.contains(&torus[..18]) && table.contains("torus:3x3"), "{table}");
    workspace.refused("plans list --filter bogus=1", 2, &["bogus"]);
    workspace.refused("plans list --sort bogus", 2, &["bogus", "--sort"]);

    let shown = workspace.json(&format!("plans show {torus} --explain --json"));
    assert_eq!((&shown["plan"], &shown["optimality"]), (&torus.as_str().into(), &"1/1".into()));
    assert_eq!(shown["explanation"]["gap"], "0/1");
    assert!(shown["files"][0]["msccl"]["channels"].as_u64().unwrap() > 0);
    let short = torus.strip_prefix("plans/").unwrap();
    assert!(workspace.run(&format!("plans show {short}")).stdout.contains("9 ranks"));
    let (record, origin) = (&shown["record"], &shown["provenance"]);
    assert_eq!((&record["hits"], &record["pinned"]), (&0.into(), &false.into()), "{shown}");
    assert!(record["bytes"].as_u64() > Some(0) && record["age_seconds"].as_u64() < Some(600), "{shown}");
    assert!(origin["planner_class"].as_str().unwrap().starts_with("canopy-planner-"), "{shown}");
    assert_eq!(origin["request"].as_str().map(str::len), Some(64), "{shown}");
    workspace.refused("plans show plans/none", 2, &["plans/none"]);

    assert_eq!(workspace.json(&format!("plans pin {torus} --json"))["plans"][0]["pinned"], true);
    let tried = workspace.json("plans evict --filter ranks>=4 --dry-run --json");
    assert_eq!((&tried["evicted"], &tried["pinned"], &tried["dry_run"]), (&1.into(), &1.into(), &true.into()));
    let evicted = workspace.json("plans evict --filter ranks>=4 --json");
    assert_eq!((&evicted["evicted"], &evicted["pinned"]), (&1.into(), &1.into()));
    assert_eq!(names(&workspace.json("plans list --json"), "plans", "plan"), [torus.as_str()]);
    assert_eq!(workspace.json(&format!("plans unpin {torus} --json"))["plans"][0]["pinned"], false);
    assert_eq!(workspace.json(&format!("plans evict {torus} --json"))["evicted"], 1);
    assert_eq!(workspace.json("plans list --json")["total"], 0);
}

#[test]
fn jobs_are_listed_followed_and_ended() {
    let workspace = Workspace::new();
    let _server = Serving::on(&workspace);
    let prefetch = |topology: &str| {
        let run =
            workspace.run(&format!("prefetch {topology} -c allgather --job 1 --strict --server unix:data/canopy.sock"));
        assert_eq!((run.status, run.stdout.as_str()), (Some(0), ""), "{run:?}");
        run.stderr.trim().strip_prefix("allgather: ").unwrap().to_owned()
    };
    let small = prefetch("ring:4");
    let done = workspace.json(&format!("jobs watch {small} --json"));
    assert_eq!((&done["operation"], &done["state"], &done["done"]), (&small.into(), &"succeeded".into(), &true.into()));
    let fetched = workspace
        .run("fetch ring:4 -c allgather --job 1 --out out --strict --on-miss fail --server unix:data/canopy.sock");
    assert_eq!(fetched.status, Some(0), "{fetched:?}");
    assert_eq!(workspace.json("stats --json")["syntheses"], 1, "what was prefetched is there");

    // Ranks as scarce as their boxes, which differ in size: slow to plan.
    let large = prefetch("rail:boxes=128,nv=60GB/s,nic=50GB/s,nodes-down=b0g0+b1g1+b5g3");
    let open = workspace.json("jobs list --filter done=false --json");
    assert_eq!(names(&open, "jobs", "operation"), [large.as_str()]);
    workspace.json(&format!("jobs cancel {large} --json"));
    let ended = workspace.run(&format!("jobs watch {large} --json"));
    assert_eq!((ended.status, &ended.object()["state"]), (Some(6), &"cancelled".into()), "{ended:?}");
    workspace.refused("jobs watch operations/none", 2, &["operations/none"]);
    let stats = workspace.json("stats --json");
    assert_eq!((&stats["plans"], &stats["draining"]), (&1.into(), &false.into()));
}

#[test]
fn a_server_reads_its_configuration_again_by_word() {
    let workspace = Workspace::new();
    workspace.refused("reload", 6, &["there is no server", "add `--server ADDR`"]);
    workspace.refused("reload --local", 2, &["nothing to reload"]);
    let _server = Serving::on(&workspace);
    let reloaded = workspace.json("reload --json");
    check_members(&reloaded, &["canopy", "command", "parts"]);
    assert_eq!(names(&reloaded, "parts", "part"), ["access", "configuration"]);
    let said = workspace.run("reload").stdout;
    assert_eq!(said, "rules of access: read again\nlog filter: read again\n");
}

#[test]
fn a_server_is_backed_up_and_checked_while_it_runs() {
    let workspace = Workspace::new();
    let backup = |name: &str| workspace.json(&format!("backup {name} --json"));
    let members = ["clusters", "damaged_plans", "faults", "files", "leases", "pinned", "plans", "topologies"];
    {
        let _server = Serving::on(&workspace);
        workspace.json("plan ring:4 -c allgather --json -o plan.out");
        let made = backup("busy.canopy");
        check_members(&made, &[&["canopy", "command"][..], &members].concat());
        assert_eq!((&made["plans"], &made["files"][0]["path"]), (&1.into(), &"busy.canopy".into()));
        let checked = workspace.json("fsck --json");
        assert_eq!(names(&checked, "spaces", "space").len(), 10);
        assert_eq!((&checked["spaces"][0]["intact"], &checked["problems"]), (&1.into(), &serde_json::json!([])));
        assert!(workspace.run("fsck").stdout.starts_with("SPACE "), "a table");
    }
    // The same without a server, on what it left.
    assert_eq!(backup("idle.canopy")["plans"], 1);
    assert!(workspace.run("backup again.canopy").stdout.starts_with("1 plan, "));
}

#[test]
fn a_server_is_drained_by_word() {
    let workspace = Workspace::new();
    workspace.refused("drain", 6, &["there is no server"]);
    workspace.refused("drain --local", 2, &["nothing to drain"]);
    let mut server = Serving::on(&workspace);
    let drained = workspace.json("drain --json");
    check_members(&drained, &["canopy", "command", "unfinished"]);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_burst_is_served_by_one_plan() {
    let workspace = Workspace::new();
    let bench = workspace.json("bench ring:6 -c allgather --burst 200 --concurrency 50 --call plan --cold --json");
    check_members(&bench, &["canopy", "command", "burst", "concurrency", "connections", "distinct", "calls"]);
    let calls = &bench["calls"][0];
    assert_eq!((&calls["requests"], &calls["failed"], &calls["plans"]), (&200.into(), &0.into(), &1.into()));
    assert_eq!(calls["cache"]["miss"], 1, "one synthesis for all");
    let bench = workspace.json("bench ring:6 -c allgather --burst 20 --concurrency 4 --json");
    assert_eq!(names(&bench, "calls", "call"), ["lookup", "plan", "content"]);
    for calls in bench["calls"].as_array().unwrap() {
        assert_eq!((&calls["requests"], &calls["failed"]), (&20.into(), &0.into()), "{calls}");
        assert!(calls["latency_ms"]["p50"].as_f64() <= calls["latency_ms"]["p99"].as_f64(), "{calls}");
    }
    assert!(bench["calls"][2]["MBps"].as_f64().unwrap() > 0.0);
    workspace.refused("bench ring:6 -c allgather --cold", 2, &["--call plan"]);
    workspace.refused("bench ring:6 -c allgather --distinct 2", 2, &["--cold --call plan"]);
    workspace.refused("bench ring:6 -c allgather --connections 2", 2, &["--server"]);
    let bench =
        workspace.json("bench ring:7 -c allgather --burst 60 --concurrency 30 --call plan --cold --distinct 20 --json");
    let calls = &bench["calls"][0];
    assert_eq!((&calls["failed"], &calls["cache"]["miss"], &calls["plans"]), (&0.into(), &20.into(), &20.into()));
    let failed: Run = workspace.run("bench ring:1 -c allgather --burst 3 --call plan --cold --json");
    assert_eq!((failed.status, &failed.object()["calls"][0]["failed"]), (Some(2), &3.into()), "{failed:?}");
}

#[test]
fn settings_are_shown_and_the_log_filter_is_changed_by_word() {
    let workspace = Workspace::new();
    let server = Serving::on(&workspace);
    let shown = workspace.json("config --json");
    check_members(&shown, &["canopy", "command", "toml", "log_filter", "pending"]);
    let toml = shown["toml"].as_str().unwrap();
    assert!(toml.contains("\nqueue_length = ") && !toml.contains('#'), "{toml}");
    assert_eq!(shown["pending"], serde_json::json!([]));
    let before = shown["log_filter"].as_str().unwrap().to_owned();
    let changed = workspace.json("log-filter info,canopy_server::jobs=debug --for 300ms --json");
    assert_eq!(
        (&changed["filter"], &changed["before"]),
        (&"info,canopy_server::jobs=debug".into(), &before.as_str().into())
    );
    let filter = || workspace.json("config --json")["log_filter"].as_str().unwrap().to_owned();
    let ended = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        filter() == before
    });
    assert!(ended, "the configured filter is not back");
    workspace.json("log-filter debug --json");
    assert_eq!(filter(), "debug");
    workspace.json("reload --json");
    assert_eq!(filter(), before);
    workspace.refused("log-filter nonsense=loud", 2, &["cannot read the log filter", "use a level such as `info`"]);
    workspace.refused("log-filter info --for 0s", 2, &["the duration is zero"]);
    drop(server);
    workspace.refused("config", 6, &["there is no server"]);
    workspace.refused("config --local", 3, &["configures it"]);
}

#[test]
fn one_look_at_a_server_is_text() {
    let workspace = Workspace::new();
    let _server = Serving::with(&workspace, "--plan-ahead=false");
    workspace.json("plan ring:8 --collective allgather -o plan.json --json");
    workspace.json("faults report dgx-a100:boxes=2 nic:b0g3 --json");
    let look = workspace.run("top --once --interval 200ms");
    assert_eq!(look.status, Some(0), "{look:?}");
    let lines: Vec<&str> = look.stdout.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80) && lines.len() <= 24, "{}", look.stdout);
    for expected in ["workers    0 busy of ", "plans      1, 0 pinned", "faults     1", "Jobs (0)"] {
        assert!(look.stdout.contains(expected), "{expected}\n{}", look.stdout);
    }
    workspace.refused("top", 2, &["standard output is not a terminal", "add `--once`"]);
    workspace.refused("top --once --interval 1ms", 2, &["--interval is too short"]);
}
