//! `canopy plan --algorithm` from end to end: every collective by the algorithms that plan them all.

use crate::support::Workspace;

/// Planned, written, read back and verified; the name of the algorithm and the ratio to the bound.
#[track_caller]
fn planned(workspace: &Workspace, topology: &str, collective: &str, algorithm: &str) -> (String, String) {
    let plan = workspace
        .json(&format!("plan {topology} --collective {collective} --algorithm {algorithm} -o {algorithm}.json --json"));
    let verdict = workspace.json(&format!("verify {algorithm}.json --json"));
    assert_eq!(verdict["ok"], true, "{collective} by {algorithm}: {verdict}");
    assert_eq!((&verdict["collective"], &verdict["algbw"]), (&plan["collective"], &plan["algbw"]));
    let text = |name: &str| plan[name].as_str().unwrap().to_owned();
    (text("algorithm"), text("optimality"))
}

#[test]
fn direct_and_ring_plan_every_collective() {
    let workspace = Workspace::new();
    for collective in
        ["allgather", "reduce-scatter", "allreduce", "broadcast", "reduce", "gather", "scatter", "all-to-all"]
    {
        let (name, optimality) = planned(&workspace, "ring:5", collective, "ring");
        assert_eq!(name, "ring");
        assert_eq!(optimality, "1/1", "{collective}: a ring is its own best ring");
        let (name, _) = planned(&workspace, "dgx-a100:boxes=2", collective, "direct");
        assert_eq!(name, "direct");
    }
}

/// The same network by other expressions has other schedules: as many steps as each says.
#[test]
fn expansions_follow_the_expression() {
    let workspace = Workspace::new();
    let steps = |topology: &str, collective: &str| {
        assert_eq!(planned(&workspace, topology, collective, "expansion").0, "expansion");
        let plan = format!("plan {topology} --collective {collective} --algorithm expansion -o again.json --json");
        let cost = workspace.json(&plan)["steps_cost"].clone();
        (cost["t_l"].as_u64().unwrap(), cost["t_b"].as_str().unwrap().to_owned())
    };
    assert_eq!(steps("diamond", "allgather"), (3, "7/8".to_owned()));
    assert_eq!(steps("line:1(bipartite:2x2)", "reduce-scatter"), (3, "1/1".to_owned()));
    assert_eq!(steps("degree:2(complete:3):bw=1GB/s", "allreduce"), (4, "5/3".to_owned()));
    assert_eq!(steps("hypercube:3", "allgather"), (3, "7/8".to_owned()));
    assert_eq!(steps("degree:2(ring:4,dir=uni)", "allgather"), (4, "7/8".to_owned()));
    let refused = |expression: &str, reason: &str| {
        let plan = format!("plan {expression} --collective allgather --algorithm expansion");
        workspace.refused(&plan, 2, &[reason]);
    };
    refused("dgx-a100:boxes=2", "give an expression without switches");
    refused("diamond:down=0>7", "has no link from rank 0 to rank 7");
    refused("bipartite:2x3", "every node has the same number of links");
    workspace.refused("plan diamond --collective gather --algorithm expansion", 2, &["expansion does not plan gather"]);
}

/// Steps and their cost are on the plan, and the files of runtimes are verified by running them.
#[test]
fn breadth_first_broadcasts_come_in_steps() {
    let workspace = Workspace::new();
    for collective in ["allgather", "reduce-scatter", "allreduce", "broadcast", "reduce"] {
        assert_eq!(planned(&workspace, "hypercube:3", collective, "bfb").0, "bfb", "{collective}");
    }
    let plan = workspace.json("plan genkautz:n=11,d=4 --collective reduce-scatter --algorithm bfb -o plan.json --json");
    assert_eq!(plan["steps_cost"], serde_json::json!({ "t_l": 2, "t_b": "16/11", "unit": "M/B" }));
    assert_eq!((&plan["steps"], &plan["chunks"]), (&2.into(), &1.into()));
    let coarse = workspace.json("plan torus:4x6 --collective allgather --algorithm bfb --chunks 1 -o plan.json --json");
    assert_eq!((&coarse["chunks"], &coarse["steps_cost"]["t_b"]), (&1.into(), &"7/6".into()));
    for format in ["msccl-xml", "oneccl-xml"] {
        let plan = "plan genkautz:n=32,d=4 --collective allreduce --algorithm bfb";
        let plan = workspace.json(&format!("{plan} --format {format} -o plan.xml --json"));
        assert_eq!((&plan["algorithm"], &plan["steps"]), (&"bfb".into(), &6.into()));
        assert_eq!(workspace.json("verify plan.xml --json")["ok"], true, "{format}");
    }
    workspace.refused("plan dgx-a100:boxes=1 --collective allgather --algorithm bfb", 2, &["is a switch", "forest"]);
    workspace.refused("plan ring:4 --collective gather --algorithm bfb", 2, &["bfb does not plan gather"]);
    workspace.refused("plan ring:4 --collective allgather --chunks 2", 2, &["`chunks` does not apply", "bfb"]);
}

/// Routings that others are compared with: planned, written, read back and judged like all plans.
#[test]
fn baselines_of_all_to_all_are_plans_like_others() {
    let workspace = Workspace::new();
    for (topology, algorithm) in [
        ("torus:3x3,host=75GB/s", "sssp"),
        ("torus:3x3,down=00-01", "ewsp"),
        ("torus:4x4", "dor"),
        ("genkautz:n=10,d=4", "pmcf"),
        ("hypercube:3", "pmcf-shortest"),
        ("twisted-cube", "ilp-disjoint"),
        ("bipartite:4x4", "ilp-shortest"),
        ("ring:5", "pairwise"),
        ("complete:5", "bruck"),
    ] {
        assert_eq!(planned(&workspace, topology, "all-to-all", algorithm).0, algorithm, "{topology}");
    }
    let refused = |plan: &str, words: &[&str]| workspace.refused(&format!("plan {plan}"), 2, words);
    refused("ring:4 --collective allgather --algorithm sssp", &["sssp does not plan allgather", "direct and ring"]);
    refused("dgx-a100:boxes=2 --collective all-to-all --algorithm dor", &["give an expression such as"]);
    refused("torus:8x8 --collective all-to-all --algorithm ilp-shortest", &["over the limit of 50000"]);
    refused("ring:4 --collective all-to-all --algorithm sssp --max-chunks 2", &["`max_chunks` limits trees"]);
}

/// The plan that `auto` takes for a size is the one that is simulated fastest, and for large messages that of the best rate.
#[track_caller]
fn takes_the_fastest(network: &str, collective: &str, size: &str, others: &[&str]) -> String {
    let workspace = Workspace::new();
    let time = |algorithm: &str| {
        let plan = format!("plan {network} --collective {collective} --size {size} --algorithm {algorithm}");
        let name = workspace.json(&format!("{plan} -o plan.json --json"))["algorithm"].as_str().unwrap().to_owned();
        let run = workspace.json(&format!("simulate plan.json --size {size} --json"));
        (run["sizes"][0]["time_ps"].as_u64().unwrap(), name)
    };
    let (taken, name) = time("auto");
    for other in others {
        assert!(taken <= time(other).0, "{collective} of {size} on {network} by {name}, and by {other}");
    }
    name
}

/// Trees of the best rate are deep, and small messages wait for every hop; on switches nothing but a schedule in time has fewer.
#[test]
fn small_messages_get_the_fastest_plan() {
    let network = "genkautz:n=32,d=4";
    assert_ne!(takes_the_fastest(network, "allgather", "64KiB", &["forest", "bfb", "tacos"]), "forest");
    assert_eq!(takes_the_fastest(network, "allgather", "1GiB", &["forest"]), "forest");
    for collective in ["allgather", "allreduce", "broadcast"] {
        takes_the_fastest("dgx-a100:boxes=2", collective, "16KiB", &["forest", "tacos"]);
    }
    takes_the_fastest("mesh:4x4", "scatter", "16KiB", &["flow", "tacos"]);
}

/// Trees choose where how much is added up; a oneCCL plan, which has no word for it, holds them all the same.
#[test]
fn runtimes_of_equal_shares_get_an_allreduce_by_trees() {
    let workspace = Workspace::new();
    let request = "plan genkautz:n=32,d=4 --collective allreduce";
    assert_eq!(workspace.json(&format!("{request} --format oneccl-xml -o plan.xml --json"))["algorithm"], "forest");
    assert_eq!(workspace.json("verify plan.xml --collective allreduce --json")["ok"], true);
    assert_eq!(workspace.json(&format!("{request} -o plan.json --json"))["algorithm"], "forest");
}

/// Flows go around where that relieves a link, and small messages wait for every hop.
#[test]
fn small_all_to_alls_take_short_routes() {
    let network = "genkautz:n=40,d=4";
    assert_ne!(takes_the_fastest(network, "all-to-all", "4KiB", &["flow", "direct", "tacos"]), "flow");
    assert_eq!(takes_the_fastest(network, "all-to-all", "1GiB", &["flow"]), "flow");
}

/// A proof says of which schedules it is: switches unwound in one way, and the two phases of an allreduce one after the other.
#[test]
fn proofs_of_time_say_what_they_leave_open() {
    let workspace = Workspace::new();
    let plan = |network: &str, kind: &str| {
        workspace.json(&format!("plan {network} --collective {kind} --algorithm tacos-ilp -o plan.json --json"))["time"]
            .clone()
    };
    let phases = serde_json::json!([{"end": 4, "bound": 4}, {"end": 4, "bound": 4}]);
    let expected = serde_json::json!({"end": 8, "bound": 8, "one_unwinding": false, "phases": phases});
    assert_eq!(plan("mesh:3x3", "allreduce"), expected);
    assert_eq!(plan("dims:switch4", "allgather")["one_unwinding"], true);
    let text = workspace.run("plan mesh:3x3 --collective allreduce --algorithm tacos-ilp -o plan.json").stderr;
    assert!(text.contains("proven for each phase alone (4 of 4 and 4 of 4)"), "{text}");
    let text = workspace.run("plan dims:switch4 --collective allgather --algorithm tacos-ilp -o plan.json").stderr;
    assert!(text.contains("; for this unwinding of the switches only"), "{text}");
}

/// The proof of a plan is shown where it is made and where it is kept; equal seeds give equal plans.
#[test]
fn schedules_in_time_say_how_near_to_the_fastest_they_are() {
    let workspace = Workspace::new();
    let plan = workspace.json("plan mesh:3x3 --collective allgather --algorithm tacos-ilp -o plan.json --json");
    assert_eq!((&plan["time"]["end"], &plan["time"]["bound"]), (&4.into(), &4.into()), "{plan}");
    let text = workspace.run("plan mesh:3x3 --collective allgather --algorithm tacos-ilp -o plan.json").stderr;
    assert!(text.contains("ends at tick 4; proven: no schedule with this number of chunks ends earlier"), "{text}");
    let kept = workspace.json(&format!("plans show {} --json", plan["plan"].as_str().unwrap()));
    assert_eq!(kept["time"], plan["time"]);
    let verified = workspace.json("verify plan.json --json");
    assert_eq!((&verified["ok"], &verified["not_repeated"]), (&true.into(), &["time proof of tacos-ilp"][..].into()));
    let text = workspace.run("verify plan.json").stdout;
    assert!(text.contains("\nnot repeated  time proof of tacos-ilp"), "{text}");
    assert!(workspace.json("plan mesh:3x3 --collective allgather -o plan.json --json")["time"].is_null());
    assert!(workspace.json("verify plan.json --json")["not_repeated"].is_null());

    let seeded = |seed: &str| {
        let plan = "plan random-regular:n=12,d=3,seed=1 --collective allgather --algorithm tacos-published";
        let plan = workspace.json(&format!("{plan} --seed {seed} -o plan.json --json"));
        (plan["plan"].clone(), plan["cache"].clone())
    };
    let ((first, _), (other, found), (again, kept)) = (seeded("7"), seeded("8"), seeded("7"));
    assert_eq!((found.as_str(), kept.as_str()), (Some("miss"), Some("hit")));
    assert!(first == again && first != other, "{first}, {other}, {again}");
    workspace.refused(
        "plan ring:4 --collective allgather --algorithm bfb --seed 1",
        2,
        &["--seed", "bfb makes no random choices"],
    );
}

#[test]
fn auto_says_what_it_took() {
    let workspace = Workspace::new();
    assert_eq!(planned(&workspace, "ring:8", "allgather", "auto").0, "forest");
    assert_eq!(planned(&workspace, "dgx-a100:boxes=2", "gather", "auto"), ("flow".to_owned(), "1/1".to_owned()));
    assert_eq!(planned(&workspace, "mesh:3x3", "scatter", "auto"), ("flow".to_owned(), "1/1".to_owned()));
    assert_eq!(planned(&workspace, "ring:5", "all-to-all", "auto").1, "1/1");
}

#[test]
fn an_algorithm_that_does_not_apply_says_why() {
    let workspace = Workspace::new();
    workspace.refused(
        "plan ring:4 --collective gather --algorithm forest",
        2,
        &["forest does not plan gather", "direct"],
    );
    workspace.refused(
        "plan ring:4 --collective gather --algorithm rings",
        2,
        &["auto, forest, stages, orbits, flow, bfb, tsmcf, tacos, tacos-ilp, tacos-published, direct-xy, ring-xy, taccl-like, expansion, kautz, kautz-m, dfc2, dfc2-do, multitree, blink, direct, ring, sssp, ewsp, dor, pmcf, pmcf-shortest, ilp-disjoint, ilp-shortest, pairwise, bruck, recursive-doubling, binomial, double-tree, local-ring, bine or swing"],
    );
}

/// An all-to-all in steps is lowered for every runtime, and verified by running its files.
#[test]
fn flows_in_steps_run_everywhere() {
    let workspace = Workspace::new();
    for (topology, steps) in [
        ("hypercube:3", 3),
        ("twisted-cube", 2),
        ("bipartite:4x4", 2),
        ("torus:4x4", 4),
        ("torus:3x3x3", 3),
        ("dgx-a100:boxes=1", 1),
        ("dgx-a100:boxes=2", 1),
        ("torus:3x3,host=75GB/s", 2),
        ("torus:3x3,host=75GB/s,nicforward=true", 1),
    ] {
        let plan = format!("plan {topology} --collective all-to-all --algorithm tsmcf");
        let plan = workspace.json(&format!("{plan} --format msccl-xml -o plan.xml --json"));
        assert_eq!((&plan["algorithm"], &plan["steps"]), (&"tsmcf".into(), &steps.into()), "{topology}");
        assert_eq!(workspace.json("verify plan.xml --json")["ok"], true, "{topology}");
    }
    for format in ["oneccl-xml", "mscclpp-json"] {
        let plan = "plan hypercube:3 --collective all-to-all --algorithm tsmcf";
        workspace.json(&format!("{plan} --format {format} -o plan.file --json"));
        assert_eq!(workspace.json("verify plan.file --json")["ok"], true, "{format}");
    }
    assert_eq!(planned(&workspace, "torus:3x3", "all-to-all", "tsmcf").0, "tsmcf");
    workspace.refused("plan ring:4 --collective allgather --algorithm tsmcf", 2, &["tsmcf does not plan allgather"]);
    workspace.refused(
        "plan dgx-a100:boxes=16 --collective all-to-all --algorithm tsmcf",
        2,
        &["128 ranks", "flow, direct"],
    );
}

/// What an integer program lacks of the best choice among its own paths: K4,4 takes three blocks on a link, where paths that are
/// shared take 5/2 and so bound the collective. Said again of a plan that is known, and of no other algorithm.
#[test]
fn choices_of_paths_say_what_they_lack() {
    let workspace = Workspace::new();
    let plan = |topology: &str, algorithm: &str| {
        let plan = format!("plan {topology} --collective all-to-all --algorithm {algorithm}");
        workspace.json(&format!("{plan} -o plan.json --json"))
    };
    let best = serde_json::json!({"reached": "8000000000/3", "bound": "8000000000/3", "gap": "0/1"});
    for (algorithm, cache) in [("ilp-disjoint", "miss"), ("ilp-disjoint", "hit"), ("ilp-shortest", "miss")] {
        let found = plan("bipartite:4x4,bw=1GB/s", algorithm);
        assert_eq!((&found["search"], &found["cache"]), (&best, &cache.into()), "{algorithm}");
        assert_eq!(found["bound"], "3200000000");
    }
    let shown = workspace.json(&format!(
        "plans show {} --json",
        plan("bipartite:4x4,bw=1GB/s", "ilp-disjoint")["plan"].as_str().unwrap()
    ));
    assert_eq!(shown["search"], best);
    assert_eq!(plan("bipartite:4x4,bw=1GB/s", "pmcf")["search"], serde_json::Value::Null);
}
