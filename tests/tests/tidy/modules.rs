//! Modules that name each other in a circle, and modules that may not name each other at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use canopy_tests::workspace;

use crate::crates::LAYERS;
use crate::rust_files;

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

/// Folders of modules in a folder, itself first, each with what it is `at`.
fn module_folders(folder: &Path, at: &str, found: &mut Vec<(PathBuf, String)>) {
    found.push((folder.to_owned(), at.to_owned()));
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "bin", "generated"].contains(&name.as_str()) {
            module_folders(&path, &format!("{at}{name}::"), found);
        }
    }
}

#[test]
fn modules_form_no_circles() {
    let mut folders = Vec::new();
    let others = ["server", "cli", "cli/commands", "cli/tools", "benches", "tests", "tests/prerequisites"];
    for folder in LAYERS.iter().map(|(folder, _)| *folder).chain(others) {
        let source = workspace().join(folder).join("src");
        if source.is_dir() {
            module_folders(&source, "crate::", &mut folders);
        }
    }
    assert!(folders.len() > 200, "{}", folders.len());
    let circles = folders.iter().filter_map(|(folder, at)| {
        let edges = module_edges(folder, at);
        Some((folder.strip_prefix(workspace()).unwrap_or(folder), cycle(&edges)?.join(" → ")))
    });
    let circles: Vec<(&Path, String)> = circles.collect();
    assert!(circles.is_empty(), "modules that name each other in a circle: {circles:#?}");
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
