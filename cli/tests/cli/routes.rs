//! Route plans on the command line: made, verified, rated, limited to few layers, and refused when damaged.

use crate::support::Workspace;

/// A plan that somebody wrote by hand, with a declaration and a comment before it.
const HAND_MADE: &str = include_str!("../../../crates/plan/tests/route_files/all_to_all_ring3.xml");

#[test]
fn hand_made_plans_are_verified_and_rated() {
    let workspace = Workspace::new();
    workspace.write("routes.xml", HAND_MADE);
    let verdict = workspace.json("verify routes.xml --collective all-to-all --topology ring:3,dir=uni,bw=6GB/s --json");
    assert_eq!(
        (&verdict["ok"], &verdict["format"], &verdict["profile"]),
        (&true.into(), &"routes-xml".into(), &"routes".into())
    );
    let checks = ["file", "structure", "meaning", "deadlock", "load", "ports", "collective"];
    assert_eq!(verdict["checks"].as_object().unwrap().len(), checks.len(), "{verdict}");
    assert!(checks.iter().all(|check| verdict["checks"][check] == true), "{verdict}");
    assert_eq!((&verdict["algbw"], &verdict["optimality"]), (&"6000000000".into(), &"1/1".into()));
    workspace.refused("verify routes.xml --profile msccl", 2, &["this is a route plan"]);
    workspace.refused("convert routes.xml --to oneccl", 2, &["is a route plan, which cannot be converted for oneccl"]);
    workspace.refused("explain routes.xml", 2, &["is a file of a runtime", "give the plan in canopy's JSON"]);
    for (from, to, check) in [
        ("cnt=\"2\"/>", "cnt=\"2\" mtu=\"9\"/>", "file"),
        ("ports=\"0 0\"", "ports=\"0 1\"", "structure"),
        ("o_off=\"4\" cnt=\"2\"", "o_off=\"4\" cnt=\"1\"", "meaning"),
        ("algbw=\"6000000000\"", "algbw=\"6000000001\"", "load"),
    ] {
        workspace.write("bad.xml", HAND_MADE.replacen(from, to, 1));
        let run = workspace.run("verify bad.xml --json");
        assert_eq!(run.status, Some(2), "{run:?}");
        assert_eq!(run.object()["problems"][0]["check"], check, "{run:?}");
    }
    let one = HAND_MADE.replace("layer=\"1\"", "layer=\"0\"").replace("nlayers=\"2\"", "nlayers=\"1\"");
    workspace.write("bad.xml", one);
    let run = workspace.run("verify bad.xml");
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(run.stdout.contains("deadlock, file: in layer 0, 3 channels wait for each other in a cycle"), "{run:?}");
    let other = workspace.run("verify routes.xml --topology ring:4 --json");
    assert_eq!((other.status, &other.object()["problems"][0]["check"]), (Some(2), &"ports".into()));
}

#[test]
fn plans_are_made_and_hold() {
    let workspace = Workspace::new();
    for (network, kind, options) in [
        ("torus:4x4", "all-to-all", ""),
        ("dgx-a100:boxes=2,gpus=2", "all-to-all", " --algorithm sssp"),
        ("torus:3x3", "scatter", " --root 3 --algorithm flow --shares 1,2,3,4,5,6,7,8,9"),
    ] {
        let plan = format!("plan {network} --collective {kind}{options} --format routes-xml");
        let made = workspace.json(&format!("{plan} -o routes.xml --json"));
        let file = &made["files"][0];
        assert_eq!((&file["format"], &file["profile"]), (&"routes-xml".into(), &"routes".into()));
        let layers = file["layers"].as_u64().unwrap();
        assert!((1..=4).contains(&layers), "{network}: {layers}");
        let first = workspace.read("routes.xml");
        let verdict = workspace.json(&format!("verify routes.xml --topology {network} --json"));
        assert_eq!((&verdict["ok"], &verdict["collective"]), (&true.into(), &kind.into()), "{verdict}");
        assert_eq!(verdict["algbw"], made["algbw"]);
        let again = workspace.json(&format!("{plan} --profile routes -o routes.xml --json"));
        assert_eq!((&again["cache"], &again["plan"]), (&"hit".into(), &made["plan"]));
        assert_eq!(workspace.read("routes.xml"), first);
        workspace.json(&format!("plan {network} --collective {kind}{options} -o plan.json --json"));
        workspace.json("convert plan.json --to routes -o other.xml --json");
        assert_eq!(workspace.json("verify other.xml --json")["algbw"], made["algbw"]);
    }
    workspace.refused("plan ring:4 --collective allgather --format routes-xml", 3, &["routes need a flow"]);
    workspace.refused("plan ring:4 --collective all-to-all --in-place --format routes-xml", 3, &["out of place"]);
    workspace.refused("plan ring:4 --collective all-to-all --max-layers 2", 2, &["--max-layers is for routes-xml"]);
}

/// The networks of Basu et al. 2024, §8.3: three cables or three nodes of a 3 × 3 × 3 torus are gone.
#[test]
fn punctured_tori_take_few_layers() {
    let workspace = Workspace::new();
    for (faults, ranks, time) in [
        ("", 27, (9, 1)),
        (",down=121-122+011-211+210-220", 27, (162, 17)),
        (",down=021-221+201-211+021-022", 27, (162, 17)),
        (",down=200-201+102-112+111-121", 27, (81, 8)),
        (",nodes-down=100+122+211", 24, (377, 41)),
        (",nodes-down=101+121+002", 24, (119, 13)),
        (",nodes-down=211+220+212", 24, (119, 13)),
    ] {
        let plan = format!("plan torus:3x3x3,bw=1GB/s{faults} --collective all-to-all --format routes-xml --json");
        let made = workspace.json(&format!("{plan} -o routes.xml"));
        assert!(made["files"][0]["layers"].as_u64().unwrap() <= 4, "{made}");
        let verdict = workspace.json("verify routes.xml --json");
        assert_eq!((&verdict["ok"], &verdict["checks"]["deadlock"]), (&true.into(), &true.into()));
        let least = f64::from(ranks) * f64::from(time.1) / f64::from(time.0) * 0.98;
        assert!(made["algbw_GBps"].as_f64().unwrap() >= least, "{made}");
    }
}

#[test]
fn layers_are_limited_or_refused() {
    let workspace = Workspace::new();
    let plan = "plan torus:4x4 --collective all-to-all --format routes-xml -o routes.xml --json";
    let free = workspace.json(plan);
    let needed = free["files"][0]["layers"].as_u64().unwrap();
    assert!(needed > 1, "{free}");
    let run = workspace.run(&format!("{plan} --max-layers 1"));
    let kept = run.object();
    assert_eq!(kept["files"][0]["layers"], 1);
    assert_ne!(kept["plan"], free["plan"]);
    assert!(run.stderr.contains("warning: ROUTES_MOVED: routes: "), "{run:?}");
    let verdict = workspace.json("verify routes.xml --topology torus:4x4 --json");
    assert_eq!(verdict["ok"], true);
    assert_ne!(verdict["algbw"], free["algbw"]);
    let same = workspace.run(&format!("{plan} --max-layers {needed}"));
    assert!(same.object()["files"][0]["layers"] == needed && !same.stderr.contains("ROUTES_MOVED"), "{same:?}");
    let refused = "plan ring:4,dir=uni --collective all-to-all --format routes-xml --max-layers";
    workspace.refused(&format!("{refused} 1"), 3, &["need 2 layers", "allow 2"]);
    workspace.refused(&format!("{refused} 0"), 2, &["--max-layers"]);
}
