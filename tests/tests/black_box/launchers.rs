//! Host files in the hands of real launchers: the ranks of a job land as `canopy tools order` says.
//!
//! Slurm and Open MPI run with all their machines on this one, under names that nothing else knows.

#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use canopy_prerequisites::program;
use canopy_tests::Bench;
use serde_json::Value;

/// Machines of the job, which has two ranks on each.
const MACHINES: usize = 6;

/// Two racks of three machines, whose ranks are given in turns.
fn network() -> String {
    let mut text = "canopy: 1\nnodes:\n".to_owned();
    for place in 0..MACHINES {
        let host = place % 2 * 3 + place / 2 + 1;
        for gpu in 0..2 {
            let _ = writeln!(text, "  - {{id: n{host}g{gpu}, rank: {}, host: n{host}}}", 2 * place + gpu);
        }
    }
    text += "  - {id: rack0, kind: switch}\n  - {id: rack1, kind: switch}\nlinks:\n";
    for (host, gpu) in (1..=MACHINES).flat_map(|host| [(host, 0), (host, 1)]) {
        let rack = usize::from(host > 3);
        let _ = writeln!(text, "  - {{from: n{host}g{gpu}, to: rack{rack}, bandwidth: 50GB/s, both: true}}");
    }
    text + "  - {from: rack0, to: rack1, bandwidth: 100GB/s, both: true}\n"
}

/// The host file of a kind, and by rank the machine that the order says.
fn ordered(bench: &Bench, kind: &str) -> Vec<String> {
    std::fs::write(bench.file("job.yaml"), network()).unwrap();
    let found = bench.canopy(&["order", "job.yaml", "--to", kind, "-o", "hosts", "--json"]).exits(0).json();
    assert_eq!(found["best"], true, "{found}");
    let machines = found["machines"].as_array().unwrap();
    assert!(machines.iter().any(|machine| machine["given"] != machine["node_rank"]), "nothing to see: {found}");
    let host = |machine: &Value| machine["host"].as_str().unwrap().to_owned();
    machines.iter().flat_map(|machine| [host(machine), host(machine)]).collect()
}

/// `rank host` lines, by rank.
fn landed(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let mut lines: Vec<(usize, String)> = text
        .lines()
        .filter_map(|line| {
            let (rank, host) = line.trim().split_once(' ')?;
            Some((rank.parse().ok()?, host.to_owned()))
        })
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, host)| host).collect()
}

/// Programs that end with the test.
struct Running(Vec<Child>);

impl Running {
    fn start(&mut self, command: &mut Command) {
        self.0.push(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in self.0.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what}");
}

fn said(program: &str, arguments: &[&str]) -> String {
    String::from_utf8(Command::new(program).args(arguments).output().unwrap().stdout).unwrap().trim().to_owned()
}

/// Free ports.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

/// A cluster of virtual machines: a controller, a daemon for each of them, and keys of their own.
fn slurm(folder: &Path) -> Running {
    let (user, host, at) = (said("id", &["-un"]), said("hostname", &["-s"]), folder.display());
    let ports = free_ports(MACHINES + 1);
    let mut text = format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser={user}\nSlurmdUser={user}\nAuthType=auth/munge\n\
         AuthInfo=socket={at}/munge.sock\nStateSaveLocation={at}/state\nSlurmdSpoolDir={at}/%n\n\
         SlurmctldPidFile={at}/ctld.pid\nSlurmdPidFile={at}/%n.pid\nSlurmctldPort={}\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n\
         SelectType=select/linear\nReturnToService=2\nMpiDefault=none\nSwitchType=switch/none\n",
        ports[0]
    );
    for (number, port) in (1..=MACHINES).zip(&ports[1..]) {
        let _ = writeln!(text, "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2");
    }
    text += &format!("PartitionName=all Nodes=n[1-{MACHINES}] Default=YES State=UP\n");
    std::fs::write(folder.join("slurm.conf"), text).unwrap();
    std::fs::create_dir(folder.join("state")).unwrap();
    let key = folder.join("key");
    std::fs::write(&key, (0..1024_u32).map(|byte| (byte * 7 % 251) as u8).collect::<Vec<u8>>()).unwrap();
    for path in [folder, &key] {
        let mode = if path == key { 0o600 } else { 0o700 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut running = Running(Vec::new());
    let named = |option: &str, name: &str| format!("--{option}={at}/{name}");
    running.start(Command::new("munged").args(["--foreground", "--force"]).args([
        named("socket", "munge.sock"),
        named("key-file", "key"),
        named("pid-file", "munge.pid"),
        named("log-file", "munge.log"),
        named("seed-file", "munge.seed"),
    ]));
    until("munged does not listen", || folder.join("munge.sock").exists());
    let conf = folder.join("slurm.conf");
    running.start(Command::new("slurmctld").arg("-D").env("SLURM_CONF", &conf));
    for number in 1..=MACHINES {
        running.start(Command::new("slurmd").args(["-D", "-N", &format!("n{number}")]).env("SLURM_CONF", &conf));
    }
    let idle = format!("{MACHINES} idle");
    until("the machines do not become idle", || {
        let sinfo = Command::new("sinfo").args(["-h", "-o", "%D %t"]).env("SLURM_CONF", &conf).output().unwrap();
        String::from_utf8_lossy(&sinfo.stdout).trim() == idle
    });
    running
}

#[test]
fn slurm_places_ranks_as_ordered() {
    if ["munged", "slurmctld", "slurmd", "srun"].iter().any(|name| program(name).is_none()) {
        return;
    }
    let bench = Bench::default();
    let expected = ordered(&bench, "slurm");
    let folder = tempfile::tempdir().unwrap();
    let _running = slurm(folder.path());
    let srun = Command::new("srun")
        .args(["-N", &MACHINES.to_string(), "-n", &(2 * MACHINES).to_string(), "--distribution=arbitrary"])
        .args(["sh", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME"])
        .env("SLURM_CONF", folder.path().join("slurm.conf"))
        .env("SLURM_HOSTFILE", bench.file("hosts"))
        .output()
        .unwrap();
    assert_eq!(landed(&srun.stdout), expected, "{}", String::from_utf8_lossy(&srun.stderr));
    // A plan, with a rank on each machine: Slurm starts a helper there.
    bench.canopy(&["plan", "ring:6", "-c", "allreduce", "--format", "oneccl-xml", "-o", "plan.xml"]).exits(0);
    let hosts = (1..=MACHINES).map(|number| format!("n{number}=127.0.0.1")).collect::<Vec<_>>().join(",");
    let run = bench
        .command("canopy")
        .args(["run", "plan.xml", "--size", "60KiB", "--hosts", &hosts, "--launcher", "srun", "--json"])
        .env("SLURM_CONF", folder.path().join("slurm.conf"))
        .output()
        .unwrap();
    let (said, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && said.contains("\"ok\":true"), "{said}{errors}");
}

/// Held while Open MPI runs: jobs side by side share a folder, and the first to end may take it from the other.
pub(crate) static OPEN_MPI: Mutex<()> = Mutex::new(());

#[test]
fn open_mpi_places_ranks_as_ordered() {
    if program("mpirun").is_none() {
        return;
    }
    let bench = Bench::default();
    let expected = ordered(&bench, "openmpi");
    // In place of ssh: the command is run here, under the name of the machine. Each machine has its own folder for
    // temporary files: daemons of Open MPI that share one may end each other as they start.
    let agent = bench.file("agent");
    std::fs::write(
        &agent,
        "#!/bin/sh\nexport VIRTUAL_HOST=$1 TMPDIR=$TMPDIR/$1\nmkdir -p $TMPDIR\nshift\nexec sh -c \"$*\"\n",
    )
    .unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mca = [
        ("plm", "rsh"),
        ("ras", "^slurm"),
        ("plm_rsh_agent", agent.to_str().unwrap()),
        ("plm_rsh_no_tree_spawn", "1"),
        ("oob_tcp_if_include", "lo"),
        ("btl", "self,tcp"),
        ("btl_tcp_if_include", "lo"),
    ];
    let _alone = OPEN_MPI.lock();
    let mpirun = Command::new("timeout")
        .args(["120", "mpirun", "--allow-run-as-root", "--bind-to", "none", "--hostfile"])
        .arg(bench.file("hosts"))
        .args(mca.iter().flat_map(|(name, value)| ["--mca", name, value]))
        .env("TMPDIR", bench.file("."))
        .args(["sh", "-c", "echo $OMPI_COMM_WORLD_RANK $VIRTUAL_HOST"])
        .output()
        .unwrap();
    assert_eq!(landed(&mpirun.stdout), expected, "{}", String::from_utf8_lossy(&mpirun.stderr));
}
