//! What launchers and logs put before each line: the rank, the machine, the pod, the time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use canopy_topology::shorten;

use super::{Lines, is_blank};
use crate::error::ImportError;
use crate::machine::listed;

/// A way to begin a line.
struct Form {
    /// The tag of a line and what follows it.
    split: fn(&str) -> Option<(&str, &str)>,
    /// Whether lines of one tag belong together, those of another are another's.
    is_source: bool,
    /// Lines that each tag must have, unless what is left is a file: a key of YAML is before one line.
    lines_min: usize,
}

const FORMS: [Form; 8] = [
    Form { split: mpirun, is_source: true, lines_min: 0 },
    Form { split: bracketed, is_source: true, lines_min: 3 },
    Form { split: ray, is_source: true, lines_min: 0 },
    Form { split: moment, is_source: false, lines_min: 0 },
    Form { split: syslog, is_source: true, lines_min: 0 },
    Form { split: gutter, is_source: false, lines_min: 0 },
    Form { split: numbered, is_source: true, lines_min: 3 },
    Form { split: named, is_source: true, lines_min: 3 },
];

/// Tags within each other: a time, a pod and a rank.
const DEPTH_MAX: usize = 4;
/// Most parts of ten of lines that need no tag: a prompt, or words of whoever pastes.
const UNTAGGED_TENTHS_MAX: usize = 2;

/// Removes tags that nearly all lines have.
///
/// # Errors
/// Lines of several machines or ranks, of which more than one is a file, and not the same.
pub(super) fn untag(lines: &mut Lines<'_>, is_known: &dyn Fn(&str) -> bool) -> Result<(), ImportError> {
    for _ in 0..DEPTH_MAX {
        let Some(form) = FORMS.iter().find(|form| form.is_of(lines, is_known)) else { break };
        form.remove(lines, is_known)?;
    }
    Ok(())
}

impl Form {
    fn is_of(&self, lines: &Lines<'_>, is_known: &dyn Fn(&str) -> bool) -> bool {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut all, mut tagged) = (0, 0);
        for line in lines.iter().filter(|line| !is_blank(line)) {
            all += 1;
            if let Some((tag, _)) = (self.split)(line) {
                tagged += 1;
                if self.is_source {
                    *counts.entry(tag).or_default() += 1;
                }
            }
        }
        if tagged == 0 || (all - tagged) * 10 > all * UNTAGGED_TENTHS_MAX {
            return false;
        }
        let rest = |line: &Cow<'_, str>| (self.split)(line).map_or_else(String::new, |(_, rest)| rest.to_owned());
        let is_file = || is_known(&lines.iter().map(rest).collect::<Vec<_>>().join("\n"));
        counts.len() * self.lines_min <= tagged || counts.len() * 2 <= tagged + 1 && is_file()
    }

    /// Removes the tags; of several sources one stays.
    fn remove(&self, lines: &mut Lines<'_>, is_known: &dyn Fn(&str) -> bool) -> Result<(), ImportError> {
        // One blank belongs to the tag if it is behind each.
        let is_apart = |(_, rest): (&str, &str)| rest.is_empty() || rest.starts_with(' ');
        let is_spaced = lines.iter().filter_map(|line| (self.split)(line)).all(is_apart);
        let mut sources: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
        for (number, line) in lines.iter().enumerate() {
            let Some((tag, rest)) = (self.split)(line) else { continue };
            let rest = if is_spaced { rest.strip_prefix(' ').unwrap_or(rest) } else { rest };
            let source = if self.is_source { tag } else { "" };
            sources.entry(source.to_owned()).or_default().push((number, rest.to_owned()));
        }
        let kept = one_of(&sources, is_known)?.map(str::to_owned);
        for (tag, of_source) in sources {
            let is_kept = kept.as_ref().is_none_or(|kept| *kept == tag);
            for (number, rest) in of_source {
                lines[number] = if is_kept { Cow::Owned(rest) } else { Cow::Borrowed("") };
            }
        }
        Ok(())
    }
}

/// The source that is a file; `None` for all of them if each is only a part of one.
fn one_of<'a>(
    sources: &'a BTreeMap<String, Vec<(usize, String)>>,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<Option<&'a str>, ImportError> {
    if sources.len() < 2 {
        return Ok(None);
    }
    let text =
        |lines: &Vec<(usize, String)>| lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n");
    let files: Vec<(&str, String)> =
        sources.iter().map(|(tag, lines)| (tag.as_str(), text(lines))).filter(|(_, text)| is_known(text)).collect();
    match files.as_slice() {
        [] => Ok(None),
        [(first, text), others @ ..] if others.iter().all(|(_, other)| other == text) => Ok(Some(first)),
        [(first, _), ..] => {
            let first = shorten(first);
            let tags: Vec<String> = files.iter().map(|(tag, _)| shorten(tag)).collect();
            Err(ImportError::Several { of: listed(tags.iter().map(String::as_str)), first })
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A name of a machine, a pod or a service.
fn is_name(text: &str) -> bool {
    let is_in_names = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@');
    !text.is_empty() && text.len() <= 255 && text.chars().all(is_in_names)
}

/// `[1,0]<stdout>:`
fn mpirun(line: &str) -> Option<(&str, &str)> {
    let (ranks, rest) = line.strip_prefix('[')?.split_once("]<std")?;
    let end = rest.find('>')?;
    let (stream, rest) = rest.split_at(end + 1);
    let is_tag = ranks.split(',').all(is_number) && matches!(stream, "out>" | "err>" | "diag>");
    is_tag.then(|| (&line[..line.len() - rest.len()], rest.strip_prefix(':').unwrap_or(rest)))
}

/// `[node1] `, `[pod/a/b] ` and `[default0]:`; `[1]` before a tab is a port of InfiniBand.
fn bracketed(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix('[')?.split_once(']')?;
    let is_tag = (is_name(name) || name.split(',').all(is_number)) && !name.contains('@');
    let rest = rest.strip_prefix(':').or(rest.starts_with(' ').then_some(rest)).or(rest.is_empty().then_some(rest))?;
    is_tag.then_some((name, rest))
}

/// `(Worker pid=1234, ip=10.0.0.1) `
fn ray(line: &str) -> Option<(&str, &str)> {
    let (inside, rest) = line.strip_prefix('(')?.split_once(')')?;
    inside.contains("pid=").then_some((inside, rest))
}

/// `2025-01-07T10:00:00.123456789Z `, also with a blank, and with `stdout F ` of a container behind it.
fn moment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches('[');
    let is_shaped = |text: &str, shape: &str| {
        let fits = |(found, wanted): (u8, u8)| if wanted == b'0' { found.is_ascii_digit() } else { found == wanted };
        text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
    };
    let (day, rest) = line.split_at_checked(10)?;
    let (clock, rest) = rest.strip_prefix(['T', ' '])?.split_at_checked(8)?;
    if !is_shaped(day, "0000-00-00") || !is_shaped(clock, "00:00:00") {
        return None;
    }
    let rest =
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '+' | '-' | ':' | 'Z' | ']'));
    let stream = [" stdout F", " stderr F"].iter().find_map(|stream| rest.strip_prefix(stream));
    Some((day, stream.unwrap_or(rest)))
}

/// `Jan  7 10:00:00 node1 program[123]: `
fn syslog(line: &str) -> Option<(&str, &str)> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (head, rest) = line.split_once("]:")?;
    let mut words = head.split_whitespace();
    let is_tag = MONTHS.contains(&words.next()?) && is_number(words.next()?) && words.next()?.matches(':').count() == 2;
    let host = words.next()?;
    let is_last = words.next()?.contains('[') && words.next().is_none();
    (is_tag && is_last).then_some((host, rest))
}

/// `  12  ` before a tab or `|`, as `cat -n` and editors number lines.
fn gutter(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(' ');
    let (number, rest) = line.split_at(line.find(['\t', '|', ' '])?);
    let rest = rest.strip_prefix('\t').or_else(|| rest.trim_start_matches(' ').strip_prefix('|'))?;
    is_number(number).then_some((number, rest))
}

/// `0: ` and ` 12: `, as `srun --label` has them.
fn numbered(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.trim_start_matches(' ').split_once(':')?;
    (is_number(number) && (rest.is_empty() || rest.starts_with(' '))).then_some((number, rest))
}

/// `node1: ` and `service-1  | `
fn named(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_at(line.find([':', ' ', '|'])?);
    let is_there = |rest: &&str| rest.is_empty() || rest.starts_with([' ', '\t']);
    let rest = rest.strip_prefix(':').or_else(|| rest.trim_start_matches(' ').strip_prefix('|')).filter(is_there)?;
    is_name(name).then_some((name, rest))
}
