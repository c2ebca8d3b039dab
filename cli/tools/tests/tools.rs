//! The program that has all commands.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_canopy-tools")).args(arguments).output().expect("the program starts")
}

#[test]
fn every_command_is_there() {
    for command in ["plan", "lab", "serve", "doctor", "top"] {
        let output = run(&[command, "--help"]);
        assert!(output.status.success(), "{command}: {output:?}");
    }
    let help = String::from_utf8(run(&["--help"]).stdout).expect("text");
    assert!(!help.contains("In canopy-tools"), "{help}");
}

#[test]
fn an_unknown_command_is_refused_here() {
    let output = run(&["lba"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("lba"), "{output:?}");
}
