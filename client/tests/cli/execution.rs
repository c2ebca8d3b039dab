//! Execution plans of MSCCL++: made, judged, refused, and registered by the module beside them.

use std::process::Command;

use crate::support::Desk;

#[test]
fn a_plan_is_made_and_found_right() {
    let desk = Desk::new();
    for profile in ["mscclpp-0.6", "mscclpp-0.9"] {
        for (collective, extra) in [("allreduce", ""), ("all-to-all", "--in-place"), ("broadcast", "--root 3")] {
            let arguments =
                format!("dgx-a100:boxes=2,gpus=4 -c {collective} {extra} --format mscclpp-json --profile {profile}");
            let report = desk.json(&format!("plan {arguments} -o plan.json --json"));
            assert_eq!(
                (&report["files"][0]["format"], &report["files"][0]["profile"]),
                (&"mscclpp-json".into(), &profile.into())
            );
            let root = if collective == "broadcast" { "--root 3" } else { "" };
            let verdict = desk.json(&format!("verify plan.json --profile {profile} -c {collective} {root} --json"));
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
    let desk = Desk::new();
    let first = desk.json("plan ring:4 -c allgather --format mscclpp-json -o plan.json --json");
    assert_eq!(first["files"][0]["profile"], "mscclpp-0.9");
    let bytes = desk.read("plan.json");
    std::fs::remove_dir_all(desk.path("data")).unwrap();
    desk.json("plan ring:4 -c allgather --format mscclpp-json -o plan.json --json");
    assert_eq!(desk.read("plan.json"), bytes);
}

#[test]
fn the_module_beside_a_plan_states_when_it_is_to_be_used() {
    let desk = Desk::new();
    desk.json("plan dgx-a100:boxes=2,gpus=4 -c allgather --format mscclpp-json -o plan.json --json");
    // Nothing says on which machines these are; and a name is a name, whatever marks it holds.
    desk.json("plan ring:4 -c allgather --format mscclpp-json -o @NAME@.json --json");
    let script = "import plan, runpy\n\
        odd = runpy.run_path('@NAME@.py')\n\
        assert (odd['FILE'], odd['RANKS_PER_NODE']) == ('@NAME@.json', 0)\n\
        assert (plan.WORLD_SIZE, plan.RANKS_PER_NODE, plan.COLLECTIVE) == (8, 4, 'allgather')\n\
        assert plan.path().endswith('plan.json')\n\
        size = plan.BYTES_MULTIPLE * 4\n\
        assert plan.matches(8, size, plan.IN_PLACE)\n\
        assert not plan.matches(16, size, plan.IN_PLACE)\n\
        assert not plan.matches(8, size + 1, plan.IN_PLACE)\n\
        assert not plan.matches(8, size, not plan.IN_PLACE)\n";
    match Command::new("python3").args(["-B", "-c", script]).current_dir(desk.path("")).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("skipped: no python3: {error}"),
    }
    // An older version finds files by itself, and other files are left alone.
    desk.json("plan ring:4 -c allgather --format mscclpp-json --profile mscclpp-0.6 -o old.json --json");
    assert!(!desk.path("old.py").exists());
    desk.write("mine.py", "print('mine')\n");
    let arguments = "plan ring:4 -c allgather --format mscclpp-json -o mine.json";
    desk.refused(arguments, 2, &["mine.py is in the way of the module", "another name with -o"]);
    assert_eq!(desk.read("mine.py"), b"print('mine')\n");
}

#[test]
fn damage_is_found_and_names_are_told_apart() {
    let desk = Desk::new();
    desk.json("plan ring:4 -c allgather --out-of-place --format mscclpp-json -o plan.json --json");
    let text = String::from_utf8(desk.read("plan.json")).unwrap();
    for (from, to, words) in [
        ("\"name\": \"put\"", "\"name\": \"get\"", "operations"),
        ("{\"name\": \"nop\"}", "{\"name\": \"signal\"}", "signal: needs channels of type memory or port"),
        ("\"id\": 1, \"input", "\"id\": 2, \"input", "list the ranks in order"),
        ("\"name\": \"wait\"", "\"name\": \"hope\"", "no operation that the loader knows"),
        ("\"input_chunks\"", "\"input_chunk\"", "gpus[0].input_chunks is missing"),
    ] {
        assert!(text.contains(from), "{from}");
        desk.write("damaged.json", text.replacen(from, to, 1));
        let found = desk.run("verify damaged.json");
        assert_eq!(found.status, Some(2), "{from}");
        assert!(found.stdout.contains(words), "{from}: {}", found.stdout);
    }
    for (arguments, words) in [
        ("plan ring:4 -c allgather --format mscclpp-json --profile msccl", "msccl reads msccl-xml, not mscclpp-json"),
        (
            "plan ring:4 -c allgather --format msccl-xml --profile mscclpp-0.9",
            "mscclpp-0.9 reads mscclpp-json, not msccl-xml",
        ),
        ("plan ring:4 -c allgather --format mscclpp-json --instances 2", "--instances is for msccl-xml"),
        ("plan ring:4 -c allgather --shares 1,2,1,1 --format mscclpp-json", "cannot say shares of unequal size"),
        ("verify plan.json --profile msccl", "the file is an execution plan of MSCCL++"),
    ] {
        let found = desk.run(arguments);
        assert_ne!(found.status, Some(0), "{arguments}");
        assert!(found.stderr.contains(words), "{arguments}: {}", found.stderr);
    }
}
