//! What a test needs from the machine and may not find: programs, and real samples beside the checkout.
//!
//! The one place where a test is skipped. Someone who has just cloned the repository reads why; where [`REQUIRE_ALL`] is
//! set, as in CI, a test that would be skipped fails.

mod postgres;

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use postgres::{Commits, PROGRAMS, Postgres};

/// The environment variable that makes every skip a failure, unless it is empty or `0`.
pub const REQUIRE_ALL: &str = "CANOPY_REQUIRE_ALL";

/// Samples of a format, such as `mscclpp` or `nccl-topo`: a folder or a file beside the checkout; `None` after saying so.
///
/// # Panics
/// If they are absent and all is required, or if the folder of the format is there and the file is not.
#[track_caller]
pub fn samples(path: &str) -> Option<PathBuf> {
    beside("formats/samples", path)
}

/// Small networks whose optima other programs computed, beside the checkout; `None` after saying so.
///
/// # Panics
/// If they are absent and all is required.
#[track_caller]
pub fn known_networks() -> Option<PathBuf> {
    beside("oracle", "")
}

/// Reduced files of users with the right answers, beside the checkout; `None` after saying so.
///
/// # Panics
/// If they are absent and all is required.
#[track_caller]
pub fn real_cases() -> Option<PathBuf> {
    beside("real-cases", "")
}

/// A program on the search path; `None` after saying so.
///
/// # Panics
/// If it is absent and all is required.
#[track_caller]
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file());
    if found.is_none() {
        skip(&format!("there is no {name} on the search path: install it"));
    }
    found
}

/// Whether a compiler of C on the search path finds a header; says so if not.
///
/// # Panics
/// If it does not and all is required.
#[track_caller]
pub fn compiler_with(compiler: &str, header: &str) -> bool {
    let arguments = ["-fsyntax-only", "-include", header, "-x", "c", "/dev/null"];
    let found = Command::new(compiler).args(arguments).output().is_ok_and(|found| found.status.success());
    if !found {
        skip(&format!("no {compiler} on the search path finds {header}: install both"));
    }
    found
}

/// A Python that has a module; `None` after saying so.
///
/// # Panics
/// If there is none and all is required.
#[track_caller]
pub fn python_with(module: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let pythons = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    let has_module = |python: &PathBuf| {
        let found = Command::new(python).args(["-c", &format!("import {module}")]).output();
        found.is_ok_and(|found| found.status.success())
    };
    let found = pythons.filter(|python| python.is_file()).find(has_module);
    if found.is_none() {
        skip(&format!("no python3 on the search path has {module}: install it"));
    }
    found
}

/// Whether this process may start others as other users. Says so if not.
///
/// # Panics
/// If it may not and all is required.
#[track_caller]
pub fn is_root() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root {
        skip("only root can be another user");
    }
    is_root
}

/// Whether processes may have networks of their own with links of limited rate: as root, or by user namespaces. Says so if not.
///
/// # Panics
/// If they may not and all is required.
#[track_caller]
pub fn has_network_namespaces() -> bool {
    const LINK: &str = "ip link add name v0 type veth peer name v1 && \
                        tc qdisc add dev v0 root tbf rate 1mbit burst 9300 limit 99999";
    let spaces = ["--net", "--mount", "--pid", "--fork", "--kill-child"];
    let mut reason = String::new();
    for user in [&["--user", "--map-root-user"][..], &[]] {
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        let tried = Command::new("unshare").env("PATH", path).args(user).args(spaces).args(["sh", "-c", LINK]).output();
        reason = match tried {
            Ok(output) if output.status.success() => return true,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("unshare: {error}"),
        };
    }
    skip(&format!("there are no network namespaces: {reason}"));
    false
}

/// A file system of its own, taken away when this is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts one of so many mebibytes on a folder; `None` after saying so.
    ///
    /// # Panics
    /// If this process may not mount and all is required.
    #[track_caller]
    pub fn on(folder: &Path, mebibytes: u32) -> Option<Self> {
        let options = format!("size={mebibytes}m,mode=700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder).output();
        let reason = match mounted {
            Ok(output) if output.status.success() => return Some(Self { folder: folder.to_owned() }),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        skip(&format!("no small disk can be mounted: {reason}"));
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Of a folder that is still in use, the files go with whoever uses them.
        let _unmounted = Command::new("umount").arg("-l").arg(&self.folder).status();
    }
}

#[track_caller]
fn beside(folder: &str, path: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder);
    if !root.is_dir() {
        skip(&format!("there are no samples at {}", root.display()));
        return None;
    }
    let found = root.join(path);
    assert!(found.exists(), "{} is missing among the samples", found.display());
    Some(found)
}

/// Says why the calling test ends here.
#[track_caller]
#[expect(clippy::print_stdout, reason = "a skipped test says why")]
fn skip(reason: &str) {
    assert!(!is_set(std::env::var_os(REQUIRE_ALL).as_deref()), "{reason}; {REQUIRE_ALL} is set, so this is a failure");
    println!("skipped: {reason}");
}

fn is_set(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}
