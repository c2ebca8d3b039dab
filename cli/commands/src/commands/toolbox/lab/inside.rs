//! The helper of `canopy tools lab` inside its namespaces: makes the network, keeps the ranks, and ends all of it when the
//! command is gone.
//!
//! It is the first process of a process namespace, so with it the kernel ends every other process there, and then
//! removes the network: nothing is left behind, whatever happens.

use std::io::{self, BufReader, BufWriter};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::sync::mpsc;

use canopy_lab::{NAMESPACES, RankProgram, namespace, namespace_file};

use super::counters;
use super::mpi;
use super::programs::{Trouble, run_command, text};
use super::protocol::{FromRank, Ran, Reply, Request, ToRank};
use crate::clock;
use crate::exit::Failure;
use crate::lines::{hear, say};

/// Time from the last rank's word that it is ready to the common start.
const START_NS: u64 = 50_000_000;

/// The helper inside a lab's namespaces; started by `canopy tools lab`
#[derive(Debug, clap::Args)]
pub(crate) struct InsideArgs {
    /// The network namespace of the command
    net: String,
    /// The mount namespace of the command
    mnt: String,
}

/// The namespace of this kind that this process is in.
pub(super) fn own_namespace(kind: &str) -> io::Result<String> {
    Ok(std::fs::read_link(format!("/proc/self/ns/{kind}"))?.to_string_lossy().into_owned())
}

/// Whether this process is the first of its namespaces, in a network that has nothing but a loopback that is down: then
/// nothing that it does can touch the machine's own.
fn is_alone(args: &InsideArgs) -> bool {
    let is_own = |kind, outside: &str| own_namespace(kind).is_ok_and(|inside| inside != outside);
    let devices = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let mut names = devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
    let is_bare = names.next() == Some("lo") && names.next().is_none();
    let has_address = std::fs::read_to_string("/proc/self/net/fib_trie").is_ok_and(|table| table.contains("LOCAL"));
    is_own("net", &args.net) && is_own("mnt", &args.mnt) && std::process::id() == 1 && is_bare && !has_address
}

/// Answers requests until the command has gone.
pub(crate) fn run(args: &InsideArgs) -> Result<(), Failure> {
    if !is_alone(args) {
        return Err(Failure::input("`lab-inside` runs in namespaces of its own only").help("use `canopy tools lab`"));
    }
    let (requests, asked) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut from = BufReader::new(io::stdin());
        while let Ok(Some(request)) = hear::<Request>(&mut from) {
            if requests.send(request).is_err() {
                return;
            }
        }
        // No one waits for the rest.
        std::process::exit(0);
    });
    let mut to = io::stdout();
    let gone = |error| Failure::fault(format!("the command has gone: {error}"));
    let mut lab = Lab { ranks: Vec::new() };
    let first = prepare().map(|()| Reply::Inside { has_cubic: has_cubic() });
    say(&mut to, &first.unwrap_or_else(failed)).map_err(gone)?;
    for request in asked {
        let reply = lab.answer(request).unwrap_or_else(failed);
        say(&mut to, &reply).map_err(gone)?;
    }
    Ok(())
}

fn failed(Trouble { message, help }: Trouble) -> Reply {
    Reply::Failed { message, help }
}

/// Makes room for names of namespaces, hidden from the rest of the machine.
fn prepare() -> Result<(), Trouble> {
    let program = std::env::current_exe().map_err(|error| Trouble::new(format!("cannot find canopy: {error}")))?;
    for folder in ["/run", "/var/run"] {
        let is_real = Path::new(folder).symlink_metadata().is_ok_and(|found| found.is_dir());
        if !is_real {
            continue;
        }
        let mounted = Process::new("mount").args(["-t", "tmpfs", "lab", folder]).output();
        match mounted {
            Ok(output) if output.status.success() => {}
            Ok(output) => return Err(Trouble::new(format!("cannot mount over {folder}: {}", text(&output.stderr)))),
            Err(error) => return Err(Trouble::new(format!("cannot run mount: {error}")).help("install util-linux")),
        }
    }
    let folders = [NAMESPACES, mpi::FOLDER];
    let made = folders.iter().try_for_each(std::fs::create_dir_all);
    made.map_err(|error| Trouble::new(format!("cannot make folders below /run: {error}")))?;
    match program.is_file() {
        true => Ok(()),
        false => Err(Trouble::new("canopy itself is below /run, which the lab has for itself")
            .help("copy the program to another folder")),
    }
}

/// Whether the kernel has the congestion control that is steadiest here.
fn has_cubic() -> bool {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    std::fs::read_to_string(path).is_ok_and(|names| names.split_whitespace().any(|name| name == "cubic"))
}

/// The processes of the ranks.
struct Lab {
    ranks: Vec<RankProcess>,
}

/// A rank's process.
struct RankProcess {
    rank: u32,
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Drop for RankProcess {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

impl RankProcess {
    fn start(rank: u32) -> Result<Self, Trouble> {
        let cannot = |error: io::Error| Trouble::new(format!("cannot start rank {rank}: {error}"));
        let program = std::env::current_exe().map_err(cannot)?;
        let mut child = Process::new("nsenter")
            .arg(format!("--net={}", namespace_file(&namespace(rank as usize))))
            .arg(program)
            .arg("lab-rank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or_else(|| cannot(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self { rank, child, to: BufWriter::new(to), from: BufReader::new(from) })
    }

    fn say(&mut self, what: &ToRank) -> Result<(), Trouble> {
        let rank = self.rank;
        say(&mut self.to, what).map_err(|error| Trouble::new(format!("rank {rank} does not listen: {error}")))
    }

    fn hear(&mut self) -> Result<FromRank, Trouble> {
        let rank = self.rank;
        match hear(&mut self.from) {
            Ok(Some(FromRank::Failed { message })) => Err(Trouble::new(format!("rank {rank} gave up: {message}"))),
            Ok(Some(said)) => Ok(said),
            Ok(None) => Err(Trouble::new(format!("the process of rank {rank} ended early"))),
            Err(error) => Err(Trouble::new(format!("rank {rank}: {error}"))),
        }
    }
}

impl Lab {
    fn answer(&mut self, request: Request) -> Result<Reply, Trouble> {
        match request {
            Request::Commands(commands) => {
                commands.iter().try_for_each(|command| run_command(command).map(|_| ()))?;
                Ok(Reply::Done)
            }
            Request::Ranks(programs) => self.start(programs).map(|()| Reply::Done),
            Request::Run => self.run().map(Reply::Ran),
            Request::Counters { node_count } => counters::read(node_count).map(Reply::Counters),
            Request::Mpi(job) => mpi::run(&job).map(Reply::Mpi),
        }
    }

    /// Starts the ranks and connects them.
    fn start(&mut self, programs: Vec<RankProgram>) -> Result<(), Trouble> {
        self.ranks.clear();
        for program in programs {
            let mut rank = RankProcess::start(program.rank)?;
            rank.say(&ToRank::Program(Box::new(program)))?;
            self.ranks.push(rank);
        }
        self.agree(|said| matches!(said, FromRank::Listening))?;
        self.tell(&ToRank::Connect)?;
        self.agree(|said| matches!(said, FromRank::Connected))
    }

    /// One run, from a common start on the machine's clock.
    fn run(&mut self) -> Result<Ran, Trouble> {
        self.tell(&ToRank::Prepare)?;
        self.agree(|said| matches!(said, FromRank::Prepared))?;
        let at_ns = clock::monotonic_ns() + START_NS;
        self.tell(&ToRank::Go { at_ns })?;
        let mut ran = Ran { nanos: 0, wrong_words: 0, processor_ns: 0 };
        for rank in &mut self.ranks {
            let FromRank::Ran { end_ns, wrong_words, processor_ns } = rank.hear()? else {
                return Err(Trouble::new(format!("rank {} says what it must not", rank.rank)));
            };
            ran.nanos = ran.nanos.max(end_ns.saturating_sub(at_ns));
            ran.wrong_words += wrong_words;
            ran.processor_ns += processor_ns;
        }
        Ok(ran)
    }

    fn tell(&mut self, what: &ToRank) -> Result<(), Trouble> {
        self.ranks.iter_mut().try_for_each(|rank| rank.say(what))
    }

    /// Waits until every rank has said the same.
    fn agree(&mut self, is_meant: impl Fn(&FromRank) -> bool) -> Result<(), Trouble> {
        for rank in &mut self.ranks {
            if !is_meant(&rank.hear()?) {
                return Err(Trouble::new(format!("rank {} says what it must not", rank.rank)));
            }
        }
        Ok(())
    }
}
