//! Every link of a document leads to a file and a heading that exist, and every page is in the table of contents.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use canopy_tests::workspace;

use crate::page::{Page, all_pages, pages_under};

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

fn broken(page: &Page, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = page.path.parent().expect("a file lies in a folder");
    let target = if file.is_empty() { page.path.clone() } else { plain(&folder.join(file)) };
    let said = |what: &str| Some(format!("{}: `{link}` {what}", page.name()));
    if !target.starts_with(workspace()) {
        return said("leads out of the repository");
    }
    if !target.exists() {
        return said("leads to no file");
    }
    if !anchor.is_empty()
        && target.extension().is_some_and(|extension| extension == "md")
        && !Page::read(&target).anchors().iter().any(|known| known == anchor)
    {
        return said("leads to no heading");
    }
    None
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let broken: Vec<String> =
        all_pages().iter().flat_map(|page| page.links().into_iter().filter_map(|link| broken(page, &link))).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let contents = Page::read(&workspace().join("docs/SUMMARY.md"));
    let listed: Vec<PathBuf> =
        contents.links().iter().map(|link| plain(&workspace().join("docs").join(link))).collect();
    let once: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice in docs/SUMMARY.md");
    let pages = pages_under("docs");
    let missing: Vec<String> =
        pages.iter().filter(|page| page.path != contents.path && !once.contains(&page.path)).map(Page::name).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {}", missing.join(", "));
}

#[test]
fn the_readme_is_read_in_a_few_minutes() {
    let lines = Page::read(&workspace().join("README.md")).text.lines().count();
    assert!(lines <= 150, "README.md has {lines} lines; details belong in docs/");
}
