//! `--collective all-to-all-v --blocks FILE` from end to end: blocks of different sizes planned, cached, verified and refused.

use serde_json::json;

use crate::support::Workspace;

/// What ranks of a ring of four have for each other: rows are sources.
const ROWS: &str = "0,3,0,1\n2,0,5,0\n0,0,9,4\n1,1,1,1\n";

fn planned(workspace: &Workspace, topology: &str, blocks: &str, rest: &str) -> serde_json::Value {
    workspace.json(&format!("plan {topology} --collective all-to-all-v --blocks {blocks} {rest} -o plan.json --json"))
}

/// A file's path, as an argument.
fn file(workspace: &Workspace, name: &str, content: &str) -> String {
    workspace.write(name, content);
    workspace.path(name).display().to_string()
}

#[test]
fn blocks_are_planned_verified_and_kept() {
    let workspace = Workspace::new();
    let rows = file(&workspace, "rows.csv", ROWS);
    let plan = planned(&workspace, "ring:4", &rows, "");
    assert_eq!(
        (&plan["collective"], &plan["algorithm"], &plan["cache"]),
        (&json!("all-to-all"), &json!("flow"), &json!("miss"))
    );
    assert_eq!(plan["optimality"], "1/1");
    assert_eq!(plan["shares"], json!([0, 3, 0, 1, 2, 0, 5, 0, 0, 0, 9, 4, 1, 1, 1, 1]));
    let bound = workspace.json(&format!("bound ring:4 --collective all-to-all-v --blocks {rows} --json"));
    assert_eq!(bound["bound"]["algbw"], plan["bound"]);
    assert_eq!((&bound["certificate"]["kind"], &bound["certificate"]["checked"]), (&json!("lp-dual"), &json!(true)));
    assert!(bound.get("plain_bounds").is_none(), "those are of equal blocks");
    let words = workspace.run(&format!("bound ring:4 --collective all-to-all-v --blocks {rows}")).stdout;
    assert!(words.contains("of different sizes: 28 units in all, at most 9 of one block, 6 blocks empty"), "{words}");

    let verdict = workspace.json("verify plan.json --collective all-to-all-v --json");
    assert_eq!(
        (&verdict["ok"], &verdict["algbw"], &verdict["optimality"]),
        (&json!(true), &plan["algbw"], &json!("1/1"))
    );
    let text = String::from_utf8(workspace.read("plan.json")).unwrap();
    assert!(
        text.starts_with(r#"{"canopy":4,"#) && text.contains(r#""shares":[[0,3,0,1],[2,0,5,0],[0,0,9,4],[1,1,1,1]]"#)
    );
    let simulated = workspace.json("simulate plan.json --size 1GiB --json");
    // 1 GiB is the mean of what ranks have; nothing is faster than the bound.
    let simulated = &simulated["sizes"][0]["algbw_GBps"];
    let (rate, limit) = (simulated.as_f64().unwrap(), plan["algbw_GBps"].as_f64().unwrap());
    assert!(rate <= limit && rate > 0.95 * limit, "{rate} of {limit}");
    assert!(workspace.run("explain plan.json").stdout.contains("blocks, each times its weight"));
    assert_eq!(workspace.run("draw plan.json -o plan.svg").status, Some(0));

    // The same again, in the same proportions as JSON; and others, which are no hit.
    let again = file(&workspace, "again.json", "[[0,6,0,2],[4,0,10,0],[0,0,18,8],[2,2,2,2]]");
    let hit = planned(&workspace, "ring:4", &again, "");
    assert_eq!((&hit["cache"], &hit["plan"]), (&json!("hit"), &plan["plan"]));
    let turned = file(&workspace, "turned.csv", "1,1,1,1\n0,0,3,0\n0,2,0,5\n4,0,0,9\n");
    let other = planned(&workspace, "ring:4", &turned, "");
    assert_eq!(other["cache"], "miss");
    assert_ne!(other["plan"], plan["plan"]);
    assert_eq!(workspace.json("verify plan.json --json")["ok"], true);
    assert_eq!(
        workspace.json(&format!("bound ring:4 --collective all-to-all-v --blocks {turned} --json"))["bound"]["algbw"],
        other["bound"]
    );
}

/// Equal blocks are the plain all-to-all, to the byte.
#[test]
fn equal_blocks_are_an_all_to_all() {
    let workspace = Workspace::new();
    let rows = file(&workspace, "rows.csv", &"7 7 7 7\n".repeat(4));
    let plain = workspace.json("plan ring:4 --collective all-to-all -o plain.json --json");
    let plan = planned(&workspace, "ring:4", &rows, "");
    assert_eq!((&plan["plan"], &plan["cache"]), (&plain["plan"], &json!("hit")));
    assert!(plan.get("shares").is_none());
    assert_eq!(workspace.read("plan.json"), workspace.read("plain.json"));
}

#[test]
fn routings_and_steps_take_blocks() {
    let workspace = Workspace::new();
    let rows = file(&workspace, "rows.csv", ROWS);
    for algorithm in ["direct", "ring", "sssp", "ewsp", "dor", "pmcf", "pmcf-shortest", "tsmcf", "pairwise"] {
        let plan = planned(&workspace, "ring:4", &rows, &format!("--algorithm {algorithm}"));
        assert_eq!(plan["algorithm"], algorithm);
        let verdict = workspace.json("verify plan.json --json");
        assert_eq!((&verdict["ok"], &verdict["algbw"]), (&json!(true), &plan["algbw"]), "{algorithm}: {verdict}");
    }
    for algorithm in ["ilp-disjoint", "ilp-shortest"] {
        let plan = format!("plan ring:4 --collective all-to-all-v --blocks {rows} --algorithm {algorithm}");
        workspace.refused(&plan, 2, &["all-to-all of equal blocks only", "pmcf"]);
    }
    for algorithm in ["forest", "bfb", "recursive-doubling", "expansion"] {
        let plan = format!("plan ring:4 --collective all-to-all-v --blocks {rows} --algorithm {algorithm}");
        workspace.refused(&plan, 2, &["does not plan all-to-all"]);
    }
}

/// Ranks of a group are numbered anew, and rows and columns are in these numbers.
#[test]
fn blocks_are_those_of_a_group() {
    let workspace = Workspace::new();
    let rows = file(&workspace, "rows.csv", "0 1\n3 0\n");
    let plan = planned(&workspace, "ring:4", &rows, "--ranks 1,2");
    // Three of four units over one link of 25 GB/s, in which a rank has two on average.
    assert_eq!(plan["bound"], "50000000000/3");
    assert_eq!(plan["optimality"], "1/1");
}

/// Formats of runtimes presume blocks of one size, and json does not.
#[test]
fn files_of_runtimes_are_refused() {
    let workspace = Workspace::new();
    let rows = file(&workspace, "rows.csv", ROWS);
    for format in ["msccl-xml", "mscclpp-json", "oneccl-xml", "routes-xml"] {
        let plan = format!("plan ring:4 --collective all-to-all-v --blocks {rows} --format {format} -o plan.xml");
        workspace.refused(&plan, 3, &["json"]);
    }
}

#[test]
fn what_is_no_matrix_of_the_ranks_is_refused() {
    let workspace = Workspace::new();
    let huge = "1\n".repeat(1_000_000);
    let (nothing, too_much) = ("0 0 0 0\n".repeat(4), "0 18446744073709551615 0 0\n".repeat(4));
    for (content, words) in [
        ("0 1 2\n3 0\n", "row 1 has 2 columns"),
        ("0 1\n-3 0\n", "row 1, column 0: `-3`"),
        ("0 nan\n1 0\n", "row 0, column 1: `nan`"),
        ("[[0,1],[0.5,0]]", "row 1, column 0: `0.5`"),
        ("0 99999999999999999999\n1 0\n", "row 0, column 1"),
        ("", "no weights"),
        (huge.as_str(), "more than 2048 rows"),
        ("0 1\n1 0\n", "give 16, a row of 4 for each rank"),
        (nothing.as_str(), "all blocks between different ranks have weight 0"),
        (too_much.as_str(), "scale the weights down"),
    ] {
        let rows = file(&workspace, "rows", content);
        for command in ["plan", "bound"] {
            workspace.refused(&format!("{command} ring:4 --collective all-to-all-v --blocks {rows}"), 2, &[words]);
        }
    }
    let rows = file(&workspace, "rows", ROWS);
    let bound = |rest: &str, words: &[&str]| drop(workspace.refused(&format!("bound ring:4 {rest}"), 2, words));
    bound("--collective all-to-all-v", &["a size for each block"]);
    bound(&format!("--collective all-to-all --blocks {rows}"), &["works for all-to-all-v only"]);
    bound(&format!("--collective allgather --blocks {rows}"), &["works for all-to-all-v only"]);
    bound(&format!("--collective all-to-all-v --blocks {rows} --shares 1x4"), &["--shares"]);
    bound("--collective all-to-all-v --blocks nowhere", &["nowhere", "cannot be read"]);
    bound("--collective all-to-all --shares 1x4", &["found 4 weights of blocks for 4 ranks"]);
    workspace.refused("explain ring:4 --collective all-to-all-v", 2, &["--blocks FILE"]);
    // Rank 1 of this line cannot be left; that matters only where it has something for others.
    let line = "mesh:1x2,down=01>00";
    let rows = file(&workspace, "rows", "0 1\n0 0\n");
    assert_eq!(planned(&workspace, line, &rows, "")["optimality"], "1/1");
    let rows = file(&workspace, "rows", "0 1\n1 0\n");
    workspace.refused(
        &format!("plan {line} --collective all-to-all-v --blocks {rows}"),
        3,
        &["add links that connect them"],
    );
}
