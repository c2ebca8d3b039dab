//! Imported networks, as text a person reviews.

use std::path::Path;
use std::{env, fs};

use canopy_import::read;
use canopy_topology::{TopologyLimits, to_yaml};

/// Compares with `tests/approved/<name>`. `CANOPY_APPROVE=1` writes it instead; review the diff as code.
#[track_caller]
fn check_approved(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/approved").join(name);
    if env::var_os("CANOPY_APPROVE").is_some() {
        return fs::write(&path, actual).expect("the folder of approved files is writable");
    }
    let approved = fs::read_to_string(&path).unwrap_or_default();
    assert!(approved == actual, "{name} changed; if intended, rerun with CANOPY_APPROVE=1\n{actual}");
}

/// What importing leaves out is said, and what it keeps is an ordinary document.
#[test]
fn an_imported_host_as_text() {
    let imported = read(include_bytes!("../data/h100-host.xml"), None, &TopologyLimits::STANDARD).unwrap();
    let warnings: String =
        imported.report.understood.iter().chain(imported.report.warnings()).map(|line| format!("# {line}\n")).collect();
    check_approved("h100-host.yaml", &(warnings + &to_yaml(&imported.topology)));
}
