//! The page of the documents that lists all commands: made of what the parser knows of them, and compared with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{Arg, Command};

use crate::commands::{command, in_groups};

const HEAD: &str = "\
# Commands

What `canopy COMMAND --help` says of each command: how it is called, what it takes, examples. Options that many commands take
stand here once, and each command names those that it has. Commands of the families `job`, `server` and `tools`, `network cluster`
and `faults resynth` can be called without the family's name, and `topology` is another word for `network`.

";

/// Commands that take an option before it stands in the head of the page.
const MANY: usize = 6;

/// An option or argument in one line.
fn line(arg: &Arg) -> String {
    let mut names: Vec<String> = arg.get_short().map(|short| format!("-{short}")).into_iter().collect();
    names.extend(arg.get_long().map(|long| format!("--{long}")));
    let takes_values = arg.get_action().takes_values();
    let values: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>")).collect();
    let mut shown = if names.is_empty() { values.join(" ") } else { names.join(", ") };
    if takes_values && !names.is_empty() {
        shown = format!("{shown} {}", values.join(" "));
    }
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help: Vec<&str> = help.split_whitespace().collect();
    let mut text = format!("- `{shown}`: {}", help.join(" ").trim_end_matches('.'));
    let possible: Vec<_> = arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect();
    if takes_values && !possible.is_empty() && !arg.is_hide_possible_values_set() {
        let possible: Vec<String> = possible.iter().map(|value| format!("`{}`", value.get_name())).collect();
        text.push_str(&format!(" ({})", possible.join(", ")));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_values && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        text.push_str(&format!(" [default: {}]", defaults.join(" ")));
    }
    if let Some(variable) = arg.get_env() {
        text.push_str(&format!(" [env: {}]", variable.to_string_lossy()));
    }
    text
}

/// The arguments that help lists: those in a place of their own first.
fn listed(command: &Command) -> Vec<&Arg> {
    let shown = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()));
    let (placed, options): (Vec<_>, Vec<_>) = shown.partition(|arg| arg.is_positional());
    placed.into_iter().chain(options).collect()
}

/// Commands whose help lists them, each with those below it.
fn all(path: &str, command: &Command, found: &mut Vec<(String, Command)>) {
    found.push((path.to_owned(), command.clone()));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        all(&format!("{path} {}", sub.get_name()), sub, found);
    }
}

fn section(path: &str, command: &mut Command, common: &BTreeSet<String>, page: &mut String) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string();
    let usage: Vec<&str> = usage.trim_start_matches("Usage:").split_whitespace().collect();
    page.push_str(&format!("\n## {path}\n\n{}: `{}`\n", about.trim_end_matches('.'), usage.join(" ")));
    let below = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    let below: Vec<String> = below.map(|sub| format!("`{}`", sub.get_name())).collect();
    if !below.is_empty() {
        page.push_str(&format!("\nCommands: {}.\n", below.join(", ")));
    }
    let lines: Vec<(String, &Arg)> = listed(command).into_iter().map(|arg| (line(arg), arg)).collect();
    let (shared, own): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(line, _)| common.contains(line));
    if !own.is_empty() {
        page.push('\n');
    }
    own.iter().for_each(|(line, _)| page.push_str(&format!("{line}\n")));
    let names: Vec<String> =
        shared.iter().filter_map(|(_, arg)| arg.get_long()).map(|long| format!("`--{long}`")).collect();
    if !names.is_empty() {
        page.push_str(&format!("\nAlso {}.\n", names.join(", ")));
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        let after = after.to_string();
        let lines: Vec<&str> = after.lines().map(str::trim_end).collect();
        page.push_str(&format!("\n```text\n{}\n```\n", lines.join("\n").trim_end()));
    }
}

/// Compares with `docs/reference/cli.md`; `CANOPY_APPROVE=1` writes it instead.
#[test]
fn the_reference_is_made_of_what_the_commands_take() {
    let mut root = command();
    root.build();
    let mut found = Vec::new();
    for name in in_groups().filter(|name| *name != "help") {
        all(&format!("canopy {name}"), root.find_subcommand(name).unwrap(), &mut found);
    }
    let mut takers: BTreeMap<String, usize> = BTreeMap::new();
    for (_, command) in &found {
        for arg in listed(command).into_iter().filter(|arg| !arg.is_positional()) {
            *takers.entry(line(arg)).or_default() += 1;
        }
    }
    let common: BTreeSet<String> =
        takers.into_iter().filter(|(_, takers)| *takers >= MANY).map(|(line, _)| line).collect();
    let mut page = HEAD.to_owned();
    common.iter().for_each(|line| page.push_str(&format!("{line}\n")));
    section("canopy", &mut root, &common, &mut page);
    for (path, mut command) in found {
        section(&path, &mut command, &common, &mut page);
    }
    let lines = page.lines().count();
    assert!(lines < 2500, "{lines} lines");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    if std::env::var_os("CANOPY_APPROVE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let approved = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(approved == page, "docs/reference/cli.md does not match the commands; rerun with CANOPY_APPROVE=1");
}
