//! Words and phrases that nobody uses in the field do not occur where a person reads: in documents, in the API's
//! comments, in messages, help texts and metrics.

use std::fs;
use std::path::PathBuf;

use canopy_tests::workspace;
use regex::Regex;

use crate::page::all_pages;

/// What not to write, and what to write instead.
const TICS: [(&str, &str); 24] = [
    (r"how-manieth", "its index"),
    (r"\bprecious\b", "say what would be lost"),
    (r"\bof (then|none|anybody|whoever)\b", "name the thing"),
    (r"\bwhoever\b", "name who"),
    (r"\bwhat becomes of\b", "say what happens"),
    (r"\bso that \w+ is there\b", "say what it is for"),
    (r"\bis none\b|\bare none\b", "is not one; there is no …"),
    (r"\bmade of\b", "consists of, built from"),
    (r"\blacking\b|\blacks\b", "missing"),
    (r"\bsound (network|link|topology|device|one)s?\b", "healthy"),
    (r"\bstands? in for\b|\bstand-in\b", "provisional"),
    (r"\bis told\b|\bare told\b|\btold of\b", "is notified"),
    (r"\b(desk|docket|scribe|telescope)s?\b", "the field's word"),
    (r"\bin the course of\b", "during"),
    (r"\bso many\b|\bas many as\b", "k"),
    (r"\bthat which\b", "the thing itself"),
    (r"\bnone:", "`none` if …"),
    (r"\bnobody\b|\banybody\b", "say who"),
    (r"\bby the looks\b|\bby their looks\b", "by structure"),
    (r"\bwhat is (made|asked|sent|kept|known|broken|there|not|left|cached|read) ", "name the thing"),
    (r"\bis no (family|network|rank|topology|plan|collective|format|profile)\b", "unknown …, not a …"),
    (r"\bno longer there\b|\bor no more\b", "expired"),
    (r"\bthere is no such\b", "unknown …"),
    (r"\bworth mention", "say how much"),
];

/// A place where a person reads something: where it is, and the text.
struct Text {
    place: String,
    text: String,
}

fn documents() -> Vec<Text> {
    all_pages().iter().map(|page| Text { place: page.name(), text: page.prose() }).collect()
}

fn files(folders: &[&str], extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| workspace().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace").flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && !["tests", "target", "benches", "generated"].iter().any(|skipped| name == *skipped) {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) && name != "tests.rs" {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn comments_of_the_api() -> Vec<Text> {
    let texts = files(&["proto"], "proto").into_iter().map(|path| {
        let text = fs::read_to_string(&path).expect("a source");
        let comments = text.lines().filter_map(|line| line.trim().strip_prefix("//")).map(str::trim);
        Text { place: path.display().to_string(), text: comments.collect::<Vec<_>>().join("\n") }
    });
    texts.collect()
}

/// Literals of the sources with a blank in them, tests apart: messages, warnings, help of metrics.
fn messages() -> Vec<Text> {
    let literal = Regex::new(r#""((?:[^"\\]|\\.)*)""#).expect("a pattern");
    let broken = Regex::new(r"\\\n\s*").expect("a pattern");
    let folders = ["crates", "server", "wire", "client", "cli", "migrations", "database"];
    let texts = files(&folders, "rs").into_iter().map(|path| {
        let source = fs::read_to_string(&path).expect("a source");
        let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let lines: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let joined = lines.join("\n");
        let said: Vec<String> = literal
            .captures_iter(&joined)
            .map(|found| broken.replace_all(&found[1], "").into_owned())
            .filter(|said| said.contains(' ') && !said.contains('\n'))
            .collect();
        Text { place: path.display().to_string(), text: said.join("\n") }
    });
    texts.collect()
}

/// Help texts: the reference of commands is made of them.
fn help() -> Vec<Text> {
    let path = workspace().join("docs/reference/cli.md");
    vec![Text { place: "docs/reference/cli.md".to_owned(), text: fs::read_to_string(path).expect("the reference") }]
}

fn found_in(texts: &[Text]) -> Vec<String> {
    let tics: Vec<(Regex, &str)> =
        TICS.iter().map(|(tic, instead)| (Regex::new(&format!("(?i){tic}")).expect("a pattern"), *instead)).collect();
    let mut found = Vec::new();
    for text in texts {
        for line in text.text.lines() {
            for (tic, instead) in &tics {
                if let Some(at) = tic.find(line) {
                    found.push(format!("{}: `{}` (write: {instead}): {line}", text.place, at.as_str()));
                }
            }
        }
    }
    found
}

#[track_caller]
fn assert_plain(texts: &[Text]) {
    assert!(texts.iter().any(|text| !text.text.is_empty()), "nothing was read");
    let found = found_in(texts);
    assert!(found.is_empty(), "{} places\n{}", found.len(), found.join("\n"));
}

#[test]
fn documents_are_plain() {
    assert_plain(&documents());
}

#[test]
fn the_apis_comments_are_plain() {
    assert_plain(&comments_of_the_api());
}

#[test]
fn messages_are_plain() {
    assert_plain(&messages());
}

#[test]
fn help_is_plain() {
    assert_plain(&help());
}

#[test]
fn a_tic_is_found() {
    let text = Text { place: "here".to_owned(), text: "the how-manieth of its ranks".to_owned() };
    assert_eq!(found_in(&[text]).len(), 1);
}
