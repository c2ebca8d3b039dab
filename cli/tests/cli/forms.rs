//! The form of an allreduce: what plans say of it, and how another one is asked for.

use serde_json::json;

use crate::support::Workspace;

#[test]
fn plans_say_which_form_they_have_and_why() {
    let workspace = Workspace::new();
    let reply = workspace.json("plan mesh:4x4 --collective allreduce -o plan.json --json");
    let form = json!({"name": "trees", "reason": "faster", "two_phases": "80000000000/3"});
    assert_eq!(reply["form"], form);
    let file = String::from_utf8(workspace.read("plan.json")).unwrap();
    assert!(file.contains(r#""form":{"name":"trees","reason":"faster","two_phases":"80000000000/3"}"#), "{file}");
    assert_eq!(workspace.run("verify plan.json").status, Some(0));
    let plan = reply["plan"].as_str().unwrap();
    assert_eq!(workspace.json(&format!("plans show {plan} --json"))["form"], form);
    let words = "form: reduce and broadcast on the same trees (faster than two phases)";
    assert!(workspace.run(&format!("plans show {plan}")).stdout.contains(words));
    assert!(workspace.run("plan mesh:4x4 --collective allreduce -o plan.json").stderr.contains(words));

    let even = workspace.json("plan torus:4x4 --collective allreduce -o even.json --json");
    assert_eq!(even["form"], json!({"name": "two-phase", "reason": "as-fast"}));
    let other = workspace.json("plan torus:4x4 --collective allgather -o other.json --json");
    assert_eq!(other.get("form"), None);
    let ring = workspace.json("plan torus:4x4 --collective allreduce --algorithm ring -o ring.json --json");
    assert_eq!(ring.get("form"), None);
}

#[test]
fn another_form_can_be_asked_for() {
    let workspace = Workspace::new();
    let plan = |arguments: &str| {
        workspace.json(&format!("plan mesh:4x4 --collective allreduce {arguments} -o plan.json --json"))
    };
    let best = plan("");
    let phases = plan("--form two-phase");
    assert_eq!(phases["form"], json!({"name": "two-phase", "reason": "asked"}));
    assert_ne!((&phases["plan"], &phases["optimality"]), (&best["plan"], &best["optimality"]));
    assert_eq!(phases.get("shares"), None);
    // What is the default anyway is the same plan.
    for same in ["--form auto", "--root-policy centre"] {
        assert_eq!((&plan(same)["plan"], &plan(same)["cache"]), (&best["plan"], &"hit".into()), "{same}");
    }
    let spread = plan("--root-policy spread");
    assert_eq!((&spread["algbw"], &spread["form"]), (&best["algbw"], &best["form"]));
    assert!(best.get("shares").is_some() && spread.get("shares").is_none(), "every rank adds up as much");
    assert_eq!(workspace.run("verify plan.json").status, Some(0));
    let trees = workspace.json("plan torus:4x4 --collective allreduce --form trees -o trees.json --json");
    assert_eq!((&trees["form"]["reason"], &trees["optimality"]), (&"asked".into(), &"1/1".into()));
}

#[test]
fn shares_say_where_trees_add_up_and_cost_nothing() {
    let workspace = Workspace::new();
    let shares = "--shares 1x8,3x8";
    let reply = workspace.json(&format!("plan mesh:4x4 --collective allreduce {shares} -o plan.json --json"));
    assert_eq!((&reply["optimality"], &reply["form"]["name"]), (&"1/1".into(), &"trees".into()));
    assert_eq!(reply["shares"], json!([1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3]));
    assert_eq!(workspace.run("verify plan.json").status, Some(0));
}

#[test]
fn options_of_forms_are_refused_where_they_mean_nothing() {
    let workspace = Workspace::new();
    let refused =
        |arguments: &str, words: &[&str]| workspace.refused(&format!("plan ring:4 {arguments} -o x.json"), 2, words);
    refused("--collective allgather --form trees", &["--form", "leave it out"]);
    refused(
        "--collective allreduce --algorithm direct --root-policy spread",
        &["--root-policy", "direct builds none for allreduce"],
    );
    refused("--collective allreduce --form trees --max-depth 3", &["--form", "set one"]);
    refused("--collective allreduce --form two-phase --root-policy spread", &["--root-policy", "set one"]);
    refused("--collective allreduce --form ring", &["two-phase", "trees"]);
}
