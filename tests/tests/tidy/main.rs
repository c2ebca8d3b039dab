//! Reads the manifests and sources and fails on what the architecture forbids.

mod crates;
mod modules;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

use canopy_tests::workspace;

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("generated") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_rust_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in [
        "crates",
        "server",
        "client",
        "cli",
        "executors",
        "proto",
        "migrations",
        "database",
        "store",
        "service",
        "wire",
        "tests",
        "benches",
    ] {
        rust_files(&workspace().join(folder), &mut files);
    }
    files
}
