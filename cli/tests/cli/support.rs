//! Runs the program in a folder of its own and looks at what it leaves.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A working folder with a data folder beside the files.
pub(crate) struct Workspace {
    folder: TempDir,
}

/// What one run left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Path of a file in the working folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in the working folder.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Reads a file in the working folder.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The program with these arguments, separated by white space, not started yet.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_canopy"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CANOPY_") {
                command.env_remove(name);
            }
        }
        command.args(arguments.split_whitespace()).current_dir(self.folder.path());
        command.env("CANOPY_DATA_DIR", self.path("data")).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &str) -> Run {
        Run::of(self.command(arguments).output().unwrap())
    }

    /// Runs the program, which must succeed, and returns its standard output.
    #[track_caller]
    pub(crate) fn text(&self, arguments: &str) -> String {
        let run = self.run(arguments);
        assert_eq!(run.status, Some(0), "{arguments}\n{run:?}");
        run.stdout
    }

    /// Runs the program, which must succeed, and reads the object on the last line of its standard output.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &str) -> Value {
        let run = self.run(arguments);
        assert_eq!(run.status, Some(0), "{arguments}\n{run:?}");
        run.object()
    }

    /// Runs the program, which must end with this status, nothing on standard output and these words on standard error.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &str, status: i32, words: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.status, Some(status), "{arguments}\n{run:?}");
        assert_eq!(run.stdout, "", "{arguments}: nothing on standard output");
        let is_error = |line: &str| line.starts_with("error: ");
        assert!(run.stderr.lines().any(is_error), "{arguments}\n{}", run.stderr);
        for word in words {
            assert!(run.stderr.contains(word), "{arguments}: `{word}` is missing from\n{}", run.stderr);
        }
        run
    }

    /// Names of all files in the working folder, but for the data folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path()).unwrap().map(name).collect();
        names.retain(|name| name != "data");
        names.sort();
        names
    }
}

/// A server in a process of its own, on the workspace's data folder.
pub(crate) struct Serving {
    pub(crate) child: Child,
}

impl Serving {
    pub(crate) fn on(workspace: &Workspace) -> Self {
        Self::with(workspace, "")
    }

    /// The same with further flags.
    pub(crate) fn with(workspace: &Workspace, flags: &str) -> Self {
        let mut command = workspace.command(&format!("serve --dev --listen 127.0.0.1:0 {flags}"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !workspace.path("data/canopy.sock").exists() {
            assert_eq!(child.try_wait().unwrap(), None, "the server ended");
            std::thread::yield_now();
        }
        Self { child }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Run {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The object on the last line of standard output.
    #[track_caller]
    pub(crate) fn object(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!(value["canopy"], 1, "{line}");
        value
    }
}

/// Asserts that an object has exactly these members.
#[track_caller]
pub(crate) fn check_members(object: &Value, expected: &[&str]) {
    let mut found: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{object}");
}

/// SHA-256 of a file in hexadecimal.
pub(crate) fn sha256(path: &Path) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(std::fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A network that no rank of one half can leave.
pub(crate) const DISCONNECTED: &str = "\
canopy: 1
nodes: [{id: a}, {id: b}, {id: c}]
links:
  - {from: a, to: b, bandwidth: 1GB/s, both: true}
  - {from: c, to: a, bandwidth: 1GB/s}
";

/// A switch that takes in more than it sends out.
pub(crate) const UNBALANCED: &str = "\
canopy: 1
name: funnel
nodes: [{id: a}, {id: b}, {id: c}, {id: s, kind: switch}]
links:
  - {from: a, to: s, bandwidth: 2GB/s}
  - {from: b, to: s, bandwidth: 2GB/s}
  - {from: c, to: s, bandwidth: 2GB/s}
  - {from: s, to: a, bandwidth: 1GB/s}
  - {from: s, to: b, bandwidth: 1GB/s}
  - {from: s, to: c, bandwidth: 1GB/s}
";

/// A sequence of numbers that looks random, the same for the same seed.
#[derive(Debug)]
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
