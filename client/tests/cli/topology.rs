//! `canopy topology`.

use crate::support::{DISCONNECTED, Desk, UNBALANCED, check_members, sha256};

#[test]
fn what_is_generated_reads_back_as_the_same_network() {
    let desk = Desk::new();
    for expression in ["ring:8", "dgx-a100:boxes=2", "torus:4x4", "hypercube:3"] {
        let shown = desk.json(&format!("topology show {expression} --json"));
        for format in ["yaml", "json"] {
            let file = format!("t.{format}");
            let written = desk.json(&format!("topology generate {expression} -o {file} --json"));
            check_members(&written, &["canopy", "command", "topology", "files"]);
            assert_eq!(written["files"][0]["format"], format, "the name of the file says how");
            assert_eq!(written["files"][0]["sha256"], sha256(&desk.path(&file)));
            assert_eq!(written["topology"], shown["topology"]);
            let read = desk.json(&format!("topology show {file} --json"));
            assert_eq!(read["topology"], shown["topology"], "{expression} as {format}");
        }
    }
}

#[test]
fn conversion_there_and_back_keeps_every_byte() {
    let desk = Desk::new();
    assert_eq!(desk.run("topology generate dgx-h100:boxes=2 -o a.yaml").stdout, "");
    desk.run("topology convert a.yaml --to json -o b.json");
    desk.run("topology convert b.json --to yaml -o c.yaml");
    assert!(desk.read("a.yaml") == desk.read("c.yaml"));
    let printed = desk.run("topology convert b.json --to yaml");
    assert_eq!(printed.stdout.into_bytes(), desk.read("a.yaml"));
}

#[test]
fn show_tells_balance_and_connectivity() {
    let desk = Desk::new();
    let members = [
        "canopy",
        "command",
        "topology",
        "name",
        "kinds",
        "eulerian",
        "unbalanced",
        "connected",
        "unreachable",
        "capacities",
        "capacities_omitted",
    ];
    let ring = desk.json("topology show ring:4 --json");
    check_members(&ring, &members);
    check_members(&ring["topology"], &["hash", "hash_kind", "ranks", "nodes", "links"]);
    assert_eq!((&ring["eulerian"], &ring["connected"]), (&true.into(), &true.into()));
    assert_eq!(ring["topology"]["links"], 8);

    desk.write("unbalanced.yaml", UNBALANCED);
    let funnel = desk.json("topology show unbalanced.yaml --json");
    assert_eq!(funnel["unbalanced"]["node"], "a");
    assert_eq!(funnel["unbalanced"]["in"], "1000000000");
    assert_eq!(funnel["unbalanced"]["out"], "2000000000");
    assert_eq!(funnel["kinds"]["switch"], 1);

    desk.write("disconnected.yaml", DISCONNECTED);
    let split = desk.json("topology show disconnected.yaml --json");
    assert_eq!(split["connected"], false);
    assert_eq!(split["unreachable"]["from"]["rank"], 0);
    assert_eq!(split["unreachable"]["to"]["node"], "c");
    let text = desk.run("topology show disconnected.yaml").stdout;
    assert!(text.contains("rank 0 (a) does not reach rank 2 (c)"), "{text}");
}

#[test]
fn an_existing_file_wins_over_an_expression() {
    let desk = Desk::new();
    desk.write("ring:4", UNBALANCED);
    assert_eq!(desk.json("topology show ring:4 --json")["name"], "funnel");
}

#[test]
fn errors_say_what_was_read_and_where() {
    let desk = Desk::new();
    desk.refused("topology show missing.yaml", 2, &["`missing.yaml` is neither an existing file nor", "ring:8"]);
    desk.refused("topology show some/where", 2, &["neither an existing file nor a generator expression"]);
    desk.refused("topology show nonsense", 2, &["`nonsense`"]);
    desk.refused("topology show ring:1", 2, &["ring:1"]);
    desk.refused("topology generate ring:99999999", 2, &["limit"]);
    desk.refused("topology convert missing.yaml --to json", 2, &["missing.yaml: no such file"]);
    desk.refused("topology generate ring:4 --json", 2, &["--json needs a file", "-o FILE"]);
    desk.write("typo.yaml", UNBALANCED.replace("bandwidth: 2GB/s", "bandwith: 2GB/s"));
    desk.refused("topology show typo.yaml", 2, &["typo.yaml", "bandwith"]);
    desk.write("rate.yaml", UNBALANCED.replacen("bandwidth: 2GB/s", "bandwidth: 2GB", 1));
    desk.refused("topology show rate.yaml", 2, &["links[0].bandwidth"]);
    for (name, content) in
        [("empty", &b""[..]), ("binary", &[0, 159, 146, 150]), ("xml", b"<system/>"), ("json", b"{}")]
    {
        desk.write(name, content);
        desk.refused(&format!("topology show {name}"), 2, &[name]);
        desk.refused(&format!("topology convert {name} --to json -o out.json"), 2, &[name]);
    }
    desk.refused("topology show .", 2, &[]);
    assert!(!desk.path("out.json").exists());
}

#[test]
fn files_over_the_limit_are_refused_before_they_are_read() {
    let desk = Desk::new();
    let huge = std::fs::File::create(desk.path("huge.yaml")).unwrap();
    huge.set_len((64 << 20) + 1).unwrap();
    desk.refused("topology show huge.yaml", 2, &["huge.yaml", "67108864 bytes", "CANOPY_MAX_REQUEST_BYTES"]);
}

#[test]
fn limits_are_those_of_a_server_by_the_same_variables() {
    let desk = Desk::new();
    for (variable, value, words) in [
        ("CANOPY_MAX_NODES", "4", "4"),
        ("CANOPY_MAX_LINKS", "7", "7"),
        ("CANOPY_MAX_NODES", "many", "CANOPY_MAX_NODES"),
    ] {
        let output = desk.command("topology show ring:8").env(variable, value).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{variable}={value}: {text}");
        assert!(text.contains(words), "{variable}={value}: {text}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let desk = Desk::new();
    let mut command = desk.command("topology generate complete:64");
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}
