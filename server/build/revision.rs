//! What a program was built from. Shared by the build scripts of the server and of the command.

use std::env;
use std::path::Path;
use std::process::Command;

/// Sets CANOPY_BUILD_REVISION and CANOPY_BUILD_RUSTC for the crate that is built. `root`: the folder of the workspace, as that
/// crate's folder names it.
pub(crate) fn tell_cargo(root: &str) {
    println!("cargo:rerun-if-changed={root}/server/build/revision.rs");
    // An image is built without the history, and is told.
    println!("cargo:rerun-if-env-changed=CANOPY_REVISION");
    let history = Path::new(root).join(".git/logs/HEAD");
    if history.exists() {
        println!("cargo:rerun-if-changed={}", history.display());
    }
    let told = env::var("CANOPY_REVISION").ok().filter(|revision| is_plain(revision));
    let revision = told.or_else(|| output("git", &["rev-parse", "--short=12", "HEAD"]));
    println!("cargo:rustc-env=CANOPY_BUILD_REVISION={}", revision.as_deref().unwrap_or("unknown"));
    let compiler = env::var("RUSTC").ok().and_then(|rustc| output(&rustc, &["--version"]));
    // `rustc 1.95.0 (59807616e 2026-04-14)`: the number is enough.
    let version = compiler.as_deref().and_then(|text| text.split(' ').nth(1)).filter(|version| is_plain(version));
    println!("cargo:rustc-env=CANOPY_BUILD_RUSTC={}", version.unwrap_or("unknown"));
}

/// What a program prints, if it can be run and is content.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Whether a text can stand in a label as it is.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+');
    !text.is_empty() && text.len() <= 64 && text.bytes().all(plain)
}
