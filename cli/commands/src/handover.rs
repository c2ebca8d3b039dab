//! Commands that this program is built without: `canopy-tools` has them, and runs in this process's place. It is found by its
//! name, as cargo and git find what they have in programs of their own.

use std::ffi::OsStr;
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::exit::{Failure, GET_TOOLS};
use crate::input;

/// The program that has all commands.
const PROGRAM: &str = "canopy-tools";

/// Set for it, so that two programs do not hand a command to each other for ever.
const MARK: &str = "CANOPY_HANDED_OVER";

/// Commands that `canopy` can be built without, as its help lists them, and commands of its commands.
pub(crate) const COMMANDS: [(&str, &str); 18] = [
    (
        "tools",
        "The toolbox beside plans and servers: emulate, run, measure, diagnose, look for networks and orders of ranks",
    ),
    ("plan-job", "Plan all groups of a training job together, so that they share the network as well as they can"),
    ("plan-moving", "Plan an all-to-all whose traffic changes, matrix by matrix"),
    ("export", "Write a plan as the input of another simulator: SimGrid, or ASTRA-sim by way of Chakra"),
    (
        "run",
        "Execute a plan: one process per rank, real bytes over TCP on this machine or several, every output byte checked",
    ),
    ("lab", "Run plans on an emulated network with real rate limits, and compare with the prediction"),
    ("doctor", "Find out what slows a job with NCCL or RCCL, or why its runtime ignores a plan, and what to do"),
    ("find", "Find the best networks for a number of nodes and ports, as generator expressions"),
    (
        "path",
        "Divide a message between two ranks among paths without a link in common, so that all parts arrive at the same time",
    ),
    ("order", "Order machines so that rings of stock NCCL, RCCL or MPI load the fabric least, and write the host file"),
    ("advise", "Choose among a stock runtime's own algorithms for a network, and write the table that it reads"),
    (
        "calibrate",
        "Find latencies, rates and slow links of a network from measured runs, for --calibration of every command",
    ),
    ("network cost", "Count the cables and switches of networks and say what they cost, in all and for each endpoint"),
    ("serve", "Run a server in the foreground, as canopyd does, or check its settings and data"),
    ("tokens", "Tokens that callers show to a server: create, list, revoke"),
    ("audit", "A server's audit log: verify"),
    ("top", "Watch the queue, answers, cache, faults and jobs of a server"),
    ("bench", "Measure how fast a server answers"),
];

/// Commands of the same kind that only canopy itself calls, and no help lists.
pub(crate) const INNER: [&str; 4] = ["run-rank", "run-host", "lab-inside", "lab-rank"];

/// Line of help of a command that this program is built without.
pub(crate) fn about(name: &str) -> Option<String> {
    COMMANDS.iter().find(|(known, _)| *known == name).map(|(_, about)| (*about).to_owned())
}

/// The failure to find the command, unless `canopy-tools` runs it; `None` for words that are no command there either.
pub(crate) fn command(name: &str) -> Option<Failure> {
    let is_known = COMMANDS.iter().any(|(known, _)| *known == name) || INNER.contains(&name);
    is_known.then(|| part(name))
}

/// The failure to find a command or a part of one, unless `canopy-tools` runs it. Nothing must have been done yet.
pub(crate) fn part(name: &str) -> Failure {
    run_instead().unwrap_or_else(|| not_installed(name))
}

/// The failure to find a server, unless `canopy-tools`, which has one in it, runs the whole command. What the command holds,
/// such as files without their last names, must have been dropped.
pub(crate) fn to_tools() -> Failure {
    run_instead().unwrap_or(Failure::NoServer)
}

fn not_installed(name: &str) -> Failure {
    Failure::input(format!("`canopy {name}` is part of {PROGRAM}, which is not installed")).help(GET_TOOLS)
}

/// Runs this command line in `canopy-tools`, in place of this process: comes back only with the reason why it does not run, and
/// with nothing where there is none to run.
fn run_instead() -> Option<Failure> {
    let program = program()?;
    let mut command = Command::new(&program);
    command.args(std::env::args_os().skip(1)).env(MARK, "1");
    // What was read of standard input is read once more.
    if let Some(bytes) = input::taken_from_stdin() {
        match again(bytes) {
            Ok(file) => command.stdin(file),
            Err(error) => return Some(Failure::fault(format!("cannot hand standard input over: {error}"))),
        };
    }
    let error = command.exec();
    Some(Failure::fault(format!("cannot run {}: {error}", program.display())))
}

/// Whether commands that this program is built without run all the same.
pub(crate) fn has_all() -> bool {
    cfg!(all(feature = "tools", feature = "embedded")) || is_possible()
}

/// Whether there is a program to hand over to.
pub(crate) fn is_possible() -> bool {
    program().is_some()
}

/// The program to hand over to, unless this command was handed over already.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let found = found(own.as_deref(), std::env::var_os("PATH").as_deref());
    found.filter(|_| std::env::var_os(MARK).is_none())
}

/// A file with these bytes that has no name, to be read from its beginning.
fn again(bytes: &[u8]) -> std::io::Result<std::fs::File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// The program beside this one, else in a folder of the search path; none where this one is it.
fn found(own: Option<&Path>, search: Option<&OsStr>) -> Option<PathBuf> {
    if own.and_then(Path::file_name).is_some_and(|name| name == PROGRAM) {
        return None;
    }
    let beside = own.and_then(Path::parent).map(Path::to_path_buf);
    let others = search.map(std::env::split_paths).into_iter().flatten();
    // A folder that is not named from the root is another one tomorrow.
    let mut all =
        beside.into_iter().chain(others.filter(|folder| folder.is_absolute())).map(|folder| folder.join(PROGRAM));
    all.find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions, create_dir, set_permissions};

    use super::*;

    /// Puts a file where the program could be.
    fn put(folder: &Path, mode: u32) -> PathBuf {
        let path = folder.join(PROGRAM);
        File::create(&path).unwrap();
        set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn the_tools_are_found_beside_the_program_then_on_the_search_path() {
        let folder = tempfile::tempdir().unwrap();
        let [own, first, second] = ["own", "first", "second"].map(|name| folder.path().join(name));
        for each in [&own, &first, &second] {
            create_dir(each).unwrap();
        }
        let search = std::env::join_paths([Path::new("."), &first, &second]).unwrap();
        let look = |name: &str| found(Some(&own.join(name)), Some(&search));
        assert_eq!(look("canopy"), None);
        let last = put(&second, 0o755);
        put(&first, 0o644);
        assert_eq!(look("canopy"), Some(last), "a file that is no program is passed over");
        put(&own, 0o755);
        assert_eq!(look("canopy"), Some(own.join(PROGRAM)));
        assert_eq!(look(PROGRAM), None, "never itself");
        assert_eq!(found(None, None), None);
    }

    #[test]
    fn what_is_not_installed_is_named() {
        let failure = not_installed("lab");
        assert_eq!(failure.sentence(), "`canopy lab` is part of canopy-tools, which is not installed");
        assert!(command("unheard-of").is_none());
    }

    #[test]
    fn what_was_read_can_be_read_again() {
        assert_eq!(std::io::read_to_string(again(b"ring:4").unwrap()).unwrap(), "ring:4");
    }
}
