//! This program runs itself with and without the variable that makes skips failures.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

use canopy_prerequisites::{REQUIRE_ALL, compiler_with, program, python_with, samples};

/// Where it is set, the test below looks for a program that no machine has.
const ASKED: &str = "CANOPY_PREREQUISITES_ASKED";
const ABSENT: &str = "canopy-no-such-program";

/// Whether the test that lacks a program passes, and what it says.
fn without_the_program(all_required: Option<&str>) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "an_absent_program_is_none", "--nocapture"]).env(ASKED, "1").env_remove(REQUIRE_ALL);
    if let Some(value) = all_required {
        command.env(REQUIRE_ALL, value);
    }
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.success(), said)
}

#[test]
fn an_absent_program_is_none() {
    if std::env::var_os(ASKED).is_some() {
        assert_eq!(program(ABSENT), None);
        assert_eq!(python_with(ABSENT), None);
        assert!(!compiler_with(ABSENT, "stdio.h"));
    }
}

#[test]
fn a_skip_says_why_and_is_a_failure_where_all_is_required() {
    for value in [None, Some(""), Some("0")] {
        let (passes, said) = without_the_program(value);
        assert!(passes && said.contains(&format!("skipped: there is no {ABSENT} on the search path")), "{said}");
    }
    let (passes, said) = without_the_program(Some("1"));
    assert!(!passes && said.contains(&format!("there is no {ABSENT} on the search path")), "{said}");
    assert!(said.contains("CANOPY_REQUIRE_ALL is set, so this is a failure"), "{said}");
}

#[test]
fn a_program_of_the_system_is_found() {
    let shell = program("sh").unwrap();
    assert!(Command::new(shell).args(["-c", "true"]).status().unwrap().success());
}

/// Samples are there as a whole or not at all: one that is renamed is not skipped.
#[test]
fn a_sample_that_is_missing_among_others_is_a_failure() {
    if samples("").is_some() {
        let found = std::panic::catch_unwind(|| samples("nccl-topo/none.xml"));
        assert!(found.is_err());
    }
}
