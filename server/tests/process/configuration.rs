//! `--print-config`, `check-config`, and which layer of the configuration wins.

use std::fs;
use std::process::Output;

use crate::support::{Process, canopyd};

fn check(file: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("canopyd.toml");
    fs::write(&path, file).unwrap();
    let mut command = canopyd();
    command.arg("--config").arg(&path).args(arguments).arg("check-config").envs(environment.iter().copied());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_printed_configuration_is_accepted_as_it_is() {
    let printed = canopyd().arg("--print-config").output().unwrap();
    assert!(printed.status.success());
    let checked = check(text(&printed.stdout), &[], &[]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

/// If this fails after a change of the settings: `canopyd --print-config > deploy/canopyd.toml`.
#[test]
fn the_sample_among_the_deployment_files_is_the_printed_one() {
    let sample = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/canopyd.toml")).unwrap();
    assert_eq!(text(&canopyd().arg("--print-config").output().unwrap().stdout), text(&sample));
}

#[test]
fn environment_wins_over_the_file_and_flags_over_both() {
    let file = "queue_length = 1\ndrain_timeout = \"1s\"\nmax_nodes = 11\n";
    let environment = [("CANOPY_QUEUE_LENGTH", "2"), ("CANOPY_DRAIN_TIMEOUT", "2s")];
    let checked = check(file, &["--drain-timeout", "3s"], &environment);
    let effective = text(&checked.stdout);
    for line in ["queue_length = 2\n", "drain_timeout = \"3s\"\n", "max_nodes = 11\n", "max_links = 2000000\n"] {
        assert!(effective.contains(line), "{line}: {effective}");
    }
}

#[test]
fn a_bad_configuration_is_refused_before_anything_starts() {
    for (file, words) in [
        ("colour = 1\n", "unknown field `colour`, expected one of `listen`"),
        ("listen = \"0.0.0.0:7423\"\n", "`tls_certificate` and `tls_key`"),
        ("max_deadline = \"1s\"\n", "deadline"),
        ("log = \"a=b=c\"\n", "log filter"),
        ("otlp_endpoint = \"collector:4317\"\n", "https://HOST:PORT"),
        ("otlp_endpoint = \"http://collector:4317\"\notlp_ca = \"ca.pem\"\n", "without TLS"),
        ("otlp_endpoint = \"https://collector:4317\"\notlp_ca = \"/nowhere/ca.pem\"\n", "/nowhere/ca.pem"),
        ("otlp_key = \"key.pem\"\n", "`otlp_endpoint`, which belongs to it"),
    ] {
        let checked = check(file, &[], &[]);
        assert_eq!(checked.status.code(), Some(2), "{file}");
        assert!(text(&checked.stderr).contains(words), "{file}: {}", text(&checked.stderr));
    }
    let missing = canopyd().args(["--config", "/nowhere/canopyd.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("/nowhere/canopyd.toml"), "{}", text(&missing.stderr));
}

#[test]
fn a_server_reads_its_file() {
    let process = Process::start(|command, folder| {
        let path = folder.join("canopyd.toml");
        fs::write(&path, "admin_listen = \"off\"\n").unwrap();
        command.arg("--config").arg(path);
    });
    assert!(process.serving["admin"].is_null());
    process.signal("TERM");
    assert_eq!(process.end().0, Some(0));
}

/// As a start would refuse them; where they are elsewhere, the rest is checked.
#[test]
fn files_that_the_configuration_names_are_checked_too() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("access.toml");
    fs::write(&rules, "[[grant]]\nsubject = 5\n").unwrap();
    let certificate = folder.path().join("server.pem");
    for (file, words) in [
        (format!("access = {rules:?}\n"), "access.toml"),
        (format!("tls_certificate = {certificate:?}\ntls_key = {certificate:?}\n"), "server.pem"),
    ] {
        let checked = check(&file, &[], &[]);
        assert_eq!(checked.status.code(), Some(2), "{file}");
        assert!(text(&checked.stderr).contains(words), "{file}: {}", text(&checked.stderr));
        let path = folder.path().join("canopyd.toml");
        fs::write(&path, &file).unwrap();
        let without = canopyd().arg("--config").arg(path).args(["check-config", "--without-files"]).output().unwrap();
        assert!(without.status.success(), "{}", text(&without.stderr));
    }
}
