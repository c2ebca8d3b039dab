//! The commands that schedulers call: they must not fail, not be late and not talk where a scheduler listens.

use std::time::{Duration, Instant};

use crate::support::{Run, Workspace};

/// Far more than the deadlines of the hooks below, far less than what they would wait without.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a hook that must end with this status, with nothing on standard output.
#[expect(clippy::disallowed_methods, reason = "how long the program takes is what is tested")]
#[track_caller]
fn hook(workspace: &Workspace, arguments: &str, status: i32, words: &str) -> Run {
    let started = Instant::now();
    let run = workspace.run(arguments);
    assert!(started.elapsed() < PATIENCE, "{arguments}: {:?}", started.elapsed());
    assert_eq!((run.status, run.stdout.as_str()), (Some(status), ""), "{arguments}\n{run:?}");
    assert!(run.stderr.contains(words), "{arguments}: `{words}` is missing from\n{}", run.stderr);
    run
}

#[test]
fn nothing_makes_a_hook_fail_unless_it_is_strict() {
    let workspace = Workspace::new();
    workspace.write("file", "");
    for (arguments, strict_status, words) in [
        (
            "fetch ring:4 -c allgather --job 1 --out out --server unix:none.sock --on-miss fail",
            6,
            "cannot reach the server",
        ),
        ("fetch ring:4 -c allgather --job 1 --out out --server nowhere", 2, "is not a server address"),
        ("fetch ring:4 -c allgather --job 1 --out file/out --server unix:none.sock", 2, "cannot make"),
        ("fetch ring:4 -c allgather --job 1 --out a:b --server unix:none.sock", 2, "`:`"),
        ("fetch ring:4 -c allgather --job 1 --out out --nodes n[1-3]", 2, "spread evenly over 3 nodes"),
        ("fetch dgx-a100:boxes=2 -c allgather --job 1 --out out --nodes n[1-3]", 2, "3 nodes, the topology 2 boxes"),
        ("fetch ring:4 -c allgather --job 1 --out out --nodes n[1-", 2, "does not close"),
        ("fetch ring:4 -c allgather --job 1 --out out --nodes-file none", 2, "no such file"),
        ("fetch ring:4 -c allgather,allgather --job 1 --out out", 2, "asked for twice"),
        ("fetch ring:4 -c allgather,allreduce,broadcast,reduce,gather --job 1 --out out", 2, "reads 4 files"),
        ("fetch ring:4 -c allgather --root 1 --job 1 --out out", 2, "none of the collectives has a root"),
        ("fetch ring:4 --job 1 --out out", 2, "no collective is given"),
        ("fetch -c allgather --job 1 --out out", 2, "no topology is given"),
        ("fetch ring:4 -c allgather --job 1 --out out --runtime auto", 2, "unknown option `--runtime`"),
        ("fetch ring:4 -c allgather --job 1 --out out --profile nccl", 2, "cannot load external plans"),
        ("fetch ring:4 -c allgather --job 1 --out out --profile msccl-2", 2, "unknown profile `msccl-2`"),
        ("fetch ring:4 -c allgather --job 1 --out out --format json", 2, "no runtime reads canopy's own format"),
        ("fetch ring:4 -c allgather --job 1 --out out --format oneccl-xml --profile msccl", 2, "msccl reads msccl-xml"),
        ("fetch ring:4 -c broadcast --job 1 --out out --profile mscclpp-0.8", 2, "have no word for broadcast"),
        ("fetch ring:4 -c allgather --out out", 2, "--job"),
        ("fetch ring:4 -c allgather --job 1 --out out --ranks 3-1", 2, "not a list of ranks"),
        ("prefetch ring:4 -c allgather --job 1", 2, "lives on when the command ends"),
        ("prefetch ring:4 -c allgather --job 1 --partition p", 2, ""),
        ("prefetch ring:4 -c allgather --job 1 --server unix:none.sock", 6, "cannot reach the server"),
        ("env --format slurm-task-prolog --no-such-option", 2, "--no-such-option"),
        ("env --format csh --dir out", 2, "csh"),
        ("release --job 1 --dir file", 2, "cannot empty file"),
    ] {
        hook(&workspace, arguments, 0, words);
        hook(&workspace, &format!("{arguments} --strict"), strict_status, words);
    }
    hook(
        &workspace,
        "prefetch ring:4 -c allgather --job 1 --server unix:none.sock --best-effort",
        0,
        "cannot reach the server",
    );
    assert!(!workspace.path("data").exists(), "none of them started a server");
}

#[test]
fn a_server_that_never_answers_does_not_hold_a_job() {
    let workspace = Workspace::new();
    // It takes connections, but nobody reads what comes.
    let _silent = std::os::unix::net::UnixListener::bind(workspace.path("silent.sock")).unwrap();
    let arguments = "ring:4 -c allgather,allreduce --job 1 --server unix:silent.sock --deadline 300ms";
    hook(&workspace, &format!("fetch {arguments} --out out"), 0, "0 of 2 plans for job 1");
    hook(&workspace, &format!("prefetch {arguments}"), 0, "deadline");
    hook(&workspace, &format!("prefetch {arguments} --strict"), 5, "deadline");
    // That the job goes on without plans is what was asked for, and no failure.
    hook(&workspace, &format!("fetch {arguments} --out out --strict --on-miss fallback"), 0, "0 of 2 plans for job 1");
    hook(&workspace, &format!("fetch {arguments} --out out --strict"), 5, "deadline");
    let manifest: serde_json::Value = serde_json::from_slice(&workspace.read("out/manifest.json")).unwrap();
    assert_eq!((&manifest["job"], &manifest["files"]), (&"1".into(), &serde_json::json!([])));
    assert_eq!(manifest["missing"].as_array().unwrap().len(), 2);
    hook(&workspace, "env --format slurm-task-prolog --dir out --strict", 0, "");
    hook(&workspace, "release --job 1 --dir out --strict", 0, "");
    assert!(!workspace.path("out").exists());
}

/// A server that is plainly away is tried as long as is said, and not until the deadline.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long the program takes is what is tested")]
fn a_server_that_is_away_is_not_waited_for() {
    /// The pauses between the usual tries take longer.
    const ONE_TRY_MAX: Duration = Duration::from_millis(700);
    let workspace = Workspace::new();
    // A socket and a port at which no server listens any more.
    drop(std::os::unix::net::UnixListener::bind(workspace.path("left.sock")).unwrap());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ended = |command: &str, server: &str, words: &str| {
        let started = Instant::now();
        let arguments = format!("{command} ring:4 -c allgather --job 1 --server {server} --deadline 20s --strict");
        hook(&workspace, &arguments, 6, words);
        started.elapsed()
    };
    for (server, words) in [
        ("unix:none.sock", "the socket does not exist"),
        ("unix:left.sock", "connection refused, no server listens there"),
        (&format!("127.0.0.1:{port}"), "connection refused, no server listens there"),
    ] {
        for command in ["prefetch --retry-connect 0", "fetch --out out --on-miss fail --retry-connect 0"] {
            // One of them is enough on a busy machine.
            let is_quick = (0..20).any(|_| ended(command, server, words) < ONE_TRY_MAX);
            assert!(is_quick, "{command} {server}");
        }
    }
    let long = ended("prefetch --retry-connect 2s", "unix:none.sock", "the socket does not exist");
    assert!(long > Duration::from_millis(1500), "{long:?}");
}

/// A server that starts within the time is found.
#[test]
fn a_restart_of_the_server_is_bridged() {
    use crate::support::Serving;

    let workspace = Workspace::new();
    let fetch = "fetch ring:4 -c allgather --job 1 --out out --server unix:data/canopy.sock --retry-connect 60s \
                 --deadline 60s --strict";
    let mut waiting = workspace.command(fetch);
    let waiting = waiting.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let _server = Serving::on(&workspace);
    let run = Run::of(waiting.wait_with_output().unwrap());
    assert!(run.status == Some(0) && run.stderr.contains("1 of 1 plan for job 1"), "{run:?}");
}

/// All nodes of a job fetch the same plans and ask for a lease; the job has one, and another one after it was released.
#[test]
fn the_nodes_of_a_job_share_a_lease() {
    use crate::support::Serving;

    let workspace = Workspace::new();
    let _server = Serving::on(&workspace);
    let fetch = |job: u32, node: u32, more: &str| {
        let fetch =
            format!("fetch dgx-a100:boxes=2 -c allgather --job {job} --out {job}-{node} --lease 1h --deadline 60s");
        let run = hook(&workspace, &format!("{fetch} --strict {more}"), 0, &format!("for job {job} lasts until"));
        let name = run.stderr.split_whitespace().find(|word| word.starts_with("leases/"));
        name.unwrap_or_else(|| panic!("{run:?}")).to_owned()
    };
    let held = |job: u32| {
        let listed = workspace.json(&format!("leases list --filter job=\"{job}\" --json"));
        listed["total"].as_u64().unwrap()
    };
    let first = fetch(17, 0, "");
    let others: Vec<String> = (1..4).map(|node| fetch(17, node, &format!("--ranks {node}"))).collect();
    assert!(others.iter().all(|name| *name == first), "{first} {others:?}");
    assert_eq!(held(17), 1);
    // Other plans, and another job.
    let larger = fetch(17, 4, "--size 64MiB");
    assert!(larger != first && held(17) == 2, "{larger}");
    assert_ne!(fetch(18, 0, ""), first);
    hook(&workspace, "release --job 17 --dir 17-0 --lease --strict", 0, "");
    assert_eq!((held(17), held(18)), (0, 1));
    // The job starts again under its id: the lease that the server remembers has ended.
    let again = fetch(17, 0, "");
    assert_ne!(again, first);
    assert_eq!((fetch(17, 1, ""), held(17)), (again, 1));
    // Jobs of two tenants under one id.
    let red = fetch(19, 0, "--tenant red");
    let blue = fetch(19, 1, "--tenant blue");
    assert_ne!(red, blue);
    assert_eq!((fetch(19, 2, "--tenant red"), fetch(19, 3, "--tenant blue")), (red, blue));
}

/// The plans of a job are used by ranks in the order that they are for, and by no others.
#[test]
fn tasks_in_an_order_of_their_own_have_plans_for_it() {
    let workspace = Workspace::new();
    let line = |name: &str, ranks: usize| format!("{name}\n").repeat(ranks);
    workspace.write("hosts", line("gpu2", 8) + &line("gpu1", 8));
    workspace.write("sorted", line("gpu1", 8) + &line("gpu2", 8));
    workspace.write("turns", (line("gpu2", 1) + &line("gpu1", 1)).repeat(8));
    workspace.write("uneven", line("gpu2", 9) + &line("gpu1", 7));
    let fetch = "fetch dgx-a100:boxes=2 -c allgather --job 17 --out job --deadline 60s --strict";
    hook(&workspace, &format!("{fetch} --nodes-file hosts"), 0, "1 of 1 plan for job 17");
    let task = |options: &str| {
        let mut task = workspace.command(&format!("env --format slurm-task-prolog --dir job {options}"));
        for name in ["MSCCL_XML_FILES", "MSCCL_CONFIG", "NCCL_ALGO"] {
            task.env_remove(name);
        }
        Run::of(task.envs([("SLURM_JOB_ID", "17"), ("SLURM_JOB_NODELIST", "gpu[1-2]")]).output().unwrap())
    };
    let found = task("--nodes-file hosts");
    assert!(found.status == Some(0) && found.stdout.starts_with("export MSCCL_XML_FILES="), "{found:?}");
    for (options, words) in [
        ("", "for other nodes than those of SLURM_JOB_NODELIST"),
        ("--nodes-file sorted", "or for another order"),
        ("--nodes-file turns", "ranks of gpu2 are in several places"),
        ("--nodes-file uneven", "gpu2 has 9 ranks, and gpu1 has 7"),
        ("--nodes-file none", "no such file"),
    ] {
        let found = task(options);
        assert_eq!((found.status, found.stdout.as_str()), (Some(0), ""), "{options}: {found:?}");
        assert!(found.stderr.contains(words), "{options}: {found:?}");
        assert_eq!(task(&format!("{options} --strict")).status, Some(2), "{options}");
    }
    hook(&workspace, fetch, 0, "1 of 1 plan for job 17");
    assert!(task("--nodes-file hosts").stderr.contains("the plans name no nodes"), "their order is not known");
}

/// A network that names its machines is planned for the order in which the job has them.
#[test]
fn machines_of_a_network_are_taken_in_the_order_of_the_job() {
    let workspace = Workspace::new();
    let mut network = "canopy: 1\nnodes:\n".to_owned();
    for (rank, host) in ["a", "b", "c"].into_iter().enumerate() {
        network += &format!("  - {{id: g{rank}, rank: {rank}, host: {host}}}\n");
    }
    network += "  - {id: s, kind: switch}\nlinks:\n";
    for rank in 0..3 {
        network += &format!("  - {{from: g{rank}, to: s, bandwidth: 50GB/s, both: true}}\n");
    }
    workspace.write("job.yaml", network);
    let fetch = "fetch job.yaml -c broadcast --root 0 --job 17 --out job --deadline 60s --strict \
                 --profile mscclpp-0.10";
    hook(&workspace, &format!("{fetch} --nodes c,a,b"), 0, "1 of 1 plan for job 17");
    let manifest: serde_json::Value = serde_json::from_slice(&workspace.read("job/manifest.json")).unwrap();
    assert_eq!(manifest["nodes"], serde_json::json!(["c", "a", "b"]));
    let plan = "plan job.yaml -c broadcast --root 0 --format mscclpp-json --profile mscclpp-0.10 -o plan.json --json";
    let plan = workspace.json(&format!("{plan} --placement c:0,a:0,b:0"));
    assert_eq!((&plan["rank_map"], &plan["plan"]), (&"c:0,a:0,b:0".into(), &manifest["files"][0]["plan"]));
    hook(&workspace, &format!("{fetch} --nodes a,b,d"), 2, "d is not a machine of the topology");
}

#[test]
fn a_task_of_a_job_without_plans_hears_nothing() {
    let workspace = Workspace::new();
    let run = hook(&workspace, "env --format slurm-task-prolog --dir none", 0, "");
    assert_eq!(run.stderr, "");
    hook(&workspace, "env --format slurm-task-prolog --dir none --strict", 2, "no manifest is in none");
}

/// The journey of a job: warm, fetch on a node, export in a task, release.
#[test]
fn a_job_gets_its_plans_and_leaves_nothing() {
    use crate::support::sha256;

    let workspace = Workspace::new();
    let fetch = "fetch dgx-a100:boxes=2 -c allgather,allreduce --job 17 --nodes gpu[1-2] --size 64MiB --out jobs/17 \
                 --deadline 60s --strict";
    hook(&workspace, fetch, 0, "2 of 2 plans for job 17");
    let first = workspace.read("jobs/17/manifest.json");
    let manifest: serde_json::Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(manifest["nodes"], serde_json::json!(["gpu1", "gpu2"]));
    let mut paths = Vec::new();
    for (file, collective) in manifest["files"].as_array().unwrap().iter().zip(["allgather", "allreduce"]) {
        assert_eq!((&file["collective"], &file["ranks"]), (&collective.into(), &16.into()));
        let path = workspace.path("jobs/17").join(file["path"].as_str().unwrap());
        assert_eq!(file["sha256"], sha256(&path));
        let verdict =
            workspace.json(&format!("verify {} --topology dgx-a100:boxes=2 -c {collective} --json", path.display()));
        assert_eq!(verdict["ok"], true);
        paths.push(path);
    }
    hook(&workspace, fetch, 0, "2 of 2 plans for job 17");
    assert!(first == workspace.read("jobs/17/manifest.json"), "same request, same bytes");
    assert_eq!(std::fs::read_dir(workspace.path("jobs/17")).unwrap().count(), 3, "no temporary files stay");
    assert_eq!(std::fs::read_dir(paths[0].parent().unwrap()).unwrap().count(), 2, "plans and nothing else");

    let task = |variables: &[(&str, &str)]| {
        let mut command = workspace.command("env --format slurm-task-prolog --dir jobs/17");
        for name in ["MSCCL_XML_FILES", "MSCCL_CONFIG", "NCCL_ALGO", "SLURM_JOB_ID", "SLURM_JOB_NODELIST"] {
            command.env_remove(name);
        }
        Run::of(command.envs(variables.iter().copied()).output().unwrap())
    };
    let folder = std::fs::canonicalize(workspace.path("jobs/17")).unwrap();
    let plans =
        |at: usize| folder.join(paths[at].strip_prefix(workspace.path("jobs/17")).unwrap()).display().to_string();
    let [one, two] = [0, 1].map(plans);
    let found = task(&[("SLURM_JOB_ID", "17"), ("SLURM_JOB_NODELIST", "gpu[1-2]")]);
    assert_eq!((found.status, found.stderr.as_str()), (Some(0), ""), "{found:?}");
    assert_eq!(found.stdout, format!("export MSCCL_XML_FILES={one}:{two}\n"));
    for theirs in [("MSCCL_XML_FILES", "mine.xml"), ("NCCL_ALGO", "Ring")] {
        let found = task(&[theirs]);
        assert_eq!((found.status, found.stdout.as_str()), (Some(0), ""), "{theirs:?}: {found:?}");
    }
    for other in [("SLURM_JOB_ID", "18"), ("SLURM_JOB_NODELIST", "gpu[2-3]")] {
        let found = task(&[other]);
        assert_eq!((found.status, found.stdout.as_str()), (Some(0), ""), "{other:?}: {found:?}");
        assert!(found.stderr.contains("error: "), "{found:?}");
    }
    let whole = std::fs::read(&paths[0]).unwrap();
    std::fs::write(&paths[0], &whole[..whole.len() - 1]).unwrap();
    let found = task(&[]);
    assert_eq!((found.status, found.stdout.as_str()), (Some(0), ""), "a damaged file is not handed on: {found:?}");

    // Nodes that do not fit take the plans away: what is there may be for others.
    hook(&workspace, &fetch.replace("gpu[1-2]", "gpu[1-4]"), 2, "4 nodes, the topology 2 boxes");
    assert_eq!(task(&[]).stdout, "");
    hook(&workspace, fetch, 0, "2 of 2 plans");
    assert!(!task(&[]).stdout.is_empty(), "a second fetch mends the file");
    hook(&workspace, "release --job 18 --dir jobs/17 --strict", 2, "belongs to job 17");
    hook(&workspace, "release --job 17 --dir jobs/17 --strict", 0, "");
    assert!(!workspace.path("jobs/17").exists());
    hook(&workspace, "release --job 17 --dir jobs/17 --strict", 0, "");
}

/// A node takes the part of the files that its ranks read, and no more.
#[test]
fn a_node_gets_the_part_of_its_ranks() {
    let workspace = Workspace::new();
    let fetch = "fetch dgx-a100:boxes=2 -c allreduce --job 17 --size 64MiB --deadline 60s --strict";
    hook(&workspace, &format!("{fetch} --out whole"), 0, "1 of 1 plan for job 17");
    hook(&workspace, &format!("{fetch} --out part --ranks 8-15"), 0, "1 of 1 plan for job 17");
    let file = |folder: &str| {
        let manifest: serde_json::Value =
            serde_json::from_slice(&workspace.read(&format!("{folder}/manifest.json"))).unwrap();
        let entry = manifest["files"][0].clone();
        let text = workspace.read(&format!("{folder}/{}", entry["path"].as_str().unwrap()));
        assert_eq!(entry["bytes"], text.len());
        assert_eq!(
            entry["sha256"],
            crate::support::sha256(&workspace.path(folder).join(entry["path"].as_str().unwrap()))
        );
        (entry, String::from_utf8(text).unwrap())
    };
    let ((whole, whole_text), (part, part_text)) = (file("whole"), file("part"));
    assert_eq!((&part["plan"], &part["slice"]), (&whole["plan"], &serde_json::json!([8, 9, 10, 11, 12, 13, 14, 15])));
    assert_eq!(whole.get("slice"), None);
    // The head, the other box without content, and the rest of the file as it is.
    let (head, rest) = (whole_text.lines().next().unwrap(), whole_text.split_once("  <gpu id=\"8\"").unwrap().1);
    let stubs: String = whole_text
        .lines()
        .filter(|line| line.starts_with("  <gpu "))
        .take(8)
        .map(|line| line.replace('>', "/>\n"))
        .collect();
    assert_eq!(part_text, format!("{head}\n{stubs}  <gpu id=\"8\"{rest}"));
    // A task finds the slice in its environment, checked.
    let mut task = workspace.command("env --format slurm-task-prolog --dir part --strict");
    for name in ["MSCCL_XML_FILES", "MSCCL_CONFIG", "NCCL_ALGO", "SLURM_JOB_ID", "SLURM_JOB_NODELIST"] {
        task.env_remove(name);
    }
    let found = Run::of(task.output().unwrap());
    assert!(found.stdout.contains(part["path"].as_str().unwrap()), "{found:?}");
    // Other formats have parts, too.
    for profile in ["oneccl", "mscclpp-0.10"] {
        let fetch = format!("{fetch} --profile {profile}");
        hook(&workspace, &format!("{fetch} --out all-{profile}"), 0, "1 of 1 plan for job 17");
        hook(&workspace, &format!("{fetch} --out one-{profile} --rank 3"), 0, "1 of 1 plan for job 17");
        let ((_, all), (entry, one)) = (file(&format!("all-{profile}")), file(&format!("one-{profile}")));
        assert_eq!(entry["slice"], serde_json::json!([3]));
        assert!(one.len() * 4 < all.len(), "{profile}: {} of {}", one.len(), all.len());
    }
    // A rank that there is not is a wrong request, and no plan is left.
    hook(&workspace, &format!("{fetch} --out part --ranks 15-16"), 2, "rank 16 is not in the file");
    let manifest: serde_json::Value = serde_json::from_slice(&workspace.read("part/manifest.json")).unwrap();
    assert_eq!(manifest["files"], serde_json::json!([]));
}

/// What each runtime is handed, and how its processes find it.
#[test]
fn every_runtime_is_handed_what_it_reads() {
    let workspace = Workspace::new();
    for (options, profile, ending, names) in [
        ("--profile msccl-executor", "msccl-executor", "xml", &["NCCL_MSCCL_ENABLE", "MSCCL_ALGO_DIR"][..]),
        (
            "--profile rccl-msccl",
            "rccl-msccl",
            "xml",
            &["RCCL_MSCCL_ENABLE", "RCCL_MSCCL_FORCE_ENABLE", "MSCCL_ALGO_DIR"],
        ),
        ("--profile mscclpp-0.8", "mscclpp-0.8", "json", &["MSCCLPP_EXECUTION_PLAN_DIR"]),
        ("--profile mscclpp-0.9", "mscclpp-0.9", "json", &["CANOPY_JOB_DIR"]),
        ("--format mscclpp-json", "mscclpp-0.10", "json", &["CANOPY_JOB_DIR"]),
        ("--format oneccl-xml", "oneccl", "xml", &["CANOPY_JOB_DIR"]),
    ] {
        let fetch = format!(
            "fetch dgx-a100:boxes=2 -c allgather,allreduce --job 17 --nodes gpu[1-2] --size 64MiB --out job {options} \
             --deadline 60s --strict"
        );
        hook(&workspace, &fetch, 0, "2 of 2 plans for job 17");
        let manifest: serde_json::Value = serde_json::from_slice(&workspace.read("job/manifest.json")).unwrap();
        assert_eq!(manifest["profile"], profile);
        let mut plans = std::path::PathBuf::new();
        for file in manifest["files"].as_array().unwrap() {
            let path = workspace.path("job").join(file["path"].as_str().unwrap());
            assert_eq!(path.extension().unwrap(), ending);
            let judged = format!("verify {} --topology dgx-a100:boxes=2", path.display());
            let judged = match ending {
                _ if profile != "oneccl" => format!("{judged} --profile {profile}"),
                _ => judged,
            };
            assert_eq!(workspace.run(&judged).status, Some(0), "{judged}");
            assert_eq!((&file["ranks_per_node"], &file["size_bytes_max"]), (&8.into(), &(64 << 20).into()), "{file}");
            plans = path.parent().unwrap().to_owned();
        }
        assert_eq!(std::fs::read_dir(&plans).unwrap().count(), 2, "some runtimes read every file");
        assert_eq!(
            workspace.path("job/loader.py").exists(),
            profile.starts_with("mscclpp-") && profile != "mscclpp-0.8"
        );
        let mut task = workspace.command("env --format slurm-task-prolog --dir job --strict");
        names.iter().for_each(|name| {
            task.env_remove(name);
        });
        let found = Run::of(task.env_remove("SLURM_JOB_ID").output().unwrap());
        let value = |name: &&str| match *name {
            "CANOPY_JOB_DIR" => std::fs::canonicalize(workspace.path("job")).unwrap().display().to_string(),
            name if name.ends_with("_DIR") => std::fs::canonicalize(&plans).unwrap().display().to_string(),
            _ => "1".to_owned(),
        };
        let lines: String = names.iter().map(|name| format!("export {name}={}\n", value(name))).collect();
        assert_eq!((found.stdout.as_str(), found.stderr.as_str()), (lines.as_str(), ""), "{profile}");
        shells_are_told_the_same(&workspace, names, &lines);
        hook(&workspace, "release --job 17 --dir job --strict", 0, "");
        assert!(!workspace.path("job").exists());
    }
}

/// A shell comes to the same variables as a task, and leaves alone what is set.
#[track_caller]
fn shells_are_told_the_same(workspace: &Workspace, names: &[&str], lines: &str) {
    for (before, expected) in [("", lines.replace("export ", "")), ("taken", String::new())] {
        let words = names.iter().map(|name| format!("echo {name}=${name}; ")).collect::<String>();
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &format!(". {}; {words}", workspace.path("job/env").display())]).env_clear();
        if let Some(&first) = names.first().filter(|_| !before.is_empty()) {
            shell.env(first, before);
        }
        let found = Run::of(shell.output().unwrap());
        let expected = match before {
            "" => expected,
            _ => {
                let kept = |(at, name): (usize, &&str)| format!("{name}={}\n", if at == 0 { before } else { "" });
                names.iter().enumerate().map(kept).collect()
            }
        };
        assert_eq!(found.stdout, expected, "{names:?}: {found:?}");
    }
}

/// The module beside a job's plans picks by the manifest, and by nothing else.
#[test]
fn the_module_of_a_job_picks_what_is_meant() {
    let workspace = Workspace::new();
    let fetch = "fetch dgx-a100:boxes=2 -c allreduce,broadcast --root 3 --job 17 --size 64MiB --out job --profile mscclpp-0.10 \
                 --deadline 60s --strict";
    hook(&workspace, fetch, 0, "2 of 2 plans for job 17");
    let manifest: serde_json::Value = serde_json::from_slice(&workspace.read("job/manifest.json")).unwrap();
    let [allreduce, broadcast] = [0, 1].map(|at: usize| manifest["files"][at].clone());
    let unit = |file: &serde_json::Value| file["alignment_elements"].as_u64().unwrap();
    let (sum, spread) = (unit(&allreduce), unit(&broadcast));
    let calls = serde_json::json!([
        ["allreduce", 16, 8, sum, true],
        ["allreduce", 16, 8, sum + 1, true],
        ["allreduce", 16, 8, sum, false],
        ["allreduce", 16, 4, sum, true],
        ["allreduce", 8, 8, sum, true],
        ["allreduce", 16, 8, (64 << 20) / sum * sum + sum, true],
        ["broadcast", 16, 8, spread, false, 3],
        ["broadcast", 16, 8, spread, false],
    ]);
    let script = "import json, sys\n\
                  sys.path.insert(0, sys.argv[1])\n\
                  import loader\n\
                  found = [loader.pick(*call) for call in json.loads(sys.argv[2])]\n\
                  print(json.dumps([plan and plan['path'] for plan in found]))";
    let arguments = [workspace.path("job").display().to_string(), calls.to_string()];
    let Some(python) = canopy_prerequisites::program("python3") else { return };
    let python = std::process::Command::new(python).args(["-B", "-c", script]).args(arguments).output().unwrap();
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let found: Vec<serde_json::Value> = serde_json::from_slice(&python.stdout).unwrap();
    let mut expected = vec![serde_json::Value::Null; calls.as_array().unwrap().len()];
    (expected[0], expected[6]) = (allreduce["path"].clone(), broadcast["path"].clone());
    assert_eq!(found, expected);
}
