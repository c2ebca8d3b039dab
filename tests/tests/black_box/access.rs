//! Tokens, as an administrator makes them and a caller shows them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use canopy_tests::{Bench, Daemon, Run};

#[test]
fn tokens_let_in_until_they_are_revoked() {
    let bench = Bench::default();
    fs::write(bench.file("access.toml"), "").unwrap();
    for (name, role) in [("ann", "planner"), ("bob", "viewer")] {
        let file = format!("{name}.token");
        let made = bench.canopy(&["tokens", "create", name, "--role", role, "-o", &file, "--json"]).exits(0).json();
        assert_eq!((made["name"].as_str(), made["state"].as_str()), (Some(name), Some("valid")));
        assert_eq!(fs::metadata(bench.file(&file)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let listed = bench.canopy(&["tokens", "list"]).exits(0).stdout;
    let secrets = ["ann", "bob"].map(|name| fs::read_to_string(bench.file(&format!("{name}.token"))).unwrap());
    assert!(listed.contains("ann") && secrets.iter().all(|secret| !listed.contains(secret.trim())));
    let mut daemon = Daemon::start(&bench, &["--access", "access.toml"]);
    let plan = |token: &str| {
        let server = ["--server", daemon.address(), "--token-file", token];
        bench.canopy(&[&["plan", "ring:4", "-c", "allgather", "-o", "plan.json"], &server[..]].concat())
    };
    plan("ann.token").exits(0);
    let refused = plan("bob.token").exits(2);
    assert!(refused.stderr.contains("bob may not call canopy.v1.Planner/StreamPlan"), "{refused:?}");
    let refused = bench.canopy(&["stats", "--server", daemon.address()]).exits(2);
    assert!(refused.stderr.contains("--token-file"), "{refused:?}");
    bench.canopy(&["tokens", "revoke", "ann"]).exits(0);
    let mut tries = (0..100).map(|_| plan("ann.token"));
    let refused = tries.find(|tried| tried.status != Some(0)).expect("a revoked token is refused").exits(2);
    assert!(refused.stderr.contains("token `ann` was revoked"), "{refused:?}");
    bench.canopy(&["tokens", "revoke", "ann"]).exits(2);
    // The owner of the server needs no token on this machine.
    bench.canopy(&["plan", "ring:4", "-c", "allgather", "-o", "plan.json"]).exits(0);
    fs::set_permissions(bench.file("bob.token"), fs::Permissions::from_mode(0o644)).unwrap();
    let refused = plan("bob.token").exits(2);
    assert!(refused.stderr.contains("chmod 600"), "{refused:?}");
    let refused = bench.canopy(&["stats", "--server", "planner.example:1", "--token-file", "ann.token"]).exits(2);
    assert!(refused.stderr.contains("as plain text"), "{refused:?}");
    daemon.kill();
}

#[test]
fn without_a_way_to_keep_strangers_out_there_is_no_port() {
    let bench = Bench::default();
    for (arguments, words) in [
        (&["--listen", "127.0.0.1:0"][..], "would carry plain text"),
        (&["--dev", "--listen", "0.0.0.0:0"], "can be reached from other machines"),
        (&["--tls-certificate", "c.pem"], "state both or neither"),
        (&["--tls-certificate", "c.pem", "--tls-key", "k.pem"], "c.pem, the file of `tls_certificate`"),
        (&["--users-socket", "users.sock"], "state `access`"),
        (&["--access", "missing.toml"], "missing.toml, the file of `access`"),
    ] {
        let run = Run::from(bench.command("canopyd").args(arguments).output().unwrap());
        assert!(run.stderr.contains(words), "{arguments:?}: {run:?}");
        run.exits(2);
    }
}

/// Users of this machine show who they are by connecting. Only root can try that as somebody else.
#[test]
fn users_of_this_machine_need_no_token() {
    if !canopy_prerequisites::is_root() {
        return;
    }
    let bench = Bench::default();
    fs::write(bench.file("access.toml"), "[[grant]]\nuser = 1200\nroles = [\"viewer\"]\n").unwrap();
    // Where others can reach it.
    let (socket, program) = (bench.file("users.sock"), bench.file("canopy"));
    fs::set_permissions(socket.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(bench.command("canopy").get_program(), &program).unwrap();
    let socket = socket.to_str().unwrap();
    let daemon = Daemon::start(&bench, &["--access", "access.toml", "--users-socket", socket]);
    let quota_of = |user: u32| {
        let mut command = Command::new(&program);
        command.args(["quota", "--server", &format!("unix:{socket}")]).env_clear().current_dir("/").uid(user);
        Run::from(command.output().unwrap())
    };
    let known = quota_of(1200).exits(0);
    assert!(known.stdout.starts_with("you are uid:1200, for no tenant"), "{known:?}");
    let refused = quota_of(1201).exits(2);
    assert!(refused.stderr.contains("no rule of this server is about user uid:1201"), "{refused:?}");
    daemon.stop();
    assert!(!Path::new(socket).exists());
}
