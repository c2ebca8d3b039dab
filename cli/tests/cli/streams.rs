//! Standard streams: `-` for files, what goes to a terminal, how much is said, and colours.

use std::process::{Command, Stdio};

use canopy_prerequisites::program;

use crate::support::{Run, Workspace};

/// Runs the program with this on its standard input.
fn fed(workspace: &Workspace, arguments: &str, input: &[u8]) -> Run {
    workspace.write("input", input);
    let file = std::fs::File::open(workspace.path("input")).unwrap();
    Run::of(workspace.command(arguments).stdin(Stdio::from(file)).output().unwrap())
}

#[test]
fn a_hyphen_stands_for_a_stream() {
    let workspace = Workspace::new();
    let yaml = workspace.text("topology generate torus:3x3 -o -");
    assert_eq!(yaml, workspace.text("topology generate torus:3x3"));
    let plan = fed(&workspace, "plan - -c allgather -o -", yaml.as_bytes());
    assert_eq!(plan.status, Some(0), "{}", plan.stderr);
    assert!(plan.stderr.contains("written to standard output"), "{}", plan.stderr);
    workspace.text("plan torus:3x3 -c allgather -o plan.json");
    for command in ["verify -", "simulate - --size 1MiB", "explain -", "convert - --to msccl", "draw - -o drawing.svg"]
    {
        let run = fed(&workspace, command, plan.stdout.as_bytes());
        assert_eq!(run.status, Some(0), "{command}: {}", run.stderr);
    }
    assert_eq!(fed(&workspace, "topology show -", yaml.as_bytes()).stdout, {
        workspace.write("torus.yaml", &yaml);
        workspace.text("topology show torus.yaml")
    });
    assert_eq!(workspace.names(), ["drawing.svg", "input", "plan.json", "torus.yaml"], "no file is named `-`");
    workspace.refused("plan ring:4 -c allgather -o - --json", 2, &["standard output is for the JSON object"]);
    workspace.refused("explain ring:4 -c allgather --report -", 2, &["the name of a file"]);
}

#[test]
fn an_archive_passes_through_a_pipe() {
    let (from, to) = (Workspace::new(), Workspace::new());
    let plan = from.json("plan ring:4 -c allgather -o plan.json --json")["plan"].as_str().unwrap().to_owned();
    let exported = from.command("plans export --all -o -").output().unwrap();
    assert_eq!(exported.status.code(), Some(0));
    let imported = fed(&to, "plans import -", &exported.stdout);
    assert_eq!(imported.status, Some(0), "{}", imported.stderr);
    assert_eq!(to.json(&format!("plans show {plan} --json"))["plan"], plan.as_str());
}

/// A terminal gets words, not files for machines, and colours unless it has none.
#[test]
fn a_terminal_is_treated_as_one() {
    let Some(script) = program("script") else { return };
    let workspace = Workspace::new();
    let typed = |arguments: &str, environment: &[(&str, &str)]| {
        let command = workspace.command(arguments);
        let line: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let mut terminal = Command::new(script.clone());
        terminal.args(["-qec", &line.join(" "), "/dev/null"]).current_dir(workspace.path(""));
        terminal.env_remove("NO_COLOR").env("TERM", "xterm").env("CANOPY_DATA_DIR", workspace.path("data"));
        terminal.envs(environment.iter().copied()).stdin(Stdio::null());
        String::from_utf8_lossy(&terminal.output().unwrap().stdout).into_owned()
    };
    let refused = typed("plan ring:4 -c allgather", &[]);
    assert!(refused.contains("standard output is a terminal") && refused.contains("-o -"), "{refused}");
    assert!(refused.contains("\u{1b}["), "errors are in colour: {refused}");
    assert!(!typed("plan ring:4 -c allgather", &[("NO_COLOR", "1")]).contains("\u{1b}[1"));
    assert!(typed("plan ring:4 -c allgather -o -", &[]).contains("\"kind\":\"plan\""));
}

#[test]
fn quiet_leaves_errors_and_verbose_adds_details() {
    let workspace = Workspace::new();
    let plan = "plan ring:4 -c allgather --format msccl-xml -o plan.xml";
    let usual = workspace.run(plan).stderr;
    assert!(usual.contains("proven optimal") && usual.contains("warning: RANK_MAP_ASSUMED"), "{usual}");
    assert!(!usual.contains('\u{1b}'), "no colours outside of terminals: {usual}");
    assert_eq!(workspace.run(&format!("{plan} --quiet")).stderr, "");
    assert_eq!(workspace.run(&format!("-q {plan}")).stderr, "");
    let verbose = workspace.run(&format!("{plan} -v")).stderr;
    for words in [" s  ", "synthesis "] {
        assert!(verbose.contains(words), "`{words}` is missing from\n{verbose}");
    }
    let refused = workspace.run("plan rong:4 -c allgather -q");
    assert!(refused.stderr.starts_with("error: "), "{refused:?}");
    // Which devices the ranks are matters to files of runtimes only.
    assert!(!workspace.run("plan ring:4 -c allgather -o plan.json").stderr.contains("RANK_MAP_ASSUMED"));
    let json = workspace.json("plan ring:4 -c allgather -o plan.json --json");
    assert_eq!(json["warnings"][0]["code"], "RANK_MAP_ASSUMED");
}
