//! `topology.conf`: lines of `Key=Value`.

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
    let first_words = start.lines().map(|line| line.trim_start().split_once('=').map_or("", |(key, _)| key));
    first_words.into_iter().any(|key| matches!(key, "switchname" | "blockname" | "blocksizes" | "ringname"))
}

/// Reads switches, blocks or rings; Slurm has one of them in a file.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let (mut switches, mut blocks, mut rings, mut sizes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut has_speeds = false;
    for entry in entries(source)? {
        let mut entry = entry?;
        has_speeds |= entry.take("linkspeed").is_some();
        let Some((key, name)) = entry.first.take() else { continue };
        match key.as_str() {
            "switchname" => {
                let (below, nodes) = (entry.take("switches"), entry.take("nodes"));
                switches.push(SwitchLine { line: Some(entry.line), name, switches: below, nodes });
            }
            "blockname" => blocks.push(entry.group(name)?),
            "ringname" => rings.push(entry.group(name)?),
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

    fn group(&mut self, name: String) -> Result<GroupLine, ImportError> {
        let missing = || FileError::at(KIND, self.line, format!("`{}` has no `Nodes`", shorten(&name)));
        let nodes = self.others.iter().position(|(key, _)| key == "nodes").ok_or_else(missing)?;
        Ok(GroupLine { line: Some(self.line), nodes: self.others.swap_remove(nodes).1, name })
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

fn entry(line: usize, text: &str) -> Result<Entry, ImportError> {
    let mut pairs = Vec::new();
    for word in text.split_whitespace() {
        let malformed = || {
            let problem = format!("`{}` is no `Key=Value`; write SwitchName=leaf1 Nodes=gpu[01-04]", shorten(word));
            FileError::at(KIND, line, problem)
        };
        let (key, value) =
            word.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty()).ok_or_else(malformed)?;
        pairs.push((key.to_ascii_lowercase(), value.to_owned()));
    }
    let mut pairs = pairs.into_iter();
    Ok(Entry { line, first: pairs.next(), others: pairs.collect() })
}
