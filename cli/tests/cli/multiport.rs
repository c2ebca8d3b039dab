//! Networks of families that have collectives of their own, given as plain files: link by link, under names that say nothing.

use serde_json::Value;

use crate::support::Workspace;

/// Writes the links of an expression's network under other names and in another order, without ranks.
fn write_plain(workspace: &Workspace, expression: &str, file: &str) {
    assert_eq!(workspace.run(&format!("topology generate {expression} -o stated.yaml")).status, Some(0));
    let stated = String::from_utf8(workspace.read("stated.yaml")).unwrap();
    let ids: Vec<&str> =
        stated.lines().filter_map(|line| line.strip_prefix("  - {id: \"")?.split('"').next()).collect();
    // A number that has no divisor in common with the number of ranks.
    let name = |id: &str| {
        let place = ids.iter().position(|other| *other == id).unwrap();
        format!("host{:02}", (place * 7 + 3) % ids.len())
    };
    let mut plain = vec!["canopy: 1".to_owned(), "nodes:".to_owned()];
    let mut names: Vec<String> = ids.iter().map(|id| name(id)).collect();
    names.sort();
    plain.extend(names.iter().map(|name| format!("  - {{id: {name}}}")));
    plain.push("links:".to_owned());
    for line in stated.lines().rev().filter_map(|line| line.strip_prefix("  - {from: \"")) {
        let parts: Vec<&str> = line.split('"').collect();
        let [from, _, to, rest] = parts[..] else { panic!("two names in {line}") };
        plain.push(format!("  - {{from: {}, to: {}{rest}", name(from), name(to)));
    }
    workspace.write(file, plain.join("\n") + "\n");
}

/// What is said of the plan for a network, and its simulated times with barriers and without.
#[track_caller]
fn planned(workspace: &Workspace, network: &str, collective: &str, algorithm: &str) -> Value {
    let plan = format!("plan {network} --collective {collective} --algorithm {algorithm} -o plan.json --json");
    let plan = workspace.json(&plan);
    assert_eq!(workspace.json("verify plan.json --json")["ok"], true, "{collective} by {algorithm}");
    // Whole bytes of 20 or 30 shares in 2, 9 or 11 chunks.
    let time = |sync: &str| {
        let run = workspace.json(&format!("simulate plan.json --size 16632000 --sync {sync} --json"));
        run["sizes"][0]["time_ps"].clone()
    };
    let members = ["algorithm", "algbw", "bound", "optimality", "steps", "chunks", "steps_cost"];
    let mut said: Vec<Value> = members.iter().map(|&name| plan.get(name).cloned().unwrap_or_default()).collect();
    said.extend([time("steps"), time("deps")]);
    said.into()
}

#[test]
fn plain_files_cost_what_the_expression_does() {
    let workspace = Workspace::new();
    for (expression, asked) in [
        ("kautz:d=4,n=2", [("allgather", "kautz"), ("all-to-all", "kautz-m"), ("allreduce", "auto")]),
        ("dfc2:5x6", [("all-to-all", "dfc2"), ("allreduce", "dfc2-do"), ("allgather", "auto")]),
    ] {
        write_plain(&workspace, expression, "plain.yaml");
        for (collective, algorithm) in asked {
            let of_family = planned(&workspace, expression, collective, algorithm);
            let of_file = planned(&workspace, "plain.yaml", collective, algorithm);
            assert_eq!(of_file, of_family, "{collective} by {algorithm} on {expression}");
        }
    }
}
