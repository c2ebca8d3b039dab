//! What crates may use of each other, what they are built of, and where that is drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use canopy_tests::workspace;

use crate::rust_files;

/// The allowed edges: `(crate, what it may use besides external crates)`.
pub(crate) const LAYERS: [(&str, &[&str]); 34] = [
    ("crates/direct", &["canopy-optimize"]),
    ("crates/topology", &["canopy-direct"]),
    ("crates/optimize", &[]),
    ("crates/canonical", &["canopy-topology"]),
    ("crates/import", &["canopy-topology"]),
    ("crates/faults", &["canopy-canonical", "canopy-topology"]),
    ("crates/training", &["canopy-canonical", "canopy-optimize", "canopy-schedule", "canopy-topology"]),
    ("crates/schedule", &["canopy-topology"]),
    (
        "crates/synth",
        &["canopy-canonical", "canopy-direct", "canopy-optimize", "canopy-schedule", "canopy-tacos", "canopy-topology"],
    ),
    (
        "crates/baselines",
        &["canopy-direct", "canopy-optimize", "canopy-schedule", "canopy-synth", "canopy-tacos", "canopy-topology"],
    ),
    ("crates/design", &["canopy-direct", "canopy-optimize"]),
    ("crates/moving", &["canopy-optimize", "canopy-topology"]),
    ("crates/tacos", &["canopy-optimize"]),
    ("crates/plan", &["canopy-schedule", "canopy-topology"]),
    (
        "crates/planner",
        &[
            "canopy-baselines",
            "canopy-canonical",
            "canopy-direct",
            "canopy-faults",
            "canopy-import",
            "canopy-plan",
            "canopy-schedule",
            "canopy-simulate",
            "canopy-stock",
            "canopy-synth",
            "canopy-topology",
        ],
    ),
    ("crates/access", &["canopy-planner", "canopy-topology"]),
    ("crates/stock", &["canopy-schedule", "canopy-topology"]),
    ("crates/order", &["canopy-topology"]),
    ("crates/calibrate", &["canopy-schedule", "canopy-topology"]),
    ("crates/bundle", &["canopy-plan", "canopy-schedule"]),
    ("crates/simulate", &["canopy-schedule", "canopy-topology"]),
    ("crates/draw", &["canopy-schedule", "canopy-topology"]),
    ("crates/lab", &["canopy-schedule", "canopy-topology"]),
    ("proto", &[]),
    (
        "wire",
        &[
            "canopy-baselines",
            "canopy-faults",
            "canopy-import",
            "canopy-plan",
            "canopy-planner",
            "canopy-proto",
            "canopy-schedule",
            "canopy-synth",
            "canopy-topology",
            "canopy-training",
        ],
    ),
    ("store", &["canopy-migrations", "canopy-plan", "canopy-planner", "canopy-topology", "canopy-wire"]),
    (
        "service",
        &[
            "canopy-baselines",
            "canopy-bundle",
            "canopy-canonical",
            "canopy-faults",
            "canopy-import",
            "canopy-plan",
            "canopy-planner",
            "canopy-proto",
            "canopy-schedule",
            "canopy-simulate",
            "canopy-stock",
            "canopy-store",
            "canopy-synth",
            "canopy-topology",
            "canopy-wire",
        ],
    ),
    ("client", &["canopy-proto"]),
    ("migrations", &[]),
    ("server/allocator", &[]),
    ("database", &["canopy-migrations"]),
    ("executors/mpi", &["canopy-plan", "canopy-schedule", "canopy-topology"]),
    ("executors/mpi/mpich", &["canopy-mpi"]),
    ("executors/mpi/open-mpi", &["canopy-mpi"]),
];

/// External crates that bring I/O, clocks or a runtime: not for library crates.
const IMPURE: [&str; 8] = ["tokio", "tonic", "sled", "tracing", "tempfile", "indicatif", "prost", "clap"];

/// Names of the packages in the `[dependencies]` section of a manifest.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(manifest).expect("a readable manifest");
    text.lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn dependencies_point_one_way() {
    for (folder, allowed) in LAYERS {
        for name in dependencies(&workspace().join(folder).join("Cargo.toml")) {
            let own = name.starts_with("canopy-");
            assert!(!own || allowed.contains(&name.as_str()), "{folder} must not depend on {name}");
            let library = folder.starts_with("crates/");
            assert!(!library || !IMPURE.contains(&name.as_str()), "{folder} is pure and must not depend on {name}");
            let is_local = ["store", "service"].contains(&folder);
            let is_network = ["tokio", "tonic", "hyper", "canopy-client", "canopy-database"].contains(&name.as_str());
            assert!(!is_local || !is_network, "{folder} knows no calls and must not depend on {name}");
        }
    }
}

/// What stands before and behind the table of edges in the document that newcomers read.
const EDGES_DRAWN: [&str; 2] = ["<!-- edges: made by the tidy test -->\n", "<!-- end of edges -->"];

/// `CANOPY_APPROVE=1` writes the table anew.
#[test]
fn the_edges_that_are_allowed_are_those_that_are_drawn() {
    let path = workspace().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).expect("a readable document");
    let name = |folder: &'static str| folder.rsplit('/').next().unwrap_or(folder);
    let row = |(folder, uses): &(&'static str, &[&str])| {
        let uses: Vec<String> = uses.iter().map(|name| format!("`{}`", name.trim_start_matches("canopy-"))).collect();
        let uses = if uses.is_empty() { "nothing".to_owned() } else { uses.join(", ") };
        format!("| `{}` | {uses} |\n", name(folder))
    };
    let rows: String = LAYERS.iter().map(row).collect();
    let drawn = format!("| crate | uses |\n|---|---|\n{rows}");
    let [before, behind] = EDGES_DRAWN;
    let (head, rest) = text.split_once(before).expect("the table has a beginning");
    let (found, tail) = rest.split_once(behind).expect("the table has an end");
    if found != drawn && std::env::var_os("CANOPY_APPROVE").is_some() {
        fs::write(&path, format!("{head}{before}{drawn}{behind}{tail}")).expect("a writable document");
        return;
    }
    assert_eq!(found, drawn, "run the test with CANOPY_APPROVE=1 to draw the edges anew");
}

#[test]
fn library_crates_touch_no_clock_file_or_environment() {
    let forbidden = ["std::fs", "std::net", "std::env::", "std::time", "std::process", "println!", "eprintln!"];
    let mut files = Vec::new();
    for (folder, _) in LAYERS.iter().filter(|(folder, _)| folder.starts_with("crates/")) {
        rust_files(&workspace().join(folder).join("src"), &mut files);
    }
    assert!(files.len() > 20);
    for path in files.iter().filter(|path| !path.to_string_lossy().contains("tests")) {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in forbidden {
            assert!(!code.contains(word), "{} uses {word}", path.display());
        }
    }
}

/// Whoever follows a request by the page opens these files.
#[test]
fn files_that_the_architecture_names_exist() {
    let text = fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let named = text.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs"));
    let missing: Vec<&str> = named.filter(|word| !workspace().join(word).is_file()).collect();
    assert!(missing.is_empty(), "{missing:?}: name files from the root of the repository");
}

/// Packages that `cargo run` compiles from a fresh clone, before the first plan.
const PACKAGES_MAX: usize = 215;

#[test]
fn the_command_alone_is_built_of_few_packages() {
    let listing = ["tree", "--locked", "--offline", "-p", "canopy-cli", "-e", "normal,build", "--prefix", "none"];
    let output = Command::new(env!("CARGO")).args(listing).current_dir(workspace()).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("names of packages");
    let packages: BTreeSet<&str> = text.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    assert!(
        packages.len() <= PACKAGES_MAX,
        "canopy-cli is built of {} packages, more than {PACKAGES_MAX}: put what planning does not need behind a feature of \
        canopy-commands; `cargo {}` lists them",
        packages.len(),
        listing.join(" ")
    );
}

/// Packages that a build selects with these arguments, with their features.
fn features(selected: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let listing = ["tree", "--locked", "--offline", "-e", "normal,build", "--prefix", "none", "-f", "{p}\t{f}"];
    let output = Command::new(env!("CARGO")).args(listing).args(selected).current_dir(workspace()).output();
    let output = output.expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("names of packages");
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (package, features) = line.trim_end_matches(" (*)").split_once('\t').expect("a package and its features");
        found.entry(package.trim_end_matches(" (proc-macro)").to_owned()).or_default().insert(features.to_owned());
    }
    found
}

/// The command alone and the packages with all commands are built one after the other, and the planner takes most of the
/// time.
#[test]
fn the_planner_is_compiled_once_for_both_builds() {
    let lean = features(&["-p", "canopy-cli"]);
    let all = "canopy-cli/tools,canopy-cli/embedded";
    let complete = features(&["-p", "canopy-cli", "-p", "canopy-server", "--features", all]);
    for package in features(&["-p", "canopy-planner"]).keys() {
        assert_eq!(
            lean.get(package),
            complete.get(package),
            "{package} has other features in packages: ask for them in canopy-commands, too"
        );
    }
}

#[test]
fn the_image_is_built_of_every_member() {
    let read = |name: &str| fs::read_to_string(workspace().join(name)).unwrap();
    let (image, shown) = (read("Dockerfile"), read(".dockerignore"));
    let manifest = read("Cargo.toml");
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    // Cargo reads the manifests of all members, whichever it builds.
    for member in members.split('"').skip(1).step_by(2) {
        let folder = member.split('/').next().unwrap();
        assert!(image.contains(&format!("\nCOPY {folder} {folder}\n")), "Dockerfile does not copy {folder}");
        assert!(shown.contains(&format!("\n!{folder}\n")), ".dockerignore hides {folder}");
    }
}
