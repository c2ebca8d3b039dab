//! Execution plans of MSCCL++: made, judged, refused, and registered by the module beside them.

use std::process::Command;

use canopy_prerequisites::program;

use crate::support::Workspace;

#[test]
fn a_plan_is_made_and_found_right() {
    let workspace = Workspace::new();
    for profile in ["mscclpp-0.8", "mscclpp-0.9", "mscclpp-0.10"] {
        for (collective, extra) in [("allreduce", ""), ("all-to-all", "--in-place"), ("broadcast", "--root 3")] {
            let arguments =
                format!("dgx-a100:boxes=2,gpus=4 -c {collective} {extra} --format mscclpp-json --profile {profile}");
            let report = workspace.json(&format!("plan {arguments} -o plan.json --json"));
            assert_eq!(
                (&report["files"][0]["format"], &report["files"][0]["profile"]),
                (&"mscclpp-json".into(), &profile.into())
            );
            let root = if collective == "broadcast" { "--root 3" } else { "" };
            let verdict =
                workspace.json(&format!("verify plan.json --profile {profile} -c {collective} {root} --json"));
            assert_eq!((&verdict["ok"], &verdict["format"]), (&true.into(), &"mscclpp-json".into()));
            for check in ["races", "deadlock", "meaning", "emulation", "collective"] {
                assert_eq!(verdict["checks"][check], true, "{check}");
            }
        }
    }
}

/// The same request gives the same bytes, and the default profile is the newest version.
#[test]
fn plans_are_reproducible_and_for_the_newest_version() {
    let workspace = Workspace::new();
    let first = workspace.json("plan ring:4 -c allgather --format mscclpp-json -o plan.json --json");
    assert_eq!(first["files"][0]["profile"], "mscclpp-0.10");
    let bytes = workspace.read("plan.json");
    std::fs::remove_dir_all(workspace.path("data")).unwrap();
    workspace.json("plan ring:4 -c allgather --format mscclpp-json -o plan.json --json");
    assert_eq!(workspace.read("plan.json"), bytes);
}

/// 0.6 and 0.7 abort on these files, so no command makes, converts or judges one for them.
#[test]
fn versions_that_read_another_schema_are_refused_with_the_reason() {
    let workspace = Workspace::new();
    workspace.json("plan ring:4 -c allgather --format mscclpp-json -o plan.json --json");
    for version in ["mscclpp-0.6", "mscclpp-0.7"] {
        for arguments in [
            format!("plan ring:4 -c allgather --format mscclpp-json --profile {version}"),
            format!("plan ring:4 -c allgather --sizes 1KiB-1MiB --format mscclpp-json --profile {version} -o bundle"),
            format!("verify plan.json --profile {version}"),
            format!("convert plan.json --to {version} -o old.json"),
            format!("fetch ring:4 -c allgather --job 1 --out out --profile {version} --strict"),
        ] {
            let words = ["0.6 and 0.7 read another schema", "use mscclpp-0.8, mscclpp-0.9 or mscclpp-0.10"];
            workspace.refused(&arguments, 2, &words);
        }
    }
}

/// The kernels of 0.8 and 0.9 send what lies elsewhere; no plan has the operation that they misread.
#[test]
fn a_plan_over_several_boxes_is_judged_as_each_version_executes_it() {
    let workspace = Workspace::new();
    let plan = "plan dgx-a100:boxes=2,gpus=2 -c allreduce --size 1MiB --format mscclpp-json";
    for profile in ["mscclpp-0.8", "mscclpp-0.9", "mscclpp-0.10"] {
        workspace.json(&format!("{plan} --profile {profile} -o own.json --json"));
        let text = String::from_utf8(workspace.read("own.json")).unwrap();
        assert!(!text.contains("\"pwsf\"") && text.contains("\"pws\""), "{profile}");
        assert_eq!(workspace.run(&format!("verify own.json --profile {profile}")).status, Some(0), "{profile}");
        workspace.write("flushing.json", text.replace("\"pws\"", "\"pwsf\""));
        let found = workspace.run(&format!("verify flushing.json --profile {profile}"));
        if profile == "mscclpp-0.10" {
            assert_eq!(found.status, Some(0), "{}", found.stdout);
            continue;
        }
        assert_eq!(found.status, Some(2), "{profile}");
        let words = format!("the kernel of {profile} uses the address of the offsets as the source offset");
        assert!(found.stdout.contains(&words), "{}", found.stdout);
    }
}

#[test]
fn the_module_beside_a_plan_states_when_it_is_to_be_used() {
    let workspace = Workspace::new();
    workspace.json("plan dgx-a100:boxes=2,gpus=4 -c allgather --format mscclpp-json -o plan.json --json");
    // Nothing says on which machines these are; and a name is a name, whatever marks it holds.
    workspace.json("plan ring:4 -c allgather --format mscclpp-json -o @NAME@.json --json");
    let script = "import plan, runpy\n\
        odd = runpy.run_path('@NAME@.py')\n\
        assert (odd['FILE'], odd['RANKS_PER_NODE']) == ('@NAME@.json', 0)\n\
        assert (plan.WORLD_SIZE, plan.RANKS_PER_NODE, plan.COLLECTIVE) == (8, 4, 'allgather')\n\
        assert plan.path().endswith('plan.json')\n\
        size = plan.BYTES_MULTIPLE * 4\n\
        assert plan.matches(8, size, plan.IN_PLACE)\n\
        assert not plan.matches(16, size, plan.IN_PLACE)\n\
        assert not plan.matches(8, size + 1, plan.IN_PLACE)\n\
        assert not plan.matches(8, size, not plan.IN_PLACE)\n\
        import os, sys, types\n\
        runtime = types.ModuleType('mscclpp')\n\
        class Algorithm(types.SimpleNamespace):\n    Constraint = types.SimpleNamespace\n\
        runtime.Algorithm, runtime.ExecutionPlan = Algorithm, lambda path, rank: (path, rank)\n\
        sys.modules['mscclpp'] = runtime\n\
        on_each = lambda made: (made.constraint.world_size, made.constraint.n_ranks_per_node)\n\
        assert on_each(plan.load(3)) == (8, 4) and plan.load(3).execution_plan == (plan.path(), 3)\n\
        launchers = ['LOCAL_WORLD_SIZE', 'OMPI_COMM_WORLD_LOCAL_SIZE', 'MPI_LOCALNRANKS', 'SLURM_NTASKS_PER_NODE']\n\
        for name in launchers: os.environ.pop(name, None)\n\
        try:\n    odd['load'](0)\n    raise SystemExit('nothing says how many ranks a host has')\n\
        except ValueError as error:\n    assert 'pass ranks_per_node' in str(error)\n\
        assert on_each(odd['load'](0, ranks_per_node=2)) == (4, 2)\n\
        for name in launchers:\n    os.environ[name] = '1'\n    assert on_each(odd['load'](0)) == (4, 1)\n    os.environ[name] = '4(x2)'\n\
        try:\n    odd['load'](0)\n    raise SystemExit('a list is no number')\n\
        except ValueError:\n    pass\n";
    if let Some(python) = program("python3") {
        let output = Command::new(python).args(["-B", "-c", script]).current_dir(workspace.path("")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // An older version finds files by itself, and other files are left alone.
    workspace.json("plan ring:4 -c allgather --format mscclpp-json --profile mscclpp-0.8 -o old.json --json");
    assert!(!workspace.path("old.py").exists());
    workspace.write("mine.py", "print('mine')\n");
    let arguments = "plan ring:4 -c allgather --format mscclpp-json -o mine.json";
    workspace.refused(arguments, 2, &["mine.py is in the way of the module", "another name with -o"]);
    assert_eq!(workspace.read("mine.py"), b"print('mine')\n");
}

#[test]
fn damage_is_found_and_names_are_told_apart() {
    let workspace = Workspace::new();
    workspace.json("plan ring:4 -c allgather --out-of-place --format mscclpp-json -o plan.json --json");
    let text = String::from_utf8(workspace.read("plan.json")).unwrap();
    for (from, to, words) in [
        ("\"name\": \"put\"", "\"name\": \"get\"", "operations"),
        ("{\"name\": \"nop\"}", "{\"name\": \"signal\"}", "signal: needs channels of type memory or port"),
        ("\"id\": 1, \"input", "\"id\": 2, \"input", "list the ranks in order"),
        ("\"name\": \"wait\"", "\"name\": \"hope\"", "not an operation of the loader"),
        ("\"input_chunks\"", "\"input_chunk\"", "gpus[0].input_chunks is missing"),
    ] {
        assert!(text.contains(from), "{from}");
        workspace.write("damaged.json", text.replacen(from, to, 1));
        let found = workspace.run("verify damaged.json");
        assert_eq!(found.status, Some(2), "{from}");
        assert!((found.stdout.clone() + &found.stderr).contains(words), "{from}: {found:?}");
    }
    for (arguments, words) in [
        ("plan ring:4 -c allgather --format mscclpp-json --profile msccl", "msccl reads msccl-xml, not mscclpp-json"),
        (
            "plan ring:4 -c allgather --format msccl-xml --profile mscclpp-0.10",
            "mscclpp-0.10 reads mscclpp-json, not msccl-xml",
        ),
        ("plan ring:4 -c allgather --format mscclpp-json --instances 2", "--instances is for msccl-xml"),
        ("plan ring:4 -c allgather --shares 1,2,1,1 --format mscclpp-json", "cannot express shares of unequal size"),
        ("verify plan.json --profile msccl", "the file is an execution plan of MSCCL++"),
    ] {
        let found = workspace.run(arguments);
        assert_ne!(found.status, Some(0), "{arguments}");
        assert!(found.stderr.contains(words), "{arguments}: {}", found.stderr);
    }
}
