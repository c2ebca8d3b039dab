//! Harness of the black-box tests: runs the real `canopy` and `canopyd` on folders of their own.
//!
//! It knows the binaries only by their command lines, exit status and output.

mod daemon;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

pub use daemon::Daemon;

/// Features with which `canopy` has all commands.
const FEATURES: &str = "canopy-cli/tools,canopy-cli/embedded";

/// Path of a binary of the workspace, built first if it is missing.
///
/// `cargo test --workspace` builds it anyway; `cargo test -p canopy-tests` does not.
///
/// # Panics
/// If the build fails.
pub fn binary(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let test_binary = env::current_exe().expect("a running test has a path");
    let profile_folder = test_binary.ancestors().nth(2).expect("tests run from target/<profile>/deps");
    let path = profile_folder.join(name);
    BUILT.get_or_init(|| {
        if profile_folder.join("canopy").exists() && profile_folder.join("canopyd").exists() {
            return;
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--locked", "-p", "canopy-cli", "-p", "canopy-server", "--features", FEATURES]);
        if profile_folder.ends_with("release") {
            build.arg("--release");
        }
        build.current_dir(workspace()).env("CARGO_TARGET_DIR", profile_folder.parent().expect("target"));
        assert!(build.status().expect("cargo starts").success(), "the binaries did not build");
    });
    path
}

/// The root of the workspace.
///
/// # Panics
/// Never: this package lies in a folder of the root.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package lies below the root")
}

/// A data folder and a working folder for one test.
pub struct Bench {
    folder: TempDir,
}

/// What a finished command left behind.
#[derive(Debug)]
pub struct Run {
    /// Exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// The object on the last line of standard output.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn json(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON on the last line ({error}): {self:?}"))
    }

    /// Asserts the exit status.
    ///
    /// # Panics
    /// If it differs.
    #[track_caller]
    pub fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        self
    }
}

impl Default for Bench {
    fn default() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder") }
    }
}

impl Bench {
    /// A file of this test's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command of the workspace, set up to use this test's data folder only.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(binary(name));
        command
            .env_remove("CANOPY_SERVER")
            .env("CANOPY_DATA_DIR", self.file("data"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs `canopy` to its end.
    ///
    /// # Panics
    /// If it can not be started.
    pub fn canopy(&self, arguments: &[&str]) -> Run {
        let output = self.command("canopy").args(arguments).output().expect("canopy starts");
        Run::from(output)
    }

    /// Plans to `name` with `--json`, asserts success and returns the reply.
    ///
    /// # Panics
    /// If planning fails.
    #[track_caller]
    pub fn plan(&self, topology: &str, collective: &str, format: &str, name: &str) -> Value {
        let path = self.file(name);
        let path = path.to_str().expect("temporary paths are text");
        self.canopy(&["plan", topology, "--collective", collective, "--format", format, "-o", path, "--json"])
            .exits(0)
            .json()
    }

    /// Verifies a file of this test's folder with `--json`, asserts success and returns the reply.
    ///
    /// # Panics
    /// If it is not accepted.
    #[track_caller]
    pub fn verify(&self, name: &str) -> Value {
        let path = self.file(name);
        let reply = self.canopy(&["verify", path.to_str().expect("text"), "--json"]).exits(0).json();
        assert_eq!(reply["ok"], Value::Bool(true), "{reply}");
        reply
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
