//! Pages of the documents as their reader sees them: headings, links, fenced blocks.

use std::fs;
use std::path::{Path, PathBuf};

use canopy_tests::workspace;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A Markdown file of the repository.
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A fenced block: its language and the bytes of its content in the text of the page.
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) content: String,
    pub(crate) range: std::ops::Range<usize>,
}

impl Page {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path: path.to_owned(), text }
    }

    /// Its path from the root of the repository.
    pub(crate) fn name(&self) -> String {
        self.path.strip_prefix(workspace()).expect("a page of the repository").display().to_string()
    }

    fn events(&self) -> impl Iterator<Item = (Event<'_>, std::ops::Range<usize>)> {
        Parser::new_ext(&self.text, Options::ENABLE_TABLES).into_offset_iter()
    }

    /// Targets of all links and images.
    pub(crate) fn links(&self) -> Vec<String> {
        self.events()
            .filter_map(|(event, _)| match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.into_string()),
                _ => None,
            })
            .collect()
    }

    /// Anchors of its headings, as GitHub and mdBook make them.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let mut anchors = Vec::new();
        let mut heading: Option<String> = None;
        for (event, _) in self.events() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|text| anchor(&text))),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        anchors
    }

    /// Its fenced blocks, in order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut inside = false;
        for (event, range) in self.events() {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    blocks.push(Block {
                        language: language.into_string(),
                        content: String::new(),
                        range: range.start..range.start,
                    });
                    inside = true;
                }
                Event::End(TagEnd::CodeBlock) => inside = false,
                Event::Text(text) if inside => {
                    let block = blocks.last_mut().expect("text of a block follows its start");
                    if block.content.is_empty() {
                        block.range = range.clone();
                    }
                    block.range.end = range.end;
                    block.content.push_str(&text);
                }
                _ => {}
            }
        }
        blocks
    }

    /// Its prose: all text outside fenced blocks and code in a line, a line each.
    pub(crate) fn prose(&self) -> String {
        let mut prose = String::new();
        let mut fenced = false;
        for (event, _) in self.events() {
            match event {
                Event::Start(Tag::CodeBlock(_)) => fenced = true,
                Event::End(TagEnd::CodeBlock) => fenced = false,
                Event::Text(text) if !fenced => prose.push_str(&text),
                Event::SoftBreak => prose.push(' '),
                Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell | TagEnd::Heading(_)) => {
                    prose.push('\n')
                }
                _ => {}
            }
        }
        prose
    }
}

/// Lower case, blanks as hyphens, everything else that is no letter, digit, `-` or `_` left out.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

/// Every Markdown file under `folder` of the repository, sorted.
pub(crate) fn pages_under(folder: &str) -> Vec<Page> {
    let mut found = Vec::new();
    let mut folders = vec![workspace().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found.iter().map(|path| Page::read(path)).collect()
}

/// The documents beside the folder `docs`.
pub(crate) fn pages_outside() -> Vec<Page> {
    let names = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "deploy/README.md",
        "client/python/README.md",
        "benches/simgrid/README.md",
    ];
    names.iter().map(|name| Page::read(&workspace().join(name))).collect()
}

/// All documents of the repository.
pub(crate) fn all_pages() -> Vec<Page> {
    let mut pages = pages_under("docs");
    pages.extend(pages_outside());
    pages
}
