//! `canopy tools run --hosts`: ranks on several hosts, in networks of their own where the system allows it.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use canopy_prerequisites::has_network_namespaces;

use crate::support::{Run, Workspace};

/// A plan that somebody wrote by hand.
const HAND_MADE: &str = include_str!("../../../crates/plan/tests/oneccl_files/allreduce_pair.xml");

/// Writes a program of the shell.
fn script(workspace: &Workspace, name: &str, lines: &str) {
    workspace.write(name, format!("#!/bin/sh\n{lines}\n"));
    std::fs::set_permissions(workspace.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A workspace with a plan for two ranks, and launchers for two names of this machine.
fn two_hosts() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("pair.xml", HAND_MADE);
    for host in ["localhost", "127.0.0.1"] {
        script(&workspace, &format!("on-{host}"), "exec \"$@\"");
    }
    workspace
}

/// Two hosts, and what starts programs on them.
const HOSTS: &str = "--hosts localhost,127.0.0.1 --launcher ./on-{host}";

#[test]
fn ranks_of_several_hosts_do_what_those_of_one_do() {
    let workspace = two_hosts();
    let here = workspace.json("run pair.xml --size 64KiB --seed 4 --json");
    let there = workspace.json(&format!("run pair.xml --size 64KiB --seed 4 {HOSTS} --json"));
    for member in ["ok", "ranks", "messages", "bytes_sent", "size_bytes"] {
        assert_eq!(here[member], there[member], "{member}");
    }
    assert_eq!((&here["hosts"], &there["hosts"]), (&serde_json::Value::Null, &2.into()));
    let said = workspace.text(&format!("run pair.xml {HOSTS}"));
    assert!(said.starts_with("allreduce on 2 ranks of 2 hosts, "), "{said}");
    // Everybody waits for everybody.
    let joined = HAND_MADE.replace("</step>", "<sync scope=\"all\"/></step>");
    workspace.write("joined.xml", joined);
    assert_eq!(workspace.json(&format!("run joined.xml --delays 2ms {HOSTS} --json"))["ok"], true);
}

#[test]
fn what_does_not_place_all_ranks_is_refused() {
    let workspace = two_hosts();
    let refused = |hosts: &str, words: &[&str]| drop(workspace.refused(&format!("run pair.xml {hosts}"), 2, words));
    refused("--hosts a,b,c", &["2 ranks cannot be divided equally among 3 hosts", "say how many ranks each has"]);
    refused("--hosts a:1,b", &["cannot be divided equally"]);
    refused("--hosts a:1,b:2", &["the hosts have room for 3 ranks, and the plan has 2"]);
    refused("--hosts a:0,b:2", &["`a:0` has no ranks"]);
    refused("--hosts a,a", &["names a host twice"]);
    refused("--hosts a[1-2]=10.0.0.1", &["gives several hosts one address"]);
    refused("--hosts a;b", &["this is not a host name"]);
    refused("--hosts=-oProxyCommand=x", &["this is not a host name"]);
    refused("--hosts a,b --launcher rsh", &["does not say where the host goes"]);
    refused("--hosts a,b --program canopy;x", &["is not a plain path"]);
    refused("--launcher srun", &["--hosts"]);
    refused("--hosts a --ranks local", &["`--hosts` and `--ranks` cannot be combined"]);
}

#[test]
fn a_host_that_cannot_be_used_says_why() {
    let workspace = two_hosts();
    let failed = |words: &[&str]| drop(workspace.refused(&format!("run pair.xml {HOSTS}"), 4, words));
    script(&workspace, "on-127.0.0.1", "echo 'Permission denied (publickey).' >&2\nexit 255");
    failed(&["the helper on 127.0.0.1 has gone: exit status: 255", "Permission denied (publickey).", "--launcher"]);
    std::fs::remove_file(workspace.path("on-127.0.0.1")).unwrap();
    failed(&["cannot start \"./on-127.0.0.1\" for 127.0.0.1", "choose another --launcher"]);
    script(&workspace, "on-127.0.0.1", "echo '{\"Failed\":{\"message\":\"no room\",\"is_cause\":true}}'\ncat");
    failed(&["on 127.0.0.1: no room"]);
    script(&workspace, "on-127.0.0.1", "echo '{\"Hello\":{\"version\":\"0.0.1\"}}'\ncat");
    let words = ["127.0.0.1 has canopy 0.0.1, and this is", "--program"];
    workspace.refused(&format!("run pair.xml {HOSTS}"), 2, &words);
    script(&workspace, "on-127.0.0.1", "sleep 60");
    let words = ["deadline exceeded (300ms)"];
    workspace.refused(&format!("run pair.xml {HOSTS} --deadline 300ms"), 5, &words);
    // An address that leads to no host.
    script(&workspace, "on-127.0.0.1", "exec \"$@\"");
    let hosts = HOSTS.replace("127.0.0.1", "127.0.0.1=no-such-host.invalid");
    workspace.refused(&format!("run pair.xml {hosts}"), 4, &["cannot reach rank 1 at no-such-host.invalid:"]);
}

/// Numbers of the processes whose command line holds all of these words.
fn processes(words: &[&str]) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let holds = |process: &String| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        words.iter().all(|word| line.contains(word))
    };
    entries.filter(holds).filter_map(|process| process.parse().ok()).collect()
}

/// A rank is killed on one host: the command names it and the host, and no process is left on any.
#[test]
fn a_rank_that_dies_on_a_host_ends_the_run() {
    let workspace = two_hosts();
    // The helper's processes are known by the copy of the program that they run.
    let copy = workspace.path("canopy-of-this-test");
    std::fs::copy(env!("CARGO_BIN_EXE_canopy"), &copy).unwrap();
    let copy = copy.to_str().unwrap().to_owned();
    let mut command = workspace.command(&format!("run pair.xml --delays 60s --deadline 5m {HOSTS} --program {copy}"));
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ranks = Vec::new();
    while ranks.is_empty() {
        ranks = processes(&[&copy, "run-rank 1 "]);
        std::thread::yield_now();
    }
    let killed = std::process::Command::new("kill").args(["-KILL", &ranks[0].to_string()]).status().unwrap();
    assert!(killed.success());
    let run = Run::of(running.wait_with_output().unwrap());
    assert_eq!(run.status, Some(4), "{run:?}");
    assert!(run.stderr.contains("on 127.0.0.1: the process of rank 1 ended early: signal: 9"), "{run:?}");
    assert_eq!(processes(&[&copy, "run-"]), [0; 0]);
}

/// Each host is a network of its own, and only its address on a cable leads to it.
#[test]
fn hosts_reach_each_other_over_their_network() {
    if !has_network_namespaces() {
        return;
    }
    let workspace = Workspace::new();
    workspace.write("pair.xml", HAND_MADE);
    let program = env!("CARGO_BIN_EXE_canopy");
    let lines = format!(
        "set -e
mount -t tmpfs none /run
mkdir /run/netns
ip netns add left
ip netns add right
ip -n left link add cable type veth peer name cable netns right
ip -n left addr add 10.77.0.1/24 dev cable
ip -n right addr add 10.77.0.2/24 dev cable
for host in left right; do ip -n $host link set lo up; ip -n $host link set cable up; done
ip -n left -s link show cable >/dev/null
exec {program} run pair.xml --size 256KiB --json --hosts left=10.77.0.1,right=10.77.0.2 --launcher 'ip netns exec {{host}}'"
    );
    workspace.write("networks.sh", lines);
    let mut command = std::process::Command::new("unshare");
    command.args(["-Urnm", "sh", "networks.sh"]).current_dir(workspace.path("."));
    let run = Run::of(command.output().unwrap());
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!((&run.object()["ok"], &run.object()["hosts"]), (&true.into(), &2.into()));
}
