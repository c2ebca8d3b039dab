//! `topology.conf`, and what `scontrol show topology` prints of it: lines of `Key=Value`.
//!
//! `scontrol` adds levels and indices, and names below a switch of switches all nodes below those, too.

use canopy_topology::{did_you_mean, shorten};

use super::shapes::{Builder, GroupLine, SwitchLine};
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::source::Source;

const KIND: FileKind = FileKind::SlurmConf;

/// Longest line, continued ones together.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    let mut first_words = start.lines().map(|line| line.split_once('=').map_or("", |(key, _)| key.trim()));
    first_words.any(|key| matches!(key, "switchname" | "blockname" | "blocksizes" | "ringname"))
}

/// Reads switches, blocks or rings; Slurm has one of them in a file.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let (mut switches, mut blocks, mut rings, mut sizes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut has_speeds, mut empty) = (false, Vec::new());
    for entry in entries(source)? {
        let mut entry = entry?;
        has_speeds |= entry.take("linkspeed").is_some();
        let Some((key, name)) = entry.first.take() else { continue };
        match key.as_str() {
            "switchname" => {
                let is_shown = entry.take("level").is_some();
                let below = entry.take("switches");
                let nodes = entry.take("nodes").filter(|_| !is_shown || below.is_none());
                switches.push(SwitchLine { line: Some(entry.line), name, switches: below, nodes });
            }
            "blockname" | "ringname" => {
                let (line, nodes) = (Some(entry.line), entry.take("nodes"));
                // Those of `scontrol`.
                let _ = (entry.take("blockindex"), entry.take("blocksize"));
                match nodes {
                    None => empty.push(name),
                    Some(nodes) if key == "blockname" => blocks.push(GroupLine { line, name, nodes }),
                    Some(nodes) => rings.push(GroupLine { line, name, nodes }),
                }
            }
            "aggregatedblock" => continue,
            "blocksizes" => sizes = block_sizes(entry.line, &name)?,
            _ => {
                let known = ["SwitchName", "BlockName", "BlockSizes", "RingName"];
                let hint = did_you_mean(&key, known, "use SwitchName, BlockName, BlockSizes or RingName");
                return Err(
                    FileError::at(KIND, entry.line, format!("`{}` begins no line; {hint}", shorten(&key))).into()
                );
            }
        }
        entry.require_empty()?;
    }
    let kinds = [!switches.is_empty(), !blocks.is_empty(), !rings.is_empty()];
    if let ([false, false, false], Some(name)) = (kinds, empty.first()) {
        let problem = format!("`{}` has no `Nodes`; name its machines, as in Nodes=gpu[01-04]", shorten(name));
        return Err(FileError::whole(KIND, problem).into());
    }
    if kinds.into_iter().filter(|&is_there| is_there).count() != 1 {
        let problem = "give lines of one kind: SwitchName, BlockName or RingName";
        return Err(FileError::whole(KIND, problem).into());
    }
    let mut builder = Builder::new(KIND, source);
    builder.tree(&switches)?;
    if !blocks.is_empty() {
        builder.blocks(&blocks, &sizes)?;
    }
    builder.rings(&rings)?;
    builder.leave_out(empty);
    let mut fabric = builder.finish()?;
    if has_speeds {
        let said = "LinkSpeed, which has no unit and which Slurm does not use; state rates with --rates";
        fabric.report.left_out.push(said.to_owned());
    }
    Ok(Content::Fabric(fabric))
}

fn block_sizes(line: usize, text: &str) -> Result<Vec<u64>, ImportError> {
    let number = |text: &str| text.trim().parse().ok().filter(|&size| size > 0);
    let sizes: Option<Vec<u64>> = text.split(',').map(number).collect();
    let problem = || format!("BlockSizes is `{}`; write numbers of nodes such as 4,16", shorten(text));
    Ok(sizes.ok_or_else(|| FileError::at(KIND, line, problem()))?)
}

/// A line: its first key and value, and the others.
struct Entry {
    line: usize,
    first: Option<(String, String)>,
    others: Vec<(String, String)>,
}

impl Entry {
    /// The value of a key in lower case, which then is read.
    fn take(&mut self, key: &str) -> Option<String> {
        let place = self.others.iter().position(|(found, _)| found == key)?;
        Some(self.others.swap_remove(place).1)
    }

    fn require_empty(&self) -> Result<(), ImportError> {
        let Some((key, _)) = self.others.first() else { return Ok(()) };
        let hint =
            did_you_mean(key, ["Switches", "Nodes", "LinkSpeed"], "use Switches, Nodes and LinkSpeed, each once");
        Err(FileError::at(KIND, self.line, format!("`{}` is no key here; {hint}", shorten(key))).into())
    }
}

/// The lines, continued ones joined, without comments and empty ones.
fn entries(source: Source<'_>) -> Result<impl Iterator<Item = Result<Entry, ImportError>>, ImportError> {
    let mut entries = Vec::new();
    let (mut whole, mut start) = (String::new(), 1);
    for line in source.lines() {
        let (number, line) = line?;
        if whole.is_empty() {
            start = number;
        }
        let line = line.split('#').next().unwrap_or_default().trim_end();
        if line.is_empty() && !whole.is_empty() {
            continue;
        }
        let (line, continues) = line.strip_suffix('\\').map_or((line, false), |line| (line, true));
        whole.push_str(line);
        if whole.len() > LINE_BYTES_MAX {
            return Err(FileError::at(KIND, start, "the line is longer than 1 MiB; divide it").into());
        }
        if continues {
            continue;
        }
        let line = std::mem::take(&mut whole);
        if !line.trim().is_empty() {
            entries.push(entry(start, &line));
        }
    }
    if !whole.trim().is_empty() {
        entries.push(entry(start, &whole));
    }
    Ok(entries.into_iter())
}

/// Pairs of keys and values. As Slurm reads them, blanks may stand around `=`, and quotes around a value; lists may have
/// blanks behind their commas.
fn entry(line: usize, text: &str) -> Result<Entry, ImportError> {
    let malformed = |word: &str| {
        let word = word.split_whitespace().next().unwrap_or_default();
        let problem = format!("`{}` is no `Key=Value`; write SwitchName=leaf1 Nodes=gpu[01-04]", shorten(word));
        FileError::at(KIND, line, problem)
    };
    let mut pairs = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, behind) = rest.split_once('=').ok_or_else(|| malformed(rest))?;
        let (key, behind) = (key.trim_end(), behind.trim_start());
        let quote = behind.chars().next().filter(|quote| matches!(quote, '"' | '\''));
        let (value, next) = match quote {
            Some(quote) => behind[1..].split_once(quote).ok_or_else(|| malformed(behind))?,
            None => behind.split_at(end_of_value(behind)),
        };
        if key.is_empty() || key.contains(char::is_whitespace) || value.trim().is_empty() || value.contains('=') {
            return Err(malformed(rest).into());
        }
        let value: String = value.split_whitespace().collect();
        pairs.push((key.to_ascii_lowercase(), value));
        rest = next.trim_start();
    }
    let mut pairs = pairs.into_iter();
    Ok(Entry { line, first: pairs.next(), others: pairs.collect() })
}

/// Where a value without quotes ends: at a blank that is neither beside a comma nor in brackets.
fn end_of_value(text: &str) -> usize {
    let (mut depth, mut last, mut blank) = (0_usize, ',', None);
    for (place, c) in text.char_indices() {
        if c.is_whitespace() {
            if depth == 0 && last != ',' {
                blank.get_or_insert(place);
            }
            continue;
        }
        match (blank.take(), c) {
            (Some(end), _) if c != ',' => return end,
            (_, '[') => depth += 1,
            (_, ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        last = c;
    }
    blank.unwrap_or(text.len())
}
