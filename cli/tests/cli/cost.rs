//! `canopy network cost`.

use crate::support::{Workspace, check_members};

/// Three racks in a row, by hand: switches of 3 ports, a terminal cable each, two fibres of 2 m and one of 3 m.
#[test]
fn a_bill_that_can_be_added_up_by_hand() {
    let workspace = Workspace::new();
    let run = workspace.run("topology cost dfc2:1x3");
    assert_eq!(run.status, Some(0), "{run:?}");
    let expected = "\
network    dfc2:1x3,terminals=1
endpoints  3
PART                             METRES  COUNT      EACH     TOTAL
switch, 3 ports, 1 to endpoints              3  10048.95  30146.85
electrical cable, terminal         1.00      3    134.17    402.51
optical cable, between             2.00      2    638.20   1276.40
optical cable, between             3.00      1    644.96    644.96
total      32470.72 USD, 2323.87 of it cables
           10823.57 USD for each endpoint
";
    assert_eq!(run.stdout, expected);
}

#[test]
fn the_object_has_the_shape_of_its_description() {
    let workspace = Workspace::new();
    let object = workspace.json("topology cost dfc2:32x32,terminals=64 torus:10x10x10 --json");
    check_members(&object, &["canopy", "command", "currency", "networks"]);
    let [dfc2, torus] = object["networks"].as_array().unwrap().as_slice() else { panic!("{object}") };
    let members = [
        "network",
        "kind",
        "endpoints",
        "bisection",
        "switches",
        "cables",
        "cables_omitted",
        "switches_total",
        "cables_total",
        "total",
        "per_endpoint",
        "over_cheapest",
    ];
    check_members(dfc2, &members);
    check_members(&dfc2["switches"][0], &["ports", "terminal_ports", "count", "each"]);
    check_members(&dfc2["cables"][0], &["medium", "purpose", "length_m", "count", "each", "total"]);
    // Value F4: 1024 switches with a quarter of the bisection bandwidth have 65 536 endpoints.
    assert_eq!((&dfc2["endpoints"], &dfc2["bisection"]), (&65_536.into(), &"1/4".into()));
    assert_eq!((&dfc2["over_cheapest"], &torus["bisection"]), (&"1.00".into(), &serde_json::Value::Null));
    assert_eq!(torus["cables"].as_array().unwrap().len(), 2);
}

#[test]
fn kinds_are_compared_by_what_an_endpoint_costs() {
    let workspace = Workspace::new();
    let run = workspace.run("topology cost --endpoints 100000");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!((run.status, lines.len()), (Some(0), 9), "{run:?}");
    assert!(lines[1].starts_with("dfc2:37x37,terminals=74") && lines[1].contains(" 1.00 "), "{}", lines[1]);
    // What figure 4.19 prints as 1.43 is 1.60 where all ports are paid for.
    assert!(lines[2].starts_with("dfc2:47x47,terminals=47") && lines[2].contains(" 1.60 "), "{}", lines[2]);
}

#[test]
fn prices_come_from_a_file_where_one_is_given() {
    let workspace = Workspace::new();
    let printed = workspace.run("topology cost --print-parameters").stdout;
    workspace.write("same.toml", &printed);
    let plain = workspace.json("topology cost slim-fly:q=5 --json");
    assert_eq!(workspace.json("topology cost slim-fly:q=5 --parameters same.toml --json"), plain);
    workspace.write("terminals.toml", printed.replace("ports = \"all\"", "ports = \"terminals\""));
    let run = workspace.run("topology cost --endpoints 100000 --parameters terminals.toml");
    assert!(run.stdout.lines().nth(2).unwrap().contains(" 1.44 "), "{}", run.stdout);
    workspace.write("euro.toml", printed.replace("USD", "EUR").replace("base_cents = 880620", "base_cents = 0"));
    let euro = workspace.run("topology cost dfc2:1x3 --parameters euro.toml");
    assert!(euro.stdout.contains(" 1242.75 ") && euro.stdout.contains("EUR for each endpoint"), "{}", euro.stdout);
}

#[test]
fn refusals_name_the_field_and_the_remedy() {
    let workspace = Workspace::new();
    let printed = workspace.run("topology cost --print-parameters").stdout;
    for (name, text, words) in [
        ("negative.toml", printed.replace("11141", "-11141"), "-11141"),
        ("unknown.toml", printed.replace("folded_cm", "folding_cm"), "unknown field `folding_cm`"),
        ("missing.toml", printed.replace("folded_cm = 200", ""), "missing field `folded_cm`"),
        ("huge.toml", printed.replace("11141", "9000000000000"), "electrical.base_cents: 9000000000000 is too large"),
        ("zero.toml", printed.replace("rack_width_cm = 100", "rack_width_cm = 0"), "layout.rack_width_cm"),
        ("bytes.toml", "\u{7f}\u{0}".to_owned(), "cannot be read"),
    ] {
        workspace.write(name, text);
        let words = [name, words, "--print-parameters"];
        workspace.refused(&format!("topology cost dfc2:2x2 --parameters {name}"), 2, &words);
    }
    workspace.write("latin.toml", [0xff, 0xfe]);
    workspace.refused("topology cost dfc2:2x2 --parameters latin.toml", 2, &["no text in UTF-8"]);
    workspace.refused("topology cost dfc2:2x2 --parameters nowhere.toml", 2, &["nowhere.toml: no such file"]);
    workspace.refused("topology cost", 2, &["no network is given", "--endpoints N"]);
    workspace.refused("topology cost ring:8", 2, &["`ring`", "slim-fly:q=19"]);
    workspace.refused("topology cost dfc2:1000000x1000000", 2, &["switches are too many"]);
    workspace.refused("topology cost --endpoints 0", 2, &["--endpoints", "at least 1"]);
    workspace.refused("topology cost --endpoints 99999999999", 2, &["--endpoints", "at most 100000000"]);
}
