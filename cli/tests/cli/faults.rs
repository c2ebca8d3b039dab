//! `canopy faults`.

use crate::support::{Workspace, check_members};

/// Values by hand: without its link to the box switch a GPU takes in 25 GB/s what fifteen others send, 16 · 25 / 15; without its
/// card 300 GB/s. Without InfiniBand the boxes are apart; without a box eight GPUs have 300 GB/s each, 8 · 325 / 7.
#[test]
fn single_faults_are_ranked_by_what_they_leave() {
    let workspace = Workspace::new();
    let object = workspace.json("faults what-if dgx-a100:boxes=2 --collective allgather --json");
    check_members(&object, &["canopy", "command", "topology", "collective", "remaining", "sound", "faults"]);
    assert_eq!((&object["sound"]["algbw"], &object["remaining"]), (&"1040000000000/3".into(), &"0/1".into()));
    let rows = object["faults"].as_array().unwrap();
    let summary: Vec<(&str, usize, &str, &str)> = rows
        .iter()
        .map(|row| {
            let faults = row["faults"].as_array().unwrap();
            let text = |name: &str| row[name].as_str().unwrap_or("-");
            (faults[0].as_str().unwrap(), faults.len(), text("outcome"), text("algbw"))
        })
        .collect();
    assert_eq!(
        summary,
        [
            ("switch:ib", 1, "disconnected", "-"),
            ("link:b0g0=b0nv", 16, "bounded", "80000000000/3"),
            ("switch:b0nv", 2, "bounded", "80000000000/3"),
            ("link:b0g0=ib", 16, "bounded", "320000000000"),
            ("nic:b0g0", 16, "bounded", "320000000000"),
            ("gpu:b0g0", 16, "bounded", "328125000000"),
            ("host:b0", 2, "bounded", "2600000000000/7"),
        ]
    );
    check_members(&rows[0], &["kind", "outcome", "components", "alike", "faults"]);
    check_members(&rows[3], &["kind", "outcome", "algbw", "algbw_GBps", "ratio", "alike", "faults"]);
    assert_eq!((&rows[0]["components"], &rows[3]["ratio"]), (&2.into(), &"12/13".into()));
    let text = workspace.run("faults what-if dgx-a100:boxes=2 --collective allgather --limit 2");
    assert!(text.stdout.contains("switch:ib           1          -       -  split in 2"), "{}", text.stdout);
    assert!(text.stdout.ends_with("5 more groups of faults harm less; see --limit\n"), "{}", text.stdout);
}

/// Words for one and for several, and links by where they are.
#[test]
fn kinds_are_those_of_random_faults() {
    let workspace = Workspace::new();
    let first_of = |kinds: &str| -> Vec<String> {
        let arguments = format!("faults what-if dgx-a100:boxes=2 --collective allgather --kinds {kinds} --json");
        let object = workspace.json(&arguments);
        let rows = object["faults"].as_array().unwrap().iter();
        rows.map(|row| format!("{} {}", row["kind"].as_str().unwrap(), row["faults"][0].as_str().unwrap())).collect()
    };
    assert_eq!(first_of("links-inside"), ["link link:b0g0=b0nv"]);
    assert_eq!(first_of("links-outside"), ["link link:b0g0=ib"]);
    assert_eq!(first_of("link"), first_of("links-inside,links,links-outside"));
    assert_eq!(first_of("boxes"), ["host host:b0"]);
    assert_eq!(first_of("host,switches"), ["switch switch:ib", "switch switch:b0nv", "host host:b0"]);
    assert_eq!(first_of("gpus,nics"), first_of("nic,gpu"));
}

#[test]
fn roots_and_fractions_count() {
    let workspace = Workspace::new();
    let object = workspace.json("faults what-if ring:4 --collective broadcast --root 1 --kinds gpu --json");
    let outcomes: Vec<(&str, &str)> = object["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["faults"][0].as_str().unwrap(), row["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(outcomes, [("gpu:1", "root_lost"), ("gpu:0", "bounded"), ("gpu:3", "bounded")]);
    let object =
        workspace.json("faults what-if dgx-a100:boxes=2 --collective allgather --kinds nic --remaining 1/2 --json");
    let only = &object["faults"][0];
    assert_eq!((&only["faults"][0], &only["algbw"]), (&"nic:b0g0*1/2".into(), &"1000000000000/3".into()));
}

#[test]
fn what_cannot_be_ranked_is_refused() {
    let workspace = Workspace::new();
    for (arguments, status, words) in [
        ("faults what-if ring:4", 2, "no collective is given"),
        (
            "faults what-if ring:4 --collective allgather --kinds fan",
            2,
            "use boxes, switches, gpus, nics, links-inside, links-outside, links",
        ),
        ("faults what-if ring:4 --collective allgather --kinds lnks", 2, "did you mean `links`?"),
        ("faults what-if ring:4 --collective allgather --remaining 3/2", 2, "`3/2` is not a remaining fraction"),
        ("faults what-if ring:4,down=0-1+2-3 --collective allgather", 3, "add links that connect them"),
        ("faults what-if torus:10x10x10 --collective allreduce --deadline 1ms", 5, "deadline exceeded"),
    ] {
        let run = workspace.run(arguments);
        assert!(run.status == Some(status) && run.stderr.contains(words), "{arguments}: {run:?}");
    }
}

/// Lines of standard output, and what is said on the way.
fn fed(workspace: &Workspace, arguments: &str) -> (Vec<String>, String) {
    let run = workspace.run(&format!("faults feed {arguments} --dry-run"));
    assert_eq!(run.status, Some(0), "{run:?}");
    (run.stdout.lines().map(str::to_owned).collect(), run.stderr)
}

#[test]
fn feeds_are_mapped_to_elements_and_nothing_is_dropped_silently() {
    let workspace = Workspace::new();
    workspace.write(
        "events.jsonl",
        "{\"source\":\"ufm\",\"event_id\":\"1\",\"fault\":\"nic:b0:3>ib*1/2\"}\n\n{\"source\":\"ufm\"\n\
         {\"source\":\"ufm\",\"event_id\":\"2\",\"fault\":\"gpu:b7g7\"}\n\
         {\"source\":\"ufm\",\"event_id\":\"3\",\"fault\":\"link:ib=b0g3\",\"cleared\":true}\n\
         {\"source\":\"ufm\",\"event_id\":\"4\",\"fault\":\"feature:ib:multicast*1/2\"}\n",
    );
    let (lines, said) = fed(&workspace, "dgx-a100:boxes=2 --format json events.jsonl");
    assert_eq!(lines, ["nic:b0g3*1/2 by ufm (1)", "link:b0g3=ib cleared, by ufm (3)"]);
    assert!(said.contains("unreadable: the JSON does not match"), "{said}");
    assert!(said.contains("unmapped: gpu:b7g7: the topology has no node `b7g7`"), "{said}");
    assert!(said.contains("unmapped: feature:ib:multicast: 1/2 of a feature"), "{said}");
    assert!(said.contains("5 messages: 2 events, 0 unchanged, 0 passed over, 2 unmapped, 1 unreadable"), "{said}");

    workspace.write("names.txt", "172.16.64.245 host:b1\n");
    workspace.write(
        "ras.json",
        "RAS Monitor Mode - watching for peer changes (Ctrl+C to exit)...\n{\n  \"timestamp\": \"2025-12-19 13:07:07\",\n  \
         \"group\": \"LIFECYCLE\",\n  \"event\": \"PEER_DEAD\",\n  \"peer\": {\"host\": \"172.16.64.245\", \"pid\": 7,\n    \
         \"cuda_devs\": [1], \"nvml_devs\": [1]},\n  \"details\": \"\"\n}\n{\n",
    );
    let (lines, said) = fed(&workspace, "dgx-a100:boxes=2 --format nccl-ras --aliases names.txt ras.json");
    assert_eq!(lines, ["gpu:b1g1 by nccl-ras (172.16.64.245:1 dead 1766149627000)"]);
    assert!(said.contains("unreadable: the document ends before its braces close"), "{said}");

    workspace.write("states", "b0 idle\nb1 drained*\nb0 idle\nb2 down\nb1 maint\nb1 idle~\n");
    let arguments = "faults feed dgx-a100:boxes=2 --format slurm states --dry-run --json";
    let run = workspace.run(arguments);
    let elements: Vec<&str> = run.stdout.lines().filter_map(|line| line.split(" by ").next()).collect();
    assert_eq!(elements[..3], ["host:b0 cleared,", "host:b1", "host:b1 cleared,"]);
    let object: serde_json::Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    let counts = ["messages", "events", "unchanged", "passed", "unmapped"].map(|name| object[name].as_u64().unwrap());
    assert_eq!(counts, [6, 3, 1, 1, 1]);
}

/// Lists of nodes, documents between lines, and one that breaks off.
#[test]
fn states_of_slurm_come_as_lists_and_as_json() {
    let workspace = Workspace::new();
    workspace.write(
        "states",
        "b[0-1] idle\n{\n  \"nodes\": [\n    {\"name\": \"b0\", \"state\": [\"IDLE\", \"DRAIN\"]},\n    {\"name\": \"b1\",\n\
         {\"sinfo\": [{\"node\": {\"state\": [\"DOWN\"]}, \"nodes\": {\"nodes\": [\"b[0-1]\"]}}]}\nb[0-1 idle\n",
    );
    let (lines, said) = fed(&workspace, "dgx-a100:boxes=2 --format slurm states");
    let elements: Vec<&str> = lines.iter().filter_map(|line| line.split(" by ").next()).collect();
    assert_eq!(elements, ["host:b0 cleared,", "host:b1 cleared,", "host:b0", "host:b1"]);
    assert!(said.contains("unreadable: the document ends before its braces close"), "{said}");
    assert!(said.contains("unreadable: `b[0-1` in the list of nodes: a bracket does not close"), "{said}");
    assert!(said.contains("4 messages: 4 events, 0 unchanged, 0 passed over, 0 unmapped, 2 unreadable"), "{said}");
}

#[test]
fn feeds_that_cannot_be_read_are_refused() {
    let workspace = Workspace::new();
    workspace.write("names.txt", "\na fan:3\n");
    for (arguments, words) in [
        ("dgx-a100 --format json nothing.jsonl --dry-run", "cannot read nothing.jsonl"),
        ("dgx-a100 --format json --aliases names.txt", "names.txt: line 2: unknown target `fan:3`"),
        ("dgx-a100 --format nvsentinel", "go together"),
        ("dgx-a100 --format slurm --listen 127.0.0.1:0", "go together"),
        ("dgx-a100 --format nvsentinel --listen nowhere --dry-run", "cannot listen at nowhere"),
        ("dgx-a100 --format smoke", "use `json`, `nccl-ras`, `slurm` or `nvsentinel`"),
        ("dgx-a100 --format json --utc-offset 900", "-840..=840"),
        ("no-such --format json", "unknown family `no-such`"),
    ] {
        let run = workspace.run(&format!("faults feed {arguments}"));
        assert!(run.status == Some(2) && run.stderr.contains(words), "{arguments}: {run:?}");
    }
    let run = workspace.run("faults report dgx-a100:boxes=2 gpu:b0g3 nic:b9g9");
    assert!(run.status == Some(2) && run.stderr.contains("nic:b9g9: the topology has no node `b9g9`"), "{run:?}");
    let run = workspace.run("faults clear dgx-a100:boxes=2");
    assert!(run.status == Some(2) && run.stderr.contains("no fault is named"), "{run:?}");
}

/// A monitor sends over gRPC; what it found comes out as a fault.
#[test]
fn monitors_of_nvsentinel_are_listened_to() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    use canopy_proto::nvsentinel::platform_connector_client::PlatformConnectorClient;
    use canopy_proto::nvsentinel::{Entity, HealthEvent, HealthEvents};
    use tonic::transport::Endpoint;

    let workspace = Workspace::new();
    let address = format!("unix:{}", workspace.path("sentinel.sock").display());
    let mut feed = workspace
        .command(&format!("faults feed dgx-a100:boxes=2 --format nvsentinel --listen {address} --dry-run"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(feed.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("listening at unix:"), "{line}");
    let entity = |kind: &str, value: &str| Entity { entity_type: kind.to_owned(), entity_value: value.to_owned() };
    let event = |entities: Vec<Entity>, is_healthy: bool| HealthEvent {
        check_name: "LinkState".to_owned(),
        is_fatal: !is_healthy,
        is_healthy,
        entities_impacted: entities,
        generated_timestamp: Some(prost_types::Timestamp { seconds: 1_766_149_627, nanos: 5_000_000 }),
        node_name: "b1".to_owned(),
        processing_strategy: 0,
    };
    let events = vec![
        event(vec![entity("NIC", "mlx5_3"), entity("PCI", "0000:3b:00")], false),
        event(vec![entity("NVSWITCH", "1")], false),
        event(vec![entity("GPU", "2")], true),
        event(Vec::new(), true),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
        let mut monitor = PlatformConnectorClient::new(channel);
        monitor.health_event_occurred_v1(HealthEvents { version: 1, events }).await.unwrap();
    });
    let mut found = BufReader::new(feed.stdout.take().unwrap()).lines();
    let mut next = || found.next().unwrap().unwrap();
    assert_eq!(next(), "nic:b1g3 by nvsentinel/LinkState (mlx5_3 down 1766149627005)");
    assert_eq!(next(), "gpu:b1g2 cleared, by nvsentinel/LinkState (2 up 1766149627005)");
    // Who finds nothing any more in a machine takes back what it said of anything in it.
    let well: Vec<String> = (0..18).map(|_| next()).collect();
    for (line, part) in [(0, "host:b1"), (1, "gpu:b1g0"), (9, "switch:b1nv"), (17, "nic:b1g7")] {
        assert_eq!(well[line], format!("{part} cleared, by nvsentinel/LinkState (b1 up 1766149627005)"));
    }
    line.clear();
    said.read_line(&mut line).unwrap();
    let words = "unmapped: b1/nvswitch1: give it an alias, a line such as `b1/nvswitch1 switch:ID`";
    assert!(line.contains(words), "{line}");
    feed.kill().unwrap();
    feed.wait().unwrap();
}

/// Commands that are for a server name the ways to one, and leave no data folder behind.
#[test]
fn what_is_for_a_server_is_not_said_to_a_folder() {
    let workspace = Workspace::new();
    workspace.write("events", "{\"source\": \"m\", \"event_id\": \"1\", \"fault\": \"gpu:b0g0\"}\n");
    let is_said = ["there is no server", "add `--server ADDR` or set CANOPY_SERVER", "--local"];
    for arguments in [
        "faults report nic:gpu01:3",
        "faults report dgx-a100:boxes=2 gpu:b0g3",
        "faults report clusters/prod gpu:gpu01:1",
        "faults report --job 18 nic:gpu01:3",
        "faults list",
        "faults clear nic:gpu01:3",
        "faults clear --all",
        "faults feed dgx-a100:boxes=2 --format json events",
        "leases list",
        "leases watch --job 17",
        "leases renew leases/0000019abc012345",
        "leases release --job 17",
        "stats",
        "top --once",
        "jobs list",
        "jobs watch operations/x",
        "jobs cancel operations/x",
        "quota",
        "config",
        "log-filter debug",
        "reload",
        "drain",
        "fsck",
    ] {
        workspace.refused(arguments, 6, &is_said);
        assert!(!workspace.path("data").exists(), "{arguments} made a data folder");
    }
    let fetch = "fetch ring:4 --collective allgather --job 17 --out job --lease 1h --deadline 60s --strict";
    let fetched = workspace.run(fetch);
    assert!(
        fetched.status == Some(6) && fetched.stderr.contains("the plans are there, without a lease"),
        "{fetched:?}"
    );
    assert!(workspace.path("job/manifest.json").exists());
    // With `--local`, the folder is meant.
    let told = workspace.text("faults report nic:gpu01:3 --local");
    assert!(told.starts_with("nic:gpu01:3  noted, matches nothing: no stored network"), "{told}");
    assert!(workspace.json("stats --local --json")["plans"].as_u64() > Some(0));
    assert!(
        workspace.text("faults clear --all --local").starts_with("all networks and machines: 1 element cleared, 0")
    );
    workspace.text("jobs list --local");
}

#[test]
fn devices_without_their_kind_are_told_which() {
    let workspace = Workspace::new();
    for (arguments, words) in [
        ("gpu05:1", "gpu05:1: unknown target `gpu05:1`; write gpu:gpu05:1"),
        ("gpu05:1*1/2", "write gpu:gpu05:1"),
        ("nic:gpu05:1 gpu05:1", "or nic:gpu05:1 for its NIC"),
        ("nic:gpu05:1*1.5", "`1.5` is not a remaining fraction; write what is left, such as 1/2, 0.5 or 50%"),
        ("nic:gpu05:mlx5_1*150%", "`150%` is not a remaining fraction"),
    ] {
        let run = workspace.run(&format!("faults report {arguments}"));
        let said = run.stderr.replace("\nhelp: ", "; ");
        assert!(run.status == Some(2) && said.contains(words), "{arguments}: {run:?}");
    }
}
