//! Codes of terminals, and what web pages and chats put around a text: entities, tags, fences, quotes and indentation.

use std::borrow::Cow;

use super::{Lines, is_blank};

/// Elements of web pages that stand around a text. None of them is one of a file that is read.
const ELEMENTS: [&str; 10] = ["details", "summary", "pre", "code", "p", "br", "div", "span", "blockquote", "samp"];

/// Letters of an element's name that are looked at: more than the longest has.
const NAME_MAX: usize = 12;
/// Most quotes within each other.
const QUOTES_MAX: usize = 8;

/// Entities of web pages.
const ENTITIES: [(&str, &str); 7] =
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")];

/// Characters that nobody sees. Web pages put them where a line may break.
fn is_unseen(c: char) -> bool {
    matches!(c, '\0' | '\u{8}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// The text without characters that nobody sees. O(bytes).
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if text.contains(is_unseen) { Cow::Owned(text.replace(is_unseen, "")) } else { Cow::Borrowed(text) }
}

/// The text without codes of terminals, unseen characters and line ends of other systems. O(bytes).
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            // A carriage return alone ends a line, too.
            '\r' if rest.peek() != Some(&'\n') => plain.push('\n'),
            '\r' => {}
            _ if is_unseen(c) => {}
            '\u{a0}' | '\u{2007}' | '\u{202f}' => plain.push(' '),
            '\u{201c}' | '\u{201d}' => plain.push('"'),
            _ => plain.push(c),
        }
    }
    plain
}

/// Resolves entities if they stand for the marks of the text: XML has its own, but then it has more marks than them.
fn resolve(lines: &mut Lines<'_>) {
    let counts = |mark: &str| lines.iter().map(|line| line.matches(mark).count()).sum::<usize>();
    let is_escaped = |entity, mark| counts(entity) > counts(mark);
    if !is_escaped("&lt;", "<") && !is_escaped("&quot;", "\"") && !is_escaped("&gt;", ">") {
        return;
    }
    for line in lines.iter_mut().filter(|line| line.contains('&')) {
        let resolved = ENTITIES.iter().fold(line.to_string(), |line, (entity, mark)| line.replace(entity, mark));
        *line = Cow::Owned(resolved);
    }
}

/// Passes over `[4m`, a title that ends with a bell, or one letter.
fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.next() {
        Some('[') => while rest.next().is_some_and(|c| !matches!(c, '@'..='~')) {},
        Some(']') => while rest.next().is_some_and(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\n')) {},
        Some('(') => drop(rest.next()),
        _ => {}
    }
}

/// Removes tags and entities of web pages, and quotes.
pub(super) fn unwrap(lines: &mut Lines<'_>) {
    for line in lines.iter_mut().filter(|line| line.contains('<')) {
        if let Some(plain) = untagged(line) {
            *line = Cow::Owned(plain);
        }
    }
    resolve(lines);
    unquote(lines);
}

/// The line without tags of web pages; `None` if it has none. A summary goes with its tags. O(bytes).
fn untagged(line: &str) -> Option<String> {
    let (mut plain, mut rest, mut is_tagged) = (String::new(), line, false);
    let last_summary = line.rfind("</summary>");
    while let Some((before, tag)) = rest.split_once('<') {
        plain.push_str(before);
        let letters = tag.strip_prefix('/').unwrap_or(tag).chars().take_while(char::is_ascii_alphanumeric);
        let name = letters.take(NAME_MAX).collect::<String>().to_ascii_lowercase();
        if !ELEMENTS.contains(&name.as_str()) {
            plain.push('<');
            rest = tag;
            continue;
        }
        // A tag without an end takes the rest of the line with it.
        let (inside, after) = tag.split_once('>').unwrap_or((tag, ""));
        is_tagged = true;
        let place = line.len() - after.len();
        rest = match last_summary {
            Some(end) if name == "summary" && !inside.starts_with('/') && place <= end => &line[end..],
            _ => after,
        };
    }
    plain.push_str(rest);
    is_tagged.then_some(plain)
}

/// Removes `> ` before each line, as mails and chats quote, also several.
fn unquote(lines: &mut Lines<'_>) {
    for _ in 0..QUOTES_MAX {
        let is_quoted = lines.iter().any(|line| !is_blank(line))
            && lines.iter().all(|line| is_blank(line) || line.trim_start().starts_with('>'));
        if !is_quoted {
            break;
        }
        for line in lines.iter_mut() {
            let plain = line.trim_start().strip_prefix('>').unwrap_or_default();
            *line = Cow::Owned(plain.strip_prefix(' ').unwrap_or(plain).to_owned());
        }
    }
}

/// Removes lines of fences. If a file is between two, only such parts of the text are kept.
pub(super) fn unfence(lines: &mut Lines<'_>, is_known: &dyn Fn(&str) -> bool) {
    let is_fence = |line: &str| ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence));
    for line in lines.iter_mut() {
        // A fence behind the last line.
        if let Some(before) = line.trim_end().strip_suffix("```").filter(|before| !is_blank(before)) {
            *line = Cow::Owned(before.to_owned());
        }
    }
    let fences: Vec<usize> = (0..lines.len()).filter(|&line| is_fence(&lines[line])).collect();
    let inside = |pair: &[usize]| match *pair {
        [open, close] => open + 1..close,
        _ => 0..0,
    };
    let files: Vec<_> = fences.chunks(2).map(inside).filter(|part| is_known(&lines[part.clone()].join("\n"))).collect();
    fences.iter().for_each(|&line| lines[line] = Cow::Borrowed(""));
    if files.is_empty() {
        return;
    }
    let mut files = files.into_iter().peekable();
    for (number, line) in lines.iter_mut().enumerate() {
        files.next_if(|part| part.end <= number);
        if !files.peek().is_some_and(|part| part.contains(&number)) {
            *line = Cow::Borrowed("");
        }
    }
}

/// Removes blanks that all lines begin with.
pub(super) fn dedent(lines: &mut Lines<'_>) {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let first = lines.iter().find(|line| !is_blank(line)).map(|line| line[..indent(line)].to_owned());
    let Some(mut common) = first else { return };
    for line in lines.iter().filter(|line| !is_blank(line)) {
        let same = common.bytes().zip(line.bytes()).take_while(|(a, b)| a == b).count();
        common.truncate(same);
    }
    if common.is_empty() {
        return;
    }
    for line in lines.iter_mut() {
        *line = Cow::Owned(line.strip_prefix(common.as_str()).unwrap_or_default().to_owned());
    }
}
