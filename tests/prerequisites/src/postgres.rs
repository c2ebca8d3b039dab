//! A PostgreSQL of a test's own: made in a temporary folder, reached by a socket in it, and gone when the test is.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use super::skip;

/// Where the programs of the server are, if they are on no search path: a folder with `initdb` and `pg_ctl`.
pub const PROGRAMS: &str = "CANOPY_PG_BIN";

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commits {
    /// The system, but not its disk: quick, and enough where the machine does not lose its power.
    Unsynced,
    /// The disk, as in earnest.
    Synced,
}

/// A server. Its processes and files are gone soon after this is dropped, or the process ends, however it does.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    /// What the server is run as, where this process is root.
    user: Option<&'static str>,
    settings: String,
    /// The number of its sockets.
    port: u16,
    /// Waits for the end of this process, and stops the server.
    keeper: Child,
    databases: AtomicU32,
    console: Mutex<Option<Console>>,
}

/// A client that makes databases. One for all of them: a process that is just being started shares the locks of this one for a
/// moment, which other tests would see.
#[derive(Debug)]
struct Console {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _client: Child,
}

impl Console {
    /// Runs a statement; false: it failed.
    fn run(&mut self, statement: &str) -> bool {
        let mut line = String::new();
        let asked = writeln!(self.input, "{statement};\n\\echo done").is_ok();
        asked && self.output.read_line(&mut line).is_ok() && line.trim_end() == "done"
    }
}

impl Postgres {
    /// The one that the tests of a process share, where commits do not wait for the disk; `None` after saying why there is
    /// none.
    ///
    /// # Panics
    /// If there is no PostgreSQL and all is required, or it does not start.
    #[track_caller]
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        let found = found()?;
        Some(SHARED.get_or_init(|| Self::start(found, Commits::Unsynced)))
    }

    /// A new one; `None` after saying why there is none.
    ///
    /// # Panics
    /// As [`Postgres::shared`].
    #[track_caller]
    pub fn new(commits: Commits) -> Option<Self> {
        Some(Self::start(found()?, commits))
    }

    fn start(programs: PathBuf, commits: Commits) -> Self {
        let server = Self::prepare(programs, commits);
        server.begin();
        server
    }

    /// A new one that can be reached at this port of this machine, too, by encrypted connections, for which it shows a
    /// certificate (PEM); `None` after saying why there is none.
    ///
    /// # Panics
    /// As [`Postgres::shared`], or if the port is taken.
    #[track_caller]
    pub fn encrypted(port: u16, certificate: &str, key: &str) -> Option<Self> {
        let mut server = Self::prepare(found()?, Commits::Unsynced);
        for (name, text) in [("certificate", certificate), ("key", key)] {
            let write = format!("umask 077; cat > '{}'", server.folder.join(name).display());
            let mut command = as_user(server.user, Path::new("sh"));
            let mut written = command.args(["-c", &write]).stdin(Stdio::piped()).spawn().expect("sh runs");
            let mut input = written.stdin.take().expect("it is piped");
            input.write_all(text.as_bytes()).expect("it is read");
            drop(input);
            assert!(written.wait().expect("sh ends").success());
        }
        server.port = port;
        let folder = server.folder.display();
        server.settings += &format!(
            " -c listen_addresses=127.0.0.1 -c port={port} -c ssl=on -c ssl_cert_file='{folder}/certificate' -c ssl_key_file='{folder}/key'"
        );
        server.begin();
        Some(server)
    }

    /// A server that does not run yet.
    fn prepare(programs: PathBuf, commits: Commits) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("canopy-pg-{}-{count}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder).expect("a folder for PostgreSQL");
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        // It refuses to run as root.
        let user = is_root.then(|| ["postgres", "nobody"].into_iter().find_map(|user| Some((user, id(user)?))));
        let user = user.map(|found| found.expect("root needs another user to run PostgreSQL"));
        if let Some((_, (uid, gid))) = user {
            std::os::unix::fs::chown(&folder, Some(uid), Some(gid)).expect("the folder is the server's");
        }
        let user = user.map(|(user, _)| user);
        let synced = if commits == Commits::Synced { "on" } else { "off" };
        let settings =
            format!("-k '{}' -c listen_addresses='' -c fsync={synced} -c full_page_writes={synced}", folder.display());
        let path = folder.display();
        let stop = format!(
            "read line; '{}' -D '{path}/data' -m immediate stop >/dev/null 2>&1; rm -rf '{path}'",
            programs.join("pg_ctl").display()
        );
        let mut keeper = as_user(user, Path::new("sh"));
        keeper.args(["-c", &stop]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = keeper.current_dir("/").spawn().expect("sh runs");
        let server = Self {
            programs,
            folder,
            user,
            settings,
            port: 5432,
            keeper,
            databases: AtomicU32::new(0),
            console: Mutex::new(None),
        };
        let initial = ["--no-sync", "--auth=trust", "--username=canopy", "--encoding=UTF8", "--locale=C"];
        server.run("initdb", |command| command.args(initial).arg("--pgdata").arg(server.data()));
        server
    }

    /// Starts the server, after [`Postgres::kill`].
    ///
    /// # Panics
    /// If it does not start.
    pub fn begin(&self) {
        let log = self.folder.join("log");
        let begin = || {
            self.attempt("pg_ctl", |command| {
                command.arg("--pgdata").arg(self.data()).args(["--wait", "--options", &self.settings, "--log"]);
                command.arg(&log).arg("start")
            })
        };
        // After a crash the last processes of the one before may take a moment to notice.
        let begun = (0..100).any(|attempt| {
            std::thread::sleep(std::time::Duration::from_millis(if attempt == 0 { 0 } else { 100 }));
            begin().status.success()
        });
        assert!(begun, "PostgreSQL does not start: {}", fs::read_to_string(&log).unwrap_or_default());
    }

    /// Ends all processes of the server at once, as a crash does.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&self) {
        let pid = fs::read_to_string(self.data().join("postmaster.pid")).expect("the server runs");
        let pid = pid.lines().next().expect("its first line names it").to_owned();
        // The others would end by themselves, but do what they are asked until they notice that the first one is gone.
        let others = Command::new("pgrep").args(["--parent", &pid]).output().expect("pgrep runs").stdout;
        let others = String::from_utf8(others).expect("numbers");
        // One that has just ended is no reason to complain.
        let _status = Command::new("kill").arg("-9").arg(&pid).args(others.lines()).output().expect("kill runs");
        let stat = PathBuf::from(format!("/proc/{pid}"));
        while stat.exists() && !is_dead(&stat) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// The address of a new database without anything in it.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn database(&self) -> String {
        let name = format!("canopy{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut console = self.console.lock().expect("no test ends while it has it");
        let made = console.get_or_insert_with(|| self.console()).run(&format!("create database {name}"));
        assert!(made, "{name} is made");
        format!("postgres://canopy@/{name}?host={}&port={}", self.folder.display(), self.port)
    }

    /// What the server answers to a statement in a database, a line for each row.
    ///
    /// # Panics
    /// If it refuses.
    pub fn query(&self, database: &str, statement: &str) -> String {
        self.run("psql", |command| {
            self.aim(command, database).args(["--tuples-only", "--no-align", "--command", statement])
        })
    }

    /// Has a client ask this server.
    fn aim<'a>(&self, client: &'a mut Command, database: &str) -> &'a mut Command {
        client.arg("--host").arg(&self.folder).args(["--port", &self.port.to_string(), "--username=canopy"]);
        client.args(["--no-psqlrc", "--quiet", "--dbname", database])
    }

    fn console(&self) -> Console {
        let mut command = as_user(self.user, &self.programs.join("psql"));
        self.aim(&mut command, "postgres").arg("--set=ON_ERROR_STOP=1").current_dir("/");
        let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("psql runs");
        let (input, output) = client.stdin.take().zip(client.stdout.take()).expect("they are piped");
        Console { input, output: BufReader::new(output), _client: client }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn run(&self, program: &str, arguments: impl FnOnce(&mut Command) -> &mut Command) -> String {
        let done = self.attempt(program, arguments);
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    fn attempt(&self, program: &str, arguments: impl FnOnce(&mut Command) -> &mut Command) -> Output {
        let mut command = as_user(self.user, &self.programs.join(program));
        // A server that is started goes on, and would keep a pipe open.
        let output = || if program == "pg_ctl" { Stdio::null() } else { Stdio::piped() };
        let command = arguments(&mut command).stdin(Stdio::null()).stdout(output()).stderr(output()).current_dir("/");
        command.output().expect("a program of PostgreSQL runs")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ended = self.keeper.wait();
    }
}

/// A command that another user runs, if one is named.
fn as_user(user: Option<&str>, program: &Path) -> Command {
    match user {
        None => Command::new(program),
        Some(user) => {
            let mut command = Command::new("runuser");
            command.args(["-u", user, "--"]).arg(program);
            command
        }
    }
}

/// The numbers of a user and its group.
fn id(user: &str) -> Option<(u32, u32)> {
    let number = |option: &str| {
        let said = Command::new("id").args([option, user]).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(said.stdout).ok()?.trim().parse().ok()
    };
    Some((number("-u")?, number("-g")?))
}

/// Whether a process has ended, and nobody has asked for how.
fn is_dead(process: &Path) -> bool {
    fs::read_to_string(process.join("stat"))
        .map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

/// The folder of the server's programs; `None` after saying so.
#[track_caller]
fn found() -> Option<PathBuf> {
    let found = programs();
    if found.is_none() {
        skip(&format!("there is no PostgreSQL: install it, or say in {PROGRAMS} where initdb and pg_ctl are"));
    }
    found
}

/// The folder of the server's programs, the newest version where there are several.
fn programs() -> Option<PathBuf> {
    let stated = std::env::var_os(PROGRAMS).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut installed: Vec<PathBuf> = installed.map(|version| version.path().join("bin")).collect();
    installed.sort();
    let folders = stated.into_iter().chain(std::env::split_paths(&path)).chain(installed.into_iter().rev());
    let has_all = |folder: &PathBuf| ["initdb", "pg_ctl", "psql"].iter().all(|program| folder.join(program).is_file());
    folders.into_iter().find(has_all)
}
