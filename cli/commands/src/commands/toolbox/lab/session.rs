//! The command's side of a lab: the helper in its namespaces, asked one thing after the other.

use std::path::PathBuf;
use std::process::Stdio;

use canopy_client::ErrorClass;
use canopy_lab::Command as LabCommand;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::inside::own_namespace;
use super::programs::text;
use super::protocol::{Reply, Request};
use crate::exit::Failure;

/// Programs that a lab needs, and the packages that have them.
const NEEDED: [(&str, &str); 7] = [
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setsid", "util-linux"),
    ("nice", "coreutils"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
];
/// Folders of programs that the search path of ordinary users may lack.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];
/// Starts a program in a session of its own, where an interrupt is not for it but for the command. A lab needs little
/// of the processors, but that in time: the kernel shares them among sessions, and root may ask for more than the usual
/// part.
const IN_TIME: &str = r#"if [ "$(id -u)" = 0 ]; then
    { echo -10 >/proc/self/autogroup; } 2>/dev/null
    exec nice -n -10 "$@"
fi
exec "$@""#;
/// Longest answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A lab, which ends when this is dropped.
pub(super) struct Session {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Whether the kernel has the congestion control that is steadiest here.
    pub(super) has_cubic: bool,
}

/// The search path with the system's folders.
fn search_path() -> std::ffi::OsString {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&own).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    std::env::join_paths(folders).unwrap_or(own)
}

/// Whether a program is on the search path.
pub(super) fn has_program(name: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(name).is_file())
}

impl Session {
    /// Enters namespaces: as an ordinary user by a user namespace; as root, where these are forbidden, without one.
    ///
    /// # Errors
    /// Programs that are missing, and systems that do not allow it.
    pub(super) async fn start() -> Result<Self, Failure> {
        for (program, package) in NEEDED {
            if !has_program(program) {
                return Err(Failure::new(ErrorClass::Infeasible, format!("a lab needs `{program}`, which is missing"))
                    .help(format!("install the package {package}")));
            }
        }
        let as_user = ["--user", "--map-root-user"];
        match Self::enter(&as_user).await {
            Err(_) if rustix::process::geteuid().is_root() => Self::enter(&[]).await,
            entered => entered,
        }
    }

    async fn enter(more: &[&str]) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| Failure::fault(format!("cannot start a lab: {error}"));
        let program = std::env::current_exe().map_err(cannot)?;
        let (net, mnt) = (own_namespace("net").map_err(cannot)?, own_namespace("mnt").map_err(cannot)?);
        let mut child = Command::new("setsid")
            .env("PATH", search_path())
            .args(["sh", "-c", IN_TIME, "sh", "unshare"])
            .args(more)
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--"])
            .arg(program)
            .args(["lab-inside", &net, &mnt])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or_else(|| Failure::fault("a lab without pipes"))?;
        let mut session = Self { child, to, from: BufReader::new(from), has_cubic: false };
        match session.hear().await? {
            Some(Reply::Inside { has_cubic }) => session.has_cubic = has_cubic,
            Some(reply) => return Err(refused(reply)),
            None => return Err(session.not_allowed().await),
        }
        Ok(session)
    }

    /// Runs commands.
    pub(super) async fn commands(&mut self, commands: Vec<LabCommand>) -> Result<(), Failure> {
        match self.ask(&Request::Commands(commands)).await? {
            Reply::Done => Ok(()),
            reply => Err(refused(reply)),
        }
    }

    /// Asks the helper for something.
    ///
    /// # Errors
    /// It cannot be done.
    pub(super) async fn ask(&mut self, request: &Request) -> Result<Reply, Failure> {
        let mut line = serde_json::to_vec(request).map_err(|error| Failure::fault(error.to_string()))?;
        line.push(b'\n');
        let written = self.to.write_all(&line).await;
        match self.hear().await? {
            Some(reply @ Reply::Failed { .. }) => Err(refused(reply)),
            Some(reply) => Ok(reply),
            None => {
                let said = self.said().await;
                let why = written.err().map_or(said, |error| error.to_string());
                Err(Failure::fault(format!("the lab ended early: {why}")))
            }
        }
    }

    async fn hear(&mut self) -> Result<Option<Reply>, Failure> {
        let broken = |error: std::io::Error| Failure::fault(format!("the lab cannot be heard: {error}"));
        let mut line = Vec::new();
        (&mut self.from).take(ANSWER_BYTES_MAX).read_until(b'\n', &mut line).await.map_err(broken)?;
        if line.last() != Some(&b'\n') {
            return Ok(None);
        }
        serde_json::from_slice(&line).map(Some).map_err(|error| broken(error.into()))
    }

    /// What it said on standard error at its end.
    async fn said(&mut self) -> String {
        let mut said = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _read = stderr.take(4096).read_to_end(&mut said).await;
        }
        text(&said)
    }

    /// Why the system did not let it in.
    async fn not_allowed(&mut self) -> Failure {
        let said = self.said().await;
        Failure::new(ErrorClass::Infeasible, format!("the system allows no namespaces: {said}")).help(
            "run as root, or allow user namespaces: sysctl user.max_user_namespaces above 0, \
             kernel.unprivileged_userns_clone=1 on Debian, kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu; \
             in a container, also its seccomp profile",
        )
    }
}

/// What the helper says of a request that was not done.
pub(super) fn refused(reply: Reply) -> Failure {
    match reply {
        Reply::Failed { message, help } => {
            let failure = Failure::new(ErrorClass::Infeasible, message);
            help.map_or(failure.clone(), |help| failure.help(help))
        }
        other => Failure::fault(format!("the lab answers what was not asked: {other:?}")),
    }
}
