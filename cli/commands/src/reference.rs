//! The page of the documents that lists all commands: made of their help texts, and compared with them.

use std::path::Path;

use clap::Command;

use crate::commands::{command, in_groups};

const HEAD: &str = "\
# Commands

The help texts of all commands, as `canopy COMMAND --help` prints them.
";

/// A section for the command and each of its commands.
fn sections(path: &str, command: &mut Command, page: &mut String) {
    section(path, command, page);
    for sub in command.get_subcommands_mut().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        let name = format!("{path} {}", sub.get_name());
        sections(&name, sub, page);
    }
}

fn section(path: &str, command: &mut Command, page: &mut String) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("\n## {path}\n\n```text\n{}\n```\n", lines.join("\n").trim_end()));
}

/// Compares with `docs/reference/cli.md`; `CANOPY_APPROVE=1` writes it instead.
#[test]
fn the_reference_is_made_of_the_help_texts() {
    let mut command = command().term_width(100);
    command.build();
    let mut page = HEAD.to_owned();
    section("canopy", &mut command, &mut page);
    for name in in_groups().filter(|name| *name != "help") {
        sections(&format!("canopy {name}"), command.find_subcommand_mut(name).unwrap(), &mut page);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    if std::env::var_os("CANOPY_APPROVE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let approved = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(approved == page, "docs/reference/cli.md does not match the help texts; rerun with CANOPY_APPROVE=1");
}
