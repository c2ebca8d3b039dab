//! `canopy plan` from end to end, on a server of its own.

use std::process::Stdio;

use crate::support::{DISCONNECTED, Run, Workspace, check_members, sha256};

#[test]
fn a_plan_is_made_once_and_then_remembered() {
    let workspace = Workspace::new();
    let first = workspace.json("plan ring:4 --collective allgather -o first.json --json");
    check_members(
        &first,
        &[
            "canopy",
            "command",
            "plan",
            "cache",
            "topology",
            "collective",
            "algorithm",
            "algbw",
            "algbw_GBps",
            "bound",
            "optimality",
            "chunks",
            "steps",
            "depth_mean",
            "hops_max",
            "hops_mean",
            "trees",
            "warnings",
            "checked",
            "timings_ms",
            "files",
        ],
    );
    check_members(&first["topology"], &["hash", "hash_kind", "ranks", "nodes", "links"]);
    check_members(&first["timings_ms"], &["queue", "canonical", "bound", "synthesis", "check", "lower", "total"]);
    check_members(&first["files"][0], &["format", "path", "bytes", "sha256"]);
    assert_eq!(first["command"], "plan");
    assert!(first["plan"].as_str().unwrap().starts_with("plans/"));
    assert_eq!(first["cache"], "miss");
    assert_eq!(first["collective"], "allgather");
    assert_eq!(first["algorithm"], "forest");
    assert_eq!(first["algbw"], "200000000000/3");
    assert_eq!(first["algbw_GBps"], 66.6667);
    assert_eq!(first["bound"], first["algbw"]);
    assert_eq!(first["optimality"], "1/1");
    assert_eq!(first["checked"], serde_json::json!(["structure", "meaning", "load", "certificate", "file"]));
    assert_eq!(first["files"][0]["bytes"], workspace.read("first.json").len());
    assert_eq!(first["files"][0]["sha256"], sha256(&workspace.path("first.json")));
    assert_eq!(first["topology"], workspace.json("topology show ring:4 --json")["topology"]);

    let second = workspace.json("plan ring:4 --collective allgather -o second.json --json");
    assert_eq!(second["cache"], "hit");
    assert_eq!(second["plan"], first["plan"]);
    assert!(workspace.read("first.json") == workspace.read("second.json"), "same request, same bytes");
    assert_eq!(workspace.names(), ["first.json", "second.json"], "no temporary files stay");

    let printed = workspace.run("plan ring:4 --collective allgather");
    assert_eq!(printed.stdout.as_bytes(), workspace.read("first.json"));
    assert!(printed.stderr.contains("proven optimal"), "{}", printed.stderr);

    let verdict = workspace.json("verify first.json --topology ring:4 --collective allgather --json");
    assert_eq!(verdict["ok"], true, "{verdict}");
    assert_eq!(verdict["algbw"], first["algbw"]);
    assert_eq!(verdict["optimality"], "1/1");
}

#[test]
fn msccl_files_are_written_for_their_profile_and_hold() {
    let workspace = Workspace::new();
    for collective in ["allgather", "reduce-scatter", "allreduce"] {
        let planned = workspace.json(&format!(
            "plan dgx-a100:boxes=1,gpus=4 --collective {collective} --format msccl-xml --size 16MiB -o plan.xml --json"
        ));
        check_members(&planned["files"][0], &["format", "profile", "instances", "path", "bytes", "sha256"]);
        assert_eq!(planned["files"][0]["profile"], "msccl");
        assert!(workspace.read("plan.xml").starts_with(b"<"));
        let verdict = workspace.json(&format!("verify plan.xml --collective {collective} --json"));
        assert_eq!((&verdict["ok"], &verdict["ranks"]), (&true.into(), &4.into()), "{verdict}");
        let in_place = if collective == "allreduce" { "inplace=\"1\"" } else { "inplace=\"0\"" };
        assert!(String::from_utf8(workspace.read("plan.xml")).unwrap().contains(in_place));
    }
}

#[test]
fn instances_fill_the_channels_of_a_runtime() {
    let workspace = Workspace::new();
    let plan = "plan dgx-a100:boxes=1,gpus=4 --collective allreduce --format msccl-xml -o";
    let mut algbw = Vec::new();
    for (asked, instances) in [("", 1), (" --instances 3", 3), (" --instances auto", 32)] {
        let planned = workspace.json(&format!("{plan} plan.xml{asked} --json"));
        check_members(&planned["files"][0], &["format", "profile", "instances", "path", "bytes", "sha256"]);
        assert_eq!(planned["files"][0]["instances"], instances, "{planned}");
        let text = String::from_utf8(workspace.read("plan.xml")).unwrap();
        assert!(text.contains(&format!(" nchannels=\"{instances}\" ")), "{asked}");
        let verdict =
            workspace.json("verify plan.xml --collective allreduce --topology dgx-a100:boxes=1,gpus=4 --json");
        assert_eq!(verdict["ok"], true, "{verdict}");
        algbw.push(verdict["algbw"].clone());
        let name = planned["plan"].as_str().unwrap();
        let shown = workspace.json(&format!("plans show {name} --explain --json"));
        let facts = &shown["files"][0]["msccl"];
        assert_eq!((&facts["channels"], &facts["instances"]), (&instances.into(), &instances.into()), "{shown}");
        assert_eq!((&facts["instances_max"], &facts["instances_limit"]["need"]), (&32.into(), &33.into()), "{shown}");
        let shown = workspace.run(&format!("plans show {name} --explain")).stdout;
        let line = format!("instances of the plan: {instances}, room for 32; 33 would exceed: channels, 33 of 32");
        assert!(shown.contains(&line), "{shown}");
    }
    assert!(algbw.iter().all(|found| *found == algbw[0]), "the load of every link stays: {algbw:?}");
    let said = workspace.run(&format!("{plan} plan.xml --instances 3")).stderr;
    assert!(said.contains("plan.xml in 3 instances in "), "{said}");
    workspace.refused(&format!("{plan} no.xml --instances 33"), 3, &["32 channels", "needs 33", "fewer instances"]);
    workspace.refused(&format!("{plan} no.xml --instances 0"), 2, &["`0` is not a number of instances", "auto"]);
    workspace.refused(&format!("{plan} no.xml --instances many"), 2, &["`many` is not a number of instances"]);
    workspace.refused(
        "plan ring:4 --collective allgather --instances 2 -o no.json",
        2,
        &["--instances is for msccl-xml"],
    );
    assert_eq!(workspace.names(), ["plan.xml"]);
}

#[test]
fn a_file_and_its_expression_are_the_same_network() {
    let workspace = Workspace::new();
    workspace.run("topology generate ring:6 -o ring.yaml");
    workspace.run("topology generate ring:6 -o ring.json");
    let plans: Vec<_> = ["ring:6", "ring.yaml", "ring.json"]
        .map(|topology| workspace.json(&format!("plan {topology} --collective allgather -o plan.json --json")))
        .into();
    assert_eq!(plans[0]["topology"], plans[1]["topology"]);
    assert_eq!(plans[1]["topology"], plans[2]["topology"]);
    assert_eq!((&plans[1]["algbw"], &plans[2]["algbw"]), (&plans[0]["algbw"], &plans[0]["algbw"]));
}

#[test]
fn the_servers_refusals_keep_their_status_and_leave_no_file() {
    let workspace = Workspace::new();
    workspace.write("split.yaml", DISCONNECTED);
    workspace.refused("plan split.yaml --collective allgather -o plan.json", 3, &["add links that connect them"]);
    workspace.refused("plan ring:1 --collective allgather -o plan.json", 2, &["two"]);
    workspace.refused("plan nonsense --collective allgather -o plan.json", 2, &["nonsense"]);
    workspace.refused("plan ring:4 --collective broadcast --root 9 -o plan.json", 2, &["0 to 3", "--root"]);
    workspace.write("typo.yaml", DISCONNECTED.replacen("1GB/s", "1GB", 1));
    workspace.refused("plan typo.yaml --collective allgather -o plan.json", 2, &["links[0].bandwidth", "typo.yaml"]);
    workspace.refused("plan ring:4 --collective allgather --root 1 -o plan.json", 2, &["has no root"]);
    workspace.refused("plan complete:256 --collective allgather --deadline 1ms -o plan.json", 5, &["deadline"]);
    workspace.write("plan.json", "kept");
    workspace.refused("plan ring:1 --collective allgather -o plan.json", 2, &[]);
    assert_eq!(workspace.read("plan.json"), b"kept");
    assert_eq!(workspace.names(), ["plan.json", "split.yaml", "typo.yaml"]);
}

#[test]
fn several_processes_share_one_data_folder() {
    let workspace = Workspace::new();
    let spawn = |name: usize| {
        let mut command =
            workspace.command(&format!("plan torus:3x3 --collective allgather -o plan{}.json --json", name));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(spawn).collect();
    let runs: Vec<Run> = children.into_iter().map(|child| Run::of(child.wait_with_output().unwrap())).collect();
    for run in &runs {
        assert_eq!(run.status, Some(0), "{run:?}");
        assert_eq!(run.object()["plan"], runs[0].object()["plan"]);
    }
    let misses = runs.iter().filter(|run| run.object()["cache"] == "miss").count();
    // None where a server ended between storing a plan and sending it: asked again, the next one has it.
    assert!(misses <= 1, "one plan is made, the others share it");
    for name in 1..4 {
        assert!(workspace.read("plan0.json") == workspace.read(&format!("plan{name}.json")));
    }
}

/// Whichever stage the deadline meets, it is told as a deadline.
#[test]
fn a_deadline_is_one_in_every_stage() {
    let workspace = Workspace::new();
    let cases = [("complete:60", "allgather"), ("torus:5x5", "all-to-all"), ("mi250:boxes=2", "allreduce")];
    for (network, collective) in cases {
        for limit in [1, 3, 10, 30, 90] {
            let run = workspace.run(&format!("plan {network} -c {collective} --deadline {limit}ms -o plan.json"));
            let is_told = run.status == Some(5) && run.stderr.contains("deadline exceeded");
            assert!(run.status == Some(0) || is_told, "{network} in {limit} ms: {run:?}");
        }
    }
}

#[test]
fn an_interrupt_ends_the_command_and_leaves_no_file() {
    for signal in ["-INT", "-TERM"] {
        let workspace = Workspace::new();
        let mut command = workspace.command("plan complete:400 --collective allgather -o plan.json");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Once it searches, the plan takes much longer than sending a signal.
        while std::fs::read_dir(workspace.path("data/making")).map_or(0, Iterator::count) == 0 {
            assert_eq!(child.try_wait().unwrap(), None, "it ended before it was interrupted");
            std::thread::yield_now();
        }
        let killed = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let run = Run::of(child.wait_with_output().unwrap());
        assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (Some(130), "", "interrupted\n"));
        assert_eq!(workspace.names(), [""; 0]);
    }
}

#[test]
fn a_server_in_another_process_is_shared_by_socket_and_by_port() {
    let workspace = Workspace::new();
    let mut command = workspace.command("serve --dev --listen 127.0.0.1:0");
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !workspace.path("data/canopy.sock").exists() {
        assert_eq!(server.try_wait().unwrap(), None, "the server ended");
        std::thread::yield_now();
    }
    let joined = workspace.json("plan ring:5 --collective allreduce -o joined.json --json");
    let named =
        workspace.json("plan ring:5 --collective allreduce -o named.json --json --server unix:data/canopy.sock");
    assert_eq!((&joined["cache"], &named["cache"]), (&"miss".into(), &"hit".into()));
    assert_eq!(joined["plan"], named["plan"]);
    let refused = workspace.refused("serve --dev --listen 127.0.0.1:0", 6, &["in use by another process"]);
    assert_eq!(refused.status, Some(6));
    let killed = std::process::Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(server.wait().unwrap().code(), Some(0), "SIGTERM ends it in order");
}

/// A switch that multicasts and aggregates.
const CAPABLE: &str = "\
canopy: 1
nodes: [{id: a}, {id: b}, {id: c}, {id: d}, {id: s, kind: switch, multicast: true, aggregate: true}]
links:
  - {from: a, to: s, bandwidth: 10GB/s, both: true}
  - {from: b, to: s, bandwidth: 10GB/s, both: true}
  - {from: c, to: s, bandwidth: 10GB/s, both: true}
  - {from: d, to: s, bandwidth: 10GB/s, both: true}
";

/// Each share leaves its rank once instead of three times, and arrives at three: 4 links instead of 6.
#[test]
fn what_switches_can_save_is_on_the_plan() {
    let workspace = Workspace::new();
    workspace.write("capable.yaml", CAPABLE);
    workspace.write("plain.yaml", CAPABLE.replace(", multicast: true, aggregate: true", ""));
    for collective in ["allgather", "reduce-scatter"] {
        let reply = workspace.json(&format!("plan capable.yaml --collective {collective} -o plan.json --json"));
        let saved = &reply["in_network"];
        check_members(saved, &["traffic_without", "traffic", "saved", "algbw", "optimality"]);
        assert_eq!((&saved["traffic_without"], &saved["traffic"]), (&"6/1".into(), &"4/1".into()), "{collective}");
        // Ranks still take in, or hand out, three shares: the rate is that of the plain network, and optimal.
        assert_eq!((&saved["saved"], &saved["algbw"]), (&"1/3".into(), &"40000000000/3".into()), "{collective}");
        assert_eq!((&reply["algbw"], &reply["optimality"]), (&saved["algbw"], &"1/1".into()), "{collective}");
        assert_eq!(saved["optimality"], "1/1");
        assert_eq!(workspace.run("verify plan.json").status, Some(0));
        let shown = workspace.json(&format!("plans show {} --explain --json", reply["plan"].as_str().unwrap()));
        assert_eq!(&shown["in_network"], saved);
        let told = workspace.run(&format!("plan capable.yaml --collective {collective} -o plan.json")).stderr;
        assert!(told.contains("saves 1/3 of the traffic"), "{told}");
        // A file that promises more is found out; one of an earlier program says nothing.
        let file = String::from_utf8(workspace.read("plan.json")).unwrap();
        let written = r#","in_network":{"traffic_without":"6/1","traffic":"4/1","algbw":"40000000000/3"}"#;
        assert!(file.contains(written), "{file}");
        workspace.write("more.json", file.replace(r#""traffic":"4/1""#, r#""traffic":"3/1""#));
        let found_out = workspace.run("verify more.json");
        assert_eq!(found_out.status, Some(2));
        assert!(found_out.stdout.contains("savings by switches"), "{found_out:?}");
        workspace.write("silent.json", file.replace(written, ""));
        assert_eq!(workspace.run("verify silent.json").status, Some(0));
        // Runtimes that know nothing of such switches get the same program.
        for network in ["capable", "plain"] {
            let arguments = format!("--collective {collective} --format msccl-xml -o {network}.xml --json");
            let reply = workspace.json(&format!("plan {network}.yaml {arguments}"));
            assert_eq!(reply.get("in_network").is_some(), network == "capable");
        }
        let program =
            |name: &str| String::from_utf8(workspace.read(name)).unwrap().split_once('\n').unwrap().1.to_owned();
        assert_eq!(program("capable.xml"), program("plain.xml"), "{collective}");
    }
}

/// Whose optimum takes more trees than can be counted.
const TOO_FINE: &str = "\
canopy: 1
nodes: [{id: a}, {id: b}, {id: c}]
links:
  - {from: b, to: a, bandwidth: 9223372036854775808}
  - {from: c, to: a, bandwidth: 9223372036854775809}
  - {from: a, to: b, bandwidth: 18446744073709551615}
  - {from: b, to: c, bandwidth: 18446744073709551615, both: true}
";

#[test]
fn a_link_that_is_slower_one_way_is_no_obstacle() {
    let workspace = Workspace::new();
    for degraded in ["b0g3>ib", "ib>b0g3"] {
        let topology = format!("dgx-a100:boxes=2,degrade={degraded}*1/2");
        let reply = workspace.json(&format!("plan {topology} --collective allgather -o plan.json --json"));
        assert_eq!((&reply["algorithm"], &reply["optimality"]), (&"forest".into(), &"1/1".into()), "{topology}");
        assert_eq!(workspace.run("verify plan.json").status, Some(0));
    }
    // Twice as much would have to leave it as enters it: a proof says that it can not.
    workspace.write("fork.yaml", FORK);
    let reply = workspace.json("plan fork.yaml --collective broadcast -o plan.json --json");
    assert_eq!((&reply["algorithm"], &reply["optimality"]), (&"forest".into(), &"1/1".into()));
    assert_eq!(workspace.run("verify plan.json").status, Some(0));
    let bound = workspace.json("bound fork.yaml --collective broadcast --json");
    assert_eq!(bound["certificate"]["kind"], "sum", "{bound}");
    let text = workspace.run("explain plan.json").stdout;
    assert!(text.contains("what enters a switch must leave it"), "{text}");
}

/// A switch that could fill its two ways out only with copies.
const FORK: &str = "\
canopy: 1
nodes: [{id: a}, {id: b}, {id: c}, {id: s, kind: switch}]
links:
  - {from: a, to: s, bandwidth: 4GB/s}
  - {from: s, to: b, bandwidth: 4GB/s}
  - {from: s, to: c, bandwidth: 4GB/s}
";

#[test]
fn a_plan_that_cannot_be_made_is_stood_in_for_on_request() {
    let workspace = Workspace::new();
    workspace.write("fine.yaml", TOO_FINE);
    let arguments = "plan fine.yaml --collective allgather -o plan.json --json";
    workspace.refused(arguments, 3, &["18446744073709551615 trees"]);
    let run = workspace.run(&format!("{arguments} --on-miss fallback"));
    let reply = run.object();
    assert_eq!((&reply["algorithm"], &reply["fallback"]["reason"]), (&"direct".into(), &"TOO_MANY_TREES".into()));
    assert!(run.stderr.contains("FALLBACK_USED"), "{run:?}");
    assert_eq!(workspace.run("verify plan.json").status, Some(0));
    // `direct` happens to reach the bound, so nothing is made beside it.
    let run = workspace.run(&format!("{arguments} --on-miss best-so-far"));
    let reply = run.object();
    assert_eq!((&reply["optimality"], &reply["fallback"]["reason"]), (&"1/1".into(), &"TOO_MANY_TREES".into()));
    assert!(run.stderr.contains("provisional"), "{run:?}");
    let verdict = workspace.json("verify plan.json --json");
    assert_eq!((&verdict["ok"], &verdict["optimality"]), (&true.into(), &reply["optimality"]));
}

#[test]
fn shares_and_groups_are_planned_and_hold() {
    let workspace = Workspace::new();
    let asked = "plan dgx-a100:boxes=2,gpus=4 --collective allgather --ranks 2-5 --shares 4,0,2,2 -o part.json --json";
    let planned = workspace.json(asked);
    assert_eq!((&planned["shares"], &planned["topology"]["ranks"]), (&serde_json::json!([2, 0, 1, 1]), &4.into()));
    assert_eq!(planned["optimality"], "1/1");
    let again = workspace.json(&asked.replace("4,0,2,2", "2,0,1,1"));
    assert_eq!((&again["cache"], &again["plan"]), (&"hit".into(), &planned["plan"]));
    assert!(workspace.run(asked).stderr.contains("RANKS_RENUMBERED"), "a plan from the cache says so, too");
    let verdict = workspace.json("verify part.json --json");
    assert_eq!((&verdict["ok"], &verdict["algbw"]), (&true.into(), &planned["algbw"]), "{verdict}");
    assert_eq!(verdict["optimality"], "1/1");

    let refused = workspace.run("plan ring:4 --collective allgather --shares 1,2,3,4 --format msccl-xml -o part.xml");
    assert_eq!(refused.status, Some(3));
    assert!(refused.stderr.contains("cannot express shares of unequal size"), "{}", refused.stderr);
    let refused = workspace
        .run("plan ring:4 --collective allgather --ranks 0,2 --transit forward --format msccl-xml -o part.xml");
    assert_eq!(refused.status, Some(3));
    assert!(refused.stderr.contains("routes pass through `1`"), "{}", refused.stderr);
    let refused = workspace.run("plan ring:4 --collective allgather --ranks 0,9 -o part.json");
    assert_eq!(refused.status, Some(2));
    assert!(refused.stderr.contains("--ranks"), "{}", refused.stderr);
}
