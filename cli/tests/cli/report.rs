//! `canopy explain --report`: one file that needs nothing else, and that a browser shows without complaint.

use std::path::Path;
use std::process::{Command, Stdio};

use canopy_prerequisites::program;

use crate::support::{Workspace, sha256};

fn written(workspace: &Workspace, arguments: &str) -> String {
    let report = workspace.json(&format!("explain {arguments} --report report.html --json"));
    assert_eq!(report["files"][0]["format"], "html");
    assert_eq!(report["files"][0]["sha256"], sha256(&workspace.path("report.html")));
    String::from_utf8(workspace.read("report.html")).unwrap()
}

#[test]
fn the_file_holds_everything_and_refers_to_nothing() {
    let workspace = Workspace::new();
    let page = written(&workspace, "torus:4x4,down=00-01 -c allgather");
    for words in [
        "<html lang=\"en\">",
        "prefers-color-scheme: dark",
        "<h1>allgather on torus:4x4,down=00-01: 16 ranks, 62 links, by forest</h1>",
        "<dt>because</dt><dd>00 must take in the shares of all others, 15/16 of the data, over",
        "<th scope=\"row\">this plan</th><td>80</td><td>80000000000</td><td>1/1</td>",
        "aria-label=\"The network with its loads\"",
        "missing (1 wire)",
        "critical path",
        "the first tree of each root",
    ] {
        assert!(page.contains(words), "`{words}` is missing from\n{page}");
    }
    assert_eq!(page.matches("<svg ").count(), 4);
    let names = page.replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<iframe", "<img", "<link"] {
        assert!(!names.contains(word), "`{word}` is in\n{page}");
    }
    let version = env!("CARGO_PKG_VERSION");
    assert!(page.contains(&format!("<p>Written by canopy {version} (commit ")) && !page.contains("<time"), "{page}");
    let command = "canopy explain torus:4x4,down=00-01 -c allgather --report report.html --json";
    assert!(page.contains(&format!("<code>{command}</code>")), "{page}");
    assert!(page == written(&workspace, "torus:4x4,down=00-01 -c allgather"), "same plan, same bytes");
    let dated = written(&workspace, "torus:4x4,down=00-01 -c allgather --date 2026-01-31");
    assert!(dated.contains("<p>Written on <time datetime=\"2026-01-31\">2026-01-31</time> by canopy"), "{dated}");
    workspace.refused("explain ring:4 -c allgather --report report.html --date today", 2, &["is not a date"]);
}

#[test]
fn what_cannot_be_drawn_is_said_in_its_place() {
    let workspace = Workspace::new();
    workspace.json("plan torus:12x12 --collective broadcast -o plan.json --json");
    let page = written(&workspace, "plan.json --size 64KiB --work-max 100000");
    assert!(page.contains("<p>Not drawn: the trees have 144 ranks, over the limit of 128 in a drawing"), "{page}");
    assert_eq!(page.matches("<svg ").count(), 3);
}

#[test]
fn names_of_nodes_are_texts() {
    let workspace = Workspace::new();
    workspace.write("hostile.yaml", HOSTILE);
    let page = written(&workspace, "hostile.yaml -c allgather --sizes 1KiB..1MiB");
    assert!(page.contains("&lt;script/x") && page.contains("&lt;/title&lt;b") && !page.contains("<script"), "{page}");
    assert!(!page.contains("\"onload") && !page.contains("</title<b"), "{page}");
}

/// `>` and `=` are in no id; a tag can begin all the same, and a name for display may hold anything.
const HOSTILE: &str = r#"
canopy: 1
name: "<script>console.error('name')</script></title><img src=x onerror=console.error('name')>"
nodes:
  - {id: "<script/x", box: "<script>console.error('box')</script>"}
  - {id: "\"onload'", box: "<script>console.error('box')</script>"}
  - {id: "</title<b", kind: switch}
links:
  - {from: "<script/x", to: "</title<b", bandwidth: 1GB/s, both: true}
  - {from: "\"onload'", to: "</title<b", bandwidth: 1GB/s, both: true}
"#;

/// Bytes of the screenshot, and what the page wrote on its console.
fn shown(browser: &Path, workspace: &Workspace, page: &str) -> (u64, Vec<String>) {
    let (shot, profile) = (workspace.path("shot.png"), workspace.path("profile"));
    let _absent = std::fs::remove_file(&shot);
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"])
        .arg("--window-size=1280,2400")
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--screenshot={}", shot.display()))
        .arg(format!("file://{}", workspace.path(page).display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let bytes = std::fs::metadata(&shot).unwrap_or_else(|error| panic!("no screenshot: {error}\n{said}")).len();
    (bytes, said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect())
}

/// A blank page's screenshot compresses to almost nothing, and a page that complains is heard to complain.
#[test]
fn a_browser_shows_it_without_complaint() {
    let Some(browser) = program("chromium") else { return };
    let workspace = Workspace::new();
    workspace.write("blank.html", "<!DOCTYPE html><title>blank</title>");
    let (blank, silence) = shown(&browser, &workspace, "blank.html");
    assert_eq!(silence, Vec::<String>::new());
    workspace.write("loud.html", "<!DOCTYPE html><title>loud</title><script>console.error('heard')</script>");
    let (_, complaint) = shown(&browser, &workspace, "loud.html");
    assert!(complaint.iter().any(|line| line.contains("heard")), "{complaint:?}");
    workspace.write("hostile.yaml", HOSTILE);
    for arguments in ["dgx-a100:boxes=2 -c allgather", "hostile.yaml -c allreduce --sizes 1KiB..1MiB"] {
        written(&workspace, arguments);
        let (bytes, complaints) = shown(&browser, &workspace, "report.html");
        assert_eq!(complaints, Vec::<String>::new(), "{arguments}");
        assert!(bytes > 5 * blank, "{arguments}: {bytes} bytes, {blank} of a blank page");
    }
}
