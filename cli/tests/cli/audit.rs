//! `canopy server audit verify`.

use std::fs;

use canopy_access::audit::{Chain, Entry};

use crate::support::Workspace;

/// Writes the log of five changes into two files, and gives their lines.
fn written(workspace: &Workspace) -> Vec<String> {
    let mut chain = Chain::default();
    let entry = |number| Entry { object: format!("plans/{number}"), outcome: "OK".to_owned(), ..Entry::default() };
    let lines: Vec<String> = (0..5).map(|number| chain.next_line(entry(number))).collect();
    rewrite(workspace, &lines);
    lines
}

fn rewrite(workspace: &Workspace, lines: &[String]) {
    let folder = workspace.path("audit");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("audit-000000000000001.jsonl"), lines[..2].concat()).unwrap();
    fs::write(folder.join("audit-000000000000003.jsonl"), lines[2..].concat()).unwrap();
}

#[test]
fn a_log_as_it_was_written_is_whole() {
    let workspace = Workspace::new();
    let lines = written(&workspace);
    let verified = workspace.json("audit verify audit --json");
    assert_eq!((&verified["files"], &verified["lines"], &verified["last"]), (&2.into(), &5.into(), &5.into()));
    let hash = verified["hash"].as_str().unwrap();
    assert!(lines[4].contains(hash));
    // It grows, and still holds what was seen before.
    workspace.json(&format!("audit verify audit --expect 5:{hash} --json"));
    fs::remove_file(workspace.path("audit/audit-000000000000001.jsonl")).unwrap();
    let later = workspace.json("audit verify audit --json");
    assert_eq!((&later["first"], &later["lines"], &later["hash"]), (&3.into(), &3.into(), &hash.into()));
}

#[test]
fn a_log_that_was_changed_is_refused_with_its_line() {
    let workspace = Workspace::new();
    let lines = written(&workspace);
    let end = workspace.json("audit verify audit --json");
    let expect = format!("audit verify audit --expect 5:{}", end["hash"].as_str().unwrap());
    let second = "audit-000000000000003.jsonl, line 2";
    let with = |at: usize, line: &str| [&lines[..at], &[line.to_owned()], &lines[at + 1..]].concat();
    let other = Chain::default().next_line(Entry::default());
    for (changed, words) in [
        (with(3, &lines[3].replace("plans/3", "plans/9")), [second, "it was changed"]),
        (with(3, ""), [second, "lines between them are missing"]),
        (with(3, &format!("{}\n", &lines[3][..40])), [second, "cut off or changed"]),
        (with(0, &other), ["audit-000000000000001.jsonl, line 2", "one of them was replaced"]),
    ] {
        rewrite(&workspace, &changed);
        workspace.refused("audit verify audit", 2, &words);
    }
    // Without its end it is whole by itself.
    rewrite(&workspace, &with(4, ""));
    workspace.json("audit verify audit --json");
    workspace.refused(&expect, 2, &["does not hold line 5", "its end was taken away"]);
    workspace.refused("audit verify audit --expect 5", 2, &["`5` is not NUMBER:HASH"]);
    workspace.refused("audit verify nowhere", 2, &["cannot read", "nowhere"]);
}
