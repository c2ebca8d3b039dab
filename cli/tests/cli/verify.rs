//! `canopy verify`: what is right passes, and every kind of damage has status 2.

use std::collections::BTreeSet;

use crate::support::{Numbers, Workspace, check_members};

const MEMBERS: [&str; 12] = [
    "canopy",
    "command",
    "ok",
    "collective",
    "format",
    "profile",
    "ranks",
    "checks",
    "algbw",
    "optimality",
    "problems",
    "warnings",
];

/// Verifies a file that must not pass, and gives the names of the checks that object.
#[track_caller]
fn objections(workspace: &Workspace, arguments: &str) -> Vec<String> {
    let run = workspace.run(&format!("verify {arguments} --json"));
    assert_eq!(run.status, Some(2), "{arguments}\n{run:?}");
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    let verdict = run.object();
    check_members(&verdict, &MEMBERS);
    assert_eq!(verdict["ok"], false);
    let problems = verdict["problems"].as_array().unwrap();
    assert!(!problems.is_empty());
    for problem in problems {
        check_members(problem, &["check", "message", "where"]);
        let check = problem["check"].as_str().unwrap();
        assert_eq!(verdict["checks"][check], false, "the check that objects is reported as failed: {verdict}");
    }
    problems.iter().map(|problem| problem["check"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn garbage_is_reported_not_crashed_on() {
    let workspace = Workspace::new();
    for (name, content) in [
        ("empty", &b""[..]),
        ("spaces", b"  \n "),
        ("text", b"hello"),
        ("binary", &[0xff, 0xfe, 0, 1]),
        ("half.json", br#"{"canopy":1,"#),
        ("other.json", br#"{"canopy":1,"nodes":[]}"#),
        ("deep.json", &[b'{'; 4096]),
        ("half.xml", b"<algo name="),
        ("other.xml", b"<system><cpu/></system>"),
        ("bytes.xml", b"<algo \xff\xff>"),
    ] {
        workspace.write(name, content);
        assert_eq!(objections(&workspace, name), ["file"], "{name}");
    }
    workspace.refused("verify missing.json --json", 2, &["missing.json: no such file"]);
    workspace.refused("verify . --json", 2, &[]);
}

#[test]
fn expectations_that_are_not_met_are_problems() {
    let workspace = Workspace::new();
    workspace.json("plan ring:4 --collective allgather -o plan.json --json");
    let verdict = workspace.json("verify plan.json --json");
    check_members(&verdict, &MEMBERS);
    assert_eq!((&verdict["format"], &verdict["profile"]), (&"json".into(), &serde_json::Value::Null));
    assert_eq!(objections(&workspace, "plan.json --collective allreduce"), ["collective"]);
    assert_eq!(objections(&workspace, "plan.json --root 0"), ["collective"]);
    assert_eq!(objections(&workspace, "plan.json --topology ring:4,bw=1GB/s"), ["topology"]);
    assert_eq!(workspace.run("verify plan.json --topology ring:4").status, Some(0));
    workspace.refused("verify plan.json --profile msccl", 2, &["--profile"]);
    workspace.refused("verify plan.json --topology missing.yaml", 2, &["missing.yaml"]);
}

/// Nothing a file says of itself is believed: a better rate in any place is noticed.
#[test]
fn a_plan_that_states_more_than_it_does_is_found_out() {
    let workspace = Workspace::new();
    workspace.json("plan ring:4 --collective allgather -o plan.json --json");
    let text = String::from_utf8(workspace.read("plan.json")).unwrap();
    let rate = "200000000000/3";
    assert!(text.contains(rate), "{text}");
    for (nth, _) in text.match_indices(rate).enumerate() {
        let (before, after) = split_at_match(&text, rate, nth);
        workspace.write("boast.json", format!("{before}200000000001/3{after}"));
        objections(&workspace, "boast.json");
    }
    workspace.write("cut.json", &text[..text.len() / 2]);
    assert_eq!(objections(&workspace, "cut.json"), ["file"]);
}

/// The certificate proves the upper bound only; what is called reachable must be so too.
#[test]
fn a_plan_that_calls_too_much_reachable_is_found_out() {
    let workspace = Workspace::new();
    workspace.json("plan torus:4x4,down=00>01 --collective allreduce -o loose.json --json");
    workspace.json("verify loose.json --json");
    let text = String::from_utf8(workspace.read("loose.json")).unwrap();
    let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
    let bound = &plan["bound"];
    assert_eq!(bound["tight"], false, "the network is one where the bound is not known to be reachable: {bound}");
    let (lower, upper) = (bound["lower"].as_str().unwrap(), bound["upper"].as_str().unwrap());
    let (before, rest) = text.split_once("\"bound\":{").unwrap();
    let (_, after) = rest.split_once('}').unwrap();
    let state = |bound: &str| workspace.write("boast.json", format!("{before}\"bound\":{{{bound}}}{after}"));
    state(&format!("\"algbw\":\"{upper}\",\"tight\":true"));
    assert_eq!(objections(&workspace, "boast.json"), ["certificate"]);
    let (whole, divisor) = upper.split_once('/').unwrap_or((upper, "1"));
    let almost = whole.parse::<u128>().unwrap() - 1;
    state(&format!("\"algbw\":\"{upper}\",\"tight\":false,\"lower\":\"{almost}/{divisor}\",\"upper\":\"{upper}\""));
    assert_eq!(objections(&workspace, "boast.json"), ["certificate"]);
    state(&format!("\"algbw\":\"{upper}\",\"tight\":false,\"lower\":\"{lower}\",\"upper\":\"{upper}\""));
    workspace.json("verify boast.json --json");
    // Reachable by theory, though the schedule does not get there.
    workspace.json("plan mesh:3x4 --collective allreduce -o tight.json --json");
    assert_eq!(workspace.json("verify tight.json --json")["ok"], true);
}

fn split_at_match<'a>(text: &'a str, pattern: &str, nth: usize) -> (&'a str, &'a str) {
    let (start, _) = text.match_indices(pattern).nth(nth).unwrap();
    (&text[..start], &text[start + pattern.len()..])
}

/// A runtime passes over what it does not know, and so does the verdict, which names all of it.
#[test]
fn what_runtimes_pass_over_is_warned_about_and_no_failure() {
    let workspace = Workspace::new();
    workspace.json("plan ring:4 --collective allgather --format msccl-xml -o plan.xml --json");
    let text = String::from_utf8(workspace.read("plan.xml")).unwrap();
    let odd = text
        .replacen("<algo ", "<algo redop=\"nop\" nthreadblocks=\"2\" ", 1)
        .replace("<gpu ", "<gpu maxcount=\"1\" ")
        .replacen("    <tb", "    <copy i_off=\"0\" o_off=\"0\"/>\n    <tb", 1);
    workspace.write("odd.xml", odd);
    let verdict = workspace.json("verify odd.xml --json");
    assert_eq!(verdict["ok"], true);
    let warnings: Vec<&str> =
        verdict["warnings"].as_array().unwrap().iter().map(|warning| warning["message"].as_str().unwrap()).collect();
    for words in [
        "1 attribute `redop` of <algo>, the first in line 1",
        "1 attribute `nthreadblocks` of <algo>",
        "4 attribute `maxcount` of <gpu>",
        "1 <copy> in <gpu>",
    ] {
        assert!(warnings.iter().any(|warning| warning.starts_with(words)), "{words}: {warnings:#?}");
    }
}

#[test]
fn a_damaged_msccl_file_is_found_out() {
    let workspace = Workspace::new();
    workspace.json("plan ring:4 --collective allgather --format msccl-xml -o plan.xml --json");
    let text = String::from_utf8(workspace.read("plan.xml")).unwrap();
    let verdict = workspace.json("verify plan.xml --json");
    check_members(&verdict, &MEMBERS);
    assert_eq!((&verdict["format"], &verdict["profile"]), (&"msccl-xml".into(), &"msccl".into()));
    assert_eq!(verdict["checks"]["emulation"], true);

    assert_eq!(objections(&workspace, "plan.xml --collective allreduce"), ["collective"]);
    assert_eq!(objections(&workspace, "plan.xml --topology ring:5"), ["ranks"]);
    let step = text.lines().find(|line| line.contains("<step ")).unwrap();
    for (what, damaged) in [
        ("a step is missing", text.replacen(step, "", 1)),
        ("a step is there twice", text.replacen(step, &format!("{step}\n{step}"), 1)),
        ("a rank too many", text.replacen("ngpus=\"4\"", "ngpus=\"5\"", 1)),
        ("it claims another collective", text.replacen("coll=\"allgather\"", "coll=\"allreduce\"", 1)),
        ("the end is missing", text[..text.len() - 10].to_owned()),
    ] {
        assert!(damaged != text, "{what}");
        workspace.write("damaged.xml", damaged);
        assert!(!objections(&workspace, "damaged.xml").is_empty(), "{what}");
    }
}

/// Whatever `plan` writes passes `verify`, at rates of any size, also where another plan than the first one is taken.
#[test]
fn what_is_planned_at_rates_of_any_size_is_verified() {
    let workspace = Workspace::new();
    let mut random = Numbers(7);
    let cases: u32 = std::env::var("CANOPY_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(5).min(1_000);
    for bits in [30, 45, 52, 58, 60].into_iter().cycle().take(cases as usize) {
        let ranks = 3 + random.below(5);
        let unit = 1_u64 << (bits - 30);
        let mut links = BTreeSet::new();
        for from in 0..ranks {
            links.insert((from, (from + 1) % ranks));
            let to = random.below(ranks);
            if to != from && !links.contains(&(to, from)) {
                links.insert((from, to));
            }
        }
        let mut text = "canopy: 1\nnodes:\n".to_owned();
        (0..ranks).for_each(|rank| text.push_str(&format!("- {{id: n{rank}}}\n")));
        text.push_str("links:\n");
        for (from, to) in links {
            let rate = (1 + random.below((1 << 30) - 1)) * unit + random.below(unit.min(1 << 30));
            text.push_str(&format!("- {{from: n{from}, to: n{to}, bandwidth: {rate}B/s, both: true}}\n"));
        }
        workspace.write("network.yaml", &text);
        for collective in ["allreduce", "allgather", "reduce-scatter", "all-to-all"] {
            workspace.text(&format!("plan network.yaml -c {collective} -o plan.json"));
            let run = workspace.run("verify plan.json");
            assert_eq!(run.status, Some(0), "{collective}: {run:?}\n{text}");
        }
    }
}
