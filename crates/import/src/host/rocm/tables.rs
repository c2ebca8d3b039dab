//! The text of the tables to numbers and words.

use std::collections::{BTreeMap, HashMap, HashSet};

use canopy_topology::shorten;

use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::source::Source;

/// Longest name of a GPU.
const NAME_MAX: usize = 24;

/// How two GPUs meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// `0`: it is the same.
    Own,
    Xgmi,
    /// `PCIE`, and what the tool does not know.
    Host,
}

/// What the tables say, by GPU in their order.
pub(super) struct Tables {
    /// As nodes are called.
    pub(super) gpus: Vec<String>,
    /// PCI addresses, where the tables call GPUs so.
    pub(super) labels: Vec<Option<String>>,
    pub(super) types: Vec<Vec<Word>>,
    pub(super) hops: Option<Numbers>,
    /// Distances, which rise with each hop.
    pub(super) weights: Option<Numbers>,
    /// Rates of links together, in MB/s.
    pub(super) rates: Option<Numbers>,
    pub(super) numa: Vec<Option<u64>>,
}

/// A number for each pair, where there is one.
pub(super) type Numbers = Vec<Vec<Option<u64>>>;

/// Headings of tables, as `rocm-smi` and as `amd-smi` have them, in lower case.
const HEADINGS: [(Section, &str, &str); 4] = [
    (Section::Weights, "weight between two gpus", "weight table:"),
    (Section::Hops, "hops between two gpus", "hops table:"),
    (Section::Types, "link type between two gpus", "link type table:"),
    (Section::Rates, "numa bw between two gpus", "numa bw table:"),
];

/// Whether a file that begins like this is one of `rocm-smi`.
pub(crate) fn begins(start: &str) -> bool {
    HEADINGS.iter().any(|(_, heading, _)| start.contains(&format!("{heading} =")))
}

/// Whether a file that begins like this is one of `amd-smi`.
pub(crate) fn begins_amd(start: &str) -> bool {
    start.lines().any(|line| HEADINGS.iter().any(|(.., heading)| line.trim() == *heading))
}

/// What lines are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Weights,
    Hops,
    Types,
    Rates,
    Other,
}

/// What the tables after this line are about; `None` if it is no heading.
fn section(line: &str) -> Option<Section> {
    let title = line.trim_matches(['=', ' ', '\t', '\r']).to_ascii_lowercase();
    let found = HEADINGS.iter().find(|(_, rocm, amd)| title == *rocm || title == *amd).map(|(section, ..)| *section);
    found.or_else(|| (line.trim_start().starts_with("==") || title.ends_with(" table:")).then_some(Section::Other))
}

/// A square table: names of columns, then rows with their lines.
#[derive(Default)]
struct Square<'a> {
    columns: Vec<&'a str>,
    rows: Vec<(usize, &'a str, Vec<&'a str>)>,
}

/// Reads the tables. O(bytes).
pub(super) fn read(kind: FileKind, source: Source<'_>) -> Result<Tables, ImportError> {
    let (mut tables, mut numa) = (BTreeMap::<Section, Square<'_>>::new(), HashMap::new());
    let mut current = Section::Other;
    for line in source.lines() {
        let (number, line) = line?;
        match section(line) {
            Some(found) => {
                current = found;
                if found != Section::Other && tables.insert(found, Square::default()).is_some() {
                    let problem = "a second such table begins here; send the tables of one machine alone";
                    return Err(FileError::at(kind, number, problem).into());
                }
            }
            None if current == Section::Other => numa.extend(numa_node(line)),
            None => tables.entry(current).or_default().add(kind, number, line)?,
        }
    }
    let types = tables.get(&Section::Types).filter(|types| !types.columns.is_empty()).ok_or_else(|| {
        let title = if kind == FileKind::AmdSmi { "LINK TYPE TABLE" } else { "Link Type between two GPUs" };
        let problem = format!("there is no table `{title}`; send all that `{}` prints", kind.made_with());
        FileError::whole(kind, problem)
    })?;
    source.require(types.columns.len(), 0)?;
    let names = types.columns.clone();
    let types = types.read(kind, &names, |text| match text {
        "0" | "SELF" => Some(Word::Own),
        "XGMI" => Some(Word::Xgmi),
        "PCIE" | "UNKNOWN" | "N/A" => Some(Word::Host),
        _ => None,
    })?;
    if let Some((gpu, _)) =
        types.iter().enumerate().find(|(a, row)| (0..row.len()).any(|b| (*a == b) != (row[b] == Word::Own)))
    {
        let name = names[gpu];
        let problem =
            format!("row `{name}` has 0 or SELF for another GPU or a link to itself; 0 stands for the GPU itself");
        return Err(FileError::whole(kind, problem).of_field(name).into());
    }
    let numbers = |section: Section, word: fn(&str) -> Option<Option<u64>>| {
        let table = tables.get(&section).filter(|table| !table.columns.is_empty());
        table.map(|table| table.read(kind, &names, word)).transpose()
    };
    let (hops, weights) = (numbers(Section::Hops, number)?, numbers(Section::Weights, number)?);
    let rates = numbers(Section::Rates, rate)?;
    let is_address = |name: &str| name.contains(':');
    let labels = names.iter().map(|name| is_address(name).then(|| (*name).to_owned())).collect();
    let gpus: Vec<String> = (0..)
        .zip(&names)
        .map(|(place, name): (usize, _)| if is_address(name) { format!("GPU{place}") } else { (*name).to_owned() })
        .collect();
    let numa = gpus.iter().map(|gpu| numa.get(gpu).copied()).collect();
    Ok(Tables { gpus, labels, types, hops, weights, rates, numa })
}

/// A number, or that there is none.
fn number(text: &str) -> Option<Option<u64>> {
    if text == "N/A" { Some(None) } else { text.parse().ok().map(Some) }
}

/// The larger of `50000-100000`; 0 and `N/A` say nothing.
fn rate(text: &str) -> Option<Option<u64>> {
    if text == "N/A" {
        return Some(None);
    }
    let (_, most) = text.split_once('-').unwrap_or(("", text));
    most.parse().ok().map(|most: u64| Some(most).filter(|&most| most > 0))
}

/// `GPU0`, or a PCI address.
fn is_gpu(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_address = || {
        let is_shaped = word.matches(':').count() == 2 && word.matches('.').count() == 1;
        is_shaped && word.split([':', '.']).all(is_hex)
    };
    word.len() <= NAME_MAX && (word.strip_prefix("GPU").is_some_and(is_number) || is_address())
}

/// `GPU[0] : (Topology) Numa Node: 1`, in older versions `GPU 0`; negative numbers mean that there is none.
fn numa_node(line: &str) -> Option<(String, u64)> {
    let (device, node) = line.split_once(": (Topology) Numa Node:")?;
    let number = device.trim().strip_prefix("GPU")?.trim_matches(['[', ']', ' ']);
    Some((format!("GPU{number}"), node.trim().parse().ok()?))
}

impl<'a> Square<'a> {
    fn add(&mut self, kind: FileKind, line: usize, text: &'a str) -> Result<(), ImportError> {
        let mut words = text.split_whitespace();
        let Some(first) = words.next().filter(|first| is_gpu(first)) else { return Ok(()) };
        let rest: Vec<&str> = words.collect();
        if !self.columns.is_empty() {
            self.rows.push((line, first, rest));
            return Ok(());
        }
        self.columns = vec![first];
        let mut known = HashSet::from([first]);
        for &name in &rest {
            if !is_gpu(name) || !known.insert(name) {
                let problem = format!("column `{}` must be a GPU that is no other column", shorten(name));
                return Err(FileError::at(kind, line, problem).into());
            }
            self.columns.push(name);
        }
        Ok(())
    }

    /// The table with its words read, symmetric, with these columns and rows.
    fn read<T: Copy + PartialEq>(
        &self,
        kind: FileKind,
        names: &[&str],
        word: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<Vec<T>>, ImportError> {
        let rows: Vec<&str> = self.rows.iter().map(|(_, name, _)| *name).collect();
        if self.columns != names || rows != names {
            let problem =
                "GPUs are missing from a table that another has; all need the same rows and columns, in one order";
            return Err(FileError::whole(kind, problem).into());
        }
        let mut table: Vec<Vec<T>> = Vec::with_capacity(names.len());
        for (a, (line, name, texts)) in self.rows.iter().enumerate() {
            let error = |problem: String| ImportError::from(FileError::at(kind, *line, problem).of_field(name));
            if texts.len() != names.len() {
                let (found, wanted) = (texts.len(), names.len());
                return Err(error(format!("row `{name}` has {found} cells for {wanted} GPUs; send the whole table")));
            }
            let unknown = |text: &str| {
                error(format!("row `{name}` has `{}`; send what `{}` prints", shorten(text), kind.made_with()))
            };
            let row =
                texts.iter().map(|text| word(text).ok_or_else(|| unknown(text))).collect::<Result<Vec<T>, _>>()?;
            if let Some(b) = (0..a).find(|&b| table[b][a] != row[b]) {
                let other = names[b];
                return Err(error(format!(
                    "row `{name}` and row `{other}` do not agree on each other; send the output as it is"
                )));
            }
            table.push(row);
        }
        Ok(table)
    }
}
