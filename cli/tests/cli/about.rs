//! What the command says of itself: version, completions, manual pages, algorithms, grouped help.

use std::process::Command;

use crate::support::Workspace;

#[test]
fn the_version_names_commit_and_profile() {
    let workspace = Workspace::new();
    let said = workspace.text("version");
    assert!(said.starts_with("canopy ") && said.contains("commit ") && said.contains(" build, rustc "), "{said}");
    let json = workspace.json("version --json");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
}

/// In a real bash, as its completion loader runs it.
#[test]
fn bash_completes_commands_options_and_values() {
    let workspace = Workspace::new();
    std::fs::write(workspace.path("canopy.bash"), workspace.text("completions bash")).unwrap();
    let complete = |words: &[&str]| -> Vec<String> {
        let script = r#"
            source canopy.bash
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _canopy canopy "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\n' "${COMPREPLY[@]}""#;
        let output = Command::new("bash")
            .args(["--norc", "-c", script, "bash"])
            .args(words)
            .current_dir(workspace.path(""))
            .output()
            .expect("bash starts");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    for (typed, expected) in [
        (&["canopy", ""][..], &["plan", "verify", "completions", "network"][..]),
        (&["canopy", "server", "pl"], &["plans"]),
        (&["canopy", "network", "s"], &["show", "same"]),
        (&["canopy", "plan", "--coll"], &["--collective"]),
        (&["canopy", "completions", ""], &["bash", "fish", "zsh"]),
    ] {
        let found = complete(typed);
        for word in expected {
            assert!(found.iter().any(|each| each == word), "{typed:?} completes to {found:?}");
        }
    }
}

#[test]
fn every_shell_has_completions() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = workspace.text(&format!("completions {shell}"));
        assert!(script.contains("canopy") && script.contains("resynth"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.path("man1")).unwrap();
    workspace.text("man -o man1");
    for page in [
        "canopy.1",
        "canopy-plan.1",
        "canopy-network-show.1",
        "canopy-network-cluster-put.1",
        "canopy-plan-bundle.1",
        "canopy-faults-report.1",
    ] {
        let text = String::from_utf8(workspace.read(&format!("man1/{page}"))).unwrap();
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{page}");
    }
    assert!(workspace.text("man").contains(".TH canopy 1"));
}

#[test]
fn algorithms_are_a_table() {
    let workspace = Workspace::new();
    let table = workspace.text("algorithms");
    assert!(table.starts_with("ALGORITHM") && table.contains("\nforest "), "{table}");
    let json = workspace.json("algorithms --json");
    assert_eq!(json["algorithms"][0]["name"], "auto");
}

#[test]
fn the_help_lists_every_command_once_under_a_heading() {
    let workspace = Workspace::new();
    let help = workspace.text("--help");
    let listed = |name: &str| help.lines().filter(|line| line.split_whitespace().next() == Some(name)).count();
    for name in ["plan", "bound", "network", "faults", "job", "server", "tools", "completions", "version", "help"] {
        assert_eq!(listed(name), 1, "{name} in\n{help}");
    }
    for heading in ["Plans:", "Families of commands:", "About canopy:"] {
        assert!(help.contains(heading), "{heading} in\n{help}");
    }
}
