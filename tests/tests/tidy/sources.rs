//! How sources are written: their length, their examples, their skips.

use std::fs;

use canopy_tests::workspace;

use crate::crates::LAYERS;
use crate::{all_rust_files, rust_files};

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
