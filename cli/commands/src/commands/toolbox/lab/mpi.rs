//! Open MPI in the lab: its daemons one in each rank's namespace, its messages over the same links.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use canopy_lab::{MANAGEMENT_NET, RANK_NET, management_address, namespace_file};
use canopy_schedule::CollectiveKind;
use serde::{Deserialize, Serialize};

use super::programs::{Trouble, text};

/// Where everything for it lies, inside the lab.
pub(super) const FOLDER: &str = "/run/canopy-lab";
/// The namespace of its launcher.
const LAUNCHER: &str = "management";
/// How long an MPI program may take to end once it was told to.
const FAREWELL: Duration = Duration::from_secs(10);

/// What MPI has to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MpiJob {
    /// `allgather`, `allreduce` or `alltoall`.
    pub(super) collective: String,
    pub(super) size_bytes: u64,
    pub(super) repeats: u32,
    /// Number of the algorithm in the component `tuned`; `None` for what it takes by itself.
    pub(super) algorithm: Option<u32>,
    /// The rank of the lab that each rank of MPI is.
    pub(super) order: Vec<u32>,
    /// Longest time.
    pub(super) limit_ms: u64,
}

/// One repeat.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct MpiTime {
    pub(super) size_bytes: u64,
    pub(super) nanos: u64,
    pub(super) wrong_words: u64,
}

/// Algorithms of Open MPI's component `tuned`, by collective, with their numbers; 0 is its own choice.
pub(super) fn algorithms(kind: CollectiveKind, ranks: u32) -> Vec<(&'static str, Option<u32>)> {
    let mut all = vec![("default", None)];
    match kind {
        CollectiveKind::Allgather => {
            all.extend([("ring", Some(4))]);
            all.extend(ranks.is_power_of_two().then_some(("recursive-doubling", Some(3))));
            all.extend(ranks.is_multiple_of(2).then_some(("neighbor-exchange", Some(5))));
        }
        CollectiveKind::Allreduce => all.extend([("ring", Some(4)), ("rabenseifner", Some(6))]),
        CollectiveKind::AllToAll => all.extend([("linear", Some(1)), ("pairwise", Some(2))]),
        _ => all.clear(),
    }
    all
}

/// The name of a collective in Open MPI's settings; `None` for those that are not compared.
pub(super) fn mpi_name(kind: CollectiveKind) -> Option<&'static str> {
    match kind {
        CollectiveKind::Allgather => Some("allgather"),
        CollectiveKind::Allreduce => Some("allreduce"),
        CollectiveKind::AllToAll => Some("alltoall"),
        _ => None,
    }
}

/// Compiles the program where that has not been done, and runs it.
pub(super) fn run(job: &MpiJob) -> Result<Vec<MpiTime>, Trouble> {
    build()?;
    let cannot = |error: std::io::Error| Trouble::new(format!("cannot run mpirun: {error}"));
    let mut child = Process::new("nsenter")
        .arg(format!("--net={}", namespace_file(LAUNCHER)))
        .arg("mpirun")
        .args(arguments(job))
        .env("TMPDIR", FOLDER)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let (lines, printed) = mpsc::channel();
    let mut errors = child.stderr.take();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
    }
    let said = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _read = errors.take().map(|errors| errors.take(1 << 16).read_to_end(&mut said));
        said
    });
    let mut times = Vec::new();
    // Each repeat may take that long, the first with the start of all processes.
    while (times.len() as u64) < u64::from(job.repeats) {
        match printed.recv_timeout(Duration::from_millis(job.limit_ms)) {
            Ok(line) => times.extend(time_of(&line)),
            Err(mpsc::RecvTimeoutError::Timeout) => break,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    end(&mut child);
    let said = said.join().unwrap_or_default();
    if times.is_empty() && !said.is_empty() {
        return Err(Trouble::new(format!("mpirun: {}", text(&said))));
    }
    Ok(times)
}

/// Lets it end by itself, which takes its daemons with it, or ends it.
fn end(child: &mut Child) {
    let mut waited = Duration::ZERO;
    let pause = Duration::from_millis(50);
    let mut is_told = false;
    while matches!(child.try_wait(), Ok(None)) {
        if waited >= FAREWELL {
            if is_told {
                let _killed = child.kill();
                let _ended = child.wait();
                return;
            }
            is_told = true;
            waited = Duration::ZERO;
            // Its daemons and ranks end with it.
            let pid = rustix::process::Pid::from_child(child);
            let _told = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        std::thread::sleep(pause);
        waited += pause;
    }
}

/// Reads a line of the program; `None` for what others print.
fn time_of(line: &str) -> Option<MpiTime> {
    let mut parts = line.strip_prefix("took ")?.split_whitespace();
    let size_bytes = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next()?.parse().ok()?;
    let nanos = u64::try_from(Duration::try_from_secs_f64(seconds).ok()?.as_nanos()).ok()?;
    Some(MpiTime { size_bytes, nanos, wrong_words: parts.next()?.parse().ok()? })
}

/// Writes and compiles what mpirun needs.
fn build() -> Result<(), Trouble> {
    let path = |name: &str| Path::new(FOLDER).join(name);
    if path("collective").exists() {
        return Ok(());
    }
    let files = [
        ("collective.c", include_str!("mpi/collective.c")),
        ("yield.c", include_str!("mpi/yield.c")),
        ("agent.sh", include_str!("mpi/agent.sh")),
    ];
    let write = || {
        files.iter().try_for_each(|(name, content)| std::fs::write(path(name), content))?;
        std::fs::set_permissions(path("agent.sh"), std::fs::Permissions::from_mode(0o755))
    };
    write().map_err(|error| Trouble::new(format!("cannot write below {FOLDER}: {error}")))?;
    compiled("mpicc", &["-O2", "-o", "collective", "collective.c"])?;
    compiled("mpicc", &["-O2", "-shared", "-fPIC", "-o", "yield.so", "yield.c"])
}

fn compiled(program: &str, args: &[&str]) -> Result<(), Trouble> {
    let output = Process::new(program).args(args).current_dir(FOLDER).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(Trouble::new(format!("{program} failed: {}", text(&output.stderr)))),
        Err(error) => Err(Trouble::new(format!("cannot run {program}: {error}"))),
    }
}

/// The arguments of mpirun: TCP alone, over the names of ranks, as shared memory would bypass the network.
fn arguments(job: &MpiJob) -> Vec<String> {
    let hosts: Vec<String> = job.order.iter().map(|&rank| format!("{}:1", management_address(rank))).collect();
    let agent = format!("{FOLDER}/agent.sh");
    let mut settings = vec![
        ("plm".to_owned(), "rsh".to_owned()),
        ("plm_rsh_agent".to_owned(), agent),
        ("plm_rsh_no_tree_spawn".to_owned(), "1".to_owned()),
        ("oob_tcp_if_include".to_owned(), MANAGEMENT_NET.to_owned()),
        ("pml".to_owned(), "ob1".to_owned()),
        ("btl".to_owned(), "tcp,self".to_owned()),
        ("btl_tcp_if_include".to_owned(), RANK_NET.to_owned()),
        ("mpi_yield_when_idle".to_owned(), "1".to_owned()),
        ("mpi_leave_pinned".to_owned(), "0".to_owned()),
    ];
    if let Some(algorithm) = job.algorithm {
        settings.push(("coll_tuned_use_dynamic_rules".to_owned(), "1".to_owned()));
        settings.push((format!("coll_tuned_{}_algorithm", job.collective), algorithm.to_string()));
    }
    let ranks = job.order.len().to_string();
    // The lab's user is root in its own namespace alone.
    let fixed =
        ["--allow-run-as-root", "--host", &hosts.join(","), "-np", &ranks, "--map-by", "node", "--bind-to", "none"];
    let mut arguments: Vec<String> = fixed.map(str::to_owned).to_vec();
    arguments.extend(settings.into_iter().flat_map(|(name, value)| ["--mca".to_owned(), name, value]));
    arguments.extend(["-x".to_owned(), format!("LD_PRELOAD={FOLDER}/yield.so"), format!("{FOLDER}/collective")]);
    arguments.extend([job.collective.clone(), job.size_bytes.to_string(), job.repeats.to_string()]);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_program_are_told_from_others() {
        let time = MpiTime { size_bytes: 400, nanos: 1_500_000_000, wrong_words: 0 };
        assert_eq!(time_of("took 400 1.500000000 0"), Some(time));
        for other in ["", "took", "took 400 x 0", "took 400 -1 0", "WARNING: took 1 2 3", "took 400 1e300 0"] {
            assert_eq!(time_of(other), None, "{other}");
        }
    }

    #[test]
    fn algorithms_are_those_that_can_run() {
        let names = |kind, ranks| algorithms(kind, ranks).iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(CollectiveKind::Allgather, 9), ["default", "ring"]);
        assert_eq!(names(CollectiveKind::Allgather, 6), ["default", "ring", "neighbor-exchange"]);
        assert_eq!(names(CollectiveKind::Allgather, 8).len(), 4);
        assert!(names(CollectiveKind::Gather, 8).is_empty());
    }
}
