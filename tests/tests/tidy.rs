//! Reads the manifests and sources and fails on what the architecture forbids.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use canopy_tests::workspace;

/// The allowed edges: `(crate, what it may use besides external crates)`.
const LAYERS: [(&str, &[&str]); 42] = [
    ("crates/direct", &["canopy-optimize"]),
    ("crates/topology", &["canopy-direct"]),
    ("crates/optimize", &[]),
    ("crates/canonical", &["canopy-topology"]),
    ("crates/import", &["canopy-topology"]),
    ("crates/faults", &["canopy-canonical", "canopy-topology"]),
    ("crates/families", &["canopy-canonical", "canopy-topology"]),
    ("crates/finder", &["canopy-direct", "canopy-optimize"]),
    ("crates/groups", &["canopy-canonical", "canopy-optimize"]),
    ("crates/job", &["canopy-groups", "canopy-optimize", "canopy-schedule", "canopy-topology"]),
    ("crates/schedule", &["canopy-topology"]),
    (
        "crates/synth",
        &[
            "canopy-canonical",
            "canopy-direct",
            "canopy-multiport",
            "canopy-optimize",
            "canopy-schedule",
            "canopy-symmetric",
            "canopy-tacos",
            "canopy-topology",
        ],
    ),
    (
        "crates/baselines",
        &["canopy-direct", "canopy-optimize", "canopy-schedule", "canopy-synth", "canopy-tacos", "canopy-topology"],
    ),
    ("crates/symmetric", &["canopy-schedule", "canopy-topology"]),
    ("crates/cost", &[]),
    ("crates/moving", &["canopy-optimize", "canopy-topology"]),
    ("crates/multiport", &["canopy-direct", "canopy-optimize"]),
    ("crates/tacos", &["canopy-optimize"]),
    ("crates/plan", &["canopy-schedule", "canopy-topology"]),
    (
        "crates/planner",
        &[
            "canopy-baselines",
            "canopy-canonical",
            "canopy-direct",
            "canopy-families",
            "canopy-faults",
            "canopy-import",
            "canopy-nccl",
            "canopy-plan",
            "canopy-schedule",
            "canopy-simulate",
            "canopy-synth",
            "canopy-topology",
        ],
    ),
    ("crates/access", &["canopy-planner", "canopy-topology"]),
    ("crates/nccl", &["canopy-schedule", "canopy-topology"]),
    ("crates/order", &["canopy-topology"]),
    ("crates/calibrate", &["canopy-schedule", "canopy-topology"]),
    ("crates/bundle", &["canopy-plan", "canopy-schedule"]),
    ("crates/advice", &["canopy-nccl", "canopy-schedule", "canopy-topology"]),
    ("crates/simulate", &["canopy-schedule", "canopy-topology"]),
    ("crates/timeline", &["canopy-schedule"]),
    ("crates/draw", &["canopy-schedule", "canopy-topology"]),
    ("crates/lab", &["canopy-schedule", "canopy-topology"]),
    ("crates/export", &["canopy-schedule", "canopy-simulate", "canopy-topology"]),
    ("proto", &[]),
    (
        "wire",
        &[
            "canopy-baselines",
            "canopy-faults",
            "canopy-import",
            "canopy-job",
            "canopy-plan",
            "canopy-planner",
            "canopy-proto",
            "canopy-schedule",
            "canopy-synth",
            "canopy-topology",
        ],
    ),
    ("store", &["canopy-migrations", "canopy-plan", "canopy-planner", "canopy-topology", "canopy-wire"]),
    (
        "service",
        &[
            "canopy-import",
            "canopy-plan",
            "canopy-planner",
            "canopy-proto",
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

/// What the modules in a folder name of each other in code, its tests apart: by module, other modules. `at` is where they are in their
/// crate, such as `crate::`.
fn module_edges(source: &Path, at: &str) -> BTreeMap<String, BTreeSet<String>> {
    let names = fs::read_dir(source).expect("a readable folder").map(|entry| entry.expect("a readable entry").path());
    let names = names.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let names = names.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned());
    let modules: BTreeSet<String> = names.filter(|name| !["lib", "main"].contains(&name.as_str())).collect();
    let edges_of = |module: &String| {
        let mut found = named_in(source, at, module);
        found.retain(|name| modules.contains(name) && name != module);
        (module.clone(), found)
    };
    modules.iter().map(edges_of).collect()
}

/// A cycle of modules, if there is one: whoever wants to read one of them has to read them all.
fn cycle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<&str>> {
    let mut left: BTreeSet<&str> = edges.keys().map(String::as_str).collect();
    // What names nothing that is left is in no cycle.
    while let Some(end) =
        left.iter().copied().find(|module| !edges[*module].iter().any(|to| left.contains(to.as_str())))
    {
        left.remove(end);
    }
    let mut way = vec![*left.first()?];
    loop {
        let last = way[way.len() - 1];
        let next = edges[last].iter().map(String::as_str).find(|to| left.contains(to)).expect("each names another one");
        if let Some(first) = way.iter().position(|module| *module == next) {
            way.push(next);
            return Some(way.split_off(first));
        }
        way.push(next);
    }
}

#[test]
fn modules_of_a_crate_form_no_cycle() {
    for folder in LAYERS.iter().map(|(folder, _)| *folder).chain(["server", "cli/commands", "store", "service"]) {
        let edges = module_edges(&workspace().join(folder).join("src"), "crate::");
        assert_eq!(cycle(&edges), None, "modules of {folder} that name each other in a circle");
    }
    for (folder, at) in [
        ("cli/commands/src/commands", "crate::commands::"),
        ("cli/commands/src/commands/toolbox", "crate::commands::toolbox::"),
        ("server/src/jobs", "crate::jobs::"),
        ("server/src/ops", "crate::ops::"),
        ("server/src/replan", "crate::replan::"),
        ("server/src/rpc", "crate::rpc::"),
        ("server/src/rpc/layers", "crate::rpc::layers::"),
        ("server/src/rpc/services", "crate::rpc::services::"),
        ("server/src/rpc/shared", "crate::rpc::shared::"),
        ("server/src/store", "crate::store::"),
    ] {
        let edges = module_edges(&workspace().join(folder), at);
        assert_eq!(cycle(&edges), None, "modules of {folder} that name each other in a circle");
    }
}

/// What is sent may change without what is planned, kept or counted: only one folder of the server knows both.
#[test]
fn only_one_folder_of_the_server_knows_the_messages() {
    let mut files = Vec::new();
    rust_files(&workspace().join("server/src"), &mut files);
    let rpc = workspace().join("server/src/rpc");
    for path in files.iter().filter(|path| !path.starts_with(&rpc) && **path != rpc.with_extension("rs")) {
        let text = fs::read_to_string(path).unwrap();
        for word in [concat!("canopy_", "proto"), concat!("v1", "::")] {
            assert!(!text.contains(word), "{} has {word}: it belongs into server/src/rpc", path.display());
        }
    }
}

#[test]
fn a_cycle_is_found() {
    let edges = |all: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
        let names = |to: &[&str]| to.iter().map(|name| (*name).to_owned()).collect();
        all.iter().map(|(from, to)| ((*from).to_owned(), names(to))).collect()
    };
    assert_eq!(cycle(&edges(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])), None);
    assert_eq!(cycle(&edges(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])])), Some(vec!["b", "c", "b"]));
    assert_eq!(first_names("{a::{b, c}, d};"), ["a", "d"]);
    assert_eq!(first_names("a::{b, c};"), ["a"]);
}

/// Modules of `crates/schedule` that say what schedules and transfer graphs are. The compiler and the checker both read them, and
/// nothing else of the crate is in common.
const SCHEDULE_TYPES: [&str; 11] = [
    "blocks",
    "collective",
    "fault",
    "forest",
    "orbits",
    "route",
    "schedule",
    "shares",
    "stages",
    "transfer",
    "weights_error",
];

/// What a module and the modules below it name by `crate::` in code: modules, or items of the crate's root.
fn names_of_own_crate(source: &Path, module: &str) -> BTreeSet<String> {
    named_in(source, "crate::", module)
}

/// What a module in a folder and the modules below it name in code of what is `at` that folder.
fn named_in(source: &Path, at: &str, module: &str) -> BTreeSet<String> {
    let mut files = vec![source.join(module).with_extension("rs")];
    let folder = source.join(module);
    if folder.is_dir() {
        rust_files(&folder, &mut files);
    }
    files.retain(|path| !path.ends_with("tests.rs") && !path.parent().is_some_and(|folder| folder.ends_with("tests")));
    let mut found = BTreeSet::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a readable module");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let depth = path.strip_prefix(source).expect("a module of the crate").components().count();
        let code = code.replace(&"super::".repeat(depth), at);
        for (start, _) in code.match_indices(at) {
            found.extend(first_names(&code[start + at.len()..]));
        }
    }
    found
}

/// What a path names first, or what each path of a list in braces does: of `{a::{b, c}, d}` these are `a` and `d`.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(list) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut depth, mut names) = (1, vec![name(list.trim_start())]);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(name(list[at + 1..].trim_start())),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// A fault of the compiler must not hide itself: the checker calls nothing that the compiler calls, and neither reaches the
/// other through what they have in common.
#[test]
fn the_checker_of_schedules_shares_no_code_with_their_compiler() {
    let source = workspace().join("crates/schedule/src");
    let types = BTreeSet::from(SCHEDULE_TYPES.map(str::to_owned));
    let beyond_types = |module: &str, own: &str| -> Vec<String> {
        let names = names_of_own_crate(&source, module);
        names.into_iter().filter(|name| !types.contains(name) && name != own).collect()
    };
    let nothing = Vec::<String>::new();
    assert_eq!(beyond_types("check", "check"), nothing, "names in the checker that are no types of schedules");
    for module in SCHEDULE_TYPES {
        assert_eq!(beyond_types(module, module), nothing, "names in {module} that are no types of schedules");
    }
    let compiler = names_of_own_crate(&source, "compile");
    assert!(compiler.contains("schedule") && !compiler.contains("check"), "the compiler uses {compiler:?}");
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

/// A skip that does not go through `canopy-prerequisites` is none that CI hears of.
#[test]
fn tests_are_skipped_in_one_place_and_none_is_ignored() {
    let one_place = workspace().join("tests/prerequisites");
    let forbidden = [concat!("\"skip", "ped: "), concat!("../", "shared"), concat!("#[ig", "nore")];
    for path in all_rust_files().iter().filter(|path| !path.starts_with(&one_place)) {
        let text = fs::read_to_string(path).unwrap();
        for word in forbidden {
            assert!(!text.contains(word), "{} has {word}: use canopy-prerequisites", path.display());
        }
    }
}

/// Looking for examples takes a second a crate: crates without any say so, and those that have some do not.
#[test]
fn examples_in_documentation_are_run() {
    for folder in LAYERS.iter().map(|(folder, _)| *folder).chain(["server"]) {
        let folder = workspace().join(folder);
        let mut files = Vec::new();
        rust_files(&folder.join("src"), &mut files);
        let has_code = files.iter().any(|path| {
            let text = fs::read_to_string(path).unwrap();
            let mut fences = text.lines().filter_map(|line| {
                let line = line.trim_start();
                line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))?.trim_start().strip_prefix("```")
            });
            // Every other one opens; code that is not named is Rust.
            std::iter::from_fn(|| fences.next().map(|opens| (opens, fences.next()))).any(|(opens, _)| opens.is_empty())
        });
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert_eq!(!manifest.contains("doctest = false"), has_code, "`doctest` in {}", folder.display());
    }
}

#[test]
fn files_stay_readable() {
    for path in all_rust_files() {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        assert!(lines <= 500, "{} has {lines} lines; split it by concept", path.display());
        let explains_itself = path.ends_with("tests.rs") || text.starts_with("//!");
        assert!(explains_itself, "{} does not open with what it is for", path.display());
    }
}

/// First line and length of each function in a source that the formatter has been over.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_word = |c: char| c.is_ascii_lowercase() || " ():_".contains(c);
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let is_head = line.split_once("fn ").is_some_and(|(before, _)| {
            before.chars().all(is_word) && (before.is_empty() || before.ends_with(' ')) && !line.ends_with('}')
        });
        let head = lines[first..].iter().position(|line| line.ends_with(['{', ';']));
        let Some(body) = head.filter(|_| is_head).map(|at| first + at) else { continue };
        if lines[body].ends_with('{') {
            let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
            let length = lines[body..].iter().position(|line| *line == end).expect("a function ends");
            found.push((first + 1, body - first + length + 1));
        }
    }
    found
}

#[test]
fn no_function_is_longer_than_70_lines() {
    let long: Vec<String> = all_rust_files()
        .iter()
        .flat_map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let long = functions(&text).into_iter().filter(|(_, lines)| *lines > 70);
            long.map(|(line, lines)| format!("{}:{line}: {lines} lines", path.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(long.is_empty(), "split by meaning:\n{}", long.join("\n"));
}

#[test]
fn functions_are_measured() {
    let text = "trait A {\n    fn a(\n        b: u8,\n    ) -> u8;\n    fn c(&self) {\n        d();\n    }\n}\n\
                pub(crate) const fn e<T>() -> T\nwhere\n    T: A,\n{\n    let f = 1;\n    f\n}\nfn g() {}\n// fn h() {\n";
    assert_eq!(functions(text), [(5, 3), (9, 7)]);
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
const PACKAGES_MAX: usize = 221;

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
