//! Texts that a person has reviewed.

use std::path::Path;
use std::{env, fs};

/// Compares with `tests/approved/<name>`. `CANOPY_APPROVE=1` writes it instead; review the diff as code.
#[track_caller]
pub(crate) fn check_approved(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/approved").join(name);
    if env::var_os("CANOPY_APPROVE").is_some() {
        return fs::write(&path, actual).unwrap();
    }
    let approved = fs::read_to_string(&path).unwrap_or_default();
    assert!(approved == actual, "{name} changed; if intended, rerun with CANOPY_APPROVE=1\n{actual}");
}
