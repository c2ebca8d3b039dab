//! Runs what a newcomer types: every `console` block of the README and of "Getting started", in order, a shell for each
//! page, and compares what comes out.
//!
//! `$ ` starts a command, `> ` continues it; the lines that follow are its output. A line `…` stands for any lines, `…`
//! inside a line for any text, and durations are not compared. A block that no test can run is marked `sh` and says in
//! a comment on its first line where it runs. `CANOPY_APPROVE=1` writes the output that came.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use canopy_tests::{binary, workspace};
use regex::Regex;

use crate::page::{Block, Page};

/// What separates the output of one command from that of the next.
const MARK: &str = "\u{1}";

/// A command of a block and the lines that should follow it.
struct Step {
    command: String,
    expected: Vec<String>,
}

fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.content.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), expected: Vec::new() });
            continue;
        }
        let step =
            steps.last_mut().unwrap_or_else(|| panic!("a block starts with `{line}`, not with `$ ` and a command"));
        match line.strip_prefix("> ") {
            Some(more) if step.expected.is_empty() => step.command = format!("{}\n{more}", step.command),
            _ => step.expected.push(line.to_owned()),
        }
    }
    steps
}

/// Runs all steps in one shell and returns the lines that each printed.
fn outputs(steps: &[&Step]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path().join("home");
    let work = folder.path().join("work");
    for path in [&home, &work] {
        fs::create_dir(path).expect("a folder");
    }
    for name in ["examples", "deploy"] {
        symlink(workspace().join(name), work.join(name)).expect("a link");
    }
    let programs = binary("canopy").parent().expect("a program lies in a folder").to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut script = String::from("trap 'kill $(jobs -p) 2>/dev/null' EXIT\n");
    for step in steps {
        script.push_str(&format!("printf '{MARK}\\n'\n{}\n", step.command));
    }
    fs::write(folder.path().join("script"), script).expect("a script");
    let output = Command::new("bash")
        .arg("-c")
        .arg(". ../script 2>&1")
        .current_dir(&work)
        .env_clear()
        .envs([("PATH", path.as_str()), ("LC_ALL", "C.UTF-8"), ("TERM", "dumb")])
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .expect("bash starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.split(&format!("{MARK}\n")).skip(1).map(|part| part.lines().map(str::to_owned).collect()).collect()
}

static DURATIONS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b\d+(\.\d+)? ?(ms|s|min)\b").expect("a pattern"));
static DATES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?").expect("a pattern"));

/// The line with its durations and dates replaced, which differ from run to run.
fn masked(line: &str) -> String {
    DATES.replace_all(&DURATIONS.replace_all(line, "TIME"), "DATE").trim_end().to_owned()
}

fn line_matches(expected: &str, found: &str) -> bool {
    let parts: Vec<String> = masked(expected).split('…').map(regex::escape).collect();
    let pattern = Regex::new(&format!("^{}$", parts.join(".*"))).expect("an escaped pattern");
    pattern.is_match(&masked(found))
}

/// Whether the lines are what was expected. Cost: expected times found lines.
fn matches(expected: &[String], found: &[String]) -> bool {
    // reach[j]: the expected lines so far match the first j found ones.
    let mut reach = vec![false; found.len() + 1];
    reach[0] = true;
    for line in expected {
        let mut next = vec![false; found.len() + 1];
        for j in 0..=found.len() {
            next[j] = if line.trim() == "…" {
                reach[j] || (j > 0 && next[j - 1])
            } else {
                j > 0 && reach[j - 1] && line_matches(line, &found[j - 1])
            };
        }
        reach = next;
    }
    reach[found.len()]
}

/// Runs a page; with `CANOPY_APPROVE`, writes into it what came instead of comparing.
fn check(name: &str) {
    // Pages start servers on the port that people use.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);

    let page = Page::read(&workspace().join(name));
    let blocks: Vec<(Block, Vec<Step>)> = page
        .blocks()
        .into_iter()
        .filter(|block| block.language == "console")
        .map(|block| {
            let steps = steps(&block);
            (block, steps)
        })
        .collect();
    assert!(!blocks.is_empty(), "{name} has no commands");
    let all: Vec<&Step> = blocks.iter().flat_map(|(_, steps)| steps).collect();
    let found = outputs(&all);
    assert_eq!(found.len(), all.len(), "{name}: the shell ended before its last command: {:?}", found.last());

    let mut text = page.text.clone();
    let mut wrong = Vec::new();
    let mut after = all.len();
    for (block, steps) in blocks.iter().rev() {
        after -= steps.len();
        let mut content = String::new();
        for (step, found) in steps.iter().zip(&found[after..]) {
            let right = matches(&step.expected, found);
            let lines = if right { &step.expected } else { found };
            content.push_str(&format!("$ {}\n", step.command.replace('\n', "\n> ")));
            content.extend(lines.iter().flat_map(|line| [line.as_str(), "\n"]));
            if !right {
                wrong.push(format!("$ {}\n{}", step.command, found.join("\n")));
            }
        }
        text.replace_range(block.range.clone(), &content);
    }
    if std::env::var_os("CANOPY_APPROVE").is_some() {
        fs::write(&page.path, text).expect("the page is written");
        return;
    }
    wrong.reverse();
    assert!(
        wrong.is_empty(),
        "{name} says otherwise; if intended, rerun with CANOPY_APPROVE=1\n{}",
        wrong.join("\n\n")
    );
}

#[test]
fn the_readme_does_what_it_says() {
    check("README.md");
}

#[test]
fn the_first_plan_is_made_as_described() {
    check("docs/getting-started/first-plan.md");
}

#[test]
fn what_stock_nccl_leaves_is_found_as_described() {
    check("docs/getting-started/stock-nccl.md");
}

#[test]
fn a_dump_becomes_a_plan_as_described() {
    check("docs/getting-started/nccl-dump.md");
}

#[test]
fn a_slurm_job_gets_its_plan_as_described() {
    check("docs/getting-started/slurm.md");
}

#[test]
fn a_dead_nic_is_planned_around_as_described() {
    check("docs/getting-started/nic-dies.md");
}

#[test]
fn the_files_of_a_cluster_become_a_plan_as_described() {
    check("docs/getting-started/cluster.md");
}

#[test]
fn a_server_is_secured_backed_up_and_restored_as_described() {
    if canopy_prerequisites::program("openssl").is_some() {
        check("docs/getting-started/secure-server.md");
    }
}

/// Commands that no test can run say where they run; those of cargo are run by `.ci/run`.
#[test]
fn blocks_that_are_not_run_say_where_they_run() {
    let continuous = fs::read_to_string(workspace().join(".ci/run")).expect(".ci/run");
    let mut pages = crate::page::pages_under("docs/getting-started");
    pages.push(Page::read(&workspace().join("README.md")));
    for page in pages {
        for block in page.blocks().iter().filter(|block| block.language == "sh") {
            for line in block.content.lines().filter(|line| line.starts_with("cargo ")) {
                let command = line.trim_start_matches("cargo ").split("  ").next().unwrap_or_default();
                let words: Vec<&str> = command.split(' ').take(1).collect();
                let run =
                    continuous.lines().any(|line| words.iter().all(|word| line.contains(&format!("cargo {word}"))));
                assert!(run, "{}: `{line}` is not run by .ci/run", page.name());
            }
            let first = block.content.lines().next().unwrap_or_default();
            assert!(first.starts_with("# ") || first.starts_with("cargo "), "{}: `{first}`", page.name());
        }
    }
}

#[test]
fn output_is_compared_as_described() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    assert!(matches(&lines("a\n…\nc"), &lines("a\nb\nb\nc")));
    assert!(matches(&lines("a\n…"), &lines("a")));
    assert!(!matches(&lines("a\n…\nc"), &lines("a\nb")));
    assert!(matches(&lines("plans/12… in 3 ms"), &lines("plans/1234 in 41.2 ms")));
    assert!(!matches(&lines("450 GB/s"), &lines("450 MB/s")));
}
